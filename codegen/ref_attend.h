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

/* A row at absolute position `at` over the positions 0 .. length - 1; none when at is negative. */
static inline struct pawl_visible
pawl_visible(const struct pawl_attrs *attrs, int64_t at, int64_t length)
{
	struct pawl_visible v = {0, at < 0 ? 0 : length};

	if (at < 0)
		return v;
	if (attrs->causal && at + 1 < v.end)
		v.end = at + 1;
	if (attrs->window > 0 && at - attrs->window + 1 > 0)
		v.first = at - attrs->window + 1;
	return v;
}

/*
 * The number of positions in use, after a look at every position and block.  PAWL_INVALID_ARGUMENT
 * for an offset outside of 0 .. PAWL_ATTEND_MOST, PAWL_CAPACITY for a length or position beyond the
 * cache or table and for a block that the cache does not have.
 */
enum pawl_status pawl_ref_attend_length(
	const struct pawl_ref_call *call, int64_t *length, struct pawl_error *err);

/* The absolute position of row t. */
int64_t pawl_ref_attend_position(const struct pawl_ref_call *call, int64_t t);

/* Where position p of the sequence of row t lies along the positions of k and v. */
int64_t pawl_ref_attend_slot(const struct pawl_ref_call *call, int64_t t, int64_t p);

/* Whether input 4 is a mask. */
static inline bool
pawl_ref_attend_has_mask(const struct pawl_ref_call *call)
{
	return call->n_inputs == 5 && !call->attrs->block;
}

#endif
