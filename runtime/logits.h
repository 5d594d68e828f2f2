/*
 * Which rows of logits a step computes.  GREEDY gives, in place of those of the last row, the id of
 * the largest: i32 [1], the lowest id of equal ones, -1 where a logit is not a number.
 */
#ifndef PAWL_RUNTIME_LOGITS_H
#define PAWL_RUNTIME_LOGITS_H

enum pawl_logits {
	PAWL_LOGITS_NONE,
	PAWL_LOGITS_LAST,
	PAWL_LOGITS_ALL,
	PAWL_LOGITS_GREEDY,
	PAWL_N_LOGITS
};

#endif
