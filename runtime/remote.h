/*
 * The part of bindings that a device with memory of its own needs (struct pawl_target_memory): an
 * runner of the plan's code, scratch memory over there, and the places on the host that data slots
 * are filled in and outputs come to.
 *
 * Belongs to one thread at a time, with its bindings.
 */
#ifndef PAWL_RUNTIME_REMOTE_H
#define PAWL_RUNTIME_REMOTE_H

#include "runtime/plan.h"

struct pawl_remote;

/*
 * takes_outputs: outputs that lie in scratch memory are brought to the host after each run.  The
 * plan must outlive it.  The device's errors.
 */
enum pawl_status pawl_remote_new(const struct pawl_plan *plan, int64_t scratch_bytes,
	bool takes_outputs, struct pawl_remote **out, struct pawl_error *err);
/* Before the storages that its runs worked on.  NULL is allowed. */
void pawl_remote_free(struct pawl_remote *remote);

/* An address of the device. */
void *pawl_remote_scratch(const struct pawl_remote *remote);

/* Where the host fills a data slot in, and the address it has on the device. */
void *pawl_remote_data(const struct pawl_remote *remote, int32_t slot);
void *pawl_remote_device_data(const struct pawl_remote *remote, int32_t slot);

/* What a slot with that storage, which is no data slot, holds: valid until the next call. */
enum pawl_status pawl_remote_look(struct pawl_remote *remote, const struct pawl_storage *storage,
	const void **bytes, struct pawl_error *err);

/* Fills scratch memory with NaN. */
enum pawl_status pawl_remote_poison(const struct pawl_remote *remote, struct pawl_error *err);

/* The addresses of args have changed. */
void pawl_remote_note_args(struct pawl_remote *remote);
/* storages: of each slot, NULL: in scratch memory.  *waited_ns as of runner_run. */
enum pawl_status pawl_remote_run(struct pawl_remote *remote, void *const *args,
	const int64_t *symbols, struct pawl_storage *const *storages, int64_t *waited_ns,
	struct pawl_error *err);
/* An output slot after a run; NULL unless outputs are taken. */
const void *pawl_remote_output(const struct pawl_remote *remote, int32_t slot);

#endif
