/*
 * Storage that is read and written in one run, with numbers: what was there before is what is read,
 * through views too, whatever the order, the passes and the memory plan.
 */
#include "ir/parse.h"
#include "passes/optimize.h"

#include "tests/graph_run.h"
#include "tests/pass_facts.h"
#include "tests/suites.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct pawl_error err;

#define OK(call) ck_assert_msg((call) == PAWL_OK, "%s", err.text)

/* What a value holds; count 0 ends a list of them. */
struct numbers {
	const char *name; /* of a const; NULL: the next output */
	int n;
	double x[8];
};

static void
set_input(const struct pawl_test_inputs *inputs, const struct numbers *numbers)
{
	struct pawl_test_const *c = pawl_test_input(inputs, numbers->name);
	int i;

	ck_assert_int_eq(c->bytes, pawl_dtype_bytes(c->type.dtype, numbers->n));
	for (i = 0; i < numbers->n; i++) {
		if (c->type.dtype == PAWL_DTYPE_I64)
			((int64_t *)c->data)[i] = (int64_t)numbers->x[i];
		else
			((float *)c->data)[i] = (float)numbers->x[i];
	}
}

/* Outputs in order, then state in the order of the consts. */
static void
check_results(const struct pawl_test_results *results, const struct numbers *want, const char *what)
{
	int i, j;

	for (i = 0; i < results->n; i++) {
		ck_assert_int_eq(results->values[i].n, want[i].n);
		for (j = 0; j < want[i].n; j++)
			ck_assert_msg(pawl_test_value_at(&results->values[i], j) == want[i].x[j],
				"%s: value %d [%d] is %g, not %g", what, i, j,
				pawl_test_value_at(&results->values[i], j), want[i].x[j]);
	}
	ck_assert_int_eq(want[results->n].n, 0);
}

static void
check(const char *body, const struct numbers *given, const struct numbers *want)
{
	char text[4096];
	struct pawl_test_results results;
	struct pawl_test_inputs inputs;
	struct pawl_graph *graph;
	int way;

	snprintf(text, sizeof(text), "pawl 1\ngraph @case stage values {\n%s}\n", body);
	OK(pawl_parse(text, strlen(text), "case", &graph, NULL, &err));
	inputs = pawl_test_inputs_of(graph, 1);
	for (; given->n; given++)
		set_input(&inputs, given);
	results = pawl_test_run_graph(graph, &inputs, PAWL_INTERP_PLANNED);
	check_results(&results, want, "graph");
	pawl_test_results_release(&results);
	for (way = 0; way < 4; way++) {
		struct pawl_optimize_options options = {.facts = *pawl_test_facts(PAWL_PASS_dce),
			.run = {.bisect = way & 1 ? 0 : -1, .verify_each = true},
			.no_reuse = way & 2,
			.red_zones = way & 2};
		struct pawl_program *program;
		char what[32];

		snprintf(what, sizeof(what), "way %d", way);
		OK(pawl_optimize(graph, &options, &program, NULL, &err));
		results = pawl_test_run_program(program, &inputs);
		check_results(&results, want, what);
		pawl_test_results_release(&results);
		pawl_program_free(program);
	}
	pawl_test_inputs_release(&inputs);
	pawl_graph_free(graph);
}

#define CONST(name, ...)                                                                           \
	{                                                                                          \
		name, sizeof((double[]){__VA_ARGS__}) / sizeof(double), { __VA_ARGS__ }            \
	}
#define VALUE(...) CONST(NULL, __VA_ARGS__)
#define END                                                                                        \
	{                                                                                          \
		NULL, 0, { 0 }                                                                     \
	}

/* The hazard that gave the ancestor [99, 98]. */
START_TEST(a_view_of_old_content_gives_1_2)
{
	check("  %x = const {role = kv} : f32[2, 1]\n"
	      "  %s = const {role = data} : f32[2, 1]\n"
	      "  %v = reshape %x : f32[2]\n"
	      "  %w = write_slice %x, %s : f32[2, 1]\n"
	      "  %r = copy %v : f32[2]\n"
	      "  output %r\n"
	      "  output %w\n",
		(struct numbers[]){CONST("x", 1, 2), CONST("s", 99, 98), END},
		(struct numbers[]){VALUE(1, 2), VALUE(99, 98), VALUE(99, 98), END});
}
END_TEST

START_TEST(a_reader_that_needs_the_writer_reads_a_copy)
{
	check("  %x = const {role = kv} : f32[2]\n"
	      "  %s = const {role = data} : f32[2]\n"
	      "  %w = write_slice %x, %s : f32[2]\n"
	      "  %r = sub %w, %x : f32[2]\n"
	      "  output %r\n",
		(struct numbers[]){CONST("x", 1, 2), CONST("s", 99, 98), END},
		(struct numbers[]){VALUE(98, 96), VALUE(99, 98), END});
}
END_TEST

START_TEST(a_write_may_shift_its_own_storage)
{
	check("  %x = const {role = kv} : f32[4]\n"
	      "  %t = slice %x {start = [0], stop = [3]} : f32[3]\n"
	      "  %w = write_slice %x, %t {start = [1]} : f32[4]\n"
	      "  output %w\n",
		(struct numbers[]){CONST("x", 1, 2, 3, 4), END},
		(struct numbers[]){VALUE(1, 1, 2, 3), VALUE(1, 1, 2, 3), END});
}
END_TEST

START_TEST(every_version_is_an_output)
{
	check("  %x = const {role = kv} : f32[2]\n"
	      "  %s = const {role = data} : f32[1]\n"
	      "  %v = write_slice %x, %s : f32[2]\n"
	      "  %w = write_slice %v, %s {start = [1]} : f32[2]\n"
	      "  output %w\n"
	      "  output %v\n"
	      "  output %x\n",
		(struct numbers[]){CONST("x", 1, 2), CONST("s", 9), END},
		(struct numbers[]){VALUE(9, 9), VALUE(9, 2), VALUE(1, 2), VALUE(9, 9), END});
}
END_TEST

START_TEST(write_write_read)
{
	check("  %x = const {role = kv} : f32[3]\n"
	      "  %s = const {role = data} : f32[2]\n"
	      "  %v = write_slice %x, %s : f32[3]\n"
	      "  %w = write_slice %v, %s {start = [1]} : f32[3]\n"
	      "  %r = scale %w {scale = 2} : f32[3]\n"
	      "  %o = scale %v {scale = 3} : f32[3]\n"
	      "  output %r\n"
	      "  output %o\n",
		(struct numbers[]){CONST("x", 1, 2, 3), CONST("s", 5, 6), END},
		(struct numbers[]){VALUE(10, 10, 12), VALUE(15, 18, 9), VALUE(5, 5, 6), END});
}
END_TEST

/* Each reads what the other had. */
START_TEST(two_buffers_change_places)
{
	check("  %x = const {role = kv} : f32[2]\n"
	      "  %y = const {role = kv} : f32[2]\n"
	      "  %v = write_slice %x, %y : f32[2]\n"
	      "  %w = write_slice %y, %x : f32[2]\n"
	      "  output %v\n"
	      "  output %w\n",
		(struct numbers[]){CONST("x", 1, 2), CONST("y", 3, 4), END},
		(struct numbers[]){VALUE(3, 4), VALUE(1, 2), VALUE(3, 4), VALUE(1, 2), END});
}
END_TEST

START_TEST(a_negative_index_writes_nothing)
{
	check("  %x = const {role = kv} : f32[4, 1]\n"
	      "  %s = const {role = data} : f32[3, 1]\n"
	      "  %i = const {role = data} : i64[3]\n"
	      "  %n = neg %s : f32[3, 1]\n"
	      "  %w = write_rows %x, %n, %i : f32[4, 1]\n"
	      "  output %w\n",
		(struct numbers[]){CONST("x", 1, 2, 3, 4), CONST("s", 7, 8, 9), CONST("i", 3, -1, 0), END},
		(struct numbers[]){VALUE(-9, 2, 3, -7), VALUE(-9, 2, 3, -7), END});
}
END_TEST

START_TEST(a_ring_goes_round_its_seam)
{
	check("  %x = const {role = kv} : f32[5]\n"
	      "  %s = const {role = data} : f32[3]\n"
	      "  %o = const {role = data} : i64[]\n"
	      "  %n = neg %s : f32[3]\n"
	      "  %w = write_slice_rotating %x, %n, %o {axis = 0, modulus = 4} : f32[5]\n"
	      "  output %w\n",
		(struct numbers[]){CONST("x", 1, 2, 3, 4, 5), CONST("s", 7, 8, 9), CONST("o", 11), END},
		(struct numbers[]){VALUE(-8, -9, 3, -7, 5), VALUE(-8, -9, 3, -7, 5), END});
}
END_TEST

Suite *
pawl_effects_suite(void)
{
	Suite *suite = suite_create("effects");
	TCase *tcase = tcase_create("effects");

	tcase_add_test(tcase, a_view_of_old_content_gives_1_2);
	tcase_add_test(tcase, a_reader_that_needs_the_writer_reads_a_copy);
	tcase_add_test(tcase, a_write_may_shift_its_own_storage);
	tcase_add_test(tcase, every_version_is_an_output);
	tcase_add_test(tcase, write_write_read);
	tcase_add_test(tcase, two_buffers_change_places);
	tcase_add_test(tcase, a_negative_index_writes_nothing);
	tcase_add_test(tcase, a_ring_goes_round_its_seam);
	suite_add_tcase(suite, tcase);
	return suite;
}
