/*
 * A folder for kernels on disk, made and removed by each test of a suite.  Included by the one
 * source of a suite, whose own the statics are.
 */
#ifndef PAWL_TESTS_OBJECT_FOLDER_FIXTURE_H
#define PAWL_TESTS_OBJECT_FOLDER_FIXTURE_H

#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ir/status.h"

static struct pawl_error err;
static char folder[64];

static inline void
make_folder(void)
{
	strcpy(folder, "/tmp/pawl-test-cache.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
}

/* Calls fn for each entry's path; returns how many there are. */
static inline int
each_entry(void (*fn)(const char *path))
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	char path[512];
	int n = 0;

	ck_assert_ptr_nonnull(dir);
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		if (fn)
			fn(path);
		n++;
	}
	closedir(dir);
	return n;
}

static inline void
remove_entry(const char *path)
{
	ck_assert_int_eq(remove(path), 0);
}

static inline void
remove_folder(void)
{
	each_entry(remove_entry);
	ck_assert_int_eq(rmdir(folder), 0);
}

#endif
