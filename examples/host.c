/*
 * A host executor in one file: opens Pawl by dlopen, hands over the graph of one decode step with its own
 * weights and KV memory, and decodes 16 tokens on one held plan.
 *
 *	host PATH/pawl_plugin.so [TARGET [PLAN.json]]
 *
 * The model is a toy of one layer with made-up weights: 64 tokens, width 32, two heads that share one
 * key-value head, f16 cache of 32 positions, argmax at the end.  It prints the tokens, then the counters.
 */
#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pawl/plugin.h>

enum { VOCAB = 64, WIDTH = 32, HEADS = 2, HEAD = 16, FFN = 64, CAPACITY = 32, N_TOKENS = 16 };

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

/* The step graph: what a real host would translate from its own. */
static const char graph_text[] =
	"pawl 1\n"
	"graph @toy stage values {\n"
	"  sym $attended_len : 1..32\n"
	"  %ids = const : u32[1] {role = data}\n"
	"  %cos = const : f32[1, 16] {role = data}\n"
	"  %sin = const : f32[1, 16] {role = data}\n"
	"  %offset = const : i64[] {role = data}\n"
	"  %embedding = const : f32[64, 32]\n"
	"  %norm = const : f32[32]\n"
	"  %wq = const : f32[32, 32]\n"
	"  %wk = const : f32[16, 32]\n"
	"  %wv = const : f32[16, 32]\n"
	"  %wo = const : f32[32, 32]\n"
	"  %up = const : f32[64, 32]\n"
	"  %down = const : f32[32, 64]\n"
	"  %k_cache = const : f16[1, 1, 32, 16] {role = kv}\n"
	"  %v_cache = const : f16[1, 1, 32, 16] {role = kv}\n"
	"  %x = gather %embedding, %ids : f32[1, 32]\n"
	"  %n = rms_norm %x, %norm {eps = 1e-05} : f32[1, 32]\n"
	"  %q0 = matmul %n, %wq : f32[1, 32]\n"
	"  %k0 = matmul %n, %wk : f32[1, 16]\n"
	"  %v0 = matmul %n, %wv : f32[1, 16]\n"
	"  %q1 = reshape %q0 : f32[1, 2, 16]\n"
	"  %k1 = reshape %k0 : f32[1, 1, 16]\n"
	"  %v1 = reshape %v0 : f32[1, 1, 1, 16]\n"
	"  %q = rope %q1, %cos, %sin : f32[1, 2, 16]\n"
	"  %k2 = rope %k1, %cos, %sin : f32[1, 1, 16]\n"
	"  %k3 = reshape %k2 : f32[1, 1, 1, 16]\n"
	"  %k4 = cast %k3 {dtype = f16} : f16[1, 1, 1, 16]\n"
	"  %v2 = cast %v1 {dtype = f16} : f16[1, 1, 1, 16]\n"
	"  %k = write_slice %k_cache, %k4, %offset {axis = 2} : f16[1, 1, 32, 16]\n"
	"  %v = write_slice %v_cache, %v2, %offset {axis = 2} : f16[1, 1, 32, 16]\n"
	"  %a0 = attention %q, %k, %v, %offset {scale = 0.25, sym = $attended_len} : f32[1, 2, 16]\n"
	"  %a1 = reshape %a0 : f32[1, 32]\n"
	"  %a = matmul %a1, %wo : f32[1, 32]\n"
	"  %h = add %x, %a : f32[1, 32]\n"
	"  %m = rms_norm %h, %norm {eps = 1e-05} : f32[1, 32]\n"
	"  %u0 = matmul %m, %up : f32[1, 64]\n"
	"  %u = silu %u0 : f32[1, 64]\n"
	"  %d = matmul %u, %down : f32[1, 32]\n"
	"  %y = add %h, %d : f32[1, 32]\n"
	"  %logits = matmul %y, %embedding : f32[1, 64]\n"
	"  %next = argmax %logits : i32[1]\n"
	"  output %next\n"
	"  output %logits\n"
	"}\n";

/* Made-up numbers in [-0.5, 0.5), the same on every machine. */
static float *
make_weights(size_t n, uint32_t seed)
{
	float *w = malloc(n * sizeof(*w));
	size_t i;

	if (!w)
		exit(1);
	for (i = 0; i < n; i++) {
		seed = seed * 1664525u + 1013904223u;
		w[i] = (float)(seed >> 8) / 16777216.0f - 0.5f;
	}
	return w;
}

static void
bind_weights(struct pawl_instance *instance, float **kept)
{
	static const struct {
		const char *name;
		size_t n;
	} weights[] = {
		{"embedding", VOCAB * WIDTH}, {"norm", WIDTH}, {"wq", WIDTH * WIDTH},
		{"wk", HEAD * WIDTH}, {"wv", HEAD * WIDTH}, {"wo", WIDTH * WIDTH},
		{"up", FFN * WIDTH}, {"down", WIDTH * FFN},
	};
	size_t i;

	for (i = 0; i < sizeof(weights) / sizeof(weights[0]); i++) {
		kept[i] = make_weights(weights[i].n, (uint32_t)(i + 1));
		must(api->instance_bind(
			     instance, weights[i].name, kept[i], weights[i].n * sizeof(float)),
			weights[i].name);
	}
}

/* One token: new bytes for the data consts, the length for the symbol, one run. */
static int32_t
decode(struct pawl_instance *instance, uint32_t token, int64_t position)
{
	float cos_table[HEAD], sin_table[HEAD];
	const void *out;
	size_t n_bytes;
	int i;

	for (i = 0; i < HEAD; i++) {
		double angle = (double)position * pow(10000.0, -(double)(i / 2 * 2) / HEAD);

		cos_table[i] = (float)cos(angle);
		sin_table[i] = (float)sin(angle);
	}
	must(api->instance_set_data(instance, "ids", &token, sizeof(token)), "ids");
	must(api->instance_set_data(instance, "cos", cos_table, sizeof(cos_table)), "cos");
	must(api->instance_set_data(instance, "sin", sin_table, sizeof(sin_table)), "sin");
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
	float *weights[8];
	size_t kv_bytes = CAPACITY * HEAD * 2, i;
	void *k = aligned_alloc(64, kv_bytes), *v = aligned_alloc(64, kv_bytes);
	int32_t token = 1;
	int64_t position;

	if (argc < 2 || argc > 4 || !k || !v) {
		fprintf(stderr, "usage: host PATH/pawl_plugin.so [TARGET [PLAN.json]]\n");
		return 2;
	}
	open_plugin(argv[1]);
	options.target = argc > 2 ? argv[2] : NULL;
	must(api->context_create(NULL, &options, &context), "context");
	must(api->graph_from_text(context, graph_text, strlen(graph_text), &graph), "graph");
	must(api->plan_compile(graph, &plan), "compile");
	api->graph_destroy(graph);
	if (argc > 3)
		dump_plan(plan, argv[3]);

	must(api->instance_create(plan, &instance), "instance");
	bind_weights(instance, weights);
	memset(k, 0, kv_bytes);
	memset(v, 0, kv_bytes);
	must(api->instance_bind(instance, "k_cache", k, kv_bytes), "k_cache");
	must(api->instance_bind(instance, "v_cache", v, kv_bytes), "v_cache");
	for (position = 0; position < N_TOKENS; position++) {
		token = decode(instance, (uint32_t)token, position);
		printf("%s%d", position ? " " : "", token);
	}
	api->context_counters(context, &counters);
	printf("\n%llu optimizes, %llu runs, %llu bytes bound\n", (unsigned long long)counters.optimizes,
		(unsigned long long)counters.runs, (unsigned long long)counters.bytes_bound);

	api->instance_destroy(instance);
	api->plan_release(plan);
	must(api->context_destroy(context), "context_destroy");
	for (i = 0; i < sizeof(weights) / sizeof(weights[0]); i++)
		free(weights[i]);
	free(k);
	free(v);
	return 0;
}
