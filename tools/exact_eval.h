/*
 * What a model's graph means, before any pass: weights exactly decoded, everything in f64.  The
 * oracle for what plans and passes cost; slow.
 */
#ifndef PAWL_TOOLS_EXACT_EVAL_H
#define PAWL_TOOLS_EXACT_EVAL_H

#include "models/model.h"

/*
 * The logits after each of n tokens, ids of the model, `chunk` of them in a run; between runs K
 * and V are kept in f32.  row is called in order with n_vocab values, rounded to f32; its failure
 * ends the call.
 */
enum pawl_status pawl_exact_eval(const struct pawl_model *model, const uint32_t *tokens, int64_t n,
	int64_t chunk,
	enum pawl_status (*row)(
		void *arg, int64_t position, const float *logits, struct pawl_error *err),
	void *arg, struct pawl_error *err);

#endif
