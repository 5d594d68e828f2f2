/*
 * What the passes end in: a program, the flat, memory-planned list of fused steps.
 *
 * A step is data.  Its body is a short list of ops in order; operands are results of earlier
 * ops of the same body, or accesses: strided windows on a slot, into which all views of the
 * graph have been folded.  The template says how the body may be executed as one kernel.  There
 * are three consumers of this one description: the reference interpreter runs the body op by
 * op, the LLVM emitter and the CUDA emitter write a kernel for it.
 *
 * A program is immutable once made and owns its memory (one arena).
 */
#ifndef PAWL_PASSES_STEP_H
#define PAWL_PASSES_STEP_H

#include "ir/arena.h"
#include "ir/op.h"

enum { PAWL_MAX_INPUTS = 8 };

/* Bytes of scratch memory that a program may ask for, at most; beyond is PAWL_UNSUPPORTED. */
#define PAWL_MAX_SCRATCH (INT64_C(1) << 48)

enum pawl_template {
	PAWL_TEMPLATE_MAP,     /* elementwise chains, rope, casts, quantize to q8_0, writes; a unit is a
				  row of a segment */
	PAWL_TEMPLATE_ROWS,    /* row ops and elementwise ops over the same rows; a unit is a row */
	PAWL_TEMPLATE_MATMUL,  /* row prologue, matmuls over one x, elementwise epilogue; a unit is 16 rows of w */
	PAWL_TEMPLATE_ATTEND,  /* q prologue and attention; a unit is a (row, kv head, chunk of 128) */
	PAWL_TEMPLATE_GATHER,  /* gather and elementwise epilogue; a unit is a row */
	PAWL_TEMPLATE_BATCH,   /* batch_matmul alone; a unit is a row of the result */
	PAWL_N_TEMPLATES
};

/*
 * Where an operand lies: element (i0, i1, ...) of the value is at
 *   ROWS  base + sum_j stride[j] * i_j          (in elements; for blocked types the last
 *                                               stride is 1 and the others are multiples of
 *                                               the block)
 *   K16   base + sum over j other than pos_dim and the last of stride[j] * i_j
 *              + (p / 16 * d + i_last) * 16 + p % 16,  p = pos0 + i_pos_dim, d = width
 *   TILE16 a whole packed weight, see codegen/pack.h
 * with base = pointer of args[arg].  When at_dim >= 0 the index along that dim is not i but
 *   start + i            start = *(i64 *)args[at_arg], or the symbol at_sym when at_arg < 0
 *   (start + i) % modulus   when modulus > 0
 *   index[i]             when at_rows: args[at_arg] is i64[dim], negative: no store
 */
struct pawl_access {
	int32_t arg;
	enum pawl_dtype dtype;
	enum pawl_layout layout;
	int64_t stride[PAWL_MAX_RANK];
	int32_t pos_dim; /* K16 only */
	int64_t pos0, width;
	int32_t at_dim, at_arg, at_sym; /* -1: none */
	bool at_rows;
	int64_t modulus;
	/* Largest index + 1 along at_dim: start + extent beyond it is PAWL_CAPACITY before a run. */
	int64_t limit;
	/*
	 * Elements of a plane (the two innermost dims) of a kv const, 0: of no such window.  Kernels
	 * read it from the i64 at args[pitch_arg], so that their code does not hold the capacity.
	 */
	int64_t pitch;
	int32_t pitch_arg;
};

/* Planes that a window moves by along dim, whose stride is pitch times that; 0: a fixed stride. */
static inline int64_t
pawl_access_planes(const struct pawl_access *access, int dim)
{
	if (!access->pitch || dim == access->pos_dim || access->stride[dim] % access->pitch)
		return 0;
	return access->stride[dim] / access->pitch;
}

/* An operand: the result of body op `value`, or, when value < 0, an access. */
struct pawl_operand {
	int32_t value;
	struct pawl_type type; /* dims as the op sees them */
	struct pawl_access access;
};

struct pawl_step_op {
	enum pawl_op op;
	struct pawl_attrs attrs;
	struct pawl_type type; /* of the result; writes appear as the op that makes the value */
	int32_t n_inputs;
	struct pawl_operand *inputs; /* n_inputs */
	int32_t n_outs; /* stores of the result: 0 for a value used only inside, 1 or 2 */
	struct pawl_access outs[2];
	const char *name; /* provenance: node names joined by '+', for people */
};

/* A pointer a step needs: slot plus byte offset. */
struct pawl_arg {
	int32_t slot;
	int64_t offset;
	bool written;
};

struct pawl_step {
	enum pawl_template template;
	int32_t n_ops;
	struct pawl_step_op *ops;
	int32_t n_args;
	struct pawl_arg *args;
	int32_t first_arg;   /* index of args[0] among all args of the program */
	int32_t scratch_arg; /* attention partials (passes/cost.h), -1: none */
	int64_t flops, bytes; /* at the largest extents; bytes that must be read or written */
	const char *name;
};

enum pawl_slot_role {
	PAWL_SLOT_WEIGHT,
	PAWL_SLOT_KV,
	PAWL_SLOT_DATA,
	PAWL_SLOT_LITERAL,
	PAWL_SLOT_TEMP,   /* at `offset` in the plan's scratch memory */
	PAWL_SLOT_OUTPUT, /* at `offset` in the plan's scratch memory, kept until the next run */
	PAWL_N_SLOT_ROLES
};

struct pawl_slot {
	enum pawl_slot_role role;
	const char *name; /* consts: the const's name; others: provenance, for people */
	struct pawl_type type;
	int64_t bytes;  /* at the largest extents; of a row-major copy for TILE16 weights, whose
	                   packed size codegen/pack.h knows */
	int64_t offset; /* TEMP and OUTPUT */
	bool is_buffer; /* an alloc: its content is unspecified where nothing has written */
	int32_t first_step, last_step; /* lifetime; outputs live to n_steps */
	const double *values; /* LITERAL */
	uint32_t n_values;
};

struct pawl_program {
	struct pawl_arena arena;
	const char *name;
	int32_t n_steps, n_slots, n_args, n_symbols, n_outputs, n_nodes;
	struct pawl_step *steps;
	struct pawl_slot *slots;
	struct pawl_program_symbol {
		const char *name;
		int64_t min, max, multiple;
	} *symbols;
	int32_t *outputs; /* slots, in the order of the graph's outputs */
	int64_t scratch_bytes;
	uint64_t hash; /* of the graph that was lowered */
};

const char *pawl_template_name(enum pawl_template template);
const char *pawl_slot_role_name(enum pawl_slot_role role);
void pawl_program_free(struct pawl_program *program);
/* -1 when no slot has that name. */
int32_t pawl_program_find_slot(const struct pawl_program *program, const char *name);

#endif
