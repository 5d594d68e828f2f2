/*
 * Pawl's runtime from C, as a server uses it: texts go on side by side over one pool of blocks.
 *
 *	serve MODEL.gguf SNAPSHOT [TARGET]
 *
 * README.md says how to compile it.
 */
#include "models/model.h"
#include "runtime/decoder.h"
#include "runtime/paged_decoder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TOKENS = 64, MAX_PROMPT = 40, N_NEW = 12 };

/* A text.  Its tokens are in the cache, all but the next one, which was chosen and not run yet. */
struct sequence {
	struct pawl_kv_session_id id; /* in the pool */
	uint32_t tokens[MAX_TOKENS], next;
	int64_t n;
};

static struct pawl_error err;
static struct pawl_model *model;
static struct pawl_device *device;

/* Whatever may fail returns a status and says why in the error it was given. */
static void
must(enum pawl_status status)
{
	if (status) {
		fprintf(stderr, "serve: %s\n", err.text);
		exit(1);
	}
}

/* Takes the likeliest token; logits are valid until the decoder's next call. */
static void
choose(struct sequence *s, const float *logits)
{
	s->next = 0;
	for (uint32_t i = 1; i < (uint32_t)pawl_model_info(model)->n_vocab; i++)
		if (logits[i] > logits[s->next])
			s->next = i;
}

static struct sequence
encode(const char *text)
{
	struct sequence s = {.n = 0};
	struct pawl_token_list list;

	pawl_token_list_init(&list);
	must(pawl_tokenizer_encode(
		pawl_model_tokenizer(model), text, strlen(text), 0, &list, &err));
	for (; s.n < (int64_t)list.n && s.n < MAX_PROMPT; s.n++)
		s.tokens[s.n] = list.ids[s.n];
	pawl_token_list_release(&list);
	return s;
}

/* A token for each of n sequences in one run, whatever their lengths. */
static void
step(struct pawl_paged_decoder *decoder, struct sequence *s, int64_t n)
{
	struct pawl_paged_row rows[PAWL_MAX_BATCH];
	const float *logits;

	for (int64_t i = 0; i < n; i++)
		rows[i] = (struct pawl_paged_row){s[i].id, s[i].next};
	must(pawl_paged_decoder_step(decoder, rows, n, &logits, &err));
	for (int64_t i = 0; i < n; i++) {
		s[i].tokens[s[i].n++] = s[i].next;
		choose(&s[i], logits + i * pawl_paged_decoder_n_vocab(decoder));
	}
}

/* s[0] and s[2] are prompts; s[1] becomes a branch of s[0]. */
static void
serve(struct sequence *s)
{
	/* What is left out is 0, which means a default: of threads, of the chunks of prompts. */
	const struct pawl_paged_options options = {
		.n_blocks = 12, .block_size = 16, .max_blocks = 4, .kv_dtype = PAWL_DTYPE_F16};
	struct pawl_paged_decoder *decoder;
	struct pawl_kv_evict_report report;
	const float *logits;

	must(pawl_paged_decoder_new(pawl_model_source(model), device, &options, &decoder, &err));
	for (int i = 0; i < 3; i += 2) {
		must(pawl_paged_decoder_open(decoder, &s[i].id, &err));
		must(pawl_paged_decoder_prefill(
			decoder, s[i].id, s[i].tokens, s[i].n, &logits, &err));
		choose(&s[i], logits);
	}

	/* A fork takes no block; the next step copies the one that both are about to write. */
	s[1] = s[0];
	must(pawl_kv_block_pool_fork(
		pawl_paged_decoder_pool(decoder), s[0].id, &s[1].id, &err));
	s[1].next = s[1].next ? s[1].next - 1 : 1;
	for (int i = 0; i < N_NEW / 2; i++)
		step(decoder, s, 3);

	/* s[2] leaves its blocks to others, and comes back as it was. */
	must(pawl_paged_decoder_evict(decoder, s[2].id, &report, &err));
	step(decoder, s, 2);
	must(pawl_paged_decoder_restore(decoder, report.handle, &err));
	step(decoder, &s[2], 1);
	for (int i = N_NEW / 2 + 1; i < N_NEW; i++)
		step(decoder, s, 3);
	pawl_paged_decoder_free(decoder);
}

/* The same in a cache of its own, which goes into a file and comes out of it. */
static void
decode_alone(struct sequence *s, const char *path)
{
	const struct pawl_decoder_options options = {
		.capacity = MAX_TOKENS, .kv_dtype = PAWL_DTYPE_F16};
	FILE *file = fopen(path, "wb");
	const struct pawl_kv_snapshot_sink sink = pawl_kv_snapshot_file_sink(file);
	struct pawl_kv_snapshot *snapshot;
	struct pawl_decoder *decoder;
	const float *logits;

	must(pawl_decoder_new(pawl_model_source(model), device, &options, &decoder, &err));
	must(pawl_decoder_prefill(decoder, s->tokens, s->n, &logits, &err));
	choose(s, logits);
	must(file ? pawl_decoder_save(decoder, s->tokens, s->n, &sink, &err)
		  : pawl_fail(&err, PAWL_ENVIRONMENT, "%s cannot be written", path));
	must(fclose(file) ? pawl_fail(&err, PAWL_ENVIRONMENT, "%s is incomplete", path) : PAWL_OK);
	pawl_decoder_truncate(decoder, 0);
	must(pawl_kv_snapshot_open(path, &snapshot, &err));
	must(pawl_decoder_restore(decoder, snapshot, &err));
	pawl_kv_snapshot_free(snapshot);
	for (int i = 0; i < N_NEW; i++) {
		must(pawl_decoder_step(decoder, s->next, &logits, &err));
		s->tokens[s->n++] = s->next;
		choose(s, logits);
	}
	pawl_decoder_free(decoder);
}

int
main(int argc, char **argv)
{
	struct sequence all[3], alone;
	size_t n;

	if (argc < 3) {
		fprintf(stderr, "usage: serve MODEL.gguf SNAPSHOT [TARGET]\n");
		return 2;
	}
	must(pawl_model_open(argv[1], &model, &err));
	must(pawl_device_open(argc > 3 ? argv[3] : "cpu", NULL, &device, &err));
	all[0] = alone = encode("Once upon a time");
	all[2] = encode("The sky is blue because of");
	serve(all);
	decode_alone(&alone, argv[2]);
	if (memcmp(alone.tokens, all[0].tokens, sizeof(alone.tokens)))
		must(pawl_fail(&err, PAWL_INTERNAL, "a batch has other tokens"));
	for (int i = 0; i < 3; i++) {
		char *text;

		must(pawl_tokenizer_decode(pawl_model_tokenizer(model), all[i].tokens,
			(size_t)all[i].n, true, &text, &n, &err));
		printf("%d: %s\n", i, text);
		free(text);
	}
	pawl_device_unref(device);
	pawl_model_free(model);
	return 0;
}
