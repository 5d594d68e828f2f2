/* Contents for the consts of random graphs. */
#include "ir/random.h"

#include "ir/half.h"
#include "ir/woven_block.h"
#include "ir/infer.h"
#include "ir/random_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint64_t
stream(uint64_t seed, const char *name)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ seed * UINT64_C(0x9e3779b97f4a7c15);

	for (; name && *name; name++)
		hash = (hash ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
	return hash;
}

/* Of [-1, 1), a multiple of 2^-23. */
static float
unit(uint64_t *state)
{
	return (float)(int32_t)(pawl_random_next(state) >> 40) * 0x1p-23f - 1;
}

static void
put_f16(unsigned char *dst, float value)
{
	uint16_t bits = pawl_f16_from_f32(value);

	memcpy(dst, &bits, sizeof(bits));
}

/* Offsets of the f16 fields of a weight block and what they are filled with: base * (0.5 .. 1). */
struct block_scales {
	int at[2];
	float base[2];
};

static const struct block_scales block_scales[PAWL_N_DTYPES] = {
	[PAWL_DTYPE_Q4_0] = {{0, -1}, {1.0f / 8, 0}},
	[PAWL_DTYPE_Q4_1] = {{0, 2}, {1.0f / 8, -1}},
	[PAWL_DTYPE_Q5_0] = {{0, -1}, {1.0f / 16, 0}},
	[PAWL_DTYPE_Q5_1] = {{0, 2}, {1.0f / 16, -1}},
	[PAWL_DTYPE_Q8_0] = {{0, -1}, {1.0f / 128, 0}},
	[PAWL_DTYPE_Q4_K] = {{0, 2}, {1.0f / (63 * 15), 1.0f / 126}},
	[PAWL_DTYPE_Q5_K] = {{0, 2}, {1.0f / (63 * 31), 1.0f / 126}},
	[PAWL_DTYPE_Q6_K] = {{208, -1}, {1.0f / (128 * 32), 0}},
};

static void
fill_blocks(enum pawl_dtype dtype, uint64_t state, unsigned char *dst, int64_t n)
{
	const struct block_scales *scales = &block_scales[dtype];
	int64_t size = pawl_dtype_info(dtype)->block_bytes, bytes = pawl_dtype_bytes(dtype, n), i;
	int j;

	for (i = 0; i < bytes; i++)
		dst[i] = (unsigned char)(pawl_random_next(&state) >> 56);
	for (i = 0; i < bytes; i += size) {
		for (j = 0; j < 2 && scales->at[j] >= 0; j++)
			put_f16(dst + i + scales->at[j],
				scales->base[j] * (0.75f + 0.25f * unit(&state)));
	}
}

/* The element types of literals; an integer is in range. */
static void
put_plain(enum pawl_dtype dtype, double value, unsigned char *dst, int64_t i)
{
	float f = (float)value;
	uint16_t half;
	int32_t i32;
	int64_t i64;
	uint32_t u32;

	switch (dtype) {
	case PAWL_DTYPE_F32:
		memcpy(dst + 4 * i, &f, sizeof(f));
		break;
	case PAWL_DTYPE_F16:
		half = pawl_f16_from_f32(f);
		memcpy(dst + 2 * i, &half, sizeof(half));
		break;
	case PAWL_DTYPE_BF16:
		half = pawl_bf16_from_f32(f);
		memcpy(dst + 2 * i, &half, sizeof(half));
		break;
	case PAWL_DTYPE_I8:
		dst[i] = (unsigned char)(int8_t)value;
		break;
	case PAWL_DTYPE_I32:
		i32 = (int32_t)value;
		memcpy(dst + 4 * i, &i32, sizeof(i32));
		break;
	case PAWL_DTYPE_I64:
		i64 = (int64_t)value;
		memcpy(dst + 8 * i, &i64, sizeof(i64));
		break;
	case PAWL_DTYPE_U32:
		u32 = (uint32_t)value;
		memcpy(dst + 4 * i, &u32, sizeof(u32));
		break;
	case PAWL_DTYPE_Q4_0:
	case PAWL_DTYPE_Q4_1:
	case PAWL_DTYPE_Q5_0:
	case PAWL_DTYPE_Q5_1:
	case PAWL_DTYPE_Q8_0:
	case PAWL_DTYPE_Q4_K:
	case PAWL_DTYPE_Q5_K:
	case PAWL_DTYPE_Q6_K:
	case PAWL_DTYPE_A16:
	case PAWL_DTYPE_A8:
	case PAWL_N_DTYPES:
		break;
	}
}

void
pawl_random_fill(enum pawl_dtype dtype, uint64_t seed, const char *name, void *dst, int64_t n)
{
	uint64_t state = stream(seed, name);
	int64_t i;

	if (pawl_dtype_is_blocked(dtype)) {
		fill_blocks(dtype, state, dst, n);
		return;
	}
	for (i = 0; i < n; i++) {
		double value = unit(&state);

		if (!pawl_dtype_is_float(dtype))
			value = floor(8 * value) + (dtype == PAWL_DTYPE_U32 ? 8 : 0);
		put_plain(dtype, value, dst, i);
	}
}

/* Blocks one after the other to blocks in layout K16, 16 at a time. */
static void
weave_blocks(unsigned char *dst, int64_t bytes)
{
	unsigned char rows[PAWL_WOVEN_BYTES];
	int64_t at;
	int lane;

	for (at = 0; at < bytes; at += PAWL_WOVEN_BYTES) {
		memcpy(rows, dst + at, sizeof(rows));
		for (lane = 0; lane < PAWL_WOVEN_LANES; lane++)
			pawl_woven_block_write(dst + at, lane,
				rows + lane * (PAWL_WOVEN_BYTES / PAWL_WOVEN_LANES));
	}
}

/* How a const is used, over all its users and those of its views. */
struct demand {
	int64_t ids;      /* valid: 0 .. ids - 1; 0 when it is no id */
	int64_t starts;   /* valid: 0 .. starts; -1 when it is no start */
	int64_t rows;     /* valid: -1 .. rows - 1, distinct; 0 when it is no row index */
	int64_t places;   /* valid: -1 .. places - 1; 0 when it is no list of positions */
	bool is_position; /* any non-negative number */
	bool is_mask;
};

static void
lower(int64_t *limit, int64_t unset, int64_t value)
{
	if (*limit == unset || value < *limit)
		*limit = value;
}

static void
demand_of(const struct pawl_graph *graph, const struct pawl_node *node, struct demand *d)
{
	const struct pawl_use *use;

	pawl_foreach_use (use, node) {
		const struct pawl_node *user = use->user;
		const struct pawl_type *dest = &user->inputs[0].def->type;
		int i = (int)(use - user->inputs);
		int64_t axis = user->attrs.axis;

		if (pawl_op_has(user->op, PAWL_OPF_VIEW)) {
			demand_of(graph, user, d);
		} else if (user->op == PAWL_OP_GATHER && i == 1) {
			lower(&d->ids, 0, dest->dim[0].base);
		} else if (user->op == PAWL_OP_WRITE_SLICE && i == 2) {
			lower(&d->starts, -1,
				pawl_dim_min(graph, dest->dim[axis]) -
					pawl_dim_max(graph, user->inputs[1].def->type.dim[axis]));
		} else if (user->op == PAWL_OP_WRITE_SLICE_ROTATING && i == 2) {
			d->is_position = true;
		} else if (user->op == PAWL_OP_WRITE_ROWS && i == 2) {
			lower(&d->rows, 0,
				pawl_dim_min(graph, dest->dim[pawl_write_rows_axis(&user->attrs)]));
		} else if (user->op == PAWL_OP_ATTENTION && i == 3) {
			lower(&d->starts, -1,
				user->inputs[1].def->type.dim[2].base -
					pawl_dim_max(graph, dest->dim[0]));
		} else if (user->op == PAWL_OP_ATTENTION && i == 4) {
			d->is_mask = true;
		} else if (user->op == PAWL_OP_PAGED_ATTENTION && i == 3) {
			lower(&d->places, 0,
				user->inputs[4].def->type.dim[1].base * user->attrs.block);
		} else if (user->op == PAWL_OP_PAGED_ATTENTION && i == 4) {
			lower(&d->ids, 0,
				user->inputs[1].def->type.dim[2].base / user->attrs.block);
		}
	}
}

static int64_t
count_elems(const struct pawl_type *type, const int64_t *symbols)
{
	int64_t n = 1;
	int i;

	for (i = 0; i < type->rank; i++) {
		struct pawl_dim dim = type->dim[i];

		n *= dim.sym < 0 ? dim.base : dim.base + dim.factor * symbols[dim.sym];
	}
	return n;
}

/* n distinct numbers of 0 .. limit - 1, or -1 where there are too few, and sometimes anyway. */
static enum pawl_status
fill_row_indices(uint64_t state, int64_t limit, int64_t n, int64_t *dst, struct pawl_error *err)
{
	int64_t *left = malloc((size_t)limit * sizeof(*left)), n_left = limit, i;

	if (!left)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for row indices");
	for (i = 0; i < limit; i++)
		left[i] = i;
	for (i = 0; i < n; i++) {
		int64_t j = n_left ? (int64_t)(pawl_random_next(&state) >> 1) % n_left : 0;

		dst[i] = -1;
		if (n_left && pawl_random_next(&state) % 5) {
			dst[i] = left[j];
			left[j] = left[--n_left];
		}
	}
	free(left);
	return PAWL_OK;
}

static void
fill_mask(uint64_t state, int64_t n, float *dst)
{
	int64_t i;

	for (i = 0; i < n; i++)
		dst[i] = pawl_random_next(&state) % 4 ? 0 : -INFINITY;
}

enum pawl_status
pawl_random_fill_const(const struct pawl_graph *graph, const struct pawl_node *node, uint64_t seed,
	const int64_t *symbols, void *dst, struct pawl_error *err)
{
	enum pawl_dtype dtype = node->type.dtype;
	int64_t n = count_elems(&node->type, symbols), limit, i;
	struct demand d = {.starts = -1, .is_mask = node->name && !strncmp(node->name, "mask", 4)};
	uint64_t state = stream(seed, node->name);

	if (node->op != PAWL_OP_CONST)
		return pawl_fail(
			err, PAWL_INVALID_ARGUMENT, "%s is no const", pawl_op_name(node->op));
	if (node->attrs.role == PAWL_ROLE_LITERAL) {
		for (i = 0; i < n; i++)
			put_plain(dtype, node->attrs.values[node->attrs.n_values == 1 ? 0 : i], dst,
				i);
		return PAWL_OK;
	}
	demand_of(graph, node, &d);
	if (d.rows)
		return fill_row_indices(state, d.rows, n, dst, err);
	if (d.is_mask) {
		fill_mask(state, n, dst);
		return PAWL_OK;
	}
	for (i = 0; d.places && i < n; i++) {
		uint64_t place = pawl_random_next(&state) % (uint64_t)(d.places + 1);

		put_plain(dtype, (double)place - 1, dst, i);
	}
	if (d.places)
		return PAWL_OK;
	limit = d.ids ? d.ids : d.starts >= 0 ? d.starts + 1 : d.is_position ? 1000 : 0;
	if (!limit) {
		pawl_random_fill(dtype, seed, node->name, dst, n);
		if (node->type.layout == PAWL_LAYOUT_K16 && pawl_dtype_is_blocked(dtype))
			weave_blocks(dst, pawl_dtype_bytes(dtype, n));
		return PAWL_OK;
	}
	for (i = 0; i < n; i++)
		put_plain(dtype, (double)(pawl_random_next(&state) % (uint64_t)limit), dst, i);
	return PAWL_OK;
}
