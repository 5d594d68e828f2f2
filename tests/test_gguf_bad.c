#include "models/gguf.h"

#include "tests/bad_gguf_corpus.h"
#include "tests/gguf_build.h"
#include "tests/suites.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* Reads a copy of exactly n bytes, so that a sanitizer sees any read past the end. */
static enum pawl_status
parse(const void *bytes, size_t n, struct pawl_error *err)
{
	struct pawl_gguf *gguf = NULL;
	char *copy = malloc(n ? n : 1);
	enum pawl_status status;

	memcpy(copy, bytes, n);
	status = pawl_gguf_parse(copy, n, "bad.gguf", &gguf, err);
	ck_assert_msg(status == PAWL_OK || !gguf, "a reader came out of a refused file");
	pawl_gguf_free(gguf);
	free(copy);
	return status;
}

/* A count taken for a size would need more than this.  Sanitizers map too much for the limit. */
static void
limit_memory(void)
{
#ifndef PAWL_SANITIZERS
	struct rlimit limit = {1u << 30, 1u << 30};

	ck_assert_int_eq(setrlimit(RLIMIT_AS, &limit), 0);
#endif
}

START_TEST(each_fault_has_its_message)
{
	size_t i;

	limit_memory();
	ck_assert_uint_ge(pawl_n_bad_ggufs(), 100);
	for (i = 0; i < pawl_n_bad_ggufs(); i++) {
		struct pawl_error err = {0};
		struct pawl_bad_gguf bad;
		enum pawl_status status;

		pawl_bad_gguf_make(i, &bad);
		status = parse(bad.bytes, bad.n_bytes, &err);
		free(bad.bytes);
		ck_assert_msg(status == PAWL_INVALID_FILE && err.status == status, "%s gives %s",
			bad.name, pawl_status_name(status));
		ck_assert_msg(!strncmp(err.text, "bad.gguf: byte ", 15) &&
				      !strcmp(err.text + 10, bad.says),
			"%s says: %s", bad.name, err.text);
		ck_assert_msg(!strchr(err.text, '\n'), "%s: two lines", bad.name);
	}
}
END_TEST

START_TEST(names_of_faults_differ)
{
	size_t i, j;

	for (i = 0; i < pawl_n_bad_ggufs(); i++) {
		struct pawl_bad_gguf a, b;

		pawl_bad_gguf_make(i, &a);
		free(a.bytes);
		for (j = 0; j < i; j++) {
			pawl_bad_gguf_make(j, &b);
			free(b.bytes);
			ck_assert_str_ne(a.name, b.name);
		}
	}
}
END_TEST

START_TEST(each_truncation_is_refused)
{
	size_t n, i;
	char *bytes = pawl_small_gguf(3, &n);

	for (i = 0; i < n; i++) {
		struct pawl_error err = {0};
		unsigned long long at;

		ck_assert_msg(parse(bytes, i, &err) == PAWL_INVALID_FILE, "cut at %zu", i);
		ck_assert_msg(sscanf(err.text, "bad.gguf: byte %llu: ", &at) == 1 && at <= i,
			"cut at %zu: %s", i, err.text);
	}
	ck_assert_int_eq(parse(bytes, n, NULL), PAWL_OK);
	free(bytes);
}
END_TEST

/* Whatever one byte becomes, the file is read or refused with a place, never worse. */
START_TEST(each_changed_byte_is_survived)
{
	static const unsigned char changes[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
	size_t n, i, j, n_refused = 0;
	unsigned char *bytes = pawl_small_gguf(3, &n);

	limit_memory();
	for (i = 0; i < n; i++) {
		unsigned char old = bytes[i];

		for (j = 0; j < sizeof(changes); j++) {
			struct pawl_error err = {0};
			unsigned long long at;
			enum pawl_status status;

			bytes[i] = changes[j];
			status = parse(bytes, n, &err);
			if (status == PAWL_OK)
				continue;
			n_refused++;
			ck_assert(status == PAWL_INVALID_FILE || status == PAWL_UNSUPPORTED);
			ck_assert_msg(sscanf(err.text, "bad.gguf: byte %llu: ", &at) == 1 && at < n,
				"byte %zu: %s", i, err.text);
		}
		bytes[i] = old;
	}
	ck_assert_uint_gt(n_refused, n);
	free(bytes);
}
END_TEST

START_TEST(undecoded_types_are_unsupported)
{
	struct pawl_gguf_build *b = pawl_gguf_build_new(3);
	struct pawl_error err = {0};
	size_t n;
	void *bytes;

	pawl_gguf_build_record(
		b, &(struct pawl_gguf_build_record){
			   .name = "w", .rank = 1, .n_dims = 1, .dims = {256}, .type = 10});
	pawl_gguf_build_data(b, NULL, 84);
	bytes = pawl_gguf_build_finish(b, &n);
	ck_assert_int_eq(parse(bytes, n, &err), PAWL_UNSUPPORTED);
	ck_assert_str_eq(
		err.text, "bad.gguf: byte 45: tensor 0 (w): type: q2_k (10) is not decoded");
	free(bytes);
}
END_TEST

START_TEST(long_keys_and_file_names_leave_room_for_the_reason)
{
	struct pawl_gguf_build *b = pawl_gguf_build_new(3);
	struct pawl_error err = {0};
	struct pawl_gguf *gguf;
	char key[2000], name[3000];
	size_t n;
	void *bytes;

	memset(key, 'k', sizeof(key) - 1);
	key[sizeof(key) - 1] = '\0';
	memset(name, 'd', sizeof(name) - 1);
	strcpy(name + sizeof(name) - 8, "/x.gguf");
	pawl_gguf_build_u32(b, key, 1);
	pawl_gguf_build_u32(b, key, 1);
	bytes = pawl_gguf_build_finish(b, &n);
	ck_assert_int_eq(pawl_gguf_parse(bytes, n, name, &gguf, &err), PAWL_INVALID_FILE);
	ck_assert_ptr_nonnull(strstr(err.text, "/x.gguf: byte 2047: metadata 1 (kkk"));
	ck_assert_ptr_nonnull(strstr(err.text, "k...): key: is the same as that of metadata 0"));
	free(bytes);
}
END_TEST

Suite *
pawl_gguf_bad_suite(void)
{
	Suite *suite = suite_create("gguf_bad");
	TCase *tcase = tcase_create("gguf_bad");

	tcase_add_test(tcase, each_fault_has_its_message);
	tcase_add_test(tcase, names_of_faults_differ);
	tcase_add_test(tcase, each_truncation_is_refused);
	tcase_add_test(tcase, each_changed_byte_is_survived);
	tcase_add_test(tcase, undecoded_types_are_unsupported);
	tcase_add_test(tcase, long_keys_and_file_names_leave_room_for_the_reason);
	suite_add_tcase(suite, tcase);
	return suite;
}
