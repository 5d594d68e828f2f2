/*
 * The border of include/pawl/plugin.h: versions, handles, pointers, the order of calls.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/host_fixture.h"
#include "tests/suites.h"

static const struct pawl_api *api;

static void
begin(void)
{
	api = pawl_test_host_api();
}

static void *
plugin_symbol(const char *name)
{
	char path[4200];
	void *symbol;

	snprintf(path, sizeof(path), "%s/pawl_plugin.so", getenv("PAWL_PLUGIN_PATH"));
	symbol = dlsym(dlopen(path, RTLD_NOW | RTLD_LOCAL), name);
	ck_assert_msg(symbol != NULL, "%s", name);
	return symbol;
}

START_TEST(versions_are_negotiated)
{
	static const struct {
		uint32_t asked, got;
		int ok;
	} cases[] = {{0, 0, 0}, {1, 1, 1}, {2, 1, 1}, {UINT32_MAX, 1, 1}};
	const struct pawl_api *(*get_api)(uint32_t version);
	int (*negotiate)(uint32_t * version);

	*(void **)&negotiate = plugin_symbol("pawl_negotiate");
	*(void **)&get_api = plugin_symbol("pawl_get_api");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t version = cases[i].asked;

		ck_assert_int_eq(negotiate(&version), cases[i].ok);
		ck_assert_uint_eq(version, cases[i].got);
	}
	ck_assert_int_eq(negotiate(NULL), 0);
	ck_assert_ptr_null(get_api(0));
	ck_assert_ptr_null(get_api(PAWL_ABI_VERSION + 1));
	ck_assert_ptr_eq(get_api(PAWL_ABI_VERSION), api);
	ck_assert_uint_eq(api->struct_size, sizeof(*api));
	ck_assert_uint_eq(api->abi_version, PAWL_ABI_VERSION);
	ck_assert_ptr_nonnull(strchr(api->build_id, '-'));
}
END_TEST

static const char two_caches[] =
	"pawl 1\ngraph @g stage values {\nsym $n : 2..8 % 2\n%w = const : f32[16]\n"
	"%k = const {role = kv} : f32[16]\n%v = const {role = kv} : f32[16]\n"
	"%x = const {role = data} : f32[4]\n%at = const {role = data} : i64[]\n"
	"%a = write_slice %k, %x, %at {axis = 0} : f32[16]\n"
	"%b = write_slice %v, %x {start = [8]} : f32[16]\n"
	"%c = add %w, %w : f32[16]\noutput %a\noutput %b\noutput %c\n}\n";

/* All kinds of handles there are. */
struct host {
	struct pawl_host_context *context;
	struct pawl_host_graph *graph;
	struct pawl_host_plan *plan;
	struct pawl_host_weights *weights;
	struct pawl_host_session *session;
};

static _Alignas(64) float memory[64];

static void
make(struct host *h)
{
	static float w[16] = {1, 2, 3};

	h->context = pawl_test_host_context("ref", 1, NULL);
	PAWL_HOST_OK(api->graph_from_text(h->context, two_caches, strlen(two_caches), &h->graph));
	PAWL_HOST_OK(api->plan_compile(h->graph, &h->plan));
	PAWL_HOST_OK(api->weights_create(h->context, NULL, &h->weights));
	PAWL_HOST_OK(api->weights_add(h->weights, "w", "f32[16]", w, sizeof(w)));
	PAWL_HOST_OK(api->session_create(h->plan, h->weights, &h->session));
}

static void
end(struct host *h)
{
	api->session_release(h->session);
	api->weights_release(h->weights);
	api->plan_release(h->plan);
	api->graph_release(h->graph);
	api->context_release(h->context);
}

static int64_t
kv(const struct host *h, const char *name)
{
	return api->plan_find(h->plan, PAWL_BINDING_KV, name);
}

static struct pawl_host_status *
run(struct host *h, float *x, int64_t at)
{
	PAWL_HOST_OK(api->session_set(
		h->session, api->plan_find(h->plan, PAWL_BINDING_DATA, "x"), x, 16));
	PAWL_HOST_OK(api->session_set(
		h->session, api->plan_find(h->plan, PAWL_BINDING_DATA, "at"), &at, 8));
	PAWL_HOST_OK(api->session_set_symbol(
		h->session, api->plan_find(h->plan, PAWL_BINDING_SYMBOL, "n"), 4));
	return api->session_run(h->session, 0);
}

static void
refused(struct pawl_host_status *status)
{
	pawl_test_host_refused(status, PAWL_CODE_INVALID_ARGUMENT, ":");
}

/* Callbacks of calls that are refused before they use them. */
static int
never(void *user, const void *bytes, size_t n)
{
	(void)user;
	(void)bytes;
	ck_abort_msg("%zu bytes of a call that is refused", n);
	return 1;
}

static int
no_node(void *user, int64_t i, struct pawl_host_node *out)
{
	(void)out;
	return never(user, NULL, (size_t)i);
}

static void *
no_memory(void *user, size_t n_bytes, size_t alignment)
{
	never(user, NULL, n_bytes + alignment);
	return NULL;
}

/*
 * NULL, a handle of another kind, and memory that is none, wherever a handle is wanted; NULL for
 * every pointer.
 */
START_TEST(wrong_handles_and_pointers_are_refused)
{
	const char *one[] = {"w"};
	uint64_t no_handle[64];
	void *bytes = NULL;
	struct pawl_cache_report report = {.struct_size = sizeof(report)};
	struct pawl_memory_needs needs = {.struct_size = sizeof(needs)};
	struct pawl_binding binding = {.struct_size = sizeof(binding)};
	struct pawl_counter counter = {.struct_size = sizeof(counter)};
	const void *output = NULL;
	uint32_t token = 0;
	size_t n = 0;
	struct host h;

	make(&h);
	refused(api->context_create(NULL, NULL, NULL));
	memset(no_handle, 0xa5, sizeof(no_handle));
	for (int i = 0; i < 3; i++) {
		/* A plan is wrong for all but the calls of plans, for which it is a graph. */
		void *no = i ? (void *)no_handle : NULL, *no_plan = no, *out = NULL;

		if (i == 2) {
			no = h.plan;
			no_plan = h.graph;
		}
		refused(api->context_describe(no, never, NULL));
		ck_assert_int_eq(api->context_counter(no, 0, &counter), 0);
		refused(api->graph_from_text(no, "", 0, (struct pawl_host_graph **)&out));
		refused(api->graph_create(no, "g", (struct pawl_host_graph **)&out));
		refused(api->graph_symbol(no, "n", 1, 2, 1));
		refused(api->graph_add(no, "y", "neg", one, 1, NULL, "f32[16]"));
		refused(api->graph_output(no, "y"));
		refused(api->graph_add_all(no, no_node, NULL));
		refused(api->graph_to_text(no, never, NULL));
		refused(api->plan_compile(no, (struct pawl_host_plan **)&out));
		refused(api->plan_regrow(no_plan, h.graph, (struct pawl_host_plan **)&out));
		refused(api->plan_regrow(h.plan, no, (struct pawl_host_plan **)&out));
		ck_assert_int_eq(api->plan_binding(no_plan, 0, &binding), 0);
		ck_assert_int_eq(api->plan_find(no_plan, PAWL_BINDING_KV, "k"), -1);
		refused(api->plan_to_json(no_plan, never, NULL));
		refused(api->plans_forecast((struct pawl_host_plan *const *)&no_plan, 1, &needs));
		refused(api->weights_create(no, NULL, (struct pawl_host_weights **)&out));
		refused(api->weights_add(no, "w2", "f32[1]", memory, 4));
		refused(api->cache_create(no_plan, NULL, (struct pawl_host_cache **)&out));
		ck_assert_int_eq(api->cache_len(no), 0);
		ck_assert_int_eq(api->cache_capacity(no), 0);
		refused(api->cache_set_len(no, 0, NULL));
		refused(api->cache_memory(no, "cache.k.0", &bytes, &n));
		refused(api->cache_reserve(no, 1));
		refused(api->cache_fork(no, (struct pawl_host_cache **)&out));
		refused(api->cache_save(no, 0, &token, 1, never, NULL));
		refused(api->cache_restore(no, 0, "", 0, NULL, 0, NULL));
		refused(api->session_create(no_plan, NULL, (struct pawl_host_session **)&out));
		if (i)
			refused(api->session_create(h.plan, no, (struct pawl_host_session **)&out));
		refused(api->session_bind(no, kv(&h, "k"), memory, 64));
		refused(api->session_use_cache(no, no, &report));
		refused(api->session_use_cache(h.session, no, &report));
		refused(api->session_set(no, 0, memory, 16));
		refused(api->session_set_symbol(no, 0, 1));
		refused(api->session_run(no, 0));
		refused(api->session_output(no, 0, &output, &n));
		ck_assert_ptr_null(out);
		/* To release the wrong thing is to release nothing. */
		api->context_release(no);
		api->graph_release(no);
		api->weights_release(no);
		api->cache_release(no);
		api->session_release(no);
		api->plan_release(no_plan);
		api->plan_retain(no_plan);
	}
	refused(api->graph_from_text(h.context, NULL, 0, &h.graph));
	refused(api->graph_from_text(h.context, "", 0, NULL));
	refused(api->graph_create(h.context, NULL, &h.graph));
	refused(api->graph_create(h.context, "g", NULL));
	refused(api->plan_compile(h.graph, NULL));
	refused(api->plan_regrow(h.plan, h.graph, NULL));
	refused(api->context_describe(h.context, NULL, NULL));
	refused(api->graph_to_text(h.graph, NULL, NULL));
	refused(api->plan_to_json(h.plan, NULL, NULL));
	refused(api->plans_forecast(NULL, 1, &needs));
	refused(api->plans_forecast(&h.plan, 1, NULL));
	refused(api->plans_forecast(&h.plan, 0, &needs));
	refused(api->plans_forecast(&h.plan, INT64_MAX, &needs));
	refused(api->weights_create(h.context, NULL, NULL));
	refused(api->weights_add(h.weights, NULL, "f32[1]", memory, 4));
	refused(api->weights_add(h.weights, "w2", NULL, memory, 4));
	refused(api->weights_add(h.weights, "w2", "f32[1]", NULL, 4));
	refused(api->session_create(h.plan, h.weights, NULL));
	refused(api->session_bind(h.session, kv(&h, "k"), NULL, 64));
	refused(api->session_set(
		h.session, api->plan_find(h.plan, PAWL_BINDING_DATA, "x"), NULL, 16));
	ck_assert_int_eq(api->context_counter(h.context, 0, NULL), 0);
	ck_assert_int_eq(api->context_counter(h.context, -1, &counter), 0);
	ck_assert_int_eq(api->plan_binding(h.plan, -1, &binding), 0);
	ck_assert_int_eq(api->plan_binding(h.plan, INT64_MAX, &binding), 0);
	ck_assert_int_eq(api->plan_find(h.plan, PAWL_BINDING_KV, NULL), -1);
	ck_assert_int_eq(api->status_code(NULL), PAWL_CODE_OK);
	ck_assert_str_eq(api->status_message(NULL), "ok");
	api->status_free(NULL);
	ck_assert_uint_eq(pawl_test_host_counter(h.context, "handles"), 5);
	end(&h);
}
END_TEST

/* Whatever is released first, the rest goes on; at the end everything is gone. */
START_TEST(handles_are_released_in_any_order)
{
	float x[4] = {1, 2, 3, 4};
	struct host h;

	for (int order = 0; order < 24; order++) {
		struct host kept;
		int64_t k, v;
		void **handles[4] = {(void **)&h.context, (void **)&h.graph, (void **)&h.plan,
			(void **)&h.weights};
		int left[4] = {0, 1, 2, 3}, code = order;

		make(&h);
		kept = h;
		k = kv(&h, "k");
		v = kv(&h, "v");
		api->plan_retain(h.plan);
		for (int n = 4; n; n--) {
			int pick = code % n, i = left[pick];

			code /= n;
			left[pick] = left[n - 1];
			if (i == 0)
				api->context_release(h.context);
			else if (i == 1)
				api->graph_release(h.graph);
			else if (i == 2)
				api->plan_release(h.plan);
			else
				api->weights_release(h.weights);
			*handles[i] = NULL;
		}
		h = kept;
		PAWL_HOST_OK(api->session_bind(h.session, k, memory, 64));
		PAWL_HOST_OK(api->session_bind(h.session, v, memory + 16, 64));
		PAWL_HOST_OK(run(&h, x, 0));
		/* The plan was retained once more, and keeps the context. */
		api->session_release(h.session);
		ck_assert_uint_eq(pawl_test_host_counter(h.context, "handles"), 2);
		api->plan_release(h.plan);
	}
}
END_TEST

START_TEST(calls_in_the_wrong_order_are_refused)
{
	float x[4] = {1, 2, 3, 4};
	const void *output = NULL;
	int64_t symbol, data, at = 0;
	struct pawl_host_session *none = NULL;
	size_t n = 0;
	struct host h;

	make(&h);
	symbol = api->plan_find(h.plan, PAWL_BINDING_SYMBOL, "n");
	data = api->plan_find(h.plan, PAWL_BINDING_DATA, "x");
	pawl_test_host_refused(api->session_output(h.session, 0, &output, &n),
		PAWL_CODE_INVALID_ARGUMENT, "did not succeed");
	pawl_test_host_refused(
		api->session_run(h.session, 0), PAWL_CODE_INVALID_ARGUMENT, "is not bound");
	PAWL_HOST_OK(api->session_bind(h.session, kv(&h, "k"), memory, 64));
	PAWL_HOST_OK(api->session_bind(h.session, kv(&h, "v"), memory + 16, 64));
	pawl_test_host_refused(
		api->session_run(h.session, 0), PAWL_CODE_INVALID_ARGUMENT, "has no bytes");
	/* What was lent for a run that did not begin is forgotten too. */
	PAWL_HOST_OK(api->session_set(h.session, data, x, 16));
	pawl_test_host_refused(
		api->session_run(h.session, 1), PAWL_CODE_INVALID_ARGUMENT, "no cache");
	pawl_test_host_refused(
		api->session_run(h.session, 0), PAWL_CODE_INVALID_ARGUMENT, "x has no bytes");
	pawl_test_host_refused(
		api->session_run(h.session, -1), PAWL_CODE_INVALID_ARGUMENT, "-1 positions");
	/* Roles and sizes. */
	pawl_test_host_refused(api->session_bind(h.session, data, memory, 16),
		PAWL_CODE_INVALID_ARGUMENT, "'x' is of another role");
	pawl_test_host_refused(api->session_set(h.session, kv(&h, "k"), memory, 64),
		PAWL_CODE_INVALID_ARGUMENT, "'k' is of another role");
	pawl_test_host_refused(api->session_set_symbol(h.session, data, 2),
		PAWL_CODE_INVALID_ARGUMENT, "'x' is of another role");
	pawl_test_host_refused(
		api->session_set(h.session, -1, x, 16), PAWL_CODE_INVALID_ARGUMENT, "binding -1");
	pawl_test_host_refused(api->session_set(h.session, INT64_MAX, x, 16),
		PAWL_CODE_INVALID_ARGUMENT, "binding");
	pawl_test_host_refused(api->session_set(h.session, data, x, 12), PAWL_CODE_INVALID_ARGUMENT,
		"'x' has 16 bytes, 12 are given");
	pawl_test_host_refused(api->session_bind(h.session, kv(&h, "k"), memory, 60),
		PAWL_CODE_INVALID_ARGUMENT, "'k' has 64 bytes, 60 are given");
	pawl_test_host_refused(api->session_bind(h.session, kv(&h, "k"), memory + 1, 64),
		PAWL_CODE_INVALID_ARGUMENT, "not aligned");
	pawl_test_host_refused(api->session_create(h.plan, NULL, &none), PAWL_CODE_INVALID_ARGUMENT,
		"no weights are given");
	ck_assert_ptr_null(none);
	pawl_test_host_refused(
		api->session_set_symbol(h.session, symbol, 3), PAWL_CODE_SYMBOL, "n = 3");
	pawl_test_host_refused(
		api->session_set_symbol(h.session, symbol, 10), PAWL_CODE_SYMBOL, "n = 10");
	/* An index out of range writes nothing, and what was lent for the run is forgotten. */
	memset(memory, 0, sizeof(memory));
	pawl_test_host_refused(run(&h, x, 13), PAWL_CODE_CAPACITY, "");
	ck_assert_float_eq(memory[13], 0);
	PAWL_HOST_OK(api->session_set(
		h.session, api->plan_find(h.plan, PAWL_BINDING_DATA, "at"), &at, 8));
	pawl_test_host_refused(
		api->session_run(h.session, 0), PAWL_CODE_INVALID_ARGUMENT, "x has no bytes");
	PAWL_HOST_OK(run(&h, x, 12));
	ck_assert_float_eq(memory[12], 1);
	PAWL_HOST_OK(api->session_output(h.session, 0, &output, &n));
	ck_assert_ptr_eq(output, memory);
	ck_assert_uint_eq(n, 64);
	PAWL_HOST_OK(api->session_output(h.session, 2, &output, &n));
	ck_assert_float_eq(((const float *)output)[1], 4);
	pawl_test_host_refused(api->session_output(h.session, 3, &output, &n),
		PAWL_CODE_INVALID_ARGUMENT, "is of another role");
	pawl_test_host_refused(run(&h, x, 13), PAWL_CODE_CAPACITY, "");
	pawl_test_host_refused(api->session_output(h.session, 0, &output, &n),
		PAWL_CODE_INVALID_ARGUMENT, "did not succeed");
	end(&h);
}
END_TEST

/* k and v, or one of them and a weight, on common memory; end to end is apart. */
START_TEST(caches_that_share_memory_are_refused)
{
	static const struct {
		int k, v;
		const char *text;
	} cases[] = {{0, 0, "v shares memory with k"}, {16, 16, "v shares memory with k"},
		{0, 16, NULL}, {32, 16, NULL}};
	float x[4] = {1, 2, 3, 4}, zeros[64] = {0};
	struct host h;

	make(&h);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		memset(memory, 0, sizeof(memory));
		PAWL_HOST_OK(api->session_bind(h.session, kv(&h, "k"), memory + cases[i].k, 64));
		PAWL_HOST_OK(api->session_bind(h.session, kv(&h, "v"), memory + cases[i].v, 64));
		if (cases[i].text) {
			pawl_test_host_refused(
				run(&h, x, 0), PAWL_CODE_INVALID_ARGUMENT, cases[i].text);
			ck_assert_int_eq(memcmp(memory, zeros, sizeof(zeros)), 0);
		} else {
			PAWL_HOST_OK(run(&h, x, 0));
			ck_assert_float_eq(memory[cases[i].v + 8], 1);
		}
	}
	end(&h);
}
END_TEST

START_TEST(options_out_of_range_are_refused)
{
	static const struct {
		struct pawl_context_options options;
		const char *text;
	} cases[] = {
		{{sizeof(cases[0].options), "ref", -1, 16}, "-1 threads"},
		{{sizeof(cases[0].options), "ref", 1025, 16}, "1025 threads"},
		{{sizeof(cases[0].options), "ref", INT64_MAX, 16}, "threads"},
		{{sizeof(cases[0].options), "ref", 1, 4}, "activations of 4 bits"},
		{{sizeof(cases[0].options), "Ref", 1, 0}, "small letters"},
		{{sizeof(cases[0].options), "../ref", 1, 0}, "small letters"},
	};
	struct pawl_services half = {.struct_size = sizeof(half), .alloc = no_memory};
	struct pawl_host_context *context = NULL;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		pawl_test_host_refused(api->context_create(NULL, &cases[i].options, &context),
			PAWL_CODE_INVALID_ARGUMENT, cases[i].text);
	pawl_test_host_refused(
		api->context_create(&half, NULL, &context), PAWL_CODE_INVALID_ARGUMENT, "alloc");
	ck_assert_ptr_null(context);
}
END_TEST

/*
 * A copy of the plugin in a folder of its own, and beside it a module that calls itself otherwise.
 */
START_TEST(target_modules_are_found_beside_the_plugin)
{
	const char *modules = getenv("PAWL_PLUGIN_PATH");
	struct pawl_context_options options = {sizeof(options), "mine", 1, 16};
	const struct pawl_api *(*get_api)(uint32_t version);
	const struct pawl_api *copied;
	struct pawl_host_status *status;
	struct pawl_host_context *context;
	char own[] = "pluginXXXXXX", command[8400], path[64];
	void *module;

	ck_assert_ptr_nonnull(mkdtemp(own));
	snprintf(command, sizeof(command),
		"cp %s/pawl_plugin.so %s && cp %s/target_ref.so %s/target_mine.so", modules, own,
		modules, own);
	ck_assert_int_eq(system(command), 0);
	snprintf(path, sizeof(path), "./%s/pawl_plugin.so", own);
	unsetenv("PAWL_PLUGIN_PATH");
	module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	ck_assert_msg(module != NULL, "%s", dlerror());
	*(void **)&get_api = dlsym(module, "pawl_get_api");
	copied = get_api(PAWL_ABI_VERSION);
	status = copied->context_create(NULL, &options, &context);
	snprintf(command, sizeof(command), "rm -rf %s", own);
	ck_assert_int_eq(system(command), 0);
	ck_assert_ptr_nonnull(status);
	ck_assert_msg(strstr(copied->status_message(status), "is target ref") &&
			      strstr(copied->status_message(status), own),
		"%s", copied->status_message(status));
	copied->status_free(status);
	options.target = "missing";
	status = copied->context_create(NULL, &options, &context);
	ck_assert_ptr_nonnull(status);
	ck_assert_int_eq(copied->status_code(status), PAWL_CODE_ENVIRONMENT);
	ck_assert_msg(strstr(copied->status_message(status), "no target_missing.so in ") &&
			      strstr(copied->status_message(status), own),
		"%s", copied->status_message(status));
	copied->status_free(status);
}
END_TEST

Suite *
pawl_host_abi_suite(void)
{
	Suite *suite = suite_create("host_abi");
	TCase *tcase = tcase_create("host_abi");

	tcase_add_checked_fixture(tcase, begin, NULL);
	tcase_add_test(tcase, versions_are_negotiated);
	tcase_add_test(tcase, wrong_handles_and_pointers_are_refused);
	tcase_add_test(tcase, handles_are_released_in_any_order);
	tcase_add_test(tcase, calls_in_the_wrong_order_are_refused);
	tcase_add_test(tcase, caches_that_share_memory_are_refused);
	tcase_add_test(tcase, options_out_of_range_are_refused);
	tcase_add_test(tcase, target_modules_are_found_beside_the_plugin);
	suite_add_tcase(suite, tcase);
	return suite;
}
