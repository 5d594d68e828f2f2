/*
 * Hyperparameters of family gemma3: which layers have a window, how they turn, and what is refused.
 */
#include "models/model_config.h"
#include "tests/suites.h"
#include "tests/tiny_gemma.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N_LAYERS = PAWL_TINY_GEMMA_LAYERS, HEAD_DIM = PAWL_TINY_GEMMA_HEAD_DIM, WINDOW = 20 };

static struct pawl_error err;

#define OK(call) ck_assert_msg((call) == PAWL_OK, "%s", err.text)

static enum pawl_status
read_config(struct pawl_gguf_build *b, struct pawl_model_config *config)
{
	size_t n;
	void *bytes = pawl_gguf_build_finish(b, &n);
	struct pawl_gguf *gguf;
	const struct pawl_model_family *family;
	enum pawl_status status;

	OK(pawl_gguf_parse(bytes, n, "x.gguf", &gguf, &err));
	status = pawl_model_config_read(gguf, &family, config, &err);
	pawl_gguf_free(gguf);
	free(bytes);
	return status;
}

static struct pawl_gguf_build *
build(uint32_t tokens)
{
	const struct pawl_tiny_gemma_options options = {
		.dtype = PAWL_DTYPE_Q8_0, .window = tokens, .seed = 3};

	return pawl_tiny_gemma(&options);
}

START_TEST(what_a_file_says)
{
	struct pawl_model_config c;
	struct pawl_gguf_build *b = build(WINDOW);

	OK(read_config(b, &c));
	ck_assert_int_eq(c.window, WINDOW);
	for (int64_t i = 0; i < 8; i++)
		ck_assert_int_eq(pawl_layer_set_has(&c.window_layers, i), i < N_LAYERS && i != 5);
	ck_assert(c.rope_base == 1e6 && c.window_rope_base == 1e4 && c.rope_scale == 1);
	ck_assert(c.embedding_scale == 8 && c.attention_scale == 1 / sqrt(HEAD_DIM));
	ck_assert_int_eq(c.rope_pairs, PAWL_PAIRS_HALVES);
	ck_assert(!c.has_head);

	b = build(WINDOW);
	pawl_gguf_build_f32(b, "gemma3.rope.freq_base_swa", 5000);
	pawl_gguf_build_string(b, "gemma3.rope.scaling.type", "linear");
	pawl_gguf_build_f32(b, "gemma3.rope.scaling.factor", 8);
	OK(read_config(b, &c));
	ck_assert(c.window_rope_base == 5000 && c.rope_scale == 8);
}
END_TEST

static void
expect_windows(struct pawl_gguf_build *b, const char *layers)
{
	struct pawl_model_config c;
	bool any = strchr(layers, 'w') != NULL;

	OK(read_config(b, &c));
	for (int64_t i = 0; i <= N_LAYERS; i++)
		ck_assert_int_eq(pawl_layer_set_has(&c.window_layers, i), layers[i] == 'w');
	ck_assert_int_eq(c.window, any ? WINDOW : 0);
	ck_assert(c.rope_base == 1e6 && c.window_rope_base == (any ? 1e4 : 0));
}

static struct pawl_gguf_build *
build_pattern(uint32_t tokens, uint32_t period)
{
	struct pawl_gguf_build *b = build(tokens);

	pawl_gguf_build_u32(b, "gemma3.attention.sliding_window_pattern", period);
	return b;
}

static struct pawl_gguf_build *
build_flags(enum pawl_gguf_type type, size_t n)
{
	static const uint8_t flags[] = {0, 1, 1, 0, 0, 0, 1, 0};
	struct pawl_gguf_build *b = build(WINDOW);

	pawl_gguf_build_array(b, "gemma3.attention.sliding_window_pattern", type, flags, n);
	return b;
}

START_TEST(which_layers_have_a_window)
{
	struct pawl_gguf_build *b;

	expect_windows(build(WINDOW), "wwwww-w");
	expect_windows(build(0), "-------");
	b = build(0);
	pawl_gguf_build_u32(b, "gemma3.attention.sliding_window", 0);
	pawl_gguf_build_f32(b, "gemma3.rope.freq_base_swa", 5000);
	expect_windows(b, "-------");
	expect_windows(build_pattern(0, 2), "-------");
	expect_windows(build_pattern(WINDOW, 2), "w-w-w-w");
	expect_windows(build_pattern(WINDOW, 7), "wwwwww-");
	expect_windows(build_pattern(WINDOW, UINT32_MAX), "wwwwwww");
	expect_windows(build_pattern(WINDOW, 0), "wwwwwww");
	expect_windows(build_pattern(WINDOW, 1), "-------");
	expect_windows(build_flags(PAWL_GGUF_BOOL, N_LAYERS), "-ww---w");
}
END_TEST

static void
refuses(struct pawl_gguf_build *b, const char *why)
{
	struct pawl_model_config c;

	ck_assert_int_eq(read_config(b, &c), PAWL_INVALID_FILE);
	ck_assert_msg(strstr(err.text, why) != NULL, "'%s' does not say '%s'", err.text, why);
}

START_TEST(no_pattern_of_windows)
{
	struct pawl_gguf_build *b = build(WINDOW);

	refuses(build_flags(PAWL_GGUF_BOOL, N_LAYERS - 1),
		"pattern): value: 6 elements for 7 layers");
	refuses(build_flags(PAWL_GGUF_BOOL, N_LAYERS + 1),
		"pattern): value: 8 elements for 7 layers");
	refuses(build_flags(PAWL_GGUF_BOOL, 0), "pattern): value: 0 elements for 7 layers");
	refuses(build_flags(PAWL_GGUF_U8, N_LAYERS),
		"pattern): value: an array of u8, wanted bool");
	pawl_gguf_build_i32(b, "gemma3.attention.sliding_window_pattern", -1);
	refuses(b, "sliding_window_pattern");
	b = build(WINDOW);
	pawl_gguf_build_f32(b, "gemma3.attention.sliding_window_pattern", 6);
	refuses(b, "sliding_window_pattern");
}
END_TEST

START_TEST(what_is_not_supported)
{
	struct pawl_model_config c;
	struct pawl_gguf_build *b = build(WINDOW);

	pawl_gguf_build_f32(b, "gemma3.attn_logit_softcapping", 50);
	ck_assert_int_eq(read_config(b, &c), PAWL_UNSUPPORTED);
	ck_assert_str_eq(
		err.text, "x.gguf: gemma3.attn_logit_softcapping: soft caps are not supported");
	b = build(WINDOW);
	pawl_gguf_build_f32(b, "gemma3.rope.freq_base_swa", 0);
	ck_assert_int_eq(read_config(b, &c), PAWL_INVALID_FILE);
	ck_assert_ptr_nonnull(strstr(err.text, "gemma3.rope.freq_base_swa"));
	b = pawl_gguf_build_new(3);
	pawl_gguf_build_string(b, "general.architecture", "gemma");
	ck_assert_int_eq(read_config(b, &c), PAWL_UNSUPPORTED);
	ck_assert_str_eq(err.text, "x.gguf: general.architecture: 'gemma' is no family known here "
				   "(llama and gemma3 are)");
}
END_TEST

static struct pawl_gguf_build *
build_scaled(float factor)
{
	struct pawl_gguf_build *b = build(WINDOW);

	pawl_gguf_build_string(b, "gemma3.rope.scaling.type", "linear");
	pawl_gguf_build_f32(b, "gemma3.rope.scaling.factor", factor);
	return b;
}

/* Element 1 is the given one, the others are 1. */
static struct pawl_gguf_build *
build_factors(float factor)
{
	const int64_t n = HEAD_DIM / 2;
	float factors[HEAD_DIM / 2];
	struct pawl_gguf_build *b = build(WINDOW);

	for (int i = 0; i < n; i++)
		factors[i] = i == 1 ? factor : 1;
	pawl_gguf_build_tensor(b, "rope_freqs.weight", PAWL_DTYPE_F32, 1, &n, factors);
	return b;
}

/* Of 1024 positions the last is 1023, and 1023 / 2^24 is what a factor may be at least. */
START_TEST(angles_have_precision)
{
	static const float factors[] = {0, -1, NAN, INFINITY, 1e-30f, 1e-12f, 1e-10f, 6e-5f};
	static const float elements[] = {0, -1, NAN, INFINITY, 1e-30f, 1e-12f, 2e-5f};
	struct pawl_model_config c;

	for (size_t i = 0; i < sizeof(factors) / sizeof(factors[0]); i++)
		refuses(build_scaled(factors[i]), "rope.scaling.factor");
	for (size_t i = 0; i < sizeof(elements) / sizeof(elements[0]); i++)
		refuses(build_factors(elements[i]), "rope_freqs.weight: element 1");
	OK(read_config(build_scaled(6.2e-5f), &c));
	OK(read_config(build_scaled(1e6f), &c));
	OK(read_config(build_factors(3e-5f), &c));
	OK(read_config(build_factors(1e9f), &c));
}
END_TEST

Suite *
pawl_gemma_config_suite(void)
{
	Suite *suite = suite_create("gemma_config");
	TCase *tests = tcase_create("config");

	tcase_add_test(tests, what_a_file_says);
	tcase_add_test(tests, which_layers_have_a_window);
	tcase_add_test(tests, no_pattern_of_windows);
	tcase_add_test(tests, what_is_not_supported);
	tcase_add_test(tests, angles_have_precision);
	suite_add_tcase(suite, tests);
	return suite;
}
