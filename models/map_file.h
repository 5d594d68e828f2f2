/* Read-only memory map of a regular file. */
#ifndef PAWL_MODELS_MAP_FILE_H
#define PAWL_MODELS_MAP_FILE_H

#include <stddef.h>

#include "ir/status.h"

struct pawl_file_map {
	const unsigned char *bytes; /* page aligned; NULL when nothing is mapped */
	size_t n_bytes;
};

/*
 * Maps the whole file.  PAWL_ENVIRONMENT with the reason when the system refuses,
 * PAWL_INVALID_FILE for an empty file and for anything but a regular file; never blocks on a
 * FIFO.  A file that another program shortens while it is mapped kills the reader by SIGBUS:
 * model files must be replaced by renaming, not rewritten in place.
 */
enum pawl_status pawl_file_map_init(
	struct pawl_file_map *map, const char *path, struct pawl_error *err);
void pawl_file_map_release(struct pawl_file_map *map);

/*
 * Tells the kernel that the whole pages inside [bytes, bytes + n_bytes) are not needed now.
 * They are read from the file again when touched.  The range must lie in the map.
 */
void pawl_file_map_drop(const struct pawl_file_map *map, const void *bytes, size_t n_bytes);

#endif
