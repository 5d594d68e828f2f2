/*
 * A token at a position beyond 32,000: the rope tables, and a whole step against the exact
 * interpreter, which takes its angles from the C library's long double.  An angle formed in f32
 * fails the bounds of both; those of a16, a thousand times wider, see one position too few.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/interp.h"
#include "ir/trig.h"
#include "tests/decoding.h"
#include "tests/suites.h"
#include "tests/tensors.h"

enum { POSITION = 32777, CAPACITY = 33024, WIDTH = 16, TOKEN = 17 };

static struct pawl_error err;

#define OK(call) ck_assert_msg((call) == PAWL_OK, "%s", err.text)

/* Rope tables. */

typedef void rope_fn(void *ctx, int64_t position, int64_t width, float *cos, float *sin);

static void
exact_rope(void *ctx, int64_t position, int64_t width, float *cos, float *sin)
{
	(void)ctx;
	for (int64_t i = 0; i < width; i++) {
		/* The angle is one f64 product (ir/trig.h), of a frequency from elsewhere. */
		double frequency = (double)powl(10000.0L, -2.0L * (i / 2) / width);
		long double angle = (double)position * frequency;

		cos[i] = (float)cosl(angle);
		sin[i] = (float)sinl(angle);
	}
}

static void
f32_rope(void *ctx, int64_t position, int64_t width, float *cos, float *sin)
{
	(void)ctx;
	for (int64_t i = 0; i < width; i++) {
		float frequency = powf(10000.0f, -2.0f * (float)(i / 2) / (float)width);
		float angle = (float)position * frequency;

		cos[i] = cosf(angle);
		sin[i] = sinf(angle);
	}
}

static void
one_less_rope(void *ctx, int64_t position, int64_t width, float *cos, float *sin)
{
	exact_rope(ctx, position - 1, width, cos, sin);
}

/* The largest distance of a table's values from the exact ones at POSITION. */
static double
table_error(rope_fn *rope, void *ctx)
{
	float c[WIDTH], s[WIDTH], exact_c[WIDTH], exact_s[WIDTH];
	double worst = 0;

	rope(ctx, POSITION, WIDTH, c, s);
	exact_rope(NULL, POSITION, WIDTH, exact_c, exact_s);
	for (int i = 0; i < WIDTH; i++) {
		worst = fmax(worst, fabs((double)c[i] - exact_c[i]));
		worst = fmax(worst, fabs((double)s[i] - exact_s[i]));
	}
	return worst;
}

START_TEST(tables_are_f64_rounded_once)
{
	struct pawl_tiny_options tiny = pawl_tiny_defaults();
	struct pawl_tiny_model *model = pawl_tiny_model_new(&tiny);
	const struct pawl_model_source *source = pawl_tiny_model_source(model);

	ck_assert(table_error(source->rope, source->ctx) == 0);
	ck_assert_double_gt(table_error(f32_rope, NULL), 1e-4);
	pawl_tiny_model_free(model);
}
END_TEST

/* The bases, widths and lengths of models in use: the bits of long double. */
START_TEST(rows_of_real_models_are_exact)
{
	static const struct {
		double base;
		int64_t width, position;
	} cases[] = {{100000, 64, 8191}, {10000, 128, 32768}, {500000, 128, 131071},
		{1e6, 256, 1048575}};

	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		int64_t width = cases[n].width;
		double frequency[128];
		float c[128], s[128];

		for (int64_t i = 0; i < width / 2; i++)
			frequency[i] = pawl_rope_frequency(cases[n].base, i, width);
		pawl_rope_row(cases[n].position, frequency, width / 2, c, s);
		for (int64_t i = 0; i < width / 2; i++) {
			long double exact = powl(cases[n].base, -2.0L * i / width);
			long double angle = cases[n].position * exact;

			ck_assert(c[i] == (float)cosl((double)cases[n].position * frequency[i]));
			ck_assert(s[i] == (float)sinl((double)cases[n].position * frequency[i]));
			/* The frequency and the product are off by 1e-14 at most, see ir/trig.h. */
			pawl_test_near(c[i], cosl(angle), 0x1p-24 + 1.2e-14 * (double)angle);
			pawl_test_near(s[i], sinl(angle), 0x1p-24 + 1.2e-14 * (double)angle);
		}
	}
}
END_TEST

/* A whole step. */

/*
 * A weight type, and keys so large that scores spread over +-30: then few of the 32,777 positions
 * matter, and a wrong angle shows.  With both types logits are about 5.
 */
static const struct setting {
	enum pawl_dtype weights, kv;
	double keys, values;
} settings[] = {
	{PAWL_DTYPE_F32, PAWL_DTYPE_F32, 8, 2}, {PAWL_DTYPE_Q5_0, PAWL_DTYPE_F16, 40, 20}};

static void
fill_cache(struct pawl_decoder *decoder, const struct setting *s)
{
	struct pawl_kv_cache *cache = pawl_decoder_cache(decoder);
	const struct pawl_kv_shape *shape = pawl_kv_cache_shape(cache);

	for (int32_t i = 0; i < shape->n_layers; i++)
		for (int slot = 0; slot < PAWL_N_KV_SLOTS; slot++) {
			struct pawl_storage *storage = pawl_kv_cache_layer(cache, i)[slot].storage;
			double most = slot == PAWL_KV_K ? s->keys : s->values;
			int64_t n = shape->n_kv_heads * shape->max_seq_len * shape->head_dim;
			struct pawl_tensor all;
			int64_t n_bytes;

			OK(pawl_tensor_init(&all, shape->dtype, PAWL_LAYOUT_ROWS, false, 1, &n,
				&n_bytes, &err));
			ck_assert_int_eq(n_bytes, storage->n_bytes);
			all.data = storage->bytes;
			for (int64_t j = 0; j < n; j++)
				pawl_test_set(&all, j, pawl_test_random(most));
		}
	pawl_kv_cache_advance(cache, POSITION);
}

static void
bind(struct pawl_interp *interp, const struct pawl_node *node, void *bytes, int64_t n_bytes)
{
	OK(pawl_interp_bind_node(interp, node, bytes, n_bytes, &err));
}

/* The memory of a const that is no weight, in the arena of tests/tensors.h. */
static void *
state_of(const struct pawl_node *node, struct pawl_kv_cache *cache, rope_fn *rope, void *ctx)
{
	int64_t n_bytes = pawl_storage_bytes(&node->type);
	void *bytes = pawl_test_tensor(PAWL_DTYPE_I8, 1, PAWL_DIMS(n_bytes + 8)).data;
	float cos[WIDTH], sin[WIDTH];
	char slot;
	int layer;

	rope(ctx, POSITION, WIDTH, cos, sin);
	if (!strcmp(node->name, "token_ids"))
		*(uint32_t *)bytes = TOKEN;
	else if (!strcmp(node->name, "offset"))
		*(int64_t *)bytes = POSITION;
	else if (!strcmp(node->name, "rope_cos"))
		memcpy(bytes, cos, sizeof(cos));
	else if (!strcmp(node->name, "rope_sin"))
		memcpy(bytes, sin, sizeof(sin));
	else if (sscanf(node->name, "cache.%c.%d", &slot, &layer) == 2)
		memcpy(bytes, pawl_kv_cache_layer(cache, layer)[slot == 'v'].storage->bytes,
			(size_t)n_bytes);
	else
		ck_abort_msg("an unknown const %s", node->name);
	return bytes;
}

/* The logits of TOKEN at POSITION after what the cache holds, in f64, with angles by `rope`. */
static void
exact_step(const struct pawl_model_source *source, struct pawl_kv_cache *cache, rope_fn *rope,
	double *logits)
{
	const struct pawl_graph_request request = {
		.n_tokens = 1,
		.capacity = CAPACITY,
		.kv_dtype = pawl_kv_cache_shape(cache)->dtype,
		.logits = PAWL_LOGITS_LAST,
	};
	struct pawl_storage *weights[64];
	struct pawl_interp *interp;
	struct pawl_graph *graph;
	struct pawl_node *node;
	int n_weights = 0;

	OK(source->build(source->ctx, &request, &graph, &err));
	OK(pawl_interp_new(graph, PAWL_INTERP_EXACT, &interp, &err));
	pawl_foreach_node(node, graph) {
		if (node->op != PAWL_OP_CONST || node->attrs.role == PAWL_ROLE_LITERAL)
			continue;
		if (node->attrs.role == PAWL_ROLE_WEIGHT) {
			struct pawl_storage **weight = &weights[n_weights++];

			ck_assert_int_le(n_weights, 64);
			OK(pawl_weights_bind(source->weights, node->name, &node->type, NULL, weight,
				&err));
			bind(interp, node, (*weight)->bytes, (*weight)->n_bytes);
		} else {
			bind(interp, node, state_of(node, cache, rope, source->ctx),
				pawl_storage_bytes(&node->type));
		}
	}
	OK(pawl_interp_set_symbol(interp, "attended_len", POSITION + 1, &err));
	OK(pawl_interp_run(interp, &err));
	OK(pawl_interp_read(interp, 0, logits, source->n_vocab, &err));
	while (n_weights)
		pawl_storage_unref(weights[--n_weights]);
	pawl_interp_free(interp);
	pawl_graph_free(graph);
}

struct distance {
	double most, divergence; /* of a logit; Kullback-Leibler, exact first */
};

static double
log_sum(const double *logits, int64_t n)
{
	double sum = 0;

	for (int64_t i = 0; i < n; i++)
		sum += exp(logits[i]);
	return log(sum);
}

static struct distance
distance(const double *exact, const double *other, int64_t n)
{
	double exact_sum = log_sum(exact, n), other_sum = log_sum(other, n);
	struct distance d = {0, 0};

	for (int64_t i = 0; i < n; i++) {
		d.most = fmax(d.most, fabs(exact[i] - other[i]));
		d.divergence += exp(exact[i] - exact_sum) *
				(exact[i] - exact_sum - other[i] + other_sum);
	}
	return d;
}

/* How far a planned step is from the exact one, and the exact one from that with another rope. */
static void
compare(const struct setting *s, rope_fn *other, struct distance *planned, struct distance *wrong)
{
	struct pawl_tiny_options tiny = pawl_tiny_defaults();
	struct pawl_decoder_options options = pawl_test_decoder_options();
	struct pawl_tiny_model *model;
	const struct pawl_model_source *source;
	double exact[64], got[64], with_other[64];
	struct pawl_decoder *decoder;
	const float *logits;

	tiny.dtype = s->weights;
	model = pawl_tiny_model_new(&tiny);
	source = pawl_tiny_model_source(model);
	ck_assert_int_le(source->n_vocab, 64);
	options.capacity = CAPACITY;
	options.kv_dtype = s->kv;
	decoder = pawl_test_decoder(model, &options);
	fill_cache(decoder, s);
	exact_step(source, pawl_decoder_cache(decoder), exact_rope, exact);
	exact_step(source, pawl_decoder_cache(decoder), other, with_other);
	OK(pawl_decoder_step(decoder, TOKEN, &logits, &err));
	ck_assert_int_eq(pawl_decoder_len(decoder), POSITION + 1);
	for (int64_t i = 0; i < source->n_vocab; i++)
		got[i] = logits[i];
	*planned = distance(exact, got, source->n_vocab);
	*wrong = distance(exact, with_other, source->n_vocab);
	pawl_decoder_free(decoder);
	pawl_tiny_model_free(model);
}

START_TEST(a_quantized_step_is_within_the_limits_of_a16)
{
	struct distance planned, wrong;

	compare(&settings[1], one_less_rope, &planned, &wrong);
	ck_assert_double_le(planned.most, 0.15);
	ck_assert_double_le(planned.divergence, 5e-6);
	ck_assert_double_gt(wrong.divergence, 5e-6);
}
END_TEST

START_TEST(a_float_step_is_within_rounding)
{
	struct distance planned, wrong;

	compare(&settings[0], f32_rope, &planned, &wrong);
	ck_assert_double_le(planned.most, 1e-3);
	ck_assert_double_gt(wrong.most, 1e-3);
}
END_TEST

/* The logits after 11 tokens from POSITION on; malloc'ed. */
static float *
far_logits(const struct pawl_tiny_model *model, const char *target, int64_t chunk, int n_threads)
{
	struct pawl_decoder_options options = pawl_test_decoder_options();
	const float *logits = NULL;
	uint32_t tokens[11];
	struct pawl_decoder *decoder;
	struct pawl_device *device;
	float *kept;

	for (int i = 0; i < 11; i++)
		tokens[i] = pawl_test_token(1, i);
	options.capacity = CAPACITY;
	options.prefill_chunk = chunk;
	options.n_threads = n_threads;
	OK(pawl_device_open(target, NULL, &device, &err));
	OK(pawl_decoder_new(pawl_tiny_model_source(model), device, &options, &decoder, &err));
	pawl_tensors_end();
	pawl_tensors_begin(); /* the same numbers each time */
	fill_cache(decoder, &settings[1]);
	OK(pawl_decoder_prefill(decoder, tokens, 11, &logits, &err));
	kept = pawl_test_keep(decoder, logits);
	pawl_decoder_free(decoder);
	pawl_device_unref(device);
	return kept;
}

START_TEST(chunks_and_targets_agree)
{
	static const struct {
		const char *target;
		int64_t chunk;
		int n_threads;
	} others[] = {
		{"ref", 8, 1},
#ifdef PAWL_HAVE_LLVM
		{"cpu", 8, 1},
		{"cpu", 1, 2},
#endif
	};
	struct pawl_tiny_options tiny = pawl_tiny_defaults();
	struct pawl_tiny_model *model;
	float *wanted;

	tiny.dtype = settings[1].weights;
	model = pawl_tiny_model_new(&tiny);
	wanted = far_logits(model, "ref", 1, 1);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		float *got = far_logits(
			model, others[i].target, others[i].chunk, others[i].n_threads);

		ck_assert_mem_eq(got, wanted, (size_t)tiny.n_vocab * sizeof(float));
		free(got);
	}
	free(wanted);
	pawl_tiny_model_free(model);
}
END_TEST

Suite *
pawl_far_position_suite(void)
{
	Suite *suite = suite_create("far_position");
	TCase *tcase = tcase_create("far_position");

	tcase_add_checked_fixture(tcase, pawl_tensors_begin, pawl_tensors_end);
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, tables_are_f64_rounded_once);
	tcase_add_test(tcase, rows_of_real_models_are_exact);
	tcase_add_test(tcase, a_quantized_step_is_within_the_limits_of_a16);
	tcase_add_test(tcase, a_float_step_is_within_rounding);
	tcase_add_test(tcase, chunks_and_targets_agree);
	suite_add_tcase(suite, tcase);
	return suite;
}
