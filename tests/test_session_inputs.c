/*
 * What a session binds beside the consts of the usual models: masks of each type and shape, and the
 * symbols of both lengths.
 */
#include "runtime/token_data.h"

#include "ir/parse.h"
#include "tests/decoding.h"
#include "tests/suites.h"

#include <stdio.h>
#include <string.h>

enum { SEQ = 2, CAPACITY = 16, WIDTH = 4, N_VOCAB = 40, N_RUNS = 3 };

static float embedding[N_VOCAB][WIDTH];
static struct pawl_inference_context *context;
static struct pawl_weights *weights;
static struct pawl_model_source source; /* no rope, no graphs */
static struct pawl_error err;

#define OK(call) ck_assert_msg((call) == PAWL_OK, "%s", err.text)

static enum pawl_status
find_weight(void *ctx, const char *name, struct pawl_weight *out, struct pawl_error *e)
{
	(void)ctx;
	(void)name;
	(void)e;
	*out = (struct pawl_weight){
		embedding, sizeof(embedding), PAWL_DTYPE_F32, 2, {N_VOCAB, WIDTH}};
	return PAWL_OK;
}

static void
begin(void)
{
	static const struct pawl_weight_source from = {NULL, find_weight, NULL};

	for (int i = 0; i < N_VOCAB * WIDTH; i++)
		embedding[i / WIDTH][i % WIDTH] = (float)((i * 37 + 11) % 101 - 50) / 32.0f;
	OK(pawl_weights_new(&from, &weights, &err));
	OK(pawl_inference_context_new(pawl_test_device(), 1, &context, &err));
}

static void
end(void)
{
	pawl_inference_context_free(context);
	pawl_weights_unref(weights);
}

/* A layer whose keys and values are the embedded tokens; mask: its type, or NULL. */
static struct pawl_plan *
plan_of(const char *mask)
{
	const struct pawl_plan_options options = {.key = {.seq = SEQ,
							  .max_seq_len = CAPACITY,
							  .n_layers = 1,
							  .cache_dtype = PAWL_DTYPE_F32,
							  .n_kv_heads = 1,
							  .head_dim = WIDTH,
							  .device = pawl_test_device()->id}};
	struct pawl_graph *graph;
	struct pawl_plan *plan;
	char text[2048], masks[256] = "";

	if (mask)
		snprintf(masks, sizeof(masks),
			"%%mask = const {role = data} : %s\n"
			"%%flat = reshape %%mask : %.*s[2, 16]\n"
			"%%added = cast %%flat {dtype = f32} : f32[2, 16]\n",
			mask, (int)strcspn(mask, "["), mask);
	snprintf(text, sizeof(text),
		"pawl 1\ngraph @inputs stage values {\n"
		"sym $cached_len : 0..14\nsym $attended_len : 2..16\n"
		"%%token_ids = const {role = data} : u32[2]\n"
		"%%offset = const {role = data} : i64[]\n%s"
		"%%table = const : f32[40, 4]\n"
		"%%cache.k.0 = const {role = kv} : f32[1, 1, 16, 4]\n"
		"%%cache.v.0 = const {role = kv} : f32[1, 1, 16, 4]\n"
		"%%x = gather %%table, %%token_ids : f32[2, 4]\n"
		"%%s = reshape %%x : f32[1, 1, 2, 4]\n"
		"%%k = write_slice %%cache.k.0, %%s {axis = 2, sym = $cached_len} : f32[1, 1, 16, 4]\n"
		"%%v = write_slice %%cache.v.0, %%s {axis = 2, sym = $cached_len} : f32[1, 1, 16, 4]\n"
		"%%q = reshape %%x : f32[2, 1, 4]\n"
		"%%y = attention %%q, %%k, %%v, %%offset%s {scale = 0.5%s, sym = $attended_len} : "
		"f32[2, 1, 4]\n"
		"output %%y\n}\n",
		masks, mask ? ", %added" : "", mask ? ", causal = false" : "");
	OK(pawl_parse(text, strlen(text), "inputs", &graph, NULL, &err));
	OK(pawl_plan_build(graph, pawl_test_device(), &options, &plan, &err));
	pawl_graph_free(graph);
	return plan;
}

static struct pawl_kv_cache *
new_cache(void)
{
	const struct pawl_kv_shape shape = {.n_layers = 1,
		.n_kv_heads = 1,
		.head_dim = WIDTH,
		.max_seq_len = CAPACITY,
		.dtype = PAWL_DTYPE_F32,
		.layout = {PAWL_LAYOUT_ROWS, PAWL_LAYOUT_ROWS}};
	struct pawl_kv_cache *cache;

	OK(pawl_kv_cache_with_capacity(context, &shape, &cache, &err));
	return cache;
}

/* N_RUNS runs of SEQ tokens each; what comes out, and the keys. */
static void
decode(const char *mask, float out[N_RUNS][SEQ * WIDTH], float keys[CAPACITY][WIDTH])
{
	struct pawl_plan *plan = plan_of(mask);
	struct pawl_kv_cache *cache = new_cache();
	const struct pawl_kv_layer_id k = {0, PAWL_KV_K};
	struct pawl_decode_session *session;
	struct pawl_token_buffers buffers;
	struct pawl_counters counters = {0};
	struct pawl_token_data data;

	OK(pawl_decode_session_new(plan, weights, cache, pawl_inference_context_team(context),
		&session, &err));
	OK(pawl_token_buffers_init(&buffers, session, &err));
	for (int run = 0; run < N_RUNS; run++) {
		const uint32_t tokens[SEQ] = {
			pawl_test_token(1, run * SEQ), pawl_test_token(1, run * SEQ + 1)};

		OK(pawl_token_buffers_fill(
			&buffers, &source, tokens, SEQ, run * SEQ, &data, &err));
		OK(pawl_decode_session_realize(session, &data, &buffers.env, &counters, &err));
		memcpy(out[run], pawl_decode_session_output(session, 0, NULL), sizeof(out[run]));
	}
	memcpy(keys, pawl_kv_cache_storage(cache, k)->bytes, sizeof(float[CAPACITY][WIDTH]));
	/* Beyond what a symbol may be. */
	ck_assert_int_eq(pawl_token_buffers_fill(&buffers, &source, (const uint32_t[]){1, 2}, SEQ,
				 CAPACITY - 1, &data, &err),
		PAWL_SYMBOL);
	pawl_token_buffers_release(&buffers);
	pawl_decode_session_free(session);
	pawl_kv_cache_free(cache);
	pawl_plan_unref(plan);
}

START_TEST(symbols_say_where_and_how_far)
{
	float out[N_RUNS][SEQ * WIDTH], keys[CAPACITY][WIDTH];
	static const float zeros[WIDTH];

	decode(NULL, out, keys);
	for (int i = 0; i < CAPACITY; i++)
		ck_assert_mem_eq(keys[i],
			i < N_RUNS * SEQ ? embedding[pawl_test_token(1, i)] : zeros,
			sizeof(keys[i]));
	/* The first row sees itself alone. */
	ck_assert_mem_eq(out[0], embedding[pawl_test_token(1, 0)], sizeof(zeros));
	ck_assert(memcmp(out[1], embedding[pawl_test_token(1, 2)], sizeof(zeros)));
}
END_TEST

static const char *const masks[] = {"f32[2, 16]", "f32[1, 1, 2, 16]", "f16[2, 16]",
	"f16[1, 1, 2, 16]", "bf16[2, 16]", "bf16[1, 1, 2, 16]"};

START_TEST(masks_of_each_type_and_shape)
{
	float want[N_RUNS][SEQ * WIDTH], out[N_RUNS][SEQ * WIDTH], keys[CAPACITY][WIDTH];

	decode(NULL, want, keys);
	decode(masks[_i], out, keys);
	ck_assert_mem_eq(out, want, sizeof(out));
}
END_TEST

START_TEST(a_run_wants_everything_bound)
{
	static const char *const texts[] = {"table is not bound", "cache.v.0 is not bound",
		"data const token_ids has no bytes"};
	struct pawl_plan *plan = plan_of(NULL);
	const uint32_t tokens[SEQ] = {1, 2};
	const int64_t offset = 0;

	for (int missing = 0; missing <= 3; missing++) {
		struct pawl_kv_cache *cache = new_cache();
		struct pawl_bindings *bindings;
		struct pawl_symenv env;

		OK(pawl_bindings_new(
			plan, pawl_inference_context_team(context), &bindings, &err));
		OK(pawl_symenv_init(&env, plan->program->symbols, 2, &err));
		OK(pawl_symenv_bind_name(&env, "cached_len", 0, &err));
		OK(pawl_symenv_bind_name(&env, "attended_len", 2, &err));
		if (missing != 0)
			OK(pawl_bindings_bind_weights(bindings, weights, &err));
		for (int which = 0; which < (missing == 1 ? 1 : 2); which++) {
			const struct pawl_kv_layer_id id = {0, (enum pawl_kv_slot)which};
			const char *name = which ? "cache.v.0" : "cache.k.0";

			OK(pawl_bindings_bind(bindings,
				pawl_plan_find_slot(plan, PAWL_SLOT_KV, name),
				pawl_kv_cache_storage(cache, id), &err));
		}
		pawl_bindings_offer(
			bindings, pawl_plan_find_slot(plan, PAWL_SLOT_DATA, "offset"), &offset);
		if (missing != 2)
			pawl_bindings_offer(bindings,
				pawl_plan_find_slot(plan, PAWL_SLOT_DATA, "token_ids"), tokens);
		if (missing < 3) {
			ck_assert_int_eq(pawl_bindings_run(bindings, &env, NULL, &err),
				PAWL_INVALID_ARGUMENT);
			ck_assert_str_eq(err.text, texts[missing]);
		} else {
			OK(pawl_bindings_run(bindings, &env, NULL, &err));
		}
		pawl_symenv_release(&env);
		pawl_bindings_free(bindings);
		pawl_kv_cache_free(cache);
	}
	pawl_plan_unref(plan);
}
END_TEST

Suite *
pawl_session_inputs_suite(void)
{
	Suite *suite = suite_create("session_inputs");
	TCase *tcase = tcase_create("session_inputs");

	tcase_add_checked_fixture(tcase, begin, end);
	tcase_add_test(tcase, symbols_say_where_and_how_far);
	tcase_add_loop_test(tcase, masks_of_each_type_and_shape, 0,
		(int)(sizeof(masks) / sizeof(masks[0])));
	tcase_add_test(tcase, a_run_wants_everything_bound);
	suite_add_tcase(suite, tcase);
	return suite;
}
