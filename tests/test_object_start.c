/*
 * Starts with kernels on disk: one that finds everything opens no compiler, and what fails costs
 * time.
 */
#include "codegen/object_cache.h"

#include "ir/parse.h"
#include "runtime/device.h"
#include "runtime/plan.h"
#include "tests/object_folder_fixture.h"
#include "tests/skip.h"
#include "tests/suites.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef PAWL_HAVE_LLVM
static const char graph[] =
	"pawl 1\ngraph @g stage values {\n%x = const {role = data} : f32[3, 64]\n"
	"%w = const {role = weight} : q8_0[48, 64]\n%0 = matmul %x, %w : f32[3, 48]\n"
	"%y = silu %0 : f32[3, 48]\noutput %y\n}\n";

/* The kernels that building the graph's plan makes and reads, and in why what is said of the folder. */
static struct pawl_target_counters
build_noting(const char *variant, char *why, size_t n)
{
	struct pawl_target_options options = {.cpu_variant = variant, .cache_dir = folder};
	struct pawl_plan_options plan_options = {.no_reuse = false};
	struct pawl_target_counters counters;
	struct pawl_device *device;
	struct pawl_graph *g;
	struct pawl_plan *plan;

	ck_assert_msg(pawl_device_open("cpu", &options, &device, &err) == PAWL_OK, "%s", err.text);
	ck_assert_msg(pawl_parse(graph, strlen(graph), "g", &g, NULL, &err) == PAWL_OK, "%s",
		err.text);
	ck_assert_msg(pawl_plan_build(g, device, &plan_options, &plan, &err) == PAWL_OK, "%s",
		err.text);
	pawl_device_counters(device, &counters);
	snprintf(why, n, "%s", counters.cache_fault ? counters.cache_fault : "");
	pawl_plan_unref(plan);
	pawl_graph_free(g);
	pawl_device_unref(device);
	return counters;
}

static struct pawl_target_counters
build(const char *variant)
{
	char why[256];
	const struct pawl_target_counters counters = build_noting(variant, why, sizeof(why));

	ck_assert_str_eq(why, "");
	return counters;
}

static void
cut_entry(const char *path)
{
	ck_assert_int_eq(truncate(path, 100), 0);
}

START_TEST(a_warm_start_compiles_nothing)
{
	struct pawl_target_counters first, second;

	make_folder();
	first = build(NULL);
	ck_assert_uint_gt(first.kernel_compiles, 0);
	ck_assert_uint_eq(first.kernels_read, 0);
	ck_assert_int_eq(each_entry(NULL), (int)first.kernel_compiles);
	second = build(NULL);
	ck_assert_uint_eq(second.kernel_compiles, 0);
	ck_assert_uint_eq(second.kernels_read, first.kernel_compiles);
	ck_assert_int_eq(second.code_bytes, first.code_bytes);
	/* Other kernels for another variant. */
	second = build("baseline");
	ck_assert_uint_eq(second.kernels_read, 0);
	ck_assert_uint_gt(second.kernel_compiles, 0);
	/* Bad entries are compiled again and replaced. */
	each_entry(cut_entry);
	second = build(NULL);
	ck_assert_uint_eq(second.kernel_compiles, first.kernel_compiles);
	second = build(NULL);
	ck_assert_uint_eq(second.kernels_read, first.kernel_compiles);
	remove_folder();
}
END_TEST

static void
replace_object(const char *path)
{
	struct pawl_object_cache cache;
	struct pawl_object_header header;
	FILE *file = fopen(path, "rb");
	char *key;

	ck_assert_ptr_nonnull(file);
	ck_assert_uint_eq(fread(&header, sizeof(header), 1, file), 1);
	key = calloc(1, header.key_bytes + 1);
	ck_assert_uint_eq(fread(key, header.key_bytes, 1, file), 1);
	fclose(file);
	ck_assert_int_eq(pawl_object_cache_open(&cache, folder, &err), PAWL_OK);
	ck_assert_int_eq(pawl_object_cache_store(&cache, key, "no elf", 6, &err), PAWL_OK);
	pawl_object_cache_release(&cache);
	free(key);
}

START_TEST(an_object_that_cannot_be_loaded_is_a_miss)
{
	struct pawl_target_counters counters;

	make_folder();
	build(NULL);
	each_entry(replace_object);
	counters = build(NULL);
	ck_assert_uint_eq(counters.kernels_read, 0);
	ck_assert_uint_gt(counters.kernel_compiles, 0);
	remove_folder();
}
END_TEST

START_TEST(a_folder_that_cannot_be_used_costs_only_time)
{
	struct pawl_target_options options = {.cache_dir = "/dev/null/kernels"};
	struct pawl_target_counters counters;
	struct pawl_device *device;

	ck_assert_msg(pawl_device_open("cpu", &options, &device, &err) == PAWL_OK, "%s", err.text);
	pawl_device_counters(device, &counters);
	ck_assert_ptr_nonnull(counters.cache_fault);
	ck_assert_ptr_nonnull(strstr(counters.cache_fault, "/dev/null/kernels"));
	pawl_device_unref(device);
	/* Gone after it was opened: kernels are compiled, none is kept. */
	make_folder();
	options.cache_dir = folder;
	ck_assert_int_eq(pawl_device_open("cpu", &options, &device, &err), PAWL_OK);
	ck_assert_int_eq(rmdir(folder), 0);
	pawl_device_unref(device);
}
END_TEST

static void
replace_by_folder(const char *path)
{
	ck_assert_int_eq(remove(path), 0);
	ck_assert_int_eq(mkdir(path, 0700), 0);
}

START_TEST(an_entry_that_cannot_be_written_is_said)
{
	struct pawl_target_counters first, second;
	char why[256], start[128];

	make_folder();
	snprintf(start, sizeof(start), "kernel cache %s: ", folder);
	first = build(NULL);
	each_entry(replace_by_folder);
	for (int i = 0; i < 2; i++) {
		second = build_noting(NULL, why, sizeof(why));
		ck_assert_uint_eq(second.kernel_compiles, first.kernel_compiles);
		ck_assert_msg(!strncmp(why, start, strlen(start)), "%s", why);
		ck_assert_msg(strstr(why, strerror(EISDIR)) != NULL, "%s", why);
	}
	ck_assert_int_eq(each_entry(remove_entry), (int)first.kernel_compiles);
	build(NULL);
	remove_folder();
}
END_TEST

START_TEST(processes_fill_a_folder_at_once)
{
	enum { N = 4 };
	pid_t pids[N];
	int status;

	make_folder();
	for (int i = 0; i < N; i++) {
		pids[i] = fork();
		if (!pids[i]) {
			for (int j = 0; j < 3; j++)
				build(NULL);
			_exit(0);
		}
	}
	for (int i = 0; i < N; i++) {
		ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
		ck_assert_int_eq(status, 0);
	}
	ck_assert_uint_eq(build(NULL).kernel_compiles, 0);
	/* Nothing half-written stays. */
	ck_assert_int_eq(each_entry(NULL), (int)build(NULL).kernels_read);
	remove_folder();
}
END_TEST

#else
START_TEST(a_start)
{
	pawl_skip("a_start", "built without llvm");
}
END_TEST
#endif

Suite *
pawl_object_start_suite(void)
{
	Suite *suite = suite_create("object_start");
	TCase *tcase = tcase_create("object_start");

#ifdef PAWL_HAVE_LLVM
	tcase_add_test(tcase, a_warm_start_compiles_nothing);
	tcase_add_test(tcase, an_object_that_cannot_be_loaded_is_a_miss);
	tcase_add_test(tcase, a_folder_that_cannot_be_used_costs_only_time);
	tcase_add_test(tcase, an_entry_that_cannot_be_written_is_said);
	tcase_add_test(tcase, processes_fill_a_folder_at_once);
#else
	tcase_add_test(tcase, a_start);
#endif
	suite_add_tcase(suite, tcase);
	return suite;
}
