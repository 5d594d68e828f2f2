/*
 * f16 and bf16 as bit patterns, converted in integer code: the result never depends on the
 * floating-point environment, and equals that of VCVTPH2PS and VCVTPS2PH (which ignore DAZ
 * and FTZ on the f16 side).
 */
#ifndef PAWL_IR_HALF_H
#define PAWL_IR_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint32_t
pawl_f32_bits(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits;
}

static inline float
pawl_f32_from_bits(uint32_t bits)
{
	float x;

	memcpy(&x, &bits, sizeof(x));
	return x;
}

/* Exact; f16 subnormals give normal f32 numbers, NaNs become quiet. */
float pawl_f32_from_f16(uint16_t h);

/*
 * To nearest, ties to even; from 65520 on infinity; f16 subnormals are formed exactly; a NaN
 * stays one (quiet, top payload bits kept).  An f32 subnormal gives zero of its sign.
 */
uint16_t pawl_f16_from_f32(float x);

/* Exact, in bits: a bf16 subnormal gives the f32 subnormal. */
static inline float
pawl_f32_from_bf16(uint16_t b)
{
	return pawl_f32_from_bits((uint32_t)b << 16);
}

/* To nearest, ties to even, subnormals included; a NaN stays one (quiet). */
uint16_t pawl_bf16_from_f32(float x);

#endif
