/* Vocabularies with scores: what text becomes which tokens, against merging spelt out and a slow
 * search. */
#include "models/sentencepiece.h"

#include "ir/random_parts.h"
#include "models/tokenizer.h"
#include "tests/suites.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SPACE PAWL_SENTENCEPIECE_SPACE

enum { MAX = 400, UNK = 0, BOS, BYTES, FIRST = BYTES + 256 };

static struct pawl_vocab_source source;
static struct pawl_text texts[MAX];
static int32_t types[MAX];
static float scores[MAX];
static char byte_texts[256][8];

static int32_t
add(const char *text, enum pawl_token_type type, float score)
{
	size_t id = source.n_tokens++;

	ck_assert_uint_lt(id, MAX);
	texts[id] = (struct pawl_text){text, strlen(text)};
	types[id] = type;
	scores[id] = score;
	source.n_token_types = source.n_scores = source.n_tokens;
	return (int32_t)id;
}

static void
begin(void)
{
	pawl_vocab_source_init(&source);
	source.model = (struct pawl_text){"llama", 5};
	source.tokens = texts;
	source.token_types = types;
	source.scores = scores;
	source.unknown = add("<unk>", PAWL_TOKEN_UNKNOWN, 0);
	source.bos = add("<s>", PAWL_TOKEN_CONTROL, 0);
	for (int i = 0; i < 256; i++) {
		snprintf(byte_texts[i], sizeof(byte_texts[i]), "<0x%02X>", (unsigned int)i);
		add(byte_texts[i], PAWL_TOKEN_BYTE, 0);
	}
	source.add_space_prefix = 0;
}

static struct pawl_tokenizer *
make(void)
{
	struct pawl_tokenizer *tokenizer;
	struct pawl_error err = {0};

	ck_assert_msg(pawl_tokenizer_new(&source, &tokenizer, &err) == PAWL_OK, "%s", err.text);
	return tokenizer;
}

static void
encode(const struct pawl_tokenizer *t, const char *text, size_t n, unsigned int flags,
	struct pawl_token_list *list)
{
	struct pawl_error err = {0};

	pawl_token_list_init(list);
	ck_assert_msg(
		pawl_tokenizer_encode(t, text, n, flags, list, &err) == PAWL_OK, "%s", err.text);
}

static void
check(const struct pawl_tokenizer *t, const char *text, unsigned int flags, const uint32_t *ids,
	size_t n)
{
	struct pawl_token_list list;

	encode(t, text, strlen(text), flags, &list);
	ck_assert_msg(list.n == n, "%s: %zu ids, not %zu", text, list.n, n);
	for (size_t i = 0; i < n; i++)
		ck_assert_msg(list.ids[i] == ids[i], "%s: id %zu is %u, not %u", text, i,
			(unsigned int)list.ids[i], (unsigned int)ids[i]);
	pawl_token_list_release(&list);
}

#define IDS(...) \
	(const uint32_t[]){__VA_ARGS__}, sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)

static void
check_text(const struct pawl_tokenizer *t, const uint32_t *ids, size_t n, const char *wanted)
{
	size_t n_text;
	char *text;

	ck_assert_int_eq(pawl_tokenizer_decode(t, ids, n, false, &text, &n_text, NULL), PAWL_OK);
	ck_assert_str_eq(text, wanted);
	ck_assert_uint_eq(n_text, strlen(wanted));
	free(text);
}

START_TEST(the_best_score_first)
{
	int32_t a = add("a", PAWL_TOKEN_NORMAL, -9), b = add("b", PAWL_TOKEN_NORMAL, -9);
	int32_t c = add("c", PAWL_TOKEN_NORMAL, -9), ab = add("ab", PAWL_TOKEN_NORMAL, -2);
	int32_t bc = add("bc", PAWL_TOKEN_NORMAL, -1), abc = add("abc", PAWL_TOKEN_NORMAL, -3);
	int32_t aa = add("aa", PAWL_TOKEN_NORMAL, -0.0f), cc = add("cc", PAWL_TOKEN_NORMAL, 0);
	struct pawl_tokenizer *t = make();

	check(t, "ab", 0, IDS(ab));
	check(t, "abc", 0, IDS(abc)); /* a bc, then abc */
	check(t, "abb", 0, IDS(ab, b));
	check(t, "bcb", 0, IDS(bc, b));
	check(t, "aaa", 0, IDS(aa, a)); /* the leftmost of equal ones */
	check(t, "aaaa", 0, IDS(aa, aa));
	check(t, "aacc", 0, IDS(aa, cc));
	check(t, "ca", 0, IDS(c, a));
	pawl_tokenizer_free(t);
}
END_TEST

START_TEST(spaces_are_written_otherwise)
{
	int32_t a = add("a", PAWL_TOKEN_NORMAL, -9), space = add(SPACE, PAWL_TOKEN_NORMAL, -9);
	int32_t word = add(SPACE "a", PAWL_TOKEN_NORMAL, -1);
	int32_t run = add("  ", PAWL_TOKEN_USER_DEFINED, -1000);
	struct pawl_tokenizer *t = make();

	check(t, " a", 0, IDS(word));
	check(t, "a a", 0, IDS(a, word));
	check(t, "a ", 0, IDS(a, space));
	check(t, SPACE "a", 0, IDS(word));
	/* What is cut out is cut out first, and as it is written. */
	check(t, "  a", 0, IDS(run, a));
	check(t, "   a", 0, IDS(run, word));
	check(t, SPACE SPACE "a", 0, IDS(space, word));
	check_text(t, IDS(a, word, run, space, a), "a a   a");
	pawl_tokenizer_free(t);
}
END_TEST

START_TEST(what_is_no_token_becomes_bytes)
{
	int32_t a = add("a", PAWL_TOKEN_NORMAL, -9), pair = add("\xc3\xa9z", PAWL_TOKEN_NORMAL, -9);
	struct pawl_tokenizer *t = make();

	check(t, "b", 0, IDS(BYTES + 'b'));
	check(t,
		"a\xc3\xa9"
		"a",
		0, IDS(a, BYTES + 0xc3, BYTES + 0xa9, a));
	check(t, "\xc3\xa9z", 0, IDS(pair)); /* neither of the two is a token */
	check(t, " ", 0, IDS(BYTES + 0xe2, BYTES + 0x96, BYTES + 0x81));
	check(t, "\n", 0, IDS(BYTES + '\n'));
	check_text(t, IDS(BYTES + 0xc3, BYTES + 0xa9, a, BYTES + 'b'),
		"\xc3\xa9"
		"ab");
	pawl_tokenizer_free(t);
}
END_TEST

/* Every token of these is as good as can be, so that only what they are keeps them out. */
START_TEST(merging_gives_no_special_token)
{
	int32_t less = add("<", PAWL_TOKEN_NORMAL, -9), x = add("x", PAWL_TOKEN_NORMAL, -9);
	int32_t more = add(">", PAWL_TOKEN_NORMAL, -9), open = add("<x", PAWL_TOKEN_NORMAL, -9);
	int32_t control = add("<x>", PAWL_TOKEN_CONTROL, 5);
	int32_t unk = add("xx", PAWL_TOKEN_UNKNOWN, 5);
	struct pawl_tokenizer *t;

	add("<0", PAWL_TOKEN_NORMAL, -9);
	add("<0x", PAWL_TOKEN_NORMAL, -9);
	add("<0x4", PAWL_TOKEN_NORMAL, -9);
	add("<0x41", PAWL_TOKEN_NORMAL, -9);
	t = make();
	check(t, "<x>", 0, IDS(open, more));
	check(t, "<x>", PAWL_ENCODE_SPECIAL, IDS(control));
	check(t, "xx", 0, IDS(x, x));
	check(t, "xx", PAWL_ENCODE_SPECIAL, IDS(unk));
	check(t, "<0x41>", 0, IDS(control + 5, more));
	check(t, "<", PAWL_ENCODE_BOS, IDS(BOS, less));
	ck_assert(pawl_tokenizer_wants_bos(t));
	pawl_tokenizer_free(t);
	source.add_bos = 0;
	t = make();
	ck_assert(!pawl_tokenizer_wants_bos(t));
	pawl_tokenizer_free(t);
}
END_TEST

START_TEST(a_space_in_front)
{
	int32_t a = add("a", PAWL_TOKEN_NORMAL, -9), word = add(SPACE "a", PAWL_TOKEN_NORMAL, -1);
	int32_t mark = add("<m>", PAWL_TOKEN_CONTROL, 0);
	struct pawl_tokenizer *t;

	source.add_space_prefix = -1; /* as files mean it that do not say */
	t = make();
	check(t, "aa", 0, IDS(word, a));
	check(t, "", 0, NULL, 0);
	check(t, "a<m>a", PAWL_ENCODE_SPECIAL, IDS(word, mark, word));
	check_text(t, IDS(BOS, word, a, word), "aa a");
	check_text(t, IDS(a, word), "a a");
	pawl_tokenizer_free(t);
}
END_TEST

/* Merges the best neighbours of the whole text again and again. */
static size_t
search(const char *text, size_t n, int32_t *ids)
{
	size_t starts[64], n_parts = n;

	for (size_t i = 0; i <= n; i++)
		starts[i] = i;
	for (;;) {
		size_t best = 0;
		int32_t best_id = -1;

		for (size_t i = 0; i + 1 < n_parts; i++) {
			size_t length = starts[i + 2] - starts[i];

			for (int32_t id = FIRST; id < (int32_t)source.n_tokens; id++) {
				if (texts[id].n != length ||
					memcmp(texts[id].bytes, text + starts[i], length) != 0)
					continue;
				if (best_id < 0 || scores[id] > scores[best_id]) {
					best_id = id;
					best = i;
				}
			}
		}
		if (best_id < 0)
			break;
		memmove(starts + best + 1, starts + best + 2,
			(n_parts - best - 1) * sizeof(starts[0]));
		n_parts--;
	}
	for (size_t i = 0; i < n_parts; i++) {
		ids[i] = BYTES + (unsigned char)text[starts[i]];
		for (int32_t id = FIRST; id < (int32_t)source.n_tokens; id++)
			if (texts[id].n == starts[i + 1] - starts[i] &&
				!memcmp(texts[id].bytes, text + starts[i], texts[id].n))
				ids[i] = id;
	}
	return n_parts;
}

static int
below(uint64_t *state, int n)
{
	return (int)(pawl_random_next(state) % (uint64_t)n);
}

static bool
is_new(const char *text)
{
	for (size_t id = 0; id < source.n_tokens; id++)
		if (pawl_text_is(texts[id], text))
			return false;
	return true;
}

START_TEST(random_texts)
{
	static char words[60][8];
	uint64_t state = (uint64_t)_i;
	struct pawl_tokenizer *t;
	int32_t wanted[64];

	for (int i = 0; i < 60; i++) {
		int n = 1 + below(&state, 5);

		for (int j = 0; j < n; j++)
			words[i][j] = "abc"[below(&state, 3)];
		words[i][n] = 0;
		if (is_new(words[i])) /* few scores, so that many are equal */
			add(words[i], PAWL_TOKEN_NORMAL, -(float)below(&state, 8));
	}
	t = make();
	for (int round = 0; round < 200; round++) {
		size_t n = 1 + (size_t)below(&state, 40), n_wanted;
		struct pawl_token_list list;
		char text[64];

		for (size_t i = 0; i < n; i++)
			text[i] = "abcd"[below(&state, round % 2 ? 3 : 4)];
		n_wanted = search(text, n, wanted);
		encode(t, text, n, 0, &list);
		ck_assert_msg(list.n == n_wanted &&
				      !memcmp(list.ids, wanted, n_wanted * sizeof(wanted[0])),
			"%.*s", (int)n, text);
		pawl_token_list_release(&list);
	}
	pawl_tokenizer_free(t);
}
END_TEST

static void
check_refused(enum pawl_status status, const char *message)
{
	struct pawl_tokenizer *t;
	struct pawl_error err = {0};

	ck_assert_int_eq(pawl_tokenizer_new(&source, &t, &err), status);
	ck_assert_ptr_null(t);
	ck_assert_str_eq(err.text, message);
}

START_TEST(refused_vocabularies)
{
	add("a", PAWL_TOKEN_NORMAL, NAN);
	check_refused(PAWL_INVALID_FILE, "tokenizer.ggml.scores[258] is no finite number");
	scores[FIRST] = -INFINITY;
	check_refused(PAWL_INVALID_FILE, "tokenizer.ggml.scores[258] is no finite number");
	scores[FIRST] = 0;
	source.n_scores--;
	check_refused(PAWL_INVALID_FILE,
		"tokenizer.ggml.scores has 258 elements, tokenizer.ggml.tokens 259");
	source.n_scores++;
	pawl_tokenizer_free(make());
	types[BYTES + 10] = PAWL_TOKEN_NORMAL;
	check_refused(PAWL_UNSUPPORTED,
		"tokenizer.ggml.tokens has no byte token <0x0A>; vocabularies without byte "
		"fallback are not supported");
}
END_TEST

START_TEST(bytes_are_written_in_one_way)
{
	struct pawl_tokenizer *t;

	add("<0x0b>", PAWL_TOKEN_BYTE, 0);
	t = make();
	/* Found by the one in capitals, which other readers know, and read in both. */
	check(t, "\x0b", 0, IDS(BYTES + 0x0b));
	check_text(t, IDS(FIRST, BYTES + 0x0b), "\x0b\x0b");
	pawl_tokenizer_free(t);
	add("<0x0G>", PAWL_TOKEN_BYTE, 0);
	check_refused(PAWL_INVALID_FILE,
		"tokenizer.ggml.token_type[259] says that the token is a byte, but it is not "
		"written as <0x0A> is");
}
END_TEST

START_TEST(ranks_are_ordered_as_scores_are)
{
	static const float ordered[] = {
		3e38f, 1, 0.5f, 1e-45f, 0, -1e-45f, -0.5f, -1, -1000, -3e38f};
	size_t n = sizeof(ordered) / sizeof(ordered[0]);

	for (size_t i = 0; i + 1 < n; i++)
		ck_assert_uint_lt(pawl_sentencepiece_rank(ordered[i]),
			pawl_sentencepiece_rank(ordered[i + 1]));
	ck_assert_uint_lt(pawl_sentencepiece_rank(ordered[n - 1]), PAWL_SENTENCEPIECE_NEVER);
	ck_assert_uint_eq(pawl_sentencepiece_rank(0.0f), pawl_sentencepiece_rank(-0.0f));
}
END_TEST

Suite *
pawl_sentencepiece_suite(void)
{
	Suite *suite = suite_create("sentencepiece");
	TCase *tests = tcase_create("vocabulary");

	tcase_add_checked_fixture(tests, begin, NULL);
	tcase_add_test(tests, the_best_score_first);
	tcase_add_test(tests, spaces_are_written_otherwise);
	tcase_add_test(tests, what_is_no_token_becomes_bytes);
	tcase_add_test(tests, merging_gives_no_special_token);
	tcase_add_test(tests, a_space_in_front);
	tcase_add_loop_test(tests, random_texts, 0, 8);
	tcase_add_test(tests, refused_vocabularies);
	tcase_add_test(tests, bytes_are_written_in_one_way);
	tcase_add_test(tests, ranks_are_ordered_as_scores_are);
	suite_add_tcase(suite, tests);
	return suite;
}
