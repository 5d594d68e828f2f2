/* Caches of q8_0: what they hold, how near that is, and that all ways to it give the same bits. */
#include "runtime/decoder.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "codegen/cpu_variant.h"
#include "ir/decode.h"
#include "ir/woven_block.h"
#include "runtime/kv_layout.h"
#include "runtime/plan_cache.h"
#include "tests/decoding.h"
#include "tests/skip.h"
#include "tests/suites.h"

enum { N_VOCAB = 40, N_CACHED = 37, HEAD = 64 };

static struct pawl_tiny_model *model, *in_rows;
static struct pawl_decoder_options options;
static struct pawl_error err;

#define OK(call) ck_assert_msg((call) == PAWL_OK, "%s", err.text)

static void
begin(void)
{
	struct pawl_tiny_options tiny = pawl_tiny_defaults();

	tiny.head_dim = HEAD;
	model = pawl_tiny_model_new(&tiny);
	tiny.k_layout = PAWL_LAYOUT_ROWS;
	in_rows = pawl_tiny_model_twin(model, &tiny);
	options = pawl_test_decoder_options();
	options.kv_dtype = PAWL_DTYPE_Q8_0;
}

static void
end(void)
{
	pawl_tiny_model_free(in_rows);
	pawl_tiny_model_free(model);
}

static const struct pawl_storage *
slot_of(struct pawl_decoder *decoder, int i)
{
	return pawl_kv_cache_storage(pawl_decoder_cache(decoder),
		(struct pawl_kv_layer_id){i / 2, (enum pawl_kv_slot)(i % 2)});
}

/* The cached positions of a slot in logical order as f32, malloc'ed. */
static float *
content(struct pawl_decoder *decoder, int i, int64_t *n)
{
	const struct pawl_storage *storage = slot_of(decoder, i);
	const struct pawl_kv_planes planes = pawl_kv_planes_of(&storage->type, 2);
	const int64_t len = pawl_decoder_len(decoder);
	void *bytes = malloc((size_t)pawl_kv_logical_bytes(&planes, len));
	float *x;

	*n = planes.n * len * HEAD;
	x = malloc((size_t)*n * sizeof(*x));
	ck_assert(bytes && x);
	pawl_kv_read_positions(&planes, storage->bytes, len, bytes);
	pawl_decode_f32(storage->type.dtype, bytes, *n, x);
	free(bytes);
	return x;
}

START_TEST(sizes_and_refusals)
{
	static const enum pawl_dtype refused[] = {PAWL_DTYPE_Q4_0, PAWL_DTYPE_I8, PAWL_DTYPE_A8};
	struct pawl_tiny_options tiny = pawl_tiny_defaults();
	struct pawl_tiny_model *narrow = pawl_tiny_model_new(&tiny);
	struct pawl_decoder *decoder;
	struct pawl_kv_shape shape = {.n_layers = 3,
		.n_kv_heads = 2,
		.head_dim = 96,
		.max_seq_len = 48,
		.dtype = PAWL_DTYPE_Q8_0,
		.layout = {PAWL_LAYOUT_K16, PAWL_LAYOUT_ROWS}};

	ck_assert_int_eq(pawl_kv_shape_bytes(&shape), 2 * 3 * 2 * 48 * (96 / 32) * 34);
	shape.head_dim = 80;
	ck_assert_int_eq(pawl_kv_shape_bytes(&shape), -1);
	ck_assert_int_eq(pawl_decoder_new(pawl_tiny_model_source(narrow), pawl_test_device(),
				 &options, &decoder, &err),
		PAWL_INVALID_ARGUMENT);
	ck_assert_str_eq(
		err.text, "a cache of q8_0 has heads of a multiple of 32 elements, not of 16");
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		char text[96];

		options.kv_dtype = refused[i];
		snprintf(text, sizeof(text), "a cache is f16, bf16, f32 or q8_0, not %s",
			pawl_dtype_name(refused[i]));
		ck_assert_int_eq(pawl_decoder_new(pawl_tiny_model_source(model), pawl_test_device(),
					 &options, &decoder, &err),
			PAWL_INVALID_ARGUMENT);
		ck_assert_str_eq(err.text, text);
	}
	pawl_tiny_model_free(narrow);
}
END_TEST

START_TEST(a_block_keeps_its_place)
{
	const int64_t dims[] = {1, 3, 48, HEAD};
	struct pawl_type type = pawl_type_make(PAWL_DTYPE_Q8_0, 4, dims);
	enum { N = 20, BLOCKS = HEAD / 32, IN = 3 * N * BLOCKS * 34, ALL = 3 * 48 * BLOCKS * 34 };
	unsigned char in[IN], out[IN], memory[ALL] = {0};
	struct pawl_kv_planes planes;

	type.layout = PAWL_LAYOUT_K16;
	planes = pawl_kv_planes_of(&type, 2);
	for (int i = 0; i < IN; i++)
		in[i] = (unsigned char)(i * 7 + i / 256);
	pawl_kv_write_positions(&planes, memory, N, in);
	/* Block 1 of position 17 of head 2, as ir/type.h says: its scale, then column 5 of it. */
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(memory[((2 * 3 + 1) * BLOCKS + 1) * PAWL_WOVEN_BYTES + 2 + i],
			in[((2 * N + 17) * BLOCKS + 1) * 34 + i]);
	ck_assert_int_eq(memory[((2 * 3 + 1) * BLOCKS + 1) * PAWL_WOVEN_BYTES + 32 + 16 * 5 + 1],
		in[((2 * N + 17) * BLOCKS + 1) * 34 + 2 + 5]);
	pawl_kv_read_positions(&planes, memory, N, out);
	ck_assert(!memcmp(in, out, sizeof(in)));
}
END_TEST

/* Rope, quantize and write are one step, as rope, cast and write are. */
START_TEST(blocks_take_no_step_more)
{
	int32_t n_steps[2];

	for (int i = 0; i < 2; i++) {
		struct pawl_decoder *decoder;
		const struct pawl_plan *plan;

		options.kv_dtype = i ? PAWL_DTYPE_Q8_0 : PAWL_DTYPE_F16;
		decoder = pawl_test_decoder(model, &options);
		OK(pawl_decoder_prepare(decoder, 1, PAWL_LOGITS_LAST, &plan, &err));
		n_steps[i] = plan->program->n_steps;
		pawl_decoder_free(decoder);
	}
	ck_assert_int_eq(n_steps[1], n_steps[0]);
}
END_TEST

/* Keys and values of layer 0 depend on no cache: a block is off by half a step, and by its scale's f16. */
START_TEST(what_is_cached_is_near)
{
	struct pawl_decoder *decoder = pawl_test_decoder(model, &options), *exact;
	int64_t n, n_exact;

	pawl_test_prefill(decoder, 1, 0, N_CACHED);
	options.kv_dtype = PAWL_DTYPE_F32;
	exact = pawl_test_decoder(model, &options);
	pawl_test_prefill(exact, 1, 0, N_CACHED);
	for (int i = 0; i < 2; i++) {
		float *got = content(decoder, i, &n), *want = content(exact, i, &n_exact);
		bool is_rounded = false;

		ck_assert_int_eq(n, n_exact);
		for (int64_t b = 0; b < n; b += 32) {
			float amax = 0.0f;

			for (int j = 0; j < 32; j++)
				amax = fmaxf(amax, fabsf(want[b + j]));
			ck_assert_float_gt(amax, 1e-4f);
			for (int j = 0; j < 32; j++) {
				ck_assert_float_eq_tol(
					got[b + j], want[b + j], amax * (0.5f / 127 + 1.0f / 2048));
				is_rounded |= got[b + j] != want[b + j];
			}
		}
		ck_assert(is_rounded);
		free(got);
		free(want);
	}
	pawl_decoder_free(decoder);
	pawl_decoder_free(exact);
}
END_TEST

START_TEST(logits_are_near)
{
	float *got = pawl_test_fresh(model, &options, 1, N_CACHED), *want;
	float off = 0.0f, size = 0.0f;

	options.kv_dtype = PAWL_DTYPE_F32;
	want = pawl_test_fresh(model, &options, 1, N_CACHED);
	for (int i = 0; i < N_VOCAB; i++) {
		off = fmaxf(off, fabsf(got[i] - want[i]));
		size = fmaxf(size, fabsf(want[i]));
	}
	ck_assert_float_gt(off, 0.0f);
	ck_assert_msg(off < 0.01f * size, "off by %g of %g", off, size);
	free(got);
	free(want);
}
END_TEST

static void
same_or_fail(const float *a, const float *b, const char *what)
{
	ck_assert_msg(!memcmp(a, b, N_VOCAB * sizeof(*a)), "%s: %.9g, not %.9g", what, a[0], b[0]);
}

START_TEST(layouts_and_chunks_are_equal)
{
	static const int64_t chunks[] = {1, 3, 16, 40};
	float *want = pawl_test_fresh(model, &options, 1, N_CACHED), *got;

	for (size_t i = 0; i < sizeof(chunks) / sizeof(chunks[0]); i++) {
		options.prefill_chunk = chunks[i];
		got = pawl_test_fresh(i % 2 ? in_rows : model, &options, 1, N_CACHED);
		same_or_fail(got, want, i % 2 ? "rows" : "k16");
		free(got);
	}
	free(want);
}
END_TEST

#ifdef PAWL_HAVE_LLVM
static float *
on_cpu(struct pawl_tiny_model *of, const char *variant, int n_threads)
{
	const struct pawl_target_options target = {.cpu_variant = variant};
	struct pawl_device *device;
	struct pawl_decoder *decoder;
	uint32_t tokens[N_CACHED];
	const float *logits;
	float *kept;

	options.n_threads = n_threads;
	for (int i = 0; i < N_CACHED; i++)
		tokens[i] = pawl_test_token(1, i);
	OK(pawl_device_open("cpu", &target, &device, &err));
	OK(pawl_decoder_new(pawl_tiny_model_source(of), device, &options, &decoder, &err));
	OK(pawl_decoder_prefill(decoder, tokens, N_CACHED - 3, &logits, &err));
	for (int i = N_CACHED - 3; i < N_CACHED; i++)
		OK(pawl_decoder_step(decoder, tokens[i], &logits, &err));
	kept = pawl_test_keep(decoder, logits);
	pawl_decoder_free(decoder);
	pawl_device_unref(device);
	return kept;
}
#endif

START_TEST(the_cpu_equals_the_reference)
{
#ifdef PAWL_HAVE_LLVM
	float *want = pawl_test_fresh(model, &options, 1, N_CACHED), *got;

	for (int v = 0; v < PAWL_N_CPU_VARIANTS; v++) {
		if (!pawl_cpu_can_run((enum pawl_cpu_variant)v))
			continue;
		for (int i = 0; i < 2; i++) {
			const char *name = pawl_cpu_variant_info((enum pawl_cpu_variant)v)->name;

			options.prefill_chunk = i ? 5 : 16;
			got = on_cpu(i ? in_rows : model, name, 1 + (v + i) % 3);
			same_or_fail(got, want, name);
			free(got);
		}
	}
	free(want);
#else
	pawl_skip("kernels over blocks", "built without llvm");
#endif
}
END_TEST

START_TEST(what_lies_beyond_means_nothing)
{
	struct pawl_decoder *decoder = pawl_test_decoder(_i ? in_rows : model, &options);
	float *want = pawl_test_fresh(model, &options, 1, N_CACHED);

	for (int i = 0; i < 4; i++)
		memset(slot_of(decoder, i)->bytes, 0xff, (size_t)slot_of(decoder, i)->n_bytes);
	same_or_fail(pawl_test_prefill(decoder, 1, 0, N_CACHED), want, "over NaN");
	pawl_decoder_free(decoder);
	free(want);
}
END_TEST

START_TEST(forked_and_grown)
{
	struct pawl_decoder *decoder = pawl_test_decoder(_i ? in_rows : model, &options);
	float *want, *other;
	struct pawl_kv_cache *fork;

	options.capacity = 128;
	want = pawl_test_fresh(model, &options, 1, 90);
	pawl_test_prefill(decoder, 1, 0, 60);
	OK(pawl_kv_cache_fork(pawl_decoder_cache(decoder), &fork, &err));
	other = pawl_test_keep(decoder, pawl_test_prefill(decoder, 2, 60, 3));
	ck_assert_int_eq(pawl_decoder_len(decoder), 63);
	pawl_decoder_swap_cache(decoder, &fork);
	OK(pawl_decoder_reserve(decoder, 100, &err));
	same_or_fail(pawl_test_prefill(decoder, 1, 60, 30), want, "grown fork");
	pawl_decoder_swap_cache(decoder, &fork);
	pawl_decoder_truncate(decoder, 60);
	same_or_fail(pawl_test_prefill(decoder, 2, 60, 3), other, "what was forked");
	pawl_kv_cache_free(fork);
	pawl_decoder_free(decoder);
	free(want);
	free(other);
}
END_TEST

/* From one layout to the other: a snapshot has rows of blocks. */
START_TEST(a_snapshot_is_of_no_layout)
{
	struct pawl_decoder *from = pawl_test_decoder(_i ? in_rows : model, &options), *to, *f16;
	char path[] = "/tmp/pawl-q8_0-XXXXXX";
	FILE *file = fdopen(mkstemp(path), "wb");
	const struct pawl_kv_snapshot_sink sink = pawl_kv_snapshot_file_sink(file);
	struct pawl_kv_snapshot *snapshot;
	uint32_t tokens[N_CACHED];
	float *want;

	ck_assert_ptr_nonnull(file);
	for (int i = 0; i < N_CACHED; i++)
		tokens[i] = pawl_test_token(1, i);
	pawl_test_prefill(from, 1, 0, N_CACHED);
	OK(pawl_decoder_save(from, tokens, N_CACHED, &sink, &err));
	ck_assert_int_eq(fclose(file), 0);
	want = pawl_test_keep(from, pawl_test_step(from, 1, N_CACHED));
	OK(pawl_kv_snapshot_open(path, &snapshot, &err));
	unlink(path);
	to = pawl_test_decoder(_i ? model : in_rows, &options);
	OK(pawl_decoder_restore(to, snapshot, &err));
	same_or_fail(pawl_test_step(to, 1, N_CACHED), want, "restored");
	options.kv_dtype = PAWL_DTYPE_F16;
	f16 = pawl_test_decoder(model, &options);
	ck_assert_int_eq(pawl_decoder_restore(f16, snapshot, &err), PAWL_INVALID_ARGUMENT);
	ck_assert_str_eq(err.text, "the snapshot is of a cache of q8_0, this one is of f16");
	pawl_kv_snapshot_free(snapshot);
	pawl_decoder_free(from);
	pawl_decoder_free(to);
	pawl_decoder_free(f16);
	free(want);
}
END_TEST

/* One cache of plans for caches of all types. */
START_TEST(a_plan_is_for_its_type)
{
	static const enum pawl_dtype types[] = {
		PAWL_DTYPE_Q8_0, PAWL_DTYPE_F16, PAWL_DTYPE_Q8_0, PAWL_DTYPE_BF16};
	struct pawl_plan_cache *plans;
	float *want, *got;

	OK(pawl_plan_cache_new(16, &plans, &err));
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		options.kv_dtype = types[i];
		options.plans = NULL;
		want = pawl_test_fresh(model, &options, 1, 9);
		options.plans = plans;
		got = pawl_test_fresh(model, &options, 1, 9);
		same_or_fail(got, want, pawl_dtype_name(types[i]));
		free(got);
		free(want);
	}
	pawl_plan_cache_free(plans);
}
END_TEST

Suite *
pawl_kv_q8_0_suite(void)
{
	Suite *suite = suite_create("kv_q8_0");
	TCase *tcase = tcase_create("kv_q8_0");

	tcase_set_timeout(tcase, 120);
	tcase_add_checked_fixture(tcase, begin, end);
	tcase_add_test(tcase, sizes_and_refusals);
	tcase_add_test(tcase, a_block_keeps_its_place);
	tcase_add_test(tcase, blocks_take_no_step_more);
	tcase_add_test(tcase, what_is_cached_is_near);
	tcase_add_test(tcase, logits_are_near);
	tcase_add_test(tcase, layouts_and_chunks_are_equal);
	tcase_add_test(tcase, the_cpu_equals_the_reference);
	tcase_add_loop_test(tcase, what_lies_beyond_means_nothing, 0, 2);
	tcase_add_loop_test(tcase, forked_and_grown, 0, 2);
	tcase_add_loop_test(tcase, a_snapshot_is_of_no_layout, 0, 2);
	tcase_add_test(tcase, a_plan_is_for_its_type);
	suite_add_tcase(suite, tcase);
	return suite;
}
