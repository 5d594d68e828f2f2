/*
 * The promise of docs/arithmetic.md: the same bits whatever the target, instruction set, threads and
 * prompt chunks, for weights of every type; and what the promise rests on: a wrong position, rope
 * table or cache does change them.
 */
#include <stdlib.h>
#include <string.h>

#include "codegen/cpu_variant.h"
#include "ir/eval.h"
#include "runtime/decoder.h"
#include "tests/suites.h"
#include "tests/tiny_model.h"

enum { N_TOKENS = 37, CAPACITY = 160 };

static const enum pawl_dtype dtypes[] = {PAWL_DTYPE_F32, PAWL_DTYPE_F16, PAWL_DTYPE_BF16, PAWL_DTYPE_Q4_0,
	PAWL_DTYPE_Q4_1, PAWL_DTYPE_Q5_0, PAWL_DTYPE_Q5_1, PAWL_DTYPE_Q8_0, PAWL_DTYPE_Q4_K,
	PAWL_DTYPE_Q5_K, PAWL_DTYPE_Q6_K};
enum { N_DTYPES = sizeof(dtypes) / sizeof(dtypes[0]) };

static const enum pawl_cpu_variant variants[] = {
	PAWL_CPU_AVX512VNNI, PAWL_CPU_AVX512, PAWL_CPU_AVX2, PAWL_CPU_BASELINE};

struct setting {
	const char *target, *variant;
	int n_threads;
	int64_t chunk;
	enum pawl_dtype kv;
	enum pawl_precision precision;
	bool replan;
};

static const struct setting plain = {"ref", NULL, 1, 8, PAWL_DTYPE_F16, PAWL_PRECISION_A16, false};

/* Rows of more than a K-quant's block, vocabulary and widths that fill no tile. */
static struct pawl_tiny_model *
make_model(enum pawl_dtype dtype)
{
	struct pawl_tiny_options options = pawl_tiny_defaults();

	options.dtype = dtype;
	options.n_heads = 6;
	options.n_kv_heads = 2;
	options.head_dim = 128;
	options.n_embd = 256;
	options.n_ff = 512;
	options.n_vocab = 83;
	return pawl_tiny_model_new(&options);
}

struct rows {
	float *logits;
	int64_t n, width;
};

static enum pawl_status
keep_row(void *arg, int64_t position, const float *logits, struct pawl_error *err)
{
	struct rows *rows = arg;

	(void)err;
	ck_assert_int_eq(position, rows->n);
	memcpy(rows->logits + rows->n * rows->width, logits, (size_t)rows->width * sizeof(float));
	rows->n++;
	return PAWL_OK;
}

/* Logits of N_TOKENS positions, malloc'ed. */
static float *
run(struct pawl_tiny_model *model, const struct setting *s)
{
	const struct pawl_model_source *source = pawl_tiny_model_source(model);
	struct pawl_decoder_options options = {.capacity = CAPACITY, .kv_dtype = s->kv,
		.precision = s->precision, .n_threads = s->n_threads, .prefill_chunk = s->chunk,
		.replan = s->replan};
	struct pawl_target_options target = {.cpu_variant = s->variant};
	struct rows rows = {.width = source->n_vocab};
	struct pawl_device *device;
	struct pawl_decoder *decoder;
	struct pawl_error err = {0};
	uint32_t tokens[N_TOKENS];
	int i;

	rows.logits = malloc((size_t)(N_TOKENS * rows.width) * sizeof(float));
	ck_assert_ptr_nonnull(rows.logits);
	for (i = 0; i < N_TOKENS; i++)
		tokens[i] = (uint32_t)((i * 31 + 7) % source->n_vocab);
	ck_assert_msg(pawl_device_open(s->target, &target, &device, &err) == PAWL_OK, "%s", err.text);
	ck_assert_msg(
		pawl_decoder_new(source, device, &options, &decoder, &err) == PAWL_OK, "%s", err.text);
	ck_assert_msg(pawl_decoder_eval(decoder, tokens, N_TOKENS, keep_row, &rows, &err) == PAWL_OK,
		"%s", err.text);
	ck_assert_int_eq(rows.n, N_TOKENS);
	pawl_decoder_free(decoder);
	pawl_device_unref(device);
	return rows.logits;
}

static void
expect_same(const float *wanted, const float *got, int64_t n, const char *what, enum pawl_dtype dtype)
{
	int64_t i;

	for (i = 0; i < n; i++)
		ck_assert_msg(pawl_eval_same(wanted[i], got[i]), "%s, %s: logit %lld of position %lld: %a, %a",
			pawl_dtype_name(dtype), what, (long long)(i % 83), (long long)(i / 83),
			(double)wanted[i], (double)got[i]);
}

/* Runs the setting and compares with what is wanted. */
static void
expect(struct pawl_tiny_model *model, enum pawl_dtype dtype, const float *wanted, const struct setting *s,
	const char *what)
{
	float *got = run(model, s);

	expect_same(wanted, got, N_TOKENS * pawl_tiny_model_source(model)->n_vocab, what, dtype);
	free(got);
}

START_TEST(chunks_are_equal)
{
	static const int64_t chunks[] = {1, 3, 32};
	struct pawl_tiny_model *model = make_model(dtypes[_i]);
	float *wanted = run(model, &plain);
	size_t i;

	for (i = 0; i < sizeof(chunks) / sizeof(chunks[0]); i++) {
		struct setting s = plain;

		s.chunk = chunks[i];
		expect(model, dtypes[_i], wanted, &s, "another chunk");
	}
	free(wanted);
	pawl_tiny_model_free(model);
}
END_TEST

#ifdef PAWL_HAVE_LLVM
START_TEST(cpu_equals_reference)
{
	static const int64_t chunks[] = {1, 3, 8, 32};
	struct pawl_tiny_model *model = make_model(dtypes[_i]);
	float *wanted = run(model, &plain);
	size_t i;

	for (i = 0; i < sizeof(chunks) / sizeof(chunks[0]); i++) {
		struct setting s = plain;

		s.target = "cpu";
		s.chunk = chunks[i];
		s.n_threads = (int)(i % 3) + 1;
		expect(model, dtypes[_i], wanted, &s, "cpu");
	}
	free(wanted);
	pawl_tiny_model_free(model);
}
END_TEST

START_TEST(variants_are_equal)
{
	struct pawl_tiny_model *model = make_model(dtypes[_i]);
	float *wanted = run(model, &plain);
	size_t i;

	for (i = 0; i < sizeof(variants) / sizeof(variants[0]); i++) {
		struct setting s = plain;

		if (!pawl_cpu_can_run(variants[i]))
			continue; /* test_cpu.c counts what this machine cannot run */
		s.target = "cpu";
		s.variant = pawl_cpu_variant_info(variants[i])->name;
		s.n_threads = 2;
		expect(model, dtypes[_i], wanted, &s, s.variant);
	}
	free(wanted);
	pawl_tiny_model_free(model);
}
END_TEST

/* Caches of other types, 8-bit activations, replanning: the settings that a plan states. */
START_TEST(settings_are_equal)
{
	static const enum pawl_dtype few[] = {PAWL_DTYPE_Q4_1, PAWL_DTYPE_Q6_K, PAWL_DTYPE_F16};
	static const enum pawl_dtype caches[] = {
		PAWL_DTYPE_F32, PAWL_DTYPE_BF16, PAWL_DTYPE_Q8_0};
	struct pawl_tiny_model *model = make_model(few[_i]);
	struct setting s = plain;
	float *wanted;

	for (int i = 0; i < 3; i++) {
		s = plain;
		s.kv = caches[i];
		wanted = run(model, &s);
		s.target = "cpu";
		s.n_threads = 3;
		expect(model, few[_i], wanted, &s, pawl_dtype_name(caches[i]));
		free(wanted);
	}

	s = plain;
	s.precision = PAWL_PRECISION_A8;
	wanted = run(model, &s);
	s.target = "cpu";
	s.n_threads = 2;
	expect(model, few[_i], wanted, &s, "a8");
	s.replan = true;
	expect(model, few[_i], wanted, &s, "a8, replanned every step");
	free(wanted);
	pawl_tiny_model_free(model);
}
END_TEST
#endif

/* What the comparison could hide: other settings that must not give the same logits. */
START_TEST(other_plans_differ)
{
	struct pawl_tiny_model *model = make_model(PAWL_DTYPE_Q4_1);
	int64_t n = N_TOKENS * pawl_tiny_model_source(model)->n_vocab, i, n_same = 0;
	struct setting s = plain;
	float *wanted = run(model, &plain), *other;

	s.precision = PAWL_PRECISION_A8;
	other = run(model, &s);
	for (i = 0; i < n; i++)
		n_same += wanted[i] == other[i];
	ck_assert_int_lt(n_same, n / 100);
	free(wanted);
	free(other);
	pawl_tiny_model_free(model);
}
END_TEST

Suite *
pawl_equal_suite(void)
{
	Suite *suite = suite_create("equal");
	TCase *tcase = tcase_create("equal");

	tcase_set_timeout(tcase, 300);
	tcase_add_loop_test(tcase, chunks_are_equal, 0, N_DTYPES);
#ifdef PAWL_HAVE_LLVM
	tcase_add_loop_test(tcase, cpu_equals_reference, 0, N_DTYPES);
	tcase_add_loop_test(tcase, variants_are_equal, 0, N_DTYPES);
	tcase_add_loop_test(tcase, settings_are_equal, 0, 3);
#endif
	tcase_add_test(tcase, other_plans_differ);
	suite_add_tcase(suite, tcase);
	return suite;
}
