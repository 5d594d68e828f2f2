#include "tests/data_file.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

char *
pawl_test_data(const char *name, size_t *n)
{
	const char *folder = getenv("top_srcdir");
	char path[4096];
	FILE *file;
	long size;
	char *bytes;

	snprintf(path, sizeof(path), "%s/tests/data/%s", folder, name);
	file = fopen(path, "rb");
	ck_assert_msg(file != NULL, "%s cannot be opened", path);
	ck_assert_int_eq(fseek(file, 0, SEEK_END), 0);
	size = ftell(file);
	ck_assert_int_ge(size, 0);
	rewind(file);
	bytes = malloc((size_t)size + 1);
	ck_assert_ptr_nonnull(bytes);
	ck_assert_uint_eq(fread(bytes, 1, (size_t)size, file), (size_t)size);
	bytes[size] = 0;
	fclose(file);
	*n = (size_t)size;
	return bytes;
}
