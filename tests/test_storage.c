#include "runtime/storage.h"

#include "runtime/identity.h"
#include "runtime/literal.h"
#include "runtime/shape_key.h"
#include "tests/suites.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

static struct pawl_error err;

static struct pawl_type
make_type(enum pawl_dtype dtype, int64_t n, int64_t k)
{
	const int64_t dims[] = {n, k};

	return pawl_type_make(dtype, 2, dims);
}

START_TEST(bytes_are_zeroed_and_aligned)
{
	static const int64_t rows[] = {1, 3, 400000}; /* heap and mapped */

	for (size_t i = 0; i < 3; i++) {
		struct pawl_type type = make_type(PAWL_DTYPE_F32, rows[i], 7);
		struct pawl_storage *storage;
		const char *bytes;
		int64_t n_zero = 0;

		ck_assert_int_eq(pawl_storage_new(&type, &storage, &err), PAWL_OK);
		ck_assert_int_eq(storage->n_bytes, rows[i] * 28);
		ck_assert_uint_eq((uintptr_t)storage->bytes % 64, 0);
		bytes = storage->bytes;
		for (int64_t b = 0; b < storage->n_bytes; b++)
			n_zero += bytes[b] == 0;
		ck_assert_int_eq(n_zero, storage->n_bytes);
		memset(storage->bytes, 1, (size_t)storage->n_bytes);
		ck_assert(pawl_location_equal(storage->location, PAWL_LOCATION_HOST));
		pawl_storage_unref(storage);
	}
}
END_TEST

START_TEST(sizes_that_do_not_exist)
{
	struct pawl_type huge = make_type(PAWL_DTYPE_F32, INT64_MAX / 2, 5);
	struct pawl_type negative = make_type(PAWL_DTYPE_F32, -1, 5);
	struct pawl_type ragged = make_type(PAWL_DTYPE_Q4_0, 2, 33);
	struct pawl_type unlikely = make_type(PAWL_DTYPE_F32, INT64_MAX / 64, 2);
	struct pawl_type symbolic = make_type(PAWL_DTYPE_F32, 2, 2);
	struct pawl_storage *storage = NULL;

	symbolic.dim[0] = (struct pawl_dim){0, 1, 0};
	ck_assert_int_eq(pawl_storage_new(&huge, &storage, &err), PAWL_INVALID_ARGUMENT);
	ck_assert_int_eq(pawl_storage_new(&negative, &storage, &err), PAWL_INVALID_ARGUMENT);
	ck_assert_int_eq(pawl_storage_new(&ragged, &storage, &err), PAWL_INVALID_ARGUMENT);
	ck_assert_int_eq(pawl_storage_new(&symbolic, &storage, &err), PAWL_INVALID_ARGUMENT);
	ck_assert_int_eq(pawl_storage_new(&unlikely, &storage, &err), PAWL_OUT_OF_MEMORY);
	ck_assert_ptr_null(storage);
}
END_TEST

/* Whether the page of an address is mapped. */
static bool
is_mapped(const void *bytes)
{
	unsigned char is_resident;
	uintptr_t page = (uintptr_t)bytes / 4096 * 4096;

	return mincore((void *)page, 4096, &is_resident) == 0;
}

START_TEST(regions)
{
	/* Two chunks, and a value that is a chunk of its own. */
	static const int64_t sizes[] = {1, 63, 64, 65, 1 << 20, 20 << 20, 15 << 20, 40 << 20, 5};
	enum { N = sizeof(sizes) / sizeof(sizes[0]) };
	int64_t before = pawl_memory_block_bytes(), told = before;
	struct pawl_region region = {NULL};
	struct pawl_block blocks[N], other;
	void *first;

	pawl_memory_fail_after(0);
	ck_assert_int_eq(pawl_block_init_in(&region, &other, 256, &err), PAWL_OUT_OF_MEMORY);
	ck_assert_str_eq(err.text, "a chunk of 33554432 bytes of memory for 256 could not be had");
	pawl_memory_fail_after(-1);
	for (int i = 0; i < N; i++) {
		const char *bytes;

		ck_assert_int_eq(pawl_block_init_in(&region, &blocks[i], sizes[i], &err), PAWL_OK);
		ck_assert_uint_eq((uintptr_t)blocks[i].bytes % 64, 0);
		bytes = blocks[i].bytes;
		ck_assert(!bytes[0] && !bytes[sizes[i] - 1]);
		memset(blocks[i].bytes, i + 1, (size_t)sizes[i]);
		told += sizes[i];
		ck_assert_int_eq(pawl_memory_block_bytes(), told);
	}
	for (int i = 0; i < N; i++) {
		const char *bytes = blocks[i].bytes;

		ck_assert(bytes[0] == i + 1 && bytes[sizes[i] - 1] == i + 1);
	}
	pawl_memory_fail_after(0);
	ck_assert_int_eq(pawl_block_init_in(&region, &other, 8, &err), PAWL_OUT_OF_MEMORY);
	pawl_memory_fail_after(-1);
	ck_assert_int_eq(pawl_block_init_in(&region, &other, INT64_MAX / 8, &err), PAWL_OUT_OF_MEMORY);
	ck_assert_str_eq(err.text, "a chunk of 1152921504640401408 bytes of memory for "
				   "1152921504606846975 could not be had");
	ck_assert_int_eq(pawl_block_init_in(&region, &other, -1, &err), PAWL_OUT_OF_MEMORY);
	ck_assert_int_eq(pawl_memory_block_bytes(), told);
	/* The region goes first; a chunk stays for the last of its blocks. */
	pawl_region_release(&region);
	first = blocks[0].bytes;
	for (int i = 0; i < N; i++) {
		bool is_last = i == 5;

		ck_assert(i > 5 || is_mapped(first));
		pawl_block_release(&blocks[i]);
		ck_assert(!is_last || !is_mapped(first));
	}
	ck_assert_int_eq(pawl_memory_block_bytes(), before);
}
END_TEST

static int n_released;

static void
released(void *arg, void *bytes)
{
	ck_assert_ptr_eq(arg, &n_released);
	ck_assert_ptr_nonnull(bytes);
	n_released++;
}

START_TEST(borrowed_memory)
{
	static float memory[6];
	struct pawl_type type = make_type(PAWL_DTYPE_F32, 2, 3);
	struct pawl_storage *storage, *same;

	n_released = 0;
	ck_assert_int_eq(pawl_storage_wrap(
				 &type, PAWL_LOCATION_HOST, memory, 23, NULL, NULL, &storage, &err),
		PAWL_INVALID_ARGUMENT);
	ck_assert_str_eq(err.text, "23 bytes given for a value of 24 bytes");
	ck_assert_int_eq(pawl_storage_wrap(&type, PAWL_LOCATION_HOST, memory, 24, released,
				 &n_released, &storage, &err),
		PAWL_OK);
	ck_assert_ptr_eq(storage->bytes, memory);
	same = pawl_storage_ref(storage);
	pawl_storage_unref(storage);
	ck_assert_int_eq(n_released, 0);
	pawl_storage_unref(same);
	ck_assert_int_eq(n_released, 1);
}
END_TEST

START_TEST(overlap)
{
	static char memory[64];
	const int64_t dims[] = {16};
	struct pawl_type type = pawl_type_make(PAWL_DTYPE_I8, 1, dims);
	struct pawl_location gpu = {PAWL_MEMORY_CUDA, 0};
	struct pawl_storage *a, *b, *c, *d;

	pawl_storage_wrap(&type, PAWL_LOCATION_HOST, memory, 16, NULL, NULL, &a, NULL);
	pawl_storage_wrap(&type, PAWL_LOCATION_HOST, memory + 15, 16, NULL, NULL, &b, NULL);
	pawl_storage_wrap(&type, PAWL_LOCATION_HOST, memory + 16, 16, NULL, NULL, &c, NULL);
	pawl_storage_wrap(&type, gpu, memory, 16, NULL, NULL, &d, NULL);
	ck_assert(pawl_storage_overlaps(a, a));
	ck_assert(pawl_storage_overlaps(a, b));
	ck_assert(pawl_storage_overlaps(b, a));
	ck_assert(!pawl_storage_overlaps(a, c));
	ck_assert(!pawl_storage_overlaps(a, d));
	pawl_storage_unref(a);
	pawl_storage_unref(b);
	pawl_storage_unref(c);
	pawl_storage_unref(d);
}
END_TEST

START_TEST(locations)
{
	struct pawl_location first = {PAWL_MEMORY_CUDA, 0}, second = {PAWL_MEMORY_CUDA, 1};
	char text[16];

	ck_assert(pawl_location_equal(first, first));
	ck_assert(!pawl_location_equal(first, second));
	ck_assert(!pawl_location_equal(first, PAWL_LOCATION_HOST));
	ck_assert(!pawl_location_equal(PAWL_LOCATION_UNKNOWN, PAWL_LOCATION_UNKNOWN));
	ck_assert_str_eq(pawl_location_text(second, text, sizeof(text)), "cuda:1");
	ck_assert_str_eq(pawl_location_text(PAWL_LOCATION_HOST, text, sizeof(text)), "host");
	ck_assert_str_eq(pawl_location_text(PAWL_LOCATION_UNKNOWN, text, sizeof(text)), "unknown");
}
END_TEST

START_TEST(literals)
{
	static const double one[] = {0.5}, each[] = {1, -2, 3, 4};
	struct pawl_type halves = make_type(PAWL_DTYPE_F16, 2, 2),
			 ints = make_type(PAWL_DTYPE_I64, 2, 2);
	struct pawl_storage *storage;

	ck_assert_int_eq(pawl_literal_new(&halves, one, 1, &storage, &err), PAWL_OK);
	for (int i = 0; i < 4; i++)
		ck_assert_uint_eq(((uint16_t *)storage->bytes)[i], 0x3800);
	pawl_storage_unref(storage);
	ck_assert_int_eq(pawl_literal_new(&ints, each, 4, &storage, &err), PAWL_OK);
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(((int64_t *)storage->bytes)[i], (int64_t)each[i]);
	pawl_storage_unref(storage);
	ck_assert_int_eq(pawl_literal_new(&ints, each, 3, &storage, &err), PAWL_INVALID_GRAPH);
}
END_TEST

static uint64_t
new_kv_alloc(void)
{
	return pawl_kv_alloc_id_new().value;
}

static uint64_t
new_model_instance(void)
{
	return pawl_model_instance_id_new().value;
}

/* Each is a counter of its own. */
static uint64_t (*const id_makers[])(void) = {new_kv_alloc, new_model_instance,
	pawl_kv_object_id_new, pawl_request_id_new, pawl_device_id_new};

struct minting {
	uint64_t (*make)(void);
	uint64_t ids[1000];
};

static void *
mint(void *arg)
{
	struct minting *minting = arg;

	for (int i = 0; i < 1000; i++)
		minting->ids[i] = minting->make();
	return NULL;
}

START_TEST(identities_are_never_0_and_never_twice)
{
	static struct minting mintings[4];
	static bool seen[1 << 16];
	pthread_t threads[4];
	uint64_t first = id_makers[_i]();

	ck_assert_uint_ge(first, 1);
	memset(seen, 0, sizeof(seen));
	for (int t = 0; t < 4; t++) {
		mintings[t].make = id_makers[_i];
		ck_assert_int_eq(pthread_create(&threads[t], NULL, mint, &mintings[t]), 0);
	}
	for (int t = 0; t < 4; t++)
		pthread_join(threads[t], NULL);
	for (int t = 0; t < 4; t++)
		for (int i = 0; i < 1000; i++) {
			uint64_t id = mintings[t].ids[i];

			ck_assert_uint_gt(id, i ? mintings[t].ids[i - 1] : first);
			ck_assert_uint_lt(id, 1 << 16);
			ck_assert(!seen[id]);
			seen[id] = true;
		}
}
END_TEST

static uint64_t
fnv(const char *text)
{
	struct pawl_shape_key key = PAWL_SHAPE_KEY_INIT;

	pawl_shape_key_bytes(&key, text, strlen(text));
	return key.value;
}

START_TEST(shape_key_known_answers)
{
	ck_assert_uint_eq(fnv(""), 0xcbf29ce484222325u);
	ck_assert_uint_eq(fnv("a"), 0xaf63dc4c8601ec8cu);
	ck_assert_uint_eq(fnv("foobar"), 0x85944171f73967e8u);
}
END_TEST

START_TEST(shape_key_mixers)
{
	struct pawl_shape_key a = PAWL_SHAPE_KEY_INIT, b = a, c = a, d = a, e = a, f = a;

	pawl_shape_key_string(&a, "ab");
	pawl_shape_key_string(&a, "c");
	pawl_shape_key_string(&b, "a");
	pawl_shape_key_string(&b, "bc");
	ck_assert_uint_ne(a.value, b.value);
	pawl_shape_key_f64(&c, 0.0);
	pawl_shape_key_f64(&d, -0.0);
	ck_assert_uint_ne(c.value, d.value);
	pawl_shape_key_presence(&e, true);
	pawl_shape_key_presence(&f, false);
	ck_assert_uint_ne(e.value, f.value);
	/* A string is its bytes, then its length in 8 little-endian bytes. */
	e = f = PAWL_SHAPE_KEY_INIT;
	pawl_shape_key_string(&e, "none");
	pawl_shape_key_bytes(&f, "none\4\0\0\0\0\0\0\0", 12);
	ck_assert_uint_eq(e.value, f.value);
	e = f = PAWL_SHAPE_KEY_INIT;
	pawl_shape_key_instance(&e, (struct pawl_model_instance_id){258});
	pawl_shape_key_bytes(&f, "instance\10\0\0\0\0\0\0\0\2\1\0\0\0\0\0\0", 24);
	ck_assert_uint_eq(e.value, f.value);
}
END_TEST

Suite *
pawl_storage_suite(void)
{
	Suite *suite = suite_create("storage");
	TCase *tcase = tcase_create("storage");

	tcase_add_test(tcase, bytes_are_zeroed_and_aligned);
	tcase_add_test(tcase, sizes_that_do_not_exist);
	tcase_add_test(tcase, regions);
	tcase_add_test(tcase, borrowed_memory);
	tcase_add_test(tcase, overlap);
	tcase_add_test(tcase, locations);
	tcase_add_test(tcase, literals);
	suite_add_tcase(suite, tcase);
	tcase = tcase_create("identity");
	tcase_add_loop_test(tcase, identities_are_never_0_and_never_twice, 0,
		sizeof(id_makers) / sizeof(id_makers[0]));
	tcase_add_test(tcase, shape_key_known_answers);
	tcase_add_test(tcase, shape_key_mixers);
	suite_add_tcase(suite, tcase);
	return suite;
}
