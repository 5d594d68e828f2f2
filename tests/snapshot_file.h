/* A snapshot in a temporary file, and what every kind of it must refuse.  Everything asserts. */
#ifndef PAWL_TESTS_SNAPSHOT_FILE_H
#define PAWL_TESTS_SNAPSHOT_FILE_H

#include <stdio.h>

#include "runtime/kv_snapshot.h"

struct pawl_snapshot_file {
	char folder[64], path[128];
};

void pawl_snapshot_file_init(struct pawl_snapshot_file *file);
/* Nothing else may have been left in the folder. */
void pawl_snapshot_file_release(struct pawl_snapshot_file *file);

/* A sink that writes the file anew, until it is closed. */
struct pawl_kv_snapshot_sink pawl_snapshot_file_begin(const struct pawl_snapshot_file *file);
void pawl_snapshot_file_end(const struct pawl_kv_snapshot_sink *sink);

/* malloc'ed. */
char *pawl_snapshot_file_read(const struct pawl_snapshot_file *file, size_t *n);
void pawl_snapshot_file_write(const struct pawl_snapshot_file *file, const void *bytes, size_t n);

/* The status of opening it; err holds the reason. */
enum pawl_status pawl_snapshot_file_try(
	const struct pawl_snapshot_file *file, struct pawl_error *err);

/* Lengths from 0 on, each byte of the first n_front and 64 more, then each KiB, and a byte too many. */
void pawl_snapshot_file_truncate(const struct pawl_snapshot_file *file, size_t n_front);
/* Every bit of the first n_front bytes and 16 more, then one of every byte but a few. */
void pawl_snapshot_file_flip(const struct pawl_snapshot_file *file, size_t n_front);

#endif
