#include "tests/text_files.h"

#include "ir/parse.h"

#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
path_of(const char *name, char *out, size_t n)
{
	const char *folder = getenv("top_srcdir");

	snprintf(out, n, "%s/tests/text/%s", folder, name);
}

char *
pawl_test_text(const char *name, size_t *n)
{
	char path[4096];
	FILE *file;
	char *text;
	long size;

	path_of(name, path, sizeof(path));
	file = fopen(path, "rb");
	ck_assert_msg(file != NULL, "%s cannot be opened", path);
	ck_assert_int_eq(fseek(file, 0, SEEK_END), 0);
	size = ftell(file);
	ck_assert_int_ge(size, 0);
	rewind(file);
	text = malloc((size_t)size + 1);
	ck_assert_ptr_nonnull(text);
	ck_assert_uint_eq(fread(text, 1, (size_t)size, file), (size_t)size);
	text[size] = '\0';
	fclose(file);
	*n = (size_t)size;
	return text;
}

struct pawl_graph *
pawl_test_graph(const char *name)
{
	struct pawl_graph *graph = NULL;
	struct pawl_error err = {0};
	size_t n;
	char *text = pawl_test_text(name, &n);

	pawl_parse(text, n, name, &graph, NULL, &err);
	ck_assert_msg(graph != NULL, "%s", err.text);
	free(text);
	return graph;
}

int
pawl_test_each_text(const char *folder, void (*check)(const char *name))
{
	char path[4096], name[512];
	struct dirent *entry;
	int n = 0;
	DIR *dir;

	path_of(folder, path, sizeof(path));
	dir = opendir(path);
	ck_assert_msg(dir != NULL, "%s cannot be opened", path);
	while ((entry = readdir(dir))) {
		size_t length = strlen(entry->d_name);

		if (length < 5 || strcmp(entry->d_name + length - 5, ".pawl") != 0)
			continue;
		snprintf(name, sizeof(name), "%s%s", folder, entry->d_name);
		check(name);
		n++;
	}
	closedir(dir);
	return n;
}
