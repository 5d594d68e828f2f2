#include "runtime/kv_layout.h"

#include <string.h>

enum { GROUP = 16 };

struct pawl_kv_planes
pawl_kv_planes_of(const struct pawl_type *type, int axis)
{
	struct pawl_kv_planes planes = {.n = 1, .positions = type->dim[axis].base};
	int64_t width = 1;

	for (int i = 0; i < axis; i++)
		planes.n *= type->dim[i].base;
	for (int i = axis + 1; i < type->rank; i++)
		width *= type->dim[i].base;
	planes.row_bytes = pawl_dtype_bytes(type->dtype, width);
	if (type->layout == PAWL_LAYOUT_K16)
		planes.width = width;
	return planes;
}

int64_t
pawl_kv_logical_bytes(const struct pawl_kv_planes *planes, int64_t n)
{
	return planes->n * planes->row_bytes * n;
}

void
pawl_kv_copy_positions(const struct pawl_kv_planes *to, void *to_bytes,
	const struct pawl_kv_planes *from, const void *from_bytes, int64_t n)
{
	int64_t rows = from->width ? (n + GROUP - 1) / GROUP * GROUP : n;

	for (int64_t i = 0; i < from->n; i++)
		memcpy((char *)to_bytes + i * to->positions * to->row_bytes,
			(const char *)from_bytes + i * from->positions * from->row_bytes,
			(size_t)(rows * from->row_bytes));
}

/* The byte of element e of row p of a plane of layout K16. */
static int64_t
woven(const struct pawl_kv_planes *planes, int64_t p, int64_t e)
{
	return ((p / GROUP * planes->width + e) * GROUP + p % GROUP) *
	       (planes->row_bytes / planes->width);
}

void
pawl_kv_read_positions(
	const struct pawl_kv_planes *planes, const void *bytes, int64_t n, void *out)
{
	int64_t plane_bytes = planes->positions * planes->row_bytes;
	int64_t each = planes->width ? planes->row_bytes / planes->width : planes->row_bytes * n;
	char *to = out;

	for (int64_t i = 0; i < planes->n; i++) {
		const char *plane = (const char *)bytes + i * plane_bytes;

		if (!planes->width) {
			memcpy(to, plane, (size_t)each);
			to += each;
			continue;
		}
		for (int64_t p = 0; p < n; p++)
			for (int64_t e = 0; e < planes->width; e++, to += each)
				memcpy(to, plane + woven(planes, p, e), (size_t)each);
	}
}

void
pawl_kv_write_positions(const struct pawl_kv_planes *planes, void *bytes, int64_t n, const void *in)
{
	int64_t plane_bytes = planes->positions * planes->row_bytes;
	int64_t each = planes->width ? planes->row_bytes / planes->width : planes->row_bytes * n;
	const char *from = in;

	for (int64_t i = 0; i < planes->n; i++) {
		char *plane = (char *)bytes + i * plane_bytes;

		if (!planes->width) {
			memcpy(plane, from, (size_t)each);
			from += each;
			continue;
		}
		for (int64_t p = 0; p < n; p++)
			for (int64_t e = 0; e < planes->width; e++, from += each)
				memcpy(plane + woven(planes, p, e), from, (size_t)each);
	}
}
