#!/bin/sh
# What a generation of the real model costs.
. "$top_srcdir/tests/model-test.sh"

python_parts run
end
