/* Tokens that are cut out of a text: the first, and the longest of those that begin there. */
#include "models/special_tokens.h"
#include "tests/suites.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TOKENS = 12, MAX_BYTES = 8, TEXT = 60 };

static struct pawl_error err;

struct set {
	struct pawl_arena arena;
	struct pawl_special_tokens specials;
	char texts[MAX_TOKENS][MAX_BYTES + 1];
	bool always[MAX_TOKENS];
	int n;
};

static uint32_t
next(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 16;
}

static void
fill(char *text, size_t n, uint32_t n_letters, uint32_t *state)
{
	for (size_t i = 0; i < n; i++)
		text[i] = (char)('a' + next(state) % n_letters);
	text[n] = '\0';
}

static bool
has(const struct set *set, const char *text)
{
	for (int i = 0; i < set->n; i++)
		if (!strcmp(set->texts[i], text))
			return true;
	return false;
}

static void
make(struct set *set, uint32_t n_letters, uint32_t *state)
{
	char text[MAX_BYTES + 1];
	size_t n_bytes = 0;

	set->n = 0;
	for (int i = 0; i < MAX_TOKENS; i++) {
		fill(text, 1 + next(state) % MAX_BYTES, n_letters, state);
		if (has(set, text))
			continue;
		set->always[set->n] = next(state) % 2;
		strcpy(set->texts[set->n++], text);
		n_bytes += strlen(text);
	}
	pawl_arena_init(&set->arena);
	ck_assert_int_eq(
		pawl_special_tokens_init(&set->specials, &set->arena, n_bytes, &err), PAWL_OK);
	for (int i = 0; i < set->n; i++)
		pawl_special_tokens_add(&set->specials,
			(struct pawl_text){set->texts[i], strlen(set->texts[i])}, i, set->always[i]);
	ck_assert_int_eq(pawl_special_tokens_link(&set->specials, &err), PAWL_OK);
}

/* By trying every token at every place. */
static bool
find_slowly(const struct set *set, const char *text, size_t n, size_t start, bool control,
	struct pawl_special_match *match)
{
	for (; start < n; start++) {
		*match = (struct pawl_special_match){start, 0, -1};
		for (int i = 0; i < set->n; i++) {
			size_t n_bytes = strlen(set->texts[i]);

			if ((control || set->always[i]) && n_bytes > match->n &&
				n_bytes <= n - start &&
				!memcmp(text + start, set->texts[i], n_bytes))
				*match = (struct pawl_special_match){start, n_bytes, i};
		}
		if (match->n)
			return true;
	}
	return false;
}

START_TEST(the_first_and_there_the_longest)
{
	uint32_t state = (uint32_t)_i + 1;
	int n_found = 0;

	for (int round = 0; round < 60; round++) {
		struct pawl_special_match match, wanted = {0, 0, -1};
		char text[TEXT + 1];
		struct set set;

		make(&set, 1 + (uint32_t)round % 4, &state);
		for (int i = 0; i < 20; i++) {
			size_t n = next(&state) % TEXT;
			bool control = i % 2;

			fill(text, n, 1 + (uint32_t)round % 4, &state);
			for (size_t start = 0; start <= n; start++) {
				bool finds = pawl_special_tokens_find(
					&set.specials, text, n, start, control, &match);

				ck_assert_int_eq(finds,
					find_slowly(&set, text, n, start, control, &wanted));
				ck_assert(!finds || (match.start == wanted.start &&
							    match.n == wanted.n &&
							    match.id == wanted.id));
				n_found += finds;
			}
		}
		pawl_arena_release(&set.arena);
	}
	ck_assert_int_gt(n_found, 1000);
}
END_TEST

/* Each byte of the text begins what nearly is the token. */
START_TEST(nearly_found_everywhere)
{
	enum { N = 4 << 20, LONG = PAWL_SPECIAL_TOKEN_MAX_BYTES };
	struct pawl_special_tokens specials;
	struct pawl_special_match match;
	struct pawl_arena arena;
	char *text = malloc(N);
	char token[LONG];

	memset(text, 'a', N);
	memset(token, 'a', LONG);
	token[LONG - 1] = 'b';
	pawl_arena_init(&arena);
	ck_assert_int_eq(pawl_special_tokens_init(&specials, &arena, LONG, &err), PAWL_OK);
	pawl_special_tokens_add(&specials, (struct pawl_text){token, LONG}, 7, true);
	ck_assert_int_eq(pawl_special_tokens_link(&specials, &err), PAWL_OK);
	ck_assert(!pawl_special_tokens_find(&specials, text, N, 0, true, &match));
	text[N - 1] = 'b';
	ck_assert(pawl_special_tokens_find(&specials, text, N, 0, true, &match));
	ck_assert_uint_eq(match.start, N - LONG);
	ck_assert_uint_eq(match.n, LONG);
	pawl_arena_release(&arena);
	free(text);
}
END_TEST

START_TEST(no_tokens)
{
	struct pawl_special_tokens specials;
	struct pawl_special_match match;
	struct pawl_arena arena;

	pawl_arena_init(&arena);
	ck_assert_int_eq(pawl_special_tokens_init(&specials, &arena, 0, &err), PAWL_OK);
	ck_assert_int_eq(pawl_special_tokens_link(&specials, &err), PAWL_OK);
	ck_assert(!pawl_special_tokens_find(&specials, "text", 4, 0, true, &match));
	pawl_arena_release(&arena);
}
END_TEST

Suite *
pawl_special_tokens_suite(void)
{
	Suite *suite = suite_create("special_tokens");
	TCase *tests = tcase_create("special_tokens");

	tcase_add_loop_test(tests, the_first_and_there_the_longest, 0, 4);
	tcase_add_test(tests, nearly_found_everywhere);
	tcase_add_test(tests, no_tokens);
	suite_add_tcase(suite, tests);
	return suite;
}
