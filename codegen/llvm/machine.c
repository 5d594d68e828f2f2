#include "codegen/llvm/machine.h"

#include "ir/half.h"

static LLVMTypeRef
like_type(LLVMValueRef value, LLVMTypeRef element)
{
	return pawl_emit_vector(element, pawl_emit_lanes(value));
}

static LLVMValueRef
real(struct pawl_emit *e, LLVMValueRef model, float x)
{
	return pawl_emit_real(e, like_type(model, e->f32), x);
}

/*
 * fma in f64: the product is exact; the sum s has the error t (Knuth's TwoSum); s rounded to
 * odd instead of to nearest makes the second rounding, to f32, the only one that counts
 * (Boldo and Melquiond, 2008).  s is odd already, or moves by one unit towards s + t.
 */
static LLVMValueRef
fma_by_f64(struct pawl_emit *e, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c)
{
	LLVMTypeRef wide = like_type(a, e->f64), bits = like_type(a, e->i64);
	LLVMValueRef p, z, s, back, t, s_bits, t_bits, is_inexact, is_even, is_away, odd;

	p = fmul(e, LLVMBuildFPExt(e->builder, a, wide, ""),
		LLVMBuildFPExt(e->builder, b, wide, ""));
	z = LLVMBuildFPExt(e->builder, c, wide, "");
	s = fadd(e, p, z);
	back = fsub(e, s, p);
	t = fadd(e, fsub(e, p, fsub(e, s, back)), fsub(e, z, back));
	s_bits = bits_as(e, s, bits);
	t_bits = bits_as(e, t, bits);
	is_inexact = fcmp(e, LLVMRealONE, t, LLVMConstNull(wide));
	is_even = icmp(e, LLVMIntEQ, iand(e, s_bits, pawl_emit_int(bits, 1)), LLVMConstNull(bits));
	is_away = icmp(e, LLVMIntSLT, ixor(e, s_bits, t_bits), LLVMConstNull(bits));
	odd = choose(e, is_away, isub(e, s_bits, pawl_emit_int(bits, 1)),
		iadd(e, s_bits, pawl_emit_int(bits, 1)));
	s_bits = choose(e, iand(e, is_inexact, is_even), odd, s_bits);
	return LLVMBuildFPTrunc(e->builder, bits_as(e, s_bits, wide), LLVMTypeOf(a), "");
}

LLVMValueRef
pawl_machine_fma(struct pawl_emit *e, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c)
{
	LLVMValueRef args[3] = {a, b, c};

	if (e->variant == PAWL_CPU_BASELINE)
		return fma_by_f64(e, a, b, c);
	return pawl_emit_intrinsic(e, "llvm.fma", LLVMTypeOf(a), args, 3);
}

LLVMValueRef
pawl_machine_nearest(struct pawl_emit *e, LLVMValueRef x)
{
	/* 1.5 * 2^23: its unit in the last place is 1. */
	const float magic = 0x1.8p23f;
	LLVMTypeRef bits = like_type(x, e->i32);

	return isub(e, bits_as(e, fadd(e, x, real(e, x, magic)), bits),
		pawl_emit_int(bits, (int64_t)pawl_f32_bits(magic)));
}

static LLVMValueRef
widen(struct pawl_emit *e, LLVMValueRef bits)
{
	return LLVMBuildZExt(e->builder, bits, like_type(bits, e->i32), "");
}

static LLVMValueRef
narrow(struct pawl_emit *e, LLVMValueRef bits)
{
	return LLVMBuildTrunc(e->builder, bits, like_type(bits, e->i16), "");
}

static bool
has_f16(const struct pawl_emit *e)
{
	return e->variant != PAWL_CPU_BASELINE;
}

LLVMValueRef
pawl_machine_f32_from_f16(struct pawl_emit *e, LLVMValueRef bits)
{
	LLVMTypeRef f32 = like_type(bits, e->f32);
	LLVMValueRef wide, sign, magnitude, exponent, normal, subnormal, special, result;

	if (has_f16(e))
		return LLVMBuildFPExt(
			e->builder, bits_as(e, bits, like_type(bits, e->f16)), f32, "");
	wide = widen(e, bits);
	sign = ishl(e, iand(e, wide, like(wide, 0x8000)), like(wide, 16));
	magnitude = ishl(e, iand(e, wide, like(wide, 0x7fff)), like(wide, 13));
	exponent = iand(e, wide, like(wide, 0x7c00));
	normal = iadd(e, magnitude, like(wide, 112 << 23));
	special = ior(e, magnitude, like(wide, 0x7f800000));
	subnormal = LLVMBuildSIToFP(e->builder, iand(e, wide, like(wide, 0x3ff)), f32, "");
	subnormal = bits_as(e, fmul(e, subnormal, real(e, wide, 0x1p-24f)), LLVMTypeOf(wide));
	result = choose(e, icmp(e, LLVMIntEQ, exponent, like(wide, 0x7c00)), special, normal);
	result = choose(e, icmp(e, LLVMIntEQ, exponent, like(wide, 0)), subnormal, result);
	return bits_as(e, ior(e, result, sign), f32);
}

LLVMValueRef
pawl_machine_f16_from_f32(struct pawl_emit *e, LLVMValueRef x)
{
	LLVMValueRef bits, sign, a, half, normal, subnormal, result;

	if (has_f16(e))
		return bits_as(e, LLVMBuildFPTrunc(e->builder, x, like_type(x, e->f16), ""),
			like_type(x, e->i16));
	bits = bits_as(e, x, like_type(x, e->i32));
	sign = iand(e, ilshr(e, bits, like(bits, 16)), like(bits, 0x8000));
	a = iand(e, bits, like(bits, 0x7fffffff));
	/* ir/half.c; adding 0.5 rounds to the unit of the f16 subnormals, 2^-24. */
	half = iadd(e, iand(e, ilshr(e, a, like(a, 13)), like(a, 1)), like(a, 0xfff - 0x38000000));
	normal = ilshr(e, iadd(e, a, half), like(a, 13));
	subnormal =
		bits_as(e, fadd(e, bits_as(e, a, LLVMTypeOf(x)), real(e, x, 0.5f)), LLVMTypeOf(a));
	subnormal = isub(e, subnormal, like(a, (int64_t)pawl_f32_bits(0.5f)));
	result = choose(e, icmp(e, LLVMIntULT, a, like(a, 0x38800000)), subnormal, normal);
	result = choose(e, icmp(e, LLVMIntUGE, a, like(a, 0x477ff000)), like(a, 0x7c00), result);
	result = choose(e, icmp(e, LLVMIntUGT, a, like(a, 0x7f800000)), like(a, 0x7e00), result);
	return narrow(e, ior(e, result, sign));
}

LLVMValueRef
pawl_machine_f32_from_bf16(struct pawl_emit *e, LLVMValueRef bits)
{
	LLVMValueRef wide = widen(e, bits);

	return bits_as(e, ishl(e, wide, like(wide, 16)), like_type(bits, e->f32));
}

LLVMValueRef
pawl_machine_bf16_from_f32(struct pawl_emit *e, LLVMValueRef x)
{
	LLVMValueRef bits = bits_as(e, x, like_type(x, e->i32)), top, rounded, is_nan;

	top = ilshr(e, bits, like(bits, 16));
	rounded = iadd(e, bits, iadd(e, like(bits, 0x7fff), iand(e, top, like(bits, 1))));
	rounded = ilshr(e, rounded, like(bits, 16));
	is_nan = icmp(e, LLVMIntUGT, iand(e, bits, like(bits, 0x7fffffff)), like(bits, 0x7f800000));
	return narrow(e, choose(e, is_nan, ior(e, top, like(bits, 0x40)), rounded));
}

/* Lanes first .. first + n - 1. */
static LLVMValueRef
part_of(struct pawl_emit *e, LLVMValueRef v, unsigned first, unsigned n)
{
	LLVMValueRef lanes[64];
	unsigned i;

	for (i = 0; i < n; i++)
		lanes[i] = k32(e, (int32_t)(first + i));
	return LLVMBuildShuffleVector(
		e->builder, v, LLVMGetPoison(LLVMTypeOf(v)), LLVMConstVector(lanes, n), "");
}

static LLVMValueRef
concat(struct pawl_emit *e, LLVMValueRef a, LLVMValueRef b)
{
	unsigned n = 2 * pawl_emit_lanes(a), i;
	LLVMValueRef lanes[64];

	for (i = 0; i < n; i++)
		lanes[i] = k32(e, (int32_t)i);
	return LLVMBuildShuffleVector(e->builder, a, b, LLVMConstVector(lanes, n), "");
}

/* An x86 operation on two vectors, register by register of `bytes` bytes; 32-bit lanes result. */
static LLVMValueRef
by_register(struct pawl_emit *e, const char *name, LLVMValueRef a, LLVMValueRef b, unsigned bytes)
{
	unsigned lanes = pawl_emit_lanes(a);
	unsigned width = LLVMGetIntTypeWidth(LLVMGetElementType(LLVMTypeOf(a))) / 8;
	LLVMValueRef args[2] = {a, b}, low, high;

	if (lanes * width <= bytes)
		return pawl_emit_intrinsic(e, name, NULL, args, 2);
	low = by_register(e, name, part_of(e, a, 0, lanes / 2), part_of(e, b, 0, lanes / 2), bytes);
	high = by_register(e, name, part_of(e, a, lanes / 2, lanes / 2),
		part_of(e, b, lanes / 2, lanes / 2), bytes);
	return concat(e, low, high);
}

/* Sums of pairs of products of 16-bit numbers. */
static LLVMValueRef
pair_sums(struct pawl_emit *e, LLVMValueRef a, LLVMValueRef b)
{
	if (e->variant == PAWL_CPU_BASELINE)
		return by_register(e, "llvm.x86.sse2.pmadd.wd", a, b, 16);
	if (e->variant == PAWL_CPU_AVX2)
		return by_register(e, "llvm.x86.avx2.pmadd.wd", a, b, 32);
	return by_register(e, "llvm.x86.avx512.pmaddw.d.512", a, b, 64);
}

/* Pairs of products u8 * s8 are summed in 16 bits, saturating: right while max_w is small. */
static LLVMValueRef
byte_pair_sums(struct pawl_emit *e, LLVMValueRef w, LLVMValueRef x)
{
	if (e->variant == PAWL_CPU_AVX2)
		return by_register(e, "llvm.x86.avx2.pmadd.ub.sw", w, x, 32);
	return by_register(e, "llvm.x86.avx512.pmaddubs.w.512", w, x, 64);
}

/*
 * Products of unsigned and signed bytes, as many vectors summed in 16 bits as cannot overflow
 * them, the pairs of that widened to 32.
 */
static LLVMValueRef
dot_by_bytes(struct pawl_emit *e, LLVMValueRef acc, const LLVMValueRef *w, int max_w,
	const LLVMValueRef *x, int n)
{
	int at_once = INT16_MAX / (max_w * 127 * 2), v, end;
	LLVMTypeRef v32i16 = LLVMVectorType(e->i16, 32);
	LLVMValueRef sum, next;

	for (v = 0; v < n; v = end) {
		sum = byte_pair_sums(e, w[v], bits_as(e, splat16(e, x[v]), e->v64i8));
		for (end = v + 1; end < n && end < v + at_once; end++) {
			next = byte_pair_sums(e, w[end], bits_as(e, splat16(e, x[end]), e->v64i8));
			sum = iadd(e, sum, next);
		}
		acc = iadd(e, acc, pair_sums(e, sum, pawl_emit_int(v32i16, 1)));
	}
	return acc;
}

/* The even and the odd bytes widened to 16 bits. */
static LLVMValueRef
dot4_by_words(struct pawl_emit *e, LLVMValueRef acc, LLVMValueRef w, LLVMValueRef x)
{
	LLVMTypeRef v32i16 = LLVMVectorType(e->i16, 32);
	LLVMValueRef w16 = bits_as(e, w, v32i16), x16 = bits_as(e, splat16(e, x), v32i16), even,
		     odd;

	even = pair_sums(e, iand(e, w16, like(w16, 0xff)),
		iashr(e, ishl(e, x16, like(x16, 8)), like(x16, 8)));
	odd = pair_sums(e, ilshr(e, w16, like(w16, 8)), iashr(e, x16, like(x16, 8)));
	return iadd(e, acc, iadd(e, even, odd));
}

static LLVMValueRef
dot4_plain(struct pawl_emit *e, LLVMValueRef acc, LLVMValueRef w, LLVMValueRef x)
{
	LLVMValueRef w32 = bits_as(e, w, e->v16i32), w_i, x_i;
	int i;

	for (i = 0; i < 4; i++) {
		w_i = iand(e, ilshr(e, w32, like(w32, 8 * i)), like(w32, 255));
		x_i = iashr(e, ishl(e, x, like(x, 24 - 8 * i)), like(x, 24));
		acc = iadd(e, acc, imul(e, w_i, splat16(e, x_i)));
	}
	return acc;
}

static LLVMValueRef
dot4_vnni(struct pawl_emit *e, LLVMValueRef acc, LLVMValueRef w, LLVMValueRef x)
{
	LLVMValueRef args[3] = {acc, w, splat16(e, x)};

	return pawl_emit_intrinsic(e, "llvm.x86.avx512.vpdpbusd.512", NULL, args, 3);
}

LLVMValueRef
pawl_machine_dot(struct pawl_emit *e, LLVMValueRef acc, const LLVMValueRef *w, int max_w,
	const LLVMValueRef *x, int n)
{
	bool has_byte_sums = e->variant == PAWL_CPU_AVX2 || e->variant == PAWL_CPU_AVX512;
	int v;

	if (has_byte_sums && max_w * 127 * 2 <= INT16_MAX)
		return dot_by_bytes(e, acc, w, max_w, x, n);
	for (v = 0; v < n; v++) {
		if (e->variant == PAWL_CPU_AVX512VNNI)
			acc = dot4_vnni(e, acc, w[v], x[v]);
		else if (e->variant == PAWL_CPU_AARCH64)
			acc = dot4_plain(e, acc, w[v], x[v]);
		else
			acc = dot4_by_words(e, acc, w[v], x[v]);
	}
	return acc;
}

bool
pawl_machine_has_signed_dot(const struct pawl_emit *e)
{
	return e->variant == PAWL_CPU_AVX2;
}

/* |w| and x with the sign of w: their pairs stay within 16 bits, 128 * 127 * 2. */
LLVMValueRef
pawl_machine_signed_dot(
	struct pawl_emit *e, LLVMValueRef acc, const LLVMValueRef *w, const LLVMValueRef *x, int n)
{
	LLVMTypeRef v32i16 = LLVMVectorType(e->i16, 32);
	LLVMValueRef magnitude, turned, is_negative;
	int v;

	for (v = 0; v < n; v++) {
		is_negative = icmp(e, LLVMIntSLT, w[v], LLVMConstNull(e->v64i8));
		magnitude = choose(e, is_negative, LLVMBuildNeg(e->builder, w[v], ""), w[v]);
		turned = by_register(e, "llvm.x86.avx2.psign.b",
			bits_as(e, splat16(e, x[v]), e->v64i8), w[v], 32);
		turned = byte_pair_sums(e, magnitude, turned);
		acc = iadd(e, acc, pair_sums(e, turned, pawl_emit_int(v32i16, 1)));
	}
	return acc;
}

LLVMValueRef
pawl_machine_lanes_add(struct pawl_emit *e, LLVMValueRef v)
{
	return pawl_emit_intrinsic(e, "llvm.vector.reduce.add", LLVMTypeOf(v), &v, 1);
}

LLVMValueRef
pawl_machine_lanes_umax(struct pawl_emit *e, LLVMValueRef v)
{
	return pawl_emit_intrinsic(e, "llvm.vector.reduce.umax", LLVMTypeOf(v), &v, 1);
}
