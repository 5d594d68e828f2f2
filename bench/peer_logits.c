/*
 * What llama.cpp computes, all of it: ids of a text, or logits as f32.  Built by bench/quality.sh.
 *
 * peer_logits MODEL ids <TEXT >IDS
 *	The ids of the text, separated by blanks; BOS first where the model wants it.
 * peer_logits MODEL f16|f32 LENGTH FIRST THREADS <IDS >LOGITS
 *	Evaluates windows of LENGTH ids, each from an empty cache of keys and values of that type, in
 *	one batch, and writes the logits at positions FIRST and later, a row of the vocabulary each.
 *	Ids beyond the last whole window are not read.  Products are on the CPU; flash attention as
 *	the library chooses for f16, none for f32.
 */
#include "llama.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TEXT = 1 << 20 };

static void
fail(const char *what)
{
	fprintf(stderr, "peer_logits: %s\n", what);
	exit(1);
}

static void
log_errors(enum ggml_log_level level, const char *text, void *arg)
{
	(void)arg;
	if (level == GGML_LOG_LEVEL_ERROR)
		fputs(text, stderr);
}

static void
print_ids(const struct llama_vocab *vocab)
{
	static char text[MAX_TEXT];
	static llama_token ids[MAX_TEXT];
	size_t length = fread(text, 1, sizeof(text), stdin);
	int32_t n;

	if (length == sizeof(text))
		fail("the text is too long");
	n = llama_tokenize(vocab, text, (int32_t)length, ids, MAX_TEXT, true, false);
	if (n < 0)
		fail("the text cannot be tokenized");
	for (int32_t i = 0; i < n; i++)
		printf("%d\n", (int)ids[i]);
}

static struct llama_context *
new_context(struct llama_model *model, enum ggml_type cache, uint32_t length, int n_threads)
{
	struct llama_context_params params = llama_context_default_params();
	struct llama_context *ctx;

	params.n_ctx = params.n_batch = length;
	params.n_threads = params.n_threads_batch = n_threads;
	params.type_k = params.type_v = cache;
	if (cache == GGML_TYPE_F32)
		params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
	ctx = llama_init_from_model(model, params);
	if (!ctx)
		fail("no context");
	return ctx;
}

static int
read_window(struct llama_batch *batch, int length, int first)
{
	for (int i = 0; i < length; i++) {
		int id;

		if (scanf("%d", &id) != 1)
			return 0;
		batch->token[i] = id;
		batch->pos[i] = i;
		batch->n_seq_id[i] = 1;
		batch->seq_id[i][0] = 0;
		batch->logits[i] = i >= first;
	}
	batch->n_tokens = length;
	return 1;
}

static void
write_logits(struct llama_context *ctx, size_t n_vocab, int length, int first)
{
	struct llama_batch batch = llama_batch_init(length, 0, 1);

	while (read_window(&batch, length, first)) {
		llama_memory_clear(llama_get_memory(ctx), true);
		if (llama_decode(ctx, batch))
			fail("a window cannot be evaluated");
		for (int i = first; i < length; i++) {
			const float *row = llama_get_logits_ith(ctx, i);

			if (!row || fwrite(row, sizeof(*row), n_vocab, stdout) != n_vocab)
				fail("a row of logits cannot be written");
		}
	}
	llama_batch_free(batch);
}

static int
number(const char *text)
{
	char *end;
	long n = strtol(text, &end, 10);

	if (end == text || *end || n < 0 || n > INT_MAX)
		fail("LENGTH, FIRST and THREADS are whole numbers");
	return (int)n;
}

int
main(int argc, char **argv)
{
	struct llama_model *model;
	const struct llama_vocab *vocab;

	if (argc != 6 && !(argc == 3 && !strcmp(argv[2], "ids")))
		fail("usage: MODEL ids | MODEL f16|f32 LENGTH FIRST THREADS");
	llama_log_set(log_errors, NULL);
	llama_backend_init();
	model = llama_model_load_from_file(argv[1], llama_model_default_params());
	if (!model)
		fail("the model cannot be read");
	vocab = llama_model_get_vocab(model);
	if (argc == 3) {
		print_ids(vocab);
	} else {
		int length = number(argv[3]);
		enum ggml_type cache = strcmp(argv[2], "f32") ? GGML_TYPE_F16 : GGML_TYPE_F32;
		struct llama_context *ctx =
			new_context(model, cache, (uint32_t)length, number(argv[5]));

		write_logits(ctx, (size_t)llama_vocab_n_tokens(vocab), length, number(argv[4]));
		llama_free(ctx);
	}
	llama_model_free(model);
	if (fflush(stdout))
		fail("not all of the output could be written");
	return 0;
}
