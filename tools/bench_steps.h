/* Where the time of a decoded token goes: the steps of its plan, those with the same kernel together. */
#ifndef PAWL_TOOLS_BENCH_STEPS_H
#define PAWL_TOOLS_BENCH_STEPS_H

#include "runtime/decoder.h"
#include "runtime/json_write.h"

/* Steps that share a kernel. */
struct pawl_step_group {
	int32_t first, n; /* the first of them in the plan; how many */
	double us;        /* of a token: computing, and waiting for the last thread */
	int64_t bytes;    /* of packed weights that a token reads there */
};

struct pawl_step_times {
	const struct pawl_plan *plan; /* the decoder's; valid as pawl_decoder_prepare says */
	int64_t *ns;                  /* of each step */
	struct pawl_step_group *groups; /* the longest first */
	int32_t n_groups;
};

/* From here on single tokens are timed. */
enum pawl_status pawl_step_times_start(struct pawl_step_times *times,
	struct pawl_decoder *decoder, struct pawl_error *err);
/* Makes the groups, of n_tokens that were decoded since. */
enum pawl_status pawl_step_times_stop(struct pawl_step_times *times, struct pawl_decoder *decoder,
	int64_t n_tokens, struct pawl_error *err);
void pawl_step_times_release(struct pawl_step_times *times);

void pawl_step_times_print(const struct pawl_step_times *times);
/* "steps" of a row: [{"template", "body", "first", "n", "us", "weight_bytes"}]. */
void pawl_step_times_add(const struct pawl_step_times *times, struct pawl_json *json, cJSON *row);

#endif
