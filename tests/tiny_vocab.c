#include "tests/tiny_vocab.h"

#include <check.h>
#include <string.h>

void
pawl_tiny_vocab_init(struct pawl_tiny_vocab *tiny, const char *pre)
{
	memset(tiny, 0, sizeof(*tiny));
	pawl_vocab_source_init(&tiny->source);
	tiny->source.model = (struct pawl_text){"gpt2", 4};
	tiny->source.pre = (struct pawl_text){pre, strlen(pre)};
	tiny->source.tokens = tiny->tokens;
	tiny->source.merges = tiny->merges;
	tiny->source.token_types = tiny->types;
}

static int32_t
add(struct pawl_tiny_vocab *tiny, struct pawl_text text, int32_t type)
{
	size_t id = tiny->source.n_tokens++;

	ck_assert_uint_lt(id, PAWL_TINY_MAX);
	tiny->tokens[id] = text;
	tiny->types[id] = type;
	tiny->source.n_token_types++;
	return (int32_t)id;
}

int32_t
pawl_tiny_vocab_add(struct pawl_tiny_vocab *tiny, const char *text, int32_t type)
{
	return add(tiny, (struct pawl_text){text, strlen(text)}, type);
}

void
pawl_tiny_vocab_add_letters(struct pawl_tiny_vocab *tiny, const char *letters)
{
	for (; *letters; letters++)
		add(tiny, (struct pawl_text){letters, 1}, PAWL_TOKEN_NORMAL);
}

void
pawl_tiny_vocab_add_merge(struct pawl_tiny_vocab *tiny, const char *merge)
{
	ck_assert_uint_lt(tiny->source.n_merges, PAWL_TINY_MAX);
	tiny->merges[tiny->source.n_merges++] = (struct pawl_text){merge, strlen(merge)};
}
