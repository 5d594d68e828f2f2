/*
 * State of writing one kernel as CUDA C, and the vocabulary in which the templates are written.
 *
 * The text is a subset that C11 and CUDA share.  A value is a variable `v<number>`, made by
 * pawl_cuda_let and never changed: float for the float types, i64 for the integer types, int or i64
 * for indices.  v0 is the constant 0, s<number> a symbol.  Macros and functions that the text uses
 * are those of cuda_prelude.c.
 *
 * Nothing here fails on its own: what a kernel cannot be written for calls pawl_cuda_refuse,
 * which keeps the first reason, and writing goes on with values that do not matter.
 */
#ifndef PAWL_CODEGEN_CUDA_EMIT_H
#define PAWL_CODEGEN_CUDA_EMIT_H

#include "codegen/cuda/cuda_text.h"
#include "codegen/launch.h"
#include "ir/eval.h"

enum {
	PAWL_CUDA_WARP = 32,
	PAWL_CUDA_THREADS = 256, /* of a block */
	PAWL_CUDA_WARPS = PAWL_CUDA_THREADS / PAWL_CUDA_WARP,
	PAWL_CUDA_MOST_BLOCKS = 1024,     /* of a launch; loops over units cover the rest */
	PAWL_CUDA_SHARED_FLOATS = 8192,   /* that a template may ask for, of 48 KiB */
	PAWL_CUDA_SHARED_BYTES = 44 << 10 /* of all that a kernel names */
};

/* An element: for each dim that the op sees, the number of the variable that holds the index. */
struct pawl_cuda_position {
	int index[PAWL_MAX_RANK];
};

struct pawl_cuda_emit {
	struct pawl_cuda_text *out; /* the body of the kernel */
	const struct pawl_program *program;
	const struct pawl_step *step;
	struct pawl_segments segments;
	int32_t first_arg; /* of the step, after the first one of the launch */
	bool is_single;    /* one block runs it: loops count threads only */
	const char *index; /* type of indices: "int", or "i64" where a slot has 2^31 elements */
	int indent, n_variables;
	int64_t shared_bytes; /* named so far */

	/* Per op of the body a variable, 0: none. */
	int memo[PAWL_MAX_BODY_OPS];    /* the value at the current position */
	int fixed[PAWL_MAX_BODY_OPS];   /* the value that a template computed (a matmul's) */
	int stat[PAWL_MAX_BODY_OPS][2]; /* scalars of the current row (a norm's) */
	int row[PAWL_MAX_BODY_OPS]; /* r<number - 1> in shared memory: values of the current row */
	int x_row[PAWL_MAX_BODY_OPS]; /* the same of the operand 0 of a row op */
	uint32_t packed;              /* bit of each weight type whose unpacking it calls */

	enum pawl_status status;
	struct pawl_error *err;
};

/* Keeps the first reason, named after the op: PAWL_UNSUPPORTED. */
void pawl_cuda_refuse(struct pawl_cuda_emit *e, const struct pawl_step_op *op, const char *format,
	...) PAWL_PRINTF(3, 4);

/* An indented line; one that also opens a block; the end of a block, and of the values in it. */
void pawl_cuda_line(struct pawl_cuda_emit *e, const char *format, ...) PAWL_PRINTF(2, 3);
void pawl_cuda_open(struct pawl_cuda_emit *e, const char *format, ...) PAWL_PRINTF(2, 3);
void pawl_cuda_close(struct pawl_cuda_emit *e);

/* The number of a new variable: const TYPE v<number> = EXPRESSION; */
int pawl_cuda_let(struct pawl_cuda_emit *e, const char *type, const char *format, ...)
	PAWL_PRINTF(3, 4);

/* "float" or "i64". */
const char *pawl_cuda_type_name(enum pawl_dtype dtype);

/* A variable that lines to come assign to: TYPE v<number> = EXPRESSION; */
int pawl_cuda_var(struct pawl_cuda_emit *e, const char *type, const char *format, ...)
	PAWL_PRINTF(3, 4);
/*
 * Opens for (i64 v = from; v < to; v += step) and gives v.  Values are pulled anew inside; after
 * pawl_cuda_close those of the loop are forgotten.
 */
int pawl_cuda_loop(struct pawl_cuda_emit *e, const char *from, const char *to, const char *step);

/*
 * The same, to be unrolled so many times, which is how many loads wait for memory at once; 1: not
 * at all, where that is not worth the time to compile it.
 */
int pawl_cuda_unrolled(
	struct pawl_cuda_emit *e, int times, const char *from, const char *to, const char *step);

/* Forgets the values at the last position. */
void pawl_cuda_move(struct pawl_cuda_emit *e);

/* A short expression, by value. */
struct pawl_cuda_words {
	char s[128];
};

/* The extent of a dim; an f32 constant, exactly. */
struct pawl_cuda_words pawl_cuda_dim(struct pawl_dim dim);
struct pawl_cuda_words pawl_cuda_real(double value);
/* The number of rows of a value: the product of all dims but the last. */
struct pawl_cuda_words pawl_cuda_rows(const struct pawl_type *type);

/* The number of elements of a value of rank 1 at least. */
struct pawl_cuda_words pawl_cuda_elements(const struct pawl_type *type);

/* The indices of element number `flat` of a value in row-major order. */
void pawl_cuda_split(struct pawl_cuda_emit *e, const struct pawl_type *type, int flat,
	struct pawl_cuda_position *at);
/* The indices of row number `row`; the last one is left alone. */
void pawl_cuda_split_row(struct pawl_cuda_emit *e, const struct pawl_type *type, int row,
	struct pawl_cuda_position *at);

/* cuda_access.c */
int pawl_cuda_load(struct pawl_cuda_emit *e, const struct pawl_step_op *op,
	const struct pawl_operand *operand, const struct pawl_cuda_position *at);
/* Stores a value of type `from`, rounded to the access's type. */
void pawl_cuda_store(struct pawl_cuda_emit *e, const struct pawl_step_op *op,
	const struct pawl_access *access, const struct pawl_cuda_position *at, int value);
/* The offset in elements, as a variable. */
int pawl_cuda_offset(struct pawl_cuda_emit *e, const struct pawl_step_op *op,
	const struct pawl_access *access, int rank, const struct pawl_cuda_position *at);

/* The index along dim j, dynamic starts and row lists included, as a variable. */
int pawl_cuda_index(struct pawl_cuda_emit *e, const struct pawl_access *access, int j, int index);

/* cuda_blocks.c: a segment of MAP that stores blocks. */
void pawl_cuda_blocks(struct pawl_cuda_emit *e, int32_t root);

/* cuda_scalar.c */
int pawl_cuda_scalar(struct pawl_cuda_emit *e, enum pawl_scalar scalar, const int *x);
/* A value of one type as another. */
int pawl_cuda_convert(struct pawl_cuda_emit *e, const struct pawl_step_op *op, int value,
	enum pawl_dtype from, enum pawl_dtype to);

/* cuda_value.c: values pulled down to loads, row scalars and what a template fixed. */
int pawl_cuda_value(struct pawl_cuda_emit *e, int32_t op, const struct pawl_cuda_position *at);
int pawl_cuda_operand(struct pawl_cuda_emit *e, const struct pawl_step_op *op, int32_t input,
	const struct pawl_cuda_position *at);
/* Stores an op's value at a position where its outs say. */
void pawl_cuda_outs(struct pawl_cuda_emit *e, int32_t op, const struct pawl_cuda_position *at);

/* cuda_gather.c */
int pawl_cuda_gather_value(struct pawl_cuda_emit *e, const struct pawl_step_op *op,
	const struct pawl_cuda_position *at);
int pawl_cuda_batch_value(struct pawl_cuda_emit *e, const struct pawl_step_op *op,
	const struct pawl_cuda_position *at);

/*
 * cuda_rows.c: the row scalars that ops first .. end - 1 need, each by the whole block.  at is set
 * for all dims but the last.
 */
void pawl_cuda_row_stats(
	struct pawl_cuda_emit *e, int32_t first, int32_t end, const struct pawl_cuda_position *at);
/* The loop over the columns of a row that a thread takes, always the same ones. */
int pawl_cuda_columns(struct pawl_cuda_emit *e, const struct pawl_type *type);
/* Operand 0 of an op at a column of the row. */
int pawl_cuda_x_at(struct pawl_cuda_emit *e, const struct pawl_step_op *op,
	const struct pawl_cuda_position *row, int column);

/* cuda_packed.c: MATMUL with quantized weights, and what unpacks a type for it. */
void pawl_cuda_packed(struct pawl_cuda_emit *e);
int64_t pawl_cuda_packed_units(const struct pawl_step *step, const struct pawl_segments *segments);
void pawl_cuda_unpacker(struct pawl_cuda_text *out, enum pawl_dtype dtype);

/* How the units of a matmul are counted: quantized weights or floats. */
bool pawl_cuda_is_packed(const struct pawl_step *step);

/* cuda_attend.c: counters in the state that a step needs at the largest extents, four bytes each.
 */
int64_t pawl_cuda_attend_counters(const struct pawl_step *step, const int64_t *symbols);

/* The templates: each writes the body of a step. */
void pawl_cuda_map(struct pawl_cuda_emit *e); /* MAP, GATHER, BATCH */
void pawl_cuda_rows_kernel(struct pawl_cuda_emit *e);
void pawl_cuda_matmul(struct pawl_cuda_emit *e);
void pawl_cuda_attend(struct pawl_cuda_emit *e);

/* Blocks that have something to do at the largest extents, before PAWL_CUDA_MOST_BLOCKS. */
int64_t pawl_cuda_map_blocks(
	const struct pawl_step *step, const struct pawl_segments *segments, const int64_t *symbols);
int64_t pawl_cuda_matmul_blocks(const struct pawl_step *step, const struct pawl_segments *segments);

/* cuda_prelude.c: what every source text begins with; a part of it, cuda_prelude_blocks.c. */
void pawl_cuda_prelude(struct pawl_cuda_text *out);
void pawl_cuda_prelude_blocks(struct pawl_cuda_text *out);

#endif
