/*
 * What bindings are, for the files that make them, run them (bindings.c) and check them before a run
 * (bindings_check.c).
 */
#ifndef PAWL_RUNTIME_BINDINGS_PARTS_H
#define PAWL_RUNTIME_BINDINGS_PARTS_H

#include "runtime/bindings.h"
#include "runtime/offers.h"
#include "runtime/remote.h"
#include "runtime/scratch.h"

struct pawl_bindings {
	struct pawl_plan *plan;
	struct pawl_team *team;
	struct pawl_storage **storages; /* n_slots */
	struct pawl_offers offers;      /* of the data slots */
	void **outputs;                 /* where outputs lie in scratch memory, NULL: elsewhere */
	void **args;                    /* n_args */
	struct pawl_remote *remote; /* NULL: code works on the host's memory */
	struct pawl_scratch own, *scratch; /* of the host; lent, or its own */
	const void *common, *threads;      /* where they lay when arguments were made to point there */
	void **thread_scratch;
	int n_threads;
	bool owns_outputs; /* outputs lie in storages, not in scratch memory */
	bool poisons;      /* PAWL_DEBUG=poison */
	bool is_complete;  /* weights and caches are bound; they can be replaced, not taken away */
	int64_t *step_ns;
	bool (*is_stopped)(void *arg);
	void *stop_arg;
	bool is_apart;     /* no kv storage shares memory with another, or with a weight */
};

/*
 * Whether all is bound, apart and in its bounds, as pawl_bindings_run promises: nothing has been written
 * when it is not.
 */
enum pawl_status pawl_bindings_check(
	struct pawl_bindings *b, const struct pawl_symenv *env, struct pawl_error *err);

#endif
