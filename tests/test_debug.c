/* What PAWL_DEBUG, PAWL_DUMP and the rest ask of the library; tests/cli-debug.sh asks the tool. */
#include "ir/debug.h"

#include "ir/dump.h"
#include "ir/parse.h"
#include "passes/observe.h"
#include "runtime/bindings.h"
#include "runtime/pool.h"
#include "runtime/target_load.h"
#include "tests/suites.h"
#include "tests/text_files.h"

#include <stdlib.h>
#include <string.h>

static struct pawl_error err;

#define OK(call) ck_assert_msg((call) == PAWL_OK, "%s", err.text)

START_TEST(words_that_are_none)
{
	setenv("PAWL_DEBUG", "time,verify,", 1);
	OK(pawl_debug_check(&err));
	ck_assert(pawl_debug(PAWL_DEBUG_VERIFY) && !pawl_debug(PAWL_DEBUG_ROUNDTRIP));
	setenv("PAWL_DEBUG", "verify,tim", 1);
	ck_assert_int_eq(pawl_debug_check(&err), PAWL_INVALID_ARGUMENT);
	ck_assert_str_eq(
		err.text, "PAWL_DEBUG: 'tim' is none of verify, roundtrip, time, poison, "
			  "all-threads, perf, ggml");
	unsetenv("PAWL_DEBUG");
	setenv("PAWL_BISECT", "-1", 1);
	ck_assert_int_eq(pawl_debug_check(&err), PAWL_INVALID_ARGUMENT);
	setenv("PAWL_BISECT", "3 ", 1);
	ck_assert_int_eq(pawl_debug_check(&err), PAWL_INVALID_ARGUMENT);
	setenv("PAWL_BISECT", "3", 1);
	OK(pawl_debug_check(&err));
}
END_TEST

/* NULL: nowhere. */
static void
expect_kernels_in(const char *wanted)
{
	char *path;

	OK(pawl_env_kernel_cache(&path, &err));
	ck_assert_pstr_eq(path, wanted);
	free(path);
}

START_TEST(where_kernels_are_kept)
{
	char *long_path = malloc(10001);

	memset(long_path, 'x', 10000);
	long_path[10000] = '\0';
	setenv("HOME", "/h", 1);
	setenv("XDG_CACHE_HOME", "/x", 1);
	setenv("PAWL_CACHE_DIR", "/c", 1);
	setenv("PAWL_KERNEL_CACHE", "/k", 1);
	expect_kernels_in("/k");
	setenv("PAWL_KERNEL_CACHE", "off", 1);
	expect_kernels_in(NULL);
	setenv("PAWL_KERNEL_CACHE", long_path, 1);
	expect_kernels_in(long_path);
	unsetenv("PAWL_KERNEL_CACHE");
	expect_kernels_in("/c/kernels");
	unsetenv("PAWL_CACHE_DIR");
	expect_kernels_in("/x/pawl/kernels");
	unsetenv("XDG_CACHE_HOME");
	expect_kernels_in("/h/.cache/pawl/kernels");
	unsetenv("HOME");
	expect_kernels_in(NULL);
	free(long_path);
}
END_TEST

START_TEST(options_from_the_environment)
{
	struct pawl_run_options options;

	setenv("PAWL_DEBUG", "roundtrip", 1);
	setenv("PAWL_BISECT", "7", 1);
	setenv("PAWL_SKIP", "dce,cse", 1);
	setenv("PAWL_DUMP", "there", 1);
	OK(pawl_run_options_from_env(&options, &err));
	ck_assert(options.roundtrip_each && !options.verify_each);
	ck_assert_int_eq(options.bisect, 7);
	ck_assert_str_eq(options.skip, "dce,cse");
	ck_assert_str_eq(options.dump_folder, "there");
}
END_TEST

START_TEST(a_broken_graph_is_found)
{
	const struct pawl_run_options verify = {.verify_each = true};
	struct pawl_graph *graph = pawl_test_graph("decode.pawl");
	struct pawl_node *node = graph->outputs[0];

	OK(pawl_observe_check(graph, &verify, &err));
	node->type.dim[0].base += 1;
	ck_assert_int_eq(pawl_observe_check(graph, &verify, &err), PAWL_INTERNAL);
	node->type.dim[0].base -= 1;
	pawl_graph_free(graph);
}
END_TEST

START_TEST(a_text_that_does_not_read_back_is_found)
{
	const struct pawl_run_options roundtrip = {.roundtrip_each = true};
	static const char *const names[] = {
		"decode.pawl", "every-op.pawl", "fused.pawl", "ordered.pawl"};
	struct pawl_graph *graph;
	struct pawl_node *node;
	const char *name;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		graph = pawl_test_graph(names[i]);
		OK(pawl_observe_check(graph, &roundtrip, &err));
		pawl_graph_free(graph);
	}
	graph = pawl_test_graph("decode.pawl");
	node = graph->outputs[0];
	name = node->name;
	node->name = "no word";
	ck_assert_int_eq(pawl_observe_check(graph, &roundtrip, &err), PAWL_INTERNAL);
	ck_assert_ptr_nonnull(strstr(err.text, "its text:"));
	node->name = name;
	OK(pawl_observe_check(graph, &roundtrip, &err));
	/* Reads as no name, and prints as another number. */
	node->name = "1000";
	ck_assert_int_eq(pawl_observe_check(graph, &roundtrip, &err), PAWL_INTERNAL);
	ck_assert_ptr_nonnull(strstr(err.text, "of the text prints otherwise when read back"));
	pawl_graph_free(graph);
}
END_TEST

START_TEST(skipping_what_cannot_be)
{
	struct pawl_graph *graph = pawl_test_graph("decode.pawl");
	const struct pawl_pass_facts facts = {.max_prologue_rows = 1};
	struct pawl_run_options options = {.skip = "dce,no-such", .bisect = -1};
	int n;
	const enum pawl_pass *passes = pawl_pipeline(&n);

	ck_assert_int_eq(pawl_passes_run(graph, passes, n, &facts, &options, NULL, &err),
		PAWL_INVALID_ARGUMENT);
	ck_assert_str_eq(err.text, "passes to skip: there is no pass 'no-such'");
	options.skip = "form-groups";
	ck_assert_int_eq(pawl_passes_run(graph, passes, n, &facts, &options, NULL, &err),
		PAWL_INVALID_ARGUMENT);
	ck_assert_str_eq(err.text, "passes to skip: form-groups is required");
	pawl_graph_free(graph);
}
END_TEST

START_TEST(dumps_that_cannot_be_written)
{
	ck_assert_int_eq(pawl_dump_check("/proc/self/nowhere", &err), PAWL_ENVIRONMENT);
	ck_assert_str_eq(
		err.text, "cannot dump to /proc/self/nowhere: No such file or directory");
	ck_assert_int_eq(pawl_dump_check("/dev/null", &err), PAWL_ENVIRONMENT);
	ck_assert_int_eq(pawl_dump_check("/tmp", &err), PAWL_OK);
	ck_assert_int_eq(pawl_dump_text("/proc/self/nowhere", "a", "text", &err), PAWL_ENVIRONMENT);
	ck_assert_ptr_nonnull(strstr(err.text, "cannot dump to /proc/self/nowhere: "));
	ck_assert_int_eq(pawl_dump_text("/dev/null", "a", "text", &err), PAWL_ENVIRONMENT);
	ck_assert_str_eq(err.text, "cannot dump to /dev/null/a: Not a directory");
	ck_assert_int_eq(pawl_dump_text("/dev", "full", "text", &err), PAWL_ENVIRONMENT);
	ck_assert_str_eq(err.text, "cannot dump to /dev/full: No space left on device");
}
END_TEST

/* A target whose code only looks at what it would work on. */
static bool found_poison, found_zero;

static enum pawl_status
look(const struct pawl_code *code, const struct pawl_run *run, struct pawl_error *error)
{
	const unsigned char *out = run->args[1];

	(void)code;
	(void)error;
	found_poison = found_zero = true;
	for (size_t i = 0; i < 64 * sizeof(float); i++) {
		found_poison &= out[i] == 0xff;
		found_zero &= out[i] == 0;
	}
	return PAWL_OK;
}

static void
run_looking(bool with_outputs)
{
	static const char text[] = "pawl 1\ngraph @g stage values {\n"
				   "  %x = const {role = data} : f32[64]\n"
				   "  %y = neg %x : f32[64]\n  output %y\n}\n";
	const struct pawl_plan_options options = {.no_reuse = false};
	const struct pawl_target_api *ref;
	struct pawl_target_api looking;
	struct pawl_bindings *bindings;
	struct pawl_device *device;
	struct pawl_graph *graph;
	struct pawl_plan *plan;
	struct pawl_pool *pool;
	float x[64] = {1};

	OK(pawl_target_load("ref", &ref, &err));
	looking = *ref;
	looking.run = look;
	OK(pawl_parse(text, strlen(text), "text", &graph, NULL, &err));
	OK(pawl_device_new(&looking, NULL, &device, &err));
	OK(pawl_plan_build(graph, device, &options, &plan, &err));
	OK(pawl_pool_new(1, &pool, &err));
	ck_assert_int_eq(plan->program->n_args, 2);
	OK((with_outputs ? pawl_bindings_new_with_outputs : pawl_bindings_new)(
		plan, pawl_pool_team(pool), &bindings, &err));
	pawl_bindings_offer(bindings, pawl_plan_find_slot(plan, PAWL_SLOT_DATA, "x"), x);
	OK(pawl_bindings_run(bindings, NULL, NULL, &err));
	pawl_bindings_free(bindings);
	pawl_pool_free(pool);
	pawl_plan_unref(plan);
	pawl_device_unref(device);
	pawl_graph_free(graph);
}

START_TEST(memory_is_poisoned)
{
	unsetenv("PAWL_DEBUG");
	run_looking(_i);
	ck_assert(found_zero && !found_poison);
	setenv("PAWL_DEBUG", "poison", 1);
	run_looking(_i);
	ck_assert(found_poison && !found_zero);
}
END_TEST

Suite *
pawl_debug_suite(void)
{
	Suite *suite = suite_create("debug");
	TCase *tcase = tcase_create("debug");

	tcase_add_test(tcase, words_that_are_none);
	tcase_add_test(tcase, where_kernels_are_kept);
	tcase_add_test(tcase, options_from_the_environment);
	tcase_add_test(tcase, a_broken_graph_is_found);
	tcase_add_test(tcase, a_text_that_does_not_read_back_is_found);
	tcase_add_test(tcase, skipping_what_cannot_be);
	tcase_add_test(tcase, dumps_that_cannot_be_written);
	tcase_add_loop_test(tcase, memory_is_poisoned, 0, 2);
	suite_add_tcase(suite, tcase);
	return suite;
}
