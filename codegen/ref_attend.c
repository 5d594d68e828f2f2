/* Reference of attention: chunks of PAWL_ATTEND_CHUNK positions, merged in ascending order. */
#include "codegen/ref_ops.h"

#include "codegen/ref_attend.h"
#include "ir/attend.h"
#include "ir/dots.h"

#include <inttypes.h>

/* Of a call with blocks: every sequence's positions together. */
static int64_t
table_positions(const struct pawl_ref_call *call)
{
	return call->inputs[4].dim[1] * call->attrs->block;
}

static enum pawl_status
check_table(const struct pawl_ref_call *call, struct pawl_error *err)
{
	const struct pawl_tensor *table = &call->inputs[4];
	int64_t n_blocks = call->inputs[1].dim[2] / call->attrs->block, i, block;

	for (i = 0; i < pawl_tensor_elems(table); i++) {
		block = pawl_tensor_load_i64(table, i);
		if (block < 0 || block >= n_blocks)
			return pawl_fail(err, PAWL_CAPACITY,
				"paged_attention: entry %" PRId64 " of the table is block %" PRId64
				" of %" PRId64, i, block, n_blocks);
	}
	for (i = 0; i < call->out->dim[0]; i++) {
		if (pawl_tensor_load_i64(&call->inputs[3], i) >= table_positions(call))
			return pawl_fail(err, PAWL_CAPACITY,
				"paged_attention: row %" PRId64 " stands at %" PRId64
				" of %" PRId64 " positions", i,
				pawl_tensor_load_i64(&call->inputs[3], i), table_positions(call));
	}
	return PAWL_OK;
}

enum pawl_status
pawl_ref_attend_length(const struct pawl_ref_call *call, int64_t *length, struct pawl_error *err)
{
	int64_t most = call->attrs->block ? table_positions(call) : call->inputs[1].dim[2], offset;

	*length = call->attrs->sym >= 0 ? call->sym : most;
	if (*length < 0 || *length > most)
		return pawl_fail(err, PAWL_CAPACITY,
			"attention: length %" PRId64 " exceeds %" PRId64 " positions", *length,
			most);
	if (call->attrs->block)
		return check_table(call, err);
	offset = pawl_tensor_load_i64(&call->inputs[3], 0);
	if (offset < 0 || offset > PAWL_ATTEND_MOST)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"attention: offset %" PRId64 " is not between 0 and 2^40", offset);
	return PAWL_OK;
}

int64_t
pawl_ref_attend_position(const struct pawl_ref_call *call, int64_t t)
{
	if (call->attrs->block)
		return pawl_tensor_load_i64(&call->inputs[3], t);
	return pawl_tensor_load_i64(&call->inputs[3], 0) + t;
}

int64_t
pawl_ref_attend_slot(const struct pawl_ref_call *call, int64_t t, int64_t p)
{
	const struct pawl_tensor *table = &call->inputs[4];
	int64_t block = call->attrs->block, sequence;

	if (!block)
		return p;
	sequence = t / (call->out->dim[0] / table->dim[0]);
	return pawl_tensor_load_i64(table, sequence * table->dim[1] + p / block) * block + p % block;
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
		int64_t slot = pawl_ref_attend_slot(call, t, first + i);

		pawl_tensor_load_f32(k, g * m + slot, 0, d, row);
		scores[i] = pawl_attend_score(pawl_dot_float(PAWL_DTYPE_F32, row, q, d),
			(float)call->attrs->scale, (float)call->attrs->softcap);
		if (pawl_ref_attend_has_mask(call)) {
			float mask;

			pawl_tensor_load_f32(&call->inputs[4], t, first + i, 1, &mask);
			scores[i] += mask;
		}
		pawl_tensor_load_f32(v, g * m + slot, 0, width, values + i * width);
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

static enum pawl_status
attend(const struct pawl_ref_call *call, struct pawl_error *err)
{
	int64_t length, t, head;
	enum pawl_status status;

	status = pawl_ref_attend_length(call, &length, err);
	if (status)
		return status;
	for (t = 0; t < call->out->dim[0]; t++) {
		struct pawl_visible seen =
			pawl_visible(call->attrs, pawl_ref_attend_position(call, t), length);

		for (head = 0; head < call->out->dim[1]; head++)
			attend_row(call, t, head, seen);
	}
	return PAWL_OK;
}

enum pawl_status
pawl_ref_ATTENTION(const struct pawl_ref_call *call, struct pawl_error *err)
{
	return attend(call, err);
}

enum pawl_status
pawl_ref_PAGED_ATTENTION(const struct pawl_ref_call *call, struct pawl_error *err)
{
	return attend(call, err);
}
