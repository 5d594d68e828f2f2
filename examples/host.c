/*
 * A host executor in one file.  It knows nothing of Pawl but pawl/plugin.h: it opens the plugin, hands
 * over the graph of one decode step with its own weights and KV memory, decodes, lets two texts take
 * turns on one held plan, and shows what a refusal is.
 *
 *	host PATH/pawl_plugin.so [TARGET [PLAN.json]]
 *
 * Line 1: the tokens of text A.  Line 2: those of text B, which starts with another token.  Line 3: what
 * was refused.  Line 4: counters.  The model is the toy of examples/toy.h.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pawl/plugin.h>

#include "toy.h"

static const struct pawl_api *api;

/* Exits with the message of a failed call. */
static void
must(struct pawl_host_status *status, const char *what)
{
	if (!status)
		return;
	fprintf(stderr, "host: %s: %s\n", what, api->status_message(status));
	api->status_free(status);
	exit(1);
}

static void
open_plugin(const char *path)
{
	int (*negotiate)(uint32_t *version);
	const struct pawl_api *(*get_api)(uint32_t version);
	uint32_t version = PAWL_ABI_VERSION;
	void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (!module) {
		fprintf(stderr, "host: %s\n", dlerror());
		exit(1);
	}
	*(void **)&negotiate = dlsym(module, "pawl_negotiate");
	*(void **)&get_api = dlsym(module, "pawl_get_api");
	/* Within a version the table grows at its end: it must have what is used here. */
	if (!negotiate || !get_api || !negotiate(&version) || !(api = get_api(version)) ||
		api->struct_size < offsetof(struct pawl_api, graph_add_text)) {
		fprintf(stderr, "host: %s is too old for this program\n", path);
		exit(1);
	}
}

/* A warning or an error; what else Pawl says is for people who look into it. */
static void
log_line(void *user, int level, const char *message)
{
	(void)user;
	if (level < 2)
		fprintf(stderr, "pawl: %s\n", message);
}

/* The step graph with room for `capacity` positions, node by node. */
static struct pawl_host_graph *
make_graph(struct pawl_host_context *context, int capacity)
{
	struct pawl_host_graph *graph;
	char kv[64];
	size_t i;

	snprintf(kv, sizeof(kv), "f16[1, 1, %d, %d]", capacity, TOY_HEAD);
	must(api->graph_create(context, "toy", &graph), "graph");
	must(api->graph_symbol(graph, "attended_len", 1, capacity, 1), "attended_len");
	for (i = 0; i < TOY_N_NODES; i++) {
		const struct toy_node *node = &toy_nodes[i];
		int64_t n_inputs = 0;

		while (n_inputs < TOY_MAX_INPUTS && node->inputs[n_inputs])
			n_inputs++;
		must(api->graph_add(graph, node->name, node->op, node->inputs, n_inputs,
			     node->attrs, node->type ? node->type : kv),
			node->name);
	}
	must(api->graph_output(graph, "next"), "next");
	return graph;
}

static struct pawl_host_weights *
lend_weights(struct pawl_host_context *context, float **memory)
{
	struct pawl_host_weights *weights;
	size_t i;

	must(api->weights_create(context, NULL, &weights), "weights");
	for (i = 0; i < TOY_N_WEIGHTS; i++) {
		size_t n_bytes = toy_weights[i].n * sizeof(float);

		memory[i] = malloc(n_bytes);
		if (!memory[i])
			exit(1);
		toy_fill(i, memory[i]);
		must(api->weights_add(weights, toy_weights[i].name, toy_weights[i].type,
			     memory[i], n_bytes),
			toy_weights[i].name);
	}
	return weights;
}

/* KV memory is the host's too: Pawl asks for it, and says when it is no longer used. */
static void *
lend_kv(void *user, const char *name, size_t n_bytes)
{
	void *bytes = aligned_alloc(64, (n_bytes + 63) / 64 * 64);

	(void)user;
	(void)name;
	return bytes ? memset(bytes, 0, n_bytes) : NULL;
}

static void
take_back(void *user, void *bytes)
{
	(void)user;
	free(bytes);
}

static struct pawl_host_cache *
make_cache(struct pawl_host_plan *plan)
{
	const struct pawl_cache_options options = {
		.struct_size = sizeof(options), .memory = lend_kv, .returned = take_back};
	struct pawl_host_status *status;
	struct pawl_host_cache *cache;

	status = api->cache_create(plan, &options, &cache);
	if (api->status_code(status) == PAWL_CODE_UNSUPPORTED) {
		/* A target that has memory of its own keeps them there. */
		api->status_free(status);
		status = api->cache_create(plan, NULL, &cache);
	}
	must(status, "cache");
	return cache;
}

/* Where the plan takes what changes from token to token: looked up once. */
static struct {
	int64_t ids, cos, sin, offset, attended_len;
} at;

static void
find_bindings(const struct pawl_host_plan *plan)
{
	at.ids = api->plan_find(plan, PAWL_BINDING_DATA, "ids");
	at.cos = api->plan_find(plan, PAWL_BINDING_DATA, "cos");
	at.sin = api->plan_find(plan, PAWL_BINDING_DATA, "sin");
	at.offset = api->plan_find(plan, PAWL_BINDING_DATA, "offset");
	at.attended_len = api->plan_find(plan, PAWL_BINDING_SYMBOL, "attended_len");
}

/* Appends a token to a cache and returns the next: new bytes, new lengths, one run. */
static int32_t
decode(struct pawl_host_session *session, struct pawl_host_cache *cache, int32_t token)
{
	const int64_t position = api->cache_len(cache);
	float cos_row[TOY_HEAD], sin_row[TOY_HEAD];
	const void *out;
	size_t n_bytes;

	toy_rope(position, cos_row, sin_row);
	must(api->session_use_cache(session, cache, NULL), "use_cache");
	must(api->session_set(session, at.ids, &token, sizeof(token)), "ids");
	must(api->session_set(session, at.cos, cos_row, sizeof(cos_row)), "cos");
	must(api->session_set(session, at.sin, sin_row, sizeof(sin_row)), "sin");
	must(api->session_set(session, at.offset, &position, sizeof(position)), "offset");
	must(api->session_set_symbol(session, at.attended_len, position + 1), "attended_len");
	must(api->session_run(session, 1), "run");
	must(api->session_output(session, 0, &out, &n_bytes), "output");
	return *(const int32_t *)out;
}

/* Two texts take turns: each has a cache of its own, both have the one plan and session. */
static void
decode_two(struct pawl_host_session *session, struct pawl_host_plan *plan)
{
	struct pawl_host_cache *caches[2] = {make_cache(plan), make_cache(plan)};
	int32_t tokens[2][TOY_TOKENS + 1] = {{1}, {2}};
	int i, text;

	for (i = 0; i < TOY_TOKENS; i++)
		for (text = 0; text < 2; text++)
			tokens[text][i + 1] = decode(session, caches[text], tokens[text][i]);
	for (text = 0; text < 2; text++) {
		for (i = 1; i <= TOY_TOKENS; i++)
			printf("%s%d", i > 1 ? " " : "", tokens[text][i]);
		putchar('\n');
		api->cache_release(caches[text]);
	}
}

/* A cache of another capacity cannot take the place of those the plan was made for. */
static void
provoke_refusal(struct pawl_host_context *context, struct pawl_host_session *session,
	struct pawl_host_plan *plan)
{
	struct pawl_cache_report report = {.struct_size = sizeof(report)};
	struct pawl_host_graph *graph = make_graph(context, 2 * TOY_CAPACITY);
	struct pawl_host_status *status;
	struct pawl_host_plan *larger;
	struct pawl_host_cache *cache;

	must(api->plan_regrow(plan, graph, &larger), "regrow");
	cache = make_cache(larger);
	status = api->session_use_cache(session, cache, &report);
	printf("refused: %s: %s, %llu is held, %llu asked for\n",
		status ? api->status_message(status) : "no", report.field,
		(unsigned long long)report.held, (unsigned long long)report.asked);
	api->status_free(status);
	api->cache_release(cache);
	api->plan_release(larger);
	api->graph_release(graph);
}

static void
print_counters(struct pawl_host_context *context)
{
	struct pawl_counter counter = {.struct_size = sizeof(counter)};
	int64_t i;

	for (i = 0; api->context_counter(context, i, &counter); i++)
		if (counter.value && strcmp(counter.name, "run_ns"))
			printf("%s%s %llu", i ? ", " : "", counter.name,
				(unsigned long long)counter.value);
	putchar('\n');
}

static int
write_file(void *user, const void *bytes, size_t n)
{
	return fwrite(bytes, 1, n, user) != n;
}

static void
dump_plan(struct pawl_host_plan *plan, const char *path)
{
	FILE *file = fopen(path, "w");

	if (!file) {
		perror(path);
		exit(1);
	}
	must(api->plan_to_json(plan, write_file, file), "plan_to_json");
	fclose(file);
}

int
main(int argc, char **argv)
{
	const struct pawl_services services = {.struct_size = sizeof(services), .log = log_line};
	struct pawl_context_options options = {.struct_size = sizeof(options), .n_threads = 1};
	struct pawl_host_context *context;
	struct pawl_host_graph *graph;
	struct pawl_host_plan *plan;
	struct pawl_host_weights *weights;
	struct pawl_host_session *session;
	float *memory[TOY_N_WEIGHTS];
	size_t i;

	if (argc < 2 || argc > 4) {
		fprintf(stderr, "usage: host PATH/pawl_plugin.so [TARGET [PLAN.json]]\n");
		return 2;
	}
	open_plugin(argv[1]);
	options.target = argc > 2 ? argv[2] : NULL;
	must(api->context_create(&services, &options, &context), "context");
	graph = make_graph(context, TOY_CAPACITY);
	must(api->plan_compile(graph, &plan), "compile");
	api->graph_release(graph);
	if (argc > 3)
		dump_plan(plan, argv[3]);
	find_bindings(plan);
	weights = lend_weights(context, memory);
	must(api->session_create(plan, weights, &session), "session");

	decode_two(session, plan);
	provoke_refusal(context, session, plan);
	print_counters(context);

	api->session_release(session);
	api->weights_release(weights);
	api->plan_release(plan);
	api->context_release(context);
	for (i = 0; i < TOY_N_WEIGHTS; i++)
		free(memory[i]);
	return 0;
}
