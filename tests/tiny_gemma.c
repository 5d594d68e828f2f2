#include "tests/tiny_gemma.h"

#include "ir/random.h"
#include "models/tokenizer.h"
#include "tests/quantize_weights.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	N_EMBD = PAWL_TINY_GEMMA_EMBD,
	N_HEADS = PAWL_TINY_GEMMA_HEADS,
	HEAD_DIM = PAWL_TINY_GEMMA_HEAD_DIM,
	N_FF = PAWL_TINY_GEMMA_FF,
	N_VOCAB = PAWL_TINY_GEMMA_VOCAB,
};

static const char *const specials[] = {
	"<pad>", "<eos>", "<bos>", "<unk>", "<start_of_turn>", "<end_of_turn>", "\n", "\n\n", "  "};

enum { N_SPECIALS = sizeof(specials) / sizeof(specials[0]), N_CONTROLS = 6, BYTES = N_SPECIALS };

/* What merging makes, best first. */
static const char *const pieces[] = {"\xe2\x96\x81t", "he", "in", "er", "an", "\xe2\x96\x81the",
	"on", "or", "us", "mo", "de", "el", "se", "re", "\xe2\x96\x81", "a", "d", "e", "h", "i",
	"l", "m", "n", "o", "r", "s", "t", "u", "user", "model", "y", "w", "g", "c", "b", "f", "p",
	".", ","};

enum { N_PIECES = sizeof(pieces) / sizeof(pieces[0]) };

_Static_assert(N_SPECIALS + 256 + N_PIECES == N_VOCAB, "the vocabulary is full");

static const char chat_template[] =
	"{{ bos_token }}{% for message in messages %}{{ '<start_of_turn>' + role + '\n' + "
	"message['content'] | trim }}{{ '<end_of_turn>\n' }}{% endfor %}"
	"{% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}";

static void
add_vocabulary(struct pawl_gguf_build *b)
{
	char texts[256][8];
	const char *tokens[N_VOCAB];
	int32_t types[N_VOCAB];
	float scores[N_VOCAB];

	for (int i = 0; i < N_SPECIALS; i++) {
		tokens[i] = specials[i];
		types[i] = i < N_CONTROLS ? PAWL_TOKEN_CONTROL : PAWL_TOKEN_USER_DEFINED;
		scores[i] = -1000;
	}
	for (int i = 0; i < 256; i++) {
		snprintf(texts[i], sizeof(texts[i]), "<0x%02X>", (unsigned int)i);
		tokens[BYTES + i] = texts[i];
		types[BYTES + i] = PAWL_TOKEN_BYTE;
		scores[BYTES + i] = 0;
	}
	for (int i = 0; i < N_PIECES; i++) {
		tokens[BYTES + 256 + i] = pieces[i];
		types[BYTES + 256 + i] = PAWL_TOKEN_NORMAL;
		scores[BYTES + 256 + i] = (float)-i;
	}
	pawl_gguf_build_string(b, "tokenizer.ggml.model", "llama");
	pawl_gguf_build_strings(b, "tokenizer.ggml.tokens", tokens, N_VOCAB);
	pawl_gguf_build_array(b, "tokenizer.ggml.scores", PAWL_GGUF_F32, scores, N_VOCAB);
	pawl_gguf_build_array(b, "tokenizer.ggml.token_type", PAWL_GGUF_I32, types, N_VOCAB);
	pawl_gguf_build_u32(b, "tokenizer.ggml.bos_token_id", 2);
	pawl_gguf_build_u32(b, "tokenizer.ggml.eos_token_id", 1);
	pawl_gguf_build_bool(b, "tokenizer.ggml.add_bos_token", true);
	pawl_gguf_build_bool(b, "tokenizer.ggml.add_space_prefix", false);
}

static void
add_shape(struct pawl_gguf_build *b, const struct pawl_tiny_gemma_options *o)
{
	pawl_gguf_build_string(b, "general.architecture", "gemma3");
	pawl_gguf_build_string(b, "general.name", "tiny gemma");
	pawl_gguf_build_u32(b, "gemma3.block_count", PAWL_TINY_GEMMA_LAYERS);
	pawl_gguf_build_u32(b, "gemma3.context_length", PAWL_TINY_GEMMA_CTX);
	pawl_gguf_build_u32(b, "gemma3.embedding_length", N_EMBD);
	pawl_gguf_build_u32(b, "gemma3.feed_forward_length", N_FF);
	pawl_gguf_build_u32(b, "gemma3.attention.head_count", N_HEADS);
	pawl_gguf_build_u32(b, "gemma3.attention.head_count_kv", 1);
	pawl_gguf_build_u32(b, "gemma3.attention.key_length", HEAD_DIM);
	pawl_gguf_build_u32(b, "gemma3.attention.value_length", HEAD_DIM);
	if (o->window)
		pawl_gguf_build_u32(b, "gemma3.attention.sliding_window", o->window);
	if (o->windows)
		pawl_gguf_build_array(b, "gemma3.attention.sliding_window_pattern", PAWL_GGUF_BOOL,
			o->windows, PAWL_TINY_GEMMA_LAYERS);
	pawl_gguf_build_f32(b, "gemma3.attention.layer_norm_rms_epsilon", 1e-6f);
	pawl_gguf_build_f32(b, "gemma3.rope.freq_base", 1000000);
}

/* n_rows 0: a vector of norm weights about 1. */
static void
add_weight(struct pawl_gguf_build *b, const struct pawl_tiny_gemma_options *o, const char *name,
	int64_t n_columns, int64_t n_rows)
{
	int64_t n = n_columns * (n_rows ? n_rows : 1);
	enum pawl_dtype dtype = n_rows ? o->dtype : PAWL_DTYPE_F32;
	float *x = malloc((size_t)n * sizeof(*x));
	void *bytes = malloc((size_t)pawl_dtype_bytes(dtype, n));

	pawl_random_fill(PAWL_DTYPE_F32, o->seed, name, x, n);
	for (int64_t i = 0; i < n; i++)
		x[i] = n_rows ? x[i] * 2 / sqrtf((float)n_columns) : 1 + x[i] / 2;
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
add_layer(struct pawl_gguf_build *b, const struct pawl_tiny_gemma_options *o, int layer)
{
	static const struct {
		const char *name;
		int64_t n_columns, n_rows;
	} weights[] = {
		{"attn_norm", N_EMBD, 0},
		{"attn_q", N_EMBD, N_HEADS * HEAD_DIM},
		{"attn_k", N_EMBD, HEAD_DIM},
		{"attn_v", N_EMBD, HEAD_DIM},
		{"attn_q_norm", HEAD_DIM, 0},
		{"attn_k_norm", HEAD_DIM, 0},
		{"attn_output", N_HEADS * HEAD_DIM, N_EMBD},
		{"post_attention_norm", N_EMBD, 0},
		{"ffn_norm", N_EMBD, 0},
		{"ffn_gate", N_EMBD, N_FF},
		{"ffn_up", N_EMBD, N_FF},
		{"ffn_down", N_FF, N_EMBD},
		{"post_ffw_norm", N_EMBD, 0},
	};
	char name[64];

	for (size_t i = 0; i < sizeof(weights) / sizeof(weights[0]); i++) {
		snprintf(name, sizeof(name), "blk.%d.%s.weight", layer, weights[i].name);
		add_weight(b, o, name, weights[i].n_columns, weights[i].n_rows);
	}
}

struct pawl_gguf_build *
pawl_tiny_gemma(const struct pawl_tiny_gemma_options *options)
{
	struct pawl_gguf_build *b = pawl_gguf_build_new(3);

	add_shape(b, options);
	add_vocabulary(b);
	if (options->chat)
		pawl_gguf_build_string(b, "tokenizer.chat_template", chat_template);
	add_weight(b, options, "token_embd.weight", N_EMBD, N_VOCAB);
	for (int layer = 0; layer < PAWL_TINY_GEMMA_LAYERS; layer++)
		add_layer(b, options, layer);
	add_weight(b, options, "output_norm.weight", N_EMBD, 0);
	return b;
}

struct pawl_model *
pawl_tiny_gemma_open(const struct pawl_tiny_gemma_options *options)
{
	char folder[] = "/tmp/pawl-gemma-XXXXXX", path[64];
	struct pawl_model *model;
	struct pawl_error err;

	if (!mkdtemp(folder)) {
		perror(folder);
		abort();
	}
	snprintf(path, sizeof(path), "%s/model.gguf", folder);
	pawl_gguf_build_write(pawl_tiny_gemma(options), path);
	if (pawl_model_open(path, &model, &err)) {
		fprintf(stderr, "%s\n", err.text);
		abort();
	}
	unlink(path);
	rmdir(folder);
	return model;
}
