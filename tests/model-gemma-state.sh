#!/bin/sh
# The equalities of model-state.sh for Gemma 3 270M.
golden=gemma3-270m
. "$top_srcdir/tests/model-state.sh"
