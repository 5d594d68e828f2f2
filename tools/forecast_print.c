#include "tools/forecast_print.h"

#include "runtime/cpu_count.h"
#include "runtime/forecast.h"
#include "runtime/json_write.h"
#include "runtime/session_set.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/*
 * Resident bytes of the compiler of CPU kernels while it is loaded, by which a run that compiles
 * grows: 72.2 and 72.6 MB with SmolLM2 135M (10 and 4 kernels), 72.7 with Gemma 3 270M (17), LLVM 19
 * on x86-64.  PAWL_COMPILER_BYTES is another thing, address space.
 */
enum { N_PLANS = 2, COMPILER_RESIDENT_BYTES = 72500000 };

/* A target whose kernels are no code has nothing to compile. */
static int64_t
compiler_bytes(const struct pawl_memory_forecast *f)
{
	return f->code ? COMPILER_RESIDENT_BYTES : 0;
}


static enum pawl_status
build(struct pawl_engine *engine, const struct pawl_graph_request *request, struct pawl_plan **out,
	struct pawl_error *err)
{
	const struct pawl_model_source *source = pawl_model_source(engine->model);
	const struct pawl_plan_options options = {.key = {.seq = request->n_tokens,
							  .precision = (enum pawl_precision)
								  engine->options.precision}};
	struct pawl_graph *graph;
	enum pawl_status status = source->build(source->ctx, request, &graph, err);

	if (status)
		return status;
	status = pawl_plan_build(graph, engine->device, &options, out, err);
	pawl_graph_free(graph);
	return status;
}

static enum pawl_status
print_json(const struct pawl_memory_forecast *f, int64_t capacity, int n_threads,
	struct pawl_error *err)
{
	struct pawl_json json;
	enum pawl_status status;
	cJSON *root;
	char *text;

	pawl_json_init(&json);
	root = json.root;
	pawl_json_int64(&json, root, "capacity", capacity);
	pawl_json_int64(&json, root, "threads", n_threads);
	pawl_json_int64(&json, root, "weights", f->weights);
	pawl_json_int64(&json, root, "mapped", f->mapped);
	pawl_json_int64(&json, root, "kv", f->kv);
	pawl_json_int64(&json, root, "scratch", f->scratch);
	pawl_json_int64(&json, root, "data", f->data);
	pawl_json_int64(&json, root, "code", f->code);
	pawl_json_int64(&json, root, "total", pawl_forecast_total(f));
	pawl_json_int64(&json, root, "compiler", compiler_bytes(f));
	status = pawl_json_text(&json, false, &text, err);
	pawl_json_release(&json);
	if (status)
		return status;
	fputs(text, stdout);
	free(text);
	return PAWL_OK;
}

static void
print_row(int64_t bytes, const char *what)
{
	printf("%12" PRId64 "  %s\n", bytes, what);
}

static void
print_table(const struct pawl_memory_forecast *f, int64_t capacity, int n_threads)
{
	printf("bytes of a run on a cache of %" PRId64 " positions with %d thread%s, before it:\n\n",
		capacity, n_threads, n_threads == 1 ? "" : "s");
	print_row(f->weights, "weights, packed or copied");
	print_row(f->mapped, "weights that are read where the file has them, at most");
	print_row(f->kv, "cache");
	print_row(f->scratch, "temporaries, outputs, thread scratch");
	print_row(f->data, "token data, literals");
	print_row(f->code, "kernels");
	print_row(pawl_forecast_total(f), "in all");
	if (f->code)
		printf("\nand about %" PRId64 " MB when kernels are compiled, which a run does where "
		       "the cache folder\nlacks them: the first time with another context, cache "
		       "type or option\n",
			compiler_bytes(f) / 1000000);
}

enum pawl_status
pawl_forecast_print(struct pawl_engine *engine, int64_t capacity, bool json, struct pawl_error *err)
{
	const struct pawl_model_source *source = pawl_model_source(engine->model);
	const struct pawl_decoder_options options =
		pawl_engine_decoder_options(engine, capacity, 0);
	struct pawl_kv_shape shape = {
		.n_layers = source->n_layers,
		.n_kv_heads = source->n_kv_heads,
		.head_dim = source->head_dim,
		.max_seq_len = (capacity + 15) / 16 * 16,
		.dtype = pawl_engine_kv_dtype(&engine->options),
		.layout = {source->k_layout, PAWL_LAYOUT_ROWS},
	};
	const struct pawl_graph_request requests[N_PLANS] = {
		{.n_tokens = PAWL_PREFILL_CHUNK, .logits = PAWL_LOGITS_NONE},
		{.n_tokens = 1, .logits = PAWL_LOGITS_LAST},
	};
	struct pawl_plan *plans[N_PLANS] = {NULL};
	struct pawl_memory_forecast forecast;
	int n_threads = (int)engine->options.threads;
	/* A prompt goes by single tokens through a cache that has no room for a chunk. */
	int first = shape.max_seq_len < PAWL_PREFILL_CHUNK ? 1 : 0;
	char reason[160];
	enum pawl_status status = pawl_engine_open_device(engine, err);

	if (!status)
		status = pawl_decoder_rings(source, &options, &shape.rings, err);
	if (!status && !n_threads)
		status = pawl_default_threads(reason, sizeof(reason), &n_threads, err);
	for (int i = first; i < N_PLANS && !status; i++) {
		struct pawl_graph_request request = requests[i];

		request.capacity = shape.max_seq_len;
		request.ring = shape.rings.positions;
		request.kv_dtype = shape.dtype;
		status = build(engine, &request, &plans[i], err);
	}
	if (!status)
		status = pawl_forecast_memory((const struct pawl_plan *const *)plans + first,
			N_PLANS - first, &shape, n_threads, &forecast, err);
	if (!status && json)
		status = print_json(&forecast, capacity, n_threads, err);
	else if (!status)
		print_table(&forecast, capacity, n_threads);
	for (int i = 0; i < N_PLANS; i++)
		pawl_plan_unref(plans[i]);
	return status;
}
