#include "plugins/ggml/ggml_fill.h"

#include <inttypes.h>
#include <string.h>

#include "ir/half.h"
#include "ir/trig.h"
#include "runtime/kv_block_bytes.h"

int64_t
pawl_ggml_window_of(const struct pawl_ggml_bind *bind, const struct pawl_ggml_graph *graph)
{
	int64_t start = bind->stream * bind->stream_bytes;

	if (bind->window.node >= 0)
		start += (int64_t)pawl_ggml_at(graph, &bind->window)->view_offs;
	return start;
}

static int64_t
entry(const struct pawl_ggml_tensor *list, int64_t i)
{
	return list->type == 27 ? ((const int64_t *)list->data)[i] : ((const int32_t *)list->data)[i];
}

enum pawl_status
pawl_ggml_fill_index(const struct pawl_ggml_bind *bind, const struct pawl_ggml_graph *graph, int64_t *out,
	struct pawl_error *err)
{
	const struct pawl_ggml_tensor *list = pawl_ggml_at(graph, &bind->tensor);
	int64_t n = list->ne[0] / bind->step / bind->streams, base, r, j;

	base = pawl_ggml_window_of(bind, graph) / bind->unit_bytes;
	if (bind->is_whole) {
		for (r = 0; r < n * bind->streams; r++)
			out[r] = -1;
		out += bind->stream * n;
	}
	for (r = 0; r < n; r++) {
		int64_t at = (bind->stream * n + r) * bind->step, cell = entry(list, at) - base;

		if (cell < 0 || cell >= bind->cells)
			return pawl_fail(err, PAWL_CAPACITY,
				"row %" PRId64 " goes to cell %" PRId64 " of %" PRId64, r, cell,
				bind->cells);
		for (j = 1; j < bind->step; j++)
			if (entry(list, at + j) - base != cell + j * bind->pitch)
				return pawl_fail(err, PAWL_UNSUPPORTED,
					"the elements of row %" PRId64 " go to different cells", r);
		out[r] = cell;
	}
	return PAWL_OK;
}

static bool
is_hidden(const struct pawl_ggml_tensor *mask, int64_t i)
{
	uint32_t bits;

	if (mask->type == 1)
		return ((const uint16_t *)mask->data)[i] == 0xfc00;
	memcpy(&bits, (const char *)mask->data + 4 * i, sizeof(bits));
	return bits == 0xff800000u;
}

void
pawl_ggml_fill_mask(const struct pawl_ggml_bind *bind, const struct pawl_ggml_tensor *mask, int64_t rows,
	float *out, int64_t *seen, int64_t *offset)
{
	int64_t width = mask->ne[0], first = bind->stream * mask->ne[1], r, c, n = 1;
	const uint16_t *half;

	*offset = 0;
	for (r = 0; r < rows; r++) {
		for (c = width; c > *offset + r + 1 &&
				is_hidden(mask, (first + r) * width + c - 1);
			c--)
			;
		if (c - 1 - r > *offset)
			*offset = c - 1 - r;
		n = c > n ? c : n;
	}
	for (r = 0; r < rows; r++) {
		if (mask->type == 0) {
			memcpy(out + r * bind->cells,
				(const float *)mask->data + (first + r) * width,
				(size_t)n * sizeof(*out));
			continue;
		}
		half = (const uint16_t *)mask->data + (first + r) * width;
		for (c = 0; c < n; c++)
			out[r * bind->cells + c] = half[c] ? pawl_f32_from_f16(half[c]) : 0.0f;
	}
	*seen = n;
}

void
pawl_ggml_fill_rope(const struct pawl_ggml_bind *bind, double *frequencies,
	const struct pawl_ggml_graph *graph, float *cosines, float *sines)
{
	const struct pawl_ggml_tensor *positions = pawl_ggml_at(graph, &bind->tensor);
	const float *factors = bind->factors.node < 0
				       ? NULL
				       : pawl_ggml_at(graph, &bind->factors)->data;
	int64_t half = bind->width / 2, r, i, at, other;
	double *turned = frequencies + half;

	for (i = 0; i < half; i++)
		turned[i] = factors ? frequencies[i] / (double)factors[i] : frequencies[i];
	for (r = 0; r < positions->ne[0]; r++) {
		float c[PAWL_MAX_ROPE_WIDTH / 2], s[PAWL_MAX_ROPE_WIDTH / 2];

		pawl_rope_row(((const int32_t *)positions->data)[r], turned, half, c, s);
		for (i = 0; i < half; i++) {
			at = r * bind->width + (bind->adjacent ? 2 * i : i);
			other = bind->adjacent ? at + 1 : at + half;
			cosines[at] = cosines[other] = c[i] * (float)bind->magnitude;
			sines[at] = sines[other] = s[i] * (float)bind->magnitude;
		}
	}
}

void
pawl_ggml_fill_turn(const struct pawl_ggml_bind *bind, int64_t n, int32_t *from, int64_t *to)
{
	int64_t r;

	for (r = 0; r < n; r++) {
		if (from)
			from[r] = (int32_t)(bind->stream * n + r);
		if (to)
			to[r] = bind->stream * n + r;
	}
}
