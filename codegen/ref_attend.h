/*
 * What both references of attention share: which positions of its cache a row sees.  That is
 * an interval, since a mask is added to the scores and hides nothing by itself.
 */
#ifndef PAWL_CODEGEN_REF_ATTEND_H
#define PAWL_CODEGEN_REF_ATTEND_H

#include "codegen/ref_ops.h"

/* The largest offset; beyond it a sum with a row number might overflow. */
#define PAWL_ATTEND_MOST ((int64_t)1 << 40)

struct pawl_visible {
	int64_t first, end; /* first >= end: nothing is seen */
};

/* A row at absolute position `at` over the positions 0 .. length - 1. */
static inline struct pawl_visible
pawl_visible(const struct pawl_attrs *attrs, int64_t at, int64_t length)
{
	struct pawl_visible v = {0, length};

	if (attrs->causal && at + 1 < v.end)
		v.end = at + 1;
	if (attrs->window > 0 && at - attrs->window + 1 > 0)
		v.first = at - attrs->window + 1;
	return v;
}

/*
 * The absolute position of row 0 and the number of positions in use.  PAWL_INVALID_ARGUMENT
 * for an offset outside of 0 .. PAWL_ATTEND_MOST, PAWL_CAPACITY for a length beyond the cache.
 */
enum pawl_status pawl_ref_attend_extent(
	const struct pawl_ref_call *call, int64_t *offset, int64_t *length, struct pawl_error *err);

#endif
