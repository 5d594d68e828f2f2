/* The graph interpreter: binding, symbols, state over several runs, failures. */
#include "codegen/interp.h"
#include "ir/parse.h"

#include "tests/suites.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static struct pawl_graph *graph;
static struct pawl_interp *interp;
static struct pawl_error err;

static void
begin(const char *statements, enum pawl_interp_mode mode)
{
	char text[4096];

	ck_assert_int_lt(
		snprintf(text, sizeof(text), "pawl 1\ngraph @t stage values {\n%s}\n", statements),
		(int)sizeof(text));
	ck_assert_msg(pawl_parse(text, strlen(text), "test", &graph, NULL, &err) == PAWL_OK, "%s",
		err.text);
	ck_assert_int_eq(pawl_interp_new(graph, mode, &interp, &err), PAWL_OK);
}

static void
end(void)
{
	pawl_interp_free(interp);
	pawl_graph_free(graph);
}

static void
bind(const char *name, void *data, size_t bytes)
{
	ck_assert_msg(pawl_interp_bind(interp, name, data, (int64_t)bytes, &err) == PAWL_OK, "%s",
		err.text);
}

static void
run(void)
{
	ck_assert_msg(pawl_interp_run(interp, &err) == PAWL_OK, "%s", err.text);
}

/* The run fails so, and its message has `part` in it. */
static void
fails(enum pawl_status status, const char *part)
{
	ck_assert_int_eq(pawl_interp_run(interp, &err), status);
	ck_assert_int_eq(err.status, status);
	ck_assert_msg(strstr(err.text, part) != NULL, "'%s' lacks '%s'", err.text, part);
}

static void
reads(int32_t output, int n, const double *want)
{
	double x[64];
	int i;

	ck_assert_msg(pawl_interp_read(interp, output, x, n, &err) == PAWL_OK, "%s", err.text);
	for (i = 0; i < n; i++)
		ck_assert_msg(x[i] == want[i], "output %d [%d] is %g, not %g", (int)output, i, x[i],
			want[i]);
}

#define READS(output, ...)                                                                         \
	reads(output, sizeof((double[]){__VA_ARGS__}) / sizeof(double), (double[]){__VA_ARGS__})

START_TEST(values_flow_through_views)
{
	float x[6] = {0, 1, 2, 3, 4, 5};

	for (int mode = 0; mode < 2; mode++) {
		begin("%x = const {role=data} : f32[2,3]\n"
		      "%p = permute %x {perm=[1,0]} : f32[3,2]\n"
		      "%s = slice %p {start=[1,0],stop=[3,2]} : f32[2,2]\n"
		      "%r = reshape %s : f32[4]\n"
		      "%b = broadcast %r : f32[2,4]\n"
		      "%n = neg %b : f32[2,4]\n"
		      "output %n\noutput %r\n",
			mode);
		bind("x", x, sizeof(x));
		run();
		READS(0, -1, -4, -2, -5, -1, -4, -2, -5);
		READS(1, 1, 4, 2, 5);
		ck_assert_int_eq(pawl_interp_read(interp, 0, NULL, 7, &err), PAWL_INVALID_ARGUMENT);
		ck_assert_int_eq(pawl_interp_read(interp, 2, NULL, 7, &err), PAWL_INVALID_ARGUMENT);
		end();
	}
}
END_TEST

START_TEST(what_is_missing_is_named)
{
	float x[4] = {1, 2, 3, 4};

	begin("sym $n : 2 .. 8 % 2\n"
	      "%x = const {role=data} : f32[$n]\n"
	      "%y = neg %x : f32[$n]\noutput %y\n",
		PAWL_INTERP_PLANNED);
	fails(PAWL_SYMBOL, "$n");
	ck_assert_int_eq(pawl_interp_set_symbol(interp, "m", 2, &err), PAWL_SYMBOL);
	ck_assert_int_eq(pawl_interp_set_symbol(interp, "n", 0, &err), PAWL_SYMBOL);
	ck_assert_int_eq(pawl_interp_set_symbol(interp, "n", 10, &err), PAWL_SYMBOL);
	ck_assert_int_eq(pawl_interp_set_symbol(interp, "n", 3, &err), PAWL_SYMBOL);
	fails(PAWL_SYMBOL, "$n");
	ck_assert_int_eq(pawl_interp_set_symbol(interp, "n", 4, &err), PAWL_OK);
	fails(PAWL_INVALID_ARGUMENT, "const %x");
	ck_assert_int_eq(pawl_interp_bind(interp, "z", x, sizeof(x), &err), PAWL_INVALID_ARGUMENT);
	ck_assert_int_eq(pawl_interp_bind(interp, "y", x, sizeof(x), &err), PAWL_INVALID_ARGUMENT);
	bind("x", x, 15);
	fails(PAWL_INVALID_ARGUMENT, "15 bytes");
	ck_assert_int_eq(pawl_interp_read(interp, 0, NULL, 4, &err), PAWL_INVALID_ARGUMENT);
	bind("x", x, 16);
	run();
	READS(0, -1, -2, -3, -4);
	ck_assert_int_eq(pawl_interp_set_symbol(interp, "n", 2, &err), PAWL_OK);
	run();
	READS(0, -1, -2);
	end();
}
END_TEST

static const char decode[] = "%k = const {role=kv} : f16[1,1,32,1]@k16\n"
			     "%x = const {role=data} : f32[1,1,2,1]\n"
			     "%at = const {role=data} : i64[]\n"
			     "%h = cast %x {dtype=f16} : f16[1,1,2,1]\n"
			     "%w = write_slice %k, %h, %at {axis=2} : f16[1,1,32,1]@k16\n"
			     "%c = copy %w : f16[1,1,32,1]\n"
			     "%o = copy %k : f16[1,1,32,1]\n"
			     "output %c\noutput %o\n";

/* State moves on from run to run, in the const's own layout and type. */
START_TEST(kv_outlives_a_run)
{
	uint16_t k[32] = {0};
	float x[2];
	int64_t at;
	double c[32], old[32];

	for (int mode = 0; mode < 2; mode++) {
		memset(k, 0, sizeof(k));
		begin(decode, mode);
		bind("k", k, sizeof(k));
		bind("x", x, sizeof(x));
		bind("at", &at, sizeof(at));
		for (at = 0; at < 32; at += 2) {
			x[0] = (float)at;
			x[1] = (float)at + 1.0f + 0x1p-20f;
			run();
			ck_assert_int_eq(pawl_interp_read(interp, 0, c, 32, &err), PAWL_OK);
			ck_assert_int_eq(pawl_interp_read(interp, 1, old, 32, &err), PAWL_OK);
			for (int i = 0; i < 32; i++) {
				ck_assert(c[i] == (i < at + 2 ? i : 0));
				ck_assert(old[i] == (i < at ? i : 0));
			}
		}
		ck_assert_uint_eq(k[17], 0x4c40);
		end();
	}
}
END_TEST

START_TEST(a_failed_run_leaves_kv_alone)
{
	static const struct {
		int64_t at;
		enum pawl_status status;
	} cases[] = {{31, PAWL_CAPACITY}, {-1, PAWL_INVALID_ARGUMENT}, {INT64_MAX, PAWL_CAPACITY}};
	uint16_t k[32], before[32];
	float x[2] = {1, 2};
	int64_t at;

	memset(k, 0x3c, sizeof(k));
	memcpy(before, k, sizeof(k));
	begin(decode, PAWL_INTERP_PLANNED);
	bind("k", k, sizeof(k));
	bind("x", x, sizeof(x));
	bind("at", &at, sizeof(at));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		at = cases[i].at;
		fails(cases[i].status, "write_slice %w");
		ck_assert_mem_eq(k, before, sizeof(k));
	}
	at = 30;
	run();
	ck_assert_mem_eq(k, before, 30 * sizeof(k[0]));
	ck_assert_uint_eq(k[30], 0x3c00);
	end();
}
END_TEST

/* Two chains of writes, one failing after the other is done: neither shows. */
START_TEST(nothing_is_half_applied)
{
	float a[2] = {1, 2}, b[2] = {3, 4}, x[1] = {9};
	int64_t at = 2;

	begin("%a = const {role=kv} : f32[2]\n%b = const {role=kv} : f32[2]\n"
	      "%x = const {role=data} : f32[1]\n%at = const {role=data} : i64[]\n"
	      "%wa = write_slice %a, %x {start=[1]} : f32[2]\n"
	      "%wb = write_slice %b, %x, %at {axis=0} : f32[2]\n"
	      "output %wa\noutput %wb\n",
		PAWL_INTERP_PLANNED);
	bind("a", a, sizeof(a));
	bind("b", b, sizeof(b));
	bind("x", x, sizeof(x));
	bind("at", &at, sizeof(at));
	fails(PAWL_CAPACITY, "%wb");
	ck_assert(a[1] == 2 && b[0] == 3);
	at = 0;
	run();
	ck_assert(a[0] == 1 && a[1] == 9 && b[0] == 9 && b[1] == 4);
	end();
}
END_TEST

/* Versions that nobody reads are written all the same. */
START_TEST(a_write_needs_no_reader)
{
	float kv[3] = {1, 2, 3}, row[1] = {7};
	int64_t index[1] = {2};

	begin("%kv = const {role=kv} : f32[3,1]\n%row = const {role=data} : f32[1,1]\n"
	      "%index = const {role=data} : i64[1]\n"
	      "%z = zero_fill %kv : f32[3,1]\n"
	      "%w = write_rows %z, %row, %index : f32[3,1]\n"
	      "%c = neg %row : f32[1,1]\noutput %c\n",
		PAWL_INTERP_PLANNED);
	bind("kv", kv, sizeof(kv));
	bind("row", row, sizeof(row));
	bind("index", index, sizeof(index));
	run();
	ck_assert(kv[0] == 0 && kv[1] == 0 && kv[2] == 7);
	end();
}
END_TEST

START_TEST(an_alloc_is_poison_until_written)
{
	float x[2] = {1, 2};
	double y[3];

	begin("%x = const {role=data} : f32[2]\n%a = alloc : f32[3]\n"
	      "%w = write_slice %a, %x {start=[1]} : f32[3]\noutput %w\n",
		PAWL_INTERP_EXACT);
	bind("x", x, sizeof(x));
	run();
	ck_assert_int_eq(pawl_interp_read(interp, 0, y, 3, &err), PAWL_OK);
	ck_assert(isnan(y[0]) && y[1] == 1 && y[2] == 2);
	end();
}
END_TEST

START_TEST(exact_mode_does_not_round)
{
	float x[2] = {1, 0x1p-30f};

	for (int mode = 0; mode < 2; mode++) {
		begin("%x = const {role=data} : f32[2]\n"
		      "%a = slice %x {start=[0],stop=[1]} : f32[1]\n"
		      "%b = slice %x {start=[1],stop=[2]} : f32[1]\n"
		      "%s = add %a, %b : f32[1]\n%d = sub %s, %a : f32[1]\n"
		      "%h = cast %s {dtype=f16} : f16[1]\n"
		      "output %d\noutput %h\n",
			mode);
		bind("x", x, sizeof(x));
		run();
		READS(0, mode == PAWL_INTERP_EXACT ? 0x1p-30 : 0);
		READS(1, 1);
		end();
	}
}
END_TEST

START_TEST(a_packed_weight_is_the_weight)
{
	float x[2] = {1, 2}, w[6] = {1, 0, 0, 1, 1, 1};

	begin("%x = const {role=data} : f32[1,2]\n%w = const {role=weight} : f32[3,2]\n"
	      "%p = pack %w : f32[3,2]@tile16\n%y = matmul %x, %p : f32[1,3]\noutput %y\n",
		PAWL_INTERP_PLANNED);
	bind("x", x, sizeof(x));
	bind("w", w, sizeof(w));
	run();
	READS(0, 1, 2, 3);
	end();
}
END_TEST

START_TEST(symbols_bound_writes_and_attention)
{
	float q[2] = {1, 1}, k[4] = {0, 0, 5, 5}, v[4] = {2, 4, 100, 100}, x[1] = {6};
	int64_t at = 3;

	begin("sym $n : 1 .. 4\n"
	      "%q = const {role=data} : f32[2,1,1]\n%k = const {role=kv} : f32[1,1,4,1]\n"
	      "%v = const {role=kv} : f32[1,1,4,1]\n%x = const {role=data} : f32[1,1,1,1]\n"
	      "%at = const {role=data} : i64[]\n"
	      "%y = attention %q, %k, %v, %at {sym=$n} : f32[2,1,1]\n"
	      "%w = write_slice %k, %x {axis=2,sym=$n} : f32[1,1,4,1]\n"
	      "output %y\noutput %w\n",
		PAWL_INTERP_EXACT);
	bind("q", q, sizeof(q));
	bind("k", k, sizeof(k));
	bind("v", v, sizeof(v));
	bind("x", x, sizeof(x));
	bind("at", &at, sizeof(at));
	ck_assert_int_eq(pawl_interp_set_symbol(interp, "n", 2, &err), PAWL_OK);
	run();
	READS(0, 3, 3);
	READS(1, 0, 0, 6, 5);
	ck_assert(k[2] == 6);
	ck_assert_int_eq(pawl_interp_set_symbol(interp, "n", 4, &err), PAWL_OK);
	fails(PAWL_CAPACITY, "write_slice %w");
	end();
}
END_TEST

START_TEST(ids_out_of_range_are_refused)
{
	float table[6] = {0, 1, 2, 3, 4, 5};
	uint32_t ids[2] = {2, 3};

	begin("%t = const {role=weight} : f32[3,2]\n%ids = const {role=data} : u32[2]\n"
	      "%y = gather %t, %ids : f32[2,2]\noutput %y\n",
		PAWL_INTERP_PLANNED);
	bind("t", table, sizeof(table));
	bind("ids", ids, sizeof(ids));
	fails(PAWL_INVALID_ARGUMENT, "id 3 at 1");
	ids[1] = 0;
	run();
	READS(0, 4, 5, 0, 1);
	end();
}
END_TEST

Suite *
pawl_interp_suite(void)
{
	Suite *suite = suite_create("interp");
	TCase *tcase = tcase_create("interp");

	tcase_add_test(tcase, values_flow_through_views);
	tcase_add_test(tcase, what_is_missing_is_named);
	tcase_add_test(tcase, kv_outlives_a_run);
	tcase_add_test(tcase, a_failed_run_leaves_kv_alone);
	tcase_add_test(tcase, nothing_is_half_applied);
	tcase_add_test(tcase, a_write_needs_no_reader);
	tcase_add_test(tcase, an_alloc_is_poison_until_written);
	tcase_add_test(tcase, exact_mode_does_not_round);
	tcase_add_test(tcase, a_packed_weight_is_the_weight);
	tcase_add_test(tcase, symbols_bound_writes_and_attention);
	tcase_add_test(tcase, ids_out_of_range_are_refused);
	suite_add_tcase(suite, tcase);
	return suite;
}
