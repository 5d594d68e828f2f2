#include "plugins/ggml/ggml_translate.h"

#include <stdlib.h>
#include <string.h>

#include "plugins/ggml/ggml_key.h"
#include "plugins/ggml/ggml_values.h"

struct pawl_ggml_tensor *
pawl_ggml_at(const struct pawl_ggml_graph *graph, const struct pawl_ggml_place *place)
{
	struct pawl_ggml_tensor *t = graph->nodes[place->node];

	if (place->src >= 0)
		t = t->src[place->src];
	return place->is_root && t->view_src ? t->view_src : t;
}

static bool
is_view(enum pawl_ggml_op op)
{
	return op == PAWL_GGML_OP_NONE || op == PAWL_GGML_OP_RESHAPE || op == PAWL_GGML_OP_VIEW ||
	       op == PAWL_GGML_OP_PERMUTE || op == PAWL_GGML_OP_TRANSPOSE;
}

static bool
is_empty(const struct pawl_ggml_tensor *t)
{
	return !t->ne[0] || !t->ne[1] || !t->ne[2] || !t->ne[3];
}

/* Whether a node is one to compute; hosts before the flag set it on none. */
static bool
is_wanted(const struct pawl_ggml_graph *graph, const struct pawl_ggml_tensor *t)
{
	int32_t i;

	if (t->flags & PAWL_GGML_COMPUTE)
		return true;
	for (i = 0; i < graph->n_nodes; i++)
		if (graph->nodes[i]->flags & PAWL_GGML_COMPUTE)
			return false;
	return true;
}

static int64_t
bucket(int64_t n)
{
	int64_t size = 8;

	while (size < n)
		size *= 8;
	return size;
}

/* The tokens of the batch, from the first op that has a list of theirs; 0: none has. */
static int64_t
count_tokens(const struct pawl_ggml_translator *t)
{
	int32_t i;

	for (i = 0; i < t->source->n_nodes; i++) {
		const struct pawl_ggml_tensor *node = t->source->nodes[i];

		if (pawl_ggml_op_of(t->host, node) == PAWL_GGML_OP_ROPE && node->src[1])
			return node->src[1]->ne[0];
	}
	return 0;
}

/* The streams of all caches; 0: there are different numbers of them. */
static int64_t
count_streams(const struct pawl_ggml_translator *t)
{
	int64_t streams = t->n_states ? t->states[0].streams : 1;
	int32_t i;

	for (i = 0; i < t->n_states; i++)
		if (t->states[i].streams != streams)
			return 0;
	return streams;
}

static void
add_symbols(struct pawl_ggml_translator *t)
{
	struct pawl_ggml_symbols *symbols = &t->out->symbols;
	int64_t n = count_tokens(t), streams = count_streams(t);

	*symbols = (struct pawl_ggml_symbols){.tokens = -1, .rows = -1, .streams = 1};
	if (!t->symbolic || !streams || n % streams)
		return;
	symbols->n_tokens = n;
	symbols->streams = streams;
	if (n / streams > 1)
		symbols->tokens = pawl_graph_add_symbol(
			t->graph, "tokens", 1, bucket(n) / streams, 1);
}

/* Places for the nodes, in a table that stays at most half full; views only count their uses. */
static enum pawl_status
add_values(struct pawl_ggml_translator *t)
{
	const struct pawl_ggml_graph *graph = t->source;
	int32_t i;
	int j;

	t->n_places = (size_t)graph->n_nodes * (PAWL_GGML_SOURCES + 1) * 2 + 2;
	t->values = calloc(t->n_places, sizeof(*t->values));
	if (!t->values)
		return pawl_fail(t->err, PAWL_OUT_OF_MEMORY, "no memory to translate %d nodes",
			graph->n_nodes);
	for (i = 0; i < graph->n_nodes; i++) {
		pawl_ggml_value_add(t, graph->nodes[i], (struct pawl_ggml_place){i, -1, false})
			->pending = PAWL_GGML_EMPTY;
	}
	for (i = 0; i < graph->n_nodes; i++) {
		for (j = 0; j < PAWL_GGML_SOURCES; j++) {
			const struct pawl_ggml_tensor *source = graph->nodes[i]->src[j];
			struct pawl_ggml_value *value =
				source ? pawl_ggml_value_find(t, source) : NULL;

			if (value)
				value->n_uses++;
		}
	}
	return PAWL_OK;
}

/* Whether whoever is not in the graph may look at what this node computes, itself or by a view. */
static bool
is_seen_outside(struct pawl_ggml_translator *t, int32_t i)
{
	const struct pawl_ggml_graph *graph = t->source;
	const struct pawl_ggml_tensor *node = graph->nodes[i];
	int32_t uses = pawl_ggml_uses(graph, node);

	/* What nothing uses is there for somebody, or need not be there at all. */
	return i == graph->n_nodes - 1 || node->flags & PAWL_GGML_OUTPUT || uses <= 0 ||
	       uses != pawl_ggml_value_find(t, node)->n_uses;
}

static enum pawl_status
add_result(struct pawl_ggml_translator *t, struct pawl_ggml_value *value)
{
	struct pawl_ggml_translation *out = t->out;
	struct pawl_ggml_place *grown;
	int32_t i;

	if (value->pending == PAWL_GGML_EMPTY)
		return PAWL_OK;
	for (i = 0; i < out->n_results; i++)
		if (out->results[i].node == value->place.node)
			return PAWL_OK;
	if (value->pending != PAWL_GGML_READY && pawl_ggml_force(t, value))
		return t->err->status;
	if (out->n_results == out->cap_results) {
		grown = realloc(out->results, (size_t)(out->cap_results * 2 + 8) * sizeof(*grown));
		if (!grown)
			return pawl_fail(t->err, PAWL_OUT_OF_MEMORY, "no memory for results");
		out->results = grown;
		out->cap_results = out->cap_results * 2 + 8;
	}
	out->results[out->n_results++] = value->place;
	if (value->turned) {
		static const int heads_first[] = {1, 0, 2};

		pawl_graph_add_output(
			t->graph, pawl_build_permute(t->graph, value->turned, heads_first));
	} else {
		pawl_graph_add_output(t->graph, value->node);
	}
	return PAWL_OK;
}

static enum pawl_status
add_results(struct pawl_ggml_translator *t)
{
	int32_t i;

	for (i = 0; i < t->source->n_nodes; i++) {
		struct pawl_ggml_value *value =
			pawl_ggml_value_find(t, pawl_ggml_root(t->source->nodes[i]));
		enum pawl_status status;

		if (!value || value->place.src >= 0 || !is_seen_outside(t, i))
			continue;
		t->at = value->place.node;
		status = add_result(t, value);
		if (status)
			return status;
	}
	return PAWL_OK;
}

/* Whether sizes may be computed with: no tensor that is in any memory has others. */
static bool
has_size(const struct pawl_ggml_tensor *x)
{
	const int64_t most = INT64_C(1) << 40;
	int64_t n = 1;
	int i;

	for (i = 0; i < PAWL_GGML_DIMS; i++) {
		if (x->ne[i] < 0 || x->ne[i] > most / n || x->nb[i] > (size_t)most << 8)
			return false;
		n *= x->ne[i] ? x->ne[i] : 1;
	}
	return x->view_offs <= (size_t)most << 8;
}

static enum pawl_status
check_node(struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *node)
{
	int j;

	if (!has_size(node))
		return pawl_ggml_decline(t, node, "a size beyond all memory");
	for (j = 0; j < PAWL_GGML_SOURCES; j++) {
		const struct pawl_ggml_tensor *x = node->src[j];

		if (x && (!has_size(x) || !has_size(pawl_ggml_root(x))))
			return pawl_ggml_decline(t, node, "source %d of a size beyond all memory", j);
		if (x && is_empty(x))
			return pawl_ggml_decline(t, node, "source %d without elements", j);
	}
	return PAWL_OK;
}

static bool
is_computed(const struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *node)
{
	return !is_view(pawl_ggml_op_of(t->host, node)) && !is_empty(node) &&
	       is_wanted(t->source, node);
}

static enum pawl_status
check_nodes(struct pawl_ggml_translator *t)
{
	enum pawl_status status = PAWL_OK;

	for (t->at = 0; t->at < t->source->n_nodes && !status; t->at++)
		if (is_computed(t, t->source->nodes[t->at]))
			status = check_node(t, t->source->nodes[t->at]);
	return status;
}

static enum pawl_status
translate_nodes(struct pawl_ggml_translator *t)
{
	const struct pawl_ggml_graph *graph = t->source;

	for (t->at = 0; t->at < graph->n_nodes; t->at++) {
		const struct pawl_ggml_tensor *node = graph->nodes[t->at];
		enum pawl_status status;

		if (!is_computed(t, node))
			continue;
		status = pawl_ggml_translate_op(t, node);
		if (!status && t->graph->error.status != PAWL_OK)
			status = pawl_ggml_decline(t, node, "%s", t->graph->error.text);
		if (!status && !pawl_ggml_fills(t, node))
			status = pawl_ggml_decline(t, node, "a result of another shape");
		if (status)
			return status;
	}
	return PAWL_OK;
}

static enum pawl_status
translate(struct pawl_ggml_translator *t)
{
	enum pawl_status status = check_nodes(t);

	if (!status)
		status = add_values(t);
	if (!status)
		status = pawl_ggml_find_states(t);
	if (status)
		return status;
	add_symbols(t);
	status = translate_nodes(t);
	if (!status)
		status = add_results(t);
	if (!status && t->graph->error.status != PAWL_OK)
		status = pawl_fail(t->err, t->graph->error.status, "%s", t->graph->error.text);
	return status;
}

enum pawl_status
pawl_ggml_translate(const struct pawl_ggml_host *host, const struct pawl_ggml_graph *graph,
	bool symbolic, struct pawl_ggml_translation *out, struct pawl_error *err)
{
	struct pawl_error own;
	struct pawl_ggml_translator t = {.host = host,
		.source = graph,
		.out = out,
		.symbolic = symbolic,
		.err = err ? err : &own};
	enum pawl_status status;

	memset(out, 0, sizeof(*out));
	out->graph = t.graph = pawl_graph_new("ggml");
	status = t.graph ? translate(&t)
			 : pawl_fail(t.err, PAWL_OUT_OF_MEMORY, "no memory for a graph");
	free(t.values);
	free(t.states);
	if (status)
		pawl_ggml_translation_release(out);
	return status;
}

void
pawl_ggml_translation_release(struct pawl_ggml_translation *translation)
{
	pawl_graph_free(translation->graph);
	free(translation->binds);
	free(translation->results);
	memset(translation, 0, sizeof(*translation));
}

static void
mix(uint64_t *hash, const void *bytes, size_t n)
{
	const unsigned char *p = bytes;

	while (n--)
		*hash = (*hash ^ *p++) * 0x100000001b3u;
}

uint64_t
pawl_ggml_translation_hash(const struct pawl_ggml_translation *translation)
{
	uint64_t hash = pawl_graph_hash(translation->graph);

	mix(&hash, translation->binds, (size_t)translation->n_binds * sizeof(*translation->binds));
	mix(&hash, translation->results,
		(size_t)translation->n_results * sizeof(*translation->results));
	return hash;
}
