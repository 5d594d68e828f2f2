#include "tools/exact_eval.h"

#include "codegen/interp.h"
#include "runtime/storage.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A graph of `chunk` tokens and what its consts are bound to. */
struct exact {
	const struct pawl_model_source *source;
	int64_t chunk, capacity;
	struct pawl_graph *graph;
	struct pawl_interp *interp;
	void **memory; /* of data and state, by node id; weights lie in the file */
	double *logits;
	float *row;
};

static enum pawl_status
bind_const(struct exact *x, const struct pawl_model *model, const struct pawl_node *node,
	struct pawl_error *err)
{
	int64_t n_bytes = pawl_storage_bytes(&node->type);
	const struct pawl_gguf_tensor *tensor;

	if (node->attrs.role == PAWL_ROLE_WEIGHT) {
		tensor = pawl_gguf_find_tensor(pawl_model_gguf(model), node->name);
		if (!tensor)
			return pawl_fail(err, PAWL_INTERNAL,
				"the graph reads %s, which the file lacks", node->name);
		return pawl_interp_bind_node(x->interp, node, (void *)(uintptr_t)tensor->data,
			(int64_t)tensor->n_bytes, err);
	}
	x->memory[node->id] = calloc(1, (size_t)n_bytes + 1);
	if (!x->memory[node->id])
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for %" PRId64 " bytes of %s",
			n_bytes, node->name);
	return pawl_interp_bind_node(x->interp, node, x->memory[node->id], n_bytes, err);
}

static enum pawl_status
prepare(struct exact *x, const struct pawl_model *model, struct pawl_error *err)
{
	const struct pawl_graph_request request = {
		.n_tokens = x->chunk,
		.capacity = x->capacity,
		.kv_dtype = PAWL_DTYPE_F32,
		.logits = PAWL_LOGITS_ALL,
	};
	size_t n_logits = (size_t)(x->chunk * x->source->n_vocab);
	struct pawl_node *node;
	enum pawl_status status = x->source->build(x->source->ctx, &request, &x->graph, err);

	if (!status)
		status = pawl_interp_new(x->graph, PAWL_INTERP_EXACT, &x->interp, err);
	if (status)
		return status;
	x->memory = calloc((size_t)x->graph->n_ids + 1, sizeof(*x->memory));
	x->logits = malloc(n_logits * sizeof(*x->logits));
	x->row = malloc((size_t)x->source->n_vocab * sizeof(*x->row));
	if (!x->memory || !x->logits || !x->row)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for %zu logits", n_logits);
	pawl_foreach_node (node, x->graph) {
		if (!status && node->op == PAWL_OP_CONST && node->attrs.role != PAWL_ROLE_LITERAL)
			status = bind_const(x, model, node, err);
	}
	return status;
}

static void
release(struct exact *x)
{
	for (int32_t i = 0; x->memory && i < x->graph->n_ids; i++)
		free(x->memory[i]);
	free(x->memory);
	free(x->logits);
	free(x->row);
	pawl_interp_free(x->interp);
	if (x->graph)
		pawl_graph_free(x->graph);
}

static void *
memory_of(const struct exact *x, const char *name)
{
	const struct pawl_node *node = pawl_graph_find(x->graph, name);

	return node ? x->memory[node->id] : NULL;
}

/* Rows beyond n are filled up with token 0; what they write is overwritten by the next run. */
static enum pawl_status
fill(struct exact *x, const uint32_t *tokens, int64_t n, int64_t position, struct pawl_error *err)
{
	uint32_t *ids = memory_of(x, "token_ids");
	int64_t *offset = memory_of(x, "offset");
	float *cos = memory_of(x, "rope_cos"), *sin = memory_of(x, "rope_sin");
	float *window_cos = memory_of(x, "window_cos"), *window_sin = memory_of(x, "window_sin");
	int64_t width = x->source->rope_width;

	if (!ids || !offset || !cos || !sin)
		return pawl_fail(err, PAWL_INTERNAL, "the model's graph lacks token data");
	*offset = position;
	for (int64_t i = 0; i < x->chunk; i++) {
		ids[i] = i < n ? tokens[i] : 0;
		x->source->rope(
			x->source->ctx, position + i, width, cos + i * width, sin + i * width);
		if (window_cos && window_sin)
			x->source->window_rope(x->source->ctx, position + i, width,
				window_cos + i * width, window_sin + i * width);
	}
	return pawl_interp_set_symbol(x->interp, "attended_len", position + x->chunk, err);
}

enum pawl_status
pawl_exact_eval(const struct pawl_model *model, const uint32_t *tokens, int64_t n, int64_t chunk,
	enum pawl_status (*row)(
		void *arg, int64_t position, const float *logits, struct pawl_error *err),
	void *arg, struct pawl_error *err)
{
	struct exact x = {.source = pawl_model_source(model), .chunk = chunk};
	int64_t n_vocab = x.source->n_vocab;
	enum pawl_status status = PAWL_OK;

	x.capacity = (n + chunk - 1) / chunk * chunk;
	x.capacity = (x.capacity + 15) / 16 * 16;
	status = prepare(&x, model, err);
	for (int64_t done = 0; done < n && !status; done += chunk) {
		int64_t take = n - done < chunk ? n - done : chunk;

		status = fill(&x, tokens + done, take, done, err);
		if (!status)
			status = pawl_interp_run(x.interp, err);
		if (!status)
			status = pawl_interp_read(x.interp, 0, x.logits, chunk * n_vocab, err);
		for (int64_t i = 0; i < take && !status; i++) {
			for (int64_t j = 0; j < n_vocab; j++)
				x.row[j] = (float)x.logits[i * n_vocab + j];
			status = row(arg, done + i, x.row, err);
		}
	}
	release(&x);
	return status;
}
