/*
 * What drivers refuse through the ABI: models and settings out of range, handles and pointers that
 * are none.
 */
#include <string.h>

#include "tests/driven_fixture.h"
#include "tests/suites.h"

enum { CAPACITY = PAWL_DRIVEN_CAPACITY };

START_TEST(models_and_settings_out_of_range_are_refused)
{
	enum { N = 12 };
	static const int64_t layers[] = {0, 2};
	struct pawl_decoder_settings settings = {.struct_size = sizeof(settings)};
	struct pawl_pool_settings blocks = {.struct_size = sizeof(blocks)};
	struct pawl_host_decoder *decoder = NULL;
	struct pawl_host_pool *pool = NULL;
	struct pawl_host_model *made = NULL;
	struct pawl_model_options cases[N];

	for (int i = 0; i < N; i++)
		cases[i] = pawl_driven_options(&d);
	cases[0].struct_size = 112;
	cases[1].n_layers = 0;
	cases[2].n_layers = INT64_MAX;
	cases[3].n_vocab = 0;
	cases[4].build = NULL;
	cases[5].rope = NULL;
	cases[6].window = 8;
	cases[7].n_window_layers = 1;
	cases[8].window = 8;
	cases[8].window_layers = layers;
	cases[8].n_window_layers = 2;
	cases[9].n_layers = 1025; /* a cache of a million takes minutes to be made */
	cases[10].n_vocab = INT64_C(1) << 32;
	cases[11].rope_halves = 2;
	for (int i = 0; i < N; i++)
		pawl_test_host_refused(api->model_create(d.context, d.lender.weights, &cases[i], &made),
			PAWL_CODE_INVALID_ARGUMENT, "model_create: ");
	ck_assert_ptr_null(made);
	pawl_test_host_refused(api->decoder_create(d.model, &settings, &decoder),
		PAWL_CODE_INVALID_ARGUMENT, "0 positions");
	settings.capacity = CAPACITY;
	settings.kv_type = "f17";
	pawl_test_host_refused(api->decoder_create(d.model, &settings, &decoder),
		PAWL_CODE_INVALID_ARGUMENT, "'f17'");
	settings.struct_size = 40;
	pawl_test_host_refused(api->decoder_create(d.model, &settings, &decoder),
		PAWL_CODE_INVALID_ARGUMENT, "struct_size");
	pawl_test_host_refused(
		api->pool_create(d.model, &blocks, &pool), PAWL_CODE_INVALID_ARGUMENT, "");
	ck_assert_ptr_null(decoder);
	ck_assert_ptr_null(pool);
}
END_TEST

static int
never(void *user, const void *bytes, size_t n)
{
	(void)user;
	(void)bytes;
	ck_abort_msg("%zu bytes of a call that is refused", n);
	return 1;
}

static void
refuse_no_decoder(void *no)
{
	const uint32_t *tokens = pawl_driven_tokens(1, 0, 3);
	const float *logits = NULL;

	pawl_test_host_invalid(api->decoder_append(no, tokens, 1, &logits), "no decoder");
	pawl_test_host_invalid(api->decoder_verify(no, tokens, 1, 1, &logits), "no decoder");
	pawl_test_host_invalid(api->decoder_set_len(no, 0, NULL), "no decoder");
	pawl_test_host_invalid(api->decoder_reserve(no, 1), "no decoder");
	pawl_test_host_invalid(api->decoder_save(no, tokens, 1, never, NULL), "no decoder");
	pawl_test_host_invalid(api->decoder_restore(no, "", 0, NULL, 0, NULL), "no decoder");
	ck_assert_int_eq(api->decoder_len(no), 0);
	ck_assert_int_eq(api->decoder_capacity(no), 0);
	api->decoder_release(no);
	ck_assert_ptr_null(logits);
}

static void
refuse_no_pool(void *no)
{
	const uint32_t *tokens = pawl_driven_tokens(1, 0, 3);
	const float *logits = NULL;
	uint64_t id = 0;
	int64_t n;

	pawl_test_host_invalid(api->pool_open(no, &id), "no pool");
	pawl_test_host_invalid(api->pool_close(no, 1), "no pool");
	pawl_test_host_invalid(api->pool_fork(no, 1, &id), "no pool");
	pawl_test_host_invalid(api->pool_set_len(no, 1, 0), "no pool");
	pawl_test_host_invalid(api->pool_append(no, 1, tokens, 1, &logits), "no pool");
	pawl_test_host_invalid(api->pool_step(no, &id, tokens, 1, &logits), "no pool");
	pawl_test_host_invalid(api->pool_evict(no, 1, &id, &n), "no pool");
	pawl_test_host_invalid(api->pool_restore(no, 1), "no pool");
	pawl_test_host_invalid(api->pool_keep_prefix(no, 1, tokens, 1, &id), "no pool");
	pawl_test_host_invalid(api->pool_use_prefix(no, 1, tokens, 1, &n), "no pool");
	pawl_test_host_invalid(api->pool_drop_prefix(no, 1), "no pool");
	ck_assert_int_eq(api->pool_len(no, 1), -1);
	ck_assert_int_eq(api->pool_free_blocks(no), 0);
	api->pool_release(no);
	ck_assert_ptr_null(logits);
	ck_assert_uint_eq(id, 0);
}

/* NULL, a handle of another kind, and memory that is none; NULL for every pointer. */
START_TEST(wrong_handles_and_pointers_are_refused)
{
	const struct pawl_decoder_settings settings = {
		.struct_size = sizeof(settings), .capacity = CAPACITY};
	const struct pawl_pool_settings blocks = {.struct_size = sizeof(blocks)};
	const struct pawl_model_options options = pawl_driven_options(&d);
	struct pawl_host_decoder *decoder = pawl_driven_decoder(&d, 8), *made = NULL;
	struct pawl_host_model *model = NULL;
	struct pawl_host_pool *pool = NULL;
	uint64_t no_handle[64];
	void *all[3] = {NULL, no_handle, d.context};

	memset(no_handle, 0xa5, sizeof(no_handle));
	for (int i = 0; i < 3; i++) {
		refuse_no_decoder(all[i]);
		refuse_no_pool(all[i]);
		pawl_test_host_invalid(api->decoder_create(all[i], &settings, &made), "no model");
		pawl_test_host_invalid(api->pool_create(all[i], &blocks, &pool), "no model");
		pawl_test_host_invalid(api->model_create(d.context, all[i], &options, &model),
			"no weights");
		api->model_release(all[i]);
	}
	pawl_test_host_invalid(api->model_create(NULL, d.lender.weights, &options, &model),
		"no context");
	pawl_test_host_invalid(api->model_create(d.context, d.lender.weights, NULL, &model),
		"NULL");
	pawl_test_host_invalid(api->model_create(d.context, d.lender.weights, &options, NULL),
		"NULL");
	pawl_test_host_invalid(api->decoder_create(d.model, NULL, &made), "NULL");
	pawl_test_host_invalid(api->decoder_create(d.model, &settings, NULL), "NULL");
	pawl_test_host_invalid(api->pool_create(d.model, NULL, &pool), "NULL");
	pawl_test_host_invalid(api->pool_create(d.model, &blocks, NULL), "NULL");
	pawl_test_host_invalid(api->decoder_append(decoder, NULL, 1, NULL), "no tokens");
	pawl_test_host_invalid(api->decoder_verify(decoder, pawl_driven_tokens(1, 0, 1), 1, 1, NULL),
		"NULL");
	pawl_test_host_invalid(api->decoder_save(decoder, NULL, 1, never, NULL), "no tokens");
	pawl_test_host_invalid(api->decoder_save(decoder, NULL, 0, NULL, NULL), "no sink");
	pawl_test_host_invalid(api->decoder_restore(decoder, NULL, 0, NULL, 0, NULL),
		"no snapshot");
	ck_assert(!made && !model && !pool);
	api->decoder_release(decoder);
}
END_TEST

Suite *
pawl_host_refusals_suite(void)
{
	Suite *suite = suite_create("host_refusals");
	TCase *tcase = tcase_create("host_refusals");

	tcase_add_checked_fixture(tcase, begin_driven, end_driven);
	tcase_add_test(tcase, models_and_settings_out_of_range_are_refused);
	tcase_add_test(tcase, wrong_handles_and_pointers_are_refused);
	suite_add_tcase(suite, tcase);
	return suite;
}
