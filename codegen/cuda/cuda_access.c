/* An access (passes/step.h) as C: an offset in elements, loads, stores. */
#include "codegen/cuda/cuda_emit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The C type in memory; NULL for types whose elements are not read one by one. */
static const char *
stored_type(enum pawl_dtype dtype)
{
	switch (dtype) {
	case PAWL_DTYPE_F32:
		return "float";
	case PAWL_DTYPE_F16:
	case PAWL_DTYPE_BF16:
		return "u16";
	case PAWL_DTYPE_I8:
		return "signed char";
	case PAWL_DTYPE_I32:
		return "int";
	case PAWL_DTYPE_U32:
		return "u32";
	case PAWL_DTYPE_I64:
		return "i64";
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
	return NULL;
}

int
pawl_cuda_index(struct pawl_cuda_emit *e, const struct pawl_access *access, int j, int index)
{
	const char *type = "i64";
	char start[64];

	if (j != access->at_dim)
		return index;
	if (access->at_arg >= 0)
		type = stored_type(
			e->program->slots[e->step->args[access->at_arg].slot].type.dtype);
	if (access->at_rows)
		return pawl_cuda_let(e, e->index, "((const %s *)a%" PRId32 ")[v%d]", type,
			access->at_arg, index);
	if (access->at_arg >= 0)
		snprintf(start, sizeof(start), "(%s)*(const %s *)a%" PRId32, e->index, type,
			access->at_arg);
	else
		snprintf(start, sizeof(start), "s%" PRId32, access->at_sym);
	if (access->modulus > 0)
		return pawl_cuda_let(
			e, e->index, "(%s + v%d) %% %" PRId64, start, index, access->modulus);
	return index ? pawl_cuda_let(e, e->index, "%s + v%d", start, index)
		     : pawl_cuda_let(e, e->index, "%s", start);
}

int
pawl_cuda_offset(struct pawl_cuda_emit *e, const struct pawl_step_op *op,
	const struct pawl_access *access, int rank, const struct pawl_cuda_position *at)
{
	char sum[320] = "";
	size_t n = 0;
	int j;

	if (access->layout == PAWL_LAYOUT_TILE16)
		pawl_cuda_refuse(e, op, "packed weights");
	for (j = 0; j < rank; j++) {
		const char *plus = n ? " + " : "";
		int i = pawl_cuda_index(e, access, j, at->index[j]);

		if (access->layout == PAWL_LAYOUT_K16 && j == access->pos_dim) {
			if (access->pos0)
				i = pawl_cuda_let(e, e->index, "v%d + %" PRId64, i, access->pos0);
			n += (size_t)snprintf(sum + n, sizeof(sum) - n,
				"%sv%d / 16 * %" PRId64 " + v%d %% 16", plus, i, 16 * access->width,
				i);
		} else if (i && access->layout == PAWL_LAYOUT_K16 && j == rank - 1) {
			n += (size_t)snprintf(sum + n, sizeof(sum) - n, "%sv%d * 16", plus, i);
		} else if (i && access->stride[j] == 1) {
			n += (size_t)snprintf(sum + n, sizeof(sum) - n, "%sv%d", plus, i);
		} else if (i && pawl_access_planes(access, j)) {
			n += (size_t)snprintf(sum + n, sizeof(sum) - n,
				"%sv%d * %" PRId64 " * p%" PRId32, plus, i,
				pawl_access_planes(access, j), access->pitch_arg);
		} else if (i && access->stride[j]) {
			n += (size_t)snprintf(sum + n, sizeof(sum) - n, "%sv%d * %" PRId64, plus, i,
				access->stride[j]);
		}
	}
	/* A variable alone needs no other. */
	if (n && !sum[1 + strspn(sum + 1, "0123456789")])
		return atoi(sum + 1);
	return n ? pawl_cuda_let(e, e->index, "%s", sum) : 0;
}

int
pawl_cuda_load(struct pawl_cuda_emit *e, const struct pawl_step_op *op,
	const struct pawl_operand *operand, const struct pawl_cuda_position *at)
{
	const struct pawl_access *access = &operand->access;
	const char *type = stored_type(access->dtype), *from = "", *end = "";
	int offset;

	if (pawl_dtype_info(access->dtype)->kind == PAWL_KIND_QUANT && !access->at_rows &&
		access->layout != PAWL_LAYOUT_TILE16) {
		offset = pawl_cuda_offset(e, op, access, operand->type.rank, at);
		return pawl_cuda_let(e, "float", "pawl_load_%s%s(a%" PRId32 ", v%d)",
			pawl_dtype_name(access->dtype),
			access->layout == PAWL_LAYOUT_K16 ? "_k16" : "", access->arg, offset);
	}
	if (!type || access->at_rows) {
		pawl_cuda_refuse(e, op, "%s of type %s",
			access->at_rows ? "a list of rows" : "an operand",
			pawl_dtype_name(access->dtype));
		return 0;
	}
	offset = pawl_cuda_offset(e, op, access, operand->type.rank, at);
	if (access->dtype == PAWL_DTYPE_F16)
		from = "pawl_f32_from_f16(", end = ")";
	if (access->dtype == PAWL_DTYPE_BF16)
		from = "pawl_f32_from_bf16(", end = ")";
	return pawl_cuda_let(e, pawl_cuda_type_name(access->dtype),
		"%s((const %s *)a%" PRId32 ")[v%d]%s", from, type, access->arg, offset, end);
}

void
pawl_cuda_store(struct pawl_cuda_emit *e, const struct pawl_step_op *op,
	const struct pawl_access *access, const struct pawl_cuda_position *at, int value)
{
	const char *type = stored_type(access->dtype), *from = "", *end = "";
	struct pawl_cuda_position there = *at;
	struct pawl_access plain = *access;
	int offset;

	if (!type || pawl_dtype_is_float(access->dtype) != pawl_dtype_is_float(op->type.dtype)) {
		pawl_cuda_refuse(e, op, "stores %s as %s", pawl_dtype_name(op->type.dtype),
			pawl_dtype_name(access->dtype));
		return;
	}
	if (access->at_rows) {
		there.index[access->at_dim] =
			pawl_cuda_index(e, access, access->at_dim, at->index[access->at_dim]);
		plain.at_dim = -1;
		pawl_cuda_open(e, "if (v%d >= 0)", there.index[access->at_dim]);
	}
	offset = pawl_cuda_offset(e, op, &plain, op->type.rank, &there);
	if (access->dtype == PAWL_DTYPE_F16)
		from = "pawl_f16_from_f32(", end = ")";
	else if (access->dtype == PAWL_DTYPE_BF16)
		from = "pawl_bf16_from_f32(", end = ")";
	if (pawl_dtype_is_float(access->dtype))
		pawl_cuda_line(e, "((%s *)a%" PRId32 ")[v%d] = %sv%d%s;", type, access->arg, offset,
			from, value, end);
	else
		pawl_cuda_line(e, "((%s *)a%" PRId32 ")[v%d] = (%s)v%d;", type, access->arg, offset,
			type, value);
	if (access->at_rows) {
		e->indent--;
		pawl_cuda_line(e, "}");
	}
}
