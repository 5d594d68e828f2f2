/* One sequence at a time: replanned, forked, in a file, guessed, in rings. */
#include "tests/same_bits.h"

#include "ir/graph.h"
#include "runtime/decoder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A window for a model that has none. */
enum { WINDOW = 97, LONG_STEPS = 20 };

static struct pawl_same_bits *const t = &pawl_same_bits;

static struct pawl_decoder_options
options_of(void)
{
	return (struct pawl_decoder_options){.capacity = PAWL_KNOWN_CAPACITY,
		.kv_dtype = PAWL_DTYPE_F16,
		.precision = PAWL_PRECISION_A16,
		.plans = t->plans};
}

static struct pawl_decoder *
new_decoder(const struct pawl_model_source *source, const struct pawl_decoder_options *options)
{
	struct pawl_decoder *decoder;

	pawl_same_must(pawl_decoder_new(source, t->device, options, &decoder, &t->err));
	return decoder;
}

static void
prefill(const char *name, struct pawl_decoder *decoder, int sequence)
{
	const struct pawl_known_sequence *known = &t->known[sequence];
	const float *logits;

	pawl_same_must(pawl_decoder_prefill(
		decoder, known->tokens, known->n_prompt, &logits, &t->err));
	pawl_same_logits(name, sequence, 0, logits);
}

static void
step(const char *name, struct pawl_decoder *decoder, int sequence, int first, int end)
{
	const float *logits;

	for (int i = first; i < end; i++) {
		pawl_same_must(pawl_decoder_step(
			decoder, pawl_known_token(sequence, i), &logits, &t->err));
		pawl_same_logits(name, sequence, i + 1, logits);
	}
}

void
pawl_same_replanned(void)
{
	struct pawl_decoder_options options = options_of();
	struct pawl_decoder_stats stats;
	struct pawl_decoder *decoder;

	options.replan = true;
	options.plans = NULL;
	decoder = new_decoder(t->source, &options);
	prefill("replanned", decoder, 2);
	step("replanned", decoder, 2, 0, 2);
	pawl_decoder_stats(decoder, &stats);
	/* The cache; so short a prompt goes token by token. */
	pawl_same_count("optimizes of a replanned run", (int64_t)stats.counters.optimizes,
		1 + t->known[2].n_prompt + 2);
	pawl_decoder_free(decoder);
}

/* Both go on after a fork, the original first. */
void
pawl_same_forked(void)
{
	const struct pawl_decoder_options options = options_of();
	struct pawl_decoder *decoder = new_decoder(t->source, &options);
	struct pawl_kv_cache *fork;

	prefill("forked", decoder, 0);
	step("forked", decoder, 0, 0, 2);
	pawl_same_must(pawl_kv_cache_fork(pawl_decoder_cache(decoder), &fork, &t->err));
	step("the original", decoder, 0, 2, 5);
	pawl_decoder_swap_cache(decoder, &fork);
	step("the fork", decoder, 0, 2, 5);
	pawl_decoder_swap_cache(decoder, &fork);
	step("the original", decoder, 0, 5, 7);
	pawl_kv_cache_free(fork);
	pawl_decoder_free(decoder);
}

/* path: a template of mkstemp, which becomes the name. */
static void
save(const struct pawl_decoder *decoder, const struct pawl_known_sequence *known, char *path)
{
	int fd = mkstemp(path);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "wb");
	const struct pawl_kv_snapshot_sink to = pawl_kv_snapshot_file_sink(file);

	if (!file) {
		perror(path);
		exit(1);
	}
	pawl_same_must(pawl_decoder_save(
		decoder, known->tokens, pawl_decoder_len(decoder), &to, &t->err));
	if (fclose(file)) {
		perror(path);
		exit(1);
	}
}

/* Into the cache of a decoder that had another sequence. */
void
pawl_same_restored(void)
{
	const struct pawl_decoder_options options = options_of();
	struct pawl_decoder *decoder = new_decoder(t->source, &options), *other;
	struct pawl_kv_snapshot *snapshot;
	char path[] = "/tmp/pawl-same-XXXXXX";

	prefill("saved", decoder, 0);
	step("saved", decoder, 0, 0, 3);
	save(decoder, &t->known[0], path);
	step("after saving", decoder, 0, 3, 5);
	pawl_decoder_free(decoder);
	other = new_decoder(t->source, &options);
	prefill("another", other, 1);
	pawl_same_must(pawl_kv_snapshot_open(path, &snapshot, &t->err));
	pawl_same_must(pawl_decoder_restore(other, snapshot, &t->err));
	pawl_kv_snapshot_free(snapshot);
	unlink(path);
	step("restored from a file", other, 0, 3, PAWL_KNOWN_STEPS);
	pawl_decoder_free(other);
}

void
pawl_same_guessed(void)
{
	const struct pawl_decoder_options options = options_of();
	struct pawl_decoder *decoder = new_decoder(t->source, &options);
	const struct pawl_speculative_target target = pawl_speculative_decoder(decoder);

	for (int right = 0; right <= PAWL_KNOWN_GUESS; right++) {
		struct pawl_known_guess guess = {right % PAWL_KNOWN_SEQUENCES, right};

		pawl_decoder_truncate(decoder, 0);
		prefill("guesses", decoder, guess.sequence);
		pawl_same_follow("guesses", &target, &guess);
	}
	pawl_decoder_free(decoder);
}

/* The model as if its attention had a window: with rings where the request has them. */
static enum pawl_status
build_windowed(void *ctx, const struct pawl_graph_request *request, struct pawl_graph **out,
	struct pawl_error *err)
{
	struct pawl_graph_request inner = *request;
	struct pawl_node *node;
	enum pawl_status status;

	/* All caches of this graph are rings, which the family does not know. */
	if (request->ring)
		inner.capacity = request->ring;
	status = t->source->build(ctx, &inner, out, err);
	if (status)
		return status;
	(*out)->symbols[0].max = request->capacity;
	pawl_foreach_node(node, *out) {
		if (node->op == PAWL_OP_ATTENTION || node->op == PAWL_OP_PAGED_ATTENTION)
			node->attrs.window = WINDOW;
		if (node->op == PAWL_OP_PAGED_ATTENTION)
			node->inputs[4].def->type.dim[1].base =
				(request->capacity - 1) / request->ring + 1;
	}
	return PAWL_OK;
}

static struct pawl_model_source
windowed(void)
{
	struct pawl_model_source source = *t->source;

	if (source.window)
		return source;
	source.build = build_windowed;
	source.window = WINDOW;
	for (int64_t i = 0; i < source.n_layers; i++)
		pawl_layer_set_add(&source.window_layers, i);
	pawl_shape_key_string(&source.shape_key, "windowed");
	return source;
}

/* The logits of each of LONG_STEPS tokens behind n others. */
static float *
run_long(struct pawl_decoder *decoder, int64_t n)
{
	size_t n_vocab = (size_t)t->source->n_vocab;
	float *all = malloc(LONG_STEPS * n_vocab * sizeof(*all));
	uint32_t *tokens = calloc((size_t)n, sizeof(*tokens));
	const float *logits;

	if (!all || !tokens)
		exit(1);
	for (int64_t i = 0; i < n; i++)
		tokens[i] = (uint32_t)(i * 211 % t->source->n_vocab);
	pawl_decoder_truncate(decoder, 0);
	pawl_same_must(pawl_decoder_prefill(decoder, tokens, n, NULL, &t->err));
	free(tokens);
	for (int i = 0; i < LONG_STEPS; i++) {
		pawl_same_must(pawl_decoder_step(
			decoder, (uint32_t)(i * 37 % t->source->n_vocab), &logits, &t->err));
		memcpy(all + (size_t)i * n_vocab, logits, n_vocab * sizeof(*all));
	}
	return all;
}

void
pawl_same_ring(void)
{
	const struct pawl_model_source source = windowed();
	const int64_t ring = pawl_kv_ring_capacity(source.window, PAWL_PREFILL_CHUNK, 0);
	const size_t n = LONG_STEPS * (size_t)source.n_vocab * sizeof(float);
	struct pawl_decoder_options options = options_of();
	struct pawl_decoder *plain, *without, *with;
	float *everything, *wanted, *got;

	options.capacity = 2 * ring;
	plain = new_decoder(t->source, &options);
	without = new_decoder(&source, &options);
	options.rings = true;
	with = new_decoder(&source, &options);
	pawl_same_count("positions of a ring",
		pawl_kv_cache_shape(pawl_decoder_cache(with))->rings.positions, ring);
	prefill("a ring", with, 0);
	step("a ring", with, 0, 0, PAWL_KNOWN_STEPS);
	everything = run_long(plain, ring + 20);
	wanted = run_long(without, ring + 20);
	got = run_long(with, ring + 20);
	pawl_same_count("a ring that went round", memcmp(got, wanted, n) != 0, 0);
	pawl_same_count("a window that matters", memcmp(everything, wanted, n) != 0,
		!t->source->window);
	free(everything);
	free(wanted);
	free(got);
	pawl_decoder_free(plain);
	pawl_decoder_free(without);
	pawl_decoder_free(with);
}

