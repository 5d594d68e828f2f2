#!/bin/sh
# Gemma 3 270M against expected values that were made without Pawl.
golden=gemma3-270m
. "$top_srcdir/tests/model-test.sh"

python_parts text logits rows
end
