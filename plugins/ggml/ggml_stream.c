#include "plugins/ggml/ggml_stream.h"

#include <stdlib.h>
#include <string.h>

#include "ir/debug.h"
#include "plugins/ggml/ggml_counters.h"
#include "plugins/ggml/ggml_held.h"
#include "plugins/ggml/ggml_key.h"
#include "plugins/ggml/ggml_plans.h"
#include "runtime/cpu_count.h"
#include "runtime/pool.h"

enum { MOST_SHAPES = 256, MOST_HELD = 32, MOST_POOLS = 4 };

/* A held plan of this stream, on one of its pools. */
struct holding {
	uint64_t hash;
	struct pawl_pool *pool;
	struct pawl_ggml_held *held; /* NULL: free */
	uint64_t last_used;
};

/* A shape that was met: what serves it, and its lengths. */
struct shape {
	struct pawl_ggml_key key;
	uint64_t hash; /* 0: nothing does, the host computes it */
	int64_t n_tokens, n_rows;
	uint64_t last_used; /* 0: free */
};

struct pawl_ggml_stream {
	const void *guid;
	pawl_ggml_fn fn[PAWL_GGML_STREAM_FNS]; /* as many as the layout has; device, context follow */
	void *room[2];
	int n_threads;
	bool (*should_stop)(void *data);
	void *stop_data;
	void *cpu; /* the host's, made when it is first needed */
	bool has_warned; /* of a graph that the host computes */
	struct pawl_ggml_numbers numbers;
	struct {
		int n_threads;
		struct pawl_pool *pool;
	} pools[MOST_POOLS];
	struct pawl_scratch scratch; /* of all that is held: one runs at a time */
	struct holding holdings[MOST_HELD];
	struct shape shapes[MOST_SHAPES];
	uint64_t clock;
	/* The graph before. */
	uint64_t uid;
	int32_t n_nodes;
	struct pawl_ggml_tensor **nodes;
	struct shape last;
};

static const struct pawl_ggml_host *host;
static struct pawl_device *target;
static const unsigned char guid[16] = {0xc3, 0x5a, 0x91, 0x0e, 0x77, 0x24, 0x4c, 0xd2, 0x8b, 0x60,
	0x1f, 0xe9, 0x3d, 0xa8, 0x52, 0x46};

void
pawl_ggml_streams_init(const struct pawl_ggml_host *bound, struct pawl_device *opened)
{
	host = bound;
	target = opened;
}

static enum pawl_status
pool_of(struct pawl_ggml_stream *stream, struct pawl_pool **out, struct pawl_error *err)
{
	enum pawl_status status;
	int i;

	for (i = 0; i < MOST_POOLS && stream->pools[i].pool; i++) {
		if (stream->pools[i].n_threads == stream->n_threads) {
			*out = stream->pools[i].pool;
			return PAWL_OK;
		}
	}
	if (i == MOST_POOLS)
		return pawl_fail(err, PAWL_UNSUPPORTED, "too many numbers of threads");
	status = pawl_pool_new(stream->n_threads, &stream->pools[i].pool, err);
	if (status)
		return status;
	stream->pools[i].n_threads = stream->n_threads;
	*out = stream->pools[i].pool;
	return PAWL_OK;
}

static struct holding *
find_holding(struct pawl_ggml_stream *stream, uint64_t hash, const struct pawl_pool *pool)
{
	struct holding *holding, *oldest = &stream->holdings[0];
	int i;

	for (i = 0; i < MOST_HELD; i++) {
		holding = &stream->holdings[i];
		if (holding->held && holding->hash == hash && holding->pool == pool)
			return holding;
		if (holding->last_used < oldest->last_used)
			oldest = holding;
	}
	pawl_ggml_held_free(oldest->held);
	*oldest = (struct holding){.hash = hash};
	return oldest;
}

static struct shape *
find_shape(struct pawl_ggml_stream *stream, const struct pawl_ggml_key *key, bool *is_known)
{
	struct shape *shape, *oldest = &stream->shapes[0];
	int i;

	*is_known = true;
	for (i = 0; i < MOST_SHAPES; i++) {
		shape = &stream->shapes[i];
		if (shape->last_used && shape->key.a == key->a && shape->key.b == key->b)
			return shape;
		if (shape->last_used < oldest->last_used)
			oldest = shape;
	}
	*is_known = false;
	*oldest = (struct shape){.key = *key};
	return oldest;
}

/* Symbols may be what stands in the way. */
static enum pawl_status
translate(const struct pawl_ggml_graph *graph, struct pawl_ggml_translation *out,
	struct pawl_error *err)
{
	if (pawl_ggml_translate(host, graph, true, out, err) == PAWL_OK)
		return PAWL_OK;
	return pawl_ggml_translate(host, graph, false, out, err);
}

/* Makes the plan of a graph held, where it is not already. */
static enum pawl_status
hold(struct pawl_ggml_stream *stream, const struct pawl_ggml_graph *graph, struct shape *shape,
	struct pawl_pool *pool, struct pawl_ggml_held **out, struct pawl_error *err)
{
	struct pawl_ggml_translation translation;
	struct holding *holding;
	struct pawl_plan *plan;
	enum pawl_status status;

	if (shape->hash) {
		holding = find_holding(stream, shape->hash, pool);
		if (holding->held)
			goto done;
	}
	atomic_fetch_add(&pawl_ggml_counters.translated, 1);
	status = translate(graph, &translation, err);
	if (status)
		return status;
	shape->hash = pawl_ggml_translation_hash(&translation);
	shape->n_tokens = translation.symbols.n_tokens;
	shape->n_rows = translation.symbols.n_rows;
	holding = find_holding(stream, shape->hash, pool);
	if (holding->held) {
		pawl_ggml_translation_release(&translation);
		goto done;
	}
	status = pawl_ggml_plans_get(shape->hash, translation.graph, target, &plan, err);
	if (status) {
		pawl_ggml_translation_release(&translation);
		return status;
	}
	status = pawl_ggml_held_new(
		host, &translation, plan, pawl_pool_team(pool), &stream->scratch, &holding->held, err);
	pawl_plan_unref(plan);
	if (status)
		return status;
	holding->pool = pool;
done:
	holding->last_used = ++stream->clock;
	*out = holding->held;
	return PAWL_OK;
}

static enum pawl_status
compute_held(struct pawl_ggml_stream *stream, const struct pawl_ggml_graph *graph,
	struct shape *shape, struct pawl_error *err)
{
	struct pawl_ggml_held *held = NULL;
	struct pawl_pool *pool = NULL;
	enum pawl_status status = pool_of(stream, &pool, err);

	if (!status)
		status = hold(stream, graph, shape, pool, &held, err);
	if (status) {
		shape->hash = 0;
		return status;
	}
	status = pawl_ggml_held_run(held, graph, shape->n_tokens, shape->n_rows, err);
	if (!status)
		atomic_fetch_add(&pawl_ggml_counters.runs, 1);
	return status;
}

static void
set_cpu_threads(void *device, void *cpu, int n_threads)
{
	void *registry = host->device_registry(device);
	void *symbol = registry ? host->registry_proc(registry, "ggml_backend_set_n_threads") : NULL;
	void (*set)(void *, int);

	if (!symbol)
		return;
	memcpy(&set, &symbol, sizeof(set));
	set(cpu, n_threads);
}

/* Memory is the host's and its layout too: its own backend may compute any graph on it. */
static int
compute_on_host(struct pawl_ggml_stream *stream, struct pawl_ggml_graph *graph)
{
	void *device = host->device_by_type(0);

	atomic_fetch_add(&pawl_ggml_counters.fallbacks, 1);
	if (!stream->cpu && device)
		stream->cpu = host->device_init(device, NULL);
	if (!stream->cpu) {
		pawl_ggml_log(host, PAWL_GGML_ERROR, "the host has no CPU backend to fall back to");
		return PAWL_GGML_FAILED;
	}
	set_cpu_threads(device, stream->cpu, stream->n_threads);
	return host->graph_compute(stream->cpu, graph);
}

static struct shape *
shape_of(struct pawl_ggml_stream *stream, const struct pawl_ggml_graph *graph, struct pawl_error *err)
{
	struct pawl_ggml_key key;
	struct shape *shape;
	bool is_known;

	if (pawl_ggml_key_of(host, graph, &stream->numbers, &key, err))
		return NULL;
	shape = find_shape(stream, &key, &is_known);
	if (is_known)
		atomic_fetch_add(&pawl_ggml_counters.known, 1);
	return shape;
}

static bool
is_same(const struct pawl_ggml_stream *stream, const struct pawl_ggml_graph *graph)
{
	return host->layout->has_uid && graph->uid && graph->uid == stream->uid &&
	       graph->n_nodes == stream->n_nodes && graph->nodes == stream->nodes;
}

/* Whether there is anything in it that computes. */
static bool
is_idle(const struct pawl_ggml_graph *graph)
{
	int32_t i;

	for (i = 0; i < graph->n_nodes; i++) {
		enum pawl_ggml_op op = pawl_ggml_op_of(host, graph->nodes[i]);

		if (op != PAWL_GGML_OP_NONE && op != PAWL_GGML_OP_VIEW &&
			op != PAWL_GGML_OP_RESHAPE && op != PAWL_GGML_OP_PERMUTE &&
			op != PAWL_GGML_OP_TRANSPOSE)
			return false;
	}
	return true;
}

/* Aloud once: a reason that holds for one graph often holds for all. */
static void
log_fallback(struct pawl_ggml_stream *stream, const struct pawl_ggml_graph *graph,
	const struct pawl_error *err)
{
	pawl_ggml_log(host, stream->has_warned ? PAWL_GGML_DEBUG : PAWL_GGML_WARN,
		"the host computes %d nodes: %s", graph->n_nodes, err->text);
	stream->has_warned = true;
}

static int
graph_compute(struct pawl_ggml_stream *stream, struct pawl_ggml_graph *graph)
{
	struct pawl_error err = {.status = PAWL_OK};
	struct shape own, *shape;
	bool was_declined;

	if (stream->should_stop && stream->should_stop(stream->stop_data))
		return PAWL_GGML_ABORTED;
	if (is_idle(graph))
		return PAWL_GGML_SUCCESS;
	atomic_fetch_add(&pawl_ggml_counters.graphs, 1);
	if (is_same(stream, graph)) {
		atomic_fetch_add(&pawl_ggml_counters.same, 1);
		own = stream->last;
		shape = &own;
	} else {
		shape = shape_of(stream, graph, &err);
		if (!shape)
			return compute_on_host(stream, graph);
	}
	was_declined = shape->last_used && !shape->hash;
	if (was_declined || compute_held(stream, graph, shape, &err)) {
		if (!was_declined)
			log_fallback(stream, graph, &err);
		shape->last_used = ++stream->clock;
		return compute_on_host(stream, graph);
	}
	shape->last_used = ++stream->clock;
	stream->last = *shape;
	stream->uid = graph->uid;
	stream->n_nodes = graph->n_nodes;
	stream->nodes = graph->nodes;
	return PAWL_GGML_SUCCESS;
}

static const char *
stream_name(struct pawl_ggml_stream *stream)
{
	(void)stream;
	return "Pawl";
}

static void
stream_free(struct pawl_ggml_stream *stream)
{
	char text[1024];
	int i;

	if (pawl_debug(PAWL_DEBUG_GGML))
		pawl_ggml_log(host, PAWL_GGML_WARN, "%s",
			pawl_ggml_counters_text(text, sizeof(text)));
	for (i = 0; i < MOST_HELD; i++)
		pawl_ggml_held_free(stream->holdings[i].held);
	pawl_scratch_release(&stream->scratch);
	for (i = 0; i < MOST_POOLS; i++)
		pawl_pool_free(stream->pools[i].pool);
	if (stream->cpu)
		host->stream_free(stream->cpu);
	pawl_ggml_numbers_release(&stream->numbers);
	free(stream);
}

#define FN(fn) ((pawl_ggml_fn)(fn))

struct pawl_ggml_stream *
pawl_ggml_stream_new(struct pawl_ggml_device *device, const char *params)
{
	struct pawl_ggml_stream *stream = calloc(1, sizeof(*stream));

	(void)params;
	if (!stream)
		return NULL;
	stream->guid = guid;
	stream->fn[0] = FN(stream_name);
	stream->fn[1] = FN(stream_free);
	stream->fn[host->layout->graph_compute] = FN(graph_compute);
	memcpy((char *)stream + offsetof(struct pawl_ggml_stream, fn) +
			sizeof(pawl_ggml_fn) * (size_t)host->layout->n_stream_fns,
		&device, sizeof(device));
	if (pawl_default_threads(NULL, 0, &stream->n_threads, NULL))
		stream->n_threads = 1;
	return stream;
}

void
pawl_ggml_stream_set_threads(struct pawl_ggml_stream *stream, int n_threads)
{
	if (n_threads >= 1 && n_threads <= PAWL_MAX_THREADS)
		stream->n_threads = n_threads;
}

void
pawl_ggml_stream_set_stop(struct pawl_ggml_stream *stream, bool (*should_stop)(void *data), void *data)
{
	stream->should_stop = should_stop;
	stream->stop_data = data;
}

bool
pawl_ggml_supports(const struct pawl_ggml_host *bound, const struct pawl_ggml_tensor *op,
	struct pawl_error *err)
{
	struct pawl_ggml_tensor *node = (struct pawl_ggml_tensor *)(uintptr_t)op;
	const struct pawl_ggml_graph graph = {.n_nodes = 1, .nodes = &node};
	struct pawl_ggml_translation translation;

	if (pawl_ggml_translate(bound, &graph, false, &translation, err))
		return false;
	pawl_ggml_translation_release(&translation);
	return true;
}
