/*
 * A host with a model file: it hands graphs, weights and rope tables to pawl_plugin.so through the
 * ABI, and continues a prompt by the likeliest tokens, with a decoder, with guesses and as a request
 * of a scheduler; a line of ids for each.
 *
 *	host-gguf PATH/pawl_plugin.so TARGET MODEL.gguf N TOKEN...
 *
 * Of Pawl it links only what stands for its own reading of models.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pawl/plugin.h>

#include "ir/print.h"
#include "models/model.h"

enum { CAPACITY = 512, MAX_TOKENS = 256, MAX_WEIGHTS = 1024, TYPE_BYTES = 128 };

static const struct pawl_api *api;
static const struct pawl_model_source *source;
static struct pawl_error err;
static struct pawl_storage *lent[MAX_WEIGHTS];
static int n_lent;
static uint32_t prompt[MAX_TOKENS];
static int64_t n_prompt;

static _Noreturn void
fail(const char *text)
{
	fprintf(stderr, "host-gguf: %s\n", text);
	exit(1);
}

static void
must(struct pawl_host_status *status)
{
	if (status)
		fail(api->status_message(status));
}

static void
must_read(enum pawl_status status)
{
	if (status)
		fail(err.text);
}

static void
check_type(const char *asked, const char *text)
{
	if (*asked && !strstr(text, asked))
		fail("a cache is not of the type that was asked for");
}

static int
build(void *user, const struct pawl_step_request *request, struct pawl_host_graph *graph)
{
	const struct pawl_graph_request asked = {.n_tokens = request->n_tokens,
		.capacity = request->capacity,
		.kv_dtype = PAWL_DTYPE_F16,
		.logits = (enum pawl_logits)request->logits,
		.n_sequences = request->n_sequences,
		.block_size = request->block_size,
		.max_blocks = request->max_blocks,
		.ring = request->ring};
	struct pawl_graph *built;
	char *text, *body;

	(void)user;
	must_read(source->build(source->ctx, &asked, &built, &err));
	text = pawl_print(built, NULL);
	pawl_graph_free(built);
	if (!text)
		fail("no memory");
	check_type(request->k_type, text);
	check_type(request->ring_k_type, text);
	body = strchr(strchr(text, '\n') + 1, '\n') + 1;
	*strrchr(body, '}') = 0;
	must(api->graph_add_text(graph, body, strlen(body)));
	free(text);
	return 0;
}

static void
rope(void *user, int64_t position, float *cos, float *sin)
{
	(void)user;
	source->rope(source->ctx, position, source->rope_width, cos, sin);
}

static void
window_rope(void *user, int64_t position, float *cos, float *sin)
{
	(void)user;
	source->window_rope(source->ctx, position, source->rope_width, cos, sin);
}

/* Every weight of a step, where it lies. */
static void
lend_weights(struct pawl_host_weights *weights)
{
	const struct pawl_graph_request request = {.n_tokens = 1,
		.capacity = CAPACITY,
		.kv_dtype = PAWL_DTYPE_F16,
		.logits = PAWL_LOGITS_LAST};
	struct pawl_graph *graph;
	struct pawl_node *node;

	must_read(source->build(source->ctx, &request, &graph, &err));
	pawl_foreach_node(node, graph) {
		char type[TYPE_BYTES];
		struct pawl_storage *storage;

		if (node->op != PAWL_OP_CONST || node->attrs.role != PAWL_ROLE_WEIGHT)
			continue;
		must_read(pawl_weights_bind(
			source->weights, node->name, &node->type, NULL, &storage, &err));
		if (n_lent == MAX_WEIGHTS)
			fail("too many weights");
		lent[n_lent++] = storage;
		pawl_print_type(type, sizeof(type), graph, &node->type);
		must(api->weights_add(weights, node->name, type, storage->bytes,
			(size_t)storage->n_bytes));
	}
	pawl_graph_free(graph);
}

static struct pawl_host_model *
make_model(struct pawl_host_context *context, struct pawl_host_weights *weights)
{
	int64_t layers[PAWL_MAX_WINDOW_LAYERS], n = 0;
	struct pawl_model_options options = {.struct_size = sizeof(options),
		.n_layers = source->n_layers,
		.n_kv_heads = source->n_kv_heads,
		.head_dim = source->head_dim,
		.n_vocab = source->n_vocab,
		.rope_width = source->rope_width,
		.rope_halves = source->rope_pairs == PAWL_PAIRS_HALVES,
		.window = source->window,
		.window_layers = layers,
		.build = build,
		.rope = source->rope ? rope : NULL,
		.window_rope = source->window_rope ? window_rope : NULL};
	struct pawl_host_model *model;

	for (int64_t i = 0; i < source->n_layers; i++)
		if (source->window && pawl_layer_set_has(&source->window_layers, i))
			layers[n++] = i;
	options.n_window_layers = n;
	must(api->model_create(context, weights, &options, &model));
	return model;
}

static uint32_t
likeliest(const float *logits)
{
	int64_t best = 0;

	for (int64_t i = 1; i < source->n_vocab; i++)
		if (logits[i] > logits[best])
			best = i;
	return (uint32_t)best;
}

static void
print(const uint32_t *tokens, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		printf(i ? " %u" : "%u", tokens[i]);
	printf("\n");
}

/* By a decoder, whose layers with a window keep rings; guessing: with guesses by lookup. */
static void
decode(struct pawl_host_model *model, int64_t n, int is_guessing)
{
	const struct pawl_decoder_settings settings = {.struct_size = sizeof(settings),
		.capacity = CAPACITY,
		.rings = 1,
		.ring_rollback = 4};
	const struct pawl_speculation_settings guesses = {
		.struct_size = sizeof(guesses), .n_guess = 3, .least_repeat = 1};
	struct pawl_host_speculation *speculation = NULL;
	struct pawl_host_decoder *decoder;
	uint32_t tokens[MAX_TOKENS];
	const float *logits;

	must(api->decoder_create(model, &settings, &decoder));
	must(api->decoder_append(decoder, prompt, n_prompt, &logits));
	if (is_guessing) {
		must(api->speculation_create(decoder, &guesses, &speculation));
		must(api->speculation_begin(speculation, prompt, n_prompt));
	}
	for (int64_t i = 0; i < n; i++) {
		tokens[i] = likeliest(logits);
		must(is_guessing ? api->speculation_step(speculation, tokens[i], &logits)
				 : api->decoder_append(decoder, &tokens[i], 1, &logits));
	}
	print(tokens, n);
	api->speculation_release(speculation);
	api->decoder_release(decoder);
}

/* Beside a request that is longer and not looked at. */
static void
schedule(struct pawl_host_model *model, int64_t n)
{
	const struct pawl_pool_settings blocks = {
		.struct_size = sizeof(blocks), .n_blocks = 64, .block_size = 16, .max_blocks = 32};
	const struct pawl_scheduler_settings settings = {
		.struct_size = sizeof(settings), .max_batch = 2};
	struct pawl_request_settings request = {.struct_size = sizeof(request),
		.prompt = prompt,
		.n_prompt = n_prompt,
		.max_new = n};
	struct pawl_request_report report = {.struct_size = sizeof(report)};
	struct pawl_host_scheduler *scheduler;
	struct pawl_host_pool *pool;
	uint64_t id, other;

	must(api->pool_create(model, &blocks, &pool));
	must(api->scheduler_create(pool, &settings, &scheduler));
	must(api->scheduler_submit(scheduler, &request, &id));
	request.n_prompt = 1;
	request.max_new = 2 * n;
	must(api->scheduler_submit(scheduler, &request, &other));
	while (api->scheduler_has_work(scheduler))
		must(api->scheduler_step(scheduler));
	must(api->scheduler_report(scheduler, id, &report));
	print(report.tokens, report.n_new);
	api->scheduler_release(scheduler);
	api->pool_release(pool);
}

static void
open_plugin(const char *path)
{
	const struct pawl_api *(*get_api)(uint32_t version);
	int (*negotiate)(uint32_t * version);
	void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	uint32_t version = PAWL_ABI_VERSION;

	if (!module)
		fail(dlerror());
	*(void **)&negotiate = dlsym(module, "pawl_negotiate");
	*(void **)&get_api = dlsym(module, "pawl_get_api");
	if (!negotiate(&version))
		fail("no version in common");
	api = get_api(version);
}

int
main(int argc, char **argv)
{
	struct pawl_context_options options = {.struct_size = sizeof(options), .n_threads = 2};
	struct pawl_host_context *context;
	struct pawl_host_weights *weights;
	struct pawl_host_model *held;
	struct pawl_model *model;
	int64_t n;

	if (argc < 6 || argc - 5 > MAX_TOKENS)
		return 2;
	open_plugin(argv[1]);
	options.target = argv[2];
	must_read(pawl_model_open(argv[3], &model, &err));
	source = pawl_model_source(model);
	n = strtol(argv[4], NULL, 10);
	if (n < 1 || n > MAX_TOKENS)
		return 2;
	for (int i = 5; i < argc; i++)
		prompt[n_prompt++] = (uint32_t)strtoul(argv[i], NULL, 10);
	must(api->context_create(NULL, &options, &context));
	must(api->weights_create(context, NULL, &weights));
	lend_weights(weights);
	held = make_model(context, weights);
	decode(held, n, 0);
	decode(held, n, 1);
	schedule(held, n);
	api->model_release(held);
	api->weights_release(weights);
	api->context_release(context);
	for (int i = 0; i < n_lent; i++)
		pawl_storage_unref(lent[i]);
	pawl_model_free(model);
	return 0;
}
