/* Reference of attention: chunks of PAWL_ATTEND_CHUNK positions, merged in ascending order. */
#include "codegen/ref_ops.h"

#include "codegen/ref_attend.h"
#include "ir/attend.h"
#include "ir/dots.h"

#include <inttypes.h>

enum pawl_status
pawl_ref_attend_extent(
	const struct pawl_ref_call *call, int64_t *offset, int64_t *length, struct pawl_error *err)
{
	*offset = pawl_tensor_load_i64(&call->inputs[3], 0);
	*length = call->attrs->sym >= 0 ? call->sym : call->inputs[1].dim[2];
	if (*offset < 0 || *offset > PAWL_ATTEND_MOST)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"attention: offset %" PRId64 " is not between 0 and 2^40", *offset);
	if (*length < 0 || *length > call->inputs[1].dim[2])
		return pawl_fail(err, PAWL_CAPACITY,
			"attention: length %" PRId64 " exceeds %" PRId64 " positions", *length,
			call->inputs[1].dim[2]);
	return PAWL_OK;
}

/* Positions first .. first + n - 1 of head g of k, scored by q, and their values. */
static void
attend_chunk(const struct pawl_ref_call *call, int64_t t, int64_t g, int64_t first, int n,
	const float *q, float *row, float *values, struct pawl_attend_part *part)
{
	const struct pawl_tensor *k = &call->inputs[1], *v = &call->inputs[2];
	int64_t d = k->dim[3], width = v->dim[3], m = k->dim[2];
	float scores[PAWL_ATTEND_CHUNK];
	int i;

	for (i = 0; i < n; i++) {
		pawl_tensor_load_f32(k, g * m + first + i, 0, d, row);
		scores[i] = pawl_attend_score(pawl_dot_float(PAWL_DTYPE_F32, row, q, d),
			(float)call->attrs->scale, (float)call->attrs->softcap);
		if (call->n_inputs == 5) {
			float mask;

			pawl_tensor_load_f32(&call->inputs[4], t, first + i, 1, &mask);
			scores[i] += mask;
		}
		pawl_tensor_load_f32(v, g * m + first + i, 0, width, values + i * width);
	}
	pawl_attend_chunk(first, n, scores, values, width, width, part);
}

static void
attend_row(const struct pawl_ref_call *call, int64_t t, int64_t head, struct pawl_visible seen)
{
	int64_t heads = call->out->dim[1], width = call->out->dim[2], d = call->inputs[0].dim[2];
	int64_t g = head / (heads / call->inputs[1].dim[1]), first, end;
	float *q = call->scratch, *row = q + d, *o = row + d, *more = o + width;
	float *values = more + width;
	struct pawl_attend_part total = {.o = o}, part = {.o = more};
	int64_t i;

	pawl_tensor_load_f32(&call->inputs[0], t * heads + head, 0, d, q);
	for (first = seen.first; first < seen.end; first = end) {
		end = first - first % PAWL_ATTEND_CHUNK + PAWL_ATTEND_CHUNK;
		if (end > seen.end)
			end = seen.end;
		attend_chunk(call, t, g, first, (int)(end - first), q, row, values,
			first == seen.first ? &total : &part);
		if (first != seen.first)
			pawl_attend_merge(&total, &part, width);
	}
	if (seen.first < seen.end)
		pawl_attend_finish(&total, width, o);
	for (i = 0; seen.first >= seen.end && i < width; i++)
		o[i] = 0.0f;
	pawl_tensor_store_f32(call->out, t * heads + head, 0, width, o);
}

enum pawl_status
pawl_ref_ATTENTION(const struct pawl_ref_call *call, struct pawl_error *err)
{
	int64_t offset, length, t, head;
	enum pawl_status status;

	status = pawl_ref_attend_extent(call, &offset, &length, err);
	if (status)
		return status;
	for (t = 0; t < call->out->dim[0]; t++) {
		for (head = 0; head < call->out->dim[1]; head++)
			attend_row(call, t, head, pawl_visible(call->attrs, offset + t, length));
	}
	return PAWL_OK;
}
