/*
 * Kernels on disk: what was stored is found, whatever is not exactly that is a miss.
 */
#include "codegen/object_cache.h"

#include "tests/object_folder_fixture.h"
#include "tests/suites.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static char the_entry[512];

static void
note_entry(const char *path)
{
	snprintf(the_entry, sizeof(the_entry), "%s", path);
}

/* The bytes of the only entry. */
static size_t
read_entry(char *bytes, size_t most)
{
	size_t n;
	FILE *file;

	ck_assert_int_eq(each_entry(note_entry), 1);
	file = fopen(the_entry, "rb");
	ck_assert_ptr_nonnull(file);
	n = fread(bytes, 1, most, file);
	fclose(file);
	return n;
}

static void
write_entry(const char *bytes, size_t n)
{
	FILE *file = fopen(the_entry, "wb");

	ck_assert_ptr_nonnull(file);
	ck_assert_uint_eq(fwrite(bytes, 1, n, file), n);
	ck_assert_int_eq(fclose(file), 0);
	ck_assert_int_eq(chmod(the_entry, 0600), 0);
}

static bool
finds(const struct pawl_object_cache *cache, const char *key, const char *object)
{
	size_t size;
	char *found = pawl_object_cache_find(cache, key, &size);
	bool same = found && size == strlen(object) && !memcmp(found, object, size);

	ck_assert_msg(!found || same, "another object was found");
	free(found);
	return same;
}

static void
open_cache(struct pawl_object_cache *cache)
{
	make_folder();
	ck_assert_msg(pawl_object_cache_open(cache, folder, &err) == PAWL_OK, "%s", err.text);
}

START_TEST(what_is_stored_is_found)
{
	struct pawl_object_cache cache;

	open_cache(&cache);
	ck_assert(!finds(&cache, "key", "object"));
	ck_assert_int_eq(pawl_object_cache_store(&cache, "key", "object", 6, &err), PAWL_OK);
	ck_assert(finds(&cache, "key", "object"));
	ck_assert(!finds(&cache, "kez", "object"));
	ck_assert_int_eq(pawl_object_cache_store(&cache, "key", "newer", 5, &err), PAWL_OK);
	ck_assert(finds(&cache, "key", "newer"));
	ck_assert_int_eq(each_entry(NULL), 1);
	pawl_object_cache_release(&cache);
	ck_assert(!finds(&cache, "key", "newer"));
	ck_assert_int_eq(pawl_object_cache_store(&cache, "key", "object", 6, &err), PAWL_OK);
	remove_folder();
}
END_TEST

START_TEST(damage_is_a_miss)
{
	char bytes[256], changed[257], place[sizeof(the_entry)];
	struct pawl_object_cache cache;
	size_t n, i;

	open_cache(&cache);
	ck_assert_int_eq(pawl_object_cache_store(&cache, "key", "object", 6, &err), PAWL_OK);
	n = read_entry(bytes, sizeof(bytes));
	ck_assert_uint_eq(n, sizeof(struct pawl_object_header) + 9);
	for (i = 0; i < n; i++) {
		write_entry(bytes, i);
		ck_assert_msg(!finds(&cache, "key", "object"), "cut to %zu bytes", i);
	}
	for (i = 0; i < 8 * n; i++) {
		memcpy(changed, bytes, n);
		changed[i / 8] ^= (char)(1 << i % 8);
		write_entry(changed, n);
		ck_assert_msg(!finds(&cache, "key", "object"), "bit %zu flipped", i);
	}
	memcpy(changed, bytes, n);
	changed[n] = 0;
	write_entry(changed, n + 1);
	ck_assert(!finds(&cache, "key", "object"));
	write_entry(bytes, n);
	ck_assert(finds(&cache, "key", "object"));
	/* An entry of another key under this one's name, as of equal hashes. */
	strcpy(place, the_entry);
	ck_assert_int_eq(remove(place), 0);
	ck_assert_int_eq(pawl_object_cache_store(&cache, "other", "object", 6, &err), PAWL_OK);
	ck_assert_int_eq(each_entry(note_entry), 1);
	ck_assert_int_eq(rename(the_entry, place), 0);
	ck_assert(!finds(&cache, "key", "object"));
	pawl_object_cache_release(&cache);
	remove_folder();
}
END_TEST

START_TEST(what_others_could_have_written_is_not_run)
{
	struct pawl_object_cache cache;
	char target[600];

	open_cache(&cache);
	ck_assert_int_eq(pawl_object_cache_store(&cache, "key", "object", 6, &err), PAWL_OK);
	each_entry(note_entry);
	ck_assert_int_eq(chmod(the_entry, 0620), 0);
	ck_assert(!finds(&cache, "key", "object"));
	ck_assert_int_eq(chmod(the_entry, 0600), 0);
	ck_assert(finds(&cache, "key", "object"));
	/* A link in its place, and a fifo, which must not be waited for. */
	snprintf(target, sizeof(target), "%s.there", the_entry);
	ck_assert_int_eq(rename(the_entry, target), 0);
	ck_assert_int_eq(symlink(target, the_entry), 0);
	ck_assert(!finds(&cache, "key", "object"));
	ck_assert_int_eq(remove(the_entry), 0);
	ck_assert_int_eq(mkfifo(the_entry, 0600), 0);
	ck_assert(!finds(&cache, "key", "object"));
	pawl_object_cache_release(&cache);
	ck_assert_int_eq(chmod(folder, 0770), 0);
	ck_assert_int_eq(pawl_object_cache_open(&cache, folder, &err), PAWL_ENVIRONMENT);
	ck_assert_msg(strstr(err.text, folder) && strstr(err.text, "others may write"), "%s",
		err.text);
	ck_assert_int_eq(cache.folder, -1);
	ck_assert_int_eq(chmod(folder, 0700), 0);
	snprintf(target, sizeof(target), "%s.link/", folder);
	ck_assert_int_eq(pawl_object_cache_open(&cache, folder, &err), PAWL_OK);
	pawl_object_cache_release(&cache);
	target[strlen(target) - 1] = '\0';
	ck_assert_int_eq(symlink(folder, target), 0);
	ck_assert_int_eq(pawl_object_cache_open(&cache, target, &err), PAWL_ENVIRONMENT);
	strcat(target, "/");
	ck_assert_int_eq(pawl_object_cache_open(&cache, target, &err), PAWL_ENVIRONMENT);
	target[strlen(target) - 1] = '\0';
	ck_assert_int_eq(remove(target), 0);
	remove_folder();
}
END_TEST

/* The signal that ends a process which writes too much is neither raised nor lost. */
START_TEST(a_file_that_may_not_grow_costs_only_time)
{
	struct pawl_object_cache cache;
	struct rlimit limit, small;
	char object[4096] = {0};
	sigset_t pending;

	open_cache(&cache);
	ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
	small = limit;
	small.rlim_cur = 1024;
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
	ck_assert_int_eq(pawl_object_cache_store(&cache, "key", object, sizeof(object), &err),
		PAWL_ENVIRONMENT);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	ck_assert_msg(strstr(err.text, folder) && strstr(err.text, strerror(EFBIG)), "%s", err.text);
	ck_assert_int_eq(each_entry(NULL), 0);
	ck_assert_int_eq(sigpending(&pending), 0);
	ck_assert(!sigismember(&pending, SIGXFSZ));
	ck_assert_int_eq(
		pawl_object_cache_store(&cache, "key", object, sizeof(object), &err), PAWL_OK);
	pawl_object_cache_release(&cache);
	remove_folder();
}
END_TEST

/* An empty file of the folder that was last changed so many seconds ago. */
static void
make_file(const char *name, int age)
{
	const struct timespec then = {time(NULL) - age, 0}, times[] = {then, then};
	char path[512];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "w");
	ck_assert_ptr_nonnull(file);
	fclose(file);
	ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
}

START_TEST(what_ended_writers_left_is_removed)
{
	enum { OLD = 700, YOUNG = 500 };
	static const char *const kept[] = {"0123456789abcdef.o", "0123456789abcdef.o.",
		"0123456789abcdef.o.12", "0123456789abcdef.o.x.0x12", "0123456789abcde.o.12.0x12",
		"0123456789abcdeg.o.12.0x12", "notes.o.12.0x12"};
	enum { N_KEPT = sizeof(kept) / sizeof(kept[0]) };
	struct pawl_object_cache cache;

	open_cache(&cache);
	ck_assert_int_eq(pawl_object_cache_store(&cache, "key", "object", 6, &err), PAWL_OK);
	for (int i = 0; i < N_KEPT; i++)
		make_file(kept[i], OLD);
	make_file("0123456789abcdef.o.12.0x7ffc12", YOUNG);
	make_file("0123456789abcdef.o.13.0x7ffc12", OLD);
	make_file("fedcba9876543210.o.12.0x7ffc12", OLD);
	ck_assert_int_eq(each_entry(NULL), 1 + N_KEPT + 3);
	pawl_object_cache_release(&cache);
	ck_assert_int_eq(pawl_object_cache_open(&cache, folder, &err), PAWL_OK);
	ck_assert_int_eq(each_entry(NULL), 1 + N_KEPT + 1);
	ck_assert(finds(&cache, "key", "object"));
	make_file("0123456789abcdef.o.12.0x7ffc12", OLD);
	pawl_object_cache_release(&cache);
	ck_assert_int_eq(pawl_object_cache_open(&cache, folder, &err), PAWL_OK);
	ck_assert_int_eq(each_entry(NULL), 1 + N_KEPT);
	pawl_object_cache_release(&cache);
	remove_folder();
}
END_TEST

static void
expect_refused(const char *path, const char *why)
{
	struct pawl_object_cache cache;

	ck_assert_int_eq(pawl_object_cache_open(&cache, path, &err), PAWL_ENVIRONMENT);
	ck_assert_msg(strstr(err.text, why) != NULL, "'%s' does not say '%s'", err.text, why);
	ck_assert_int_eq(cache.folder, -1);
	ck_assert_ptr_null(cache.path);
}

START_TEST(why_a_folder_is_not_used)
{
	char path[128], why[512], *long_path = malloc(10001);

	make_folder();
	make_file("file", 0);
	snprintf(path, sizeof(path), "%s/file/below/deep", folder);
	snprintf(why, sizeof(why), "%s: %s/file/below: %s", path, folder, strerror(ENOTDIR));
	expect_refused(path, why);
	if (geteuid()) {
		ck_assert_int_eq(chmod(folder, 0500), 0);
		snprintf(path, sizeof(path), "%s/a/b", folder);
		snprintf(why, sizeof(why), "%s: %s/a: %s", path, folder, strerror(EACCES));
		expect_refused(path, why);
		ck_assert_int_eq(chmod(folder, 0700), 0);
	}
	snprintf(path, sizeof(path), "%s/file", folder);
	snprintf(why, sizeof(why), "%s: %s", path, strerror(ENOTDIR));
	expect_refused(path, why);
	snprintf(path, sizeof(path), "%s/link", folder);
	ck_assert_int_eq(symlink(folder, path), 0);
	snprintf(why, sizeof(why), "%s: a link, which is not followed", path);
	expect_refused(path, why);
	ck_assert_int_eq(remove(path), 0);
	ck_assert_int_eq(symlink("nowhere", path), 0);
	expect_refused(path, why);
	memset(long_path, 'x', 10000);
	long_path[10000] = '\0';
	expect_refused(long_path, strerror(ENAMETOOLONG));
	free(long_path);
	remove_folder();
}
END_TEST

START_TEST(folders_are_made)
{
	struct pawl_object_cache cache;
	struct stat info;
	char path[128];

	make_folder();
	snprintf(path, sizeof(path), "%s/a/b", folder);
	ck_assert_msg(pawl_object_cache_open(&cache, path, &err) == PAWL_OK, "%s", err.text);
	ck_assert_int_eq(stat(path, &info), 0);
	ck_assert_uint_eq(info.st_mode & 0777, 0700);
	pawl_object_cache_release(&cache);
	ck_assert_int_eq(rmdir(path), 0);
	*strrchr(path, '/') = '\0';
	ck_assert_int_eq(rmdir(path), 0);
	snprintf(path, sizeof(path), "%s/file", folder);
	fclose(fopen(path, "w"));
	ck_assert_int_eq(pawl_object_cache_open(&cache, path, &err), PAWL_ENVIRONMENT);
	strcat(path, "/below");
	ck_assert_int_eq(pawl_object_cache_open(&cache, path, &err), PAWL_ENVIRONMENT);
	ck_assert_int_eq(pawl_object_cache_open(&cache, "", &err), PAWL_ENVIRONMENT);
	remove_folder();
}
END_TEST

Suite *
pawl_object_cache_suite(void)
{
	Suite *suite = suite_create("object_cache");
	TCase *tcase = tcase_create("object_cache");

	tcase_add_test(tcase, what_is_stored_is_found);
	tcase_add_test(tcase, damage_is_a_miss);
	tcase_add_test(tcase, what_others_could_have_written_is_not_run);
	tcase_add_test(tcase, a_file_that_may_not_grow_costs_only_time);
	tcase_add_test(tcase, what_ended_writers_left_is_removed);
	tcase_add_test(tcase, why_a_folder_is_not_used);
	tcase_add_test(tcase, folders_are_made);
	suite_add_tcase(suite, tcase);
	return suite;
}
