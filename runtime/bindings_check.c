#include "runtime/bindings_parts.h"

#include "ir/each_token.h"

#include <inttypes.h>

PAWL_EACH_TOKEN static enum pawl_status
check_bound(struct pawl_bindings *b, struct pawl_error *err)
{
	const struct pawl_program *program = b->plan->program;
	const struct pawl_offer *empty;

	for (int32_t i = 0; i < program->n_slots && !b->is_complete; i++) {
		const struct pawl_slot *slot = &program->slots[i];

		if ((slot->role == PAWL_SLOT_WEIGHT || slot->role == PAWL_SLOT_KV) &&
			!b->storages[i])
			return pawl_fail(err, PAWL_INVALID_ARGUMENT, "%s is not bound", slot->name);
	}
	b->is_complete = true;
	empty = pawl_offers_find_empty(&b->offers);
	if (empty)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT, "data const %s has no bytes",
			program->slots[empty->slot].name);
	if (b->team->n_threads > b->n_threads)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"the team has grown from %d to %d threads", b->n_threads,
			b->team->n_threads);
	return PAWL_OK;
}

/* What a step writes to a cache must not change what others read. */
PAWL_EACH_TOKEN static enum pawl_status
check_apart(struct pawl_bindings *b, struct pawl_error *err)
{
	const struct pawl_program *program = b->plan->program;

	for (int32_t i = 0; i < program->n_slots && !b->is_apart; i++) {
		if (program->slots[i].role != PAWL_SLOT_KV)
			continue;
		for (int32_t j = 0; j < program->n_slots; j++) {
			const struct pawl_slot *other = &program->slots[j];

			if ((other->role == PAWL_SLOT_WEIGHT ||
				    (other->role == PAWL_SLOT_KV && j < i)) &&
				pawl_storage_overlaps(b->storages[i], b->storages[j]))
				return pawl_fail(err, PAWL_INVALID_ARGUMENT,
					"%s shares memory with %s", program->slots[i].name,
					other->name);
		}
	}
	b->is_apart = true;
	return PAWL_OK;
}

/* What the next run reads of a slot. */
PAWL_EACH_TOKEN static const void *
content(const struct pawl_bindings *b, int32_t slot)
{
	const struct pawl_offer *offer = pawl_offers_find(&b->offers, slot);

	if (!offer)
		return b->storages[slot]->bytes;
	return offer->bytes ? offer->bytes : offer->to;
}

PAWL_EACH_TOKEN enum pawl_status
pawl_bindings_check(
	struct pawl_bindings *b, const struct pawl_symenv *env, struct pawl_error *err)
{
	const struct pawl_plan *plan = b->plan;
	enum pawl_status status = check_bound(b, err);

	if (!status)
		status = check_apart(b, err);
	if (!status && plan->program->n_symbols) {
		if (!env || env->n != plan->program->n_symbols)
			return pawl_fail(err, PAWL_SYMBOL, "the plan has %d symbols, %d are given",
				plan->program->n_symbols, env ? env->n : 0);
		status = pawl_symenv_check_bound(env, err);
	}
	for (int32_t i = 0; i < plan->n_checks && !status; i++) {
		const struct pawl_index_check *check = &plan->checks[i];
		const void *bytes = NULL;

		if (check->slot >= 0)
			bytes = content(b, check->slot);
		if (b->remote && check->slot >= 0 && b->storages[check->slot]->device)
			status = pawl_remote_look(
				b->remote, b->storages[check->slot], &bytes, err);
		if (!status)
			status = pawl_index_check_run(
				check, plan->program, bytes, env ? env->values : NULL, err);
	}
	return status;
}
