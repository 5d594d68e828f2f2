/*
 * Family gemma3: a random model against an evaluation in f64 written here, and the same logits bit
 * for bit from every target, chunk size and kind of cache.
 */
#include "codegen/tensor.h"
#include "models/model.h"
#include "runtime/decoder.h"
#include "runtime/paged_decoder.h"
#include "tests/suites.h"
#include "tests/tiny_gemma.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	N_LAYERS = PAWL_TINY_GEMMA_LAYERS,
	N_EMBD = PAWL_TINY_GEMMA_EMBD,
	N_HEADS = PAWL_TINY_GEMMA_HEADS,
	HEAD_DIM = PAWL_TINY_GEMMA_HEAD_DIM,
	N_FF = PAWL_TINY_GEMMA_FF,
	N_VOCAB = PAWL_TINY_GEMMA_VOCAB,
	WINDOW = 20,
	N_TOKENS = 160,
	N_EXACT = 50,
	CAPACITY = 256,
};

static struct pawl_model *model;
static struct pawl_error err;
static int window = WINDOW;    /* of the model, 0: none */
static const uint8_t *windows; /* NULL: all but layer 5 */
static float wanted[N_TOKENS * N_VOCAB], got[N_TOKENS * N_VOCAB];

#define OK(call) ck_assert_msg((call) == PAWL_OK, "%s", err.text)

static void
open_plain(enum pawl_dtype dtype)
{
	const struct pawl_tiny_gemma_options options = {
		.dtype = dtype, .window = (uint32_t)window, .windows = windows, .seed = 3};

	model = pawl_tiny_gemma_open(&options);
}

static bool
is_local(int layer)
{
	return window && (windows ? windows[layer] : layer != 5);
}

static void
close_model(void)
{
	pawl_model_free(model);
	model = NULL;
}

static uint32_t
token(int64_t i)
{
	return (uint32_t)((i * 7919 + i * i * 31 + 5) % N_VOCAB);
}

/* The evaluation in f64. */

struct exact {
	double keys[N_LAYERS][N_EXACT][HEAD_DIM], values[N_LAYERS][N_EXACT][HEAD_DIM];
	double x[N_EMBD], logits[N_VOCAB];
};

static const float *
tensor(int layer, const char *what)
{
	char name[64];

	if (layer < 0)
		snprintf(name, sizeof(name), "%s.weight", what);
	else
		snprintf(name, sizeof(name), "blk.%d.%s.weight", layer, what);
	return (const float *)pawl_gguf_find_tensor(pawl_model_gguf(model), name)->data;
}

static void
norm(int layer, const char *what, double *x, int n, double *y)
{
	const float *w = tensor(layer, what);
	double sum = 0;

	for (int i = 0; i < n; i++)
		sum += x[i] * x[i];
	for (int i = 0; i < n; i++)
		y[i] = x[i] / sqrt(sum / n + (double)1e-6f) * (double)w[i];
}

static void
times(int layer, const char *what, const double *x, int n, int rows, double *y)
{
	const float *w = tensor(layer, what);

	for (int i = 0; i < rows; i++) {
		y[i] = 0;
		for (int j = 0; j < n; j++)
			y[i] += (double)w[i * n + j] * x[j];
	}
}

static void
turn(double *x, int position, double base)
{
	for (int i = 0; i < HEAD_DIM / 2; i++) {
		double angle = position * pow(base, -2.0 * i / HEAD_DIM), a = x[i];
		double b = x[i + HEAD_DIM / 2];

		x[i] = a * cos(angle) - b * sin(angle);
		x[i + HEAD_DIM / 2] = a * sin(angle) + b * cos(angle);
	}
}

static void
attend(const struct exact *e, int layer, int position, const double *q, double *y)
{
	int first = is_local(layer) && position >= window ? position - window + 1 : 0;
	double weights[N_EXACT], sum = 0;

	for (int p = first; p <= position; p++) {
		double score = 0;

		for (int i = 0; i < HEAD_DIM; i++)
			score += q[i] * e->keys[layer][p][i];
		sum += weights[p] = exp(score / sqrt((double)HEAD_DIM));
	}
	for (int i = 0; i < HEAD_DIM; i++) {
		y[i] = 0;
		for (int p = first; p <= position; p++)
			y[i] += weights[p] / sum * e->values[layer][p][i];
	}
}

static void
add_attention(struct exact *e, int layer, int position)
{
	double base = is_local(layer) ? 1e4 : 1e6, x[N_EMBD], q[N_HEADS * HEAD_DIM];
	double y[N_HEADS * HEAD_DIM], *key = e->keys[layer][position];

	norm(layer, "attn_norm", e->x, N_EMBD, x);
	times(layer, "attn_q", x, N_EMBD, N_HEADS * HEAD_DIM, q);
	times(layer, "attn_k", x, N_EMBD, HEAD_DIM, key);
	times(layer, "attn_v", x, N_EMBD, HEAD_DIM, e->values[layer][position]);
	norm(layer, "attn_k_norm", key, HEAD_DIM, key);
	turn(key, position, base);
	for (int h = 0; h < N_HEADS; h++) {
		norm(layer, "attn_q_norm", q + h * HEAD_DIM, HEAD_DIM, q + h * HEAD_DIM);
		turn(q + h * HEAD_DIM, position, base);
		attend(e, layer, position, q + h * HEAD_DIM, y + h * HEAD_DIM);
	}
	times(layer, "attn_output", y, N_HEADS * HEAD_DIM, N_EMBD, x);
	norm(layer, "post_attention_norm", x, N_EMBD, x);
	for (int i = 0; i < N_EMBD; i++)
		e->x[i] += x[i];
}

static void
add_feed_forward(struct exact *e, int layer)
{
	double x[N_EMBD], gate[N_FF], up[N_FF];

	norm(layer, "ffn_norm", e->x, N_EMBD, x);
	times(layer, "ffn_gate", x, N_EMBD, N_FF, gate);
	times(layer, "ffn_up", x, N_EMBD, N_FF, up);
	for (int i = 0; i < N_FF; i++) {
		double g = gate[i];

		up[i] *= 0.5 * g * (1 + tanh(sqrt(2 / acos(-1)) * (g + 0.044715 * g * g * g)));
	}
	times(layer, "ffn_down", up, N_FF, N_EMBD, x);
	norm(layer, "post_ffw_norm", x, N_EMBD, x);
	for (int i = 0; i < N_EMBD; i++)
		e->x[i] += x[i];
}

static void
evaluate(struct exact *e, int position)
{
	const float *row = tensor(-1, "token_embd") + token(position) * N_EMBD;

	for (int i = 0; i < N_EMBD; i++)
		e->x[i] = (double)row[i] * sqrt((double)N_EMBD);
	for (int layer = 0; layer < N_LAYERS; layer++) {
		add_attention(e, layer, position);
		add_feed_forward(e, layer);
	}
	norm(-1, "output_norm", e->x, N_EMBD, e->x);
	times(-1, "token_embd", e->x, N_EMBD, N_VOCAB, e->logits);
}

/* Pawl's. */

static struct pawl_decoder_options
plain_options(void)
{
	return (struct pawl_decoder_options){.capacity = CAPACITY,
		.kv_dtype = PAWL_DTYPE_F16,
		.precision = PAWL_PRECISION_A16,
		.n_threads = 1,
		.prefill_chunk = 8};
}

static enum pawl_status
keep_row(void *arg, int64_t position, const float *logits, struct pawl_error *e)
{
	float *all = arg;

	(void)e;
	memcpy(all + position * N_VOCAB, logits, N_VOCAB * sizeof(float));
	return PAWL_OK;
}

static struct pawl_device *
open_device(const char *target)
{
	struct pawl_device *device;

	OK(pawl_device_open(target, NULL, &device, &err));
	return device;
}

/* The logits of the first n tokens. */
static void
run(const char *target, const struct pawl_decoder_options *options, int64_t n, float *logits)
{
	struct pawl_device *device = open_device(target);
	struct pawl_decoder *d;
	uint32_t tokens[N_TOKENS];

	for (int64_t i = 0; i < n; i++)
		tokens[i] = token(i);
	OK(pawl_decoder_new(pawl_model_source(model), device, options, &d, &err));
	ck_assert_int_eq(pawl_kv_cache_shape(pawl_decoder_cache(d))->rings.positions,
		options->rings ? pawl_kv_ring_capacity(window, options->prefill_chunk, 0) : 0);
	OK(pawl_decoder_eval(d, tokens, n, keep_row, logits, &err));
	pawl_decoder_free(d);
	pawl_device_unref(device);
}

static const struct {
	int window;
	const uint8_t *windows;
} kinds[] = {
	{WINDOW, NULL},
	{0, NULL},
	{WINDOW, (const uint8_t[N_LAYERS]){1, 0, 1, 0, 1, 0, 1}},
	{WINDOW, (const uint8_t[N_LAYERS]){0, 0, 1, 1, 0, 0, 0}},
	{WINDOW, (const uint8_t[N_LAYERS]){1, 1, 1, 1, 1, 1, 1}},
	{WINDOW, (const uint8_t[N_LAYERS]){0, 0, 0, 0, 0, 0, 0}},
	{0, (const uint8_t[N_LAYERS]){1, 0, 1, 0, 1, 0, 1}},
};

enum { N_KINDS = sizeof(kinds) / sizeof(kinds[0]) };

START_TEST(the_function_in_f64)
{
	struct pawl_decoder_options options = plain_options();
	struct exact *e = calloc(1, sizeof(*e));
	double most = 0, largest = 0;

	window = kinds[_i].window;
	windows = kinds[_i].windows;
	open_plain(PAWL_DTYPE_F32);
	options.kv_dtype = PAWL_DTYPE_F32;
	run("ref", &options, N_EXACT, got);
	for (int i = 0; i < N_EXACT; i++) {
		evaluate(e, i);
		for (int j = 0; j < N_VOCAB; j++) {
			most = fmax(most, fabs(e->logits[j] - (double)got[i * N_VOCAB + j]));
			largest = fmax(largest, fabs(e->logits[j]));
		}
	}
	ck_assert_double_gt(largest, 1);
	ck_assert_double_lt(most, 2e-5 * largest);
	free(e);
	close_model();
}
END_TEST

static void
expect_same(const char *what)
{
	for (int64_t i = 0; i < N_TOKENS * N_VOCAB; i++) {
		ck_assert(isfinite(wanted[i]));
		ck_assert_msg(!memcmp(&wanted[i], &got[i], sizeof(float)),
			"%s: logit %d of position %d: %a, %a", what, (int)(i % N_VOCAB),
			(int)(i / N_VOCAB), (double)wanted[i], (double)got[i]);
	}
}

static const struct {
	const char *what, *target;
	int64_t chunk;
	int n_threads;
	bool rings;
} ways[] = {
	{"one by one", "ref", 1, 1, false},
	{"rings", "ref", 8, 1, true},
	{"rings, chunks of 31", "ref", 31, 1, true},
#ifdef PAWL_HAVE_LLVM
	{"cpu", "cpu", 8, 1, false},
	{"cpu, rings, 2 threads, chunks of 31", "cpu", 31, 2, true},
	{"cpu, rings, 3 threads, one by one", "cpu", 1, 3, true},
#endif
};

static const enum pawl_dtype dtypes[] = {PAWL_DTYPE_Q5_0, PAWL_DTYPE_F16};

START_TEST(every_way_gives_the_same)
{
	struct pawl_decoder_options options = plain_options();

	open_plain(dtypes[_i]);
	run("ref", &options, N_TOKENS, wanted);
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		options.prefill_chunk = ways[i].chunk;
		options.n_threads = ways[i].n_threads;
		options.rings = ways[i].rings;
		memset(got, 0, sizeof(got));
		run(ways[i].target, &options, N_TOKENS, got);
		expect_same(ways[i].what);
	}
	close_model();
}
END_TEST

static const struct pawl_paged_options paged = {.n_blocks = 16,
	.block_size = 16,
	.max_blocks = 4,
	.kv_dtype = PAWL_DTYPE_F16,
	.precision = PAWL_PRECISION_A16,
	.n_threads = 1};

/* Three sequences in one pool, all the same but begun one after the other. */
START_TEST(a_pool_gives_the_same)
{
	enum { N = 3, N_PAGED = 60, LAG = 7 };
	struct pawl_decoder_options options = plain_options();
	struct pawl_device *device = open_device("ref");
	struct pawl_kv_session_id sessions[N];
	struct pawl_paged_decoder *d;
	const float *logits;

	open_plain(PAWL_DTYPE_Q5_0);
	run("ref", &options, N_PAGED, wanted);
	OK(pawl_paged_decoder_new(pawl_model_source(model), device, &paged, &d, &err));
	for (int s = 0; s < N; s++)
		OK(pawl_paged_decoder_open(d, &sessions[s], &err));
	for (int64_t i = 0; i < N_PAGED + (N - 1) * LAG; i++) {
		struct pawl_paged_row rows[N];
		int64_t n = 0, positions[N];

		for (int64_t s = 0; s < N; s++) {
			if (i < s * LAG || i - s * LAG >= N_PAGED)
				continue;
			positions[n] = i - s * LAG;
			rows[n] = (struct pawl_paged_row){sessions[s], token(positions[n])};
			n++;
		}
		OK(pawl_paged_decoder_step(d, rows, n, &logits, &err));
		for (int64_t r = 0; r < n; r++)
			ck_assert_mem_eq(logits + r * N_VOCAB, wanted + positions[r] * N_VOCAB,
				N_VOCAB * sizeof(float));
	}
	pawl_paged_decoder_free(d);
	pawl_device_unref(device);
	close_model();
}
END_TEST

/* Key p of layer 0 at block 1 of a sequence. */
static void
load_key(struct pawl_paged_decoder *d, struct pawl_kv_session_id session, int64_t p, float *key)
{
	const struct pawl_kv_layer_id id = {0, PAWL_KV_K};
	const struct pawl_storage *storage = pawl_kv_cache_storage(pawl_paged_decoder_cache(d), id);
	const struct pawl_type *type = &storage->type;
	int64_t dims[] = {1, 1, type->dim[2].base, HEAD_DIM}, bytes;
	struct pawl_tensor keys;
	uint32_t blocks[4];

	OK(pawl_kv_block_pool_block_table(pawl_paged_decoder_pool(d), session, blocks, 4, &err));
	OK(pawl_tensor_init(&keys, type->dtype, type->layout, false, 4, dims, &bytes, &err));
	keys.data = storage->bytes;
	pawl_tensor_load_f32(&keys, blocks[1] * 16 + p, 0, HEAD_DIM, key);
}

/* What moves to other positions turns with the base of its layer. */
START_TEST(a_shifted_prefix_is_near)
{
	struct pawl_kv_session_id source, moved, straight;
	struct pawl_device *device = open_device("ref");
	struct pawl_kv_prefix_key key = {.n_tokens = 16};
	struct pawl_kv_prefix_id prefix;
	struct pawl_paged_decoder *d;
	uint32_t tokens[32];
	double most = 0;

	for (int64_t i = 0; i < 32; i++)
		tokens[i] = token(i);
	key.tokens = tokens + 16;
	open_plain(PAWL_DTYPE_Q5_0);
	OK(pawl_paged_decoder_new(pawl_model_source(model), device, &paged, &d, &err));
	OK(pawl_paged_decoder_open(d, &source, &err));
	OK(pawl_paged_decoder_open(d, &moved, &err));
	OK(pawl_paged_decoder_open(d, &straight, &err));
	OK(pawl_paged_decoder_prefill(d, source, tokens + 16, 16, NULL, &err));
	OK(pawl_kv_block_pool_register_prefix(
		pawl_paged_decoder_pool(d), source, &key, &prefix, &err));
	OK(pawl_paged_decoder_prefill(d, moved, tokens, 16, NULL, &err));
	OK(pawl_paged_decoder_append_shifted(d, prefix, 1, moved, &err));
	OK(pawl_paged_decoder_prefill(d, straight, tokens, 32, NULL, &err));
	for (int64_t p = 0; p < 16; p++) {
		float near[HEAD_DIM], wanted_key[HEAD_DIM];

		load_key(d, moved, p, near);
		load_key(d, straight, p, wanted_key);
		for (int i = 0; i < HEAD_DIM; i++)
			most = fmax(most, fabs((double)near[i] - wanted_key[i]));
	}
	ck_assert_msg(most > 0 && most < 8e-3, "keys differ by %g", most);
	pawl_paged_decoder_free(d);
	pawl_device_unref(device);
	close_model();
}
END_TEST

Suite *
pawl_gemma_suite(void)
{
	Suite *suite = suite_create("gemma");
	TCase *tests = tcase_create("model");

	tcase_set_timeout(tests, 60);
	tcase_add_loop_test(tests, the_function_in_f64, 0, N_KINDS);
	tcase_add_loop_test(tests, every_way_gives_the_same, 0, 2);
	tcase_add_test(tests, a_pool_gives_the_same);
	tcase_add_test(tests, a_shifted_prefix_is_near);
	suite_add_tcase(suite, tests);
	return suite;
}
