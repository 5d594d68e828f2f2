/*
 * A tensor: a typed window on memory with every extent and start resolved to numbers.  It is
 * what the reference operations read and write, whoever the memory belongs to.
 *
 * Element (i0, i1, ...) lies where passes/step.h says for an access.  Elements are handled by
 * rows: row r is the r-th along the last axis, counted in row-major order over the other axes;
 * a tensor of rank 0 is one row of one element.
 *
 * A wide tensor holds doubles in place of the elements of a float type.  Nothing is rounded
 * when it is stored to: its dtype only says what the value stands for.
 */
#ifndef PAWL_CODEGEN_TENSOR_H
#define PAWL_CODEGEN_TENSOR_H

#include "ir/status.h"
#include "ir/type.h"

struct pawl_tensor {
	char *data;
	enum pawl_dtype dtype;
	enum pawl_layout layout; /* TILE16 only as the weight of a planned matmul */
	bool wide;               /* float types only; strides count doubles */
	int rank;
	int64_t dim[PAWL_MAX_RANK], stride[PAWL_MAX_RANK];
	int32_t pos_dim; /* K16: the axis of positions; not the last one */
	int64_t pos0, width;
	/* Along at_dim (-1: none) the index is index[i], else start + i, modulo modulus when > 0.
	 */
	int32_t at_dim;
	int64_t start, modulus;
	const int64_t *index; /* negative: no such row, reads as zero and is not stored to */
};

/*
 * Describes a whole row-major or K16 value of these dims; data stays NULL.  *bytes is what it
 * occupies.  Fails when dims are negative, a row is no multiple of the type's block, or the
 * size overflows.
 */
enum pawl_status pawl_tensor_init(struct pawl_tensor *t, enum pawl_dtype dtype,
	enum pawl_layout layout, bool wide, int rank, const int64_t *dims, int64_t *bytes,
	struct pawl_error *err);

int64_t pawl_tensor_elems(const struct pawl_tensor *t);
int64_t pawl_tensor_rows(const struct pawl_tensor *t);
int64_t pawl_tensor_row_length(const struct pawl_tensor *t);
bool pawl_tensor_same_dims(const struct pawl_tensor *a, const struct pawl_tensor *b);

/*
 * The address of an element, or of its block (in layout K16, of its block's scale); NULL when index[]
 * has no such row.
 */
char *pawl_tensor_at(const struct pawl_tensor *t, const int64_t *i);

/* The address of a row when its elements lie one after the other in their stored form, else NULL.
 */
char *pawl_tensor_row(const struct pawl_tensor *t, int64_t row);

/*
 * n elements of a row from `first` on; both are multiples of the type's block.  Loads take any
 * type and round once where they must; stores take the types that pawl_can_encode.
 */
void pawl_tensor_load_f32(
	const struct pawl_tensor *t, int64_t row, int64_t first, int64_t n, float *x);
void pawl_tensor_load_f64(
	const struct pawl_tensor *t, int64_t row, int64_t first, int64_t n, double *x);
void pawl_tensor_store_f32(
	const struct pawl_tensor *t, int64_t row, int64_t first, int64_t n, const float *x);
void pawl_tensor_store_f64(
	const struct pawl_tensor *t, int64_t row, int64_t first, int64_t n, const double *x);

/* A number of an integer type. */
int64_t pawl_integer_at(enum pawl_dtype dtype, const char *at);

/* One element of an integer tensor, by its row-major number. */
int64_t pawl_tensor_load_i64(const struct pawl_tensor *t, int64_t i);
void pawl_tensor_store_i64(const struct pawl_tensor *t, int64_t i, int64_t value);

/*
 * dst = src, element by element; same dims.  Bits are kept when the types are one and both or
 * neither are wide; else the value goes by way of f64 when one is wide, of f32 when none is.
 */
void pawl_tensor_copy(const struct pawl_tensor *src, const struct pawl_tensor *dst);

/* Views: *out is x seen otherwise.  x has no dynamic start and, but for a slice, layout ROWS. */
void pawl_tensor_permute(const struct pawl_tensor *x, const int64_t *perm, struct pawl_tensor *out);
void pawl_tensor_slice(const struct pawl_tensor *x, const int64_t *start, const int64_t *stop,
	struct pawl_tensor *out);
void pawl_tensor_broadcast(
	const struct pawl_tensor *x, int rank, const int64_t *dims, struct pawl_tensor *out);

#endif
