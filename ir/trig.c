#include "ir/trig.h"

#include "ir/each_token.h"

#include <math.h>
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#define TWO_OVER_PI 0x1.45f306dc9c883p-1
/* pi / 2 = HI + LO to 2^-109. */
#define HALF_PI_HI 0x1.921fb54442d18p+0
#define HALF_PI_LO 0x1.1a62633145c07p-54

#define LOG2E 0x1.71547652b82fep+0
/* ln 2 = HI + LO to 2^-110. */
#define LN2_HI 0x1.62e42fefa39efp-1
#define LN2_LO 0x1.abc9e3b39803fp-56
#define SQRT2 0x1.6a09e667f3bcdp+0

enum { TERMS = 7 };

/* The coefficients are those of Taylor: the first term left out is below 5e-17. */
static const double sine_terms[TERMS] = {-1.0 / 1307674368000, 1.0 / 6227020800, -1.0 / 39916800,
	1.0 / 362880, -1.0 / 5040, 1.0 / 120, -1.0 / 6};
static const double cosine_terms[TERMS] = {1.0 / 20922789888000, -1.0 / 87178291200,
	1.0 / 479001600, -1.0 / 3628800, 1.0 / 40320, -1.0 / 720, 1.0 / 24};

static double
sine_near_zero(double r)
{
	double square = r * r, p = sine_terms[0];
	int i;

	for (i = 1; i < TERMS; i++)
		p = p * square + sine_terms[i];
	return r + r * square * p;
}

static double
cosine_near_zero(double r)
{
	double square = r * r, p = cosine_terms[0];
	int i;

	for (i = 1; i < TERMS; i++)
		p = p * square + cosine_terms[i];
	return 1.0 - (0.5 * square - square * square * p);
}

/*
 * With k = rne(angle * 2 / pi) the first fma is exact: angle and k * HI are multiples of
 * 2^-53 (2^-52 from 1 on) and their difference is below 1.
 */
void
pawl_sincos(double angle, double *sine, double *cosine)
{
	double k, r, s, c;
	unsigned quadrant;

	if (!(fabs(angle) <= PAWL_TRIG_MOST)) {
		*sine = *cosine = NAN;
		return;
	}
	k = rint(angle * TWO_OVER_PI);
	r = fma(-k, HALF_PI_HI, angle);
	r = fma(-k, HALF_PI_LO, r);
	s = sine_near_zero(r);
	c = cosine_near_zero(r);
	quadrant = (unsigned)((int64_t)k & 3);
	*sine = quadrant & 1 ? c : s;
	*cosine = quadrant & 1 ? s : c;
	if (quadrant & 2)
		*sine = -*sine;
	if (quadrant == 1 || quadrant == 2)
		*cosine = -*cosine;
}

/* base = 2^e * m with m in [sqrt(1/2), sqrt(2)); ln m = 2 atanh((m - 1) / (m + 1)). */
static double
natural_log(double base)
{
	uint64_t bits;
	double m, t, square, p;
	int e, i;

	memcpy(&bits, &base, sizeof(bits));
	e = (int)(bits >> 52 & 0x7ff) - 1023;
	bits = (bits & 0xfffffffffffff) | (uint64_t)1023 << 52;
	memcpy(&m, &bits, sizeof(m));
	if (m > SQRT2) {
		m *= 0.5;
		e++;
	}
	t = (m - 1.0) / (m + 1.0);
	square = t * t;
	p = 0.0;
	for (i = 25; i >= 1; i -= 2)
		p = p * square + 1.0 / i;
	return e * LN2_HI + (e * LN2_LO + 2.0 * t * p);
}

/* |y| <= 700, so that the result is a normal number. */
static double
exponential(double y)
{
	double n, r, p, power;
	uint64_t bits;
	int i;

	n = rint(y * LOG2E);
	r = fma(-n, LN2_HI, y);
	r = fma(-n, LN2_LO, r);
	p = 1.0;
	for (i = 14; i >= 1; i--)
		p = 1.0 + p * r / i;
	bits = (uint64_t)((int64_t)n + 1023) << 52;
	memcpy(&power, &bits, sizeof(power));
	return p * power;
}

double
pawl_rope_frequency(double base, int64_t pair, int64_t width)
{
	return exponential(natural_log(base) * ((double)(-2 * pair) / (double)width));
}

static void
rope_row(int64_t position, const double *frequency, int64_t n, float *c, float *s)
{
	double sine, cosine;
	int64_t i;

	for (i = 0; i < n; i++) {
		pawl_sincos((double)position * frequency[i], &sine, &cosine);
		c[i] = (float)cosine;
		s[i] = (float)sine;
	}
}

#ifdef __x86_64__
#define WIDE __attribute__((target("avx2,fma")))

/* Per lane what pawl_sincos does, step by step: the same bits.  Angles are at most PAWL_TRIG_MOST. */
PAWL_EACH_TOKEN WIDE static void
sincos_of_four(__m256d angle, __m128 *sine, __m128 *cosine)
{
	const __m256d one = _mm256_set1_pd(1.0), two = _mm256_set1_pd(2.0);
	__m256d s = _mm256_set1_pd(sine_terms[0]), c = _mm256_set1_pd(cosine_terms[0]);
	__m256d k, r, square, quadrant, is_turned, sine_falls, cosine_falls;
	int i;

	k = _mm256_round_pd(angle * _mm256_set1_pd(TWO_OVER_PI), _MM_FROUND_CUR_DIRECTION);
	r = _mm256_fnmadd_pd(k, _mm256_set1_pd(HALF_PI_HI), angle);
	r = _mm256_fnmadd_pd(k, _mm256_set1_pd(HALF_PI_LO), r);
	square = r * r;
	for (i = 1; i < TERMS; i++) {
		s = s * square + _mm256_set1_pd(sine_terms[i]);
		c = c * square + _mm256_set1_pd(cosine_terms[i]);
	}
	s = r + r * square * s;
	c = one - (_mm256_set1_pd(0.5) * square - square * square * c);
	quadrant = k - _mm256_set1_pd(4.0) * _mm256_floor_pd(k * _mm256_set1_pd(0.25));
	is_turned = _mm256_or_pd(_mm256_cmp_pd(quadrant, one, _CMP_EQ_OQ),
		_mm256_cmp_pd(quadrant, _mm256_set1_pd(3.0), _CMP_EQ_OQ));
	sine_falls = _mm256_cmp_pd(quadrant, two, _CMP_GE_OQ);
	cosine_falls = _mm256_xor_pd(sine_falls, is_turned);
	*sine = _mm256_cvtpd_ps(_mm256_xor_pd(_mm256_blendv_pd(s, c, is_turned),
		_mm256_and_pd(sine_falls, _mm256_set1_pd(-0.0))));
	*cosine = _mm256_cvtpd_ps(_mm256_xor_pd(_mm256_blendv_pd(c, s, is_turned),
		_mm256_and_pd(cosine_falls, _mm256_set1_pd(-0.0))));
}

/* A token of Gemma 3 has 256 angles: 2.3 us one by one, cold. */
PAWL_EACH_TOKEN WIDE static void
rope_row_wide(int64_t position, const double *frequency, int64_t n, float *c, float *s)
{
	const __m256d most = _mm256_set1_pd(PAWL_TRIG_MOST), sign = _mm256_set1_pd(-0.0);
	int64_t i = 0;

	for (; i + 4 <= n; i += 4) {
		__m256d angle = _mm256_set1_pd((double)position) * _mm256_loadu_pd(frequency + i);
		__m256d size = _mm256_andnot_pd(sign, angle);
		__m128 sine, cosine;

		if (_mm256_movemask_pd(_mm256_cmp_pd(size, most, _CMP_NLE_UQ))) {
			rope_row(position, frequency + i, 4, c + i, s + i);
			continue;
		}
		sincos_of_four(angle, &sine, &cosine);
		_mm_storeu_ps(c + i, cosine);
		_mm_storeu_ps(s + i, sine);
	}
	rope_row(position, frequency + i, n - i, c + i, s + i);
}
#endif

PAWL_EACH_TOKEN void
pawl_rope_row(int64_t position, const double *frequency, int64_t n, float *c, float *s)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
		rope_row_wide(position, frequency, n, c, s);
		return;
	}
#endif
	rope_row(position, frequency, n, c, s);
}
