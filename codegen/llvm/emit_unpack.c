#include "codegen/llvm/emit_unpack.h"

#include "codegen/llvm/machine.h"

static LLVMValueRef
block_address(struct pawl_emit *e, const struct pawl_pack_format *format, LLVMValueRef tile,
	LLVMValueRef b)
{
	LLVMValueRef at = imul(e, b, k64(e, format->block_bytes)), headers;

	if (format->header_bytes) {
		headers = iadd(e, udiv(e, b, k64(e, format->group)), k64(e, 1));
		at = iadd(e, at, imul(e, headers, k64(e, format->header_bytes)));
	}
	return pawl_emit_at(e, tile, at);
}

static LLVMValueRef
halves_at(struct pawl_emit *e, LLVMValueRef base, int64_t at)
{
	return pawl_machine_f32_from_f16(
		e, pawl_emit_read(e, e->v16i16, pawl_emit_at_bytes(e, base, at), 2));
}

/* 16 bytes as f32. */
static LLVMValueRef
bytes_at(struct pawl_emit *e, LLVMValueRef base, int64_t at)
{
	LLVMValueRef bytes = pawl_emit_read(e, e->v16i8, pawl_emit_at_bytes(e, base, at), 1);

	return LLVMBuildSIToFP(
		e->builder, LLVMBuildSExt(e->builder, bytes, e->v16i32, ""), e->v16f32, "");
}

/* Scales and minima of six bits are no negative bytes either. */
static void
unpack_header(struct pawl_emit *e, const struct pawl_pack_format *format, LLVMValueRef tile,
	LLVMValueRef b, struct pawl_unpacked *out)
{
	LLVMValueRef group = udiv(e, b, k64(e, format->group)), in_group, header, bytes;

	header = pawl_emit_at(e, tile,
		imul(e, group, k64(e, format->header_bytes + format->group * format->block_bytes)));
	in_group = urem(e, b, k64(e, format->group));
	bytes = pawl_emit_at_bytes(e, header, PAWL_PACK_BYTES_AT);
	bytes = pawl_emit_at(e, bytes, imul(e, in_group, k64(e, PAWL_PACK_BYTES)));
	out->scale[0] = fmul(e, halves_at(e, header, 0), bytes_at(e, bytes, 0));
	if (format->n_scales == 2)
		out->scale[1] = fmul(e, halves_at(e, header, 0), bytes_at(e, bytes, LANES));
	if (format->has_offset) {
		out->offset = fmul(
			e, halves_at(e, header, PAWL_PACK_LEAST_AT), bytes_at(e, bytes, LANES));
		out->offset = LLVMBuildFNeg(e->builder, out->offset, "");
	}
}

static LLVMValueRef
fifth_bits(struct pawl_emit *e, const struct pawl_pack_format *format, LLVMValueRef block, int v)
{
	LLVMTypeRef v64i1 = LLVMVectorType(e->i1, 64);
	LLVMValueRef word =
		pawl_emit_read(e, e->i64, pawl_emit_at_bytes(e, block, format->high_at + 8 * v), 1);

	return choose(
		e, bits_as(e, word, v64i1), pawl_emit_int(e->v64i8, 16), LLVMConstNull(e->v64i8));
}

/* Two bits of each byte, moved to where the fifth and sixth belong. */
static LLVMValueRef
upper_bits(struct pawl_emit *e, const struct pawl_pack_format *format, LLVMValueRef block, int v)
{
	int from = 2 * (v % 4);
	LLVMValueRef bits = pawl_emit_read(
		e, e->v64i8, pawl_emit_at_bytes(e, block, format->high_at + 64 * (v / 4)), 1);

	bits = iand(e, bits, like(bits, 3 << from));
	return from <= 4 ? ishl(e, bits, like(bits, 4 - from))
			 : ilshr(e, bits, like(bits, from - 4));
}

static LLVMValueRef
unpack_vector(struct pawl_emit *e, const struct pawl_pack_format *format, LLVMValueRef block, int v)
{
	int64_t at = format->plane_at + 64 * (format->planes == 8 ? v : v % 4);
	LLVMValueRef stored = pawl_emit_read(e, e->v64i8, pawl_emit_at_bytes(e, block, at), 1), w;

	if (format->planes == 8)
		return stored;
	w = v < 4 ? iand(e, stored, like(stored, 15)) : ilshr(e, stored, like(stored, 4));
	if (format->planes == 5)
		w = ior(e, w, fifth_bits(e, format, block, v));
	if (format->planes == 6)
		w = ior(e, w, upper_bits(e, format, block, v));
	return w;
}

void
pawl_emit_unpack(struct pawl_emit *e, const struct pawl_pack_format *format, LLVMValueRef tile,
	LLVMValueRef b, struct pawl_unpacked *out)
{
	LLVMValueRef block = block_address(e, format, tile, b);
	int v;

	*out = (struct pawl_unpacked){.most = (1 << format->planes) - 1,
		.is_signed = format->zero == 128 && pawl_machine_has_signed_dot(e)};
	if (format->header_bytes) {
		unpack_header(e, format, tile, b, out);
	} else {
		out->scale[0] = halves_at(e, block, format->scale_at);
		if (format->has_offset)
			out->offset = halves_at(e, block, format->offset_at);
	}
	for (v = 0; v < 8; v++) {
		out->vectors[v] = unpack_vector(e, format, block, v);
		if (out->is_signed)
			out->vectors[v] = ixor(e, out->vectors[v], like(out->vectors[v], 128));
	}
}
