#include "models/special_tokens.h"

#include <stdlib.h>

/*
 * A trie; the children of a node are a chain of siblings.  -1 is its root where a node is asked for, and
 * none elsewhere.  After Aho and Corasick (Communications of the ACM 18, 1975) every node knows the
 * longest proper ending of its text that is in the trie, so that a text is read once.
 */
struct pawl_special_node {
	int32_t first_child, next_sibling;
	int32_t id;     /* of the token that ends here, or -1 */
	int32_t depth;  /* bytes of its text */
	int32_t ending; /* node of the longest proper ending */
	/* Node of the longest token that its text ends with: one that always counts, or any. */
	int32_t tokens[2];
	unsigned char byte;
	bool always;
};

enum pawl_status
pawl_special_tokens_init(struct pawl_special_tokens *specials, struct pawl_arena *arena,
	size_t n_bytes, struct pawl_error *err)
{
	if (n_bytes > INT32_MAX)
		return pawl_fail(err, PAWL_INVALID_FILE,
			"tokenizer.ggml.tokens: special tokens of %zu bytes together", n_bytes);
	specials->nodes = pawl_arena_alloc(arena, n_bytes ? n_bytes : 1, sizeof(*specials->nodes));
	if (!specials->nodes)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for the special tokens");
	specials->n_nodes = 0;
	specials->capacity = n_bytes;
	for (int i = 0; i < 256; i++)
		specials->roots[i] = -1;
	return PAWL_OK;
}

static int32_t
find_child(const struct pawl_special_tokens *specials, int32_t parent, unsigned char byte)
{
	int32_t child;

	if (parent < 0)
		return specials->roots[byte];
	child = specials->nodes[parent].first_child;
	while (child >= 0 && specials->nodes[child].byte != byte)
		child = specials->nodes[child].next_sibling;
	return child;
}

static int32_t
add_child(struct pawl_special_tokens *specials, int32_t parent, unsigned char byte)
{
	int32_t child = (int32_t)specials->n_nodes++;
	struct pawl_special_node *node = &specials->nodes[child];

	*node = (struct pawl_special_node){.first_child = -1,
		.next_sibling = -1,
		.id = -1,
		.depth = parent < 0 ? 1 : specials->nodes[parent].depth + 1,
		.byte = byte};
	if (parent < 0) {
		specials->roots[byte] = child;
	} else {
		node->next_sibling = specials->nodes[parent].first_child;
		specials->nodes[parent].first_child = child;
	}
	return child;
}

void
pawl_special_tokens_add(
	struct pawl_special_tokens *specials, struct pawl_text text, int32_t id, bool always)
{
	int32_t node = -1;

	for (size_t i = 0; i < text.n; i++) {
		unsigned char byte = (unsigned char)text.bytes[i];
		int32_t child = find_child(specials, node, byte);

		node = child >= 0 ? child : add_child(specials, node, byte);
	}
	if (node >= 0) {
		specials->nodes[node].id = id;
		specials->nodes[node].always = always;
	}
}

/* The node of the longest ending, in the trie, of a node's text and one more byte. */
static int32_t
follow(const struct pawl_special_tokens *specials, int32_t node, unsigned char byte)
{
	int32_t child = find_child(specials, node, byte);

	while (child < 0 && node >= 0) {
		node = specials->nodes[node].ending;
		child = find_child(specials, node, byte);
	}
	return child;
}

static void
link_node(struct pawl_special_tokens *specials, int32_t parent, int32_t i)
{
	struct pawl_special_node *nodes = specials->nodes, *node = &nodes[i];

	node->ending = parent < 0 ? -1 : follow(specials, nodes[parent].ending, node->byte);
	for (int any = 0; any < 2; any++) {
		bool is_one = node->id >= 0 && (any || node->always);

		node->tokens[any] = is_one            ? i
				    : node->ending < 0 ? -1
						       : nodes[node->ending].tokens[any];
	}
}

/* Nodes in the order of their depths, as an ending is shorter. */
enum pawl_status
pawl_special_tokens_link(struct pawl_special_tokens *specials, struct pawl_error *err)
{
	int32_t *queue = malloc((specials->n_nodes + 1) * sizeof(*queue));
	size_t n = 0;

	if (!queue)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for the special tokens");
	for (int i = 0; i < 256; i++) {
		if (specials->roots[i] < 0)
			continue;
		link_node(specials, -1, specials->roots[i]);
		queue[n++] = specials->roots[i];
	}
	for (size_t i = 0; i < n; i++) {
		int32_t child = specials->nodes[queue[i]].first_child;

		for (; child >= 0; child = specials->nodes[child].next_sibling) {
			link_node(specials, queue[i], child);
			queue[n++] = child;
		}
	}
	free(queue);
	return PAWL_OK;
}

bool
pawl_special_tokens_find(const struct pawl_special_tokens *specials, const char *text, size_t n,
	size_t start, bool control, struct pawl_special_match *match)
{
	const struct pawl_special_node *nodes = specials->nodes;
	int32_t node = -1, token;
	bool found = false;

	for (size_t end = start + 1; end <= n; end++) {
		size_t depth, from;

		node = follow(specials, node, (unsigned char)text[end - 1]);
		depth = node < 0 ? 0 : (size_t)nodes[node].depth;
		/* What is still to come begins later. */
		if (found && end - depth > match->start)
			return true;
		token = node < 0 ? -1 : nodes[node].tokens[control];
		if (token < 0)
			continue;
		from = end - (size_t)nodes[token].depth;
		if (!found || from <= match->start)
			*match = (struct pawl_special_match){from, end - from, nodes[token].id};
		found = true;
	}
	return found;
}
