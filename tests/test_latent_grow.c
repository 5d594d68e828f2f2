/*
 * Caches of latents that grow, on the tiny model of tests/tiny_mla.h: content and logits stay, and plans
 * come from the code there is, through the views that a model has of its latents.
 */
#include "runtime/latent_kv_cache.h"

#include <stdlib.h>
#include <string.h>

#include "passes/regrow.h"
#include "runtime/device.h"
#include "runtime/memory.h"
#include "tests/latent_fixture.h"
#include "tests/regrow_check.h"
#include "tests/suites.h"

START_TEST(content_stays)
{
	struct pawl_latent_kv_cache *cache =
		pawl_latent_cache_of(life.context, &pawl_latent_many_slots);
	const uint64_t id = pawl_latent_kv_cache_alloc_id(cache).value, runs = pawl_latent_runner_counters(&life)->runs;
	char *before[12];

	for (int i = 0; i < 12; i++) {
		struct pawl_storage *storage = pawl_latent_kv_cache_storage(cache, i / 4, i % 4);

		for (int64_t b = 0; b < storage->n_bytes; b++)
			((unsigned char *)storage->bytes)[b] = (unsigned char)(b * 7 + i * 31 + 1);
		before[i] = malloc((size_t)storage->n_bytes);
		memcpy(before[i], storage->bytes, (size_t)storage->n_bytes);
	}
	pawl_latent_kv_cache_advance(cache, 13);
	OK(pawl_latent_kv_cache_reserve(cache, 20, &err));
	OK(pawl_latent_kv_cache_reserve(cache, -1, &err));
	ck_assert_uint_eq(pawl_latent_kv_cache_alloc_id(cache).value, id);
	OK(pawl_latent_kv_cache_reserve(cache, 47, &err));
	ck_assert_uint_gt(pawl_latent_kv_cache_alloc_id(cache).value, id);
	ck_assert_int_eq(pawl_latent_kv_cache_shape(cache)->max_seq_len, 47);
	ck_assert_int_eq(pawl_latent_kv_cache_len(cache), 13);
	ck_assert(pawl_location_equal(pawl_latent_kv_cache_location(cache), PAWL_LOCATION_HOST));
	for (int i = 0; i < 12; i++) {
		const struct pawl_kv_tensor *tensor =
			pawl_latent_kv_cache_slot(cache, i / 4, i % 4);
		const struct pawl_type type = pawl_latent_shape_type(
			pawl_latent_kv_cache_shape(cache), i % 4);
		const char *bytes = tensor->storage->bytes;
		int64_t row = tensor->storage->n_bytes / 47;

		ck_assert(pawl_type_equal(&tensor->storage->type, &type));
		ck_assert_uint_eq(tensor->version, 1);
		ck_assert(!memcmp(bytes, before[i], (size_t)(13 * row)));
		for (int64_t b = 13 * row; b < 47 * row; b++)
			ck_assert_int_eq(bytes[b], 0);
		free(before[i]);
	}
	ck_assert_uint_eq(pawl_latent_runner_counters(&life)->runs, runs);
	pawl_latent_kv_cache_free(cache);
}
END_TEST

START_TEST(growth_that_fails_changes_nothing)
{
	struct pawl_latent_kv_cache *cache =
		pawl_latent_cache_of(life.context, &pawl_latent_many_slots);
	enum pawl_status status = PAWL_OUT_OF_MEMORY;
	uint64_t digest = pawl_latent_digest(cache);
	int n;

	for (n = 0; status == PAWL_OUT_OF_MEMORY; n++) {
		ck_assert_uint_eq(pawl_latent_digest(cache), digest);
		pawl_memory_fail_after(n);
		status = pawl_latent_kv_cache_reserve(cache, 100, &err);
		pawl_memory_fail_after(-1);
	}
	OK(status);
	/* The list, and for each of 12 storages itself and its bytes. */
	ck_assert_int_eq(n - 1, 1 + 12 * 2);
	digest = pawl_latent_digest(cache);
	ck_assert_int_eq(
		pawl_latent_kv_cache_reserve(cache, INT64_MAX, &err), PAWL_INVALID_ARGUMENT);
	ck_assert_str_eq(err.text, "a latent cache of 9223372036854775807 positions is larger than "
				   "memory can be");
	ck_assert_int_eq(pawl_latent_kv_cache_reserve(cache, INT64_C(1) << 46, &err),
		PAWL_OUT_OF_MEMORY);
	ck_assert_ptr_nonnull(strstr(err.text, "a latent cache of "));
	ck_assert_uint_eq(pawl_latent_digest(cache), digest);
	pawl_latent_kv_cache_clear(cache);
	ck_assert_int_eq(pawl_latent_kv_cache_reserve(cache, 8, &err), PAWL_INVALID_ARGUMENT);
	ck_assert_str_eq(err.text, "the cache has no capacity");
	pawl_latent_kv_cache_free(cache);
}
END_TEST

static const struct {
	const char *target;
	int n_threads;
	enum pawl_dtype kv;
} grown_ways[] = {
	{"ref", 1, PAWL_DTYPE_F16},
	{"ref", 1, PAWL_DTYPE_F32},
	{"ref", 1, PAWL_DTYPE_BF16},
#ifdef PAWL_HAVE_LLVM
	{"cpu", 2, PAWL_DTYPE_F16},
	{"cpu", 1, PAWL_DTYPE_F32},
#endif
};

/* From 24 positions over 40 to 200, which need not be multiples of anything. */
START_TEST(grown_equals_with_capacity)
{
	static const int64_t upto[] = {20, 24, 33, 36, 40, 41, 70, 100, 130, 190};
	static float wanted[64 * N_VOCAB], got[64 * N_VOCAB];
	struct pawl_latent_runner grown, whole;
	struct pawl_counters before, after;
	struct pawl_target_counters compiled, compiled_after;
	int64_t len = 0;

	way.target = grown_ways[_i].target;
	way.n_threads = grown_ways[_i].n_threads;
	way.kv = grown_ways[_i].kv;
	way.capacity = 200;
	pawl_latent_runner_init(&whole, model, &way);
	way.capacity = 24;
	pawl_latent_runner_init(&grown, model, &way);
	before = *pawl_latent_runner_counters(&grown);
	pawl_device_counters(grown.device, &compiled);
	for (size_t i = 0; i < sizeof(upto) / sizeof(upto[0]); i++) {
		if (upto[i] == 33 || upto[i] == 41)
			OK(pawl_latent_kv_cache_reserve(
				grown.cache, upto[i] == 33 ? 40 : 200, &err));
		pawl_latent_runner_ready(&grown);
		pawl_latent_runner_feed(&whole, 1, len, upto[i] - len, wanted);
		pawl_latent_runner_feed(&grown, 1, len, upto[i] - len, got);
		pawl_latent_expect_same(wanted, got, upto[i] - len, grown_ways[_i].target);
		len = upto[i];
	}
	after = *pawl_latent_runner_counters(&grown);
	ck_assert_uint_eq(after.optimizes, before.optimizes);
	pawl_device_counters(grown.device, &compiled_after);
	ck_assert_uint_eq(compiled_after.kernel_compiles, compiled.kernel_compiles);
	ck_assert_uint_eq(compiled_after.kernels_read, compiled.kernels_read);
	ck_assert_uint_eq(after.regrows, 4);
	ck_assert_uint_eq(after.verdicts[PAWL_PLAN_STALE], 4);
	pawl_latent_runner_release(&grown);
	pawl_latent_runner_release(&whole);
}
END_TEST

static struct pawl_graph *
graph_of(int64_t seq, int64_t capacity, bool is_paged)
{
	const struct pawl_model_source *source = pawl_tiny_mla_source(model);
	const struct pawl_graph_request request = {.n_tokens = seq,
		.capacity = capacity,
		.kv_dtype = PAWL_DTYPE_F16,
		.logits = PAWL_LOGITS_LAST,
		.n_sequences = is_paged,
		.block_size = 16,
		.max_blocks = capacity / 16};
	struct pawl_graph *graph;

	OK(source->build(source->ctx, &request, &graph, &err));
	return graph;
}

static const struct pawl_optimize_options plain = {.run = {.bisect = -1}};

START_TEST(a_regrown_program_is_what_optimizing_gives)
{
	static const int64_t capacities[] = {64, 500, 17, 4096, 32};
	const int64_t seq = _i ? 8 : 1;
	struct pawl_optimize_options options = plain;
	struct pawl_graph *graph = graph_of(seq, 32, false), *kept;
	struct pawl_program *program;
	uint64_t hash = pawl_graph_hash(graph);

	options.optimized = &kept;
	OK(pawl_optimize(graph, &options, &program, NULL, &err));
	pawl_program_free(program);
	pawl_graph_free(graph);
	for (size_t i = 0; i < sizeof(capacities) / sizeof(capacities[0]); i++) {
		graph = graph_of(seq, capacities[i], false);
		ck_assert(pawl_graph_can_regrow(graph));
		pawl_test_check_regrown(&kept, hash, graph);
		hash = pawl_graph_hash(graph);
		pawl_graph_free(graph);
	}
	pawl_graph_free(kept);
}
END_TEST

START_TEST(code_does_not_hold_the_capacity)
{
	struct pawl_graph *small = graph_of(_i ? 8 : 1, 32, false),
			  *large = graph_of(_i ? 8 : 1, 4096, false);

	pawl_test_check_same_code(small, large);
	pawl_graph_free(small);
	pawl_graph_free(large);
}
END_TEST

/* Attention over a cache [m, 16] as the views say. */
enum view { WHOLE, HEAD_OF_ROWS, TAIL_OF_ROWS, FIRST_POSITIONS, SPLIT, IS_OUTPUT, N_VIEWS };

static struct pawl_graph *
view_graph(enum view view, int64_t m)
{
	struct pawl_graph *g = pawl_graph_new("views");
	const struct pawl_type q = pawl_type_make(PAWL_DTYPE_F32, 3,
		view == HEAD_OF_ROWS || view == TAIL_OF_ROWS ? (const int64_t[]){1, 2, 8}
							     : (const int64_t[]){1, 2, 16}),
			       scalar = pawl_type_make(PAWL_DTYPE_I64, 0, NULL),
			       kv = pawl_type_make(PAWL_DTYPE_F32, 2, (const int64_t[]){m, 16});
	const int64_t whole[] = {1, 1, m, 16}, halves[] = {1, 2, m / 2, 16},
		      start[] = {0, 0, 0, view == TAIL_OF_ROWS ? 8 : 0},
		      stop[] = {1, 1, view == FIRST_POSITIONS ? 8 : m, view == HEAD_OF_ROWS ? 8 : 16};
	struct pawl_attrs attrs = pawl_attrs_default();
	struct pawl_node *in[4], *cache;

	attrs.sym = pawl_graph_add_symbol(g, "n", 1, view == FIRST_POSITIONS ? 8 : m / 2, 1);
	in[0] = pawl_build_const(g, PAWL_ROLE_DATA, "q", &q);
	cache = pawl_build_const(g, PAWL_ROLE_KV, "cache", &kv);
	in[3] = pawl_build_const(g, PAWL_ROLE_DATA, "offset", &scalar);
	cache = pawl_build_reshape(g, cache, 4, view == SPLIT ? halves : whole);
	if (view != WHOLE && view != SPLIT && view != IS_OUTPUT)
		cache = pawl_build_slice(g, cache, start, stop);
	in[1] = in[2] = cache;
	pawl_graph_add_output(g, pawl_build(g, PAWL_OP_ATTENTION, NULL, in, 4, &attrs, NULL));
	if (view == IS_OUTPUT)
		pawl_graph_add_output(g, cache);
	ck_assert_msg(!g->error.status, "%s", g->error.text);
	return g;
}

START_TEST(views_that_pass_the_capacity_on)
{
	const enum view view = (enum view)_i;
	const bool can = view <= TAIL_OF_ROWS;
	struct pawl_graph *graph = view_graph(view, 32), *other = view_graph(view, 64), *kept,
			  *next = NULL;
	struct pawl_optimize_options options = plain;
	struct pawl_program *program, *regrown = NULL;

	options.optimized = &kept;
	OK(pawl_optimize(graph, &options, &program, NULL, &err));
	ck_assert_int_eq(pawl_graph_can_regrow(graph), can);
	ck_assert_int_eq(pawl_regrow(kept, program->hash, other, &plain, &next, &regrown, &err),
		can ? PAWL_OK : PAWL_UNSUPPORTED);
	ck_assert((regrown != NULL) == can && (next != NULL) == can);
	pawl_program_free(program);
	if (can)
		pawl_program_free(regrown);
	pawl_graph_free(next);
	/* A row of another width is no other capacity; nor is a hash of another graph. */
	pawl_graph_free(other);
	other = view_graph(view == WHOLE ? HEAD_OF_ROWS : WHOLE, 64);
	ck_assert_int_eq(pawl_regrow(kept, pawl_graph_hash(graph), other, &plain, &next, &regrown,
				 &err),
		PAWL_UNSUPPORTED);
	pawl_graph_free(other);
	pawl_graph_free(graph);
	pawl_graph_free(kept);
}
END_TEST

START_TEST(blocks_do_not_regrow)
{
	struct pawl_graph *graph = graph_of(8, 64, true);

	ck_assert(!pawl_graph_can_regrow(graph));
	pawl_graph_free(graph);
}
END_TEST

Suite *
pawl_latent_grow_suite(void)
{
	Suite *suite = suite_create("latent_grow");
	TCase *tests = tcase_create("latent_grow");

	tcase_add_checked_fixture(tests, begin_life, end_life);
	tcase_set_timeout(tests, 60);
	tcase_add_test(tests, content_stays);
	tcase_add_test(tests, growth_that_fails_changes_nothing);
	tcase_add_loop_test(tests, grown_equals_with_capacity, 0,
		(int)(sizeof(grown_ways) / sizeof(grown_ways[0])));
	tcase_add_loop_test(tests, a_regrown_program_is_what_optimizing_gives, 0, 2);
	tcase_add_loop_test(tests, code_does_not_hold_the_capacity, 0, 2);
	tcase_add_loop_test(tests, views_that_pass_the_capacity_on, 0, N_VIEWS);
	tcase_add_test(tests, blocks_do_not_regrow);
	suite_add_tcase(suite, tests);
	return suite;
}
