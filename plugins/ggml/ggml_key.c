#include "plugins/ggml/ggml_key.h"

#include <stdlib.h>
#include <string.h>

int32_t
pawl_ggml_uses(const struct pawl_ggml_graph *graph, const struct pawl_ggml_tensor *t)
{
	size_t at, i;

	if (!graph->use_counts || !graph->hash_size || !graph->hash_used || !graph->hash_keys)
		return -1;
	at = ((uintptr_t)t >> 4) % graph->hash_size;
	for (i = 0; i < graph->hash_size; i++, at = (at + 1) % graph->hash_size) {
		if (!(graph->hash_used[at / 32] >> at % 32 & 1))
			return -1;
		if (graph->hash_keys[at] == t)
			return graph->use_counts[at];
	}
	return -1;
}

static void
mix(struct pawl_ggml_key *key, uint64_t x)
{
	key->a = (key->a ^ x) * 0x9e3779b97f4a7c15u;
	key->a ^= key->a >> 32;
	key->b = (key->b << 27 | key->b >> 37) * 5 + x * 0xc2b2ae3d27d4eb4fu;
	key->b ^= key->b >> 31;
}

static size_t
place_of(const struct pawl_ggml_numbers *numbers, const struct pawl_ggml_tensor *t)
{
	size_t i = ((uintptr_t)t >> 4) * (size_t)0x9e3779b97f4a7c15u % numbers->room;

	while (numbers->tensors[i] && numbers->tensors[i] != t)
		i = (i + 1) % numbers->room;
	return i;
}

struct keyer {
	const struct pawl_ggml_host *host;
	struct pawl_ggml_numbers *numbers;
	struct pawl_ggml_key key;
	int32_t n;
};

static void
mix_shape(struct keyer *k, const struct pawl_ggml_tensor *t)
{
	int i;

	mix(&k->key, (uint64_t)(uint32_t)t->type);
	for (i = 0; i < PAWL_GGML_DIMS; i++) {
		mix(&k->key, (uint64_t)t->ne[i]);
		mix(&k->key, t->nb[i]);
	}
}

/* A tensor by its number; one that is new is described. */
static void
mix_tensor(struct keyer *k, const struct pawl_ggml_tensor *t)
{
	size_t at;

	if (!t) {
		mix(&k->key, UINT64_MAX);
		return;
	}
	at = place_of(k->numbers, t);
	if (k->numbers->tensors[at]) {
		mix(&k->key, (uint64_t)k->numbers->numbers[at]);
		return;
	}
	k->numbers->tensors[at] = t;
	k->numbers->numbers[at] = k->n++;
	mix(&k->key, 1u << 30);
	mix_shape(k, t);
	mix(&k->key, (uint64_t)(uint32_t)t->op);
	mix(&k->key, t->buffer ? (uint64_t)pawl_ggml_buffer_usage(k->host, t->buffer) + 1 : 0);
	mix(&k->key, t->view_src ? t->view_offs : UINT64_MAX);
	if (t->view_src)
		mix_tensor(k, t->view_src);
}

static enum pawl_status
make_room(struct pawl_ggml_numbers *numbers, int32_t n_nodes, struct pawl_error *err)
{
	/* A node, its sources, and what all of them are views of; half of the places stay free. */
	size_t room = (size_t)n_nodes * (2 * PAWL_GGML_SOURCES + 2) * 2 + 2;

	if (numbers->room < room) {
		pawl_ggml_numbers_release(numbers);
		numbers->tensors = malloc(room * sizeof(*numbers->tensors));
		numbers->numbers = malloc(room * sizeof(*numbers->numbers));
		if (!numbers->tensors || !numbers->numbers) {
			pawl_ggml_numbers_release(numbers);
			return pawl_fail(err, PAWL_OUT_OF_MEMORY,
				"no memory for the shape of %d nodes", n_nodes);
		}
		numbers->room = room;
	}
	memset(numbers->tensors, 0, numbers->room * sizeof(*numbers->tensors));
	return PAWL_OK;
}

enum pawl_status
pawl_ggml_key_of(const struct pawl_ggml_host *host, const struct pawl_ggml_graph *graph,
	struct pawl_ggml_numbers *numbers, struct pawl_ggml_key *out, struct pawl_error *err)
{
	struct keyer k = {.host = host, .numbers = numbers, .key = {1, 2}};
	enum pawl_status status = make_room(numbers, graph->n_nodes, err);
	int32_t i;
	int j;

	if (status)
		return status;
	mix(&k.key, (uint64_t)graph->n_nodes);
	for (i = 0; i < graph->n_nodes; i++) {
		const struct pawl_ggml_tensor *node = graph->nodes[i];

		mix_tensor(&k, node);
		mix(&k.key, (uint64_t)node->flags & (PAWL_GGML_OUTPUT | PAWL_GGML_COMPUTE));
		mix(&k.key, (uint64_t)(uint32_t)pawl_ggml_uses(graph, node));
		for (j = 0; j < PAWL_GGML_PARAMS; j++)
			mix(&k.key, (uint64_t)(uint32_t)node->params[j]);
		for (j = 0; j < PAWL_GGML_SOURCES; j++)
			mix_tensor(&k, node->src[j]);
	}
	*out = k.key;
	return PAWL_OK;
}

void
pawl_ggml_numbers_release(struct pawl_ggml_numbers *numbers)
{
	free(numbers->tensors);
	free(numbers->numbers);
	memset(numbers, 0, sizeof(*numbers));
}
