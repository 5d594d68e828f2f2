/*
 * Ids, starts and row lists out of range, on both targets: what is known before a run is refused
 * before it and changes no cache, what the plan computes gives NaN.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/host_fixture.h"
#include "tests/suites.h"

static const char *const targets[] = {"ref", "cpu"};

enum { N_TARGETS = 2, KV_FLOATS = 16, MAX_GIVEN = 8 };

struct given {
	const char *name;
	void *bytes;
	size_t n_bytes;
};

static const struct pawl_api *api;
static struct pawl_host_context *context;
static struct pawl_host_plan *plan;
static struct pawl_host_weights *weights;
static struct pawl_host_session *session;
static float table[8] = {0, 1, 10, 11, 20, 21, 30, 31}; /* f32[4, 2] */
static float rows[4] = {1, 2, 3, 4};
static _Alignas(64) float cache[KV_FLOATS];
static _Alignas(64) int64_t kv_numbers[8];
static _Alignas(64) int32_t kv_ids[16];

static void
begin(void)
{
	api = pawl_test_host_api();
}

static void
expect(struct pawl_host_status *status, enum pawl_status_code code, const char *text)
{
	if (code == PAWL_CODE_OK)
		pawl_test_host_ok(status, text);
	else
		pawl_test_host_refused(status, code, text);
}

/* A plan of the body for a target; code and text are what making it ends in. */
static void
make(const char *target, const char *body, enum pawl_status_code code, const char *text)
{
	struct pawl_host_graph *graph;
	char all[2048];

	snprintf(all, sizeof(all), "pawl 1\ngraph @g stage values {\n%s}\n", body);
	context = pawl_test_host_context(target, 2, NULL);
	PAWL_HOST_OK(api->graph_from_text(context, all, strlen(all), &graph));
	plan = NULL;
	weights = NULL;
	session = NULL;
	expect(api->plan_compile(graph, &plan), code, text);
	api->graph_release(graph);
}

static void
drop(void)
{
	api->session_release(session);
	api->weights_release(weights);
	api->plan_release(plan);
	api->context_release(context);
}

/* A session of the weights that are given, anew when they are. */
static void
begin_session(const struct given *given)
{
	struct pawl_binding binding = {.struct_size = sizeof(binding)};

	api->session_release(session);
	api->weights_release(weights);
	PAWL_HOST_OK(api->weights_create(context, NULL, &weights));
	for (; given->name; given++) {
		int64_t i = api->plan_find(plan, PAWL_BINDING_WEIGHT, given->name);

		if (i >= 0 && api->plan_binding(plan, i, &binding))
			PAWL_HOST_OK(api->weights_add(weights, given->name, binding.type,
				given->bytes, given->n_bytes));
	}
	PAWL_HOST_OK(api->session_create(plan, weights, &session));
}

static bool
has_weight(const struct given *given)
{
	for (; given->name; given++)
		if (api->plan_find(plan, PAWL_BINDING_WEIGHT, given->name) >= 0)
			return true;
	return false;
}

static void
give(const struct given *given)
{
	if (!session || has_weight(given))
		begin_session(given);
	for (; given->name; given++) {
		int64_t kv = api->plan_find(plan, PAWL_BINDING_KV, given->name);
		int64_t data = api->plan_find(plan, PAWL_BINDING_DATA, given->name);

		if (kv >= 0)
			PAWL_HOST_OK(api->session_bind(session, kv, given->bytes, given->n_bytes));
		else if (data >= 0)
			PAWL_HOST_OK(api->session_set(session, data, given->bytes, given->n_bytes));
		else
			ck_assert_int_ge(
				api->plan_find(plan, PAWL_BINDING_WEIGHT, given->name), 0);
	}
}

static const float *
output(int32_t i)
{
	const void *bytes;
	size_t n;

	PAWL_HOST_OK(api->session_output(session, i, &bytes, &n));
	return bytes;
}

/* A run that is refused with the cache as it was. */
static void
refused(const struct given *given, enum pawl_status_code code, const char *text)
{
	for (int i = 0; i < KV_FLOATS; i++)
		cache[i] = (float)-i;
	give(given);
	expect(api->session_run(session, 0), code, text);
	for (int i = 0; i < KV_FLOATS; i++)
		ck_assert_float_eq(cache[i], (float)-i);
}

static void
runs(const struct given *given)
{
	give(given);
	expect(api->session_run(session, 0), PAWL_CODE_OK, "");
}

#define GIVEN(...) ((const struct given[]){__VA_ARGS__, {NULL, NULL, 0}})
#define IT(name, bytes) {name, bytes, sizeof(bytes)}

#define TABLE "%t = const : f32[4, 2]\n"
#define GATHER "%y = gather %t, %ids : f32[3, 2]\noutput %y\n"

/* Each sees ids 1, 3, 5 of the six: the others may be anything, these may not. */
START_TEST(ids_are_looked_for_where_the_views_put_them)
{
	static const char *const views[] = {
		"%0 = reshape %all : u32[3, 2]\n"
		"%1 = slice %0 {start = [0, 1], stop = [3, 2]} : u32[3, 1]\n"
		"%ids = reshape %1 : u32[3]\n",
		"%0 = reshape %all : u32[3, 2]\n"
		"%1 = permute %0 {perm = [1, 0]} : u32[2, 3]\n"
		"%2 = slice %1 {start = [1, 0], stop = [2, 3]} : u32[1, 3]\n"
		"%ids = reshape %2 : u32[3]\n",
	};
	uint32_t all[6] = {99, 3, 99, 0, 99, 1};

	for (int v = 0; v < 4; v++) {
		char body[512];

		snprintf(body, sizeof(body), "%s%%all = const {role = data} : u32[6]\n%s%s", TABLE,
			views[v / 2], GATHER);
		make(targets[v % 2], body, PAWL_CODE_OK, "");
		runs(GIVEN(IT("t", table), IT("all", all)));
		ck_assert_float_eq(output(0)[0], 30);
		ck_assert_float_eq(output(0)[2], 0);
		ck_assert_float_eq(output(0)[5], 11);
		for (int i = 1; i < 6; i += 2) {
			char text[64];

			snprintf(text, sizeof(text), "y: all[%d] is 4, outside 0 to 3", i / 2);
			all[i] = 4;
			refused(GIVEN(IT("t", table), IT("all", all)), PAWL_CODE_INVALID_ARGUMENT, text);
			all[i] = i == 1 ? 3 : i == 3 ? 0 : 1;
		}
		drop();
	}
}
END_TEST

/* One id for three rows: what lies behind it is not read. */
START_TEST(a_broadcast_id_is_one_id)
{
	uint32_t id[3] = {2, 99, 99};

	for (int t = 0; t < N_TARGETS; t++) {
		make(targets[t], TABLE "%one = const {role = data} : u32[1]\n"
			"%ids = broadcast %one : u32[3]\n" GATHER, PAWL_CODE_OK, "");
		runs(GIVEN(IT("t", table), {"one", id, 4}));
		for (int i = 0; i < 3; i++)
			ck_assert_float_eq(output(0)[2 * i], 20);
		refused(GIVEN(IT("t", table), {"one", id + 1, 4}), PAWL_CODE_INVALID_ARGUMENT,
			"one[0] is 99");
		drop();
	}
}
END_TEST

#define WRITE                                                                                      \
	"%c = const {role = kv} : f32[8, 2]\n%r = const {role = data} : f32[2, 2]\n"                   \
	"%w = write_slice %c, %r {start = [2, 0]} : f32[8, 2]\noutput %w\n"

/* The write comes before the gather that is refused. */
START_TEST(stored_ids_are_refused_before_anything_is_written)
{
	static int32_t ids[3] = {0, 4, 1};
	static const char *const roles[] = {"weight", "kv", "data"};

	for (int v = 0; v < 6; v++) {
		char body[512];

		memcpy(kv_ids, ids, sizeof(ids));
		snprintf(body, sizeof(body), "%s%%ids = const {role = %s} : i32[3]\n%s",
			WRITE TABLE, roles[v / 2], GATHER);
		make(targets[v % 2], body, PAWL_CODE_OK, "");
		refused(GIVEN(IT("t", table), IT("c", cache), IT("r", rows), {"ids", kv_ids, 12}),
			PAWL_CODE_INVALID_ARGUMENT, "y: ids[1] is 4, outside 0 to 3");
		kv_ids[1] = -1;
		refused(GIVEN(IT("t", table), IT("c", cache), IT("r", rows), {"ids", kv_ids, 12}),
			PAWL_CODE_INVALID_ARGUMENT, "y: ids[1] is -1");
		kv_ids[1] = 3;
		runs(GIVEN(IT("t", table), IT("c", cache), IT("r", rows), {"ids", kv_ids, 12}));
		ck_assert_float_eq(cache[4], 1);
		ck_assert_float_eq(output(1)[2], 30);
		drop();
	}
}
END_TEST

START_TEST(literal_ids_are_refused_before_anything_is_written)
{
	for (int t = 0; t < N_TARGETS; t++) {
		make(targets[t], WRITE TABLE
			"%ids = const {role = literal, values = [0, 1, 7]} : u32[3]\n" GATHER,
			PAWL_CODE_OK, "");
		refused(GIVEN(IT("t", table), IT("c", cache), IT("r", rows)),
			PAWL_CODE_INVALID_ARGUMENT, "y: ids[2] is 7, outside 0 to 3");
		drop();
		make(targets[t], WRITE TABLE
			"%ids = const {role = literal, values = [0, 1, 3]} : u32[3]\n" GATHER,
			PAWL_CODE_OK, "");
		runs(GIVEN(IT("t", table), IT("c", cache), IT("r", rows)));
		ck_assert_float_eq(output(1)[5], 31);
		drop();
	}
}
END_TEST

/* Ids 2, 9, -1 of a concat; the write goes ahead. */
START_TEST(computed_ids_without_a_row_give_nan)
{
	int32_t few[1] = {2}, more[2] = {9, -1};

	for (int t = 0; t < N_TARGETS; t++) {
		make(targets[t], WRITE TABLE "%a = const {role = data} : i32[1]\n"
			"%b = const {role = data} : i32[2]\n"
			"%ids = concat %a, %b {axis = 0} : i32[3]\n" GATHER, PAWL_CODE_OK, "");
		memset(cache, 0, sizeof(cache));
		runs(GIVEN(IT("t", table), IT("c", cache), IT("r", rows), IT("a", few), IT("b", more)));
		ck_assert_float_eq(cache[4], 1);
		ck_assert_float_eq(output(1)[0], 20);
		ck_assert_float_eq(output(1)[1], 21);
		for (int i = 2; i < 6; i++)
			ck_assert(isnan(output(1)[i]));
		drop();
	}
}
END_TEST

/* argmax of a row with a NaN is -1. */
START_TEST(an_argmax_without_a_row_gives_nan)
{
	float x[3][2] = {{0, 1}, {NAN, 0}, {1, 0}};

	for (int t = 0; t < N_TARGETS; t++) {
		make(targets[t], TABLE "%x = const {role = data} : f32[3, 2]\n"
			"%ids = argmax %x : i32[3]\n" GATHER, PAWL_CODE_OK, "");
		runs(GIVEN(IT("t", table), IT("x", x)));
		ck_assert_float_eq(output(0)[0], 10);
		ck_assert(isnan(output(0)[2]) && isnan(output(0)[3]));
		ck_assert_float_eq(output(0)[4], 0);
		drop();
	}
}
END_TEST

/* What the cache holds before the run says nothing: the plan writes the ids. */
START_TEST(ids_in_a_cache_that_was_written_are_computed)
{
	int32_t fresh[3] = {3, 4, 0};

	for (int t = 0; t < N_TARGETS; t++) {
		make(targets[t], TABLE "%k = const {role = kv} : i32[16]\n"
			"%f = const {role = data} : i32[3]\n"
			"%n = write_slice %k, %f {start = [1]} : i32[16]\n"
			"%ids = slice %n {start = [1], stop = [4]} : i32[3]\n" GATHER
			"output %n\n", PAWL_CODE_OK, "");
		for (int i = 0; i < 16; i++)
			kv_ids[i] = 77;
		runs(GIVEN(IT("t", table), IT("k", kv_ids), IT("f", fresh)));
		ck_assert_float_eq(output(0)[0], 30);
		ck_assert(isnan(output(0)[2]));
		ck_assert_float_eq(output(0)[4], 0);
		ck_assert_int_eq(kv_ids[2], 4);
		drop();
	}
}
END_TEST

#define AT(text) "%a = const {role = " text "\n%p = reshape %a : i64[]\n"
#define MOVING(start)                                                                              \
	"%c = const {role = kv} : f32[8, 2]\n%r = const {role = data} : f32[2, 2]\n" start             \
	"%w = write_slice %c, %r, %p {axis = 0} : f32[8, 2]\noutput %w\n"

START_TEST(stored_starts_are_checked)
{
	static const char *const bodies[] = {MOVING(AT("weight} : i64[1]")), MOVING(AT("kv} : i64[1]")),
		MOVING(AT("data} : i64[1]"))};

	for (int v = 0; v < 6; v++) {
		make(targets[v % 2], bodies[v / 2], PAWL_CODE_OK, "");
		kv_numbers[0] = 7;
		refused(GIVEN(IT("c", cache), IT("r", rows), {"a", kv_numbers, 8}), PAWL_CODE_CAPACITY,
			"a is 7: 2 more would go beyond the capacity of 8");
		kv_numbers[0] = -1;
		refused(GIVEN(IT("c", cache), IT("r", rows), {"a", kv_numbers, 8}),
			PAWL_CODE_INVALID_ARGUMENT, "a is -1");
		kv_numbers[0] = 6;
		runs(GIVEN(IT("c", cache), IT("r", rows), {"a", kv_numbers, 8}));
		ck_assert_float_eq(cache[15], 4);
		drop();
	}
}
END_TEST

/* Positions whose sum with the width of the write is no number. */
START_TEST(a_start_at_the_end_of_all_numbers)
{
	for (int t = 0; t < N_TARGETS; t++) {
		make(targets[t], MOVING(AT("data} : i64[1]")), PAWL_CODE_OK, "");
		for (int back = 0; back < 3; back++) {
			kv_numbers[0] = INT64_MAX - back;
			refused(GIVEN(IT("c", cache), IT("r", rows), {"a", kv_numbers, 8}),
				PAWL_CODE_CAPACITY, ": 2 more would go beyond the capacity of 8");
		}
		drop();
		make(targets[t], "%c = const {role = kv} : f32[8, 2]\n"
			"%r = const {role = data} : f32[2, 2]\n%p = const {role = data} : i64[]\n"
			"%w = write_slice_rotating %c, %r, %p {axis = 0, modulus = 5} : f32[8, 2]\n"
			"output %w\n", PAWL_CODE_OK, "");
		for (int back = 0; back < 6; back++) {
			kv_numbers[0] = INT64_MAX - back;
			memset(cache, 0, sizeof(cache));
			runs(GIVEN(IT("c", cache), IT("r", rows), {"p", kv_numbers, 8}));
			for (int i = 0; i < 8; i++) {
				int64_t slab = (i + 5 - kv_numbers[0] % 5) % 5;

				ck_assert_float_eq(cache[2 * i],
					i < 5 && slab < 2 ? rows[2 * slab] : 0);
			}
		}
		kv_numbers[0] = -1;
		refused(GIVEN(IT("c", cache), IT("r", rows), {"p", kv_numbers, 8}),
			PAWL_CODE_INVALID_ARGUMENT, "p is -1");
		drop();
	}
}
END_TEST

START_TEST(stored_row_lists_are_checked)
{
	for (int v = 0; v < 4; v++) {
		char body[512];

		snprintf(body, sizeof(body), "%%c = const {role = kv} : f32[8, 2]\n"
			"%%r = const {role = data} : f32[2, 2]\n"
			"%%l = const {role = literal, values = [1, %d]} : i64[2]\n"
			"%%w = write_rows %%c, %%r, %%l : f32[8, 2]\noutput %%w\n", v / 2 ? 8 : -1);
		make(targets[v % 2], body, PAWL_CODE_OK, "");
		if (v / 2) {
			refused(GIVEN(IT("c", cache), IT("r", rows)), PAWL_CODE_CAPACITY,
				"l[1] is 8, outside 0 to 7");
		} else {
			runs(GIVEN(IT("c", cache), IT("r", rows)));
			ck_assert_float_eq(cache[3], 2);
		}
		drop();
	}
}
END_TEST

START_TEST(plans_that_compute_where_they_write_are_declined)
{
	for (int t = 0; t < N_TARGETS; t++) {
		make(targets[t], MOVING("%b = const {role = data} : i64[1]\n"
			"%d = concat %b, %b {axis = 0} : i64[2]\n"
			"%e = slice %d {start = [1], stop = [2]} : i64[1]\n"
			"%p = reshape %e : i64[]\n"), PAWL_CODE_UNSUPPORTED,
			"is computed by the program");
		drop();
		make(targets[t], "%c = const {role = kv} : f32[8, 2]\n"
			"%r = const {role = data} : f32[2, 2]\n%b = const {role = data} : i64[1]\n"
			"%l = concat %b, %b {axis = 0} : i64[2]\n"
			"%w = write_rows %c, %r, %l : f32[8, 2]\noutput %w\n", PAWL_CODE_UNSUPPORTED,
			"is computed by the program");
		drop();
	}
}
END_TEST

START_TEST(attention_far_away_is_refused_before_anything_is_written)
{
	static _Alignas(64) float k[16], v[16];
	float q[4] = {1, 1, 1, 1};
	int64_t offset[1];

	for (int t = 0; t < N_TARGETS; t++) {
		make(targets[t], WRITE "%q = const {role = data} : f32[1, 1, 4]\n"
			"%k = const {role = kv} : f32[1, 1, 4, 4]\n%v = const {role = kv} : f32[1, 1, 4, 4]\n"
			"%o = const {role = data} : i64[]\n"
			"%z = attention %q, %k, %v, %o {scale = 1} : f32[1, 1, 4]\noutput %z\n",
			PAWL_CODE_OK, "");
		offset[0] = ((int64_t)1 << 40) + 1;
		refused(GIVEN(IT("c", cache), IT("r", rows), IT("q", q), IT("k", k), IT("v", v),
				IT("o", offset)), PAWL_CODE_INVALID_ARGUMENT, "o is 1099511627777");
		offset[0] = -1;
		refused(GIVEN(IT("r", rows), IT("q", q), IT("o", offset)), PAWL_CODE_INVALID_ARGUMENT,
			"o is -1");
		offset[0] = (int64_t)1 << 40;
		runs(GIVEN(IT("r", rows), IT("q", q), IT("o", offset)));
		drop();
	}
}
END_TEST

Suite *
pawl_index_check_suite(void)
{
	Suite *suite = suite_create("index_check");
	TCase *tcase = tcase_create("index_check");

	tcase_add_checked_fixture(tcase, begin, NULL);
	tcase_add_test(tcase, ids_are_looked_for_where_the_views_put_them);
	tcase_add_test(tcase, a_broadcast_id_is_one_id);
	tcase_add_test(tcase, stored_ids_are_refused_before_anything_is_written);
	tcase_add_test(tcase, literal_ids_are_refused_before_anything_is_written);
	tcase_add_test(tcase, computed_ids_without_a_row_give_nan);
	tcase_add_test(tcase, an_argmax_without_a_row_gives_nan);
	tcase_add_test(tcase, ids_in_a_cache_that_was_written_are_computed);
	tcase_add_test(tcase, stored_starts_are_checked);
	tcase_add_test(tcase, a_start_at_the_end_of_all_numbers);
	tcase_add_test(tcase, stored_row_lists_are_checked);
	tcase_add_test(tcase, plans_that_compute_where_they_write_are_declined);
	tcase_add_test(tcase, attention_far_away_is_refused_before_anything_is_written);
	suite_add_tcase(suite, tcase);
	return suite;
}
