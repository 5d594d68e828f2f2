#include "runtime/kv_layout.h"

#include <string.h>

#include "codegen/target.h"
#include "ir/woven_block.h"

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

static int64_t
whole_groups(const struct pawl_kv_planes *planes, int64_t n)
{
	return planes->width ? (n + GROUP - 1) / GROUP * GROUP : n;
}

enum pawl_status
pawl_kv_copy_positions(const struct pawl_kv_planes *to, struct pawl_storage *to_storage,
	const struct pawl_kv_planes *from, const struct pawl_storage *from_storage, int64_t n,
	struct pawl_error *err)
{
	const struct pawl_copy_pieces pieces = {.n = from->n,
		.bytes = whole_groups(from, n) * from->row_bytes,
		.to_pitch = to->positions * to->row_bytes,
		.from_pitch = from->positions * from->row_bytes};

	return pawl_storage_copy(to_storage, 0, from_storage, 0, &pieces, err);
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

/* The first positions of a woven storage that the host cannot read, in whole groups. */
struct stage {
	struct pawl_kv_planes planes;
	struct pawl_copy_pieces down, up;
	struct pawl_block block;
};

static enum pawl_status
stage_init(struct stage *stage, const struct pawl_kv_planes *planes, int64_t n,
	struct pawl_error *err)
{
	int64_t there = planes->positions * planes->row_bytes, here;

	stage->planes = *planes;
	stage->planes.positions = whole_groups(planes, n);
	here = stage->planes.positions * planes->row_bytes;
	stage->down = (struct pawl_copy_pieces){planes->n, here, here, there};
	stage->up = (struct pawl_copy_pieces){planes->n, here, there, here};
	return pawl_block_init(&stage->block, planes->n * here, err);
}

/* Rows lie in logical order but for their pitch. */
static struct pawl_copy_pieces
rows(const struct pawl_kv_planes *planes, int64_t n)
{
	return (struct pawl_copy_pieces){planes->n, n * planes->row_bytes, n * planes->row_bytes,
		planes->positions * planes->row_bytes};
}

enum pawl_status
pawl_kv_fetch_positions(const struct pawl_kv_planes *planes, const struct pawl_storage *storage,
	int64_t n, void *out, struct pawl_error *err)
{
	const struct pawl_copy_pieces pieces = rows(planes, n);
	struct stage stage;
	enum pawl_status status;

	if (!storage->device) {
		pawl_kv_read_positions(planes, storage->bytes, n, out);
		return PAWL_OK;
	}
	if (!planes->width)
		return pawl_storage_read(storage, 0, out, &pieces, err);
	status = stage_init(&stage, planes, n, err);
	if (status)
		return status;
	status = pawl_storage_read(storage, 0, stage.block.bytes, &stage.down, err);
	if (!status)
		pawl_kv_read_positions(&stage.planes, stage.block.bytes, n, out);
	pawl_block_release(&stage.block);
	return status;
}

enum pawl_status
pawl_kv_put_positions(const struct pawl_kv_planes *planes, struct pawl_storage *storage, int64_t n,
	const void *in, struct pawl_error *err)
{
	struct pawl_copy_pieces pieces = rows(planes, n);
	struct stage stage;
	enum pawl_status status;

	if (!storage->device) {
		pawl_kv_write_positions(planes, storage->bytes, n, in);
		return PAWL_OK;
	}
	if (!planes->width) {
		pieces.to_pitch = pieces.from_pitch;
		pieces.from_pitch = pieces.bytes;
		return pawl_storage_write(storage, 0, in, &pieces, err);
	}
	status = stage_init(&stage, planes, n, err);
	if (status)
		return status;
	pawl_kv_write_positions(&stage.planes, stage.block.bytes, n, in);
	status = pawl_storage_write(storage, 0, stage.block.bytes, &stage.up, err);
	pawl_block_release(&stage.block);
	return status;
}
