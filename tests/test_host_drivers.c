/*
 * Drivers through the ABI: a model whose graphs the host builds when it is asked, decoded alone and
 * in a pool, compared bit for bit with a decoder of the runtime.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "ir/eval.h"
#include "tests/decoding.h"
#include "tests/driven_fixture.h"
#include "tests/suites.h"

enum { N_VOCAB = PAWL_DRIVEN_VOCAB, CAPACITY = PAWL_DRIVEN_CAPACITY };

static const uint32_t *
tokens_of(unsigned seed, int64_t first, int64_t n)
{
	return pawl_driven_tokens(seed, first, n);
}

static void
expect(const float *logits, unsigned seed, int64_t n)
{
	pawl_driven_expect(&d, logits, seed, n);
}

START_TEST(a_decoder_asks_for_each_graph_once)
{
	struct pawl_host_decoder *decoder = pawl_driven_decoder(&d, 8);
	const float *logits = NULL;
	int64_t len = -1;

	PAWL_HOST_OK(api->decoder_append(decoder, tokens_of(1, 0, 21), 21, &logits));
	expect(logits, 1, 21);
	for (int64_t i = 21; i < 30; i++)
		PAWL_HOST_OK(api->decoder_append(decoder, tokens_of(1, i, 1), 1, &logits));
	expect(logits, 1, 30);
	ck_assert_int_eq(d.n_built, 2); /* a chunk, a token */
	ck_assert_int_eq(api->decoder_len(decoder), 30);
	ck_assert_int_eq(api->decoder_capacity(decoder), CAPACITY);
	/* Guesses: three right, the rest taken back. */
	PAWL_HOST_OK(api->decoder_verify(decoder, tokens_of(1, 30, 5), 5, 6, &logits));
	expect(logits + 2 * N_VOCAB, 1, 33);
	PAWL_HOST_OK(api->decoder_set_len(decoder, 33, &len));
	ck_assert_int_eq(len, 33);
	PAWL_HOST_OK(api->decoder_append(decoder, tokens_of(1, 33, 1), 1, &logits));
	expect(logits, 1, 34);
	ck_assert_int_eq(d.n_built, 3);
	ck_assert_uint_eq(pawl_test_host_counter(d.context, "plans.compiled"), 1 + 3);
	ck_assert_uint_eq(pawl_test_host_counter(d.context, "positions"), 30 + 5 + 1);
	api->decoder_release(decoder);
}
END_TEST

START_TEST(a_decoder_grows_without_a_new_plan)
{
	struct pawl_host_decoder *decoder = pawl_driven_decoder(&d, 8);
	const float *logits = NULL;

	PAWL_HOST_OK(api->decoder_append(decoder, tokens_of(1, 0, CAPACITY), CAPACITY, &logits));
	pawl_test_host_refused(api->decoder_append(decoder, tokens_of(1, CAPACITY, 1), 1, &logits),
		PAWL_CODE_CAPACITY, "64");
	ck_assert_int_eq(api->decoder_len(decoder), CAPACITY);
	PAWL_HOST_OK(api->decoder_reserve(decoder, CAPACITY + 1));
	PAWL_HOST_OK(api->decoder_append(decoder, tokens_of(1, CAPACITY, 3), 3, &logits));
	expect(logits, 1, CAPACITY + 3);
	ck_assert_uint_eq(pawl_test_host_counter(d.context, "plans.regrown"), 1);
	ck_assert_uint_eq(pawl_test_host_counter(d.context, "plans.compiled"), 1 + 2);
	api->decoder_release(decoder);
}
END_TEST

struct file {
	unsigned char bytes[1 << 17];
	size_t n;
};

static int
write_to(void *user, const void *bytes, size_t n)
{
	struct file *file = user;

	ck_assert_uint_le(n, sizeof(file->bytes) - file->n);
	memcpy(file->bytes + file->n, bytes, n);
	file->n += n;
	return 0;
}

START_TEST(a_decoder_goes_on_from_a_snapshot)
{
	static struct file file;
	struct pawl_host_decoder *decoder = pawl_driven_decoder(&d, 8);
	struct pawl_host_decoder *other = pawl_driven_decoder(&d, 4);
	struct pawl_model_options options = pawl_driven_options(&d);
	struct pawl_host_model *stranger;
	const float *logits = NULL;
	uint32_t got[16] = {0};
	int64_t n = 0;

	PAWL_HOST_OK(api->decoder_append(decoder, tokens_of(1, 0, 11), 11, NULL));
	PAWL_HOST_OK(api->decoder_save(decoder, tokens_of(1, 0, 11), 11, write_to, &file));
	PAWL_HOST_OK(api->decoder_append(other, tokens_of(2, 0, 5), 5, NULL));
	PAWL_HOST_OK(api->decoder_restore(other, file.bytes, file.n, got, 16, &n));
	ck_assert_int_eq(n, 11);
	ck_assert_mem_eq(got, tokens_of(1, 0, 11), 11 * sizeof(*got));
	PAWL_HOST_OK(api->decoder_append(other, tokens_of(1, 11, 4), 4, &logits));
	expect(logits, 1, 15);
	pawl_test_host_refused(api->decoder_restore(other, file.bytes, file.n - 1, got, 16, &n),
		PAWL_CODE_INVALID_FILE, "bytes");
	api->decoder_release(decoder);
	api->decoder_release(other);
	/* A model without a number has none. */
	options.model = 0;
	PAWL_HOST_OK(api->model_create(d.context, d.lender.weights, &options, &stranger));
	api->model_release(d.model);
	d.model = stranger;
	decoder = pawl_driven_decoder(&d, 8);
	pawl_test_host_refused(api->decoder_save(decoder, got, 0, write_to, &file),
		PAWL_CODE_UNSUPPORTED, "fingerprint");
	api->decoder_release(decoder);
}
END_TEST

/* Sequences join, branch, leave, are evicted and share beginnings; each is as alone. */
START_TEST(a_pool_serves_many_sequences)
{
	const struct pawl_pool_settings settings = {.struct_size = sizeof(settings),
		.n_blocks = 12,
		.block_size = 16,
		.max_blocks = 4,
		.prefill_chunk = 8};
	struct pawl_host_pool *pool;
	uint64_t a, b, fork, handle, prefix, late;
	const float *logits = NULL;
	int64_t n = -1;

	PAWL_HOST_OK(api->pool_create(d.model, &settings, &pool));
	PAWL_HOST_OK(api->pool_open(pool, &a));
	PAWL_HOST_OK(api->pool_open(pool, &b));
	PAWL_HOST_OK(api->pool_append(pool, a, tokens_of(1, 0, 18), 18, &logits));
	expect(logits, 1, 18);
	PAWL_HOST_OK(api->pool_append(pool, b, tokens_of(2, 0, 5), 5, NULL));
	PAWL_HOST_OK(api->pool_fork(pool, a, &fork));
	for (int64_t i = 0; i < 4; i++) {
		const uint64_t sequences[] = {b, fork, a};
		const uint32_t tokens[] = {pawl_test_token(2, 5 + i), pawl_test_token(1, 18 + i),
			pawl_test_token(1, 18 + i)};

		PAWL_HOST_OK(api->pool_step(pool, sequences, tokens, 3, &logits));
		expect(logits, 2, 6 + i);
		expect(logits + N_VOCAB, 1, 19 + i);
		expect(logits + 2 * N_VOCAB, 1, 19 + i);
	}
	ck_assert_int_eq(api->pool_len(pool, fork), 22);
	PAWL_HOST_OK(api->pool_close(pool, fork));
	ck_assert_int_eq(api->pool_len(pool, fork), -1);
	PAWL_HOST_OK(api->pool_evict(pool, b, &handle, &n));
	ck_assert_int_eq(n, 1);
	pawl_test_host_refused(api->pool_append(pool, b, tokens_of(2, 9, 1), 1, &logits),
		PAWL_CODE_INVALID_ARGUMENT, "");
	PAWL_HOST_OK(api->pool_restore(pool, handle));
	PAWL_HOST_OK(api->pool_append(pool, b, tokens_of(2, 9, 1), 1, &logits));
	expect(logits, 2, 10);
	PAWL_HOST_OK(api->pool_keep_prefix(pool, a, tokens_of(1, 0, 16), 16, &prefix));
	PAWL_HOST_OK(api->pool_open(pool, &late));
	PAWL_HOST_OK(api->pool_use_prefix(pool, late, tokens_of(3, 0, 20), 20, &n));
	ck_assert_int_eq(n, 0);
	PAWL_HOST_OK(api->pool_use_prefix(pool, late, tokens_of(1, 0, 16), 16, &n));
	ck_assert_int_eq(n, 0); /* or nothing would be left to run */
	PAWL_HOST_OK(api->pool_use_prefix(pool, late, tokens_of(1, 0, 20), 20, &n));
	ck_assert_int_eq(n, 16);
	PAWL_HOST_OK(api->pool_append(pool, late, tokens_of(1, 16, 4), 4, &logits));
	expect(logits, 1, 20);
	PAWL_HOST_OK(api->pool_set_len(pool, late, 17));
	PAWL_HOST_OK(api->pool_append(pool, late, tokens_of(1, 17, 1), 1, &logits));
	expect(logits, 1, 18);
	PAWL_HOST_OK(api->pool_drop_prefix(pool, prefix));
	pawl_test_host_refused(api->pool_drop_prefix(pool, prefix), PAWL_CODE_INVALID_ARGUMENT, "");
	pawl_test_host_refused(api->pool_use_prefix(pool, late, tokens_of(1, 0, 20), 20, &n),
		PAWL_CODE_INVALID_ARGUMENT, "empty");
	pawl_test_host_refused(api->pool_step(pool, &a, tokens_of(1, 0, 1), 9, &logits),
		PAWL_CODE_INVALID_ARGUMENT, "9 sequences");
	pawl_test_host_refused(api->pool_append(pool, a, tokens_of(1, 22, 50), 50, &logits),
		PAWL_CODE_CAPACITY, "");
	PAWL_HOST_OK(api->pool_close(pool, a));
	PAWL_HOST_OK(api->pool_close(pool, b));
	PAWL_HOST_OK(api->pool_close(pool, late));
	ck_assert_int_eq(api->pool_free_blocks(pool), 12);
	api->pool_release(pool);
}
END_TEST

START_TEST(a_graph_that_is_not_built_costs_nothing)
{
	struct pawl_host_decoder *decoder = pawl_driven_decoder(&d, 8);
	const float *logits = NULL;

	d.fails = 1;
	pawl_test_host_refused(api->decoder_append(decoder, tokens_of(1, 0, 5), 5, &logits),
		PAWL_CODE_ENVIRONMENT, "the host built no graph");
	d.fails = 2;
	pawl_test_host_refused(api->decoder_append(decoder, tokens_of(1, 0, 5), 5, &logits),
		PAWL_CODE_INVALID_GRAPH, "");
	ck_assert_int_eq(api->decoder_len(decoder), 0);
	ck_assert_ptr_null(logits);
	d.fails = 0;
	PAWL_HOST_OK(api->decoder_append(decoder, tokens_of(1, 0, 5), 5, &logits));
	expect(logits, 1, 5);
	pawl_test_host_refused(api->decoder_append(decoder, &(uint32_t){N_VOCAB}, 1, &logits),
		PAWL_CODE_INVALID_ARGUMENT, "40");
	pawl_test_host_refused(
		api->decoder_set_len(decoder, 6, NULL), PAWL_CODE_INVALID_ARGUMENT, "6 of 5");
	pawl_test_host_refused(api->decoder_verify(decoder, tokens_of(1, 0, 3), 3, 2, &logits),
		PAWL_CODE_INVALID_ARGUMENT, "3 tokens in 2 rows");
	api->decoder_release(decoder);
}
END_TEST

/* Layers with a window keep rings; the bits are those of a decoder that keeps everything. */
START_TEST(a_decoder_keeps_rings)
{
	enum { N = 300, RING_CAPACITY = 512 };
	static const int64_t layers[] = {0, 2};
	struct pawl_tiny_options tiny = pawl_tiny_defaults();
	struct pawl_decoder_settings settings = {.struct_size = sizeof(settings),
		.capacity = RING_CAPACITY,
		.prefill_chunk = 8,
		.rings = 1,
		.ring_rollback = 4};
	struct pawl_decoder_options plain = pawl_test_decoder_options();
	struct pawl_model_options options;
	struct pawl_host_decoder *decoder;
	struct pawl_decoder *wanted;
	const float *logits = NULL;

	api = pawl_test_host_api();
	tiny.n_layers = 3;
	tiny.window = 20;
	tiny.window_layers = 5;
	pawl_driven_init(&d, "ref", 1, NULL, &tiny);
	options = pawl_driven_options(&d);
	options.window = 20;
	options.window_layers = layers;
	options.n_window_layers = 2;
	PAWL_HOST_OK(api->model_create(d.context, d.lender.weights, &options, &d.model));
	plain.capacity = RING_CAPACITY;
	wanted = pawl_test_decoder(d.tiny, &plain);
	PAWL_HOST_OK(api->decoder_create(d.model, &settings, &decoder));
	for (int64_t i = 0; i < N; i += 5) {
		const float *row = pawl_test_prefill(wanted, 1, i, 5);

		PAWL_HOST_OK(api->decoder_append(decoder, tokens_of(1, i, 5), 5, &logits));
		for (int j = 0; j < N_VOCAB; j++)
			ck_assert(pawl_eval_same(row[j], logits[j]));
	}
	pawl_decoder_free(wanted);
	api->decoder_release(decoder);
	end_driven();
}
END_TEST

static int n_parallel, n_asked;

struct part {
	void (*fn)(void *arg, int64_t i);
	void *arg;
};

static void *
second_part(void *arg)
{
	const struct part *part = arg;

	part->fn(part->arg, 1);
	return NULL;
}

static int
two_at_once(void *user, int64_t n, void (*fn)(void *arg, int64_t i), void *arg)
{
	struct part part = {fn, arg};
	pthread_t thread;

	(void)user;
	ck_assert_int_eq(n, 2);
	n_parallel++;
	ck_assert_int_eq(pthread_create(&thread, NULL, second_part, &part), 0);
	fn(arg, 0);
	pthread_join(thread, NULL);
	return 0;
}

static int
is_aborted(void *user)
{
	const int *from = user;

	return n_asked++ == *from;
}

/* What the host lends goes to the drivers too. */
START_TEST(drivers_use_the_services)
{
	int from = -1;
	const struct pawl_services services = {.struct_size = sizeof(services),
		.user = &from,
		.parallel_for = two_at_once,
		.is_aborted = is_aborted};
	struct pawl_host_decoder *decoder;
	const float *logits = NULL;

	api = pawl_test_host_api();
#ifdef PAWL_TEST_HAS_KERNELS
	pawl_driven_begin(&d, "cpu", 2, &services);
#else
	pawl_driven_begin(&d, "ref", 2, &services);
#endif
	decoder = pawl_driven_decoder(&d, 8);
	PAWL_HOST_OK(api->decoder_append(decoder, tokens_of(1, 0, 3), 3, &logits));
#ifdef PAWL_TEST_HAS_KERNELS
	n_parallel = 0;
	PAWL_HOST_OK(api->decoder_set_len(decoder, 2, NULL));
	PAWL_HOST_OK(api->decoder_append(decoder, tokens_of(1, 2, 1), 1, &logits));
	ck_assert_int_eq(n_parallel, 1);
#endif
	n_asked = 0;
	from = 0;
	pawl_test_host_refused(api->decoder_append(decoder, tokens_of(1, 3, 1), 1, &logits),
		PAWL_CODE_ENVIRONMENT, "told to stop");
	ck_assert_int_eq(api->decoder_len(decoder), 3);
	from = -1;
	PAWL_HOST_OK(api->decoder_append(decoder, tokens_of(1, 3, 1), 1, &logits));
	expect(logits, 1, 4);
	api->decoder_release(decoder);
	end_driven();
}
END_TEST

Suite *
pawl_host_drivers_suite(void)
{
	Suite *suite = suite_create("host_drivers");
	TCase *tcase = tcase_create("host_drivers"), *bare = tcase_create("bare");

	tcase_add_checked_fixture(tcase, begin_driven, end_driven);
	tcase_add_test(tcase, a_decoder_asks_for_each_graph_once);
	tcase_add_test(tcase, a_decoder_grows_without_a_new_plan);
	tcase_add_test(tcase, a_decoder_goes_on_from_a_snapshot);
	tcase_add_test(tcase, a_pool_serves_many_sequences);
	tcase_add_test(tcase, a_graph_that_is_not_built_costs_nothing);
	suite_add_tcase(suite, tcase);
	tcase_add_test(bare, a_decoder_keeps_rings);
	tcase_add_test(bare, drivers_use_the_services);
	suite_add_tcase(suite, bare);
	return suite;
}
