/* Caches that grow: content and logits stay, and plans come from the code there is. */
#include "runtime/kv_layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/cuda/cuda_program.h"
#include "codegen/kernel_key.h"
#include "ir/parse.h"
#include "passes/regrow.h"
#include "runtime/inference_context.h"
#include "runtime/memory.h"
#include "tests/decoding.h"
#include "tests/program_check.h"
#include "tests/suites.h"

static struct pawl_error err;

#define OK(call) ck_assert_msg((call) == PAWL_OK, "%s", err.text)

static const struct kind {
	enum pawl_dtype dtype;
	enum pawl_layout k_layout;
} kinds[] = {
	{PAWL_DTYPE_F16, PAWL_LAYOUT_K16},
	{PAWL_DTYPE_F16, PAWL_LAYOUT_ROWS},
	{PAWL_DTYPE_F32, PAWL_LAYOUT_K16},
	{PAWL_DTYPE_F32, PAWL_LAYOUT_ROWS},
	{PAWL_DTYPE_BF16, PAWL_LAYOUT_K16},
	{PAWL_DTYPE_Q8_0, PAWL_LAYOUT_K16},
	{PAWL_DTYPE_Q8_0, PAWL_LAYOUT_ROWS},
};
enum { N_KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static struct pawl_tiny_model *
model_of(const struct kind *kind, bool has_mask)
{
	struct pawl_tiny_options tiny = pawl_tiny_defaults();

	tiny.k_layout = kind->k_layout;
	if (pawl_dtype_is_blocked(kind->dtype))
		tiny.head_dim = 32;
	tiny.has_mask = has_mask;
	return pawl_tiny_model_new(&tiny);
}

static struct pawl_decoder_options
options_of(const struct kind *kind, int64_t capacity)
{
	struct pawl_decoder_options options = pawl_test_decoder_options();

	options.kv_dtype = kind->dtype;
	options.capacity = capacity;
	return options;
}

static struct pawl_decoder_stats
stats_of(const struct pawl_decoder *decoder)
{
	struct pawl_decoder_stats stats;

	pawl_decoder_stats(decoder, &stats);
	return stats;
}

/* The cache. */

static struct pawl_kv_cache *
filled_cache(struct pawl_inference_context *context, const struct kind *kind, int64_t n)
{
	const struct pawl_kv_shape shape = {.n_layers = 3,
		.n_kv_heads = 2,
		.head_dim = pawl_dtype_is_blocked(kind->dtype) ? 64 : 8,
		.max_seq_len = 32,
		.dtype = kind->dtype,
		.layout = {kind->k_layout, PAWL_LAYOUT_ROWS}};
	struct pawl_kv_cache *cache;

	OK(pawl_kv_cache_with_capacity(context, &shape, &cache, &err));
	for (int32_t i = 0; i < 6; i++) {
		const struct pawl_storage *s = pawl_kv_cache_storage(
			cache, (struct pawl_kv_layer_id){i / 2, (enum pawl_kv_slot)(i % 2)});

		for (int64_t b = 0; b < s->n_bytes; b++)
			((unsigned char *)s->bytes)[b] = (unsigned char)(b * 7 + i * 13 + 1);
	}
	pawl_kv_cache_advance(cache, n);
	return cache;
}

/* Positions 0 .. n - 1 of a slot in logical order, malloc'ed. */
static void *
logical(const struct pawl_kv_cache *cache, int32_t i, int64_t n, size_t *n_bytes)
{
	const struct pawl_storage *s = pawl_kv_cache_storage(
		cache, (struct pawl_kv_layer_id){i / 2, (enum pawl_kv_slot)(i % 2)});
	const struct pawl_kv_planes planes = pawl_kv_planes_of(&s->type, 2);
	void *bytes;

	*n_bytes = (size_t)pawl_kv_logical_bytes(&planes, n);
	bytes = malloc(*n_bytes);
	ck_assert_ptr_nonnull(bytes);
	pawl_kv_read_positions(&planes, s->bytes, n, bytes);
	return bytes;
}

START_TEST(content_stays)
{
	const struct kind *kind = &kinds[_i / 3];
	const int64_t n = (const int64_t[]){0, 21, 32}[_i % 3];
	struct pawl_inference_context *context;
	struct pawl_kv_cache *cache;
	struct pawl_kv_alloc_id before;
	const struct pawl_counters *counters;
	void *kept[6], *now;
	size_t n_bytes;

	OK(pawl_inference_context_new(pawl_test_device(), 1, &context, &err));
	cache = filled_cache(context, kind, n);
	for (int32_t i = 0; i < 6; i++)
		kept[i] = logical(cache, i, n, &n_bytes);
	before = pawl_kv_cache_alloc_id(cache);
	OK(pawl_kv_cache_reserve(cache, 32, &err));
	ck_assert_uint_eq(pawl_kv_cache_alloc_id(cache).value, before.value);
	OK(pawl_kv_cache_reserve(cache, 100, &err));
	ck_assert_uint_gt(pawl_kv_cache_alloc_id(cache).value, before.value);
	ck_assert_int_eq(pawl_kv_cache_shape(cache)->max_seq_len, 112);
	ck_assert_int_eq(pawl_kv_cache_len(cache), n);
	ck_assert(pawl_location_equal(pawl_kv_cache_location(cache), PAWL_LOCATION_HOST));
	for (int32_t i = 0; i < 6; i++) {
		const struct pawl_kv_tensor *layer = pawl_kv_cache_layer(cache, i / 2);

		ck_assert_uint_eq(layer[i % 2].version, 1);
		now = logical(cache, i, n, &n_bytes);
		ck_assert(!n || !memcmp(now, kept[i], n_bytes));
		free(now);
		free(kept[i]);
		/* What lies beyond is zero, or with K16 the rest of a group. */
		now = logical(cache, i, 112, &n_bytes);
		for (int64_t head = 0; head < 2; head++) {
			size_t plane = n_bytes / 2;
			size_t from = plane / 112 * (size_t)((n + 15) / 16 * 16);

			for (size_t b = from; b < plane; b++)
				ck_assert_int_eq(
					((char *)now)[(size_t)head * plane + b], 0);
		}
		free(now);
	}
	counters = pawl_inference_context_counters(context);
	ck_assert_uint_eq(counters->optimizes, 1);
	ck_assert_uint_eq(counters->runs, 1);
	pawl_kv_cache_free(cache);
	pawl_inference_context_free(context);
}
END_TEST

START_TEST(logical_order_is_of_no_layout)
{
	static const int64_t dims[] = {1, 3, 48, 8};
	struct pawl_type type = pawl_type_make(PAWL_DTYPE_F16, 4, dims);
	struct pawl_kv_planes rows = pawl_kv_planes_of(&type, 2), woven;
	uint16_t in[3 * 20 * 8], out[3 * 20 * 8], memory[3 * 48 * 8] = {0};

	type.layout = PAWL_LAYOUT_K16;
	woven = pawl_kv_planes_of(&type, 2);
	for (int i = 0; i < 3 * 20 * 8; i++)
		in[i] = (uint16_t)(i + 1);
	pawl_kv_write_positions(&woven, memory, 20, in);
	/* Element 3 of position 17 of head 2, as passes/step.h says. */
	ck_assert_int_eq(memory[2 * 48 * 8 + (1 * 8 + 3) * 16 + 1], in[(2 * 20 + 17) * 8 + 3]);
	pawl_kv_read_positions(&woven, memory, 20, out);
	ck_assert(!memcmp(in, out, sizeof(in)));
	memset(memory, 0, sizeof(memory));
	pawl_kv_write_positions(&rows, memory, 20, in);
	ck_assert_int_eq(memory[(2 * 48 + 17) * 8 + 3], in[(2 * 20 + 17) * 8 + 3]);
	pawl_kv_read_positions(&rows, memory, 20, out);
	ck_assert(!memcmp(in, out, sizeof(in)));
}
END_TEST

START_TEST(growth_that_fails_changes_nothing)
{
	struct pawl_inference_context *context;
	struct pawl_kv_cache *cache, *empty;
	struct pawl_storage *foreign;
	struct pawl_type type;
	enum pawl_status status = PAWL_OUT_OF_MEMORY;
	uint64_t digest;
	char byte[1 << 14];
	int n = 0;

	OK(pawl_inference_context_new(pawl_test_device(), 1, &context, &err));
	cache = filled_cache(context, &kinds[0], 20);
	digest = pawl_test_cache_digest(cache);
	for (; status == PAWL_OUT_OF_MEMORY; n++) {
		ck_assert_uint_eq(pawl_test_cache_digest(cache), digest);
		pawl_memory_fail_after(n);
		status = pawl_kv_cache_reserve(cache, 100, &err);
		pawl_memory_fail_after(-1);
	}
	ck_assert_int_eq(status, PAWL_OK);
	/* The list, and for each of 6 storages itself and its bytes. */
	ck_assert_int_eq(n - 1, 1 + 6 * 2);
	digest = pawl_test_cache_digest(cache);
	ck_assert_int_eq(pawl_kv_cache_reserve(cache, INT64_MAX, &err), PAWL_INVALID_ARGUMENT);
	ck_assert_int_eq(
		pawl_kv_cache_reserve(cache, INT64_MAX / 64, &err), PAWL_INVALID_ARGUMENT);
	ck_assert_int_eq(
		pawl_kv_cache_reserve(cache, INT64_C(1) << 48, &err), PAWL_OUT_OF_MEMORY);
	ck_assert_int_eq(pawl_kv_cache_reserve(cache, -5, &err), PAWL_OK);
	ck_assert_uint_eq(pawl_test_cache_digest(cache), digest);
	/* Nor does it when a layer is missing, or of another shape. */
	OK(pawl_kv_cache_set_layer(cache, 1, NULL, NULL, &err));
	ck_assert_int_eq(pawl_kv_cache_reserve(cache, 200, &err), PAWL_INVALID_ARGUMENT);
	ck_assert_str_eq(err.text, "layer 1 slot 0 is not of the shape of its cache");
	OK(pawl_kv_cache_with_dims(1, 2, 8, &empty, &err));
	ck_assert_int_eq(pawl_kv_cache_reserve(empty, 32, &err), PAWL_INVALID_ARGUMENT);
	ck_assert_str_eq(err.text, "the cache has no capacity");
	type = pawl_type_make(PAWL_DTYPE_F16, 4, (const int64_t[]){1, 2, 32, 8});
	OK(pawl_storage_wrap(&type, (struct pawl_location){PAWL_MEMORY_CUDA, 0}, byte, sizeof(byte),
		NULL, NULL, &foreign, &err));
	OK(pawl_kv_cache_set_layer(empty, 0, foreign, foreign, &err));
	OK(pawl_kv_cache_set_capacity(empty, 32, PAWL_DTYPE_F16, PAWL_LAYOUT_ROWS, &err));
	ck_assert_int_eq(pawl_kv_cache_reserve(empty, 64, &err), PAWL_UNSUPPORTED);
	ck_assert_str_eq(err.text, "layer 0 slot 0 is not in host memory");
	pawl_storage_unref(foreign);
	pawl_kv_cache_free(empty);
	pawl_kv_cache_free(cache);
	pawl_inference_context_free(context);
}
END_TEST

/* The plan. */

static struct pawl_graph *
graph_of(const struct pawl_tiny_model *model, int64_t seq, int64_t capacity)
{
	const struct pawl_model_source *source = pawl_tiny_model_source(model);
	const struct pawl_graph_request request = {.n_tokens = seq,
		.capacity = capacity,
		.kv_dtype = PAWL_DTYPE_F16,
		.logits = PAWL_LOGITS_LAST};
	struct pawl_graph *graph;

	OK(source->build(source->ctx, &request, &graph, &err));
	return graph;
}

static const struct pawl_optimize_options plain = {.run = {.bisect = -1}};

START_TEST(a_regrown_program_is_what_optimizing_gives)
{
	static const int64_t capacities[] = {64, 512, 16, 4096, 64};
	struct pawl_tiny_model *model = model_of(&kinds[_i % 2], false);
	const int64_t seq = _i / 2 ? 8 : 1;
	struct pawl_optimize_options options = plain;
	struct pawl_graph *first = graph_of(model, seq, 32), *kept, *next;
	struct pawl_program *program;
	uint64_t hash = pawl_graph_hash(first);

	options.optimized = &kept;
	OK(pawl_optimize(first, &options, &program, NULL, &err));
	pawl_program_free(program);
	for (size_t i = 0; i < sizeof(capacities) / sizeof(capacities[0]); i++) {
		struct pawl_graph *graph = graph_of(model, seq, capacities[i]);
		struct pawl_program *anew;
		char *text, *wanted;

		OK(pawl_regrow(kept, hash, graph, &plain, &next, &program, &err));
		hash = pawl_graph_hash(graph);
		ck_assert_uint_eq(program->hash, hash);
		OK(pawl_optimize(graph, &plain, &anew, NULL, &err));
		text = pawl_test_dump_program(program);
		wanted = pawl_test_dump_program(anew);
		ck_assert_str_eq(text, wanted);
		pawl_test_check_program(program, "regrown");
		free(text);
		free(wanted);
		pawl_program_free(program);
		pawl_program_free(anew);
		pawl_graph_free(graph);
		pawl_graph_free(kept);
		kept = next;
	}
	pawl_graph_free(kept);
	pawl_graph_free(first);
	pawl_tiny_model_free(model);
}
END_TEST

START_TEST(code_does_not_hold_the_capacity)
{
	struct pawl_tiny_model *model = model_of(&kinds[_i % 2], false);
	const int64_t seq = _i / 2 ? 8 : 1;
	struct pawl_graph *small = graph_of(model, seq, 32), *large = graph_of(model, seq, 4096);
	struct pawl_program *a, *b;
	struct pawl_cuda_program cuda_a, cuda_b;

	OK(pawl_optimize(small, &plain, &a, NULL, &err));
	OK(pawl_optimize(large, &plain, &b, NULL, &err));
	ck_assert_int_eq(a->n_steps, b->n_steps);
	for (int32_t i = 0; i < a->n_steps; i++) {
		char *key_a = pawl_kernel_key(a, &a->steps[i], PAWL_CPU_BASELINE);
		char *key_b = pawl_kernel_key(b, &b->steps[i], PAWL_CPU_BASELINE);

		ck_assert_str_eq(key_a, key_b);
		free(key_a);
		free(key_b);
	}
	OK(pawl_cuda_program_init(&cuda_a, a, &err));
	OK(pawl_cuda_program_init(&cuda_b, b, &err));
	ck_assert_int_eq(cuda_a.n_units, cuda_b.n_units);
	for (int32_t i = 0; i < cuda_a.n_units; i++)
		ck_assert_str_eq(cuda_a.sources[i].bytes, cuda_b.sources[i].bytes);
	ck_assert_int_eq(cuda_a.n_launches, cuda_b.n_launches);
	pawl_cuda_program_release(&cuda_a);
	pawl_cuda_program_release(&cuda_b);
	pawl_program_free(a);
	pawl_program_free(b);
	pawl_graph_free(small);
	pawl_graph_free(large);
	pawl_tiny_model_free(model);
}
END_TEST

/* Graphs over a cache k, v. */
static const struct {
	const char *what, *rest;
	bool can;
} seen[] = {
	{"attention of a symbolic length",
		"  %y = attention %q, %k, %v, %o {sym = $n} : f32[1, 4, 8]\n  output %y\n", true},
	{"attention of all positions", "  %y = attention %q, %k, %v, %o : f32[1, 4, 8]\n  output %y\n",
		false},
	{"a slice", "  %y = slice %k {start = [0, 0, 0, 0], stop = [1, 2, 16, 8]} : f32[1, 2, 16, 8]\n"
		    "  output %y\n",
		false},
};

START_TEST(what_sees_the_capacity_does_not_regrow)
{
	struct pawl_graph *graphs[2], *kept, *none = NULL;
	struct pawl_program *program = NULL;
	struct pawl_optimize_options options = plain;

	for (int i = 0; i < 2; i++) {
		int m = i ? 64 : 32;
		char text[1024];

		snprintf(text, sizeof(text),
			"pawl 1\ngraph @t stage values {\n  sym $n : 1..%d\n"
			"  %%q = const {role = data} : f32[1, 4, 8]\n"
			"  %%k = const {role = kv} : f32[1, 2, %d, 8]\n"
			"  %%v = const {role = kv} : f32[1, 2, %d, 8]\n"
			"  %%o = const {role = data} : i64[]\n%s}\n",
			m, m, m, seen[_i].rest);
		if (pawl_parse(text, strlen(text), "test", &graphs[i], NULL, &err))
			ck_abort_msg("%s: %s", seen[_i].what, err.text);
		ck_assert_msg(pawl_graph_can_regrow(graphs[i]) == seen[_i].can, "%s", seen[_i].what);
	}
	options.optimized = &kept;
	OK(pawl_optimize(graphs[0], &options, &program, NULL, &err));
	pawl_program_free(program);
	program = NULL;
	ck_assert_int_eq(pawl_regrow(kept, pawl_graph_hash(graphs[0]), graphs[1], &plain, &none,
				 &program, &err),
		seen[_i].can ? PAWL_OK : PAWL_UNSUPPORTED);
	ck_assert_int_eq(program != NULL, seen[_i].can);
	if (program)
		pawl_program_free(program);
	pawl_graph_free(none);
	/* Anything else that differs is refused too. */
	program = NULL;
	none = NULL;
	for (struct pawl_node *node = graphs[1]->first; node; node = node->next)
		if (node->op == PAWL_OP_ATTENTION)
			node->attrs.scale = 0.5;
	if (seen[_i].can) {
		ck_assert_int_eq(pawl_regrow(kept, pawl_graph_hash(graphs[0]), graphs[1],
					 &plain, &none, &program, &err),
			PAWL_UNSUPPORTED);
		ck_assert_ptr_null(program);
		ck_assert_ptr_null(none);
	}
	pawl_graph_free(kept);
	pawl_graph_free(graphs[0]);
	pawl_graph_free(graphs[1]);
}
END_TEST

/* Decoding. */

static void
decode_across(const struct kind *kind, struct pawl_device *device, int n_threads)
{
	struct pawl_tiny_model *model = model_of(kind, false);
	struct pawl_decoder_options small = options_of(kind, 32), large = options_of(kind, 256);
	struct pawl_decoder *grown, *whole;
	struct pawl_decoder_stats before, after;

	small.n_threads = large.n_threads = n_threads;
	OK(pawl_decoder_new(pawl_tiny_model_source(model), device, &small, &grown, &err));
	OK(pawl_decoder_new(pawl_tiny_model_source(model), device, &large, &whole, &err));
	pawl_test_prefill(grown, 1, 0, 20);
	pawl_test_prefill(whole, 1, 0, 20);
	before = stats_of(grown);
	for (int i = 20; i < 200; i++) {
		if (i == 27 || i == 32 || i == 150)
			OK(pawl_decoder_reserve(grown, i == 150 ? 256 : i == 27 ? 32 : 150, &err));
		if (i == 160) {
			ck_assert(pawl_test_same(grown, pawl_test_prefill(grown, 1, i, 17),
				pawl_test_prefill(whole, 1, i, 17)));
			i += 17;
		}
		ck_assert_msg(pawl_test_same(grown, pawl_test_step(grown, 1, i),
				      pawl_test_step(whole, 1, i)),
			"token %d", i);
	}
	after = stats_of(grown);
	ck_assert_int_eq(pawl_decoder_capacity(grown), 256);
	ck_assert_uint_eq(after.counters.optimizes, before.counters.optimizes);
	ck_assert_uint_eq(after.kernel_compiles, before.kernel_compiles);
	ck_assert_uint_eq(after.counters.builds[PAWL_REBUILD_FIRST], 2);
	ck_assert_uint_eq(pawl_counters_rebuilds(&after.counters), 0);
	/* The single token twice, the chunk once. */
	ck_assert_uint_eq(after.counters.regrows, 3);
	ck_assert_uint_eq(after.counters.verdicts[PAWL_PLAN_STALE], 3);
	before = after;
	pawl_test_step(grown, 1, 200);
	after = stats_of(grown);
	ck_assert_uint_eq(after.allocations, before.allocations);
	pawl_decoder_free(grown);
	pawl_decoder_free(whole);
	pawl_tiny_model_free(model);
}

START_TEST(decoding_across_growth)
{
	decode_across(&kinds[_i], pawl_test_device(), 1);
}
END_TEST

#ifdef PAWL_HAVE_LLVM
START_TEST(decoding_across_growth_on_cpu)
{
	struct pawl_device *device;

	OK(pawl_device_open("cpu", NULL, &device, &err));
	decode_across(&kinds[_i], device, 2);
	pawl_device_unref(device);
}
END_TEST
#endif

START_TEST(the_capacity_of_the_key_flips_the_verdict)
{
	struct pawl_tiny_model *model = model_of(&kinds[0], false);
	const struct pawl_decoder_options options = options_of(&kinds[0], 32);
	struct pawl_decoder *decoder = pawl_test_decoder(model, &options);
	struct pawl_decoder_stats stats;

	pawl_test_step(decoder, 1, 0);
	pawl_test_step(decoder, 1, 1);
	ck_assert_int_eq(stats_of(decoder).last.verdict.validity, PAWL_VALID);
	OK(pawl_decoder_reserve(decoder, 33, &err));
	pawl_test_step(decoder, 1, 2);
	stats = stats_of(decoder);
	ck_assert_int_eq(stats.last.kind, PAWL_SESSION_DROPPED);
	ck_assert_int_eq(stats.last.verdict.validity, PAWL_PLAN_STALE);
	ck_assert_int_eq(stats.last.verdict.field, PAWL_KEY_MAX_SEQ_LEN);
	ck_assert_uint_eq(stats.last.verdict.held, 32);
	ck_assert_uint_eq(stats.last.verdict.asked, 48);
	pawl_decoder_free(decoder);
	pawl_tiny_model_free(model);
}
END_TEST

/* A mask has the capacity in its type, and the plan sees it: a counted rebuild. */
START_TEST(a_plan_with_a_mask_is_rebuilt)
{
	struct pawl_tiny_model *model = model_of(&kinds[0], true);
	struct pawl_decoder_options options = options_of(&kinds[0], 32);
	struct pawl_decoder *decoder = pawl_test_decoder(model, &options);
	struct pawl_decoder_stats stats;
	float *wanted;

	options.capacity = 48;
	wanted = pawl_test_fresh(model, &options, 1, 21);
	pawl_test_prefill(decoder, 1, 0, 20);
	OK(pawl_decoder_reserve(decoder, 48, &err));
	ck_assert(pawl_test_same(decoder, pawl_test_step(decoder, 1, 20), wanted));
	stats = stats_of(decoder);
	ck_assert_uint_eq(stats.counters.regrows, 0);
	ck_assert_uint_eq(stats.counters.builds[PAWL_REBUILD_STALE], 1);
	free(wanted);
	pawl_decoder_free(decoder);
	pawl_tiny_model_free(model);
}
END_TEST

/* A step that cannot regrow its plan fails, and the next one that can does. */
START_TEST(a_failed_regrow_is_tried_again)
{
	struct pawl_tiny_model *model = model_of(&kinds[0], false);
	const struct pawl_decoder_options options = options_of(&kinds[0], 32);
	struct pawl_decoder *decoder = pawl_test_decoder(model, &options);
	struct pawl_decoder_stats stats;
	const float *logits = NULL;
	float *wanted = pawl_test_fresh(model, &options, 1, 21);
	enum pawl_status status = PAWL_OUT_OF_MEMORY;
	uint64_t digest, optimizes;
	int n = 0;

	pawl_test_prefill(decoder, 1, 0, 20);
	optimizes = stats_of(decoder).counters.optimizes;
	OK(pawl_decoder_reserve(decoder, 64, &err));
	digest = pawl_test_cache_digest(pawl_decoder_cache(decoder));
	for (; status == PAWL_OUT_OF_MEMORY; n++) {
		ck_assert_uint_eq(
			pawl_test_cache_digest(pawl_decoder_cache(decoder)), digest);
		pawl_memory_fail_after(n);
		status = pawl_decoder_step(decoder, pawl_test_token(1, 20), &logits, &err);
		pawl_memory_fail_after(-1);
	}
	ck_assert_msg(status == PAWL_OK, "%s", err.text);
	ck_assert_int_gt(n, 20);
	ck_assert(pawl_test_same(decoder, logits, wanted));
	stats = stats_of(decoder);
	ck_assert_uint_eq(stats.counters.optimizes, optimizes);
	ck_assert_uint_eq(pawl_counters_rebuilds(&stats.counters), 0);
	ck_assert_uint_eq(stats.counters.regrows, 1);
	pawl_decoder_free(decoder);
	pawl_tiny_model_free(model);
	free(wanted);
}
END_TEST

/* Layers of `to` positions with the content that the cache has, given one by one. */
static void
replace_layers(struct pawl_kv_cache *cache, int64_t to)
{
	struct pawl_kv_shape shape = *pawl_kv_cache_shape(cache);
	int64_t n = pawl_kv_cache_len(cache);

	shape.max_seq_len = to;
	for (int32_t i = 0; i < shape.n_layers; i++) {
		struct pawl_storage *storages[2];

		for (int slot = 0; slot < 2; slot++) {
			const struct pawl_type type =
				pawl_kv_shape_type(&shape, 0, (enum pawl_kv_slot)slot);
			const struct pawl_kv_planes planes = pawl_kv_planes_of(&type, 2);
			size_t n_bytes;
			void *bytes;

			OK(pawl_storage_new(&type, &storages[slot], &err));
			if (!n)
				continue;
			bytes = logical(cache, i * 2 + slot, n, &n_bytes);
			pawl_kv_write_positions(&planes, storages[slot]->bytes, n, bytes);
			free(bytes);
		}
		OK(pawl_kv_cache_set_layer(cache, i, storages[0], storages[1], &err));
		pawl_storage_unref(storages[0]);
		pawl_storage_unref(storages[1]);
	}
	OK(pawl_kv_cache_set_capacity(cache, to, shape.dtype, shape.layout[0], &err));
}

START_TEST(growing_by_replacement_equals_capacity)
{
	struct pawl_tiny_model *model = model_of(&kinds[_i], false);
	struct pawl_decoder_options options = options_of(&kinds[_i], 32);
	struct pawl_decoder *by_hand = pawl_test_decoder(model, &options), *whole;
	const struct pawl_kv_shape *shape = pawl_kv_cache_shape(pawl_decoder_cache(by_hand));
	struct pawl_kv_cache *cache;
	struct pawl_decoder_stats stats;

	options.capacity = 96;
	whole = pawl_test_decoder(model, &options);
	OK(pawl_kv_cache_with_dims(
		shape->n_layers, shape->n_kv_heads, shape->head_dim, &cache, &err));
	for (int32_t i = 0; i < shape->n_layers; i++) {
		struct pawl_kv_shape first = *shape;
		struct pawl_storage *storages[2];

		first.max_seq_len = 16;
		for (int slot = 0; slot < 2; slot++) {
			struct pawl_type type =
				pawl_kv_shape_type(&first, 0, (enum pawl_kv_slot)slot);

			OK(pawl_storage_new(&type, &storages[slot], &err));
		}
		OK(pawl_kv_cache_set_layer(cache, i, storages[0], storages[1], &err));
		pawl_storage_unref(storages[0]);
		pawl_storage_unref(storages[1]);
	}
	OK(pawl_kv_cache_set_capacity(
		cache, 16, shape->dtype, shape->layout[0], &err));
	pawl_decoder_swap_cache(by_hand, &cache);
	for (int i = 0; i < 80; i++) {
		if (i && i % 16 == 0)
			replace_layers(pawl_decoder_cache(by_hand), i + 16);
		ck_assert_msg(pawl_test_same(by_hand, pawl_test_step(by_hand, 3, i),
				      pawl_test_step(whole, 3, i)),
			"token %d", i);
	}
	stats = stats_of(by_hand);
	ck_assert_uint_eq(stats.counters.regrows, 4);
	ck_assert_uint_eq(pawl_counters_rebuilds(&stats.counters), 0);
	pawl_kv_cache_free(cache);
	pawl_decoder_free(by_hand);
	pawl_decoder_free(whole);
	pawl_tiny_model_free(model);
}
END_TEST

Suite *
pawl_kv_grow_suite(void)
{
	Suite *suite = suite_create("kv_grow");
	TCase *tests = tcase_create("kv_grow");

	tcase_set_timeout(tests, 60);
	tcase_add_loop_test(tests, content_stays, 0, 3 * N_KINDS);
	tcase_add_test(tests, logical_order_is_of_no_layout);
	tcase_add_test(tests, growth_that_fails_changes_nothing);
	tcase_add_loop_test(tests, a_regrown_program_is_what_optimizing_gives, 0, 4);
	tcase_add_loop_test(tests, code_does_not_hold_the_capacity, 0, 4);
	tcase_add_loop_test(tests, what_sees_the_capacity_does_not_regrow, 0,
		(int)(sizeof(seen) / sizeof(seen[0])));
	tcase_add_loop_test(tests, decoding_across_growth, 0, N_KINDS);
#ifdef PAWL_HAVE_LLVM
	tcase_add_loop_test(tests, decoding_across_growth_on_cpu, 0, N_KINDS);
#endif
	tcase_add_test(tests, the_capacity_of_the_key_flips_the_verdict);
	tcase_add_test(tests, a_plan_with_a_mask_is_rebuilt);
	tcase_add_test(tests, a_failed_regrow_is_tried_again);
	tcase_add_loop_test(tests, growing_by_replacement_equals_capacity, 0, N_KINDS);
	suite_add_tcase(suite, tests);
	return suite;
}
