#!/bin/sh
# SmolLM2 against expected values that were made without Pawl.
. "$top_srcdir/tests/model-test.sh"

python_parts text logits rows
end
