#include "ir/half.h"

float
pawl_f32_from_f16(uint16_t h)
{
	uint32_t sign = (uint32_t)(h & 0x8000) << 16;
	uint32_t exponent = h >> 10 & 31;
	uint32_t fraction = h & 0x3ff;

	if (exponent == 0)
		return pawl_f32_from_bits(sign | pawl_f32_bits((float)fraction * 0x1p-24f));
	if (exponent == 31 && fraction)
		return pawl_f32_from_bits(sign | 0x7fc00000 | fraction << 13);
	if (exponent == 31)
		return pawl_f32_from_bits(sign | 0x7f800000);
	return pawl_f32_from_bits(sign | (exponent + 112) << 23 | fraction << 13);
}

uint16_t
pawl_f16_from_f32(float x)
{
	uint32_t bits = pawl_f32_bits(x);
	uint32_t sign = bits >> 16 & 0x8000;
	uint32_t a = bits & 0x7fffffff;
	uint32_t fraction, rest, half, result;
	int shift;

	if (a > 0x7f800000)
		return (uint16_t)(sign | 0x7e00 | (a >> 13 & 0x3ff));
	if (a >= 0x477ff000) /* 65520, halfway between 65504 and 2^16 */
		return (uint16_t)(sign | 0x7c00);
	if (a >= 0x38800000) /* 2^-14, the least normal f16 */
		return (uint16_t)(sign | (a + 0xfff + (a >> 13 & 1) - 0x38000000) >> 13);
	if (a < 0x33000000) /* 2^-25, half of the least f16 */
		return (uint16_t)sign;
	fraction = (a & 0x7fffff) | 0x800000;
	shift = 126 - (int)(a >> 23);
	half = 1u << (shift - 1);
	rest = fraction & ((half << 1) - 1);
	result = fraction >> shift;
	result += rest > half || (rest == half && (result & 1));
	return (uint16_t)(sign | result);
}

uint16_t
pawl_bf16_from_f32(float x)
{
	uint32_t bits = pawl_f32_bits(x);

	if ((bits & 0x7fffffff) > 0x7f800000)
		return (uint16_t)(bits >> 16 | 0x40);
	return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
