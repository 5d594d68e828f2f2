#include "runtime/rebind.h"

#include <inttypes.h>
#include <stdio.h>

static enum pawl_refusal_kind
compare(const struct pawl_storage *baked, const struct pawl_storage *incoming)
{
	if (baked == incoming)
		return PAWL_REFUSAL_NONE;
	if (baked->type.dtype != incoming->type.dtype || baked->n_bytes != incoming->n_bytes)
		return PAWL_REFUSAL_STORAGE_DIFFERS;
	if (!pawl_type_same_dims(&baked->type, &incoming->type))
		return PAWL_REFUSAL_SHAPE_DIFFERS;
	if (baked->type.layout != incoming->type.layout)
		return PAWL_REFUSAL_LAYOUT_DIFFERS;
	return PAWL_REFUSAL_NONE;
}

static bool
check_slot(const struct pawl_bindings *bindings, const struct pawl_kv_binding *kv,
	const struct pawl_kv_rebind_source *source, int32_t layer, int which,
	struct pawl_refusal *refusal)
{
	struct pawl_storage *incoming = source->slot(source->ctx, layer, which);
	struct pawl_storage *baked =
		pawl_bindings_storage(bindings, kv->slots[layer * kv->n_which + which]);

	refusal->layer = layer;
	refusal->which = which;
	if (!incoming) {
		refusal->kind = PAWL_REFUSAL_MISSING_SLOT;
		return false;
	}
	if (!baked) {
		refusal->kind = PAWL_REFUSAL_UNBAKED_SLOT;
		return false;
	}
	refusal->kind = compare(baked, incoming);
	if (!refusal->kind && !pawl_location_equal(incoming->location, refusal->incoming)) {
		/* The source contradicts itself, so its word proves nothing. */
		refusal->kind = PAWL_REFUSAL_RESIDENCY_DIFFERS;
		refusal->incoming = incoming->location;
	}
	if (!refusal->kind)
		return true;
	refusal->baked_type = baked->type;
	refusal->incoming_type = incoming->type;
	refusal->baked_bytes = baked->n_bytes;
	refusal->incoming_bytes = incoming->n_bytes;
	return false;
}

static bool
check_alias(const struct pawl_kv_binding *kv, const struct pawl_kv_rebind_source *source,
	struct pawl_refusal *refusal)
{
	int32_t n = kv->n_layers * kv->n_which;

	if (source->is_disjoint && source->is_disjoint(source->ctx))
		return true;
	for (int32_t i = 1; i < n; i++)
		for (int32_t j = 0; j < i; j++) {
			const struct pawl_storage *a =
				source->slot(source->ctx, i / kv->n_which, i % kv->n_which);
			const struct pawl_storage *b =
				source->slot(source->ctx, j / kv->n_which, j % kv->n_which);

			if (pawl_storage_overlaps(a, b)) {
				refusal->kind = PAWL_REFUSAL_ALIASED;
				refusal->layer = i / kv->n_which;
				refusal->which = i % kv->n_which;
				refusal->other_layer = j / kv->n_which;
				refusal->other_which = j % kv->n_which;
				return false;
			}
		}
	return true;
}

static bool
check(const struct pawl_bindings *bindings, const struct pawl_kv_binding *kv,
	const struct pawl_kv_rebind_source *source, struct pawl_refusal *refusal)
{
	refusal->baked = kv->location;
	refusal->incoming = source->location(source->ctx);
	if (source->is_shared && source->is_shared(source->ctx)) {
		refusal->kind = PAWL_REFUSAL_SHARED;
		return false;
	}
	if (refusal->incoming.space == PAWL_MEMORY_UNKNOWN ||
		kv->location.space == PAWL_MEMORY_UNKNOWN) {
		refusal->kind = PAWL_REFUSAL_RESIDENCY_UNKNOWN;
		return false;
	}
	if (!pawl_location_equal(refusal->incoming, kv->location)) {
		refusal->kind = PAWL_REFUSAL_RESIDENCY_DIFFERS;
		return false;
	}
	for (int32_t layer = 0; layer < kv->n_layers; layer++)
		for (int which = 0; which < kv->n_which; which++)
			if (!check_slot(bindings, kv, source, layer, which, refusal))
				return false;
	return check_alias(kv, source, refusal);
}

bool
pawl_kv_rebind(struct pawl_bindings *bindings, struct pawl_kv_binding *kv,
	const struct pawl_kv_rebind_source *source, struct pawl_refusal *refusal)
{
	*refusal = (struct pawl_refusal){PAWL_REFUSAL_NONE, .layer = -1, .which = -1};
	if (!check(bindings, kv, source, refusal))
		return false;
	for (int32_t i = 0; i < kv->n_layers * kv->n_which; i++)
		pawl_bindings_swap(bindings, kv->slots[i],
			source->slot(source->ctx, i / kv->n_which, i % kv->n_which));
	kv->alloc_id = source->alloc_id(source->ctx);
	refusal->kind = PAWL_REFUSAL_NONE;
	return true;
}

const char *
pawl_refusal_name(enum pawl_refusal_kind kind)
{
	static const char *const names[PAWL_N_REFUSALS] = {
		[PAWL_REFUSAL_NONE] = "none",
		[PAWL_REFUSAL_SHARED] = "shared",
		[PAWL_REFUSAL_RESIDENCY_UNKNOWN] = "residency unknown",
		[PAWL_REFUSAL_RESIDENCY_DIFFERS] = "residency differs",
		[PAWL_REFUSAL_MISSING_SLOT] = "missing slot",
		[PAWL_REFUSAL_UNBAKED_SLOT] = "unbaked slot",
		[PAWL_REFUSAL_STORAGE_DIFFERS] = "storage differs",
		[PAWL_REFUSAL_SHAPE_DIFFERS] = "shape differs",
		[PAWL_REFUSAL_LAYOUT_DIFFERS] = "layout differs",
		[PAWL_REFUSAL_ALIASED] = "aliased",
	};

	return names[kind];
}

static void
type_text(char *out, size_t n, const struct pawl_type *type, int64_t bytes)
{
	size_t at = (size_t)snprintf(out, n, "%s [", pawl_dtype_name(type->dtype));

	for (int i = 0; i < type->rank && at < n; i++)
		at += (size_t)snprintf(
			out + at, n - at, "%s%" PRId64, i ? ", " : "", type->dim[i].base);
	if (at < n)
		snprintf(out + at, n - at, "]@%s of %" PRId64 " bytes",
			pawl_layout_name(type->layout), bytes);
}

const char *
pawl_refusal_text(const struct pawl_refusal *r, char *out, size_t n)
{
	const char *name = pawl_refusal_name(r->kind);
	char baked[160], incoming[160];

	switch (r->kind) {
	case PAWL_REFUSAL_NONE:
	case PAWL_N_REFUSALS:
		snprintf(out, n, "no refusal");
		break;
	case PAWL_REFUSAL_SHARED:
		snprintf(out, n, "%s: the incoming cache has the storages of a fork", name);
		break;
	case PAWL_REFUSAL_RESIDENCY_UNKNOWN:
	case PAWL_REFUSAL_RESIDENCY_DIFFERS:
		snprintf(out, n, "%s: the plan's cache is on %s, the incoming one on %s", name,
			pawl_location_text(r->baked, baked, sizeof(baked)),
			pawl_location_text(r->incoming, incoming, sizeof(incoming)));
		break;
	case PAWL_REFUSAL_MISSING_SLOT:
	case PAWL_REFUSAL_UNBAKED_SLOT:
		snprintf(out, n, "layer %d slot %d: %s", r->layer, r->which, name);
		break;
	case PAWL_REFUSAL_STORAGE_DIFFERS:
	case PAWL_REFUSAL_SHAPE_DIFFERS:
	case PAWL_REFUSAL_LAYOUT_DIFFERS:
		type_text(baked, sizeof(baked), &r->baked_type, r->baked_bytes);
		type_text(incoming, sizeof(incoming), &r->incoming_type, r->incoming_bytes);
		snprintf(out, n, "layer %d slot %d: %s: the plan has %s, the incoming cache %s",
			r->layer, r->which, name, baked, incoming);
		break;
	case PAWL_REFUSAL_ALIASED:
		snprintf(out, n, "layer %d slot %d: %s: it shares memory with layer %d slot %d",
			r->layer, r->which, name, r->other_layer, r->other_which);
		break;
	}
	return out;
}
