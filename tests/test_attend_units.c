/* Into how many units attention is divided: those chunks that a row can see, no others. */
#include "codegen/launch.h"
#include "ir/eval_consts.h"
#include "ir/parse.h"
#include "passes/optimize.h"

#include "tests/suites.h"

#include <stdio.h>
#include <string.h>

enum { ROWS = 3, GROUPS = 2, HEADS = 4, CAPACITY = 2048 };

static struct pawl_error err;

#define OK(call) ck_assert_msg((call) == PAWL_OK, "%s", err.text)

/* Units of the chunks of an attention with these attributes over `length` positions. */
static int64_t
units(const char *attrs, int64_t length)
{
	const struct pawl_optimize_options options = {.run = {.bisect = -1}};
	struct pawl_program *program;
	struct pawl_segments segments;
	struct pawl_graph *graph;
	int64_t n = -1;
	char text[1024];
	int32_t i;

	snprintf(text, sizeof(text),
		"pawl 1\ngraph @t stage values {\nsym $n : 1 .. %d\n"
		"%%q = const {role=data} : f32[%d,%d,16]\n%%at = const {role=data} : i64[]\n"
		"%%k = const {role=kv} : f16[1,%d,%d,16]\n%%v = const {role=kv} : f16[1,%d,%d,16]\n"
		"%%y = attention %%q, %%k, %%v, %%at {scale=0.25,sym=$n%s} : f32[%d,%d,16]\n"
		"output %%y\n}\n",
		CAPACITY, ROWS, HEADS, GROUPS, CAPACITY, GROUPS, CAPACITY, attrs, ROWS, HEADS);
	OK(pawl_parse(text, strlen(text), "test", &graph, NULL, &err));
	OK(pawl_optimize(graph, &options, &program, NULL, &err));
	for (i = 0; i < program->n_steps; i++) {
		const struct pawl_step *step = &program->steps[i];

		if (step->template != PAWL_TEMPLATE_ATTEND)
			continue;
		ck_assert_int_eq(n, -1);
		pawl_step_segments(step, &segments);
		n = pawl_step_units(step, &segments, 0, &length);
	}
	pawl_program_free(program);
	pawl_graph_free(graph);
	return n;
}

static int64_t
chunks_of(const char *attrs, int64_t length)
{
	int64_t n = units(attrs, length);

	ck_assert_int_eq(n % (ROWS * GROUPS), 0);
	return n / (ROWS * GROUPS);
}

/* The most chunks that any window of so many positions touches. */
static int64_t
most_touched(int64_t window)
{
	int64_t most = 0, first, n;

	for (first = 0; first < PAWL_ATTEND_CHUNK; first++) {
		n = (first + window - 1) / PAWL_ATTEND_CHUNK + 1;
		most = n > most ? n : most;
	}
	return most;
}

START_TEST(all_positions)
{
	ck_assert_int_eq(chunks_of("", 1), 1);
	ck_assert_int_eq(chunks_of("", 128), 1);
	ck_assert_int_eq(chunks_of("", 129), 2);
	ck_assert_int_eq(chunks_of("", 2048), 16);
}
END_TEST

START_TEST(windows)
{
	static const int64_t sizes[] = {1, 2, 100, 127, 128, 129, 130, 256, 257, 512};
	char attrs[64];
	size_t i;

	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		snprintf(attrs, sizeof(attrs), ",window=%d", (int)sizes[i]);
		ck_assert_int_eq(chunks_of(attrs, 2048), most_touched(sizes[i]));
		ck_assert_int_eq(chunks_of(attrs, 1), 1);
	}
}
END_TEST

/* A window that ends nowhere. */
START_TEST(windows_of_rows_that_see_ahead)
{
	ck_assert_int_eq(chunks_of(",causal=false,window=4", 2048), 16);
}
END_TEST

Suite *
pawl_attend_units_suite(void)
{
	Suite *suite = suite_create("attend_units");
	TCase *tcase = tcase_create("attend_units");

	tcase_add_test(tcase, all_positions);
	tcase_add_test(tcase, windows);
	tcase_add_test(tcase, windows_of_rows_that_see_ahead);
	suite_add_tcase(suite, tcase);
	return suite;
}
