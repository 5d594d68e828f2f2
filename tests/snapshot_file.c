#include "tests/snapshot_file.h"

#include <check.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

void
pawl_snapshot_file_init(struct pawl_snapshot_file *file)
{
	snprintf(file->folder, sizeof(file->folder), "/tmp/pawl-snapshot-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(file->folder));
	snprintf(file->path, sizeof(file->path), "%s/cache", file->folder);
}

void
pawl_snapshot_file_release(struct pawl_snapshot_file *file)
{
	unlink(file->path);
	ck_assert_msg(!rmdir(file->folder), "something was left in %s", file->folder);
}

struct pawl_kv_snapshot_sink
pawl_snapshot_file_begin(const struct pawl_snapshot_file *file)
{
	FILE *stream = fopen(file->path, "wb");

	ck_assert_ptr_nonnull(stream);
	return pawl_kv_snapshot_file_sink(stream);
}

void
pawl_snapshot_file_end(const struct pawl_kv_snapshot_sink *sink)
{
	ck_assert_int_eq(fclose(sink->ctx), 0);
}

char *
pawl_snapshot_file_read(const struct pawl_snapshot_file *file, size_t *n)
{
	struct stat info;
	FILE *stream = fopen(file->path, "rb");
	char *bytes;

	ck_assert_ptr_nonnull(stream);
	ck_assert_int_eq(fstat(fileno(stream), &info), 0);
	*n = (size_t)info.st_size;
	bytes = malloc(*n);
	ck_assert_uint_eq(fread(bytes, 1, *n, stream), *n);
	fclose(stream);
	return bytes;
}

void
pawl_snapshot_file_write(const struct pawl_snapshot_file *file, const void *bytes, size_t n)
{
	FILE *stream = fopen(file->path, "wb");

	ck_assert_ptr_nonnull(stream);
	ck_assert_uint_eq(fwrite(bytes, 1, n, stream), n);
	ck_assert_int_eq(fclose(stream), 0);
}

enum pawl_status
pawl_snapshot_file_try(const struct pawl_snapshot_file *file, struct pawl_error *err)
{
	struct pawl_kv_snapshot *snapshot = NULL;
	enum pawl_status status;

	*err = (struct pawl_error){0};
	status = pawl_kv_snapshot_open(file->path, &snapshot, err);
	ck_assert((status == PAWL_OK) == (snapshot != NULL));
	ck_assert(status == PAWL_OK || err->text[0]);
	pawl_kv_snapshot_free(snapshot);
	return status;
}

static void
expect(const struct pawl_snapshot_file *file, enum pawl_status wanted, const char *what, size_t at)
{
	struct pawl_error err;

	ck_assert_msg(pawl_snapshot_file_try(file, &err) == wanted, "%s %zu: %s", what, at, err.text);
}

void
pawl_snapshot_file_truncate(const struct pawl_snapshot_file *file, size_t n_front)
{
	size_t n, tried = 0;
	char *bytes = pawl_snapshot_file_read(file, &n);

	for (size_t at = 0; at < n; at += at < n_front + 64 ? 1 : 1024, tried++) {
		pawl_snapshot_file_write(file, bytes, at);
		expect(file, PAWL_INVALID_FILE, "length", at);
	}
	ck_assert_uint_gt(tried, n_front + 64);
	pawl_snapshot_file_write(file, bytes, n - 1);
	expect(file, PAWL_INVALID_FILE, "length", n - 1);
	bytes = realloc(bytes, n + 1);
	ck_assert_ptr_nonnull(bytes);
	bytes[n] = 0;
	pawl_snapshot_file_write(file, bytes, n + 1);
	expect(file, PAWL_INVALID_FILE, "length", n + 1);
	pawl_snapshot_file_write(file, bytes, n);
	expect(file, PAWL_OK, "length", n);
	free(bytes);
}

void
pawl_snapshot_file_flip(const struct pawl_snapshot_file *file, size_t n_front)
{
	size_t n;
	char *bytes = pawl_snapshot_file_read(file, &n);

	for (size_t bit = 0; bit < n * 8; bit += bit < (n_front + 16) * 8 ? 1 : 37) {
		bytes[bit / 8] ^= (char)(1 << bit % 8);
		pawl_snapshot_file_write(file, bytes, n);
		expect(file, PAWL_INVALID_FILE, "bit", bit);
		bytes[bit / 8] ^= (char)(1 << bit % 8);
	}
	pawl_snapshot_file_write(file, bytes, n);
	expect(file, PAWL_OK, "bit", n * 8);
	free(bytes);
}
