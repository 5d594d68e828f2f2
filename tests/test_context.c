/* Graphs run once in an inference context. */
#include "runtime/inference_context.h"

#include "ir/build.h"
#include "ir/print.h"
#include "runtime/memory.h"
#include "tests/decoding.h"
#include "tests/suites.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct pawl_inference_context *context;
static struct pawl_graph *graph;
static struct pawl_error err;

static void
begin(void)
{
	ck_assert_int_eq(
		pawl_inference_context_new(pawl_test_device(), 1, &context, &err), PAWL_OK);
	graph = pawl_graph_new("test");
	ck_assert_ptr_nonnull(graph);
}

static void
end(void)
{
	pawl_graph_free(graph);
	pawl_inference_context_free(context);
}

static struct pawl_type
floats(int64_t n)
{
	return pawl_type_make(PAWL_DTYPE_F32, 1, &n);
}

static struct pawl_node *
constant(enum pawl_role role, const char *name, int64_t n)
{
	struct pawl_type type = floats(n);

	return pawl_build_const(graph, role, name, &type);
}

static struct pawl_storage *
insert(const char *name, int64_t n, float first, float second)
{
	struct pawl_type type = floats(n);
	struct pawl_storage *storage;
	float *x;

	ck_assert_int_eq(pawl_storage_new(&type, &storage, &err), PAWL_OK);
	x = storage->bytes;
	x[0] = first;
	if (n > 1)
		x[1] = second;
	ck_assert_int_eq(pawl_inference_context_insert(context, name, storage, &err), PAWL_OK);
	pawl_storage_unref(storage);
	return pawl_inference_context_get(context, name);
}

START_TEST(one_output)
{
	struct pawl_node *a = constant(PAWL_ROLE_DATA, "a", 2),
			 *b = constant(PAWL_ROLE_WEIGHT, "b", 2);
	struct pawl_storage *out = NULL, *again;
	float *y;

	pawl_graph_add_output(graph, pawl_build_binary(graph, PAWL_OP_ADD, a, b));
	ck_assert_int_eq(graph->error.status, PAWL_OK);
	insert("a", 2, 1, 2);
	ck_assert_int_eq(pawl_realize_one(context, graph, NULL, &out, &err), PAWL_INVALID_ARGUMENT);
	ck_assert_str_eq(err.text, "the context has no storage for b");
	insert("b", 2, 10, 20);
	insert("nobody asks for this", 2, 0, 0);
	ck_assert_int_eq(pawl_inference_context_len(context), 3);
	ck_assert_int_eq(pawl_realize_one(context, graph, NULL, &out, &err), PAWL_OK);
	y = out->bytes;
	ck_assert_float_eq(y[0], 11);
	ck_assert_float_eq(y[1], 22);
	/* The result is its own: a second run does not touch it. */
	insert("a", 2, 5, 5);
	ck_assert_int_eq(pawl_realize_one(context, graph, NULL, &again, &err), PAWL_OK);
	ck_assert_float_eq(((float *)again->bytes)[0], 15);
	ck_assert_float_eq(y[0], 11);
	pawl_storage_unref(again);
	ck_assert_uint_eq(pawl_inference_context_counters(context)->optimizes, 3);
	ck_assert_uint_eq(pawl_inference_context_counters(context)->runs, 2);
	pawl_storage_unref(out);
}
END_TEST

START_TEST(the_map)
{
	struct pawl_storage *a = pawl_storage_ref(insert("a", 2, 1, 2)), *b;

	for (int i = 0; i < 40; i++) {
		char name[16];

		snprintf(name, sizeof(name), "n%d", i);
		insert(name, 1, (float)i, 0);
	}
	ck_assert_int_eq(pawl_inference_context_len(context), 41);
	ck_assert_float_eq(((float *)pawl_inference_context_get(context, "n17")->bytes)[0], 17);
	b = insert("a", 2, 3, 4);
	ck_assert_ptr_ne(a, b);
	ck_assert_int_eq(pawl_inference_context_len(context), 41);
	ck_assert(pawl_inference_context_remove(context, "a"));
	ck_assert(!pawl_inference_context_remove(context, "a"));
	ck_assert_ptr_null(pawl_inference_context_get(context, "a"));
	pawl_inference_context_clear_persistent(context);
	ck_assert_int_eq(pawl_inference_context_len(context), 0);
	ck_assert_float_eq(((float *)a->bytes)[1], 2);
	pawl_storage_unref(a);
}
END_TEST

/* x is read after y has overwritten it in list order: a program must not see the new bytes. */
START_TEST(the_in_place_hazard)
{
	struct pawl_node *x = constant(PAWL_ROLE_KV, "x", 2), *s = constant(PAWL_ROLE_DATA, "s", 2),
			 *y, *z;
	struct pawl_storage *outs[2];
	const float *old, *new;
	struct pawl_storage *state;

	y = pawl_build_write_slice(graph, x, s, NULL, -1, NULL);
	z = pawl_build_unary(graph, PAWL_OP_COPY, x);
	pawl_graph_add_output(graph, z);
	pawl_graph_add_output(graph, y);
	ck_assert_int_eq(graph->error.status, PAWL_OK);
	state = insert("x", 2, 1, 2);
	insert("s", 2, 99, 98);
	ck_assert_int_eq(pawl_realize_many(context, graph, NULL, outs, &err), PAWL_OK);
	old = outs[0]->bytes;
	new = outs[1]->bytes;
	ck_assert_float_eq(old[0], 1);
	ck_assert_float_eq(old[1], 2);
	ck_assert_float_eq(new[0], 99);
	ck_assert_float_eq(new[1], 98);
	/* The written value is the state itself. */
	ck_assert_ptr_eq(outs[1], state);
	pawl_storage_unref(outs[0]);
	pawl_storage_unref(outs[1]);
}
END_TEST

START_TEST(literals_and_outputs_that_are_inputs)
{
	struct pawl_type type = floats(2);
	struct pawl_node *a = constant(PAWL_ROLE_DATA, "a", 2),
			 *half = pawl_build_splat(graph, &type, 0.5);
	struct pawl_storage *outs[2];

	insert("a", 2, 6, 8);
	pawl_graph_add_output(graph, pawl_build_binary(graph, PAWL_OP_MUL, a, half));
	pawl_graph_add_output(graph, a);
	ck_assert_int_eq(pawl_realize_many(context, graph, NULL, outs, &err), PAWL_OK);
	ck_assert_float_eq(((float *)outs[0]->bytes)[0], 3);
	ck_assert_float_eq(((float *)outs[0]->bytes)[1], 4);
	ck_assert_float_eq(((float *)outs[1]->bytes)[1], 8);
	pawl_storage_unref(outs[0]);
	pawl_storage_unref(outs[1]);
	ck_assert_int_eq(pawl_realize_one(context, graph, NULL, outs, &err), PAWL_INVALID_ARGUMENT);
	ck_assert_str_eq(err.text, "graph test has 2 outputs, 1 is wanted");
}
END_TEST

START_TEST(storages_of_another_type)
{
	struct pawl_storage *out;

	pawl_graph_add_output(
		graph, pawl_build_unary(graph, PAWL_OP_NEG, constant(PAWL_ROLE_DATA, "a", 2)));
	insert("a", 1, 6, 0);
	ck_assert_int_eq(pawl_realize_one(context, graph, NULL, &out, &err), PAWL_INVALID_ARGUMENT);
	ck_assert_str_eq(
		err.text, "a: the plan wants f32@rows of 8 bytes, the storage is f32@rows of 4");
}
END_TEST

static struct pawl_node *
write_at_cached_len(void)
{
	struct pawl_attrs attrs = pawl_attrs_default();
	struct pawl_node *in[2] = {
		constant(PAWL_ROLE_KV, "x", 8), constant(PAWL_ROLE_DATA, "s", 1)};

	attrs.axis = 0;
	attrs.sym = pawl_graph_add_symbol(graph, "cached_len", 0, 7, 1);
	return pawl_build(graph, PAWL_OP_WRITE_SLICE, NULL, in, 2, &attrs, NULL);
}

/* A write whose start is a symbol, as the ancestor's hosts without an offset buffer do it. */
START_TEST(symbols)
{
	struct pawl_storage *out, *state;
	int64_t start;
	float *x;

	pawl_graph_add_output(graph, write_at_cached_len());
	ck_assert_str_eq(graph->error.text, "");
	state = insert("x", 8, 1, 2);
	x = state->bytes;
	insert("s", 1, 99, 0);
	ck_assert_int_eq(pawl_realize_one(context, graph, NULL, &out, &err), PAWL_SYMBOL);
	ck_assert_str_eq(err.text, "symbol cached_len is unbound");
	start = 8;
	ck_assert_int_eq(pawl_realize_one(context, graph, &start, &out, &err), PAWL_SYMBOL);
	ck_assert_float_eq(x[0], 1);
	start = 7;
	ck_assert_int_eq(pawl_realize_one(context, graph, &start, &out, &err), PAWL_OK);
	ck_assert_float_eq(x[7], 99);
	ck_assert_float_eq(x[0], 1);
	ck_assert_float_eq(x[6], 0);
	pawl_storage_unref(out);
}
END_TEST

START_TEST(rows_by_index)
{
	const int64_t dims[] = {4, 2}, slab[] = {2, 2}, two = 2;
	struct pawl_type type = pawl_type_make(PAWL_DTYPE_F32, 2, dims),
			 rows = pawl_type_make(PAWL_DTYPE_F32, 2, slab);
	struct pawl_type list = pawl_type_make(PAWL_DTYPE_I64, 1, &two);
	struct pawl_storage *storage, *out, *state;
	struct pawl_node *in[3];
	int64_t *index;
	float *x;

	in[0] = pawl_build_const(graph, PAWL_ROLE_KV, "x", &type);
	in[1] = pawl_build_const(graph, PAWL_ROLE_DATA, "rows", &rows);
	in[2] = pawl_build_const(graph, PAWL_ROLE_DATA, "index", &list);
	pawl_graph_add_output(
		graph, pawl_build(graph, PAWL_OP_WRITE_ROWS, NULL, in, 3, NULL, NULL));
	ck_assert_str_eq(graph->error.text, "");
	ck_assert_int_eq(pawl_storage_new(&type, &state, &err), PAWL_OK);
	pawl_inference_context_insert(context, "x", state, &err);
	ck_assert_int_eq(pawl_storage_new(&rows, &storage, &err), PAWL_OK);
	for (int i = 0; i < 4; i++)
		((float *)storage->bytes)[i] = (float)(i + 1);
	pawl_inference_context_insert(context, "rows", storage, &err);
	pawl_storage_unref(storage);
	ck_assert_int_eq(pawl_storage_new(&list, &storage, &err), PAWL_OK);
	pawl_inference_context_insert(context, "index", storage, &err);
	index = storage->bytes;
	pawl_storage_unref(storage);
	x = state->bytes;
	index[0] = 1;
	index[1] = 4;
	ck_assert_int_eq(pawl_realize_one(context, graph, NULL, &out, &err), PAWL_CAPACITY);
	ck_assert_str_eq(err.text, "write_rows: index[1] is 4, outside 0 to 3");
	for (int i = 0; i < 8; i++)
		ck_assert_float_eq(x[i], 0);
	index[0] = -1;
	index[1] = 3;
	ck_assert_int_eq(pawl_realize_one(context, graph, NULL, &out, &err), PAWL_OK);
	for (int i = 0; i < 8; i++)
		ck_assert_float_eq(x[i], (float)(i < 6 ? 0 : i - 3));
	pawl_storage_unref(out);
	pawl_storage_unref(state);
}
END_TEST

START_TEST(host_outputs_are_nobody_elses)
{
	struct pawl_node *x = constant(PAWL_ROLE_KV, "x", 2), *s = constant(PAWL_ROLE_DATA, "s", 2);
	struct pawl_node *y = pawl_build_write_slice(graph, x, s, NULL, -1, NULL);
	struct pawl_storage *outs[3], *state;

	pawl_graph_add_output(graph, y);
	pawl_graph_add_output(graph, pawl_build_unary(graph, PAWL_OP_NEG, y));
	pawl_graph_add_output(graph, y);
	ck_assert_str_eq(graph->error.text, "");
	state = insert("x", 2, 1, 2);
	insert("s", 2, 99, 98);
	for (int32_t bad = -1; bad <= 4; bad += 5) {
		ck_assert_int_eq(pawl_realize_split(context, graph, bad, NULL, outs, &err),
			PAWL_INVALID_ARGUMENT);
		ck_assert_ptr_nonnull(strstr(err.text, "graph test has 3 outputs, "));
	}
	ck_assert_float_eq(((float *)state->bytes)[0], 1);
	for (int32_t n_host = 0; n_host <= 3; n_host++) {
		ck_assert_int_eq(
			pawl_realize_split(context, graph, n_host, NULL, outs, &err), PAWL_OK);
		for (int32_t i = 0; i < 3; i++) {
			ck_assert_float_eq(((float *)outs[i]->bytes)[1], i == 1 ? -98 : 98);
			ck_assert_int_eq(
				pawl_storage_overlaps(outs[i], state), i != 1 && i >= n_host);
			pawl_storage_unref(outs[i]);
		}
	}
	/* Memory for the copies is found before anything is written. */
	insert("s", 2, 7, 7);
	for (int n = 0;; n++) {
		enum pawl_status status;

		pawl_memory_fail_after(n);
		status = pawl_realize_split(context, graph, 3, NULL, outs, &err);
		pawl_memory_fail_after(-1);
		if (!status)
			break;
		ck_assert_int_eq(status, PAWL_OUT_OF_MEMORY);
		ck_assert_float_eq(((float *)state->bytes)[0], 99);
	}
	ck_assert_float_eq(((float *)state->bytes)[0], 7);
	for (int i = 0; i < 3; i++)
		pawl_storage_unref(outs[i]);
}
END_TEST

static struct pawl_bindings *
bind_all(struct pawl_plan *plan)
{
	struct pawl_bindings *bindings;

	ck_assert_int_eq(pawl_bindings_new(
				 plan, pawl_inference_context_team(context), &bindings, &err),
		PAWL_OK);
	for (int32_t i = 0; i < plan->program->n_slots; i++) {
		const char *name = plan->program->slots[i].name;
		struct pawl_storage *storage = pawl_inference_context_get(context, name);

		if (storage)
			ck_assert_int_eq(
				pawl_bindings_bind(bindings, i, storage, &err), PAWL_OK);
	}
	return bindings;
}

START_TEST(no_symbols_and_an_empty_env_are_the_same)
{
	const struct pawl_plan_options options = {0};
	struct pawl_bindings *bindings;
	struct pawl_symenv empty;
	struct pawl_plan *plan;
	float without[2];

	pawl_graph_add_output(
		graph, pawl_build_unary(graph, PAWL_OP_EXP, constant(PAWL_ROLE_DATA, "a", 2)));
	insert("a", 2, 0.3f, -4);
	ck_assert_int_eq(
		pawl_plan_build(graph, pawl_test_device(), &options, &plan, &err), PAWL_OK);
	bindings = bind_all(plan);
	ck_assert_int_eq(pawl_symenv_init(&empty, plan->program->symbols, 0, &err), PAWL_OK);
	ck_assert_int_eq(pawl_bindings_run(bindings, NULL, NULL, &err), PAWL_OK);
	memcpy(without, pawl_bindings_output(bindings, 0, NULL), sizeof(without));
	ck_assert_float_gt(without[0], 1);
	ck_assert_int_eq(pawl_bindings_run(bindings, &empty, NULL, &err), PAWL_OK);
	ck_assert_mem_eq(pawl_bindings_output(bindings, 0, NULL), without, sizeof(without));
	pawl_symenv_release(&empty);
	pawl_bindings_free(bindings);
	pawl_plan_unref(plan);
}
END_TEST

/* A held plan freezes no offset: each run writes where its own symbol says. */
START_TEST(a_held_plan_follows_its_symbol)
{
	const struct pawl_plan_options options = {0};
	struct pawl_bindings *bindings;
	struct pawl_storage *state, *slab;
	struct pawl_symenv env;
	struct pawl_plan *plan;
	const float *x;

	pawl_graph_add_output(graph, write_at_cached_len());
	ck_assert_str_eq(graph->error.text, "");
	state = insert("x", 8, 0, 0);
	slab = insert("s", 1, 0, 0);
	x = state->bytes;
	ck_assert_int_eq(
		pawl_plan_build(graph, pawl_test_device(), &options, &plan, &err), PAWL_OK);
	bindings = bind_all(plan);
	ck_assert_int_eq(pawl_symenv_init(&env, plan->program->symbols, 1, &err), PAWL_OK);
	for (int step = 0; step < 3; step++) {
		static const int64_t places[] = {3, 6, 1};

		*(float *)slab->bytes = (float)(step + 1);
		pawl_symenv_clear(&env);
		ck_assert_int_eq(pawl_symenv_bind(&env, 0, places[step], &err), PAWL_OK);
		ck_assert_int_eq(pawl_bindings_run(bindings, &env, NULL, &err), PAWL_OK);
	}
	for (int i = 0; i < 8; i++)
		ck_assert_float_eq(x[i], (float)(i == 3 ? 1 : i == 6 ? 2 : i == 1 ? 3 : 0));
	pawl_symenv_release(&env);
	pawl_bindings_free(bindings);
	pawl_plan_unref(plan);
}
END_TEST

/* What is built again is built from the same graph: nothing piles up in it. */
START_TEST(building_leaves_the_graph_alone)
{
	const struct pawl_plan_options options = {0};
	char *before, *after;
	int32_t n_steps = 0;

	pawl_graph_add_output(graph, write_at_cached_len());
	before = pawl_print(graph, NULL);
	for (int i = 0; i < 4; i++) {
		struct pawl_plan *plan;

		ck_assert_int_eq(pawl_plan_build(graph, pawl_test_device(), &options, &plan, &err),
			PAWL_OK);
		ck_assert(i == 0 || plan->program->n_steps == n_steps);
		n_steps = plan->program->n_steps;
		pawl_plan_unref(plan);
		after = pawl_print(graph, NULL);
		ck_assert_str_eq(before, after);
		free(after);
	}
	ck_assert_int_gt(n_steps, 0);
	free(before);
}
END_TEST

Suite *
pawl_context_suite(void)
{
	Suite *suite = suite_create("context");
	TCase *tcase = tcase_create("context");

	tcase_add_checked_fixture(tcase, begin, end);
	tcase_add_test(tcase, one_output);
	tcase_add_test(tcase, the_map);
	tcase_add_test(tcase, the_in_place_hazard);
	tcase_add_test(tcase, literals_and_outputs_that_are_inputs);
	tcase_add_test(tcase, storages_of_another_type);
	tcase_add_test(tcase, symbols);
	tcase_add_test(tcase, rows_by_index);
	tcase_add_test(tcase, host_outputs_are_nobody_elses);
	tcase_add_test(tcase, no_symbols_and_an_empty_env_are_the_same);
	tcase_add_test(tcase, a_held_plan_follows_its_symbol);
	tcase_add_test(tcase, building_leaves_the_graph_alone);
	suite_add_tcase(suite, tcase);
	return suite;
}
