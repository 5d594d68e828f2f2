/*
 * A host executor in one file: opens Pawl by dlopen, hands over the graph of one decode step with its own
 * weights and KV memory, and decodes 16 tokens on one held plan.
 *
 *	host PATH/pawl_plugin.so [TARGET [PLAN.json]]
 *
 * It prints the tokens, then the counters.  The model is the toy of examples/toy.h.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pawl/plugin.h>

#include "toy.h"

static const struct pawl_api *api;

/* Exits with the message of a failed call. */
static void
must(struct pawl_status_object *status, const char *what)
{
	if (!status)
		return;
	fprintf(stderr, "host: %s: %s\n", what, api->status_message(status));
	exit(1);
}

static void
bind_weights(struct pawl_instance *instance, float **kept)
{
	size_t i;

	for (i = 0; i < TOY_N_WEIGHTS; i++) {
		size_t n_bytes = toy_weights[i].n * sizeof(float);

		kept[i] = malloc(n_bytes);
		if (!kept[i])
			exit(1);
		toy_fill(i, kept[i]);
		must(api->instance_bind(instance, toy_weights[i].name, kept[i], n_bytes),
			toy_weights[i].name);
	}
}

/* One token: new bytes for the data consts, the length for the symbol, one run. */
static int32_t
decode(struct pawl_instance *instance, uint32_t token, int64_t position)
{
	float cos_row[TOY_HEAD], sin_row[TOY_HEAD];
	const void *out;
	size_t n_bytes;

	toy_rope(position, cos_row, sin_row);
	must(api->instance_set_data(instance, "ids", &token, sizeof(token)), "ids");
	must(api->instance_set_data(instance, "cos", cos_row, sizeof(cos_row)), "cos");
	must(api->instance_set_data(instance, "sin", sin_row, sizeof(sin_row)), "sin");
	must(api->instance_set_data(instance, "offset", &position, sizeof(position)), "offset");
	must(api->instance_set_symbol(instance, "attended_len", position + 1), "attended_len");
	must(api->instance_run(instance), "run");
	must(api->instance_output(instance, 0, &out, &n_bytes), "output");
	return *(const int32_t *)out;
}

static int
write_file(void *user, const char *bytes, size_t n)
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
	if (!negotiate || !get_api || !negotiate(&version) || !(api = get_api(version))) {
		fprintf(stderr, "host: %s has no version in common with this program\n", path);
		exit(1);
	}
}

int
main(int argc, char **argv)
{
	struct pawl_context_options options = {.struct_size = sizeof(options), .n_threads = 1};
	struct pawl_api_counters counters = {.struct_size = sizeof(counters)};
	struct pawl_context *context;
	struct pawl_host_graph *graph;
	struct pawl_host_plan *plan;
	struct pawl_instance *instance;
	float *weights[TOY_N_WEIGHTS];
	size_t i;
	void *k = aligned_alloc(64, TOY_KV_BYTES), *v = aligned_alloc(64, TOY_KV_BYTES);
	int32_t token = 1;
	int64_t position;

	if (argc < 2 || argc > 4 || !k || !v) {
		fprintf(stderr, "usage: host PATH/pawl_plugin.so [TARGET [PLAN.json]]\n");
		return 2;
	}
	open_plugin(argv[1]);
	options.target = argc > 2 ? argv[2] : NULL;
	must(api->context_create(NULL, &options, &context), "context");
	must(api->graph_from_text(context, toy_graph, strlen(toy_graph), &graph), "graph");
	must(api->plan_compile(graph, &plan), "compile");
	api->graph_destroy(graph);
	if (argc > 3)
		dump_plan(plan, argv[3]);

	must(api->instance_create(plan, &instance), "instance");
	bind_weights(instance, weights);
	memset(k, 0, TOY_KV_BYTES);
	memset(v, 0, TOY_KV_BYTES);
	must(api->instance_bind(instance, "k_cache", k, TOY_KV_BYTES), "k_cache");
	must(api->instance_bind(instance, "v_cache", v, TOY_KV_BYTES), "v_cache");
	for (position = 0; position < TOY_TOKENS; position++) {
		token = decode(instance, (uint32_t)token, position);
		printf("%s%d", position ? " " : "", token);
	}
	api->context_counters(context, &counters);
	printf("\n%llu optimizes, %llu runs, %llu bytes bound\n", (unsigned long long)counters.optimizes,
		(unsigned long long)counters.runs, (unsigned long long)counters.bytes_bound);

	api->instance_destroy(instance);
	api->plan_release(plan);
	must(api->context_destroy(context), "context_destroy");
	for (i = 0; i < TOY_N_WEIGHTS; i++)
		free(weights[i]);
	free(k);
	free(v);
	return 0;
}
