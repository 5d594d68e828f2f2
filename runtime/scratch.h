/*
 * Memory for the temporaries and outputs of runs.  Bindings that never run at once may take turns in
 * one: what lies there holds until another of them runs.  Belongs to one thread at a time.
 */
#ifndef PAWL_RUNTIME_SCRATCH_H
#define PAWL_RUNTIME_SCRATCH_H

#include "runtime/memory.h"

/* Zeroed is empty. */
struct pawl_scratch {
	struct pawl_block common;
	struct pawl_block threads; /* each has a part of its own */
};

/*
 * Room for so many bytes of each at least.  What was there may move and be lost; on failure it stays.
 */
enum pawl_status pawl_scratch_reserve(struct pawl_scratch *scratch, int64_t n_common,
	int64_t n_threads, struct pawl_error *err);
void pawl_scratch_release(struct pawl_scratch *scratch);

#endif
