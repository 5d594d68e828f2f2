/*
 * The tokenizer with SmolLM2's vocabulary, against the ids that llama.cpp and Hugging Face
 * tokenizers give (tests/data/tokenizer-smollm2.json).
 */
#include "models/tokenizer.h"

#include "tests/data_file.h"
#include "tests/smollm2_vocab.h"
#include "tests/suites.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct pawl_tokenizer *tokenizer;
static struct pawl_token_list list;

static void
load(void)
{
	tokenizer = pawl_smollm2_tokenizer();
}

static void
unload(void)
{
	pawl_tokenizer_free(tokenizer);
}

static void
init_list(void)
{
	pawl_token_list_init(&list);
}

static void
release_list(void)
{
	pawl_token_list_release(&list);
}

static cJSON *
read_golden(void)
{
	size_t n;
	char *text = pawl_test_data("tokenizer-smollm2.json", &n);
	cJSON *golden = cJSON_ParseWithLength(text, n);

	free(text);
	ck_assert_ptr_nonnull(golden);
	return golden;
}

/* The bytes of a case, in a block of their exact size so that a sanitizer sees reads beyond. */
static char *
case_bytes(const cJSON *c, size_t *n)
{
	const char *hex = cJSON_GetObjectItem(c, "hex")->valuestring;
	char *bytes;

	*n = strlen(hex) / 2;
	bytes = malloc(*n ? *n : 1);
	ck_assert_ptr_nonnull(bytes);
	for (size_t i = 0; i < *n; i++) {
		unsigned int byte;

		ck_assert_int_eq(sscanf(hex + 2 * i, "%2x", &byte), 1);
		bytes[i] = (char)byte;
	}
	return bytes;
}

static bool
same_ids(const cJSON *wanted)
{
	size_t n = (size_t)cJSON_GetArraySize(wanted), i = 0;
	const cJSON *id;

	if (!cJSON_IsArray(wanted) || n != list.n)
		return false;
	cJSON_ArrayForEach(id, wanted)
	{
		if ((uint32_t)id->valueint != list.ids[i++])
			return false;
	}
	return true;
}

static void
check_ids(const cJSON *c, const char *text, size_t n, const char *key, unsigned int flags)
{
	const char *name = cJSON_GetObjectItem(c, "name")->valuestring;
	struct pawl_error err = {0};
	char second[64];

	list.n = 0;
	snprintf(second, sizeof(second), "second_%s", key);
	ck_assert_msg(pawl_tokenizer_encode(tokenizer, text, n, flags, &list, &err) == PAWL_OK,
		"%s: %s", name, err.text);
	ck_assert_msg(
		same_ids(cJSON_GetObjectItem(c, key)) || same_ids(cJSON_GetObjectItem(c, second)),
		"%s: %s differ (%zu of them)", name, key, list.n);
}

START_TEST(golden_ids)
{
	cJSON *golden = read_golden(), *cases = cJSON_GetObjectItem(golden, "cases"), *c;
	int n_checked = 0;

	cJSON_ArrayForEach(c, cases)
	{
		size_t n;
		char *text;

		if (!cJSON_IsString(cJSON_GetObjectItem(c, "text")))
			continue;
		text = case_bytes(c, &n);
		check_ids(c, text, n, "ids", 0);
		check_ids(c, text, n, "ids_parse_special", PAWL_ENCODE_SPECIAL);
		free(text);
		n_checked++;
	}
	ck_assert_int_eq(n_checked, 152);
	cJSON_Delete(golden);
}
END_TEST

START_TEST(golden_round_trips)
{
	cJSON *golden = read_golden(), *cases = cJSON_GetObjectItem(golden, "cases"), *c;
	int n_checked = 0;

	cJSON_ArrayForEach(c, cases)
	{
		size_t n, n_back;
		char *text, *back;

		if (!cJSON_IsString(cJSON_GetObjectItem(c, "text")) ||
			!cJSON_IsTrue(cJSON_GetObjectItem(c, "round_trip")))
			continue;
		text = case_bytes(c, &n);
		list.n = 0;
		ck_assert_int_eq(
			pawl_tokenizer_encode(tokenizer, text, n, PAWL_ENCODE_SPECIAL, &list, NULL),
			PAWL_OK);
		ck_assert_int_eq(pawl_tokenizer_decode(
					 tokenizer, list.ids, list.n, true, &back, &n_back, NULL),
			PAWL_OK);
		ck_assert_uint_eq(n_back, n);
		ck_assert_mem_eq(back, text, n);
		ck_assert_int_eq(back[n], 0);
		free(back);
		free(text);
		n_checked++;
	}
	ck_assert_int_gt(n_checked, 140);
	cJSON_Delete(golden);
}
END_TEST

/* Where each of the cases that are not UTF-8 goes wrong first. */
START_TEST(golden_invalid_text_is_refused_with_its_position)
{
	static const struct {
		const char *name;
		size_t at;
	} positions[] = {
		{"lone continuation", 1},
		{"ff", 0},
		{"fe ff", 0},
		{"cut 4-byte", 3},
		{"cut inside", 0},
		{"overlong nul", 0},
		{"surrogate", 0},
		{"above U+10FFFF", 0},
		{"latin-1", 3},
		{"lead then lead", 0},
		{"mixed good and bad", 3},
		{"five-byte form", 0},
	};
	size_t k = 0;
	cJSON *golden = read_golden(), *cases = cJSON_GetObjectItem(golden, "cases"), *c;

	ck_assert_int_eq(pawl_token_list_add(&list, 7, NULL), PAWL_OK);
	cJSON_ArrayForEach(c, cases)
	{
		struct pawl_error err = {0};
		char wanted[64];
		char *text;
		size_t n;

		if (strcmp(cJSON_GetObjectItem(c, "kind")->valuestring, "invalid") != 0)
			continue;
		ck_assert_uint_lt(k, sizeof(positions) / sizeof(positions[0]));
		ck_assert_str_eq(cJSON_GetObjectItem(c, "name")->valuestring, positions[k].name);
		text = case_bytes(c, &n);
		ck_assert_int_eq(
			pawl_tokenizer_encode(tokenizer, text, n, PAWL_ENCODE_BOS, &list, &err),
			PAWL_INVALID_TEXT);
		snprintf(wanted, sizeof(wanted), "the text is not UTF-8 at byte %zu",
			positions[k++].at);
		ck_assert_str_eq(err.text, wanted);
		ck_assert_uint_eq(list.n, 1);
		ck_assert_int_eq(list.ids[0], 7);
		free(text);
	}
	ck_assert_uint_eq(k, sizeof(positions) / sizeof(positions[0]));
	cJSON_Delete(golden);
}
END_TEST

START_TEST(bos_comes_only_when_asked_for)
{
	ck_assert_int_eq(pawl_tokenizer_bos(tokenizer), 1);
	ck_assert(!pawl_tokenizer_wants_bos(tokenizer));
	ck_assert_int_eq(pawl_tokenizer_encode(tokenizer, "Hello", 5, 0, &list, NULL), PAWL_OK);
	ck_assert_int_eq(pawl_tokenizer_encode(tokenizer, "Hello", 5, PAWL_ENCODE_BOS, &list, NULL),
		PAWL_OK);
	ck_assert_uint_eq(list.n, 3);
	ck_assert_int_eq(list.ids[0], 19556);
	ck_assert_int_eq(list.ids[1], 1);
	ck_assert_int_eq(list.ids[2], 19556);
}
END_TEST

START_TEST(end_of_generation_set)
{
	size_t n;
	const uint32_t *eog = pawl_tokenizer_eog(tokenizer, &n);

	ck_assert_uint_eq(n, 2);
	ck_assert_int_eq(eog[0], 0); /* <|endoftext|>, which the file does not call eos */
	ck_assert_int_eq(eog[1], 2);
	ck_assert(pawl_tokenizer_is_eog(tokenizer, 0) && pawl_tokenizer_is_eog(tokenizer, 2));
	ck_assert(!pawl_tokenizer_is_eog(tokenizer, 1) && !pawl_tokenizer_is_eog(tokenizer, 3));
	ck_assert(!pawl_tokenizer_is_eog(tokenizer, UINT32_MAX));
	ck_assert(!pawl_tokenizer_is_eog(tokenizer, 49152));
}
END_TEST

START_TEST(decode_refuses_ids_outside_of_the_vocabulary)
{
	static const uint32_t high[] = {1, 19556, 49152}, highest[] = {UINT32_MAX};
	struct pawl_error err = {0};
	struct pawl_text piece;
	char untouched[] = "untouched", *text = untouched;
	size_t n = 1;

	ck_assert_int_eq(pawl_tokenizer_decode(tokenizer, high, 3, true, &text, &n, &err),
		PAWL_INVALID_ARGUMENT);
	ck_assert_str_eq(err.text, "id 49152 at index 2 is not one of the 49152 tokens");
	ck_assert(text == NULL && n == 0);
	ck_assert_int_eq(pawl_tokenizer_decode(tokenizer, highest, 1, true, &text, &n, &err),
		PAWL_INVALID_ARGUMENT);
	ck_assert_str_eq(err.text, "id 4294967295 at index 0 is not one of the 49152 tokens");
	ck_assert(!pawl_tokenizer_piece(tokenizer, 49152, &piece));
	ck_assert(!pawl_tokenizer_piece(tokenizer, UINT32_MAX, &piece));
}
END_TEST

START_TEST(decode_prints_or_skips_control_tokens)
{
	static const uint32_t ids[] = {1, 19556, 2, 905};
	char *text;
	size_t n;

	ck_assert_int_eq(pawl_tokenizer_decode(tokenizer, ids, 4, true, &text, &n, NULL), PAWL_OK);
	ck_assert_str_eq(text, "<|im_start|>Hello<|im_end|> world");
	free(text);
	ck_assert_int_eq(pawl_tokenizer_decode(tokenizer, ids, 4, false, &text, &n, NULL), PAWL_OK);
	ck_assert_str_eq(text, "Hello world");
	ck_assert_uint_eq(n, 11);
	free(text);
	ck_assert_int_eq(pawl_tokenizer_decode(tokenizer, NULL, 0, true, &text, &n, NULL), PAWL_OK);
	ck_assert_str_eq(text, "");
	free(text);
}
END_TEST

/* A megabyte that is one word: quadratic merging would take hours here. */
START_TEST(a_long_run_of_one_letter_ends)
{
	size_t n = 1 << 20, n_back;
	char *text = malloc(n), *back;

	ck_assert_ptr_nonnull(text);
	memset(text, 'a', n);
	ck_assert_int_eq(pawl_tokenizer_encode(tokenizer, text, n, 0, &list, NULL), PAWL_OK);
	ck_assert_int_eq(list.ids[0], 46880);
	ck_assert_int_eq(
		pawl_tokenizer_decode(tokenizer, list.ids, list.n, true, &back, &n_back, NULL),
		PAWL_OK);
	ck_assert_uint_eq(n_back, n);
	ck_assert_mem_eq(back, text, n);
	free(back);
	free(text);
}
END_TEST

START_TEST(long_runs_of_what_rules_try_and_give_back_end)
{
	static const char *const units[] = {" ", "\n", " \n", "'", "1", "<|im_start|", "\xcc\x81"};

	for (size_t k = 0; k < sizeof(units) / sizeof(units[0]); k++) {
		size_t unit = strlen(units[k]), n = (100000 / unit) * unit, n_back;
		char *text = malloc(n), *back;

		ck_assert_ptr_nonnull(text);
		for (size_t i = 0; i < n; i++)
			text[i] = units[k][i % unit];
		list.n = 0;
		ck_assert_int_eq(
			pawl_tokenizer_encode(tokenizer, text, n, PAWL_ENCODE_SPECIAL, &list, NULL),
			PAWL_OK);
		ck_assert_int_eq(pawl_tokenizer_decode(
					 tokenizer, list.ids, list.n, true, &back, &n_back, NULL),
			PAWL_OK);
		ck_assert_uint_eq(n_back, n);
		ck_assert_mem_eq(back, text, n);
		free(back);
		free(text);
	}
}
END_TEST

START_TEST(a_long_token_is_one_piece)
{
	struct pawl_text piece;
	char spaces[64];

	memset(spaces, ' ', sizeof(spaces));
	ck_assert_int_eq(
		pawl_tokenizer_encode(tokenizer, spaces, sizeof(spaces), 0, &list, NULL), PAWL_OK);
	ck_assert_uint_eq(list.n, 1);
	ck_assert(pawl_tokenizer_piece(tokenizer, list.ids[0], &piece));
	ck_assert_uint_eq(piece.n, sizeof(spaces));
	ck_assert_mem_eq(piece.bytes, spaces, sizeof(spaces));
}
END_TEST

Suite *
pawl_tokenizer_suite(void)
{
	Suite *suite = suite_create("tokenizer");
	TCase *golden = tcase_create("golden"), *other = tcase_create("other");

	tcase_add_unchecked_fixture(golden, load, unload);
	tcase_add_checked_fixture(golden, init_list, release_list);
	tcase_add_test(golden, golden_ids);
	tcase_add_test(golden, golden_round_trips);
	tcase_add_test(golden, golden_invalid_text_is_refused_with_its_position);
	suite_add_tcase(suite, golden);
	tcase_add_unchecked_fixture(other, load, unload);
	tcase_add_checked_fixture(other, init_list, release_list);
	tcase_add_test(other, bos_comes_only_when_asked_for);
	tcase_add_test(other, end_of_generation_set);
	tcase_add_test(other, decode_refuses_ids_outside_of_the_vocabulary);
	tcase_add_test(other, decode_prints_or_skips_control_tokens);
	tcase_add_test(other, a_long_run_of_one_letter_ends);
	tcase_add_test(other, long_runs_of_what_rules_try_and_give_back_end);
	tcase_add_test(other, a_long_token_is_one_piece);
	suite_add_tcase(suite, other);
	return suite;
}
