#include "codegen/tensor.h"

#include "ir/decode.h"
#include "ir/each_token.h"
#include "ir/quantize.h"
#include "ir/woven_block.h"

#include <string.h>

/* Elements handled at once: a multiple of every block size. */
enum { PIECE = 256 };

/* Blocks in layout K16; the address of one is that of its scale. */
static bool
is_woven(const struct pawl_tensor *t)
{
	return t->layout == PAWL_LAYOUT_K16 && !t->wide && pawl_dtype_is_blocked(t->dtype);
}

/* The lane of the block at an address; *blocks is where its 16 blocks start. */
static int
woven_lane(const struct pawl_tensor *t, const char *at, char **blocks)
{
	int64_t offset = (at - t->data) % PAWL_WOVEN_BYTES;

	*blocks = (char *)(uintptr_t)at - offset;
	return (int)(offset * PAWL_WOVEN_LANES / PAWL_WOVEN_SCALES);
}

/* A block of q8_0 in one piece. */
struct block_bytes {
	char bytes[34];
};

/* What find_run found, in its stored form in one piece: where it lies, or in *block. */
static const char *
in_one_piece(const struct pawl_tensor *t, const char *at, struct block_bytes *block)
{
	char *blocks;
	int lane;

	if (!at || !is_woven(t))
		return at;
	lane = woven_lane(t, at, &blocks);
	pawl_woven_block_read(blocks, lane, block->bytes);
	return block->bytes;
}

/* Where to write what find_run found: there, or to *block, which goes there by put_woven. */
static char *
as_one_piece(const struct pawl_tensor *t, char *at, struct block_bytes *block)
{
	return at && is_woven(t) ? block->bytes : at;
}

static void
put_woven(const struct pawl_tensor *t, const char *at, const struct block_bytes *block)
{
	char *blocks;
	int lane;

	if (!at || !is_woven(t))
		return;
	lane = woven_lane(t, at, &blocks);
	pawl_woven_block_write(blocks, lane, block->bytes);
}

enum pawl_status
pawl_tensor_init(struct pawl_tensor *t, enum pawl_dtype dtype, enum pawl_layout layout, bool wide,
	int rank, const int64_t *dims, int64_t *bytes, struct pawl_error *err)
{
	const struct pawl_dtype_info *info = pawl_dtype_info(dtype);
	int64_t unit = wide ? (int64_t)sizeof(double) : info->block_bytes;
	int64_t block = wide ? 1 : info->block;
	int64_t n = 1;
	int i;

	*t = (struct pawl_tensor){.dtype = dtype,
		.layout = layout,
		.wide = wide,
		.rank = rank,
		.pos_dim = -1,
		.at_dim = -1};
	for (i = rank - 1; i >= 0; i--) {
		int64_t extent = dims[i];

		if (extent < 0)
			return pawl_fail(
				err, PAWL_INVALID_ARGUMENT, "dim %d is %lld", i, (long long)extent);
		t->dim[i] = extent;
		t->stride[i] = n;
		if (layout == PAWL_LAYOUT_K16 && i == rank - 2) {
			t->pos_dim = i;
			t->width = dims[rank - 1];
			if (__builtin_add_overflow(extent, 15, &extent))
				return pawl_fail(
					err, PAWL_INVALID_ARGUMENT, "dim %d is too large", i);
			extent -= extent % 16;
		}
		if (__builtin_mul_overflow(n, extent, &n))
			return pawl_fail(err, PAWL_INVALID_ARGUMENT, "the dims' product overflows");
	}
	if (rank ? t->dim[rank - 1] % block : block != 1)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT, "a row of %s is no multiple of %lld",
			info->name, (long long)block);
	if (__builtin_mul_overflow(n / block, unit, bytes))
		return pawl_fail(err, PAWL_INVALID_ARGUMENT, "the size in bytes overflows");
	return PAWL_OK;
}

int64_t
pawl_tensor_rows(const struct pawl_tensor *t)
{
	int64_t n = 1;
	int i;

	for (i = 0; i + 1 < t->rank; i++)
		n *= t->dim[i];
	return n;
}

int64_t
pawl_tensor_row_length(const struct pawl_tensor *t)
{
	return t->rank ? t->dim[t->rank - 1] : 1;
}

int64_t
pawl_tensor_elems(const struct pawl_tensor *t)
{
	return pawl_tensor_rows(t) * pawl_tensor_row_length(t);
}

bool
pawl_tensor_same_dims(const struct pawl_tensor *a, const struct pawl_tensor *b)
{
	return a->rank == b->rank && !memcmp(a->dim, b->dim, (size_t)a->rank * sizeof(a->dim[0]));
}

/* The index along at_dim; -1 when index[] has no such row. */
static int64_t
dynamic_index(const struct pawl_tensor *t, int64_t i)
{
	if (t->index)
		return t->index[i] < 0 ? -1 : t->index[i];
	return t->modulus > 0 ? (t->start + i) % t->modulus : t->start + i;
}

char *
pawl_tensor_at(const struct pawl_tensor *t, const int64_t *i)
{
	const struct pawl_dtype_info *info = pawl_dtype_info(t->dtype);
	int64_t offset = 0;
	int j;

	for (j = 0; j < t->rank; j++) {
		int64_t at = j == t->at_dim ? dynamic_index(t, i[j]) : i[j];

		if (j == t->at_dim && at < 0)
			return NULL;
		if (t->layout != PAWL_LAYOUT_K16 || (j != t->pos_dim && j != t->rank - 1)) {
			offset += t->stride[j] * at;
		} else if (j == t->pos_dim) {
			int64_t p = t->pos0 + at;

			offset += p / 16 * t->width * 16 + p % 16;
		} else {
			offset += at * 16;
		}
	}
	if (is_woven(t))
		return t->data +
		       offset / (PAWL_WOVEN_COLUMNS * PAWL_WOVEN_LANES) * PAWL_WOVEN_BYTES +
		       offset % PAWL_WOVEN_LANES * (PAWL_WOVEN_SCALES / PAWL_WOVEN_LANES);
	return t->wide ? t->data + offset * (int64_t)sizeof(double)
		       : t->data + offset / info->block * info->block_bytes;
}

/* The indices of element `first` of a row. */
static void
split_row(const struct pawl_tensor *t, int64_t row, int64_t first, int64_t *i)
{
	int j;

	for (j = t->rank - 2; j >= 0; j--) {
		i[j] = row % t->dim[j];
		row /= t->dim[j];
	}
	if (t->rank)
		i[t->rank - 1] = first;
}

static bool
rows_are_dense(const struct pawl_tensor *t)
{
	int last = t->rank - 1;

	if (t->rank == 0)
		return true;
	return t->layout != PAWL_LAYOUT_K16 && t->stride[last] == 1 && t->at_dim != last;
}

/*
 * The address of n elements from `first` on when they are dense, with *step = n; else that of
 * the first block, with *step = its elements.  NULL: no such row.
 */
static char *
find_run(const struct pawl_tensor *t, int64_t row, int64_t first, int64_t n, int64_t *step)
{
	int64_t i[PAWL_MAX_RANK];

	split_row(t, row, first, i);
	*step = rows_are_dense(t) ? n : t->wide ? 1 : pawl_dtype_info(t->dtype)->block;
	return pawl_tensor_at(t, i);
}

char *
pawl_tensor_row(const struct pawl_tensor *t, int64_t row)
{
	int64_t step;

	return rows_are_dense(t) ? find_run(t, row, 0, pawl_tensor_row_length(t), &step) : NULL;
}

void
pawl_tensor_load_f32(const struct pawl_tensor *t, int64_t row, int64_t first, int64_t n, float *x)
{
	struct block_bytes block;
	int64_t done, step, i;

	for (done = 0; done < n; done += step) {
		const char *at = find_run(t, row, first + done, n - done, &step);

		if (!at) {
			for (i = 0; i < step; i++)
				x[done + i] = 0.0f;
		} else if (t->wide) {
			for (i = 0; i < step; i++) {
				double value;

				memcpy(&value, at + i * (int64_t)sizeof(value), sizeof(value));
				x[done + i] = (float)value;
			}
		} else {
			pawl_decode_f32(t->dtype, in_one_piece(t, at, &block), step, x + done);
		}
	}
}

void
pawl_tensor_load_f64(const struct pawl_tensor *t, int64_t row, int64_t first, int64_t n, double *x)
{
	struct block_bytes block;
	int64_t done, step, i;

	for (done = 0; done < n; done += step) {
		const char *at = find_run(t, row, first + done, n - done, &step);

		if (!at) {
			for (i = 0; i < step; i++)
				x[done + i] = 0.0;
		} else if (t->wide) {
			memcpy(x + done, at, (size_t)step * sizeof(*x));
		} else {
			pawl_decode_f64(t->dtype, in_one_piece(t, at, &block), step, x + done);
		}
	}
}

void
pawl_tensor_store_f32(
	const struct pawl_tensor *t, int64_t row, int64_t first, int64_t n, const float *x)
{
	struct block_bytes block;
	int64_t done, step, i;

	for (done = 0; done < n; done += step) {
		char *at = find_run(t, row, first + done, n - done, &step);

		if (at && !t->wide)
			pawl_encode(t->dtype, x + done, step, as_one_piece(t, at, &block));
		put_woven(t, at, &block);
		for (i = 0; at && t->wide && i < step; i++) {
			double value = x[done + i];

			memcpy(at + i * (int64_t)sizeof(value), &value, sizeof(value));
		}
	}
}

void
pawl_tensor_store_f64(
	const struct pawl_tensor *t, int64_t row, int64_t first, int64_t n, const double *x)
{
	struct block_bytes block;
	float piece[PIECE];
	int64_t done, step, i;

	for (done = 0; done < n; done += step) {
		char *at =
			find_run(t, row, first + done, n - done < PIECE ? n - done : PIECE, &step);

		if (at && t->wide) {
			memcpy(at, x + done, (size_t)step * sizeof(*x));
		} else if (at) {
			for (i = 0; i < step; i++)
				piece[i] = (float)x[done + i];
			pawl_encode(t->dtype, piece, step, as_one_piece(t, at, &block));
			put_woven(t, at, &block);
		}
	}
}

PAWL_EACH_TOKEN int64_t
pawl_integer_at(enum pawl_dtype dtype, const char *at)
{
	int64_t wide = 0;
	int32_t word = 0;

	if (dtype == PAWL_DTYPE_I64 || dtype == PAWL_DTYPE_U32) {
		memcpy(&wide, at, (size_t)pawl_dtype_info(dtype)->block_bytes);
		return wide;
	}
	if (dtype == PAWL_DTYPE_I8)
		return *(const int8_t *)at;
	memcpy(&word, at, sizeof(word));
	return word;
}

int64_t
pawl_tensor_load_i64(const struct pawl_tensor *t, int64_t i)
{
	int64_t length = pawl_tensor_row_length(t), step;
	const char *at = find_run(t, i / length, i % length, 1, &step);

	return at ? pawl_integer_at(t->dtype, at) : 0;
}

void
pawl_tensor_store_i64(const struct pawl_tensor *t, int64_t i, int64_t value)
{
	int64_t length = pawl_tensor_row_length(t), step;
	char *at = find_run(t, i / length, i % length, 1, &step);

	/* The low bytes of a little-endian number are that number, narrower. */
	if (at)
		memcpy(at, &value, (size_t)pawl_dtype_info(t->dtype)->block_bytes);
}

static void
copy_bits(const struct pawl_tensor *src, const struct pawl_tensor *dst)
{
	const struct pawl_dtype_info *info = pawl_dtype_info(src->dtype);
	int64_t block = src->wide ? 1 : info->block;
	int64_t unit = src->wide ? (int64_t)sizeof(double) : info->block_bytes;
	int64_t rows = pawl_tensor_rows(src), length = pawl_tensor_row_length(src);
	bool dense = rows_are_dense(src) && rows_are_dense(dst);
	int64_t step = dense ? length : block;
	int64_t row, i, ignored;
	struct block_bytes read, made;

	for (row = 0; row < rows; row++) {
		for (i = 0; i < length; i += step) {
			const char *from = find_run(src, row, i, step, &ignored);
			char *at = find_run(dst, row, i, step, &ignored);
			char *to = as_one_piece(dst, at, &made);

			from = in_one_piece(src, from, &read);
			if (to && from)
				memcpy(to, from, (size_t)(step / block * unit));
			else if (to)
				memset(to, 0, (size_t)(step / block * unit));
			put_woven(dst, at, &made);
		}
	}
}

void
pawl_tensor_copy(const struct pawl_tensor *src, const struct pawl_tensor *dst)
{
	int64_t rows = pawl_tensor_rows(src), length = pawl_tensor_row_length(src);
	double wide[PIECE];
	float piece[PIECE];
	int64_t row, i, n;

	if (src->dtype == dst->dtype && src->wide == dst->wide) {
		copy_bits(src, dst);
		return;
	}
	for (row = 0; row < rows; row++) {
		for (i = 0; i < length; i += n) {
			n = length - i < PIECE ? length - i : PIECE;
			if (src->wide || dst->wide) {
				pawl_tensor_load_f64(src, row, i, n, wide);
				pawl_tensor_store_f64(dst, row, i, n, wide);
			} else {
				pawl_tensor_load_f32(src, row, i, n, piece);
				pawl_tensor_store_f32(dst, row, i, n, piece);
			}
		}
	}
}

void
pawl_tensor_permute(const struct pawl_tensor *x, const int64_t *perm, struct pawl_tensor *out)
{
	int i;

	*out = *x;
	for (i = 0; i < x->rank; i++) {
		out->dim[i] = x->dim[perm[i]];
		out->stride[i] = x->stride[perm[i]];
	}
}

void
pawl_tensor_slice(const struct pawl_tensor *x, const int64_t *start, const int64_t *stop,
	struct pawl_tensor *out)
{
	int64_t corner[PAWL_MAX_RANK];
	int i;

	*out = *x;
	for (i = 0; i < x->rank; i++) {
		corner[i] = start[i];
		out->dim[i] = stop[i] - start[i];
	}
	/* Which lane of 16 a position is in is kept by pos0 alone. */
	if (x->layout == PAWL_LAYOUT_K16) {
		corner[x->pos_dim] = -x->pos0;
		out->pos0 = x->pos0 + start[x->pos_dim];
	}
	out->data = pawl_tensor_at(x, corner);
}

void
pawl_tensor_broadcast(
	const struct pawl_tensor *x, int rank, const int64_t *dims, struct pawl_tensor *out)
{
	int missing = rank - x->rank;
	int i;

	*out = *x;
	out->rank = rank;
	for (i = 0; i < rank; i++) {
		bool repeats = i < missing || (x->dim[i - missing] == 1 && dims[i] != 1);

		out->dim[i] = dims[i];
		out->stride[i] = repeats ? 0 : x->stride[i - missing];
	}
}
