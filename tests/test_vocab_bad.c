/* Vocabularies that are refused. */
#include "models/tokenizer.h"

#include "tests/suites.h"
#include "tests/tiny_vocab.h"
#include "tests/vocab_fixture.h"

#include <stdio.h>
#include <string.h>

static void
check_refused(enum pawl_status status, const char *text)
{
	struct pawl_tokenizer *tokenizer;
	struct pawl_error err = {0};

	ck_assert_int_eq(pawl_tokenizer_new(&tiny.source, &tokenizer, &err), status);
	ck_assert_ptr_null(tokenizer);
	ck_assert_str_eq(err.text, text);
}

START_TEST(refused_models)
{
	letters("gpt-2");
	tiny.source.model = (struct pawl_text){"bert", 4};
	check_refused(PAWL_UNSUPPORTED,
		"tokenizer.ggml.model is 'bert'; known are 'gpt2' (byte-level BPE) and "
		"'llama' (SentencePiece)");
	tiny.source.model = (struct pawl_text){NULL, 0};
	check_refused(PAWL_UNSUPPORTED,
		"tokenizer.ggml.model is ''; known are 'gpt2' (byte-level BPE) and "
		"'llama' (SentencePiece)");
	letters("no-such-rules");
	check_refused(PAWL_UNSUPPORTED,
		"tokenizer.ggml.pre is 'no-such-rules', and no rules of that name are known");
}
END_TEST

START_TEST(refused_tokens)
{
	char longest[1100];

	pawl_tiny_vocab_init(&tiny, "gpt-2");
	check_refused(PAWL_INVALID_FILE, "tokenizer.ggml.tokens holds 0 tokens");
	letters("gpt-2");
	tiny.source.n_token_types--;
	check_refused(PAWL_INVALID_FILE,
		"tokenizer.ggml.token_type has 3 elements, tokenizer.ggml.tokens 4");
	letters("gpt-2");
	tiny.types[2] = 7;
	check_refused(PAWL_INVALID_FILE, "tokenizer.ggml.token_type[2] is 7, not one of 0 to 6");
	letters("gpt-2");
	pawl_tiny_vocab_add(&tiny, "b", PAWL_TOKEN_NORMAL);
	check_refused(
		PAWL_INVALID_FILE, "tokenizer.ggml.tokens: tokens 1 and 4 have the same text");
	letters("gpt-2");
	pawl_tiny_vocab_add(&tiny, "ab\xed\xa0\x80", PAWL_TOKEN_NORMAL);
	check_refused(PAWL_INVALID_FILE, "tokenizer.ggml.tokens[4] is not UTF-8 at its byte 2");
	letters("gpt-2");
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = 0;
	pawl_tiny_vocab_add(&tiny, longest, PAWL_TOKEN_CONTROL);
	check_refused(PAWL_INVALID_FILE,
		"tokenizer.ggml.tokens[4] is a control or user-defined token of 1099 bytes, more "
		"than 1024");
}
END_TEST

START_TEST(refused_ids)
{
	letters("gpt-2");
	tiny.source.bos = 4;
	check_refused(PAWL_INVALID_FILE,
		"tokenizer.ggml.bos_token_id is 4, tokenizer.ggml.tokens has 4 elements");
	letters("gpt-2");
	tiny.source.eos = 0xffffffff;
	check_refused(PAWL_INVALID_FILE,
		"tokenizer.ggml.eos_token_id is 4294967295, tokenizer.ggml.tokens has 4 elements");
	letters("gpt-2");
	tiny.source.eot = -2;
	check_refused(PAWL_INVALID_FILE,
		"tokenizer.ggml.eot_token_id is -2, tokenizer.ggml.tokens has 4 elements");
	letters("gpt-2");
	tiny.source.unknown = INT64_MAX;
	check_refused(PAWL_INVALID_FILE, "tokenizer.ggml.unknown_token_id is 9223372036854775807, "
					 "tokenizer.ggml.tokens has 4 elements");
	letters("gpt-2");
	tiny.source.padding = 5;
	check_refused(PAWL_INVALID_FILE,
		"tokenizer.ggml.padding_token_id is 5, tokenizer.ggml.tokens has 4 elements");
	letters("gpt-2");
	tiny.source.add_bos = 1;
	check_refused(PAWL_INVALID_FILE, "tokenizer.ggml.add_bos_token is true, but there is no "
					 "tokenizer.ggml.bos_token_id");
}
END_TEST

static const struct {
	const char *merge, *reason;
} merges[] = {
	{"", " is not two tokens with a space between"},
	{" ", " is not two tokens with a space between"},
	{"ab", " is not two tokens with a space between"},
	{"a ", " is not two tokens with a space between"},
	{" b", " is not two tokens with a space between"},
	{"x b", ": its left part is not in tokenizer.ggml.tokens"},
	{"a x", ": its right part is not in tokenizer.ggml.tokens"},
	{"a b c", ": its right part is not in tokenizer.ggml.tokens"},
	{"a b", ": its result is not in tokenizer.ggml.tokens"},
};

START_TEST(refused_merges)
{
	char wanted[128];

	letters("gpt-2");
	pawl_tiny_vocab_add(&tiny, "cd", PAWL_TOKEN_NORMAL);
	pawl_tiny_vocab_add_merge(&tiny, "c d");
	pawl_tiny_vocab_add_merge(&tiny, merges[_i].merge);
	snprintf(wanted, sizeof(wanted), "tokenizer.ggml.merges[1]%s", merges[_i].reason);
	check_refused(PAWL_INVALID_FILE, wanted);
}
END_TEST

Suite *
pawl_vocab_bad_suite(void)
{
	Suite *suite = suite_create("vocab_bad");
	TCase *refused = tcase_create("vocab_bad");

	tcase_add_test(refused, refused_models);
	tcase_add_test(refused, refused_tokens);
	tcase_add_test(refused, refused_ids);
	tcase_add_loop_test(refused, refused_merges, 0, (int)(sizeof(merges) / sizeof(merges[0])));
	suite_add_tcase(suite, refused);
	return suite;
}
