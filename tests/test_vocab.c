/* What a vocabulary says about tokenizing, and vocabularies that are refused. */
#include "models/tokenizer.h"
#include "models/byte_level.h"
#include "models/utf8.h"

#include "tests/suites.h"
#include "tests/tiny_vocab.h"
#include "tests/vocab_fixture.h"

#include <stdbool.h>
#include <string.h>

static struct pawl_tokenizer *
make(void)
{
	struct pawl_tokenizer *tokenizer;
	struct pawl_error err = {0};

	ck_assert_msg(
		pawl_tokenizer_new(&tiny.source, &tokenizer, &err) == PAWL_OK, "%s", err.text);
	return tokenizer;
}

/* Encodes and compares with ids, which end with -1. */
static void
check(const struct pawl_tokenizer *tokenizer, const char *text, unsigned int flags,
	const int32_t *ids)
{
	struct pawl_token_list list;
	struct pawl_error err = {0};
	size_t n = 0;

	while (ids[n] >= 0)
		n++;
	pawl_token_list_init(&list);
	ck_assert_msg(
		pawl_tokenizer_encode(tokenizer, text, strlen(text), flags, &list, &err) == PAWL_OK,
		"%s", err.text);
	ck_assert_uint_eq(list.n, n);
	for (size_t i = 0; i < n; i++)
		ck_assert_int_eq(list.ids[i], ids[i]);
	pawl_token_list_release(&list);
}

#define IDS(...) ((const int32_t[]){__VA_ARGS__, -1})

START_TEST(merges_go_by_rank_then_from_the_left)
{
	struct pawl_tokenizer *tokenizer;

	letters("gpt-2");
	pawl_tiny_vocab_add(&tiny, "bc", PAWL_TOKEN_NORMAL);   /* 4 */
	pawl_tiny_vocab_add(&tiny, "ab", PAWL_TOKEN_NORMAL);   /* 5 */
	pawl_tiny_vocab_add(&tiny, "abc", PAWL_TOKEN_NORMAL);  /* 6 */
	pawl_tiny_vocab_add(&tiny, "aa", PAWL_TOKEN_NORMAL);   /* 7 */
	pawl_tiny_vocab_add(&tiny, "abcd", PAWL_TOKEN_NORMAL); /* 8 */
	pawl_tiny_vocab_add_merge(&tiny, "b c");
	pawl_tiny_vocab_add_merge(&tiny, "a b");
	pawl_tiny_vocab_add_merge(&tiny, "a bc");
	pawl_tiny_vocab_add_merge(&tiny, "a a");
	pawl_tiny_vocab_add_merge(&tiny, "ab c");
	pawl_tiny_vocab_add_merge(&tiny, "b c"); /* again: the first counts */
	tokenizer = make();
	check(tokenizer, "abc", 0, IDS(6));
	check(tokenizer, "ab", 0, IDS(5));
	check(tokenizer, "abcd", 0, IDS(6, 3));
	check(tokenizer, "aaa", 0, IDS(7, 0));
	check(tokenizer, "aaab", 0, IDS(7, 5));
	check(tokenizer, "dbcbc", 0, IDS(3, 4, 4));
	check(tokenizer, "", 0, IDS(-1));
	pawl_tokenizer_free(tokenizer);
}
END_TEST

START_TEST(whole_words_are_taken_where_the_rules_say_so)
{
	struct pawl_tokenizer *tokenizer;

	for (int i = 0; i < 2; i++) {
		letters(i ? "gpt-2" : "llama-bpe");
		pawl_tiny_vocab_add(&tiny, "abcd", PAWL_TOKEN_NORMAL);
		pawl_tiny_vocab_add(&tiny,
			"\xc4\xa0"
			"ab",
			PAWL_TOKEN_NORMAL);
		pawl_tiny_vocab_add(&tiny, "\xc4\xa0", PAWL_TOKEN_NORMAL);
		tokenizer = make();
		check(tokenizer, "abcd", 0, i ? IDS(0, 1, 2, 3) : IDS(4));
		check(tokenizer, " ab", 0, i ? IDS(6, 0, 1) : IDS(5));
		check(tokenizer, "abcda", 0, IDS(0, 1, 2, 3, 0));
		pawl_tokenizer_free(tokenizer);
	}
}
END_TEST

START_TEST(no_text_becomes_a_control_token_unasked)
{
	static const char *const pres[] = {"gpt-2", "llama-bpe"};

	for (size_t i = 0; i < 2; i++) {
		struct pawl_tokenizer *tokenizer;

		letters(pres[i]);
		pawl_tiny_vocab_add(&tiny, "ab", PAWL_TOKEN_CONTROL); /* 4 */
		pawl_tiny_vocab_add(&tiny, "cd", PAWL_TOKEN_UNKNOWN); /* 5 */
		pawl_tiny_vocab_add(&tiny, "abc", PAWL_TOKEN_NORMAL); /* 6 */
		pawl_tiny_vocab_add_merge(&tiny, "a b");
		pawl_tiny_vocab_add_merge(&tiny, "c d");
		pawl_tiny_vocab_add_merge(&tiny, "ab c");
		tokenizer = make();
		check(tokenizer, "abcd", 0, IDS(0, 1, 2, 3));
		check(tokenizer, "ab", 0, IDS(0, 1));
		check(tokenizer, "abcdab", PAWL_ENCODE_SPECIAL, IDS(4, 5, 4));
		ck_assert(pawl_tokenizer_is_control(tokenizer, 4));
		ck_assert(pawl_tokenizer_is_control(tokenizer, 5));
		ck_assert(!pawl_tokenizer_is_control(tokenizer, 6));
		pawl_tokenizer_free(tokenizer);
	}
}
END_TEST

START_TEST(user_defined_tokens_are_always_cut_longest_first)
{
	struct pawl_tokenizer *tokenizer;

	letters("gpt-2");
	pawl_tiny_vocab_add(&tiny, "  ", PAWL_TOKEN_USER_DEFINED);   /* 4 */
	pawl_tiny_vocab_add(&tiny, "    ", PAWL_TOKEN_USER_DEFINED); /* 5 */
	pawl_tiny_vocab_add(&tiny, "<x", PAWL_TOKEN_USER_DEFINED);   /* 6 */
	pawl_tiny_vocab_add(&tiny, "<x>", PAWL_TOKEN_CONTROL);       /* 7 */
	pawl_tiny_vocab_add(&tiny, ">", PAWL_TOKEN_NORMAL);          /* 8 */
	pawl_tiny_vocab_add(&tiny, "\xc4\xa0", PAWL_TOKEN_NORMAL);   /* 9 */
	pawl_tiny_vocab_add(&tiny,
		"\xc4\xa0"
		"a",
		PAWL_TOKEN_USER_DEFINED);
	pawl_tiny_vocab_add_merge(&tiny, "\xc4\xa0 a");
	tokenizer = make();
	check(tokenizer, "       a", 0, IDS(5, 4, 9, 0)); /* 10 is no space and a */
	check(tokenizer, "a<x>b", 0, IDS(0, 6, 8, 1));
	check(tokenizer, "a<x>b<x", PAWL_ENCODE_SPECIAL, IDS(0, 7, 1, 6));
	pawl_tokenizer_free(tokenizer);
}
END_TEST

/* A spelling is looked for again from each position, also inside of one that came to nothing. */
START_TEST(a_begun_control_token_does_not_hide_another)
{
	struct pawl_tokenizer *tokenizer;

	letters("gpt-2");
	pawl_tiny_vocab_add(&tiny, "aab", PAWL_TOKEN_CONTROL);  /* 4 */
	pawl_tiny_vocab_add(&tiny, "abcd", PAWL_TOKEN_CONTROL); /* 5 */
	tokenizer = make();
	check(tokenizer, "aaab", PAWL_ENCODE_SPECIAL, IDS(0, 4));
	check(tokenizer, "aabcd", PAWL_ENCODE_SPECIAL, IDS(4, 2, 3));
	check(tokenizer, "abcaab", PAWL_ENCODE_SPECIAL, IDS(0, 1, 2, 4));
	pawl_tokenizer_free(tokenizer);
}
END_TEST

START_TEST(bytes_without_a_token_are_dropped)
{
	struct pawl_tokenizer *tokenizer;

	letters("gpt-2");
	tokenizer = make();
	check(tokenizer, "azb \n", 0, IDS(0, 1));
	pawl_tokenizer_free(tokenizer);
}
END_TEST

START_TEST(pieces_are_bytes)
{
	static const struct {
		const char *text;
		int32_t type;
		const char *piece;
	} pieces[] = {
		{"\xc4\xa0"
		 "a\xc4\x8a",
			PAWL_TOKEN_NORMAL, " a\n"},
		{"\xc3\xb0\xc5\x81\xc4\xba\xc4\xa2", PAWL_TOKEN_NORMAL, "\xf0\x9f\x98\x80"},
		{"\xc5\x83", PAWL_TOKEN_UNUSED, "\xad"},
		{"\xc5\x84", PAWL_TOKEN_NORMAL, "\xc5\x84"}, /* behind the alphabet */
		{"a\xe2\x96\x81\xc4\xa0", PAWL_TOKEN_NORMAL, "a\xe2\x96\x81\xc4\xa0"},
		{"<\xc4\xa0>", PAWL_TOKEN_CONTROL, "<\xc4\xa0>"},
		{"\xc4\xa0\xc4\xa0", PAWL_TOKEN_USER_DEFINED, "\xc4\xa0\xc4\xa0"},
		{"<0x0A>", PAWL_TOKEN_BYTE, "\n"},
		{"<0xfe>", PAWL_TOKEN_BYTE, "\xfe"},
		{"<0x0G>", PAWL_TOKEN_BYTE, "<0x0G>"},
		{"<0x0B>", PAWL_TOKEN_NORMAL, "<0x0B>"},
		{"", PAWL_TOKEN_NORMAL, ""},
	};
	struct pawl_tokenizer *tokenizer;
	struct pawl_text piece;

	pawl_tiny_vocab_init(&tiny, "gpt-2");
	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++)
		pawl_tiny_vocab_add(&tiny, pieces[i].text, pieces[i].type);
	tokenizer = make();
	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		ck_assert(pawl_tokenizer_piece(tokenizer, (uint32_t)i, &piece));
		ck_assert_msg(piece.n == strlen(pieces[i].piece) &&
				      !memcmp(piece.bytes, pieces[i].piece, piece.n),
			"piece %zu", i);
	}
	pawl_tokenizer_free(tokenizer);
}
END_TEST

/* Bytes that print in Latin-1 stand for themselves, the others for U+0100 on, in order. */
START_TEST(all_256_bytes_have_their_letter)
{
	uint32_t next = 0x100;

	for (uint32_t byte = 0; byte < 256; byte++) {
		bool prints = byte > 0x20 && byte != 0xad && (byte < 0x7f || byte > 0xa0);
		char in = (char)byte, letter[4], wanted[4], back[4];
		size_t n = pawl_byte_level_encode(&in, 1, letter);

		ck_assert_int_eq(pawl_utf8_put(prints ? byte : next++, wanted), (int)n);
		ck_assert_mem_eq(letter, wanted, n);
		ck_assert_uint_eq(pawl_byte_level_decode(letter, n, back), 1);
		ck_assert_int_eq(back[0], in);
	}
}
END_TEST

START_TEST(characters_in_several_tokens_stream_whole)
{
	static const char wanted[] = "\xf0\x9f\x99\x82\xf0\x9f\x99\x82";
	static const char *const letters_of_bytes[] = {
		"\xc3\xb0", "\xc5\x81", "\xc4\xbb", "\xc4\xa4"}; /* f0 9f 99 82 */
	struct pawl_utf8_stream stream;
	struct pawl_token_list list;
	struct pawl_tokenizer *tokenizer;
	char out[64];
	size_t n_out = 0;

	pawl_tiny_vocab_init(&tiny, "gpt-2");
	for (size_t i = 0; i < 4; i++)
		pawl_tiny_vocab_add(&tiny, letters_of_bytes[i], PAWL_TOKEN_NORMAL);
	tokenizer = make();
	pawl_token_list_init(&list);
	pawl_utf8_stream_init(&stream);
	ck_assert_int_eq(pawl_tokenizer_encode(tokenizer, wanted, 8, 0, &list, NULL), PAWL_OK);
	ck_assert_uint_eq(list.n, 8);
	for (size_t i = 0; i < 7; i++) {
		struct pawl_text piece;

		ck_assert(pawl_tokenizer_piece(tokenizer, list.ids[i], &piece));
		n_out += pawl_utf8_stream_push(&stream, piece.bytes, piece.n, out + n_out);
		ck_assert_uint_eq(n_out, i < 3 ? 0 : 4);
	}
	n_out += pawl_utf8_stream_flush(&stream, out + n_out); /* cut inside the second */
	ck_assert_uint_eq(n_out, 7);
	ck_assert_mem_eq(out, "\xf0\x9f\x99\x82\xef\xbf\xbd", 7);
	pawl_token_list_release(&list);
	pawl_tokenizer_free(tokenizer);
}
END_TEST

START_TEST(end_tokens_besides_eos)
{
	struct pawl_tokenizer *tokenizer;
	const uint32_t *eog;
	size_t n;

	letters("llama-bpe");
	pawl_tiny_vocab_add(&tiny, "<|end_of_text|>", PAWL_TOKEN_CONTROL);   /* 4 */
	pawl_tiny_vocab_add(&tiny, "<|eot_id|>", PAWL_TOKEN_USER_DEFINED);   /* 5 */
	pawl_tiny_vocab_add(&tiny, "<|begin_of_text|>", PAWL_TOKEN_CONTROL); /* 6 */
	tiny.source.eos = 3;
	tiny.source.eot = 2;
	tiny.source.bos = 6;
	tokenizer = make();
	eog = pawl_tokenizer_eog(tokenizer, &n);
	ck_assert_uint_eq(n, 4);
	for (size_t i = 0; i < n; i++)
		ck_assert_uint_eq(eog[i], i + 2);
	ck_assert_int_eq(pawl_tokenizer_eos(tokenizer), 3);
	ck_assert(!pawl_tokenizer_is_eog(tokenizer, 6));
	/* typed user-defined, or a message could end its turn with it */
	ck_assert(pawl_tokenizer_is_control(tokenizer, 5));
	check(tokenizer, "a<|eot_id|>", PAWL_ENCODE_SPECIAL, IDS(0, 5));
	check(tokenizer, "a<|eot_id|>", 0, IDS(0, 3)); /* of its letters, d alone is a token */
	pawl_tokenizer_free(tokenizer);
}
END_TEST

START_TEST(wanting_bos)
{
	static const struct {
		const char *pre;
		int add_bos;
		int64_t bos;
		bool wants;
	} rows[] = {
		{"gpt-2", -1, 0, false},
		{"gpt-2", 1, 0, true},
		{"llama-bpe", -1, 0, true},
		{"llama-bpe", 0, 0, false},
		{"llama-bpe", -1, -1, false},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pawl_tokenizer *tokenizer;

		letters(rows[i].pre);
		tiny.source.add_bos = rows[i].add_bos;
		tiny.source.bos = rows[i].bos;
		tokenizer = make();
		ck_assert(pawl_tokenizer_wants_bos(tokenizer) == rows[i].wants);
		pawl_tokenizer_free(tokenizer);
	}
}
END_TEST

START_TEST(bos_that_is_not_there)
{
	struct pawl_tokenizer *tokenizer;
	struct pawl_token_list list;
	struct pawl_error err = {0};

	letters("gpt-2");
	tokenizer = make();
	pawl_token_list_init(&list);
	ck_assert_int_eq(pawl_tokenizer_encode(tokenizer, "a", 1, PAWL_ENCODE_BOS, &list, &err),
		PAWL_INVALID_ARGUMENT);
	ck_assert_str_eq(err.text, "the vocabulary has no BOS token to put first");
	ck_assert_uint_eq(list.n, 0);
	pawl_tokenizer_free(tokenizer);
}
END_TEST

START_TEST(token_types_may_be_missing)
{
	struct pawl_tokenizer *tokenizer;

	letters("gpt-2");
	pawl_tiny_vocab_add(&tiny, "<|im_end|>", PAWL_TOKEN_NORMAL);
	tiny.source.token_types = NULL;
	tokenizer = make();
	check(tokenizer, "a<|im_end|>", PAWL_ENCODE_SPECIAL, IDS(0, 4));
	ck_assert(pawl_tokenizer_is_eog(tokenizer, 4));
	pawl_tokenizer_free(tokenizer);
}
END_TEST

Suite *
pawl_vocab_suite(void)
{
	Suite *suite = suite_create("vocab");
	TCase *good = tcase_create("good");

	tcase_add_test(good, merges_go_by_rank_then_from_the_left);
	tcase_add_test(good, whole_words_are_taken_where_the_rules_say_so);
	tcase_add_test(good, no_text_becomes_a_control_token_unasked);
	tcase_add_test(good, user_defined_tokens_are_always_cut_longest_first);
	tcase_add_test(good, a_begun_control_token_does_not_hide_another);
	tcase_add_test(good, bytes_without_a_token_are_dropped);
	tcase_add_test(good, pieces_are_bytes);
	tcase_add_test(good, all_256_bytes_have_their_letter);
	tcase_add_test(good, characters_in_several_tokens_stream_whole);
	tcase_add_test(good, end_tokens_besides_eos);
	tcase_add_test(good, wanting_bos);
	tcase_add_test(good, bos_that_is_not_there);
	tcase_add_test(good, token_types_may_be_missing);
	suite_add_tcase(suite, good);
	return suite;
}
