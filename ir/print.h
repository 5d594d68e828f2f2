/*
 * Canonical text of a graph (grammar at the head of ir/parse.c).  The same graph gives the same
 * bytes: list order, attributes in table order, defaults omitted, shortest round-trip numbers,
 * independent of the locale.
 */
#ifndef PAWL_IR_PRINT_H
#define PAWL_IR_PRINT_H

#include "ir/graph.h"
#include "ir/verify.h"

/* "values", "ordered", "fused". */
const char *pawl_stage_name(enum pawl_stage stage);

/* malloc'ed text; NULL when memory is exhausted.  notes (may be NULL) are printed under their
 * nodes. */
char *pawl_print(const struct pawl_graph *graph, const struct pawl_diagnostics *notes);

/* Shortest decimal text that reads back as the same double; "inf", "-inf", "nan". */
int pawl_print_double(char *out, size_t n, double value);
/* "f16[1, 3, T, 64]@k16" */
int pawl_print_type(
	char *out, size_t n, const struct pawl_graph *graph, const struct pawl_type *type);

#endif
