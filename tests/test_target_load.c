/* Finding, refusing and remembering target modules. */
#include "runtime/target_load.h"

#include "ir/build_id.h"
#include "runtime/device.h"
#include "tests/suites.h"

#include <errno.h>
#include <link.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct pawl_error err;
static char modules[4000]; /* PAWL_PLUGIN_PATH of the build */
static char own[64];       /* a folder for files of the tests */

static void
begin(void)
{
	const char *path = getenv("PAWL_PLUGIN_PATH");

	ck_assert_ptr_nonnull(path);
	snprintf(modules, sizeof(modules), "%s", path);
	strcpy(own, "modulesXXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(own));
}

static void
end(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", own);
	ck_assert_int_eq(system(command), 0);
}

/* Modules of the tests lie in another folder of the build. */
static void
look_in_tests(void)
{
	const char *build = getenv("top_builddir");
	char path[4200];

	ck_assert_ptr_nonnull(build);
	snprintf(path, sizeof(path), "%s/tests/.libs", build);
	setenv("PAWL_PLUGIN_PATH", path, 1);
}

START_TEST(the_reference_opens)
{
	const struct pawl_target_api *api, *again;
	struct pawl_device *device, *second;

	ck_assert_int_eq(pawl_target_load("ref", &api, &err), PAWL_OK);
	ck_assert_str_eq(api->name, "ref");
	ck_assert_str_eq(api->build_id, pawl_build_id);
	ck_assert_int_eq(pawl_target_load("ref", &again, &err), PAWL_OK);
	ck_assert_ptr_eq(api, again);
	ck_assert_int_eq(pawl_device_open("ref", NULL, &device, &err), PAWL_OK);
	ck_assert_int_eq(pawl_device_open("ref", NULL, &second, &err), PAWL_OK);
	ck_assert_uint_gt(device->id, 0);
	ck_assert_uint_gt(second->id, device->id);
	ck_assert(pawl_location_equal(device->location, PAWL_LOCATION_HOST));
	pawl_device_unref(device);
	pawl_device_unref(second);
}
END_TEST

START_TEST(names)
{
	static const char *const bad[] = {"", "../ref", "Ref", "ref/x", "a b",
		"a_name_that_is_much_too_long_to_be_the_name_of_a_target"};
	const struct pawl_target_api *api;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_int_eq(pawl_target_load(bad[i], &api, &err), PAWL_INVALID_ARGUMENT);
}
END_TEST

START_TEST(a_missing_module_is_remembered)
{
	const struct pawl_target_api *api;
	struct pawl_error first = {0};
	char text[256], command[8400];

	setenv("PAWL_PLUGIN_PATH", own, 1);
	ck_assert_int_eq(pawl_target_load("mine", &api, &first), PAWL_ENVIRONMENT);
	snprintf(text, sizeof(text), "target mine: no target_mine.so in %s or ", own);
	ck_assert_int_eq(strncmp(first.text, text, strlen(text)), 0);
	ck_assert_ptr_nonnull(strstr(first.text, " (PAWL_PLUGIN_PATH names other folders)"));
	/* It is there now, but the answer stands; under a name not asked for yet it is found. */
	snprintf(command, sizeof(command),
		"cp %s/target_ref.so %s/target_mine.so && cp %s/target_ref.so %s/target_new.so",
		modules, own, modules, own);
	ck_assert_int_eq(system(command), 0);
	ck_assert_int_eq(pawl_target_load("mine", &api, &err), PAWL_ENVIRONMENT);
	ck_assert_str_eq(err.text, first.text);
	/* It is found, and refused: a module is the target that it says it is. */
	ck_assert_int_eq(pawl_target_load("new", &api, &err), PAWL_ENVIRONMENT);
	ck_assert_ptr_nonnull(strstr(err.text, "is target ref"));
}
END_TEST

/* n bytes of target_ref.so as target_<name>.so in the test's own folder; n < 0: all. */
static void
copy_module(const char *name, long n)
{
	char command[8400];

	snprintf(command, sizeof(command), "head -c %ld %s/target_ref.so > %s/target_%s.so",
		n < 0 ? 1L << 40 : n, modules, own, name);
	ck_assert_int_eq(system(command), 0);
}

static long
module_bytes(void)
{
	char path[4200];
	struct stat info;

	snprintf(path, sizeof(path), "%s/target_ref.so", modules);
	ck_assert_int_eq(stat(path, &info), 0);
	return (long)info.st_size;
}

static void
refused(const char *name, const char *why)
{
	const struct pawl_target_api *api = NULL;

	ck_assert_int_eq(pawl_target_load(name, &api, &err), PAWL_ENVIRONMENT);
	ck_assert_msg(strstr(err.text, why) && strstr(err.text, own), "%s", err.text);
	ck_assert_ptr_null(api);
}

/* Whole, it is opened and asked who it is; cut anywhere, it is not opened at all. */
START_TEST(a_file_that_was_cut)
{
	long whole = module_bytes();
	char name[32];

	setenv("PAWL_PLUGIN_PATH", own, 1);
	copy_module("whole", -1);
	refused("whole", "is target ref");
	for (int i = 0; i < 8; i++) {
		long n = i == 0 ? 0 : i == 1 ? 40 : i == 2 ? 100 : i == 7 ? whole - 1 : whole * i / 8;

		snprintf(name, sizeof(name), "cut_%d", i);
		copy_module(name, n);
		refused(name, i < 2 ? "no 64-bit elf file" : "leave the file of ");
	}
}
END_TEST

/* The section headers are cut off and forgotten; the segments leave the file. */
START_TEST(a_file_whose_segments_leave_it)
{
	char path[96];
	FILE *file;

	copy_module("short", 4096);
	snprintf(path, sizeof(path), "%s/target_short.so", own);
	file = fopen(path, "r+");
	ck_assert_ptr_nonnull(file);
	fseek(file, (long)offsetof(ElfW(Ehdr), e_shoff), SEEK_SET);
	for (size_t i = 0; i < sizeof(((ElfW(Ehdr) *)0)->e_shoff); i++)
		fputc(0, file);
	fseek(file, (long)offsetof(ElfW(Ehdr), e_shnum), SEEK_SET);
	fputc(0, file);
	fputc(0, file);
	fclose(file);
	setenv("PAWL_PLUGIN_PATH", own, 1);
	refused("short", "leaves the file of ");
}
END_TEST

START_TEST(what_is_no_regular_file)
{
	char path[96];

	snprintf(path, sizeof(path), "%s/target_pipe.so", own);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	snprintf(path, sizeof(path), "%s/target_folder.so", own);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	setenv("PAWL_PLUGIN_PATH", own, 1);
	snprintf(path, sizeof(path), "%s/target_loop.so", own);
	ck_assert_int_eq(symlink("target_loop.so", path), 0);
	refused("loop", strerror(ELOOP));
	refused("pipe", "no regular file");
	refused("folder", "no regular file");
}
END_TEST

START_TEST(a_refused_file_does_not_end_the_search)
{
	const struct pawl_target_api *api = NULL;
	char path[4200];
	FILE *file;

	snprintf(path, sizeof(path), "%s/target_ref.so", own);
	file = fopen(path, "w");
	ck_assert_ptr_nonnull(file);
	fputs("not a library\n", file);
	fclose(file);
	snprintf(path, sizeof(path), "nowhere:%s:%s", own, modules);
	setenv("PAWL_PLUGIN_PATH", path, 1);
	ck_assert_int_eq(pawl_target_load("ref", &api, &err), PAWL_OK);
	ck_assert_str_eq(api->name, "ref");
}
END_TEST

/* Of two that are refused the first says why. */
START_TEST(the_first_reason_is_told)
{
	char path[4200];

	copy_module("plain", 40);
	snprintf(path, sizeof(path), "%s:%s/tests/.libs", own, getenv("top_builddir"));
	setenv("PAWL_PLUGIN_PATH", path, 1);
	refused("plain", "no 64-bit elf file");
}
END_TEST

START_TEST(another_build)
{
	const struct pawl_target_api *api = NULL;

	look_in_tests();
	ck_assert_int_eq(pawl_target_load("alien", &api, &err), PAWL_ENVIRONMENT);
	ck_assert_ptr_nonnull(strstr(err.text, "is of build 0.0.0-alien, this library of build "));
	ck_assert_ptr_nonnull(strstr(err.text, pawl_build_id));
	ck_assert_ptr_null(api);
}
END_TEST

START_TEST(a_library_that_is_no_target)
{
	const struct pawl_target_api *api = NULL;

	look_in_tests();
	ck_assert_int_eq(pawl_target_load("plain", &api, &err), PAWL_ENVIRONMENT);
	ck_assert_ptr_nonnull(strstr(err.text, "is no target: it has no pawl_target_query"));
	ck_assert_ptr_null(api);
}
END_TEST

Suite *
pawl_target_load_suite(void)
{
	Suite *suite = suite_create("target_load");
	TCase *tcase = tcase_create("target_load");

	tcase_add_checked_fixture(tcase, begin, end);
	tcase_add_test(tcase, the_reference_opens);
	tcase_add_test(tcase, names);
	tcase_add_test(tcase, a_missing_module_is_remembered);
	tcase_add_test(tcase, a_file_that_was_cut);
	tcase_add_test(tcase, a_file_whose_segments_leave_it);
	tcase_add_test(tcase, what_is_no_regular_file);
	tcase_add_test(tcase, a_refused_file_does_not_end_the_search);
	tcase_add_test(tcase, the_first_reason_is_told);
	tcase_add_test(tcase, another_build);
	tcase_add_test(tcase, a_library_that_is_no_target);
	suite_add_tcase(suite, tcase);
	return suite;
}
