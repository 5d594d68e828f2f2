/* Storages of a batched step, and how large a ring must be. */
#include "runtime/kv_batched.h"

#include <string.h>

#include "runtime/inference_context.h"
#include "runtime/kv_ring.h"
#include "runtime/memory.h"
#include "tests/decoding.h"
#include "tests/suites.h"

static struct pawl_inference_context *context;
static struct pawl_kv_shape shape;
static struct pawl_error err;

static void
begin(void)
{
	ck_assert_int_eq(
		pawl_inference_context_new(pawl_test_device(), 1, &context, &err), PAWL_OK);
	shape = (struct pawl_kv_shape){.n_layers = 3,
		.n_kv_heads = 2,
		.head_dim = 8,
		.max_seq_len = 50,
		.dtype = PAWL_DTYPE_F16,
		.layout = {PAWL_LAYOUT_K16, PAWL_LAYOUT_ROWS}};
}

static void
end(void)
{
	pawl_inference_context_free(context);
}

START_TEST(one_realize_makes_all_storages)
{
	const struct pawl_counters *counters = pawl_inference_context_counters(context);
	struct pawl_batched_kv *kv;

	ck_assert_int_eq(pawl_alloc_batched_kv(context, 4, &shape, &kv, &err), PAWL_OK);
	ck_assert_uint_eq(counters->optimizes, 1);
	ck_assert_uint_eq(counters->runs, 1);
	ck_assert_int_eq(pawl_batched_kv_k(kv), 4);
	ck_assert_int_eq(pawl_batched_kv_shape(kv)->max_seq_len, 64);
	for (int32_t i = 0; i < 6; i++) {
		const struct pawl_kv_layer_id id = {i / 2, (enum pawl_kv_slot)(i % 2)};
		const struct pawl_storage *storage = pawl_batched_kv_storage(kv, id);
		struct pawl_type type =
			pawl_kv_shape_type(pawl_batched_kv_shape(kv), 0, id.slot);

		ck_assert_int_eq(storage->type.dim[0].base, 4);
		type.dim[0] = pawl_dim_const(4);
		ck_assert(pawl_type_equal(&storage->type, &type));
		ck_assert_int_eq(storage->n_bytes, 4 * 2 * 64 * 8 * 2);
		for (int64_t b = 0; b < storage->n_bytes; b++)
			ck_assert_int_eq(((const char *)storage->bytes)[b], 0);
		for (int32_t j = 0; j < i; j++)
			ck_assert(!pawl_storage_overlaps(storage,
				pawl_batched_kv_storage(kv,
					(struct pawl_kv_layer_id){
						j / 2, (enum pawl_kv_slot)(j % 2)})));
	}
	ck_assert_ptr_null(pawl_batched_kv_storage(kv, (struct pawl_kv_layer_id){3, PAWL_KV_K}));
	ck_assert_ptr_null(pawl_batched_kv_storage(kv, (struct pawl_kv_layer_id){-1, PAWL_KV_V}));
	pawl_batched_kv_free(kv);
	pawl_batched_kv_free(NULL);
}
END_TEST

START_TEST(failures_are_typed)
{
	struct pawl_batched_kv *kv = NULL;
	struct pawl_kv_shape good = shape;
	enum pawl_status status = PAWL_OUT_OF_MEMORY;
	int n = 0;

	ck_assert_int_eq(
		pawl_alloc_batched_kv(context, 0, &shape, &kv, &err), PAWL_INVALID_ARGUMENT);
	ck_assert_str_eq(err.text, "0 sequences of 50 positions: no content");
	ck_assert_int_eq(
		pawl_alloc_batched_kv(context, -3, &shape, &kv, &err), PAWL_INVALID_ARGUMENT);
	ck_assert_int_eq(pawl_alloc_batched_kv(context, INT64_MAX, &shape, &kv, &err),
		PAWL_INVALID_ARGUMENT);
	ck_assert_str_eq(err.text,
		"9223372036854775807 sequences of 50 positions: larger than memory can be");
	shape.n_layers = 0;
	ck_assert_int_eq(
		pawl_alloc_batched_kv(context, 4, &shape, &kv, &err), PAWL_INVALID_ARGUMENT);
	shape = good;
	shape.dtype = PAWL_DTYPE_Q4_0;
	ck_assert_int_eq(
		pawl_alloc_batched_kv(context, 4, &shape, &kv, &err), PAWL_INVALID_ARGUMENT);
	shape = good;
	shape.max_seq_len = (int64_t)1 << 33;
	ck_assert_int_eq(
		pawl_alloc_batched_kv(context, 8, &shape, &kv, &err), PAWL_OUT_OF_MEMORY);
	ck_assert_ptr_nonnull(strstr(
		err.text, "batched storages of 13194139533312 bytes (8 x 3 layers): "));
	shape = good;
	for (; status == PAWL_OUT_OF_MEMORY; n++) {
		ck_assert_ptr_null(kv);
		pawl_memory_fail_after(n);
		status = pawl_alloc_batched_kv(context, 2, &shape, &kv, &err);
		pawl_memory_fail_after(-1);
	}
	ck_assert_int_eq(status, PAWL_OK);
	ck_assert_int_gt(n, 10);
	pawl_batched_kv_free(kv);
}
END_TEST

START_TEST(ring_capacities)
{
	static const struct {
		int64_t window, tile, k, capacity;
	} cases[] = {
		{1, 1, 0, 128},
		{128, 1, 0, 128},
		{128, 2, 0, 256},
		{129, 1, 0, 256},
		{97, 32, 0, 128},
		{98, 32, 0, 256},
		{512, 32, 0, 640},
		{512, 1, 31, 640}, /* 31 proposals are as wide as a tile of 32 */
		{512, 32, 31, 640},
		{512, 32, 200, 768},
		{4096, 32, 7, 4224},
		{0, 1, 0, -1},
		{-5, 1, 0, -1},
		{1, 0, 0, -1},
		{1, 1, -1, -1},
		{INT64_MAX, 1, 0, -1},
		{INT64_MAX - 200, 300, 0, -1},
		{1, INT64_MAX, 0, -1},
		{1, 1, INT64_MAX, -1},
		{1, 1, INT64_MAX - 1, -1},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		ck_assert_msg(pawl_kv_ring_capacity(cases[i].window, cases[i].tile, cases[i].k) ==
				      cases[i].capacity,
			"case %zu gives %lld", i,
			(long long)pawl_kv_ring_capacity(
				cases[i].window, cases[i].tile, cases[i].k));
}
END_TEST

/*
 * Why that many: rows are written at position % capacity, `tile` at once, and each row must then
 * still find its window; with proposals, after all but one are taken back.
 */
START_TEST(no_write_covers_what_is_visible)
{
	static const int64_t sizes[][3] = {{5, 3, 0}, {100, 32, 0}, {130, 1, 7}, {128, 64, 100}};
	const int64_t window = sizes[_i][0], tile = sizes[_i][1], k = sizes[_i][2];
	const int64_t n = pawl_kv_ring_capacity(window, tile, k);
	int64_t held[1024];

	ck_assert_int_le(n, 1024);
	for (int64_t at = 0; at < n; at++)
		held[at] = -1;
	for (int64_t begin_at = 0, step = 0; begin_at < 3 * n; step++) {
		bool guess = k && step % 2;
		int64_t written = guess ? k + 1 : tile;

		for (int64_t p = begin_at; p < begin_at + written; p++)
			held[p % n] = p;
		for (int64_t row = begin_at; row < begin_at + written; row++)
			for (int64_t p = row - window + 1; p <= row; p++)
				ck_assert(p < 0 || held[p % n] == p);
		/* One of k + 1 is kept, and the next row sees its window too. */
		begin_at += guess ? 1 : written;
		for (int64_t p = begin_at - window + 1; p < begin_at; p++)
			ck_assert(p < 0 || held[p % n] == p);
	}
}
END_TEST

Suite *
pawl_kv_batched_suite(void)
{
	Suite *suite = suite_create("kv_batched");
	TCase *tests = tcase_create("batched");

	tcase_add_checked_fixture(tests, begin, end);
	tcase_add_test(tests, one_realize_makes_all_storages);
	tcase_add_test(tests, failures_are_typed);
	suite_add_tcase(suite, tests);
	tests = tcase_create("ring");
	tcase_add_test(tests, ring_capacities);
	tcase_add_loop_test(tests, no_write_covers_what_is_visible, 0, 4);
	suite_add_tcase(suite, tests);
	return suite;
}
