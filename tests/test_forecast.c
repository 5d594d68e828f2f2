/* What a run takes, told before it from its plans, against what it then took. */
#include "runtime/forecast.h"

#include "tests/decoding.h"
#include "tests/skip.h"
#include "tests/suites.h"

static struct pawl_error err;

static struct pawl_plan *
plan_of(const struct pawl_model_source *source, struct pawl_device *device, int64_t seq,
	enum pawl_logits logits)
{
	const struct pawl_graph_request request = {
		.n_tokens = seq, .capacity = 64, .kv_dtype = PAWL_DTYPE_F16, .logits = logits};
	const struct pawl_plan_options options = {.key.seq = seq};
	struct pawl_graph *graph;
	struct pawl_plan *plan;

	ck_assert_int_eq(source->build(source->ctx, &request, &graph, &err), PAWL_OK);
	ck_assert_msg(pawl_plan_build(graph, device, &options, &plan, &err) == PAWL_OK, "%s",
		err.text);
	pawl_graph_free(graph);
	return plan;
}

/* Of a team of two threads, which is no part of any plan. */
static int64_t
pool_bytes(struct pawl_device *device)
{
	int64_t before = pawl_memory_block_bytes(), bytes;
	struct pawl_inference_context *context;

	ck_assert_int_eq(pawl_inference_context_new(device, 2, &context, &err), PAWL_OK);
	bytes = pawl_memory_block_bytes() - before;
	pawl_inference_context_free(context);
	return bytes;
}

/* 0: the reference, whose weights stay as they are; 1: the CPU, which packs them. */
START_TEST(a_run_takes_what_was_told)
{
	struct pawl_tiny_options tiny = pawl_tiny_defaults();
	struct pawl_decoder_options options = pawl_test_decoder_options();
	struct pawl_memory_forecast forecast;
	const struct pawl_model_source *source;
	struct pawl_device *device;
	struct pawl_tiny_model *model;
	struct pawl_decoder *decoder;
	struct pawl_plan *plans[2];
	uint32_t tokens[20];
	int64_t before, told, taken, code;

#ifndef PAWL_HAVE_LLVM
	if (_i) {
		pawl_skip("a forecast for the CPU", "built without llvm");
		return;
	}
#endif
	tiny.dtype = PAWL_DTYPE_Q8_0;
	model = pawl_tiny_model_new(&tiny);
	source = pawl_tiny_model_source(model);
	options.n_threads = 2;
	ck_assert_msg(pawl_device_open(_i ? "cpu" : "ref", NULL, &device, &err) == PAWL_OK, "%s",
		err.text);
	plans[0] = plan_of(source, device, 8, PAWL_LOGITS_NONE);
	plans[1] = plan_of(source, device, 1, PAWL_LOGITS_LAST);
	before = pawl_memory_block_bytes();
	ck_assert_int_eq(pawl_forecast_memory((const struct pawl_plan *const *)plans, 2,
				 &(struct pawl_kv_shape){.n_layers = tiny.n_layers,
					 .n_kv_heads = tiny.n_kv_heads,
					 .head_dim = tiny.head_dim,
					 .max_seq_len = 64,
					 .dtype = PAWL_DTYPE_F16,
					 .layout = {tiny.k_layout, PAWL_LAYOUT_ROWS}},
				 2, &forecast, &err),
		PAWL_OK);
	ck_assert_int_eq(pawl_memory_block_bytes(), before);
	ck_assert_int_gt(forecast.weights, 0);
	ck_assert_int_gt(forecast.mapped, 0);
	ck_assert_int_eq(forecast.kv, 2 * tiny.n_layers * tiny.n_kv_heads * tiny.head_dim * 64 * 2);
	ck_assert_int_eq(forecast.code, pawl_device_code_bytes(device));
	ck_assert_int_eq(forecast.code > 0, _i);
	/* The literals of the two plans are there already. */
	for (int i = 0; i < 2; i++)
		for (int32_t s = 0; s < plans[i]->program->n_slots; s++)
			if (plans[i]->literals[s])
				before -= plans[i]->literals[s]->n_bytes;
	for (int i = 0; i < 2; i++)
		pawl_plan_unref(plans[i]);
	ck_assert_msg(pawl_decoder_new(source, device, &options, &decoder, &err) == PAWL_OK, "%s",
		err.text);
	for (int i = 0; i < 20; i++)
		tokens[i] = pawl_test_token(1, i);
	ck_assert_int_eq(pawl_decoder_prefill(decoder, tokens, 20, NULL, &err), PAWL_OK);
	told = forecast.weights + forecast.kv + forecast.scratch + forecast.data;
	taken = pawl_memory_block_bytes() - before - pool_bytes(device);
	ck_assert_msg(taken == told,
		"%lld bytes are taken, %lld were told: weights %lld, kv %lld, scratch %lld, data "
		"%lld",
		(long long)taken, (long long)told, (long long)forecast.weights,
		(long long)forecast.kv, (long long)forecast.scratch, (long long)forecast.data);
	/* The kernel that zero-fills the cache is no plan's. */
	code = pawl_device_code_bytes(device) - forecast.code;
	ck_assert_int_ge(code, 0);
	ck_assert_int_lt(code, 2048);
	pawl_decoder_free(decoder);
	pawl_device_unref(device);
	pawl_tiny_model_free(model);
}
END_TEST

Suite *
pawl_forecast_suite(void)
{
	Suite *suite = suite_create("forecast");
	TCase *tcase = tcase_create("forecast");

	tcase_add_loop_test(tcase, a_run_takes_what_was_told, 0, 2);
	suite_add_tcase(suite, tcase);
	return suite;
}
