/*
 * Blocks of q8_0 in a cache: a thread takes an element, a warp the 32 of a block.  Rows are whole
 * blocks, so that no warp is torn where elements end.
 */
#include "codegen/cuda/cuda_emit.h"

#include <inttypes.h>

/* An element as variables: the f16 bits of its block's scale, and its integer. */
struct element {
	int scale, q;
};

static bool
is_woven(const struct pawl_access *access)
{
	return access->layout == PAWL_LAYOUT_K16;
}

static struct element
quantize(struct pawl_cuda_emit *e, const struct pawl_step_op *op,
	const struct pawl_cuda_position *at)
{
	int x = pawl_cuda_operand(e, op, 0, at);
	int amax = pawl_cuda_let(e, "float", "pawl_warp_max(pawl_magnitude(v%d))", x);

	return (struct element){pawl_cuda_let(e, "u16", "pawl_q8_0_scale(v%d)", amax),
		pawl_cuda_let(e, "int", "pawl_q8_0_round(v%d, v%d)", x, amax)};
}

static struct element
copy(struct pawl_cuda_emit *e, const struct pawl_step_op *op, const struct pawl_cuda_position *at)
{
	const struct pawl_access *access = &op->inputs[0].access;
	int offset;

	if (is_woven(access) || access->at_rows) {
		pawl_cuda_refuse(e, op, "reads single blocks of layout k16");
		return (struct element){0, 0};
	}
	offset = pawl_cuda_offset(e, op, access, op->type.rank, at);
	return (struct element){pawl_cuda_let(e, "u16", "pawl_q8_0_scale_at(a%" PRId32 ", v%d)",
					access->arg, offset),
		pawl_cuda_let(e, "int", "pawl_q8_0_at(a%" PRId32 ", v%d)", access->arg, offset)};
}

static void
store(struct pawl_cuda_emit *e, const struct pawl_step_op *op, const struct pawl_access *access,
	const struct pawl_cuda_position *at, struct element element)
{
	struct pawl_cuda_position there = *at;
	struct pawl_access plain = *access;
	int offset;

	if (access->at_rows) {
		there.index[access->at_dim] =
			pawl_cuda_index(e, access, access->at_dim, at->index[access->at_dim]);
		plain.at_dim = -1;
		pawl_cuda_open(e, "if (v%d >= 0)", there.index[access->at_dim]);
	}
	offset = pawl_cuda_offset(e, op, &plain, op->type.rank, &there);
	pawl_cuda_line(e, "%s(a%" PRId32 ", v%d, v%d, v%d);",
		is_woven(access) ? "pawl_store_q8_0_k16" : "pawl_store_q8_0", access->arg, offset,
		element.scale, element.q);
	if (access->at_rows) {
		e->indent--;
		pawl_cuda_line(e, "}");
	}
}

void
pawl_cuda_blocks(struct pawl_cuda_emit *e, int32_t root)
{
	const struct pawl_step_op *op = &e->step->ops[root];
	struct pawl_cuda_position at = {.index = {0}};
	struct element element = {0, 0};
	int32_t i;

	if (op->type.dtype != PAWL_DTYPE_Q8_0) {
		pawl_cuda_refuse(e, op, "stores %s", pawl_dtype_name(op->type.dtype));
		return;
	}
	pawl_cuda_split(e, &op->type,
		pawl_cuda_loop(e, e->is_single ? "PAWL_THREAD" : "PAWL_ELEMENT",
			pawl_cuda_elements(&op->type).s,
			e->is_single ? "PAWL_THREADS" : "PAWL_ELEMENTS"),
		&at);
	if (op->op == PAWL_OP_QUANTIZE)
		element = quantize(e, op, &at);
	else if (op->op == PAWL_OP_COPY)
		element = copy(e, op, &at);
	else
		element.scale = element.q = pawl_cuda_let(e, "int", "0");
	for (i = 0; i < op->n_outs; i++)
		store(e, op, &op->outs[i], &at, element);
	pawl_cuda_close(e);
}
