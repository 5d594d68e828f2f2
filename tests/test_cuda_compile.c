/*
 * What compiles a program for NVIDIA GPUs: the compiler's library is found or what is missing is
 * named, its complaints become ours, and code that is kept is taken when it is right and only then.
 */
#include "tests/suites.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ir/parse.h"
#include "passes/optimize.h"
#include "plugins/cuda_nvrtc.h"
#include "plugins/cuda_report.h"
#include "tests/skip.h"

static struct pawl_error err;

#define OK(call) ck_assert_msg((call) == PAWL_OK, "%s", err.text)

static struct pawl_program *
program_of(const char *op)
{
	struct pawl_optimize_options options = {.run = {.bisect = -1}};
	struct pawl_program *program;
	struct pawl_graph *graph;
	char text[256];

	snprintf(text, sizeof(text),
		"pawl 1\ngraph @t stage values {\n%%x = const {role=data} : f32[2, 8]\n"
		"%%y = %s %%x : f32[2, 8]\noutput %%y\n}\n",
		op);
	OK(pawl_parse(text, strlen(text), "test", &graph, NULL, &err));
	OK(pawl_optimize(graph, &options, &program, NULL, &err));
	pawl_graph_free(graph);
	return program;
}

START_TEST(a_library_that_will_not_do_is_named)
{
	char path[PAWL_NVRTC_PATH], mock[PAWL_NVRTC_PATH];
	struct pawl_nvrtc *nvrtc;

	snprintf(mock, sizeof(mock), "%s/tests/.libs", PAWL_BUILD_DIR);
	setenv("PAWL_NVRTC", mock, 1);
	ck_assert_int_eq(pawl_nvrtc_find(path, &err), PAWL_ENVIRONMENT);
	ck_assert_ptr_nonnull(strstr(err.text, ": neither NVRTC nor a folder with libnvrtc.so.13"));
	strcat(mock, "/mock_cuda.so");
	setenv("PAWL_NVRTC", mock, 1);
	OK(pawl_nvrtc_find(path, &err));
	ck_assert_str_eq(path, mock);
	ck_assert_int_eq(pawl_nvrtc_open(path, &nvrtc, &err), PAWL_ENVIRONMENT);
	ck_assert_ptr_nonnull(
		strstr(err.text, "/mock_cuda.so is no usable NVRTC: no nvrtcVersion"));
	ck_assert_int_eq(pawl_nvrtc_open("/nowhere/libnvrtc.so", &nvrtc, &err), PAWL_ENVIRONMENT);
	ck_assert_int_eq(strncmp(err.text, "NVRTC: /nowhere/", 16), 0);
}
END_TEST

static void
run_in(const char *folder, const char *command)
{
	char all[1024];

	snprintf(all, sizeof(all), "cd %s && %s", folder, command);
	ck_assert_int_eq(system(all), 0);
}

/* Empty files stand for libraries. */
static void
expect_found(const char *folder, const char *place)
{
	char path[PAWL_NVRTC_PATH], wanted[PAWL_NVRTC_PATH];

	OK(pawl_nvrtc_find(path, &err));
	snprintf(wanted, sizeof(wanted), "%s/%s", folder, place);
	ck_assert_str_eq(path, wanted);
}

/* Each of `places` is taken once those before it are no longer there. */
struct place {
	const char *variable, *value, *library;
};

static void
expect_order(const struct place *places, int n)
{
	char folder[] = "/tmp/pawl-nvrtc-XXXXXX", text[PAWL_NVRTC_PATH];

	ck_assert_ptr_nonnull(mkdtemp(folder));
	for (int i = 0; i < n; i++) {
		snprintf(text, sizeof(text), "%s/%s", folder, places[i].value);
		setenv(places[i].variable, text, 1);
		snprintf(text, sizeof(text), "mkdir -p $(dirname %s) && touch %s",
			places[i].library, places[i].library);
		run_in(folder, text);
	}
	for (int i = 0; i < n; i++) {
		expect_found(folder, places[i].library);
		/* The folder of HOME has two. */
		if (i + 1 == n || strcmp(places[i].variable, places[n - 1].variable))
			unsetenv(places[i].variable);
		snprintf(text, sizeof(text), "rm %s", places[i].library);
		run_in(folder, text);
	}
	run_in(folder, "rm -r \"$PWD\"");
}

START_TEST(a_library_that_is_named_comes_first)
{
	static const struct place places[] = {
		{"PAWL_NVRTC", "named", "named/libnvrtc.so.13"},
		{"CUDA_PATH", "toolkit", "toolkit/lib64/libnvrtc.so.13"},
		{"CUDA_HOME", "other", "other/lib/libnvrtc.so.12"},
		{"VIRTUAL_ENV", "venv",
			"venv/lib/python3.11/site-packages/nvidia/cu13/lib/libnvrtc.so.13"},
	};

	expect_order(places, sizeof(places) / sizeof(*places));
}
END_TEST

START_TEST(a_library_in_the_home_folder_comes_last)
{
	static const struct place places[] = {
		{"HOME", "home",
			"home/.local/lib/python3.12/site-packages/nvidia/cu13/lib/libnvrtc.so.13"},
		{"PAWL_CACHE_DIR", "cache", "cache/nvrtc/nvidia/cu13/lib/libnvrtc.so.13"},
		{"XDG_CACHE_HOME", "xdg", "xdg/pawl/nvrtc/nvidia/cu13/lib/libnvrtc.so.13"},
		{"HOME", "home", "home/.cache/pawl/nvrtc/nvidia/cu13/lib/libnvrtc.so.13"},
	};
	static const char *const others[] = {
		"PAWL_NVRTC", "CUDA_PATH", "CUDA_HOME", "VIRTUAL_ENV", "PAWL_CACHE_DIR", "XDG_CACHE_HOME"};
	char path[PAWL_NVRTC_PATH];

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		unsetenv(others[i]);
	setenv("HOME", "/nowhere", 1);
	if (pawl_nvrtc_find(path, &err))
		expect_order(places, sizeof(places) / sizeof(*places));
	else
		pawl_skip("a_library_in_the_home_folder_comes_last", "the system has one");
}
END_TEST

/* A newer one before an older one; what is no file is passed over. */
START_TEST(the_newest_file_is_taken)
{
	char folder[] = "/tmp/pawl-nvrtc-XXXXXX";

	ck_assert_ptr_nonnull(mkdtemp(folder));
	unsetenv("PAWL_NVRTC");
	setenv("CUDA_PATH", folder, 1);
	run_in(folder, "mkdir lib lib64 && touch lib/libnvrtc.so.12 lib/libnvrtc.so.13 && "
		       "mkfifo lib64/libnvrtc.so.13");
	expect_found(folder, "lib/libnvrtc.so.13");
	run_in(folder, "rm lib/libnvrtc.so.13");
	expect_found(folder, "lib/libnvrtc.so.12");
	run_in(folder, "rm -r \"$PWD\"");
}
END_TEST

START_TEST(resources_are_read_from_the_report)
{
	static const char log[] =
		"ptxas info    : Compiling entry function 'step1_rows' for 'sm_90'\n"
		"ptxas info    : Function properties for step1_rows\n"
		"    8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads\n"
		"ptxas info    : Used 40 registers, used 1 barriers, 2052 bytes smem\n"
		"ptxas info    : Compiling entry function 'step1' for 'sm_90'\n"
		"    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
		"ptxas info    : Used 17 registers, used 0 barriers\n";
	struct pawl_cuda_resources r;

	pawl_cuda_report_resources(log, "step1_rows", &r);
	ck_assert(r.registers == 40 && r.shared_bytes == 2052 && r.stack_bytes == 8);
	ck_assert(r.spill_store_bytes == 4 && r.spill_load_bytes == 12);
	pawl_cuda_report_resources(log, "step1", &r);
	ck_assert(r.registers == 17 && r.shared_bytes == 0 && r.stack_bytes == 0);
	pawl_cuda_report_resources(log, "step", &r);
	ck_assert(r.registers == -1 && r.shared_bytes == -1);
	pawl_cuda_report_resources("", "step1", &r);
	ck_assert_int_eq(r.registers, -1);
}
END_TEST

START_TEST(a_complaint_is_about_a_kernel)
{
	struct pawl_program *program = program_of("exp");
	struct pawl_cuda_program cuda;
	const char *line, *at;
	char log[128];
	int32_t kernel;
	size_t n;
	int number = 1;

	OK(pawl_cuda_program_init(&cuda, program, &err));
	at = cuda.sources[0].bytes;
	for (; at < cuda.sources[0].bytes + cuda.kernels[0].at; at++)
		number += *at == '\n';
	snprintf(log, sizeof(log), "a warning\nkernels.cu(%d): error: no such thing\nmore",
		number + 1);
	pawl_cuda_report_complaint(&cuda, 0, log, &line, &n, &kernel);
	ck_assert_int_eq(kernel, 0);
	ck_assert(!strncmp(line, "kernels.cu(", 11) && line[n] == '\n');
	pawl_cuda_report_complaint(
		&cuda, 0, "kernels.cu(3): error: of the prelude", &line, &n, &kernel);
	ck_assert_int_eq(kernel, -1);
	ck_assert_int_gt(n, 0);
	snprintf(log, sizeof(log), "ptxas error : Entry function '%s' uses too much shared data",
		cuda.kernels[0].name);
	pawl_cuda_report_complaint(&cuda, 0, log, &line, &n, &kernel);
	ck_assert_int_eq(kernel, 0);
	pawl_cuda_report_complaint(&cuda, 0, "all is well", &line, &n, &kernel);
	ck_assert_int_eq(n, 0);
	pawl_cuda_program_release(&cuda);
	pawl_program_free(program);
}
END_TEST

/* NULL, having skipped the test, without a compiler. */
static struct pawl_nvrtc *
open_nvrtc(const char *test)
{
	char path[PAWL_NVRTC_PATH];
	struct pawl_nvrtc *nvrtc;

	if (pawl_nvrtc_find(path, &err) || pawl_nvrtc_open(path, &nvrtc, &err)) {
		pawl_skip(test, err.text);
		return NULL;
	}
	return nvrtc;
}

START_TEST(a_compiler_is_stopped_at_the_deadline)
{
	struct pawl_nvrtc *nvrtc = open_nvrtc("a_compiler_is_stopped_at_the_deadline");
	struct pawl_nvrtc_job job = {
		.source = "extern \"C\" __global__ void k(float *x) { *x = 1; }",
		.arch = "sm_90",
		.deadline_s = 1e-9};
	struct pawl_nvrtc_result result;
	int major, minor;

	if (!nvrtc)
		return;
	pawl_nvrtc_version(nvrtc, &major, &minor);
	if (major >= 13) {
		ck_assert_int_eq(pawl_nvrtc_compile(nvrtc, &job, &result, &err), PAWL_ENVIRONMENT);
		ck_assert_ptr_nonnull(strstr(err.text, "was stopped after 0 s"));
		pawl_nvrtc_result_release(&result);
	}
	job.deadline_s = 1000;
	OK(pawl_nvrtc_compile(nvrtc, &job, &result, &err));
	ck_assert(!result.ptx_arch && !memcmp(result.code, "\177ELF", 4));
	pawl_nvrtc_result_release(&result);
	pawl_nvrtc_close(nvrtc);
}
END_TEST

START_TEST(what_is_wrong_or_unknown_is_told_apart)
{
	struct pawl_nvrtc *nvrtc = open_nvrtc("what_is_wrong_or_unknown_is_told_apart");
	struct pawl_nvrtc_job job = {
		.source = "extern \"C\" __global__ void k(float *x) { *x = 1; }", .arch = "sm_70"};
	struct pawl_nvrtc_result result;

	if (!nvrtc)
		return;
	if (!pawl_nvrtc_knows(nvrtc, "sm_70")) {
		ck_assert_int_eq(pawl_nvrtc_compile(nvrtc, &job, &result, &err), PAWL_ENVIRONMENT);
		ck_assert_ptr_nonnull(strstr(err.text, "makes no code for sm_70"));
		pawl_nvrtc_result_release(&result);
	}
	job.arch = "sm_990";
	OK(pawl_nvrtc_compile(nvrtc, &job, &result, &err));
	ck_assert(result.ptx_arch >= 90 && strstr(result.code, ".visible .entry k("));
	ck_assert_int_eq(((const char *)result.code)[result.n_code - 1], 0);
	pawl_nvrtc_result_release(&result);
	job.arch = "sm_90";
	job.source = "__global__ void k() { nothing; }";
	ck_assert_int_eq(pawl_nvrtc_compile(nvrtc, &job, &result, &err), PAWL_INTERNAL);
	ck_assert_ptr_nonnull(strstr(result.log, "error"));
	pawl_nvrtc_result_release(&result);
	pawl_nvrtc_close(nvrtc);
}
END_TEST

/* Compiles a program by a compiler of its own and gives what that counted. */
static struct pawl_target_counters
compile_once(const char *folder, const char *arch, const char *op, struct pawl_cuda_image *image)
{
	const struct pawl_target_options options = {.cache_dir = folder};
	struct pawl_program *program = program_of(op);
	struct pawl_cuda_compiler *compiler;
	struct pawl_target_counters counters;

	OK(pawl_cuda_compiler_new(&options, arch, &compiler, &err));
	OK(pawl_cuda_compile(compiler, program, image, &err));
	pawl_cuda_compiler_counters(compiler, &counters);
	ck_assert_ptr_null(counters.cache_fault);
	ck_assert_str_eq(counters.cache_dir, folder);
	pawl_cuda_compiler_free(compiler);
	pawl_program_free(program);
	return counters;
}

/* Applies to every file of the folder; returns how many. */
static int
damage(const char *folder, bool remove_folder)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	char path[512];
	int n = 0;

	ck_assert_ptr_nonnull(dir);
	while ((entry = readdir(dir))) {
		int fd;

		if (*entry->d_name == '.')
			continue;
		n++;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		if (remove_folder) {
			ck_assert_int_eq(unlink(path), 0);
			continue;
		}
		fd = open(path, O_WRONLY);
		ck_assert_int_ge(fd, 0);
		ck_assert_int_ge(lseek(fd, -3, SEEK_END), 0);
		ck_assert_int_eq(write(fd, "?", 1), 1);
		close(fd);
	}
	closedir(dir);
	if (remove_folder)
		ck_assert_int_eq(rmdir(folder), 0);
	return n;
}

START_TEST(kept_code_is_taken_when_it_is_right)
{
	struct pawl_nvrtc *nvrtc = open_nvrtc("kept_code_is_taken_when_it_is_right");
	char folder[] = "/tmp/pawl-cuda-XXXXXX";
	struct pawl_cuda_image first, again;
	struct pawl_target_counters c;

	if (!nvrtc)
		return;
	pawl_nvrtc_close(nvrtc);
	ck_assert_ptr_nonnull(mkdtemp(folder));
	c = compile_once(folder, "sm_90", "exp", &first);
	ck_assert(c.kernel_compiles == 1 && c.kernels_read == 0);
	c = compile_once(folder, "sm_90", "exp", &again);
	ck_assert(c.kernel_compiles == 0 && c.kernels_read == 1);
	ck_assert_int_eq(first.n_bytes, again.n_bytes);
	ck_assert_int_eq(first.hash, again.hash);
	ck_assert(first.n_bytes > 0 && !memcmp(first.binaries[0].bytes, again.binaries[0].bytes,
					       first.binaries[0].n_bytes));
	ck_assert_int_gt(again.resources[0].registers, 0);
	ck_assert(!memcmp(first.resources, again.resources, sizeof(*first.resources)));
	ck_assert_int_ge(first.nvrtc_major, 12);
	ck_assert_int_eq(first.nvrtc_major, again.nvrtc_major);
	ck_assert_int_eq(first.nvrtc_minor, again.nvrtc_minor);
	pawl_cuda_image_release(&again);
	/* Another architecture, another program, a damaged entry. */
	c = compile_once(folder, "sm_80", "exp", &again);
	ck_assert_int_eq(c.kernel_compiles, 1);
	pawl_cuda_image_release(&again);
	c = compile_once(folder, "sm_90", "tanh", &again);
	ck_assert_int_eq(c.kernel_compiles, 1);
	ck_assert(again.hash != first.hash);
	pawl_cuda_image_release(&again);
	damage(folder, false);
	c = compile_once(folder, "sm_90", "exp", &again);
	ck_assert(c.kernel_compiles == 1 && c.kernels_read == 0);
	pawl_cuda_image_release(&again);
	pawl_cuda_image_release(&first);
	damage(folder, true);
}
END_TEST

START_TEST(a_folder_that_takes_nothing_costs_only_time)
{
	struct pawl_nvrtc *nvrtc = open_nvrtc("a_folder_that_takes_nothing_costs_only_time");
	char folder[] = "/tmp/pawl-cuda-XXXXXX";
	const struct pawl_target_options options = {.cache_dir = folder};
	struct pawl_program *program = program_of("exp");
	struct pawl_cuda_compiler *compiler;
	struct pawl_target_counters counters;
	struct pawl_cuda_image image;

	if (nvrtc) {
		pawl_nvrtc_close(nvrtc);
		ck_assert_ptr_nonnull(mkdtemp(folder));
		OK(pawl_cuda_compiler_new(&options, "sm_90", &compiler, &err));
		ck_assert_int_eq(rmdir(folder), 0);
		OK(pawl_cuda_compile(compiler, program, &image, &err));
		pawl_cuda_image_release(&image);
		pawl_cuda_compiler_counters(compiler, &counters);
		ck_assert_int_eq(counters.kernel_compiles, 1);
		ck_assert_ptr_nonnull(counters.cache_fault);
		ck_assert_ptr_nonnull(strstr(counters.cache_fault, folder));
		pawl_cuda_compiler_free(compiler);
	}
	pawl_program_free(program);
}
END_TEST

/* A cache that grew asks for the same code again. */
START_TEST(a_process_compiles_a_source_once)
{
	struct pawl_nvrtc *nvrtc = open_nvrtc("a_process_compiles_a_source_once");
	struct pawl_program *program = program_of("exp");
	struct pawl_cuda_compiler *compiler;
	struct pawl_target_counters counters;
	struct pawl_cuda_image image;
	int i;

	if (nvrtc) {
		pawl_nvrtc_close(nvrtc);
		OK(pawl_cuda_compiler_new(NULL, "sm_90", &compiler, &err));
		for (i = 0; i < 2; i++) {
			OK(pawl_cuda_compile(compiler, program, &image, &err));
			pawl_cuda_image_release(&image);
		}
		pawl_cuda_compiler_counters(compiler, &counters);
		ck_assert(counters.kernel_compiles == 1 && counters.kernels_read == 0);
		pawl_cuda_compiler_free(compiler);
	}
	pawl_program_free(program);
}
END_TEST

Suite *
pawl_cuda_compile_suite(void)
{
	Suite *suite = suite_create("cuda_compile");
	TCase *tcase = tcase_create("compile");

	tcase_add_test(tcase, a_library_that_will_not_do_is_named);
	tcase_add_test(tcase, a_library_that_is_named_comes_first);
	tcase_add_test(tcase, a_library_in_the_home_folder_comes_last);
	tcase_add_test(tcase, the_newest_file_is_taken);
	tcase_add_test(tcase, resources_are_read_from_the_report);
	tcase_add_test(tcase, a_complaint_is_about_a_kernel);
	tcase_add_test(tcase, a_compiler_is_stopped_at_the_deadline);
	tcase_add_test(tcase, what_is_wrong_or_unknown_is_told_apart);
	tcase_add_test(tcase, kept_code_is_taken_when_it_is_right);
	tcase_add_test(tcase, a_folder_that_takes_nothing_costs_only_time);
	tcase_add_test(tcase, a_process_compiles_a_source_once);
	suite_add_tcase(suite, tcase);
	return suite;
}
