/*
 * Attention of one query of one head, in the order of docs/arithmetic.md, "Attention":
 * chunks of PAWL_ATTEND_CHUNK positions anchored at absolute positions, merged in ascending
 * order.  To be called in the environment of ir/fpenv.h.
 *
 *	first visible chunk:	pawl_attend_chunk into the total
 *	each further one:	pawl_attend_chunk into another part, pawl_attend_merge
 *	then:			pawl_attend_finish
 */
#ifndef PAWL_IR_ATTEND_H
#define PAWL_IR_ATTEND_H

#include <stdint.h>

#include "ir/eval_consts.h"

/* Maximum, sum of exponentials and weighted values of some positions; o is the caller's. */
struct pawl_attend_part {
	float max;
	float sum;
	float *o; /* [width of a value row] */
};

/* dot * scale, then the cap (0: none); an additive mask comes after, as one addition. */
float pawl_attend_score(float dot, float scale, float softcap);

/*
 * The part of n >= 1 visible positions first .. first + n - 1, all of one chunk.  scores[i]
 * and the row values + i * stride belong to position first + i.
 */
void pawl_attend_chunk(int64_t first, int n, const float *scores, const float *values,
	int64_t stride, int64_t width, struct pawl_attend_part *part);

/* total := total with the part of a later chunk. */
void pawl_attend_merge(
	struct pawl_attend_part *total, const struct pawl_attend_part *part, int64_t width);

/* y = o / sum; zeros when every score was -inf.  y may be total->o. */
void pawl_attend_finish(const struct pawl_attend_part *total, int64_t width, float *y);

#endif
