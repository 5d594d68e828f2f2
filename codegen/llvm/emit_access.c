#include "codegen/llvm/emit_access.h"

#include "codegen/llvm/machine.h"
#include "ir/woven_block.h"

static bool
is_half(enum pawl_dtype dtype)
{
	return dtype == PAWL_DTYPE_F16 || dtype == PAWL_DTYPE_BF16;
}

/* The type of an element in memory. */
static LLVMTypeRef
stored_type(struct pawl_emit *e, enum pawl_dtype dtype)
{
	return is_half(dtype) ? e->i16 : pawl_emit_element(e, dtype);
}

LLVMTypeRef
pawl_emit_element(struct pawl_emit *e, enum pawl_dtype dtype)
{
	switch (dtype) {
	case PAWL_DTYPE_F32:
	case PAWL_DTYPE_F16:
	case PAWL_DTYPE_BF16:
		return e->f32;
	case PAWL_DTYPE_I8:
		return e->i8;
	case PAWL_DTYPE_I32:
	case PAWL_DTYPE_U32:
		return e->i32;
	case PAWL_DTYPE_I64:
		return e->i64;
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
	pawl_emit_refuse(e, "element type %s is read one by one", pawl_dtype_name(dtype));
	return e->f32;
}

static unsigned
element_bytes(enum pawl_dtype dtype)
{
	return (unsigned)pawl_dtype_info(dtype)->block_bytes;
}

static LLVMValueRef
decode(struct pawl_emit *e, enum pawl_dtype dtype, LLVMValueRef stored)
{
	if (dtype == PAWL_DTYPE_F16)
		return pawl_machine_f32_from_f16(e, stored);
	if (dtype == PAWL_DTYPE_BF16)
		return pawl_machine_f32_from_bf16(e, stored);
	return stored;
}

static LLVMValueRef
encode(struct pawl_emit *e, enum pawl_dtype dtype, LLVMValueRef value)
{
	if (dtype == PAWL_DTYPE_F16)
		return pawl_machine_f16_from_f32(e, value);
	if (dtype == PAWL_DTYPE_BF16)
		return pawl_machine_bf16_from_f32(e, value);
	return value;
}

LLVMValueRef
pawl_emit_load_dense(
	struct pawl_emit *e, enum pawl_dtype dtype, LLVMValueRef address, LLVMValueRef mask)
{
	LLVMTypeRef type = LLVMVectorType(stored_type(e, dtype), LANES);
	unsigned align = element_bytes(dtype);

	return decode(e, dtype,
		mask ? pawl_emit_masked_read(e, type, address, align, mask)
		     : pawl_emit_read(e, type, address, align));
}

LLVMValueRef
pawl_emit_load_one(struct pawl_emit *e, enum pawl_dtype dtype, LLVMValueRef address)
{
	return decode(
		e, dtype, pawl_emit_read(e, stored_type(e, dtype), address, element_bytes(dtype)));
}

static LLVMValueRef
float_to_int(struct pawl_emit *e, LLVMValueRef x, enum pawl_dtype to)
{
	LLVMTypeRef f32 = LLVMTypeOf(x), bits = pawl_emit_vector(e->i32, pawl_emit_lanes(x));
	LLVMTypeRef result = pawl_emit_vector(pawl_emit_element(e, to), pawl_emit_lanes(x));
	LLVMValueRef shift = pawl_emit_real(e, f32, 0x1p23f), sign, a, rounded;
	const char *name = to == PAWL_DTYPE_U32 ? "llvm.fptoui.sat" : "llvm.fptosi.sat";
	LLVMTypeRef overloads[2] = {result, f32}, type;
	LLVMValueRef function;

	/* Below 2^23, adding and subtracting it rounds to nearest even. */
	sign = iand(e, bits_as(e, x, bits), pawl_emit_int(bits, INT32_MIN));
	a = bits_as(e, iand(e, bits_as(e, x, bits), pawl_emit_int(bits, INT32_MAX)), f32);
	rounded = fsub(e, fadd(e, a, shift), shift);
	rounded = bits_as(e, ior(e, bits_as(e, rounded, bits), sign), f32);
	rounded = choose(e, fcmp(e, LLVMRealOLT, a, shift), rounded, x);
	function = pawl_emit_declare(e, name, overloads, 2, &type);
	if (!function)
		return LLVMGetPoison(result);
	return LLVMBuildCall2(e->builder, type, function, &rounded, 1, "");
}

LLVMValueRef
pawl_emit_convert(struct pawl_emit *e, LLVMValueRef value, enum pawl_dtype from, enum pawl_dtype to)
{
	bool from_float = pawl_dtype_is_float(from), to_float = pawl_dtype_is_float(to);
	LLVMTypeRef type = pawl_emit_vector(pawl_emit_element(e, to), pawl_emit_lanes(value));

	if (from == to || (from_float && to == PAWL_DTYPE_F32))
		return value;
	if (from_float && to_float)
		return decode(e, to, encode(e, to, value));
	if (from_float)
		return float_to_int(e, value, to);
	if (to_float && from == PAWL_DTYPE_U32)
		value = LLVMBuildUIToFP(e->builder, value, type, "");
	else if (to_float)
		value = LLVMBuildSIToFP(e->builder, value, type, "");
	if (to_float)
		return decode(e, to, encode(e, to, value));
	return LLVMBuildIntCast2(e->builder, value, type, from != PAWL_DTYPE_U32, "");
}

/* The index along dim j; *row_mask gets the lanes or rows that exist where an index list says. */
static LLVMValueRef
effective_index(struct pawl_emit *e, const struct pawl_access *access, int j,
	const struct pawl_position *at, LLVMValueRef *row_mask)
{
	LLVMValueRef i = at->index[j];

	if (j != access->at_dim)
		return i;
	if (access->at_rows) {
		if (pawl_emit_lanes(i) > 1) {
			pawl_emit_refuse(e, "a list of rows along the last dim");
			return i;
		}
		i = pawl_emit_read(e, e->i64,
			pawl_emit_at(e, e->args[access->at_arg], imul(e, i, k64(e, 8))), 8);
		*row_mask = icmp(e, LLVMIntSGE, i, k64(e, 0));
		return choose(e, *row_mask, i, k64(e, 0));
	}
	if (access->at_arg >= 0)
		i = pawl_emit_mix_add(e, i, e->starts[access->at_arg]);
	else
		i = pawl_emit_mix_add(e, i,
			pawl_emit_read(e, e->i64,
				pawl_emit_at_bytes(e, e->symbols, 8 * (int64_t)access->at_sym), 8));
	return access->modulus > 0 ? urem(e, i, like(i, access->modulus)) : i;
}

/* What index i along dim j adds to the offset. */
static LLVMValueRef
planes_or_elements(
	struct pawl_emit *e, const struct pawl_access *access, int j, LLVMValueRef i)
{
	int64_t planes = pawl_access_planes(access, j);
	LLVMValueRef pitch;

	if (!planes)
		return pawl_emit_mix_mul(e, i, access->stride[j]);
	pitch = e->starts[access->pitch_arg];
	if (pawl_emit_lanes(i) > 1)
		pitch = pawl_emit_splat(e, pitch, pawl_emit_lanes(i));
	return imul(e, pawl_emit_mix_mul(e, i, planes), pitch);
}

/* Offset in elements, without the last dim when skip_last. */
static LLVMValueRef
offset_of(struct pawl_emit *e, const struct pawl_access *access, int rank,
	const struct pawl_position *at, bool skip_last, LLVMValueRef *row_mask)
{
	LLVMValueRef offset = k64(e, 0);
	int j;

	*row_mask = NULL;
	for (j = 0; j < rank - (skip_last ? 1 : 0); j++) {
		LLVMValueRef i = effective_index(e, access, j, at, row_mask);

		if (access->layout != PAWL_LAYOUT_K16 || (j != access->pos_dim && j != rank - 1)) {
			i = planes_or_elements(e, access, j, i);
		} else if (j == access->pos_dim) {
			i = iadd(e, i, like(i, access->pos0));
			i = iadd(e,
				pawl_emit_mix_mul(e, ilshr(e, i, like(i, 4)), 16 * access->width),
				iand(e, i, like(i, 15)));
		} else {
			i = pawl_emit_mix_mul(e, i, 16);
		}
		offset = pawl_emit_mix_add(e, offset, i);
	}
	return offset;
}

bool
pawl_access_is_dense(const struct pawl_access *access, int rank)
{
	return rank > 0 && access->layout == PAWL_LAYOUT_ROWS && access->stride[rank - 1] == 1 &&
	       (access->at_dim != rank - 1 || (access->modulus == 0 && !access->at_rows));
}

LLVMValueRef
pawl_emit_row_address(
	struct pawl_emit *e, const struct pawl_access *access, int rank, const LLVMValueRef *index)
{
	const struct pawl_dtype_info *info = pawl_dtype_info(access->dtype);
	struct pawl_position at = {.mask = NULL};
	LLVMValueRef offset, row_mask;
	int j;

	for (j = 0; j < rank; j++)
		at.index[j] = j == rank - 1 ? k64(e, 0) : index[j];
	offset = offset_of(e, access, rank, &at, false, &row_mask);
	if (row_mask)
		pawl_emit_refuse(e, "a list of rows where whole rows are read");
	/* Strides of blocked types are multiples of the block. */
	if (info->block > 1)
		offset = LLVMBuildExactSDiv(e->builder, offset, k64(e, info->block), "");
	return pawl_emit_at(e, e->args[access->arg], imul(e, offset, k64(e, info->block_bytes)));
}

void
pawl_emit_find_block(struct pawl_emit *e, const struct pawl_access *access, int rank,
	const LLVMValueRef *index, struct pawl_block_place *out)
{
	const struct pawl_dtype_info *info = pawl_dtype_info(access->dtype);
	bool is_woven = access->layout == PAWL_LAYOUT_K16;
	int64_t elements = info->block * (is_woven ? PAWL_WOVEN_LANES : 1);
	int64_t bytes = info->block_bytes * (is_woven ? PAWL_WOVEN_LANES : 1);
	struct pawl_position at = {.mask = NULL};
	LLVMValueRef offset, lane, blocks;
	int j;

	if (access->dtype != PAWL_DTYPE_Q8_0 || (!is_woven && !pawl_access_is_dense(access, rank)))
		pawl_emit_refuse(e, "%s in single blocks", info->name);
	for (j = 0; j < rank; j++)
		at.index[j] = index[j];
	offset = offset_of(e, access, rank, &at, false, &out->is_row);
	lane = iand(e, offset, k64(e, PAWL_WOVEN_LANES - 1));
	blocks = pawl_emit_at(e, e->args[access->arg],
		imul(e, udiv(e, offset, k64(e, elements)), k64(e, bytes)));
	out->step = is_woven ? PAWL_WOVEN_LANES : 1;
	out->scale = is_woven ? pawl_emit_at(e, blocks, imul(e, lane, k64(e, 2))) : blocks;
	out->q = pawl_emit_at_bytes(e, blocks, is_woven ? PAWL_WOVEN_SCALES : 2);
	if (is_woven)
		out->q = pawl_emit_at(e, out->q, lane);
}

/* Whether the lanes at a position lie one after the other. */
static bool
is_dense_at(const struct pawl_access *access, int rank, const struct pawl_position *at)
{
	return pawl_access_is_dense(access, rank) && pawl_emit_lanes(at->index[rank - 1]) == 1;
}

/* Byte offsets of the lanes at a position. */
static LLVMValueRef
lane_offsets(struct pawl_emit *e, const struct pawl_access *access, int rank,
	const struct pawl_position *at, LLVMValueRef *row_mask)
{
	struct pawl_position lanes = *at;
	LLVMValueRef offset;

	if (rank > 0 && pawl_emit_lanes(at->index[rank - 1]) == 1)
		lanes.index[rank - 1] = iadd(e, splat16(e, at->index[rank - 1]), pawl_emit_iota(e));
	offset = offset_of(e, access, rank, &lanes, false, row_mask);
	if (pawl_emit_lanes(offset) == 1)
		offset = splat16(e, offset);
	return pawl_emit_mix_mul(e, offset, element_bytes(access->dtype));
}

/* Whether all lanes read one element. */
static bool
is_repeated(const struct pawl_access *access, int rank)
{
	return rank == 0 || (access->layout == PAWL_LAYOUT_ROWS && access->stride[rank - 1] == 0 &&
				    access->at_dim != rank - 1);
}

LLVMValueRef
pawl_emit_load(struct pawl_emit *e, const struct pawl_access *access, int rank,
	const struct pawl_position *at)
{
	unsigned bytes = element_bytes(access->dtype);
	LLVMTypeRef type = LLVMVectorType(stored_type(e, access->dtype), LANES);
	LLVMValueRef base = e->args[access->arg], offset, row_mask;

	if (pawl_dtype_is_blocked(access->dtype) || access->layout == PAWL_LAYOUT_TILE16) {
		pawl_emit_refuse(e, "reads %s elements one by one", pawl_dtype_name(access->dtype));
		return LLVMGetPoison(LLVMVectorType(e->f32, LANES));
	}
	if (is_repeated(access, rank)) {
		offset = offset_of(e, access, rank, at, true, &row_mask);
		offset = pawl_emit_mix_mul(e, offset, bytes);
		return splat16(
			e, pawl_emit_load_one(e, access->dtype, pawl_emit_at(e, base, offset)));
	}
	if (is_dense_at(access, rank, at)) {
		offset = offset_of(e, access, rank, at, false, &row_mask);
		offset = pawl_emit_mix_mul(e, offset, bytes);
		return pawl_emit_load_dense(
			e, access->dtype, pawl_emit_at(e, base, offset), at->mask);
	}
	offset = lane_offsets(e, access, rank, at, &row_mask);
	return decode(e, access->dtype, pawl_emit_gather(e, type, base, offset, bytes, at->mask));
}

LLVMValueRef
pawl_emit_load_lanes(struct pawl_emit *e, const struct pawl_access *access, int rank,
	const struct pawl_position *at)
{
	LLVMTypeRef type = LLVMVectorType(stored_type(e, access->dtype), LANES);
	unsigned bytes = element_bytes(access->dtype);
	LLVMValueRef offset, row_mask;

	offset = offset_of(e, access, rank, at, false, &row_mask);
	if (pawl_emit_lanes(offset) == 1)
		offset = splat16(e, offset);
	offset = pawl_emit_mix_mul(e, offset, bytes);
	return decode(e, access->dtype,
		pawl_emit_gather(e, type, e->args[access->arg], offset, bytes, at->mask));
}

LLVMValueRef
pawl_emit_load_element(
	struct pawl_emit *e, const struct pawl_access *access, int rank, const LLVMValueRef *index)
{
	struct pawl_position at = {.mask = NULL};
	LLVMValueRef offset, row_mask;
	int j;

	for (j = 0; j < rank; j++)
		at.index[j] = index[j];
	offset = offset_of(e, access, rank, &at, false, &row_mask);
	offset = pawl_emit_mix_mul(e, offset, element_bytes(access->dtype));
	return pawl_emit_load_one(e, access->dtype, pawl_emit_at(e, e->args[access->arg], offset));
}

void
pawl_emit_store(struct pawl_emit *e, const struct pawl_access *access, int rank,
	const struct pawl_position *at, enum pawl_dtype from, LLVMValueRef value)
{
	unsigned bytes = element_bytes(access->dtype);
	LLVMValueRef base = e->args[access->arg], offset, row_mask;
	struct pawl_branch branch;
	bool dense = rank > 0 && is_dense_at(access, rank, at);

	if (pawl_dtype_is_blocked(access->dtype)) {
		pawl_emit_refuse(
			e, "stores %s elements one by one", pawl_dtype_name(access->dtype));
		return;
	}
	if (from != access->dtype &&
		!(pawl_dtype_is_float(from) && pawl_dtype_is_float(access->dtype)))
		value = pawl_emit_convert(e, value, from, access->dtype);
	value = encode(e, access->dtype, value);
	if (dense) {
		offset = offset_of(e, access, rank, at, false, &row_mask);
		offset = pawl_emit_mix_mul(e, offset, bytes);
	} else {
		offset = lane_offsets(e, access, rank, at, &row_mask);
	}
	if (row_mask)
		pawl_if_begin(e, &branch, row_mask);
	if (!dense)
		pawl_emit_scatter(e, value, base, offset, bytes, at->mask);
	else if (at->mask)
		pawl_emit_masked_write(e, value, pawl_emit_at(e, base, offset), bytes, at->mask);
	else
		pawl_emit_write(e, value, pawl_emit_at(e, base, offset), bytes);
	if (row_mask)
		pawl_if_end(e, &branch);
}
