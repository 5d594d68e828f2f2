/* The rules of each pre-tokenizer, on texts where they differ. */
#include "models/pretokenize.h"

#include "tests/suites.h"

#include <stdlib.h>
#include <string.h>

/* text with a | between words (so none stands in it) */
static const struct {
	const char *name, *words;
} cases[] = {
	/* digits: together, alone, at most three */
	{"gpt-2", "3| 33| 333| 3333"},
	{"smollm", "3| |3|3| |3|3|3| |3|3|3|3"},
	{"llama-bpe", "3| |33| |333| |333|3"},
	{"qwen2", "3| |3|3| |3|3|3| |3|3|3|3"},
	{"qwen35", "3| |3|3| |3|3|3| |3|3|3|3"},
	{"gpt-4o", "3| |33| |333| |333|3"},
	{"tekken", "3| |3|3| |3|3|3| |3|3|3|3"},
	{"deepseek-v3", "3| |33| |333| |333|3"},
	/* a number sign of any kind is a number */
	{"smollm", "x|\xc2\xb2|\xe2\x85\xa3|\xe2\x91\xa0"},
	{"gpt-2", "x|\xc2\xb2\xe2\x85\xa3\xe2\x91\xa0"},
	/* the space before a word, runs of spaces, before a digit cut off by an earlier rule */
	{"gpt-2", "a|  | b|   "},
	{"smollm", "a|  | b|   |1|  | c"},
	{"gpt-2", "a|  | 1"},
	{"llama-bpe", "a|  | b|  | |1"},
	/* contractions: case matters for gpt-2 only; the long s is no s */
	{"gpt-2", "I|'m| we|'ll| IT|'|S"},
	{"llama-bpe", "I|'m| we|'ll| IT|'S| It|'Ll"},
	{"qwen2", "I|'m| we|'RE|'S|x| x|'\xc5\xbfx"},
	{"gpt-4o", "I'm| we'll| IT'S"},
	{"tekken", "I|'m| we|'ll"},
	/* one mark or space before a word joins it, newlines do not */
	{"gpt-2", "(|a|.|b|\n|c"},
	{"llama-bpe", "(a|.b|\n|c|\t\t|\td"},
	{"deepseek-v3", "(a|.b|\n|c"},
	/* line ends after marks and in runs of spaces */
	{"gpt-2", "x|;|\n\n  \n| y"},
	{"llama-bpe", "x|;\n\n|  \n| y"},
	{"gpt-4o", "x|;/\n/| y"},
	{"qwen2", "one|  \r\n\r\n|two|  "},
	{"llama-bpe", "''''``"},
	{"gpt-2", "''''``"},
	/* upper and lower case part where the rules say so */
	{"gpt-4o", "camel|Case|HTMLPage"},
	{"tekken", "camel|Case"},
	{"llama-bpe", "camelCase"},
	/* combining marks: words for some, marks of their own for others */
	{"llama-bpe", "e|\xcc\x81x|\xcc\x81\xcc\x81"},
	{"qwen2", "e|\xcc\x81x|\xcc\x81\xcc\x81"},
	{"qwen35", "e\xcc\x81x"},
	{"gpt-4o", "e\xcc\x81x"},
	/* Khmer: its vowels are marks */
	{"gpt-2", "\xe1\x9e\x9f|\xe1\x9e\xbd|\xe1\x9e\x9f"},
	{"qwen35", "\xe1\x9e\x9f\xe1\x9e\xbd\xe1\x9e\x9f"},
	/* Han and kana */
	{"gpt-2", "Hello\xe4\xb8\x96\xe7\x95\x8c|!"},
	{"deepseek-v3", "Hello|\xe4\xb8\x96\xe3\x81\x84|!"},
	/* emoji with a joiner; unassigned; private use */
	{"llama-bpe", "a| \xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7|b"},
	{"gpt-2", "\xcd\xb8\xee\x80\x80|a"},
	/* spaces of Unicode; U+180E and U+200B are none */
	{"gpt-2", "a|\xc2\xa0|b|\xe3\x80\x80|\xe3\x80\x80|c|\xc2\x85|d"},
	{"gpt-2", "a| \xe1\xa0\x8e|b| \xe2\x80\x8b|c"},
	/* control characters are marks; between the rules of deepseek-v3 they are left over */
	{"gpt-2", "\x01\x02|a"},
	{"deepseek-v3", "\x01|\x02"
			"a"},
	{"deepseek-v3", "a|\x01\x02|1|\x03"},
};

static void
split(const char *name, const char *text, size_t n, struct pawl_word_list *words)
{
	struct pawl_pretokenizer *pretokenizer;
	struct pawl_error err = {0};

	ck_assert_msg(pawl_pretokenizer_new((struct pawl_text){name, strlen(name)}, &pretokenizer,
			      &err) == PAWL_OK,
		"%s", err.text);
	ck_assert_msg(pawl_pretokenizer_split(pretokenizer, text, n, words, &err) == PAWL_OK, "%s",
		err.text);
	pawl_pretokenizer_free(pretokenizer);
}

START_TEST(words)
{
	const char *wanted = cases[_i].words;
	size_t n = 0, start = 0, n_found = 0;
	char *text = malloc(strlen(wanted) + 1), *found = malloc(2 * strlen(wanted) + 1);
	struct pawl_word_list list;

	ck_assert(text && found);
	for (const char *p = wanted; *p; p++) {
		if (*p != '|')
			text[n++] = *p;
	}
	pawl_word_list_init(&list);
	split(cases[_i].name, text, n, &list);
	for (size_t i = 0; i < list.n; i++) {
		if (i)
			found[n_found++] = '|';
		ck_assert_uint_gt(list.ends[i], start);
		ck_assert_uint_le(list.ends[i], n);
		memcpy(found + n_found, text + start, list.ends[i] - start);
		n_found += list.ends[i] - start;
		start = list.ends[i];
	}
	found[n_found] = 0;
	ck_assert_str_eq(found, wanted);
	pawl_word_list_release(&list);
	free(text);
	free(found);
}
END_TEST

START_TEST(no_text_no_words)
{
	struct pawl_word_list list;

	pawl_word_list_init(&list);
	split("gpt-2", "abc", 3, &list);
	ck_assert_uint_eq(list.n, 1);
	split("gpt-2", "", 0, &list);
	ck_assert_uint_eq(list.n, 0);
	pawl_word_list_release(&list);
}
END_TEST

static const struct {
	const char *name, *shown;
} unknown[] = {
	{"", "''"},
	{"default", "'default'"},
	{"gpt-2x", "'gpt-2x'"},
	{"bad\n\xff", "'bad?\?'"},
	{"a name that is a good deal longer than any that somebody would give",
		"'a name that is a good deal longer than any that somebody wou...'"},
};

START_TEST(unknown_names_are_named)
{
	struct pawl_text name = {unknown[_i].name, strlen(unknown[_i].name)};
	struct pawl_pretokenizer *pretokenizer;
	struct pawl_error err = {0};

	ck_assert_int_eq(pawl_pretokenizer_new(name, &pretokenizer, &err), PAWL_UNSUPPORTED);
	ck_assert_ptr_null(pretokenizer);
	ck_assert_msg(strstr(err.text, unknown[_i].shown) != NULL, "%s", err.text);
}
END_TEST

Suite *
pawl_pretokenize_suite(void)
{
	Suite *suite = suite_create("pretokenize");
	TCase *tests = tcase_create("rules");

	tcase_add_loop_test(tests, words, 0, (int)(sizeof(cases) / sizeof(cases[0])));
	tcase_add_test(tests, no_text_no_words);
	tcase_add_loop_test(
		tests, unknown_names_are_named, 0, (int)(sizeof(unknown) / sizeof(unknown[0])));
	suite_add_tcase(suite, tests);
	return suite;
}
