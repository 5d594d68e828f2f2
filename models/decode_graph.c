#include "models/decode_graph.h"

#include <stdio.h>

static struct pawl_node *
data(struct pawl_graph *graph, const char *name, enum pawl_dtype dtype, int rank,
	const int64_t *dims)
{
	struct pawl_type type = pawl_type_make(dtype, rank, dims);

	return pawl_build_const(graph, PAWL_ROLE_DATA, name, &type);
}

static struct pawl_node *
zero_table(struct pawl_graph *graph, const struct pawl_graph_request *request)
{
	const int64_t dims[] = {1, (request->capacity - 1) / request->ring + 1};
	const struct pawl_type type = pawl_type_make(PAWL_DTYPE_U32, 2, dims);

	return pawl_build_splat(graph, &type, 0);
}

void
pawl_decode_add_inputs(struct pawl_graph *graph, const struct pawl_graph_request *request,
	int64_t rope_width, struct pawl_decode_inputs *out)
{
	const int64_t rows = request->n_tokens, angles[] = {rows, rope_width},
		      table[] = {request->n_sequences, request->max_blocks};

	*out = (struct pawl_decode_inputs){.request = request};
	out->attended_len = request->n_sequences
				    ? pawl_graph_add_symbol(graph, "attended_len", 1,
					      request->max_blocks * request->block_size, 1)
				    : pawl_graph_add_symbol(graph, "attended_len", rows,
					      request->capacity, 1);
	out->ids = data(graph, "token_ids", PAWL_DTYPE_U32, 1, &rows);
	if (rope_width) {
		out->cos = data(graph, "rope_cos", PAWL_DTYPE_F32, 2, angles);
		out->sin = data(graph, "rope_sin", PAWL_DTYPE_F32, 2, angles);
	}
	if (!request->n_sequences)
		out->offset = data(graph, "offset", PAWL_DTYPE_I64, 0, NULL);
	if (request->n_sequences || request->ring)
		out->positions = data(graph, "positions", PAWL_DTYPE_I64, 1, &rows);
	if (request->ring)
		out->ring_table = zero_table(graph, request);
	if (!request->n_sequences)
		return;
	out->write_index = data(graph, "write_index", PAWL_DTYPE_I64, 1, &rows);
	out->block_table = data(graph, "block_table", PAWL_DTYPE_U32, 2, table);
}

void
pawl_decode_add_window_rope(
	struct pawl_graph *graph, int64_t rope_width, struct pawl_decode_inputs *in)
{
	const int64_t angles[] = {in->request->n_tokens, rope_width};

	in->window_cos = data(graph, "window_cos", PAWL_DTYPE_F32, 2, angles);
	in->window_sin = data(graph, "window_sin", PAWL_DTYPE_F32, 2, angles);
}

struct pawl_node *
pawl_decode_cache(struct pawl_graph *graph, const struct pawl_decode_inputs *in, 
	const struct pawl_decode_cache_spec *spec)
{
	bool is_ring = in->request->ring && spec->window;
	const int64_t dims[] = {1, spec->n_heads,
		is_ring ? in->request->ring : in->request->capacity, spec->width};
	struct pawl_type type = pawl_type_make(in->request->kv_dtype, 4, dims);
	char name[64];

	type.layout = spec->layout;
	snprintf(name, sizeof(name), "cache.%s.%lld", spec->which, (long long)spec->layer);
	return pawl_build_const(graph, PAWL_ROLE_KV, name, &type);
}

/* A ring is shorter than what keeps everything. */
static bool
is_ring(const struct pawl_decode_inputs *in, const struct pawl_node *cache)
{
	return in->request->ring && cache->type.dim[2].base == in->request->ring;
}

static struct pawl_node *
store_as(struct pawl_graph *graph, struct pawl_node *x, enum pawl_dtype dtype)
{
	struct pawl_attrs attrs = pawl_attrs_default();

	if (!pawl_dtype_is_blocked(dtype))
		return pawl_build_cast(graph, x, dtype);
	attrs.dtype = dtype;
	return pawl_build(graph, PAWL_OP_QUANTIZE, NULL, &x, 1, &attrs, NULL);
}

struct pawl_node *
pawl_decode_append(struct pawl_graph *graph, const struct pawl_decode_inputs *in,
	struct pawl_node *cache, struct pawl_node *x)
{
	static const int heads_first[] = {1, 0, 2};
	struct pawl_attrs attrs = pawl_attrs_default();
	struct pawl_node *inputs[3] = {cache, NULL, in->write_index};
	int64_t slab[4];

	if (!cache || !x)
		return NULL;
	slab[0] = 1;
	slab[1] = cache->type.dim[1].base;
	slab[2] = in->request->n_tokens;
	slab[3] = cache->type.dim[3].base;
	x = store_as(graph, x, in->request->kv_dtype);
	x = pawl_build_permute(graph, x, heads_first);
	inputs[1] = pawl_build_reshape(graph, x, 4, slab);
	attrs.axis = 2;
	if (is_ring(in, cache)) {
		inputs[2] = in->offset;
		attrs.modulus = in->request->ring;
		return pawl_build(
			graph, PAWL_OP_WRITE_SLICE_ROTATING, NULL, inputs, 3, &attrs, NULL);
	}
	if (in->offset)
		return pawl_build_write_slice(graph, cache, inputs[1], NULL, 2, in->offset);
	return pawl_build(graph, PAWL_OP_WRITE_ROWS, NULL, inputs, 3, &attrs, NULL);
}

struct pawl_node *
pawl_decode_attend(struct pawl_graph *graph, const struct pawl_decode_inputs *in,
	struct pawl_node *q, struct pawl_node *k, struct pawl_node *v,
	const struct pawl_attrs *attrs)
{
	struct pawl_node *inputs[5] = {q, k, v, in->offset, NULL};
	struct pawl_attrs all = *attrs;
	bool rotates = k && is_ring(in, k);

	all.sym = in->attended_len;
	if (in->offset && !rotates)
		return pawl_build(graph, PAWL_OP_ATTENTION, NULL, inputs, 4, &all, NULL);
	all.block = rotates ? in->request->ring : in->request->block_size;
	inputs[3] = in->positions;
	inputs[4] = rotates ? in->ring_table : in->block_table;
	return pawl_build(graph, PAWL_OP_PAGED_ATTENTION, NULL, inputs, 5, &all, NULL);
}

struct pawl_node *
pawl_decode_wanted_rows(
	struct pawl_graph *graph, const struct pawl_decode_inputs *in, struct pawl_node *x)
{
	int64_t rows = in->request->n_tokens;
	const int64_t start[] = {rows - 1, 0}, stop[] = {rows, x ? x->type.dim[1].base : 0};

	if (in->request->logits == PAWL_LOGITS_ALL || rows == 1 || in->request->n_sequences > 1)
		return x;
	return pawl_build_slice(graph, x, start, stop);
}
