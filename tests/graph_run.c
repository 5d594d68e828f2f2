#include "tests/graph_run.h"

#include "codegen/pack.h"
#include "codegen/ref_ops.h"
#include "codegen/ref_step.h"
#include "ir/eval.h"
#include "ir/fpenv.h"
#include "ir/random.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct pawl_error err;

#define OK(call) ck_assert_msg((call) == PAWL_OK, "%s", err.text)

enum { POISON = 0xff };

static void *
allocate(int64_t bytes)
{
	void *data = aligned_alloc(64, ((size_t)bytes + 64) / 64 * 64);

	ck_assert_ptr_nonnull(data);
	memset(data, POISON, ((size_t)bytes + 64) / 64 * 64);
	return data;
}

static struct pawl_tensor
tensor_of(const struct pawl_type *type, enum pawl_layout layout, const int64_t *symbols, int64_t *bytes)
{
	int64_t dims[PAWL_MAX_RANK] = {0};
	struct pawl_tensor t;
	int i;

	for (i = 0; i < type->rank; i++) {
		const struct pawl_dim *dim = &type->dim[i];

		dims[i] = dim->base + (dim->sym < 0 ? 0 : dim->factor * symbols[dim->sym]);
	}
	OK(pawl_tensor_init(&t, type->dtype, layout, false, type->rank, dims, bytes, &err));
	return t;
}

static enum pawl_layout
stored_layout(const struct pawl_type *type)
{
	return type->layout == PAWL_LAYOUT_K16 ? PAWL_LAYOUT_K16 : PAWL_LAYOUT_ROWS;
}

static bool
has_storage(const struct pawl_node *node)
{
	return node->op == PAWL_OP_CONST && node->attrs.role != PAWL_ROLE_LITERAL;
}

static int64_t
pick_symbol(const struct pawl_symbol *s, uint64_t seed)
{
	int64_t least = (s->min + s->multiple - 1) / s->multiple, most = s->max / s->multiple;
	uint64_t mixed = seed * UINT64_C(0x9e3779b97f4a7c15) >> 33;

	return (least + (int64_t)(mixed % (uint64_t)(most - least + 1))) * s->multiple;
}

struct pawl_test_inputs
pawl_test_inputs_of(const struct pawl_graph *graph, uint64_t seed)
{
	struct pawl_test_inputs in = {.n_symbols = graph->n_symbols};
	const struct pawl_node *node;
	int32_t i;

	in.consts = calloc((size_t)graph->n_nodes + 1, sizeof(*in.consts));
	in.symbols = calloc((size_t)graph->n_symbols + 1, sizeof(*in.symbols));
	ck_assert(in.consts && in.symbols);
	for (i = 0; i < graph->n_symbols; i++)
		in.symbols[i] = pick_symbol(&graph->symbols[i], seed + (uint64_t)i);
	pawl_foreach_node(node, graph) {
		struct pawl_test_const *c = &in.consts[in.n_consts];

		if (!has_storage(node))
			continue;
		*c = (struct pawl_test_const){
			.name = node->name, .type = node->type, .is_kv = node->attrs.role == PAWL_ROLE_KV};
		tensor_of(&c->type, stored_layout(&c->type), in.symbols, &c->bytes);
		c->data = allocate(c->bytes);
		OK(pawl_random_fill_const(graph, node, seed, in.symbols, c->data, &err));
		in.n_consts++;
	}
	return in;
}

void
pawl_test_inputs_release(struct pawl_test_inputs *inputs)
{
	int i;

	for (i = 0; i < inputs->n_consts; i++)
		free(inputs->consts[i].data);
	free(inputs->consts);
	free(inputs->symbols);
}

struct pawl_test_const *
pawl_test_input(const struct pawl_test_inputs *inputs, const char *name)
{
	int i;

	for (i = 0; i < inputs->n_consts; i++) {
		if (!strcmp(inputs->consts[i].name, name))
			return &inputs->consts[i];
	}
	ck_abort_msg("there is no input %s", name);
	return NULL;
}

/* Copies of the consts' contents, one for each, which a run may write to. */
static void **
copy_consts(const struct pawl_test_inputs *inputs)
{
	void **copies = calloc((size_t)inputs->n_consts + 1, sizeof(*copies));
	int i;

	ck_assert_ptr_nonnull(copies);
	for (i = 0; i < inputs->n_consts; i++) {
		copies[i] = allocate(inputs->consts[i].bytes);
		memcpy(copies[i], inputs->consts[i].data, (size_t)inputs->consts[i].bytes);
	}
	return copies;
}

/* Frees the copies but those of kv consts, which become results. */
static void
keep_kv(const struct pawl_test_inputs *inputs, void **copies, struct pawl_test_results *results)
{
	int i;

	for (i = 0; i < inputs->n_consts; i++) {
		const struct pawl_test_const *c = &inputs->consts[i];

		if (!c->is_kv) {
			ck_assert_msg(!memcmp(copies[i], c->data, (size_t)c->bytes),
				"a run wrote to const %s", c->name);
			free(copies[i]);
			continue;
		}
		results->values[results->n++] = (struct pawl_test_value){.dtype = c->type.dtype,
			.n = pawl_type_elems(&c->type),
			.bytes = c->bytes,
			.data = copies[i]};
	}
	free(copies);
}

static struct pawl_test_results
new_results(int n_outputs, const struct pawl_test_inputs *inputs)
{
	struct pawl_test_results results = {.n_outputs = n_outputs};

	results.values = calloc((size_t)(n_outputs + inputs->n_consts + 1), sizeof(*results.values));
	ck_assert_ptr_nonnull(results.values);
	return results;
}

static void
add_output(struct pawl_test_results *results, const struct pawl_tensor *t)
{
	struct pawl_test_value *value = &results->values[results->n++];
	struct pawl_tensor rows;

	value->dtype = t->dtype;
	value->is_wide = t->wide;
	value->n = pawl_tensor_elems(t);
	OK(pawl_tensor_init(&rows, t->dtype, PAWL_LAYOUT_ROWS, t->wide, t->rank, t->dim, &value->bytes,
		&err));
	rows.data = value->data = allocate(value->bytes);
	pawl_tensor_copy(t, &rows);
}

struct pawl_test_results
pawl_test_run_graph(const struct pawl_graph *graph, const struct pawl_test_inputs *inputs,
	enum pawl_interp_mode mode)
{
	struct pawl_test_results results = new_results(graph->n_outputs, inputs);
	void **copies = copy_consts(inputs);
	struct pawl_interp *interp;
	int32_t i;

	OK(pawl_interp_new(graph, mode, &interp, &err));
	for (i = 0; i < inputs->n_symbols; i++)
		OK(pawl_interp_set_symbol(interp, graph->symbols[i].name, inputs->symbols[i], &err));
	for (i = 0; i < inputs->n_consts; i++) {
		const struct pawl_test_const *c = &inputs->consts[i];

		if (pawl_graph_find(graph, c->name))
			OK(pawl_interp_bind(interp, c->name, copies[i], c->bytes, &err));
	}
	OK(pawl_interp_run(interp, &err));
	for (i = 0; i < graph->n_outputs; i++)
		add_output(&results, pawl_interp_output(interp, i));
	pawl_interp_free(interp);
	keep_kv(inputs, copies, &results);
	return results;
}

static void *
literal_data(const struct pawl_slot *slot)
{
	struct pawl_attrs attrs = pawl_attrs_default();
	struct pawl_ref_call call = {.attrs = &attrs};
	struct pawl_tensor t;
	int64_t bytes;

	attrs.role = PAWL_ROLE_LITERAL;
	attrs.values = slot->values;
	attrs.n_values = slot->n_values;
	t = tensor_of(&slot->type, PAWL_LAYOUT_ROWS, NULL, &bytes);
	t.data = allocate(bytes);
	call.out = &t;
	OK(pawl_ref_run(PAWL_OP_CONST, &call, &err));
	return t.data;
}

/* The weight as the slot wants it: the rows themselves, or packed. */
static void *
weight_data(const struct pawl_slot *slot, void *rows)
{
	int64_t n = slot->type.dim[0].base, k = slot->type.dim[1].base;
	void *packed;

	if (slot->type.layout != PAWL_LAYOUT_TILE16)
		return rows;
	packed = allocate(pawl_pack_bytes(slot->type.dtype, n, k));
	pawl_pack_tiles(slot->type.dtype, n, k, rows, packed, 0, (n + PAWL_TILE_ROWS - 1) / PAWL_TILE_ROWS);
	return packed;
}

/* Where each slot lies during a run. */
struct memory {
	const struct pawl_program *program;
	char **slots;
	char *scratch;
};

static struct memory
bind_slots(const struct pawl_program *program, const struct pawl_test_inputs *inputs, void **copies)
{
	struct memory m = {.program = program};
	int32_t i;

	m.slots = calloc((size_t)program->n_slots + 1, sizeof(*m.slots));
	ck_assert_ptr_nonnull(m.slots);
	m.scratch = allocate(program->scratch_bytes);
	for (i = 0; i < program->n_slots; i++) {
		const struct pawl_slot *slot = &program->slots[i];

		switch (slot->role) {
		case PAWL_SLOT_WEIGHT:
			m.slots[i] = weight_data(slot, copies[pawl_test_input(inputs, slot->name) -
							      inputs->consts]);
			break;
		case PAWL_SLOT_KV:
		case PAWL_SLOT_DATA:
			m.slots[i] = copies[pawl_test_input(inputs, slot->name) - inputs->consts];
			break;
		case PAWL_SLOT_LITERAL:
			m.slots[i] = literal_data(slot);
			break;
		case PAWL_SLOT_TEMP:
		case PAWL_SLOT_OUTPUT:
			m.slots[i] = m.scratch + slot->offset;
			break;
		case PAWL_N_SLOT_ROLES:
			break;
		}
	}
	return m;
}

static bool
is_scratch(const struct pawl_slot *slot)
{
	return slot->role == PAWL_SLOT_TEMP || slot->role == PAWL_SLOT_OUTPUT;
}

static void
check_gaps(const struct memory *m)
{
	const struct pawl_program *program = m->program;
	char *is_used = calloc((size_t)program->scratch_bytes + 1, 1);
	int64_t at;
	int32_t i;

	ck_assert_ptr_nonnull(is_used);
	for (i = 0; i < program->n_slots; i++) {
		if (is_scratch(&program->slots[i]))
			memset(is_used + program->slots[i].offset, 1, (size_t)program->slots[i].bytes);
	}
	for (at = 0; at < program->scratch_bytes; at++)
		ck_assert_msg(is_used[at] || (unsigned char)m->scratch[at] == POISON,
			"byte %lld of the scratch memory belongs to nobody, but was written",
			(long long)at);
	free(is_used);
}

static void
release_memory(struct memory *m)
{
	int32_t i;

	for (i = 0; i < m->program->n_slots; i++) {
		const struct pawl_slot *slot = &m->program->slots[i];

		if (slot->role == PAWL_SLOT_LITERAL || slot->type.layout == PAWL_LAYOUT_TILE16)
			free(m->slots[i]);
	}
	free(m->slots);
	free(m->scratch);
}

static void
run_steps(const struct memory *m, const int64_t *symbols)
{
	const struct pawl_program *program = m->program;
	void **args = calloc((size_t)program->n_args + 1, sizeof(*args));
	enum pawl_status status;
	int64_t bytes;
	int32_t i, j;
	uint32_t saved;
	void *scratch;

	ck_assert_ptr_nonnull(args);
	for (i = 0; i < program->n_steps; i++) {
		const struct pawl_step *step = &program->steps[i];

		for (j = 0; j < step->n_args; j++)
			args[step->first_arg + j] = m->slots[step->args[j].slot] + step->args[j].offset;
	}
	OK(pawl_ref_program_check(program, &bytes, &err));
	scratch = allocate(bytes);
	saved = pawl_fpenv_enter();
	status = pawl_ref_program_run(program, args, symbols, scratch, &err);
	pawl_fpenv_leave(saved);
	OK(status);
	free(scratch);
	free(args);
}

struct pawl_test_results
pawl_test_run_program(const struct pawl_program *program, const struct pawl_test_inputs *inputs)
{
	struct pawl_test_results results = new_results(program->n_outputs, inputs);
	void **copies = copy_consts(inputs);
	struct memory m = bind_slots(program, inputs, copies);
	int32_t i;

	run_steps(&m, inputs->symbols);
	for (i = 0; i < program->n_outputs; i++) {
		const struct pawl_slot *slot = &program->slots[program->outputs[i]];
		int64_t bytes;
		struct pawl_tensor t =
			tensor_of(&slot->type, stored_layout(&slot->type), inputs->symbols, &bytes);

		t.data = m.slots[program->outputs[i]];
		add_output(&results, &t);
	}
	check_gaps(&m);
	release_memory(&m);
	keep_kv(inputs, copies, &results);
	return results;
}

void
pawl_test_results_release(struct pawl_test_results *results)
{
	int i;

	for (i = 0; i < results->n; i++)
		free(results->values[i].data);
	free(results->values);
}

double
pawl_test_value_at(const struct pawl_test_value *value, int64_t i)
{
	struct pawl_tensor t = {.data = value->data,
		.dtype = value->dtype,
		.wide = value->is_wide,
		.rank = 1,
		.dim = {value->n},
		.stride = {1},
		.pos_dim = -1,
		.at_dim = -1};
	double x;

	if (pawl_dtype_info(value->dtype)->kind == PAWL_KIND_INT)
		return (double)pawl_tensor_load_i64(&t, i);
	pawl_tensor_load_f64(&t, 0, i, 1, &x);
	return x;
}

static bool
is_same(const struct pawl_test_value *a, const struct pawl_test_value *b, int64_t i)
{
	int64_t size;
	double x, y;

	if (a->is_wide || pawl_dtype_is_float(a->dtype)) {
		x = pawl_test_value_at(a, i);
		y = pawl_test_value_at(b, i);
		if (a->is_wide || a->dtype != PAWL_DTYPE_F32)
			return (isnan(x) && isnan(y)) || !memcmp(&x, &y, sizeof(x));
		return pawl_eval_same((float)x, (float)y);
	}
	/* Blocks are compared byte by byte, at their first element. */
	if (i % pawl_dtype_info(a->dtype)->block)
		return true;
	size = pawl_dtype_info(a->dtype)->block_bytes;
	i = i / pawl_dtype_info(a->dtype)->block * size;
	return !memcmp((char *)a->data + i, (char *)b->data + i, (size_t)size);
}

int64_t
pawl_test_first_difference(const struct pawl_test_value *a, const struct pawl_test_value *b)
{
	int64_t i;

	if (a->dtype != b->dtype || a->n != b->n || a->is_wide != b->is_wide)
		return 0;
	for (i = 0; i < a->n; i++) {
		if (!is_same(a, b, i))
			return i;
	}
	return -1;
}

void
pawl_test_same_results(
	const struct pawl_test_results *a, const struct pawl_test_results *b, const char *what)
{
	int i;

	ck_assert_msg(a->n == b->n && a->n_outputs == b->n_outputs, "%s: %d values and %d", what, a->n,
		b->n);
	for (i = 0; i < a->n; i++) {
		int64_t at = pawl_test_first_difference(&a->values[i], &b->values[i]);
		bool is_output = i < a->n_outputs;

		if (at < 0)
			continue;
		ck_assert_msg(!pawl_dtype_is_blocked(a->values[i].dtype), "%s: block of %s %d differs",
			what, is_output ? "output" : "kv", is_output ? i : i - a->n_outputs);
		ck_abort_msg("%s: element %lld of %s %d is %.9g and %.9g", what, (long long)at,
			is_output ? "output" : "kv", is_output ? i : i - a->n_outputs,
			pawl_test_value_at(&a->values[i], at), pawl_test_value_at(&b->values[i], at));
	}
}
