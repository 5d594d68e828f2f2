/*
 * Structs that cross the border start with their size, as the other side knows it.  `first` is the
 * size of version 1, which all have.  What lies beyond what one side knows is 0 to the other.
 */
#ifndef PAWL_PLUGINS_HOST_STRUCT_H
#define PAWL_PLUGINS_HOST_STRUCT_H

#include <stdbool.h>
#include <stddef.h>

/* Not below first, a multiple of 8, and not absurd. */
bool pawl_host_has_size(const void *given, size_t first);
/* False, and nothing is done, when it has not. */
bool pawl_host_read(void *known, size_t n_known, size_t first, const void *given);
bool pawl_host_write(void *given, size_t first, const void *known, size_t n_known);

#endif
