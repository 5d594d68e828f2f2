/*
 * Programs and plans that are grown from their code, not optimized anew, and those that cannot be.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/parse.h"
#include "passes/regrow.h"
#include "runtime/memory.h"
#include "tests/decoding.h"
#include "tests/kv_grow_fixture.h"
#include "tests/regrow_check.h"
#include "tests/suites.h"

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
	struct pawl_graph *first = graph_of(model, seq, 32), *kept;
	struct pawl_program *program;
	uint64_t hash = pawl_graph_hash(first);

	options.optimized = &kept;
	OK(pawl_optimize(first, &options, &program, NULL, &err));
	pawl_program_free(program);
	for (size_t i = 0; i < sizeof(capacities) / sizeof(capacities[0]); i++) {
		struct pawl_graph *graph = graph_of(model, seq, capacities[i]);

		pawl_test_check_regrown(&kept, hash, graph);
		hash = pawl_graph_hash(graph);
		pawl_graph_free(graph);
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

	pawl_test_check_same_code(small, large);
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

Suite *
pawl_regrow_suite(void)
{
	Suite *suite = suite_create("regrow");
	TCase *tests = tcase_create("regrow");

	tcase_set_timeout(tests, 60);
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
	suite_add_tcase(suite, tests);
	return suite;
}
