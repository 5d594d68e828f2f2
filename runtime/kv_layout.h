/*
 * Where the positions of a cache lie: the one place in runtime/ that knows.  A storage is a number
 * of planes, one for each combination of the dims before the axis of positions; a plane has a row
 * for each position, in one of two layouts:
 *   ROWS  row p at p * row_bytes
 *   K16   element i of row p at (p / 16 * width + i) * 16 + p % 16 elements; of q8_0, block b of row p
 *         is lane p % 16 of the 16 blocks of ir/woven_block.h at (p / 16 * width / 32 + b) * 544 bytes
 * The logical order of n positions is [plane][position][row], whatever the layout and capacity.
 */
#ifndef PAWL_RUNTIME_KV_LAYOUT_H
#define PAWL_RUNTIME_KV_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/storage.h"

struct pawl_kv_planes {
	int64_t n, positions, row_bytes;
	int64_t width; /* elements of a row, K16 only: otherwise 0 */
	int64_t unit;  /* bytes of a row that lie together, K16 only: an element or a block */
};

/* Of a static type whose axis of positions is `axis`; K16: the last but one. */
struct pawl_kv_planes pawl_kv_planes_of(const struct pawl_type *type, int axis);

/* Bytes of n positions in logical order. */
int64_t pawl_kv_logical_bytes(const struct pawl_kv_planes *planes, int64_t n);

/*
 * Copies positions 0 .. n - 1; the planes differ in `positions` only, both hold n.  K16 copies
 * whole groups of 16.  Errors of pawl_storage_copy.
 */
enum pawl_status pawl_kv_copy_positions(const struct pawl_kv_planes *to,
	struct pawl_storage *to_storage, const struct pawl_kv_planes *from,
	const struct pawl_storage *from_storage, int64_t n, struct pawl_error *err);

/* Positions 0 .. n - 1 to or from logical order, all on the host. */
void pawl_kv_read_positions(
	const struct pawl_kv_planes *planes, const void *bytes, int64_t n, void *out);
void pawl_kv_write_positions(
	const struct pawl_kv_planes *planes, void *bytes, int64_t n, const void *in);

/*
 * The same for a storage, wherever it is.  On a device, positions that share a group of 16 of K16
 * with the last one become 0 by a write.  Errors of pawl_storage_read and write, and
 * PAWL_OUT_OF_MEMORY.
 */
enum pawl_status pawl_kv_fetch_positions(const struct pawl_kv_planes *planes,
	const struct pawl_storage *storage, int64_t n, void *out, struct pawl_error *err);
enum pawl_status pawl_kv_put_positions(const struct pawl_kv_planes *planes,
	struct pawl_storage *storage, int64_t n, const void *in, struct pawl_error *err);

/*
 * Where positions first .. first + n - 1 of plane `plane` lie: one piece of n * row_bytes, first
 * and n being multiples of 16.
 */
static inline int64_t
pawl_kv_piece_at(const struct pawl_kv_planes *planes, int64_t plane, int64_t first)
{
	return (plane * planes->positions + first) * planes->row_bytes;
}

#endif
