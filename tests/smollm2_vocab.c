#include "tests/smollm2_vocab.h"

#include "tests/data_file.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

const char pawl_smollm2_chat_template[] =
	"{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
	"{{ '<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging "
	"Face<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + message['role'] + '\n' + "
	"message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}"
	"{{ '<|im_start|>assistant\n' }}{% endif %}";

static struct pawl_text
join(struct pawl_arena *arena, struct pawl_text left, const char *between, struct pawl_text right)
{
	size_t n_between = strlen(between);
	char *bytes = pawl_arena_alloc(arena, left.n + n_between + right.n, 1);

	ck_assert_ptr_nonnull(bytes);
	memcpy(bytes, left.bytes, left.n);
	memcpy(bytes + left.n, between, n_between);
	memcpy(bytes + left.n + n_between, right.bytes, right.n);
	return (struct pawl_text){bytes, left.n + n_between + right.n};
}

/* Lines "TYPE TEXT" up to an empty one. */
static size_t
read_base(char *data, struct pawl_text *tokens, int32_t *types, size_t *n)
{
	char *line = data;

	for (*n = 0; *line != '\n'; ++*n) {
		char *end = strchr(line, '\n');

		ck_assert_ptr_nonnull(end);
		types[*n] = line[0] - '0';
		tokens[*n] = (struct pawl_text){line + 2, (size_t)(end - line) - 2};
		line = end + 1;
	}
	return (size_t)(line + 1 - data);
}

void
pawl_smollm2_vocab(struct pawl_arena *arena, struct pawl_vocab_source *source)
{
	enum { N_TOKENS = 49152 };
	struct pawl_text *tokens = pawl_arena_alloc(arena, N_TOKENS, sizeof(*tokens));
	struct pawl_text *merges = pawl_arena_alloc(arena, N_TOKENS, sizeof(*merges));
	int32_t *types = pawl_arena_alloc(arena, N_TOKENS, sizeof(*types));
	size_t n_bytes, n_base, at;
	char *file = pawl_test_data("smollm2-vocab.bin", &n_bytes);
	char *data = pawl_arena_strndup(arena, file, n_bytes);
	const unsigned char *pair;

	free(file);
	ck_assert(tokens && merges && types && data);
	at = read_base(data, tokens, types, &n_base);
	ck_assert_uint_eq(n_bytes - at, 4 * (N_TOKENS - n_base));
	pair = (const unsigned char *)data + at;
	for (size_t i = n_base; i < N_TOKENS; i++, pair += 4) {
		struct pawl_text left = tokens[pair[0] | pair[1] << 8];
		struct pawl_text right = tokens[pair[2] | pair[3] << 8];

		tokens[i] = join(arena, left, "", right);
		merges[i - n_base] = join(arena, left, " ", right);
		types[i] = PAWL_TOKEN_NORMAL;
	}
	pawl_vocab_source_init(source);
	source->model = (struct pawl_text){"gpt2", 4};
	source->pre = (struct pawl_text){"smollm", 6};
	source->tokens = tokens;
	source->n_tokens = N_TOKENS;
	source->token_types = types;
	source->n_token_types = N_TOKENS;
	source->merges = merges;
	source->n_merges = N_TOKENS - n_base;
	source->bos = 1;
	source->eos = 2;
	source->unknown = 0;
	source->padding = 2;
	source->add_bos = 0;
}

struct pawl_tokenizer *
pawl_smollm2_tokenizer(void)
{
	struct pawl_vocab_source source;
	struct pawl_tokenizer *tokenizer;
	struct pawl_error err = {0};
	struct pawl_arena arena;

	pawl_arena_init(&arena);
	pawl_smollm2_vocab(&arena, &source);
	ck_assert_msg(pawl_tokenizer_new(&source, &tokenizer, &err) == PAWL_OK, "%s", err.text);
	pawl_arena_release(&arena);
	return tokenizer;
}
