#include "models/gguf.h"

#include "tests/bad_gguf_corpus.h"
#include "tests/gguf_build.h"
#include "tests/gguf_fixture.h"
#include "tests/suites.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

START_TEST(versions_2_and_3_are_read)
{
	static const char *const names[] = {"vector", "blocks", "cube"};
	unsigned int version;
	size_t i;

	for (version = 2; version <= 3; version++) {
		bytes = pawl_small_gguf(version, &n_bytes);
		open_bytes();
		ck_assert_uint_eq(gguf->version, version);
		ck_assert_uint_eq(gguf->alignment, 32);
		ck_assert_uint_eq(gguf->n_values, 16);
		ck_assert_uint_eq(gguf->n_tensors, 3);
		ck_assert(string_is(gguf->values[0].key, "u8"));
		ck_assert(string_is(gguf->values[15].key, "bools"));
		for (i = 0; i < 3; i++)
			ck_assert(string_is(gguf->tensors[i].name, names[i]));
		close_bytes();
	}
}
END_TEST

START_TEST(tensors_have_shape_type_and_data)
{
	const struct pawl_gguf_tensor *vector = pawl_gguf_find_tensor(gguf, "vector");
	const struct pawl_gguf_tensor *blocks = pawl_gguf_find_tensor(gguf, "blocks");
	const struct pawl_gguf_tensor *cube = pawl_gguf_find_tensor(gguf, "cube");

	ck_assert_ptr_eq(vector, &gguf->tensors[0]);
	ck_assert_int_eq(vector->dtype, PAWL_DTYPE_F32);
	ck_assert_int_eq(vector->rank, 1);
	ck_assert_int_eq(vector->n_elements, 3);
	ck_assert_uint_eq(vector->n_bytes, 12);
	ck_assert_mem_eq(vector->data, ((const float[]){1.0f, 2.0f, 3.0f}), 12);
	ck_assert_int_eq(blocks->dtype, PAWL_DTYPE_Q4_0);
	ck_assert_int_eq(blocks->dims[0], 64);
	ck_assert_int_eq(blocks->dims[1], 2);
	ck_assert_int_eq(blocks->dims[2], 1);
	ck_assert_uint_eq(blocks->n_bytes, 4 * 18);
	ck_assert_int_eq(cube->rank, 3);
	ck_assert_int_eq(cube->dims[3], 1);
	ck_assert_mem_eq(cube->data, ((const uint16_t[]){1, 2, 3, 4, 5, 0xffff}), 12);
	ck_assert_ptr_null(pawl_gguf_find_tensor(gguf, "vecto"));
	ck_assert_ptr_null(pawl_gguf_find_tensor(gguf, ""));
}
END_TEST

START_TEST(needed_tensors_are_marked)
{
	const struct pawl_gguf_tensor *tensor = NULL;

	ck_assert_int_eq(pawl_gguf_need_tensor(gguf, "blocks", &tensor, &err), PAWL_OK);
	ck_assert_ptr_eq(tensor, &gguf->tensors[1]);
	ck_assert(!gguf->tensors[0].used && gguf->tensors[1].used && !gguf->tensors[2].used);
	ck_assert_int_eq(
		pawl_gguf_need_tensor(gguf, "output.weight", &tensor, &err), PAWL_INVALID_FILE);
	ck_assert_str_eq(err.text, "t.gguf: there is no tensor output.weight among its 3");
}
END_TEST

START_TEST(alignments_that_are_multiples_of_8)
{
	static const uint32_t alignments[] = {8, 24, 32, 64, 1u << 16, 1u << 20};
	size_t i;

	for (i = 0; i < sizeof(alignments) / sizeof(alignments[0]); i++) {
		struct pawl_gguf_build *b = pawl_gguf_build_new(3);
		const struct pawl_gguf_tensor *tensor;

		pawl_gguf_build_alignment(b, alignments[i]);
		pawl_gguf_build_tensor(b, "a", PAWL_DTYPE_I8, 1, (int64_t[]){3}, "abc");
		pawl_gguf_build_tensor(b, "b", PAWL_DTYPE_I8, 1, (int64_t[]){3}, "def");
		bytes = pawl_gguf_build_finish(b, &n_bytes);
		open_bytes();
		ck_assert_uint_eq(gguf->alignment, alignments[i]);
		tensor = pawl_gguf_find_tensor(gguf, "b");
		ck_assert_mem_eq(tensor->data, "def", 3);
		ck_assert_uint_eq(
			((const char *)tensor->data - (const char *)bytes) % alignments[i], 0);
		close_bytes();
	}
}
END_TEST

START_TEST(data_may_come_in_any_order_and_be_followed_by_more)
{
	struct pawl_gguf_build *b = pawl_gguf_build_new(3);

	pawl_gguf_build_record(
		b, &(struct pawl_gguf_build_record){
			   .name = "late", .rank = 1, .n_dims = 1, .dims = {8}, .offset = 32});
	pawl_gguf_build_record(b, &(struct pawl_gguf_build_record){
					  .name = "early", .rank = 1, .n_dims = 1, .dims = {7}});
	pawl_gguf_build_data(b, NULL, 100);
	bytes = pawl_gguf_build_finish(b, &n_bytes);
	open_bytes();
	ck_assert_ptr_eq((const char *)pawl_gguf_find_tensor(gguf, "late")->data,
		(const char *)pawl_gguf_find_tensor(gguf, "early")->data + 32);
	close_bytes();
}
END_TEST

START_TEST(a_file_may_hold_nothing)
{
	bytes = pawl_gguf_build_finish(pawl_gguf_build_new(3), &n_bytes);
	ck_assert_uint_eq(n_bytes, 24);
	open_bytes();
	ck_assert_uint_eq(gguf->n_values + gguf->n_tensors, 0);
	ck_assert_ptr_null(pawl_gguf_find(gguf, "a"));
	ck_assert_ptr_null(pawl_gguf_find_tensor(gguf, "a"));
	close_bytes();
}
END_TEST

START_TEST(a_large_vocabulary_is_read)
{
	enum { N = 256 * 1024 };
	struct pawl_gguf_build *b = pawl_gguf_build_new(3);
	const struct pawl_gguf_string *strings;
	const char **words = malloc(N * sizeof(*words));
	char(*texts)[8] = malloc(N * sizeof(*texts));
	size_t n, i;

	for (i = 0; i < N; i++) {
		snprintf(texts[i], sizeof(texts[i]), "%zx", i);
		words[i] = texts[i];
	}
	pawl_gguf_build_strings(b, "tokens", words, N);
	bytes = pawl_gguf_build_finish(b, &n_bytes);
	open_bytes();
	ck_assert_int_eq(pawl_gguf_get_strings(gguf, "tokens", &arena, &strings, &n, &err), 0);
	ck_assert_uint_eq(n, N);
	for (i = 0; i < N; i++)
		ck_assert(string_is(strings[i], texts[i]));
	close_bytes();
	free(words);
	free(texts);
}
END_TEST

START_TEST(refusals_of_callers_name_the_place)
{
	ck_assert_int_eq(
		pawl_gguf_refuse(gguf, "u8", &err, "%d is too small", 3), PAWL_INVALID_FILE);
	ck_assert_str_eq(err.text, "t.gguf: byte 38: metadata 0 (u8): value: 3 is too small");
	ck_assert_uint_eq(pawl_gguf_value_offset(gguf, pawl_gguf_find(gguf, "u8")), 38);
	ck_assert_str_eq(pawl_gguf_type_name(PAWL_GGUF_F64), "f64");
}
END_TEST

Suite *
pawl_gguf_suite(void)
{
	Suite *suite = suite_create("gguf");
	TCase *small = tcase_create("small file");
	TCase *others = tcase_create("other files");

	tcase_add_checked_fixture(small, open_small, close_bytes);
	tcase_add_test(small, tensors_have_shape_type_and_data);
	tcase_add_test(small, needed_tensors_are_marked);
	tcase_add_test(small, refusals_of_callers_name_the_place);
	suite_add_tcase(suite, small);
	tcase_add_test(others, versions_2_and_3_are_read);
	tcase_add_test(others, alignments_that_are_multiples_of_8);
	tcase_add_test(others, data_may_come_in_any_order_and_be_followed_by_more);
	tcase_add_test(others, a_file_may_hold_nothing);
	tcase_add_test(others, a_large_vocabulary_is_read);
	suite_add_tcase(suite, others);
	return suite;
}
