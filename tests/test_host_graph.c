/*
 * Graphs, plans and weights through the ABI: the four ways to hand over a graph give the same one,
 * errors name the node, and what a plan takes is listed.
 */
#include <cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "examples/toy.h"
#include "tests/context_fixture.h"
#include "tests/suites.h"

struct text {
	char bytes[1 << 16];
	size_t n;
};

static int
keep(void *user, const void *bytes, size_t n)
{
	struct text *text = user;

	ck_assert_uint_lt(n, sizeof(text->bytes) - text->n);
	memcpy(text->bytes + text->n, bytes, n);
	text->n += n;
	text->bytes[text->n] = 0;
	return 0;
}

static int
refuse(void *user, const void *bytes, size_t n)
{
	(void)user;
	(void)bytes;
	return n > 0;
}

static const char kv_type[] = "f16[1, 1, 32, 16]";

static int64_t
n_inputs(const struct toy_node *node)
{
	int64_t n = 0;

	while (n < TOY_MAX_INPUTS && node->inputs[n])
		n++;
	return n;
}

static struct pawl_host_graph *
empty(void)
{
	struct pawl_host_graph *graph;

	PAWL_HOST_OK(api->graph_create(context, "toy", &graph));
	PAWL_HOST_OK(api->graph_symbol(graph, "attended_len", 1, TOY_CAPACITY, 1));
	return graph;
}

static struct pawl_host_graph *
by_nodes(void)
{
	struct pawl_host_graph *graph = empty();

	for (size_t i = 0; i < TOY_N_NODES; i++)
		PAWL_HOST_OK(api->graph_add(graph, toy_nodes[i].name, toy_nodes[i].op,
			toy_nodes[i].inputs, n_inputs(&toy_nodes[i]), toy_nodes[i].attrs,
			toy_nodes[i].type ? toy_nodes[i].type : kv_type));
	PAWL_HOST_OK(api->graph_output(graph, "next"));
	return graph;
}

static int
give_node(void *user, int64_t i, struct pawl_host_node *out)
{
	const int64_t *fail_at = user;
	const struct toy_node *node = &toy_nodes[i];

	ck_assert_uint_eq(out->struct_size, sizeof(*out));
	if (i == *fail_at)
		return -1;
	if (i == TOY_N_NODES)
		return 0;
	out->name = node->name;
	out->op = node->op;
	out->inputs = node->inputs;
	out->n_inputs = n_inputs(node);
	out->attrs = node->attrs;
	out->type = node->type ? node->type : kv_type;
	out->is_output = i == TOY_N_NODES - 1;
	return 1;
}

START_TEST(every_way_gives_the_same_graph)
{
	static struct text wanted, got;
	struct pawl_host_graph *graphs[4];
	int64_t never = -1;
	char *body;

	graphs[0] = by_nodes();
	PAWL_HOST_OK(api->graph_to_text(graphs[0], keep, &wanted));
	ck_assert_ptr_nonnull(strstr(wanted.bytes, "graph @toy stage values {"));
	graphs[1] = empty();
	PAWL_HOST_OK(api->graph_add_all(graphs[1], give_node, &never));
	PAWL_HOST_OK(api->graph_from_text(context, wanted.bytes, wanted.n, &graphs[2]));
	PAWL_HOST_OK(api->graph_create(context, "toy", &graphs[3]));
	body = strchr(strchr(wanted.bytes, '\n') + 1, '\n') + 1;
	PAWL_HOST_OK(api->graph_add_text(graphs[3], body, (size_t)(strrchr(body, '}') - body)));
	for (int i = 1; i < 4; i++) {
		got.n = 0;
		PAWL_HOST_OK(api->graph_to_text(graphs[i], keep, &got));
		ck_assert_msg(!strcmp(wanted.bytes, got.bytes), "way %d:\n%s", i, got.bytes);
	}
	pawl_test_host_refused(api->graph_to_text(graphs[0], refuse, NULL), PAWL_CODE_ENVIRONMENT,
		"the sink refused");
	for (int i = 0; i < 4; i++)
		api->graph_release(graphs[i]);
}
END_TEST

/* A node in error adds nothing: its name may come again, and the graph ends as it should. */
START_TEST(errors_name_the_node_and_add_nothing)
{
	static const char *const one[] = {"x"}, *const none[] = {"nothing"}, *const bad[] = {"a b"},
				 *const null[] = {NULL};
	static const struct {
		const char *name, *op, *const *inputs;
		int64_t n_inputs;
		const char *attrs, *type;
		enum pawl_status_code code;
		const char *text;
	} cases[] = {
		{"y", "nop", one, 1, NULL, "f32[4]", PAWL_CODE_INVALID_TEXT, "y:1:6: op 'nop'"},
		{"y", "sqrt", none, 1, NULL, "f32[4]", PAWL_CODE_INVALID_TEXT, "%nothing"},
		{"y", "sqrt", one, 1, NULL, "f32[5]", PAWL_CODE_INVALID_GRAPH, "sqrt gives f32[4]"},
		{"y", "sqrt", one, 1, "{eps = }", "f32[4]", PAWL_CODE_INVALID_TEXT, "y:1:"},
		{"y", "sqrt", one, 1, NULL, "f33[4]", PAWL_CODE_INVALID_TEXT, "f33"},
		{"y", "sqrt", one, 1, NULL, "f32[4]\n%z = neg %x : f32[4]",
			PAWL_CODE_INVALID_ARGUMENT, "graph_add: y"},
		{"y", "sqrt", one, 1, NULL, "f32[4] ; and more", PAWL_CODE_INVALID_ARGUMENT,
			"graph_add: y"},
		{"y", "sqrt", one, 1, NULL, "f32[4] %z", PAWL_CODE_INVALID_TEXT, "y:1:"},
		{"x", "neg", one, 1, NULL, "f32[4]", PAWL_CODE_INVALID_TEXT, "defined twice"},
		{"1", "neg", one, 1, NULL, "f32[4]", PAWL_CODE_INVALID_ARGUMENT, "'1' is no name"},
		{"", "neg", one, 1, NULL, "f32[4]", PAWL_CODE_INVALID_ARGUMENT, "'' is no name"},
		{NULL, "neg", one, 1, NULL, "f32[4]", PAWL_CODE_INVALID_ARGUMENT, "is no name"},
		{"y", "neg", bad, 1, NULL, "f32[4]", PAWL_CODE_INVALID_ARGUMENT, "input 0"},
		{"y", "neg", null, 1, NULL, "f32[4]", PAWL_CODE_INVALID_ARGUMENT, "input 0"},
		{"y", "neg", NULL, 1, NULL, "f32[4]", PAWL_CODE_INVALID_ARGUMENT, "1 inputs"},
		{"y", "neg", one, -1, NULL, "f32[4]", PAWL_CODE_INVALID_ARGUMENT, "-1 inputs"},
		{"y", "neg", one, 65, NULL, "f32[4]", PAWL_CODE_INVALID_ARGUMENT, "65 inputs"},
		{"y", NULL, one, 1, NULL, "f32[4]", PAWL_CODE_INVALID_ARGUMENT, "no op"},
		{"y", "neg", one, 1, NULL, NULL, PAWL_CODE_INVALID_ARGUMENT, "no type"},
	};
	static struct text text;
	struct pawl_host_graph *graph, *whole = NULL;
	int64_t fail_at = 3;

	PAWL_HOST_OK(api->graph_create(context, "g", &graph));
	PAWL_HOST_OK(api->graph_add(graph, "x", "const", NULL, 0, "{role = data}", "f32[4]"));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		pawl_test_host_refused(
			api->graph_add(graph, cases[i].name, cases[i].op, cases[i].inputs,
				cases[i].n_inputs, cases[i].attrs, cases[i].type),
			cases[i].code, cases[i].text);
	pawl_test_host_refused(
		api->graph_symbol(graph, "n", 5, 4, 1), PAWL_CODE_INVALID_GRAPH, "n");
	pawl_test_host_refused(api->graph_output(graph, "y"), PAWL_CODE_INVALID_TEXT, "%y");
	pawl_test_host_refused(api->graph_add_text(graph, "output %x 5", 11),
		PAWL_CODE_INVALID_TEXT, "line 1:1:11");
	pawl_test_host_refused(api->graph_add_text(graph, "sym $n : 1..2 5", 15),
		PAWL_CODE_INVALID_TEXT, "line 1:1:15");
	PAWL_HOST_OK(api->graph_symbol(graph, "n", 1, 4, 1));
	PAWL_HOST_OK(api->graph_add(graph, "y", "sqrt", one, 1, NULL, "f32[4]"));
	PAWL_HOST_OK(api->graph_output(graph, "y"));
	PAWL_HOST_OK(api->graph_to_text(graph, keep, &text));
	ck_assert_str_eq(text.bytes, "pawl 1\ngraph @g stage values {\n  sym $n : 1..4\n"
				     "  %x = const {role = data} : f32[4]\n"
				     "  %y = sqrt %x : f32[4]\n  output %y\n}\n");
	pawl_test_host_refused(api->graph_add_text(graph, "%z = neg %y : f32[4]\n\n%z = ", 26),
		PAWL_CODE_INVALID_TEXT, "line 3:1:");
	pawl_test_host_refused(
		api->graph_from_text(context, "pawl 1\ngraph @g stage values {\n%x = ",
			strlen("pawl 1\ngraph @g stage values {\n%x = "), &whole),
		PAWL_CODE_INVALID_TEXT, "graph:3:");
	ck_assert_ptr_null(whole);
	PAWL_HOST_OK(api->graph_from_text(context, text.bytes, text.n, &whole));
	pawl_test_host_refused(
		api->graph_output(whole, "x"), PAWL_CODE_INVALID_ARGUMENT, "takes no more");
	pawl_test_host_refused(api->graph_add_all(graph, give_node, &fail_at),
		PAWL_CODE_ENVIRONMENT, "the host failed at node 3");
	api->graph_release(whole);
	api->graph_release(graph);
}
END_TEST

/* A plan lists what it takes: outputs first, symbols last, each found by name and role. */
START_TEST(plans_list_what_they_take)
{
	static const struct {
		const char *name;
		int64_t role;
		const char *type;
		int64_t n_bytes;
	} wanted[] = {
		{"embedding", PAWL_BINDING_WEIGHT, "f32[64, 32]", 64 * 32 * 4},
		{"norm", PAWL_BINDING_WEIGHT, "f32[32]", 128},
		{"cache.k.0", PAWL_BINDING_KV, kv_type, 32 * 16 * 2},
		{"cache.v.0", PAWL_BINDING_KV, kv_type, 32 * 16 * 2},
		{"ids", PAWL_BINDING_DATA, "u32[1]", 4},
		{"cos", PAWL_BINDING_DATA, "f32[1, 16]", 64},
		{"offset", PAWL_BINDING_DATA, "i64[]", 8},
		{"attended_len", PAWL_BINDING_SYMBOL, "", 0},
		{"next", PAWL_BINDING_OUTPUT, "i32[1]", 4},
	};
	struct pawl_binding binding = {.struct_size = sizeof(binding)};
	struct pawl_host_graph *graph = by_nodes();
	static struct text once, again;
	struct pawl_host_plan *plan;
	int64_t n = 0;

	PAWL_HOST_OK(api->plan_compile(graph, &plan));
	while (api->plan_binding(plan, n, &binding)) {
		ck_assert_int_eq(api->plan_find(plan, binding.role, binding.name), n);
		n++;
	}
	ck_assert_int_eq(n, 1 + 9 + 2 + 4 + 1);
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		int64_t at = api->plan_find(plan, wanted[i].role, wanted[i].name);

		ck_assert_int_eq(api->plan_binding(plan, at, &binding), 1);
		ck_assert_str_eq(binding.name, wanted[i].name);
		ck_assert_str_eq(binding.type, wanted[i].type);
		ck_assert_int_eq(binding.n_bytes, wanted[i].n_bytes);
	}
	ck_assert_int_eq(api->plan_find(plan, PAWL_BINDING_OUTPUT, "next"), 0);
	ck_assert_int_eq(api->plan_find(plan, PAWL_BINDING_SYMBOL, "attended_len"), n - 1);
	ck_assert_int_eq(api->plan_find(plan, PAWL_BINDING_DATA, "norm"), -1);
	api->plan_binding(plan, n - 1, &binding);
	ck_assert_int_eq(binding.min, 1);
	ck_assert_int_eq(binding.max, TOY_CAPACITY);
	ck_assert_int_eq(binding.multiple, 1);
	PAWL_HOST_OK(api->plan_to_json(plan, keep, &once));
	PAWL_HOST_OK(api->plan_to_json(plan, keep, &again));
	ck_assert_str_eq(once.bytes, again.bytes);
	ck_assert_ptr_nonnull(strstr(once.bytes, "\"graph_hash\""));
	api->graph_release(graph);
	api->plan_release(plan);
}
END_TEST

START_TEST(weights_that_do_not_fit_are_refused)
{
	static _Alignas(64) float memory[64 * 32];
	const char *bytes = (const char *)memory;
	struct pawl_host_graph *graph = by_nodes();
	struct pawl_host_session *session = NULL;
	struct pawl_host_weights *weights;
	struct pawl_host_plan *plan;

	PAWL_HOST_OK(api->plan_compile(graph, &plan));
	PAWL_HOST_OK(api->weights_create(context, NULL, &weights));
	pawl_test_host_refused(api->weights_add(weights, "norm", "f32[32]", memory, 127),
		PAWL_CODE_INVALID_ARGUMENT, "'norm' has 128 bytes, 127 are given");
	pawl_test_host_refused(api->weights_add(weights, "norm", "f32[32]", bytes + 2, 128),
		PAWL_CODE_INVALID_ARGUMENT, "not aligned");
	pawl_test_host_refused(api->weights_add(weights, "norm", "f32[n]", memory, 128),
		PAWL_CODE_INVALID_TEXT, "norm:1:");
	pawl_test_host_refused(
		api->weights_add(weights, "norm", "f32[32] {role = kv}", memory, 128),
		PAWL_CODE_INVALID_TEXT, "is no type");
	pawl_test_host_refused(
		api->weights_add(weights, "norm", "f32[1, 1, 32, 1]@k16", memory, 128),
		PAWL_CODE_INVALID_GRAPH, "may not have layout k16");
	PAWL_HOST_OK(api->weights_add(weights, "norm", "f32[32]", memory, 128));
	pawl_test_host_refused(api->weights_add(weights, "norm", "f32[32]", memory, 128),
		PAWL_CODE_INVALID_ARGUMENT, "there already");
	pawl_test_host_refused(api->session_create(plan, weights, &session),
		PAWL_CODE_INVALID_ARGUMENT, "no weight 'embedding' was added");
	PAWL_HOST_OK(api->weights_add(weights, "embedding", "f32[32, 64]", memory, sizeof(memory)));
	pawl_test_host_refused(api->session_create(plan, weights, &session),
		PAWL_CODE_INVALID_ARGUMENT, "weight embedding is f32 [32, 64], the graph wants");
	ck_assert_ptr_null(session);
	api->weights_release(weights);
	api->plan_release(plan);
	api->graph_release(graph);
}
END_TEST

START_TEST(a_context_describes_itself)
{
	static struct text text;
	const cJSON *targets, *item;
	cJSON *json;
	int n_there = 0;

	PAWL_HOST_OK(api->context_describe(context, keep, &text));
	json = cJSON_Parse(text.bytes);
	ck_assert_ptr_nonnull(json);
	ck_assert_str_eq(cJSON_GetObjectItem(json, "target")->valuestring, "ref");
	ck_assert_str_eq(cJSON_GetObjectItem(json, "build_id")->valuestring, api->build_id);
	ck_assert_int_eq(cJSON_GetObjectItem(json, "n_threads")->valueint, 1);
	ck_assert_int_eq(cJSON_GetObjectItem(json, "abi_version")->valueint, PAWL_ABI_VERSION);
	targets = cJSON_GetObjectItem(json, "targets");
	cJSON_ArrayForEach(item, targets) n_there +=
		cJSON_IsNull(cJSON_GetObjectItem(item, "missing"));
	ck_assert_int_ge(n_there, 2);
	ck_assert_int_gt(cJSON_GetArraySize(cJSON_GetObjectItem(json, "cpu_variants")), 0);
	ck_assert_int_gt(cJSON_GetArraySize(cJSON_GetObjectItem(json, "types")), 5);
	ck_assert_int_gt(cJSON_GetArraySize(cJSON_GetObjectItem(json, "ops")), 30);
	pawl_test_host_refused(api->context_describe(context, refuse, NULL), PAWL_CODE_ENVIRONMENT,
		"the sink refused");
	cJSON_Delete(json);
}
END_TEST

Suite *
pawl_host_graph_suite(void)
{
	Suite *suite = suite_create("host_graph");
	TCase *tcase = tcase_create("host_graph");

	tcase_add_checked_fixture(tcase, begin_context, end_context);
	tcase_add_test(tcase, every_way_gives_the_same_graph);
	tcase_add_test(tcase, errors_name_the_node_and_add_nothing);
	tcase_add_test(tcase, plans_list_what_they_take);
	tcase_add_test(tcase, weights_that_do_not_fit_are_refused);
	tcase_add_test(tcase, a_context_describes_itself);
	suite_add_tcase(suite, tcase);
	return suite;
}
