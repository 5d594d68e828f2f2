/*
 * Bindings: one session's instance of a shared plan.  The pointer table of all arguments, the
 * storages behind it, buffers for the data Consts, scratch memory.
 *
 * Everything is allocated at creation and binding; a run allocates nothing.  Belongs to one thread
 * at a time; many bindings of one plan may run at once.
 */
#ifndef PAWL_RUNTIME_BINDINGS_H
#define PAWL_RUNTIME_BINDINGS_H

#include "runtime/counters.h"
#include "runtime/plan.h"
#include "runtime/scratch.h"
#include "runtime/symenv.h"
#include "runtime/weights.h"

struct pawl_bindings;

/* team (of the same device thread count for good) and plan are kept; the plan is referenced. */
enum pawl_status pawl_bindings_new(struct pawl_plan *plan, struct pawl_team *team,
	struct pawl_bindings **out, struct pawl_error *err);
/* The same with a storage for each output slot, which outlives the bindings when referenced. */
enum pawl_status pawl_bindings_new_with_outputs(struct pawl_plan *plan, struct pawl_team *team,
	struct pawl_bindings **out, struct pawl_error *err);
/*
 * The same with outputs in scratch memory that other bindings take turns in, and that grows when this
 * one needs more; it outlives them.  Unused on a device with memory of its own.
 */
enum pawl_status pawl_bindings_new_over(struct pawl_plan *plan, struct pawl_team *team,
	struct pawl_scratch *scratch, struct pawl_bindings **out, struct pawl_error *err);
/* NULL is allowed. */
void pawl_bindings_free(struct pawl_bindings *bindings);

struct pawl_plan *pawl_bindings_plan(const struct pawl_bindings *bindings);

/* Binds every weight slot by name. */
enum pawl_status pawl_bindings_bind_weights(
	struct pawl_bindings *bindings, struct pawl_weights *weights, struct pawl_error *err);

/*
 * On a device with memory of its own data slots are filled in on the host: bind copies a storage's
 * bytes, of the host or of that device, once.  Outputs come to the host after each run, unless
 * storages were made for them.
 *
 * Puts a storage behind a weight, kv, data or output slot and patches every argument that lies in
 * it.  The storage must have the type of the slot (symbols at their largest) and the location of
 * the device; otherwise PAWL_INVALID_ARGUMENT and nothing changes.  Takes a reference.
 */
enum pawl_status pawl_bindings_bind(struct pawl_bindings *bindings, int32_t slot,
	struct pawl_storage *storage, struct pawl_error *err);

/*
 * The same for a storage whose type and location the caller has already proved equal to those of
 * what is behind the slot now, and which shares memory with no other slot; cannot fail.
 */
void pawl_bindings_swap(struct pawl_bindings *bindings, int32_t slot, struct pawl_storage *storage);

/* Behind a slot now; NULL for temporaries and whatever is unbound.  No reference is given. */
struct pawl_storage *pawl_bindings_storage(const struct pawl_bindings *bindings, int32_t slot);

/*
 * Bytes for a data slot in the next run, pawl_bindings_data_bytes of them; read by that run,
 * whether it succeeds or fails, then forgotten.  A data slot that gets none keeps what it held.
 */
void pawl_bindings_offer(struct pawl_bindings *bindings, int32_t slot, const void *bytes);
int64_t pawl_bindings_data_bytes(const struct pawl_bindings *bindings, int32_t slot);

/* Of every run from now on, as in struct pawl_run; NULL: never. */
void pawl_bindings_set_stop(
	struct pawl_bindings *bindings, bool (*is_stopped)(void *arg), void *arg);

/* The same of step_ns, on a target that times_steps; for measurements. */
void pawl_bindings_time_steps(struct pawl_bindings *bindings, int64_t *step_ns);

/*
 * Checks that everything is bound, that no cache shares memory with another or with a weight, that
 * every symbol is bound, and every dynamic index (PAWL_CAPACITY and others of
 * runtime/index_check.h); then copies the offered bytes in place and runs.  Until all checks have
 * passed nothing is written.  env may be NULL for a plan without symbols.
 * counters (may be NULL) grow by bytes_bound, a run that succeeds, and its time.
 */
enum pawl_status pawl_bindings_run(struct pawl_bindings *bindings, const struct pawl_symenv *env,
	struct pawl_counters *counters, struct pawl_error *err);

/*
 * Output `i` of the graph after a run: valid until the next one.  type may be NULL.  An address of
 * the device's where its memory is its own and the output is a cache, or was made a storage for.
 */
const void *pawl_bindings_output(
	const struct pawl_bindings *bindings, int32_t i, struct pawl_type *type);

#endif
