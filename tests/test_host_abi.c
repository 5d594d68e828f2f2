/* The border of include/pawl/plugin.h, as a host meets it: the module opened by dlopen. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pawl/plugin.h"
#include "tests/suites.h"

static const struct pawl_api *
open_api(void)
{
	const struct pawl_api *(*get_api)(uint32_t version);
	char path[4200];
	void *module;

	snprintf(path, sizeof(path), "%s/pawl_plugin.so", getenv("PAWL_PLUGIN_PATH"));
	module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	ck_assert_msg(module != NULL, "%s", dlerror());
	*(void **)&get_api = dlsym(module, "pawl_get_api");
	ck_assert(get_api != NULL);
	ck_assert_ptr_null(get_api(PAWL_ABI_VERSION + 1));
	ck_assert_ptr_nonnull(get_api(PAWL_ABI_VERSION));
	return get_api(PAWL_ABI_VERSION);
}

static void
expect_refused(const struct pawl_api *api, struct pawl_status_object *status, const char *text)
{
	ck_assert_ptr_nonnull(status);
	ck_assert_int_eq(api->status_code(status), PAWL_CODE_INVALID_ARGUMENT);
	ck_assert_msg(strstr(api->status_message(status), text) != NULL, "%s",
		api->status_message(status));
	api->status_free(status);
}

/* Every size below the first version's, those that end inside a pointer among them. */
START_TEST(small_structs_are_refused)
{
	const struct pawl_api *api = open_api();
	struct pawl_context_options options = {.target = "ref", .n_threads = 1};
	struct pawl_host_services services = {0};
	struct pawl_context *context = NULL;
	size_t n;

	for (n = 0; n < sizeof(options); n++) {
		options.struct_size = n;
		expect_refused(api, api->context_create(NULL, &options, &context), "struct_size");
	}
	options.struct_size = sizeof(options);
	for (n = 0; n < sizeof(services); n++) {
		services.struct_size = n;
		expect_refused(api, api->context_create(&services, &options, &context), "struct_size");
	}
	ck_assert_ptr_null(context);
}
END_TEST

/* The same structs whole, and from a newer header that knows more. */
START_TEST(whole_and_larger_structs_are_taken)
{
	const struct pawl_api *api = open_api();
	struct {
		struct pawl_context_options known;
		void *newer;
	} options = {.known = {.target = "ref", .n_threads = 1}};
	struct pawl_host_services services = {.struct_size = sizeof(services)};
	struct pawl_context *context = NULL;
	size_t sizes[2] = {sizeof(options.known), sizeof(options)}, i;

	for (i = 0; i < 2; i++) {
		options.known.struct_size = sizes[i];
		ck_assert_ptr_null(api->context_create(&services, &options.known, &context));
		ck_assert_ptr_nonnull(context);
		ck_assert_ptr_null(api->context_destroy(context));
	}
}
END_TEST

/* A copy of the plugin in a folder of its own, and beside it a module that calls itself otherwise. */
START_TEST(target_modules_are_found_beside_the_plugin)
{
	const char *modules = getenv("PAWL_PLUGIN_PATH");
	struct pawl_context_options options = {sizeof(options), "mine", 1, 16};
	const struct pawl_api *(*get_api)(uint32_t version);
	const struct pawl_api *api;
	struct pawl_status_object *status;
	struct pawl_context *context;
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
	api = get_api(PAWL_ABI_VERSION);
	status = api->context_create(NULL, &options, &context);
	snprintf(command, sizeof(command), "rm -rf %s", own);
	ck_assert_int_eq(system(command), 0);
	ck_assert_ptr_nonnull(status);
	ck_assert_msg(strstr(api->status_message(status), "is target ref") &&
			      strstr(api->status_message(status), own),
		"%s", api->status_message(status));
	api->status_free(status);
	options.target = "missing";
	status = api->context_create(NULL, &options, &context);
	ck_assert_ptr_nonnull(status);
	ck_assert_msg(strstr(api->status_message(status), "no target_missing.so in ") &&
			      strstr(api->status_message(status), own),
		"%s", api->status_message(status));
	api->status_free(status);
}
END_TEST

static const char two_caches[] =
	"pawl 1\ngraph @g stage values {\n%w = const : f32[16]\n"
	"%k = const {role = kv} : f32[16]\n%v = const {role = kv} : f32[16]\n"
	"%x = const {role = data} : f32[4]\n"
	"%a = write_slice %k, %x {start = [0]} : f32[16]\n"
	"%b = write_slice %v, %x {start = [8]} : f32[16]\n"
	"%c = add %w, %w : f32[16]\noutput %a\noutput %b\noutput %c\n}\n";

struct host {
	const struct pawl_api *api;
	struct pawl_context *context;
	struct pawl_host_plan *plan;
	struct pawl_instance *instance;
};

static void
begin_instance(struct host *h)
{
	struct pawl_context_options options = {sizeof(options), "ref", 1, 16};
	struct pawl_host_graph *graph;

	h->api = open_api();
	ck_assert_ptr_null(h->api->context_create(NULL, &options, &h->context));
	ck_assert_ptr_null(
		h->api->graph_from_text(h->context, two_caches, strlen(two_caches), &graph));
	ck_assert_ptr_null(h->api->plan_compile(graph, &h->plan));
	h->api->graph_destroy(graph);
	ck_assert_ptr_null(h->api->instance_create(h->plan, &h->instance));
}

static void
end_instance(struct host *h)
{
	h->api->instance_destroy(h->instance);
	h->api->plan_release(h->plan);
	ck_assert_ptr_null(h->api->context_destroy(h->context));
}

static void
bind_floats(struct host *h, const char *name, float *x)
{
	ck_assert_ptr_null(h->api->instance_bind(h->instance, name, x, 64));
}

/* k and v, or one of them and a weight, on common memory; end to end is apart. */
START_TEST(caches_that_share_memory_are_refused)
{
	static _Alignas(64) float memory[48];
	float x[4] = {1, 2, 3, 4}, zeros[48] = {0};
	static const struct {
		int w, k, v;
		const char *text;
	} cases[] = {
		{16, 0, 0, "v shares memory with k"},
		{0, 16, 0, "v shares memory with w"},
		{16, 16, 32, "k shares memory with w"},
		{0, 16, 32, NULL},
		{0, 32, 16, NULL},
	};
	struct host h;

	begin_instance(&h);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		memset(memory, 0, sizeof(memory));
		bind_floats(&h, "w", memory + cases[i].w);
		bind_floats(&h, "k", memory + cases[i].k);
		bind_floats(&h, "v", memory + cases[i].v);
		ck_assert_ptr_null(h.api->instance_set_data(h.instance, "x", x, sizeof(x)));
		if (cases[i].text) {
			expect_refused(h.api, h.api->instance_run(h.instance), cases[i].text);
			ck_assert_int_eq(memcmp(memory, zeros, sizeof(zeros)), 0);
		} else {
			ck_assert_ptr_null(h.api->instance_run(h.instance));
			ck_assert_float_eq(memory[cases[i].v + 8], 1);
		}
	}
	end_instance(&h);
}
END_TEST

START_TEST(outputs_are_there_after_a_run)
{
	static _Alignas(64) float k[16], v[16], w[16];
	float x[4] = {1, 2, 3, 4};
	const void *bytes = NULL;
	struct host h;
	size_t n = 0;

	begin_instance(&h);
	for (int i = 0; i < 3; i++)
		expect_refused(h.api, h.api->instance_output(h.instance, i, &bytes, &n), "has not run");
	bind_floats(&h, "w", w);
	bind_floats(&h, "k", k);
	bind_floats(&h, "v", v);
	expect_refused(h.api, h.api->instance_run(h.instance), "x has no bytes");
	expect_refused(h.api, h.api->instance_output(h.instance, 2, &bytes, &n), "has not run");
	ck_assert_ptr_null(bytes);
	ck_assert_ptr_null(h.api->instance_set_data(h.instance, "x", x, sizeof(x)));
	ck_assert_ptr_null(h.api->instance_run(h.instance));
	for (int i = 0; i < 3; i++) {
		ck_assert_ptr_null(h.api->instance_output(h.instance, i, &bytes, &n));
		ck_assert_uint_eq(n, 64);
	}
	ck_assert_ptr_null(h.api->instance_output(h.instance, 1, &bytes, &n));
	ck_assert_ptr_eq(bytes, v);
	end_instance(&h);
}
END_TEST

Suite *
pawl_host_abi_suite(void)
{
	Suite *suite = suite_create("host_abi");
	TCase *tcase = tcase_create("host_abi");

	tcase_add_test(tcase, small_structs_are_refused);
	tcase_add_test(tcase, whole_and_larger_structs_are_taken);
	tcase_add_test(tcase, target_modules_are_found_beside_the_plugin);
	tcase_add_test(tcase, caches_that_share_memory_are_refused);
	tcase_add_test(tcase, outputs_are_there_after_a_run);
	suite_add_tcase(suite, tcase);
	return suite;
}
