#include "models/special_tokens.h"

/* A trie; the children of a node are a chain of siblings. */
struct pawl_special_node {
	int32_t first_child, next_sibling; /* -1: none */
	int32_t id;                        /* of the token that ends here, or -1 */
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

	node->first_child = -1;
	node->next_sibling = -1;
	node->id = -1;
	node->byte = byte;
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

bool
pawl_special_tokens_find(const struct pawl_special_tokens *specials, const char *text, size_t n,
	size_t start, bool control, struct pawl_special_match *match)
{
	for (; start < n; start++) {
		int32_t node = -1;
		bool found = false;

		for (size_t i = start; i < n; i++) {
			const struct pawl_special_node *at;

			node = find_child(specials, node, (unsigned char)text[i]);
			if (node < 0)
				break;
			at = &specials->nodes[node];
			if (at->id >= 0 && (control || at->always)) {
				*match = (struct pawl_special_match){start, i + 1 - start, at->id};
				found = true;
			}
		}
		if (found)
			return true;
	}
	return false;
}
