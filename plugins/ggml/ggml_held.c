#include "plugins/ggml/ggml_held.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ir/trig.h"
#include "plugins/ggml/ggml_buffer.h"
#include "plugins/ggml/ggml_fill.h"
#include "plugins/ggml/ggml_packs.h"

/* What a binding came to in this plan. */
struct bound {
	/* Of its const in rows and packed; of two consts, d<i> and d<i + 1>; -1: none. */
	int32_t slots[2];
	const void *bytes;  /* that are bound */
	double *frequencies; /* of ROPE */
};

struct pawl_ggml_held {
	const struct pawl_ggml_host *host;
	struct pawl_ggml_translation translation; /* without its graph */
	struct pawl_plan *plan;
	struct pawl_team *team;
	struct pawl_bindings *bindings;
	struct pawl_symenv env;
	struct bound *bound;
	const void **results; /* where they were put, by number; NULL: copied from scratch memory */
	int32_t *symbols; /* in the plan, by number in the translation's graph; -1: none */
	uint64_t packs_epoch;
};

/* The first slot of that name from `from` on. */
static int32_t
find_slot(const struct pawl_plan *plan, const char *name, int32_t from)
{
	const struct pawl_program *program = plan->program;
	int32_t i;

	for (i = from; i < program->n_slots; i++) {
		const struct pawl_slot *slot = &program->slots[i];

		if ((slot->role == PAWL_SLOT_WEIGHT || slot->role == PAWL_SLOT_KV ||
			    slot->role == PAWL_SLOT_DATA) &&
			!strcmp(slot->name, name))
			return i;
	}
	return -1;
}

static enum pawl_status
find_slots(struct pawl_ggml_held *held, int32_t i, struct pawl_error *err)
{
	const struct pawl_ggml_bind *bind = &held->translation.binds[i];
	struct bound *bound = &held->bound[i];
	char name[16];
	int64_t k;

	snprintf(name, sizeof(name), "%c%" PRId32,
		bind->kind == PAWL_GGML_BIND_WEIGHT  ? 'w'
		: bind->kind == PAWL_GGML_BIND_STATE ? 's'
						     : 'd',
		bind->number);
	bound->slots[0] = find_slot(held->plan, name, 0);
	bound->slots[1] = -1;
	if (bind->kind == PAWL_GGML_BIND_WEIGHT && bound->slots[0] >= 0)
		bound->slots[1] = find_slot(held->plan, name, bound->slots[0] + 1);
	if (bind->kind == PAWL_GGML_BIND_ROPE || bind->kind == PAWL_GGML_BIND_MASK ||
		bind->kind == PAWL_GGML_BIND_TURN) {
		snprintf(name, sizeof(name), "d%" PRId32, bind->number + 1);
		bound->slots[1] = find_slot(held->plan, name, 0);
	}
	if (bind->kind != PAWL_GGML_BIND_ROPE)
		return PAWL_OK;
	bound->frequencies = pawl_memory_zalloc((size_t)bind->width, sizeof(double));
	if (!bound->frequencies)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for rotations");
	for (k = 0; k < bind->width / 2; k++)
		bound->frequencies[k] =
			bind->scale * pawl_rope_frequency(bind->base, k, bind->width);
	return PAWL_OK;
}

/* Data slots count as filled from now on: their storages are written in place. */
static enum pawl_status
adopt_data(struct pawl_ggml_held *held, struct pawl_error *err)
{
	const struct pawl_program *program = held->plan->program;
	int32_t i;

	for (i = 0; i < program->n_slots; i++) {
		enum pawl_status status;

		if (program->slots[i].role != PAWL_SLOT_DATA)
			continue;
		status = pawl_bindings_bind(
			held->bindings, i, pawl_bindings_storage(held->bindings, i), err);
		if (status)
			return status;
	}
	return PAWL_OK;
}

static enum pawl_status
find_symbols(struct pawl_ggml_held *held, struct pawl_error *err)
{
	const struct pawl_graph *graph = held->translation.graph;
	const struct pawl_program *program = held->plan->program;
	int32_t i, k;

	held->symbols = pawl_memory_zalloc((size_t)graph->n_symbols + 1, sizeof(*held->symbols));
	if (!held->symbols)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for symbols");
	for (i = 0; i < graph->n_symbols; i++) {
		held->symbols[i] = -1;
		for (k = 0; k < program->n_symbols; k++)
			if (!strcmp(program->symbols[k].name, graph->symbols[i].name))
				held->symbols[i] = k;
	}
	return PAWL_OK;
}

enum pawl_status
pawl_ggml_held_new(const struct pawl_ggml_host *host, struct pawl_ggml_translation *translation,
	struct pawl_plan *plan, struct pawl_team *team, struct pawl_scratch *scratch,
	struct pawl_ggml_held **out, struct pawl_error *err)
{
	struct pawl_ggml_held *held = pawl_memory_zalloc(1, sizeof(*held));
	enum pawl_status status = PAWL_OK;
	int32_t i;

	if (!held) {
		pawl_ggml_translation_release(translation);
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for a held plan");
	}
	held->host = host;
	held->translation = *translation;
	memset(translation, 0, sizeof(*translation));
	held->plan = pawl_plan_ref(plan);
	held->team = team;
	held->bound = pawl_memory_zalloc((size_t)held->translation.n_binds + 1, sizeof(*held->bound));
	held->results = pawl_memory_zalloc(
		(size_t)held->translation.n_results + 1, sizeof(*held->results));
	if (!held->bound || !held->results)
		status = pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for a held plan");
	if (!status)
		status = pawl_bindings_new_over(plan, team, scratch, &held->bindings, err);
	if (!status)
		status = pawl_symenv_init(
			&held->env, plan->program->symbols, plan->program->n_symbols, err);
	if (!status)
		status = find_symbols(held, err);
	for (i = 0; i < held->translation.n_binds && !status; i++)
		status = find_slots(held, i, err);
	if (!status)
		status = adopt_data(held, err);
	if (status) {
		pawl_ggml_held_free(held);
		return status;
	}
	pawl_graph_free(held->translation.graph);
	held->translation.graph = NULL;
	*out = held;
	return PAWL_OK;
}

void
pawl_ggml_held_free(struct pawl_ggml_held *held)
{
	int32_t i;

	if (!held)
		return;
	for (i = 0; held->bound && i < held->translation.n_binds; i++)
		pawl_memory_free(held->bound[i].frequencies);
	pawl_memory_free(held->bound);
	pawl_memory_free(held->results);
	pawl_memory_free(held->symbols);
	pawl_symenv_release(&held->env);
	pawl_bindings_free(held->bindings);
	pawl_ggml_translation_release(&held->translation);
	pawl_plan_unref(held->plan);
	pawl_memory_free(held);
}

static enum pawl_status
bind_symbol(struct pawl_ggml_held *held, int32_t symbol, int64_t value, struct pawl_error *err)
{
	if (symbol < 0 || held->symbols[symbol] < 0)
		return PAWL_OK;
	return pawl_symenv_bind(&held->env, held->symbols[symbol], value, err);
}

/* Memory of the host behind a slot. */
static enum pawl_status
put(struct pawl_ggml_held *held, int32_t slot, void *bytes, struct pawl_error *err)
{
	const struct pawl_type *type = &held->plan->types[slot];
	struct pawl_storage *storage;
	enum pawl_status status = pawl_storage_wrap(type, PAWL_LOCATION_HOST, bytes,
		pawl_storage_bytes(type), NULL, NULL, &storage, err);

	if (status)
		return status;
	status = pawl_bindings_bind(held->bindings, slot, storage, err);
	pawl_storage_unref(storage);
	return status;
}

static enum pawl_status
put_packed(struct pawl_ggml_held *held, int32_t slot, const struct pawl_ggml_tensor *t,
	struct pawl_error *err)
{
	bool may_drop = pawl_ggml_buffer_is_ours(t->buffer) &&
			pawl_ggml_buffer_is_foreign_memory(t->buffer);
	struct pawl_storage *storage;
	enum pawl_status status = pawl_ggml_packs_get(
		t->data, &held->plan->types[slot], held->team, may_drop, &storage, err);

	if (status)
		return status;
	status = pawl_bindings_bind(held->bindings, slot, storage, err);
	pawl_storage_unref(storage);
	return status;
}

static enum pawl_status
bind_weight(struct pawl_ggml_held *held, struct bound *bound, const struct pawl_ggml_tensor *t,
	bool is_current, struct pawl_error *err)
{
	enum pawl_status status = PAWL_OK;
	int i;

	if (is_current && bound->bytes == t->data)
		return PAWL_OK;
	if (!pawl_ggml_buffer_is_ours(t->buffer))
		return pawl_fail(err, PAWL_UNSUPPORTED, "weight %.63s is in a buffer of another backend",
			t->name);
	bound->bytes = NULL;
	for (i = 0; i < 2 && !status; i++) {
		int32_t slot = bound->slots[i];

		if (slot >= 0)
			status = held->plan->types[slot].layout == PAWL_LAYOUT_ROWS
					 ? put(held, slot, t->data, err)
					 : put_packed(held, slot, t, err);
	}
	if (!status)
		bound->bytes = t->data;
	return status;
}

static enum pawl_status
bind_state(struct pawl_ggml_held *held, const struct pawl_ggml_bind *bind, struct bound *bound,
	const struct pawl_ggml_graph *graph, struct pawl_error *err)
{
	char *bytes = (char *)pawl_ggml_at(graph, &bind->tensor)->data + pawl_ggml_window_of(bind, graph);
	enum pawl_status status;

	if (bound->slots[0] < 0 || bound->bytes == bytes)
		return PAWL_OK;
	bound->bytes = NULL;
	status = put(held, bound->slots[0], bytes, err);
	if (!status)
		bound->bytes = bytes;
	return status;
}

static void *
data_of(struct pawl_ggml_held *held, int32_t slot)
{
	return pawl_bindings_storage(held->bindings, slot)->bytes;
}

static size_t
bytes_of(const struct pawl_ggml_tensor *t)
{
	enum pawl_dtype dtype = PAWL_DTYPE_F32;

	pawl_dtype_from_ggml((uint32_t)t->type, &dtype);
	return (size_t)(pawl_dtype_bytes(dtype, t->ne[0]) * t->ne[1] * t->ne[2] * t->ne[3]);
}

static enum pawl_status
bind_one(struct pawl_ggml_held *held, int32_t i, const struct pawl_ggml_graph *graph,
	bool is_current, struct pawl_error *err)
{
	const struct pawl_ggml_bind *bind = &held->translation.binds[i];
	const struct pawl_ggml_tensor *t = pawl_ggml_at(graph, &bind->tensor);
	struct bound *bound = &held->bound[i];
	int32_t slot = bound->slots[0];
	int64_t seen, offset, rows;

	if (bind->kind != PAWL_GGML_BIND_TURN && !pawl_ggml_is_reachable(held->host, t))
		return pawl_fail(err, PAWL_UNSUPPORTED, "%.63s is out of this processor's reach",
			t->name);
	switch (bind->kind) {
	case PAWL_GGML_BIND_WEIGHT:
		return bind_weight(held, bound, t, is_current, err);
	case PAWL_GGML_BIND_STATE:
		return bind_state(held, bind, bound, graph, err);
	case PAWL_GGML_BIND_DATA:
		if (slot >= 0)
			memcpy(data_of(held, slot), t->data, bytes_of(t));
		return PAWL_OK;
	case PAWL_GGML_BIND_INDEX:
		return slot < 0 ? PAWL_OK : pawl_ggml_fill_index(bind, graph, data_of(held, slot), err);
	case PAWL_GGML_BIND_MASK:
		if (slot < 0)
			return bind_symbol(held, bind->symbol, 1, err);
		rows = held->plan->types[slot].dim[0].base;
		if (rows > t->ne[1])
			rows = t->ne[1];
		pawl_ggml_fill_mask(bind, t, rows, data_of(held, slot), &seen, &offset);
		if (bound->slots[1] >= 0)
			memcpy(data_of(held, bound->slots[1]), &offset, sizeof(offset));
		return bind_symbol(held, bind->symbol, seen, err);
	case PAWL_GGML_BIND_ROPE:
		if (slot >= 0 && bound->slots[1] >= 0)
			pawl_ggml_fill_rope(bind, bound->frequencies, graph, data_of(held, slot),
				data_of(held, bound->slots[1]));
		return PAWL_OK;
	case PAWL_GGML_BIND_TURN:
		pawl_ggml_fill_turn(bind, t->ne[1], slot < 0 ? NULL : data_of(held, slot),
			bound->slots[1] < 0 ? NULL : data_of(held, bound->slots[1]));
		return PAWL_OK;
	}
	return PAWL_OK;
}

/* Whether a result may be made where the host wants it: no other lies there, nor reads its slot. */
static bool
can_put(const struct pawl_ggml_held *held, const struct pawl_ggml_graph *graph, int32_t i)
{
	const struct pawl_ggml_translation *translation = &held->translation;
	const struct pawl_program *program = held->plan->program;
	const struct pawl_ggml_tensor *t = pawl_ggml_at(graph, &translation->results[i]), *other;
	const char *bytes = t->data;
	int32_t slot = program->outputs[i], k;

	if (program->slots[slot].role != PAWL_SLOT_OUTPUT ||
		pawl_storage_bytes(&held->plan->types[slot]) != (int64_t)bytes_of(t) ||
		(uintptr_t)bytes % 64)
		return false;
	for (k = 0; k < translation->n_results; k++) {
		other = pawl_ggml_at(graph, &translation->results[k]);
		if (k != i && (program->outputs[k] == slot ||
				      ((char *)other->data < bytes + bytes_of(t) &&
					      bytes < (char *)other->data + bytes_of(other))))
			return false;
	}
	return true;
}

static enum pawl_status
put_result(struct pawl_ggml_held *held, const struct pawl_ggml_graph *graph, int32_t i,
	struct pawl_error *err)
{
	void *bytes = pawl_ggml_at(graph, &held->translation.results[i])->data;
	enum pawl_status status = PAWL_OK;

	if (held->results[i] == bytes)
		return PAWL_OK;
	if (!held->results[i] && !can_put(held, graph, i))
		return PAWL_OK;
	if (can_put(held, graph, i))
		status = put(held, held->plan->program->outputs[i], bytes, err);
	else
		status = pawl_fail(err, PAWL_UNSUPPORTED, "results lie where others do");
	if (!status)
		held->results[i] = bytes;
	return status;
}

enum pawl_status
pawl_ggml_held_run(struct pawl_ggml_held *held, const struct pawl_ggml_graph *graph, int64_t n_tokens,
	int64_t n_rows, struct pawl_error *err)
{
	const struct pawl_ggml_translation *translation = &held->translation;
	uint64_t epoch = pawl_ggml_packs_epoch();
	enum pawl_status status;
	int32_t i;

	pawl_symenv_clear(&held->env);
	status = bind_symbol(held, translation->symbols.tokens,
		n_tokens / translation->symbols.streams, err);
	if (!status)
		status = bind_symbol(held, translation->symbols.rows, n_rows, err);
	for (i = 0; i < translation->n_binds && !status; i++)
		status = bind_one(held, i, graph, epoch == held->packs_epoch, err);
	for (i = 0; i < translation->n_results && !status; i++) {
		const struct pawl_ggml_tensor *t = pawl_ggml_at(graph, &translation->results[i]);

		if (!pawl_ggml_is_reachable(held->host, t))
			status = pawl_fail(err, PAWL_UNSUPPORTED,
				"%.63s is out of this processor's reach", t->name);
	}
	for (i = 0; i < translation->n_results && translation->n_results <= 4 && !status; i++)
		status = put_result(held, graph, i, err);
	if (status)
		return status;
	held->packs_epoch = epoch;
	status = pawl_bindings_run(held->bindings, &held->env, NULL, err);
	for (i = 0; i < translation->n_results && !status; i++) {
		const struct pawl_ggml_tensor *t = pawl_ggml_at(graph, &translation->results[i]);

		if (!held->results[i])
			memcpy(t->data, pawl_bindings_output(held->bindings, i, NULL),
				bytes_of(t));
	}
	return status;
}
