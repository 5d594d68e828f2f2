#include "runtime/kv_layout.h"

#include "ir/woven_block.h"

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
	if (type->layout == PAWL_LAYOUT_K16) {
		planes.width = width;
		planes.unit = pawl_dtype_info(type->dtype)->block_bytes;
	}
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

/* Where the 16 units at u of the rows about row p of a plane of layout K16 lie. */
static int64_t
woven_at(const struct pawl_kv_planes *planes, int64_t p, int64_t u)
{
	return (p / GROUP * (planes->row_bytes / planes->unit) + u) * GROUP * planes->unit;
}

static bool
has_woven_blocks(const struct pawl_kv_planes *planes)
{
	return planes->unit * planes->width != planes->row_bytes;
}

/* Row p of a plane of layout K16. */
static void
read_woven(const struct pawl_kv_planes *planes, const char *plane, int64_t p, char *row)
{
	int64_t n = planes->row_bytes / planes->unit, lane = p % GROUP;

	for (int64_t u = 0; u < n; u++, row += planes->unit) {
		const char *at = plane + woven_at(planes, p, u);

		if (has_woven_blocks(planes))
			pawl_woven_block_read(at, (int)lane, row);
		else
			memcpy(row, at + lane * planes->unit, (size_t)planes->unit);
	}
}

static void
write_woven(const struct pawl_kv_planes *planes, char *plane, int64_t p, const char *row)
{
	int64_t n = planes->row_bytes / planes->unit, lane = p % GROUP;

	for (int64_t u = 0; u < n; u++, row += planes->unit) {
		char *at = plane + woven_at(planes, p, u);

		if (has_woven_blocks(planes))
			pawl_woven_block_write(at, (int)lane, row);
		else
			memcpy(at + lane * planes->unit, row, (size_t)planes->unit);
	}
}

void
pawl_kv_read_positions(
	const struct pawl_kv_planes *planes, const void *bytes, int64_t n, void *out)
{
	char *to = out;

	for (int64_t i = 0; i < planes->n; i++, to += n * planes->row_bytes) {
		const char *plane = (const char *)bytes + i * planes->positions * planes->row_bytes;

		if (!planes->width)
			memcpy(to, plane, (size_t)(n * planes->row_bytes));
		for (int64_t p = 0; planes->width && p < n; p++)
			read_woven(planes, plane, p, to + p * planes->row_bytes);
	}
}

void
pawl_kv_write_positions(const struct pawl_kv_planes *planes, void *bytes, int64_t n, const void *in)
{
	const char *from = in;

	for (int64_t i = 0; i < planes->n; i++, from += n * planes->row_bytes) {
		char *plane = (char *)bytes + i * planes->positions * planes->row_bytes;

		if (!planes->width)
			memcpy(plane, from, (size_t)(n * planes->row_bytes));
		for (int64_t p = 0; planes->width && p < n; p++)
			write_woven(planes, plane, p, from + p * planes->row_bytes);
	}
}
