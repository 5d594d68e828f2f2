#include "ir/rowops.h"

#include "ir/eval.h"

#include <math.h>

float
pawl_lanes_sum(float lanes[PAWL_LANES])
{
	int width, l;

	for (width = PAWL_LANES / 2; width; width /= 2) {
		for (l = 0; l < width; l++)
			lanes[l] += lanes[l + width];
	}
	return lanes[0];
}

float
pawl_lanes_max(float lanes[PAWL_LANES])
{
	int width, l;

	for (width = PAWL_LANES / 2; width; width /= 2) {
		for (l = 0; l < width; l++)
			lanes[l] = pawl_eval_max(lanes[l], lanes[l + width]);
	}
	return lanes[0];
}

float
pawl_row_sum(const float *x, int64_t n)
{
	float lanes[PAWL_LANES] = {0};
	int64_t i;

	for (i = 0; i < n; i++)
		lanes[i % PAWL_LANES] += x[i];
	return pawl_lanes_sum(lanes);
}

float
pawl_row_sum_squares(const float *x, int64_t n)
{
	float lanes[PAWL_LANES] = {0};
	int64_t i;

	for (i = 0; i < n; i++)
		lanes[i % PAWL_LANES] = fmaf(x[i], x[i], lanes[i % PAWL_LANES]);
	return pawl_lanes_sum(lanes);
}

float
pawl_row_max(const float *x, int64_t n)
{
	float lanes[PAWL_LANES];
	int64_t i;

	for (i = 0; i < PAWL_LANES; i++)
		lanes[i] = -INFINITY;
	for (i = 0; i < n; i++)
		lanes[i % PAWL_LANES] = pawl_eval_max(lanes[i % PAWL_LANES], x[i]);
	return pawl_lanes_max(lanes);
}

void
pawl_row_rms_norm(const float *x, const float *w, int64_t n, float eps, float *y)
{
	float mean = pawl_row_sum_squares(x, n) / (float)n;
	float scale = 1.0f / sqrtf(mean + eps);
	int64_t i;

	for (i = 0; i < n; i++)
		y[i] = x[i] * scale * w[i];
}

void
pawl_row_layer_norm(const float *x, const float *w, const float *b, int64_t n, float eps, float *y)
{
	float mean = pawl_row_sum(x, n) / (float)n;
	float lanes[PAWL_LANES] = {0};
	float scale;
	int64_t i;

	for (i = 0; i < n; i++) {
		float t = x[i] - mean;

		lanes[i % PAWL_LANES] = fmaf(t, t, lanes[i % PAWL_LANES]);
	}
	scale = 1.0f / sqrtf(pawl_lanes_sum(lanes) / (float)n + eps);
	for (i = 0; i < n; i++)
		y[i] = (x[i] - mean) * scale * w[i] + b[i];
}

void
pawl_row_softmax(const float *x, int64_t n, float *y)
{
	float max = pawl_row_max(x, n);
	float shift = max == -INFINITY ? 0.0f : max;
	float sum;
	int64_t i;

	for (i = 0; i < n; i++)
		y[i] = pawl_eval_exp(x[i] - shift);
	sum = pawl_row_sum(y, n);
	for (i = 0; i < n; i++)
		y[i] = sum == 0.0f ? 0.0f : y[i] / sum;
}

int64_t
pawl_row_argmax(const float *x, int64_t n)
{
	int64_t best = 0;
	int64_t i;

	for (i = 0; i < n; i++) {
		if (x[i] != x[i])
			return -1;
		if (x[i] > x[best])
			best = i;
	}
	return best;
}

void
pawl_rope_pair(float c, float s, const float x[2], float y[2])
{
	float x0 = x[0], x1 = x[1];

	y[0] = x0 * c - x1 * s;
	y[1] = x1 * c + x0 * s;
}

void
pawl_rope_vector(bool adjacent, int64_t width, const float *c, const float *s, float *x)
{
	int64_t i;

	for (i = 0; i < width / 2; i++) {
		int64_t a = adjacent ? 2 * i : i;
		int64_t b = adjacent ? 2 * i + 1 : i + width / 2;
		float pair[2] = {x[a], x[b]}, first[2], second[2];

		pawl_rope_pair(c[a], s[a], pair, first);
		pawl_rope_pair(c[b], s[b], pair, second);
		x[a] = first[0];
		x[b] = second[1];
	}
}
