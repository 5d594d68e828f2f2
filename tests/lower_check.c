#include "tests/lower_check.h"

#include "tests/program_check.h"

#include <check.h>
#include <stdlib.h>

static struct pawl_error err;

static struct pawl_program *
optimize(const struct pawl_graph *graph, const struct pawl_optimize_options *options, const char *what)
{
	struct pawl_program *program;

	ck_assert_msg(pawl_optimize(graph, options, &program, NULL, &err) == PAWL_OK, "%s: %s", what,
		err.text);
	return program;
}

static struct pawl_test_results
run_passes(const struct pawl_graph *graph, const struct pawl_optimize_options *options,
	const struct pawl_test_inputs *inputs, const char *what)
{
	struct pawl_test_results results;
	const enum pawl_pass *passes;
	struct pawl_graph *after;
	int n;

	passes = pawl_pipeline(&n);
	ck_assert_int_eq(pawl_graph_clone(graph, &after, &err), PAWL_OK);
	ck_assert_msg(pawl_passes_run(after, passes, n, &options->facts, &options->run, NULL, &err) ==
			PAWL_OK, "%s: %s", what, err.text);
	results = pawl_test_run_graph(after, inputs, PAWL_INTERP_PLANNED);
	pawl_graph_free(after);
	return results;
}

void
pawl_test_check_lowering(const struct pawl_graph *graph, const struct pawl_optimize_options *options,
	const struct pawl_test_inputs *inputs, const char *what)
{
	struct pawl_test_results want = run_passes(graph, options, inputs, what), got;
	struct pawl_program *program = optimize(graph, options, what);
	struct pawl_program *again = optimize(graph, options, what);
	char *text = pawl_test_dump_program(program), *text_again = pawl_test_dump_program(again);

	pawl_test_check_program(program, what);
	got = pawl_test_run_program(program, inputs);
	pawl_test_same_results(&want, &got, what);
	ck_assert_str_eq(text, text_again);
	free(text);
	free(text_again);
	pawl_test_results_release(&got);
	pawl_test_results_release(&want);
	pawl_program_free(program);
	pawl_program_free(again);
}
