#include "models/map_file.h"

#include "models/gguf.h"
#include "tests/bad_gguf_corpus.h"
#include "tests/gguf_build.h"
#include "tests/skip.h"
#include "tests/suites.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "pawl-map-XXXXXX";
static char path[sizeof(folder) + 16];
static struct pawl_gguf *gguf;
static struct pawl_error err;

static void
make_folder(void)
{
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/m.gguf", folder);
}

static void
remove_folder(void)
{
	unlink(path);
	rmdir(folder);
	memcpy(folder + sizeof(folder) - 7, "XXXXXX", 6);
}

static void
write_file(const void *bytes, size_t n)
{
	FILE *file = fopen(path, "wb");

	ck_assert_ptr_nonnull(file);
	ck_assert_uint_eq(fwrite(bytes, 1, n, file), n);
	ck_assert_int_eq(fclose(file), 0);
}

static void
check_refusal(const char *name, enum pawl_status status, const char *reason)
{
	char text[1200];

	ck_assert_int_eq(pawl_gguf_open(name, &gguf, &err), status);
	ck_assert_int_eq(err.status, status);
	snprintf(text, sizeof(text), "%s: %s", name, reason);
	ck_assert_str_eq(err.text, text);
}

START_TEST(a_file_is_read_in_place)
{
	const struct pawl_gguf_tensor *tensor;
	size_t n;
	void *bytes = pawl_small_gguf(3, &n);

	write_file(bytes, n);
	free(bytes);
	ck_assert_msg(pawl_gguf_open(path, &gguf, &err) == PAWL_OK, "%s", err.text);
	ck_assert_uint_eq(gguf->n_bytes, n);
	ck_assert_int_eq(pawl_gguf_need_tensor(gguf, "vector", &tensor, &err), PAWL_OK);
	ck_assert_uint_eq((size_t)tensor->data % 32, 0);
	ck_assert_mem_eq(tensor->data, ((const float[]){1.0f, 2.0f, 3.0f}), 12);
	pawl_gguf_free(gguf);
}
END_TEST

START_TEST(errors_of_a_file_name_its_path)
{
	write_file("GGUF\1\0\0\0", 8);
	check_refusal(path, PAWL_INVALID_FILE, "byte 4: version: 1 is not read (2 and 3 are)");
}
END_TEST

START_TEST(what_is_no_file_is_refused)
{
	check_refusal(path, PAWL_ENVIRONMENT, "cannot open: No such file or directory");
	check_refusal("", PAWL_ENVIRONMENT, "cannot open: No such file or directory");
	check_refusal(folder, PAWL_INVALID_FILE, "is a directory, not a file");
	check_refusal("/dev/null", PAWL_INVALID_FILE, "is not a regular file");
	write_file("", 0);
	check_refusal(path, PAWL_INVALID_FILE, "byte 0: the file is empty");
	unlink(path);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	check_refusal(path, PAWL_INVALID_FILE, "is not a regular file");
}
END_TEST

START_TEST(a_file_without_permission_is_refused)
{
	if (!geteuid()) {
		pawl_skip("a_file_without_permission_is_refused", "root may read every file");
		return;
	}
	write_file("GGUF", 4);
	ck_assert_int_eq(chmod(path, 0), 0);
	check_refusal(path, PAWL_ENVIRONMENT, "cannot open: Permission denied");
}
END_TEST

/* Kilobytes of the mapping at `bytes` that are in this process; -1 when the system won't say. */
static long
resident(const void *bytes)
{
	FILE *file = fopen("/proc/self/smaps", "r");
	char line[512], start[32];
	bool inside = false;
	long kilobytes = -1;

	if (!file)
		return -1;
	snprintf(start, sizeof(start), "%lx-", (unsigned long)bytes);
	while (kilobytes < 0 && fgets(line, sizeof(line), file)) {
		inside = inside || !strncmp(line, start, strlen(start));
		if (inside)
			sscanf(line, "Rss: %ld", &kilobytes);
	}
	fclose(file);
	return kilobytes;
}

START_TEST(dropped_pages_leave_and_come_back)
{
	enum { N = 1 << 20 };
	struct pawl_gguf_build *b = pawl_gguf_build_new(3);
	unsigned char *data = malloc(N);
	const struct pawl_gguf_tensor *tensor;
	long before, after;
	size_t i;

	for (i = 0; i < N; i++)
		data[i] = (unsigned char)(i * 7 >> 4);
	pawl_gguf_build_tensor(b, "big", PAWL_DTYPE_I8, 1, (int64_t[]){N}, data);
	pawl_gguf_build_write(b, path);
	ck_assert_msg(pawl_gguf_open(path, &gguf, &err) == PAWL_OK, "%s", err.text);
	tensor = &gguf->tensors[0];
	ck_assert_mem_eq(tensor->data, data, N);
	before = resident(gguf->bytes);
	pawl_file_map_drop(&gguf->map, tensor->data, tensor->n_bytes);
	after = resident(gguf->bytes);
	if (before < 0)
		pawl_skip("dropped_pages_leave_and_come_back", "there is no /proc/self/smaps");
	else
		/* The first and the last page, which the data does not fill, stay. */
		ck_assert_msg(before >= N / 1024 && after == 2 * sysconf(_SC_PAGESIZE) / 1024,
			"%ld kB, then %ld kB", before, after);
	ck_assert_mem_eq(tensor->data, data, N);
	pawl_gguf_free(gguf);
	free(data);
}
END_TEST

START_TEST(dropping_borrowed_bytes_does_nothing)
{
	size_t n;
	void *bytes = pawl_small_gguf(3, &n);

	ck_assert_int_eq(pawl_gguf_parse(bytes, n, "memory", &gguf, &err), PAWL_OK);
	pawl_file_map_drop(&gguf->map, gguf->tensors[0].data, gguf->tensors[0].n_bytes);
	ck_assert_mem_eq(gguf->tensors[0].data, ((const float[]){1.0f, 2.0f, 3.0f}), 12);
	pawl_gguf_free(gguf);
	free(bytes);
}
END_TEST

Suite *
pawl_map_file_suite(void)
{
	Suite *suite = suite_create("map_file");
	TCase *tcase = tcase_create("map_file");

	tcase_add_checked_fixture(tcase, make_folder, remove_folder);
	tcase_add_test(tcase, a_file_is_read_in_place);
	tcase_add_test(tcase, errors_of_a_file_name_its_path);
	tcase_add_test(tcase, what_is_no_file_is_refused);
	tcase_add_test(tcase, a_file_without_permission_is_refused);
	tcase_add_test(tcase, dropped_pages_leave_and_come_back);
	tcase_add_test(tcase, dropping_borrowed_bytes_does_nothing);
	suite_add_tcase(suite, tcase);
	return suite;
}
