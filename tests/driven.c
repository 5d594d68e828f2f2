#include "tests/driven.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "ir/eval.h"
#include "ir/print.h"
#include "tests/decoding.h"

enum { MODEL = 5 };

/* A copy of a graph with `to` wherever `from` is. */
static char *
exchange(struct pawl_driven *d, const char *graph)
{
	size_t n_from = strlen(d->from), n_to = strlen(d->to);
	char *out = malloc(strlen(graph) * (1 + n_to) + 1), *end = out;

	ck_assert_ptr_nonnull(out);
	while (*graph) {
		if (strncmp(graph, d->from, n_from)) {
			*end++ = *graph++;
			continue;
		}
		memcpy(end, d->to, n_to);
		end += n_to;
		graph += n_from;
		d->n_exchanged++;
	}
	*end = 0;
	return out;
}

static int
build(void *user, const struct pawl_step_request *request, struct pawl_host_graph *graph)
{
	const struct pawl_api *api = pawl_test_host_api();
	struct pawl_driven *d = user;
	const struct pawl_graph_request asked = {.n_tokens = request->n_tokens,
		.capacity = request->capacity,
		.kv_dtype = strncmp(request->k_type, "f16", 3) ? PAWL_DTYPE_F32 : PAWL_DTYPE_F16,
		.logits = (enum pawl_logits)request->logits,
		.n_sequences = request->n_sequences,
		.block_size = request->block_size,
		.max_blocks = request->max_blocks,
		.ring = request->ring};
	struct pawl_graph *built;
	struct pawl_error err;
	char *text, *body;

	d->n_built++;
	if (d->fails == 1)
		return 1;
	if (d->fails == 2) {
		PAWL_HOST_OK(api->graph_add_text(graph, "%x = const : f32[4]\noutput %x\n", 30));
		return 0;
	}
	ck_assert(d->source->build(d->source->ctx, &asked, &built, &err) == PAWL_OK);
	text = pawl_print(built, NULL);
	pawl_graph_free(built);
	ck_assert_ptr_nonnull(text);
	/* The types of the caches are those that were asked for. */
	ck_assert_msg(d->is_stranger ||
			      (strstr(text, request->k_type) && strstr(text, request->v_type)),
		"%s, %s", request->k_type, request->v_type);
	ck_assert(!request->ring || strstr(text, request->ring_k_type));
	body = strchr(strchr(text, '\n') + 1, '\n') + 1;
	*strrchr(body, '}') = 0;
	if (d->from) {
		char *exchanged = exchange(d, body);

		free(text);
		text = body = exchanged;
	}
	PAWL_HOST_OK(api->graph_add_text(graph, body, strlen(body)));
	free(text);
	return 0;
}

static void
rope(void *user, int64_t position, float *cos, float *sin)
{
	const struct pawl_driven *d = user;

	d->source->rope(d->source->ctx, position, d->source->rope_width, cos, sin);
}

struct pawl_model_options
pawl_driven_options(struct pawl_driven *d)
{
	return (struct pawl_model_options){.struct_size = sizeof(struct pawl_model_options),
		.n_layers = d->source->n_layers,
		.n_kv_heads = d->source->n_kv_heads,
		.head_dim = d->source->head_dim,
		.n_vocab = d->source->n_vocab,
		.rope_width = d->source->rope_width,
		.rope_halves = d->source->rope_pairs == PAWL_PAIRS_HALVES,
		.model = MODEL,
		.build = build,
		.rope = rope,
		.user = d};
}

void
pawl_driven_init(struct pawl_driven *d, const char *target, int n_threads,
	const struct pawl_services *services, const struct pawl_tiny_options *tiny)
{
	const struct pawl_graph_request request = {.n_tokens = 1,
		.capacity = PAWL_DRIVEN_CAPACITY,
		.kv_dtype = PAWL_DTYPE_F16,
		.logits = PAWL_LOGITS_LAST};

	*d = (struct pawl_driven){
		.context = pawl_test_host_context(target, n_threads, services),
		.tiny = pawl_tiny_model_new(tiny)};
	d->source = pawl_tiny_model_source(d->tiny);
	pawl_test_host_init(&d->lender, d->context, d->source, &request);
}

void
pawl_driven_begin(struct pawl_driven *d, const char *target, int n_threads,
	const struct pawl_services *services)
{
	const struct pawl_tiny_options tiny = pawl_tiny_defaults();
	struct pawl_model_options options;

	pawl_driven_init(d, target, n_threads, services, &tiny);
	options = pawl_driven_options(d);
	PAWL_HOST_OK(pawl_test_host_api()->model_create(
		d->context, d->lender.weights, &options, &d->model));
}

void
pawl_driven_end(struct pawl_driven *d)
{
	pawl_test_host_api()->model_release(d->model);
	pawl_test_host_release(&d->lender);
	pawl_test_host_context_end(d->context);
	pawl_tiny_model_free(d->tiny);
}

struct pawl_host_decoder *
pawl_driven_decoder(struct pawl_driven *d, int64_t prefill_chunk)
{
	const struct pawl_decoder_settings settings = {.struct_size = sizeof(settings),
		.capacity = PAWL_DRIVEN_CAPACITY,
		.prefill_chunk = prefill_chunk};
	struct pawl_host_decoder *decoder;

	PAWL_HOST_OK(pawl_test_host_api()->decoder_create(d->model, &settings, &decoder));
	return decoder;
}

const uint32_t *
pawl_driven_tokens(unsigned seed, int64_t first, int64_t n)
{
	static uint32_t tokens[2 * PAWL_DRIVEN_CAPACITY];

	for (int64_t i = 0; i < n; i++)
		tokens[i] = pawl_test_token(seed, first + i);
	return tokens;
}

uint32_t
pawl_driven_likeliest(const float *logits)
{
	int best = 0;

	for (int i = 1; i < PAWL_DRIVEN_VOCAB; i++)
		if (logits[i] > logits[best])
			best = i;
	return (uint32_t)best;
}

void
pawl_driven_expect(const struct pawl_driven *d, const float *logits, unsigned seed, int64_t n)
{
	struct pawl_decoder_options options = pawl_test_decoder_options();
	float *wanted;

	if (n > PAWL_DRIVEN_CAPACITY)
		options.capacity = 2 * PAWL_DRIVEN_CAPACITY;
	wanted = pawl_test_fresh(d->tiny, &options, seed, n);
	ck_assert_ptr_nonnull(logits);
	for (int64_t i = 0; i < PAWL_DRIVEN_VOCAB; i++)
		ck_assert_msg(pawl_eval_same(wanted[i], logits[i]), "logit %d of %d tokens: %a, %a",
			(int)i, (int)n, (double)wanted[i], (double)logits[i]);
	free(wanted);
}
