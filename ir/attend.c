#include "ir/attend.h"

#include "ir/eval.h"
#include "ir/rowops.h"

#include <math.h>

/* What is subtracted before exp: the maximum, but 0 where every score is -inf. */
static float
shift_of(float max)
{
	return max == -INFINITY ? 0.0f : max;
}

float
pawl_attend_score(float dot, float scale, float softcap)
{
	float score = dot * scale;

	return softcap == 0.0f ? score : softcap * pawl_eval_tanh(score / softcap);
}

void
pawl_attend_chunk(int64_t first, int n, const float *scores, const float *values, int64_t stride,
	int64_t width, struct pawl_attend_part *part)
{
	float lanes[PAWL_LANES];
	float p[PAWL_ATTEND_CHUNK];
	float shift;
	int64_t d;
	int i, lane;

	for (lane = 0; lane < PAWL_LANES; lane++)
		lanes[lane] = -INFINITY;
	for (i = 0; i < n; i++) {
		lane = (int)((first + i) % PAWL_LANES);
		lanes[lane] = pawl_eval_max(lanes[lane], scores[i]);
	}
	part->max = pawl_lanes_max(lanes);
	shift = shift_of(part->max);
	for (lane = 0; lane < PAWL_LANES; lane++)
		lanes[lane] = 0.0f;
	for (i = 0; i < n; i++) {
		p[i] = pawl_eval_exp(scores[i] - shift);
		lanes[(first + i) % PAWL_LANES] += p[i];
	}
	part->sum = pawl_lanes_sum(lanes);
	for (d = 0; d < width; d++)
		part->o[d] = 0.0f;
	for (i = 0; i < n; i++) {
		for (d = 0; d < width; d++)
			part->o[d] = fmaf(p[i], values[i * stride + d], part->o[d]);
	}
}

void
pawl_attend_merge(
	struct pawl_attend_part *total, const struct pawl_attend_part *part, int64_t width)
{
	float max = pawl_eval_max(total->max, part->max);
	float shift = shift_of(max);
	float a = pawl_eval_exp(total->max - shift);
	float b = pawl_eval_exp(part->max - shift);
	int64_t d;

	total->max = max;
	total->sum = fmaf(part->sum, b, total->sum * a);
	for (d = 0; d < width; d++)
		total->o[d] = fmaf(part->o[d], b, total->o[d] * a);
}

void
pawl_attend_finish(const struct pawl_attend_part *total, int64_t width, float *y)
{
	int64_t d;

	for (d = 0; d < width; d++)
		y[d] = total->sum == 0.0f ? 0.0f : total->o[d] / total->sum;
}
