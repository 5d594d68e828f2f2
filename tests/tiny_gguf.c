#include "tests/tiny_gguf.h"

#include "ir/random.h"
#include "models/byte_level.h"
#include "models/tokenizer.h"
#include "tests/quantize_weights.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_LAYERS = 2, N_EMBD = 256, N_HEADS = 4, N_KV_HEADS = 2, HEAD_DIM = 64, N_FF = 256 };

/* Pairs of single characters; with the 256 bytes and the marks they fill the vocabulary. */
static const char merges[][2] = {"th", "he", "in", "er", "an", "re", "on", "at", "en", "nd", "ti",
	"es", "or", "te", "of", "ed", "is", "it", "al", "ar", "st", "to", "nt", "ng", "se", "ha",
	"as", "ou", "io", "le", "ve", "co", "me", "de", "hi", "ri", "ro", "ic", "ne", "ea", "ra"};

enum { N_MERGES = sizeof(merges) / sizeof(merges[0]), N_MARKS = 3 };

_Static_assert(256 + N_MERGES + N_MARKS == PAWL_TINY_GGUF_VOCAB, "the vocabulary is full");

static const char *const marks[N_MARKS] = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};

static const char chat_template[] =
	"{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + "
	"message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
	"{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

static int64_t
n_vocab(const struct pawl_tiny_gguf_options *o)
{
	return PAWL_TINY_GGUF_VOCAB + o->more_tokens;
}

static void
add_vocabulary(struct pawl_gguf_build *b, const struct pawl_tiny_gguf_options *o)
{
	char texts[256 + N_MERGES][8], pairs[N_MERGES][4];
	const char *tokens[PAWL_TINY_GGUF_VOCAB + 1], *merge_list[N_MERGES];
	int32_t types[PAWL_TINY_GGUF_VOCAB + 1];
	size_t n = (size_t)n_vocab(o);

	for (int i = 0; i <= PAWL_TINY_GGUF_VOCAB; i++)
		types[i] = i < 256 + N_MERGES ? PAWL_TOKEN_NORMAL : PAWL_TOKEN_CONTROL;
	for (int i = 0; i < 256; i++) {
		char byte = (char)i;

		texts[i][pawl_byte_level_encode(&byte, 1, texts[i])] = 0;
		tokens[i] = texts[i];
	}
	for (int i = 0; i < N_MERGES; i++) {
		snprintf(texts[256 + i], sizeof(texts[0]), "%.2s", merges[i]);
		snprintf(pairs[i], sizeof(pairs[0]), "%c %c", merges[i][0], merges[i][1]);
		tokens[256 + i] = texts[256 + i];
		merge_list[i] = pairs[i];
	}
	memcpy(tokens + 256 + N_MERGES, marks, sizeof(marks));
	tokens[PAWL_TINY_GGUF_VOCAB] = "<|more|>";
	if (o->other_token)
		tokens[0] = "<|other|>";
	pawl_gguf_build_string(b, "tokenizer.ggml.model", "gpt2");
	pawl_gguf_build_string(b, "tokenizer.ggml.pre", "smollm");
	pawl_gguf_build_strings(b, "tokenizer.ggml.tokens", tokens, n);
	pawl_gguf_build_array(b, "tokenizer.ggml.token_type", PAWL_GGUF_I32, types, n);
	pawl_gguf_build_strings(b, "tokenizer.ggml.merges", merge_list, N_MERGES);
	pawl_gguf_build_u32(b, "tokenizer.ggml.bos_token_id", PAWL_TINY_GGUF_EOS - 1);
	pawl_gguf_build_u32(b, "tokenizer.ggml.eos_token_id", PAWL_TINY_GGUF_EOS);
}

static void
add_shape(struct pawl_gguf_build *b)
{
	pawl_gguf_build_string(b, "general.architecture", "llama");
	pawl_gguf_build_string(b, "general.name", "tiny");
	pawl_gguf_build_u32(b, "llama.block_count", N_LAYERS);
	pawl_gguf_build_u32(b, "llama.context_length", PAWL_TINY_GGUF_CTX);
	pawl_gguf_build_u32(b, "llama.embedding_length", N_EMBD);
	pawl_gguf_build_u32(b, "llama.feed_forward_length", N_FF);
	pawl_gguf_build_u32(b, "llama.attention.head_count", N_HEADS);
	pawl_gguf_build_u32(b, "llama.attention.head_count_kv", N_KV_HEADS);
	pawl_gguf_build_u32(b, "llama.rope.dimension_count", HEAD_DIM);
	pawl_gguf_build_f32(b, "llama.rope.freq_base", 10000);
	pawl_gguf_build_f32(b, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
}

/* n_rows 0: a vector of norm weights about 1. */
static void
add_weight(struct pawl_gguf_build *b, const struct pawl_tiny_gguf_options *o, const char *name,
	int64_t n_columns, int64_t n_rows)
{
	int64_t n = n_columns * (n_rows ? n_rows : 1);
	enum pawl_dtype dtype = n_rows ? o->dtype : PAWL_DTYPE_F32;
	float *x = malloc((size_t)n * sizeof(*x));
	void *bytes = malloc((size_t)pawl_dtype_bytes(dtype, n));

	pawl_random_fill(PAWL_DTYPE_F32, o->seed, name, x, n);
	for (int64_t i = 0; i < n; i++)
		x[i] = n_rows ? x[i] * 2 / sqrtf((float)n_columns) : 1 + x[i] / 4;
	if (o->infinite_logits && !strcmp(name, "output_norm.weight"))
		x[0] = INFINITY;
	if (dtype == PAWL_DTYPE_F32)
		memcpy(bytes, x, (size_t)n * sizeof(*x));
	else
		pawl_quantize_weights(dtype, x, n, bytes);
	pawl_gguf_build_tensor(
		b, name, dtype, n_rows ? 2 : 1, (const int64_t[]){n_columns, n_rows}, bytes);
	free(bytes);
	free(x);
}

static void
add_layer(struct pawl_gguf_build *b, const struct pawl_tiny_gguf_options *o, int layer)
{
	static const struct {
		const char *name;
		int64_t n_columns, n_rows;
	} weights[] = {
		{"attn_norm", N_EMBD, 0},
		{"attn_q", N_EMBD, N_HEADS * HEAD_DIM},
		{"attn_k", N_EMBD, N_KV_HEADS * HEAD_DIM},
		{"attn_v", N_EMBD, N_KV_HEADS * HEAD_DIM},
		{"attn_output", N_HEADS * HEAD_DIM, N_EMBD},
		{"ffn_norm", N_EMBD, 0},
		{"ffn_gate", N_EMBD, N_FF},
		{"ffn_up", N_EMBD, N_FF},
		{"ffn_down", N_FF, N_EMBD},
	};
	char name[64];

	for (size_t i = 0; i < sizeof(weights) / sizeof(weights[0]); i++) {
		snprintf(name, sizeof(name), "blk.%d.%s.weight", layer, weights[i].name);
		add_weight(b, o, name, weights[i].n_columns, weights[i].n_rows);
	}
}

struct pawl_gguf_build *
pawl_tiny_gguf(const struct pawl_tiny_gguf_options *options)
{
	struct pawl_gguf_build *b = pawl_gguf_build_new(3);

	add_shape(b);
	add_vocabulary(b, options);
	if (!options->no_template)
		pawl_gguf_build_string(b, "tokenizer.chat_template", chat_template);
	add_weight(b, options, "token_embd.weight", N_EMBD, n_vocab(options));
	for (int layer = 0; layer < N_LAYERS; layer++)
		add_layer(b, options, layer);
	add_weight(b, options, "output_norm.weight", N_EMBD, 0);
	if (options->extra_tensor)
		add_weight(b, options, "blk.0.adapter.weight", N_EMBD, 0);
	return b;
}
