/* Decoding, validation and the assembler of streamed pieces. */
#include "models/utf8.h"

#include "tests/suites.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* What the first bytes of an ill-formed or cut text are. */
static const struct {
	const char *bytes;
	size_t n;
	int result; /* of pawl_utf8_next */
	uint32_t code;
} firsts[] = {
	{"a", 1, 1, 'a'},
	{"\0", 1, 1, 0},
	{"\x7f", 1, 1, 0x7f},
	{"\xc2\x80", 2, 2, 0x80},
	{"\xdf\xbf", 2, 2, 0x7ff},
	{"\xe0\xa0\x80", 3, 3, 0x800},
	{"\xed\x9f\xbf", 3, 3, 0xd7ff},
	{"\xee\x80\x80", 3, 3, 0xe000},
	{"\xef\xbf\xbf", 3, 3, 0xffff},
	{"\xf0\x90\x80\x80", 4, 4, 0x10000},
	{"\xf4\x8f\xbf\xbf", 4, 4, 0x10ffff},
	{"\xf0\x9f\x98\x80"
	 "a",
		5, 4, 0x1f600},
	{"\xc3", 1, 0, 0},
	{"\xe4\xb8", 2, 0, 0},
	{"\xf0\x9f\x98", 3, 0, 0},
	{"\x80", 1, -1, 0},
	{"\xbf", 1, -1, 0},
	{"\xc0\x80", 2, -1, 0}, /* overlong */
	{"\xc1\xbf", 2, -1, 0},
	{"\xe0\x80\x80", 3, -1, 0},
	{"\xe0\x9f\xbf", 3, -1, 0},
	{"\xf0\x80\x80\x80", 4, -1, 0},
	{"\xf0\x8f\xbf\xbf", 4, -1, 0},
	{"\xed\xa0\x80", 3, -1, 0}, /* surrogates */
	{"\xed\xbf\xbf", 3, -1, 0},
	{"\xf4\x90\x80\x80", 4, -1, 0}, /* above U+10FFFF */
	{"\xf5\x80\x80\x80", 4, -1, 0},
	{"\xff", 1, -1, 0},
	{"\xc3"
	 "a",
		2, -1, 0},
	{"\xe4\xb8"
	 "a",
		3, -2, 0},
	{"\xf0\x9f\x98"
	 "a",
		4, -3, 0},
	{"\xf0\x9f\xff", 3, -2, 0},
	{"\xe4\xc3\xa9", 3, -1, 0},
};

START_TEST(first_character)
{
	uint32_t code = 0xdead;
	char *bytes = malloc(firsts[_i].n);

	ck_assert_ptr_nonnull(bytes);
	memcpy(bytes, firsts[_i].bytes, firsts[_i].n);
	ck_assert_int_eq(pawl_utf8_next(bytes, firsts[_i].n, &code), firsts[_i].result);
	if (firsts[_i].result > 0)
		ck_assert_uint_eq(code, firsts[_i].code);
	else
		ck_assert_uint_eq(code, 0xdead);
	free(bytes);
}
END_TEST

START_TEST(every_code_point_goes_there_and_back)
{
	for (uint32_t code = 0; code <= 0x10ffff; code++) {
		bool surrogate = code >= 0xd800 && code <= 0xdfff;
		uint32_t back = 0;
		char bytes[4];
		int n = pawl_utf8_put(code, bytes);

		if (surrogate) {
			ck_assert_int_eq(pawl_utf8_next(bytes, (size_t)n, &back), -1);
			continue;
		}
		if (pawl_utf8_next(bytes, (size_t)n, &back) != n || back != code)
			ck_abort_msg("U+%04X", (unsigned int)code);
	}
}
END_TEST

START_TEST(valid_prefix)
{
	ck_assert_uint_eq(pawl_utf8_valid_prefix("", 0), 0);
	ck_assert_uint_eq(pawl_utf8_valid_prefix("a\xc3\xa9z", 4), 4);
	ck_assert_uint_eq(pawl_utf8_valid_prefix("a\xc3\xa9\xe9z", 5), 3);
	ck_assert_uint_eq(pawl_utf8_valid_prefix("ab\xf0\x9f\x98", 5), 2);
}
END_TEST

static const struct {
	const char *in;
	size_t n;
	const char *out;
} streams[] = {
	{"plain", 5, "plain"},
	{"\xc3\xaf \xf0\x9f\x99\x82\xf0\x9f\x99\x82", 11,
		"\xc3\xaf \xf0\x9f\x99\x82\xf0\x9f\x99\x82"},
	{"a\x80z", 3, "a\xef\xbf\xbdz"},
	{"cut \xf0\x9f\x98", 7, "cut \xef\xbf\xbd"},
	{"\xe4\xb8"
	 "abc",
		5,
		"\xef\xbf\xbd"
		"abc"},
	{"\xf0\x9f\x98\xc3\xa9", 5, "\xef\xbf\xbd\xc3\xa9"},
	{"\xc3\xc3\xa9", 3, "\xef\xbf\xbd\xc3\xa9"},
	{"\xc0\x80", 2, "\xef\xbf\xbd\xef\xbf\xbd"},
	{"\xed\xa0\x80x", 4, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdx"},
	/* the example of the Unicode standard, table 3-8 */
	{"a\xf1\x80\x80\xe1\x80\xc2"
	 "b\x80"
	 "c\x80\xbf"
	 "d",
		13,
		"a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"
		"b\xef\xbf\xbd"
		"c\xef\xbf\xbd\xef\xbf\xbd"
		"d"},
	{"\xf4\x8f\xbf", 3, "\xef\xbf\xbd"},
	{"\0zero", 5, "\0zero"},
};

/* Feeds the input in pieces whose borders are the set bits of cuts. */
static size_t
run_stream(const char *in, size_t n, unsigned int cuts, char *out)
{
	struct pawl_utf8_stream stream;
	size_t start = 0, n_out = 0;

	pawl_utf8_stream_init(&stream);
	for (size_t end = 1; end <= n; end++) {
		size_t n_piece = end - start, n_room = PAWL_UTF8_STREAM_ROOM(n_piece), k;
		char *piece, *room;

		if (end < n && !(cuts >> (end - 1) & 1))
			continue;
		piece = malloc(n_piece);
		room = malloc(n_room);
		ck_assert(piece && room);
		memcpy(piece, in + start, n_piece);
		k = pawl_utf8_stream_push(&stream, piece, n_piece, room);
		ck_assert_uint_le(k, n_room);
		ck_assert_uint_eq(pawl_utf8_valid_prefix(room, k), k);
		memcpy(out + n_out, room, k);
		n_out += k;
		free(piece);
		free(room);
		start = end;
	}
	n_out += pawl_utf8_stream_flush(&stream, out + n_out);
	ck_assert_uint_eq(stream.n_held, 0);
	return n_out;
}

START_TEST(stream_is_the_same_however_it_is_cut)
{
	size_t n = streams[_i].n, n_wanted = strlen(streams[_i].out);
	char out[128];

	if (streams[_i].out[0] == 0)
		n_wanted = n;
	for (unsigned int cuts = 0; cuts < 1u << (n - 1); cuts++) {
		size_t n_out = run_stream(streams[_i].in, n, cuts, out);

		ck_assert_uint_eq(n_out, n_wanted);
		ck_assert_mem_eq(out, streams[_i].out, n_out);
	}
}
END_TEST

START_TEST(stream_holds_back_a_begun_character_only)
{
	struct pawl_utf8_stream stream;
	char out[PAWL_UTF8_STREAM_ROOM(8)];

	pawl_utf8_stream_init(&stream);
	ck_assert_uint_eq(pawl_utf8_stream_push(&stream, "ab\xf0\x9f", 4, out), 2);
	ck_assert_uint_eq(pawl_utf8_stream_push(&stream, "", 0, out), 0);
	ck_assert_uint_eq(pawl_utf8_stream_push(&stream, "\x98", 1, out), 0);
	ck_assert_uint_eq(pawl_utf8_stream_push(&stream, "\x80", 1, out), 4);
	ck_assert_mem_eq(out, "\xf0\x9f\x98\x80", 4);
	ck_assert_uint_eq(pawl_utf8_stream_flush(&stream, out), 0);
	/* a byte that no character begins with does not wait for more */
	ck_assert_uint_eq(pawl_utf8_stream_push(&stream, "\xff", 1, out), 3);
}
END_TEST

Suite *
pawl_utf8_suite(void)
{
	Suite *suite = suite_create("utf8");
	TCase *decode = tcase_create("decode"), *stream = tcase_create("stream");

	tcase_add_loop_test(decode, first_character, 0, (int)(sizeof(firsts) / sizeof(firsts[0])));
	tcase_add_test(decode, every_code_point_goes_there_and_back);
	tcase_add_test(decode, valid_prefix);
	suite_add_tcase(suite, decode);
	tcase_add_loop_test(stream, stream_is_the_same_however_it_is_cut, 0,
		(int)(sizeof(streams) / sizeof(streams[0])));
	tcase_add_test(stream, stream_holds_back_a_begun_character_only);
	suite_add_tcase(suite, stream);
	return suite;
}
