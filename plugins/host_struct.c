#include "plugins/host_struct.h"

#include <string.h>

/* Sizes of structs, and how far above those known here a newer host's may be. */
enum { UNIT = 8, MOST_BYTES = 1 << 16 };

bool
pawl_host_has_size(const void *given, size_t first)
{
	size_t n;

	memcpy(&n, given, sizeof(n));
	return n >= first && n % UNIT == 0 && n <= MOST_BYTES;
}

bool
pawl_host_read(void *known, size_t n_known, size_t first, const void *given)
{
	size_t n;

	if (!pawl_host_has_size(given, first))
		return false;
	memcpy(&n, given, sizeof(n));
	memset(known, 0, n_known);
	memcpy(known, given, n < n_known ? n : n_known);
	return true;
}

bool
pawl_host_write(void *given, size_t first, const void *known, size_t n_known)
{
	size_t n;

	if (!pawl_host_has_size(given, first))
		return false;
	memcpy(&n, given, sizeof(n));
	memset(given, 0, n);
	memcpy(given, known, n < n_known ? n : n_known);
	memcpy(given, &n, sizeof(n));
	return true;
}
