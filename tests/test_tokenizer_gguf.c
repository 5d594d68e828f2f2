/* The vocabulary of a GGUF file: what is taken, and how what is wrong is named. */
#include "models/tokenizer_gguf.h"

#include "tests/gguf_build.h"
#include "tests/suites.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const tokens[] = {"a", "b", "ab", "<|im_start|>", "<|im_end|>"};
static const int32_t types[] = {1, 1, 1, 3, 3};
static const char *const merges[] = {"a b"};

#define KEY(name) "tokenizer.ggml." name

/* A whole vocabulary but for the key without (may be NULL). */
static struct pawl_gguf_build *
build(const char *without)
{
	struct pawl_gguf_build *b = pawl_gguf_build_new(3);

	if (!without)
		without = "";
	pawl_gguf_build_string(b, "general.architecture", "llama");
	if (strcmp(without, KEY("model")) != 0)
		pawl_gguf_build_string(b, KEY("model"), "gpt2");
	if (strcmp(without, KEY("pre")) != 0)
		pawl_gguf_build_string(b, KEY("pre"), "smollm");
	if (strcmp(without, KEY("tokens")) != 0)
		pawl_gguf_build_strings(b, KEY("tokens"), tokens, 5);
	if (strcmp(without, KEY("token_type")) != 0)
		pawl_gguf_build_array(b, KEY("token_type"), PAWL_GGUF_I32, types, 5);
	if (strcmp(without, KEY("merges")) != 0)
		pawl_gguf_build_strings(b, KEY("merges"), merges, 1);
	if (strcmp(without, KEY("eos_token_id")) != 0)
		pawl_gguf_build_u32(b, KEY("eos_token_id"), 4);
	return b;
}

static struct pawl_gguf *
parse(struct pawl_gguf_build *b, void **bytes)
{
	struct pawl_gguf *gguf;
	struct pawl_error err = {0};
	size_t n;

	*bytes = pawl_gguf_build_finish(b, &n);
	ck_assert_msg(pawl_gguf_parse(*bytes, n, "x.gguf", &gguf, &err) == PAWL_OK, "%s", err.text);
	return gguf;
}

static struct pawl_tokenizer *
take(struct pawl_gguf_build *b)
{
	struct pawl_tokenizer *tokenizer;
	struct pawl_error err = {0};
	void *bytes;
	struct pawl_gguf *gguf = parse(b, &bytes);

	ck_assert_msg(pawl_tokenizer_from_gguf(gguf, &tokenizer, &err) == PAWL_OK, "%s", err.text);
	pawl_gguf_free(gguf);
	free(bytes);
	return tokenizer;
}

/* The message is "x.gguf: " and has the parts in it. */
static void
check_refused(
	struct pawl_gguf_build *b, enum pawl_status status, const char *key, const char *reason)
{
	struct pawl_tokenizer *tokenizer;
	struct pawl_error err = {0};
	void *bytes;
	struct pawl_gguf *gguf = parse(b, &bytes);

	ck_assert_int_eq(pawl_tokenizer_from_gguf(gguf, &tokenizer, &err), status);
	ck_assert_ptr_null(tokenizer);
	ck_assert_int_eq(err.status, status);
	ck_assert_msg(strncmp(err.text, "x.gguf: ", 8) == 0, "%s", err.text);
	ck_assert_msg(strstr(err.text, key) != NULL, "%s", err.text);
	ck_assert_msg(strstr(err.text, reason) != NULL, "%s", err.text);
	ck_assert_int_eq(pawl_tokenizer_from_gguf(gguf, &tokenizer, NULL), status);
	pawl_gguf_free(gguf);
	free(bytes);
}

START_TEST(everything_is_taken)
{
	struct pawl_gguf_build *b = build(NULL);
	struct pawl_tokenizer *tokenizer;
	struct pawl_token_list list;
	size_t n;

	pawl_gguf_build_u32(b, KEY("bos_token_id"), 3);
	pawl_gguf_build_u32(b, KEY("eot_token_id"), 1);
	pawl_gguf_build_u32(b, KEY("unknown_token_id"), 0);
	pawl_gguf_build_u32(b, KEY("padding_token_id"), 4);
	pawl_gguf_build_bool(b, KEY("add_bos_token"), true);
	tokenizer = take(b);
	ck_assert_uint_eq(pawl_tokenizer_n_vocab(tokenizer), 5);
	ck_assert_int_eq(pawl_tokenizer_bos(tokenizer), 3);
	ck_assert_int_eq(pawl_tokenizer_eos(tokenizer), 4);
	ck_assert(pawl_tokenizer_wants_bos(tokenizer));
	pawl_tokenizer_eog(tokenizer, &n);
	ck_assert_uint_eq(n, 2);
	ck_assert(pawl_tokenizer_is_eog(tokenizer, 1));
	ck_assert_int_eq(pawl_tokenizer_find(tokenizer, "ab", 2), 2);
	pawl_token_list_init(&list);
	ck_assert_int_eq(pawl_tokenizer_encode(tokenizer, "ab<|im_end|>", 12,
				 PAWL_ENCODE_SPECIAL | PAWL_ENCODE_BOS, &list, NULL),
		PAWL_OK);
	ck_assert_uint_eq(list.n, 3);
	ck_assert_int_eq(list.ids[0], 3);
	ck_assert_int_eq(list.ids[1], 2);
	ck_assert_int_eq(list.ids[2], 4);
	pawl_token_list_release(&list);
	pawl_tokenizer_free(tokenizer);
}
END_TEST

START_TEST(what_may_be_missing)
{
	pawl_tokenizer_free(take(build(KEY("token_type"))));
	pawl_tokenizer_free(take(build(KEY("eos_token_id"))));
}
END_TEST

START_TEST(what_must_be_there)
{
	static const char *const keys[] = {KEY("model"), KEY("pre"), KEY("tokens"), KEY("merges")};

	for (size_t i = 0; i < 4; i++)
		check_refused(build(keys[i]), PAWL_INVALID_FILE, keys[i], "is missing");
}
END_TEST

START_TEST(other_models_are_named)
{
	struct pawl_gguf_build *b = pawl_gguf_build_new(3);

	pawl_gguf_build_string(b, KEY("model"), "bert");
	check_refused(b, PAWL_UNSUPPORTED, KEY("model"), "'bert'");
	b = build(KEY("pre"));
	pawl_gguf_build_string(b, KEY("pre"), "strange");
	check_refused(b, PAWL_UNSUPPORTED, KEY("pre"), "'strange'");
}
END_TEST

/* A vocabulary with scores, all tokens being bytes. */
static struct pawl_gguf_build *
build_scores(const char *without)
{
	struct pawl_gguf_build *b = pawl_gguf_build_new(3);
	char texts[256][8];
	const char *names[256];
	int32_t kinds[256];
	float scores[256] = {0};

	for (int i = 0; i < 256; i++) {
		snprintf(texts[i], sizeof(texts[i]), "<0x%02x>", (unsigned int)i);
		names[i] = texts[i];
		kinds[i] = PAWL_TOKEN_BYTE;
	}
	pawl_gguf_build_string(b, KEY("model"), "llama");
	pawl_gguf_build_strings(b, KEY("tokens"), names, 256);
	pawl_gguf_build_array(b, KEY("token_type"), PAWL_GGUF_I32, kinds, 256);
	if (strcmp(without, KEY("scores")) != 0)
		pawl_gguf_build_array(b, KEY("scores"), PAWL_GGUF_F32, scores, 256);
	return b;
}

START_TEST(scores_are_taken)
{
	struct pawl_gguf_build *b = build_scores("");
	struct pawl_token_list list;
	struct pawl_tokenizer *tokenizer;

	for (int space = 0; space < 2; space++) {
		b = space ? build_scores("") : b;
		pawl_gguf_build_bool(b, KEY("add_space_prefix"), space);
		tokenizer = take(b);
		pawl_token_list_init(&list);
		ck_assert_int_eq(
			pawl_tokenizer_encode(tokenizer, "J", 1, 0, &list, NULL), PAWL_OK);
		ck_assert_uint_eq(list.n, space ? 4 : 1);
		ck_assert_int_eq(list.ids[list.n - 1], 'J');
		pawl_token_list_release(&list);
		pawl_tokenizer_free(tokenizer);
	}
	check_refused(
		build_scores(KEY("scores")), PAWL_INVALID_FILE, KEY("scores"), "is missing");
	b = build_scores(KEY("scores"));
	pawl_gguf_build_array(b, KEY("scores"), PAWL_GGUF_I32, types, 5);
	check_refused(b, PAWL_INVALID_FILE, KEY("scores"), "array of i32");
	b = build_scores("");
	pawl_gguf_build_u32(b, KEY("add_space_prefix"), 1);
	check_refused(b, PAWL_INVALID_FILE, KEY("add_space_prefix"), "found u32");
}
END_TEST

START_TEST(wrong_types)
{
	static const int32_t numbers[] = {1, 2, 3, 4, 5};
	static const uint8_t small[] = {1, 1, 1};
	struct pawl_gguf_build *b = build(KEY("tokens"));

	pawl_gguf_build_array(b, KEY("tokens"), PAWL_GGUF_I32, numbers, 5);
	check_refused(b, PAWL_INVALID_FILE, KEY("tokens"), "array of i32");
	b = build(KEY("merges"));
	pawl_gguf_build_string(b, KEY("merges"), "a b");
	check_refused(b, PAWL_INVALID_FILE, KEY("merges"), "found string");
	b = build(KEY("token_type"));
	pawl_gguf_build_strings(b, KEY("token_type"), tokens, 5);
	check_refused(b, PAWL_INVALID_FILE, KEY("token_type"), "array of string");
	b = build(KEY("token_type"));
	pawl_gguf_build_array(b, KEY("token_type"), PAWL_GGUF_U8, small, 3);
	check_refused(b, PAWL_INVALID_FILE, KEY("token_type"), "");
	b = build(KEY("eos_token_id"));
	pawl_gguf_build_string(b, KEY("eos_token_id"), "4");
	check_refused(b, PAWL_INVALID_FILE, KEY("eos_token_id"), "found string");
	b = build(KEY("eos_token_id"));
	pawl_gguf_build_f32(b, KEY("eos_token_id"), 4);
	check_refused(b, PAWL_INVALID_FILE, KEY("eos_token_id"), "found f32");
	b = build(NULL);
	pawl_gguf_build_u32(b, KEY("add_bos_token"), 1);
	check_refused(b, PAWL_INVALID_FILE, KEY("add_bos_token"), "found u32");
}
END_TEST

START_TEST(ids_outside_of_the_vocabulary)
{
	static const char *const keys[] = {KEY("bos_token_id"), KEY("eos_token_id"),
		KEY("eot_token_id"), KEY("unknown_token_id"), KEY("padding_token_id")};

	for (size_t i = 0; i < 5; i++) {
		struct pawl_gguf_build *b = build(KEY("eos_token_id"));

		pawl_gguf_build_u32(b, keys[i], 5);
		check_refused(b, PAWL_INVALID_FILE, keys[i],
			"is 5, tokenizer.ggml.tokens has 5 elements");
		b = build(KEY("eos_token_id"));
		pawl_gguf_build_u64(b, keys[i], UINT64_MAX);
		check_refused(b, PAWL_INVALID_FILE, keys[i], "18446744073709551615 is no token id");
		b = build(KEY("eos_token_id"));
		pawl_gguf_build_i32(b, keys[i], -1);
		check_refused(b, PAWL_INVALID_FILE, keys[i], "");
	}
}
END_TEST

START_TEST(errors_say_where_the_value_is)
{
	struct pawl_gguf_build *b = build(KEY("merges"));
	static const char *const bad[] = {"a b", "a c"};

	pawl_gguf_build_strings(b, KEY("merges"), bad, 2);
	check_refused(b, PAWL_INVALID_FILE,
		": tokenizer.ggml.merges[1]: its right part is not in tokenizer.ggml.tokens",
		"x.gguf: byte ");
	b = build(KEY("token_type"));
	pawl_gguf_build_array(b, KEY("token_type"), PAWL_GGUF_I32, types, 4);
	check_refused(b, PAWL_INVALID_FILE,
		": tokenizer.ggml.token_type has 4 elements, tokenizer.ggml.tokens 5",
		"x.gguf: byte ");
}
END_TEST

START_TEST(chat_template)
{
	struct pawl_gguf_build *b = build(NULL);
	struct pawl_error err = {0};
	struct pawl_text template;
	struct pawl_gguf *gguf;
	void *bytes;

	gguf = parse(b, &bytes);
	ck_assert_int_eq(pawl_chat_template_from_gguf(gguf, &template, &err), PAWL_OK);
	ck_assert_uint_eq(template.n, 0);
	pawl_gguf_free(gguf);
	free(bytes);
	b = build(NULL);
	pawl_gguf_build_string(b, "tokenizer.chat_template", "{{ x }}");
	gguf = parse(b, &bytes);
	ck_assert_int_eq(pawl_chat_template_from_gguf(gguf, &template, &err), PAWL_OK);
	ck_assert_uint_eq(template.n, 7);
	ck_assert_mem_eq(template.bytes, "{{ x }}", 7);
	pawl_gguf_free(gguf);
	free(bytes);
	b = build(NULL);
	pawl_gguf_build_u32(b, "tokenizer.chat_template", 1);
	gguf = parse(b, &bytes);
	ck_assert_int_eq(pawl_chat_template_from_gguf(gguf, &template, &err), PAWL_INVALID_FILE);
	ck_assert_uint_eq(template.n, 0);
	pawl_gguf_free(gguf);
	free(bytes);
}
END_TEST

Suite *
pawl_tokenizer_gguf_suite(void)
{
	Suite *suite = suite_create("tokenizer_gguf");
	TCase *tests = tcase_create("vocabulary");

	tcase_add_test(tests, everything_is_taken);
	tcase_add_test(tests, what_may_be_missing);
	tcase_add_test(tests, what_must_be_there);
	tcase_add_test(tests, other_models_are_named);
	tcase_add_test(tests, scores_are_taken);
	tcase_add_test(tests, wrong_types);
	tcase_add_test(tests, ids_outside_of_the_vocabulary);
	tcase_add_test(tests, errors_say_where_the_value_is);
	tcase_add_test(tests, chat_template);
	suite_add_tcase(suite, tests);
	return suite;
}
