/* Weights of a model instance: borrowed, packed once, shared. */
#include "runtime/weights.h"

#include "codegen/pack.h"
#include "runtime/memory.h"
#include "runtime/pool.h"
#include "tests/decoding.h"
#include "tests/suites.h"

#include <stdlib.h>
#include <string.h>

static struct pawl_tiny_model *model;
static struct pawl_weights *weights;
static struct pawl_error err;

static void
begin(void)
{
	struct pawl_tiny_options tiny = pawl_tiny_defaults();

	tiny.dtype = PAWL_DTYPE_Q4_1;
	tiny.n_ff = 160;
	model = pawl_tiny_model_new(&tiny);
	weights = pawl_tiny_model_source(model)->weights;
}

static void
end(void)
{
	pawl_tiny_model_free(model);
}

static struct pawl_type
matrix(enum pawl_dtype dtype, int64_t n, int64_t k, enum pawl_layout layout)
{
	const int64_t dims[] = {n, k};
	struct pawl_type type = pawl_type_make(dtype, 2, dims);

	type.layout = layout;
	return type;
}

static struct pawl_storage *
bind(const char *name, struct pawl_type type, struct pawl_team *team)
{
	struct pawl_storage *storage;

	if (pawl_weights_bind(weights, name, &type, team, &storage, &err))
		ck_abort_msg("%s", err.text);
	return storage;
}

static const char gate[] = "blk.0.ffn_gate.weight";

START_TEST(rows_are_borrowed)
{
	struct pawl_type type = matrix(PAWL_DTYPE_Q4_1, 160, 64, PAWL_LAYOUT_ROWS);
	struct pawl_storage *a = bind(gate, type, NULL), *b = bind(gate, type, NULL);

	ck_assert_ptr_eq(a, b);
	ck_assert_ptr_null(a->block.bytes);
	ck_assert_int_eq(a->n_bytes, 160 * 64 / 32 * 20);
	ck_assert_int_eq(pawl_weights_packed_bytes(weights), 0);
	ck_assert_int_eq(pawl_tiny_model_drops(model), 0);
	pawl_storage_unref(a);
	pawl_storage_unref(b);
}
END_TEST

START_TEST(vectors_are_copied)
{
	const int64_t n = 64;
	struct pawl_type type = pawl_type_make(PAWL_DTYPE_F32, 1, &n);
	struct pawl_storage *a = bind("blk.0.attn_norm.weight", type, NULL);
	struct pawl_storage *b = bind("blk.0.attn_norm.weight", type, NULL);

	ck_assert_ptr_eq(a, b);
	ck_assert_ptr_nonnull(a->block.bytes);
	ck_assert_int_eq(a->n_bytes, 256);
	ck_assert_int_eq(pawl_tiny_model_drops(model), 1);
	pawl_storage_unref(a);
	pawl_storage_unref(b);
}
END_TEST

/* The entry, its name, the wrapped rows, the copy and its bytes. */
START_TEST(vectors_without_memory_are_named)
{
	const int64_t n = 64;
	struct pawl_type type = pawl_type_make(PAWL_DTYPE_F32, 1, &n);
	struct pawl_storage *storage = NULL;
	enum pawl_status status = PAWL_OUT_OF_MEMORY;
	int tries;

	for (tries = 0; status == PAWL_OUT_OF_MEMORY; tries++) {
		pawl_memory_fail_after(tries);
		status = pawl_weights_bind(
			weights, "blk.0.attn_norm.weight", &type, NULL, &storage, &err);
		pawl_memory_fail_after(-1);
		ck_assert_msg(!status || strstr(err.text, "weight blk.0.attn_norm.weight"), "%s",
			err.text);
		ck_assert_int_eq(pawl_tiny_model_drops(model), !status);
	}
	ck_assert_int_eq(status, PAWL_OK);
	ck_assert_int_eq(tries, 6);
	pawl_storage_unref(storage);
}
END_TEST

/* A source of one matrix that takes more than one stripe, and of a vector. */
struct striped {
	uint8_t *bytes;
	int64_t n_bytes, n_dropped;
	int n_drops;
};

enum { STRIPED_N = 4113, STRIPED_K = 1056 };

static enum pawl_status
find_striped(void *ctx, const char *name, struct pawl_weight *out, struct pawl_error *error)
{
	const struct striped *s = ctx;

	(void)error;
	*out = (struct pawl_weight){.bytes = s->bytes, .n_bytes = s->n_bytes};
	if (!strcmp(name, "vector")) {
		*out = (struct pawl_weight){.bytes = s->bytes, .n_bytes = 4 * 64,
			.dtype = PAWL_DTYPE_I32, .rank = 1, .dim = {64}};
		return PAWL_OK;
	}
	out->dtype = PAWL_DTYPE_Q8_0;
	out->rank = 2;
	out->dim[0] = STRIPED_N;
	out->dim[1] = STRIPED_K;
	return PAWL_OK;
}

/* Ranges come in order, without a gap. */
static void
drop_striped(void *ctx, const void *bytes, int64_t n_bytes)
{
	struct striped *s = ctx;

	ck_assert_ptr_eq(bytes, s->bytes + s->n_dropped);
	s->n_dropped += n_bytes;
	s->n_drops++;
}

START_TEST(stripes_make_the_whole)
{
	struct pawl_type packed = matrix(PAWL_DTYPE_Q8_0, STRIPED_N, STRIPED_K, PAWL_LAYOUT_TILE16);
	struct striped s = {.n_bytes = pawl_dtype_bytes(PAWL_DTYPE_Q8_0, (int64_t)STRIPED_N * STRIPED_K)};
	struct pawl_weight_source source = {&s, find_striped, drop_striped};
	int64_t n = 64, bytes = pawl_pack_bytes(PAWL_DTYPE_Q8_0, STRIPED_N, STRIPED_K), i;
	struct pawl_type vector = pawl_type_make(PAWL_DTYPE_I32, 1, &n);
	struct pawl_storage *storage;
	struct pawl_weights *striped;
	struct pawl_pool *pool;
	uint8_t *wanted = malloc((size_t)bytes);

	s.bytes = malloc((size_t)s.n_bytes);
	ck_assert(s.bytes && wanted);
	for (i = 0; i < s.n_bytes; i++)
		s.bytes[i] = (uint8_t)(i * 131 >> 3);
	ck_assert_int_eq(pawl_weights_new(&source, &striped, &err), PAWL_OK);
	ck_assert_int_eq(pawl_pool_new(2, &pool, &err), PAWL_OK);
	ck_assert_int_eq(pawl_weights_bind(striped, "matrix", &packed, pawl_pool_team(pool), &storage,
				 &err),
		PAWL_OK);
	ck_assert_int_eq(s.n_dropped, s.n_bytes);
	ck_assert_int_gt(s.n_drops, 1);
	pawl_pack_tiles(PAWL_DTYPE_Q8_0, STRIPED_N, STRIPED_K, s.bytes, wanted, 0,
		(STRIPED_N + PAWL_TILE_ROWS - 1) / PAWL_TILE_ROWS);
	ck_assert_int_eq(memcmp(storage->bytes, wanted, (size_t)bytes), 0);
	pawl_storage_unref(storage);

	s.n_dropped = 0;
	ck_assert_int_eq(pawl_weights_bind(striped, "vector", &vector, NULL, &storage, &err), PAWL_OK);
	ck_assert_ptr_ne(storage->bytes, s.bytes);
	ck_assert_int_eq(memcmp(storage->bytes, s.bytes, 4 * 64), 0);
	ck_assert_int_eq(s.n_dropped, 4 * 64);
	pawl_storage_unref(storage);
	pawl_weights_unref(striped);
	pawl_pool_free(pool);
	free(s.bytes);
	free(wanted);
}
END_TEST

START_TEST(packed_once_and_shared)
{
	struct pawl_type packed = matrix(PAWL_DTYPE_Q4_1, 160, 64, PAWL_LAYOUT_TILE16);
	struct pawl_type type = matrix(PAWL_DTYPE_Q4_1, 160, 64, PAWL_LAYOUT_ROWS);
	struct pawl_storage *rows = bind(gate, type, NULL), *a, *b, *expected;
	int64_t bytes = pawl_pack_bytes(PAWL_DTYPE_Q4_1, 160, 64);
	struct pawl_pool *pool;

	ck_assert_int_eq(pawl_pool_new(3, &pool, &err), PAWL_OK);
	a = bind(gate, packed, pawl_pool_team(pool));
	b = bind(gate, packed, NULL);
	ck_assert_ptr_eq(a, b);
	ck_assert_ptr_ne(a, rows);
	ck_assert_int_eq(a->n_bytes, bytes);
	ck_assert_int_eq(pawl_weights_packed_bytes(weights), bytes);
	ck_assert_int_eq(pawl_tiny_model_drops(model), 1);
	/* By three threads as by one, and as the format has it. */
	ck_assert_int_eq(pawl_storage_pack(rows, &packed, NULL, NULL, &expected, &err), PAWL_OK);
	ck_assert_int_eq(memcmp(a->bytes, expected->bytes, (size_t)bytes), 0);
	memset(expected->bytes, 0, (size_t)bytes);
	pawl_pack_tiles(PAWL_DTYPE_Q4_1, 160, 64, rows->bytes, expected->bytes, 0, 10);
	ck_assert_int_eq(memcmp(a->bytes, expected->bytes, (size_t)bytes), 0);
	pawl_storage_unref(expected);
	pawl_storage_unref(rows);
	pawl_storage_unref(a);
	pawl_storage_unref(b);
	pawl_pool_free(pool);
}
END_TEST

START_TEST(a_storage_outlives_its_weights)
{
	struct pawl_type packed = matrix(PAWL_DTYPE_Q4_1, 160, 64, PAWL_LAYOUT_TILE16);
	struct pawl_tiny_options tiny = pawl_tiny_defaults();
	struct pawl_storage *a = bind(gate, packed, NULL);
	uint8_t first;

	memcpy(&first, a->bytes, 1);
	pawl_tiny_model_free(model);
	ck_assert_int_eq(memcmp(a->bytes, &first, 1), 0);
	ck_assert_int_eq(atomic_load(&a->n_refs), 1);
	pawl_storage_unref(a);
	model = pawl_tiny_model_new(&tiny);
}
END_TEST

START_TEST(what_the_source_does_not_have)
{
	struct pawl_type type = matrix(PAWL_DTYPE_Q4_1, 64, 160, PAWL_LAYOUT_ROWS);
	struct pawl_storage *storage = NULL;

	ck_assert_int_eq(pawl_weights_bind(weights, gate, &type, NULL, &storage, &err),
		PAWL_INVALID_ARGUMENT);
	ck_assert_str_eq(err.text,
		"weight blk.0.ffn_gate.weight is q4_1 [160, 64], the graph wants q4_1 [64, 160]");
	type = matrix(PAWL_DTYPE_F16, 160, 64, PAWL_LAYOUT_TILE16);
	ck_assert_int_eq(pawl_weights_bind(weights, gate, &type, NULL, &storage, &err),
		PAWL_INVALID_ARGUMENT);
	ck_assert_str_eq(err.text,
		"weight blk.0.ffn_gate.weight is q4_1 [160, 64], the graph wants f16 [160, 64]");
	ck_assert_int_eq(pawl_weights_bind(weights, "blk.0.nothing", &type, NULL, &storage, &err),
		PAWL_INVALID_ARGUMENT);
	ck_assert_ptr_null(storage);
	ck_assert_int_eq(pawl_weights_packed_bytes(weights), 0);
	ck_assert_int_eq(pawl_tiny_model_drops(model), 0);
}
END_TEST

START_TEST(what_cannot_be_packed)
{
	const int64_t n = 64;
	struct pawl_type vector = pawl_type_make(PAWL_DTYPE_F32, 1, &n);
	struct pawl_storage *storage = NULL;

	vector.layout = PAWL_LAYOUT_TILE16;
	ck_assert_int_eq(
		pawl_weights_bind(weights, "output_norm.weight", &vector, NULL, &storage, &err),
		PAWL_INVALID_ARGUMENT);
	ck_assert_str_eq(err.text, "weight output_norm.weight: f32 cannot be packed as tile16");
	ck_assert_ptr_null(storage);
}
END_TEST

START_TEST(every_instance_has_an_identity)
{
	struct pawl_tiny_options tiny = pawl_tiny_defaults();
	struct pawl_tiny_model *other = pawl_tiny_model_new(&tiny);

	ck_assert_uint_ne(pawl_weights_id(weights).value,
		pawl_weights_id(pawl_tiny_model_source(other)->weights).value);
	ck_assert_uint_ne(pawl_tiny_model_source(model)->shape_key.value,
		pawl_tiny_model_source(other)->shape_key.value);
	pawl_tiny_model_free(other);
}
END_TEST

Suite *
pawl_weights_suite(void)
{
	Suite *suite = suite_create("weights");
	TCase *tcase = tcase_create("weights");

	tcase_add_checked_fixture(tcase, begin, end);
	tcase_add_test(tcase, rows_are_borrowed);
	tcase_add_test(tcase, vectors_are_copied);
	tcase_add_test(tcase, vectors_without_memory_are_named);
	tcase_add_test(tcase, stripes_make_the_whole);
	tcase_add_test(tcase, packed_once_and_shared);
	tcase_add_test(tcase, a_storage_outlives_its_weights);
	tcase_add_test(tcase, what_the_source_does_not_have);
	tcase_add_test(tcase, what_cannot_be_packed);
	tcase_add_test(tcase, every_instance_has_an_identity);
	suite_add_tcase(suite, tcase);
	return suite;
}
