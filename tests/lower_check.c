#include "tests/lower_check.h"

#include "passes/plan_memory.h"

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

static bool
is_scratch(const struct pawl_slot *slot)
{
	return slot->role == PAWL_SLOT_TEMP || slot->role == PAWL_SLOT_OUTPUT;
}

/* Every slot is followed by a zone that belongs to nobody. */
static void
check_red_zones(const struct pawl_program *program, const char *what)
{
	int32_t i, j;

	for (i = 0; i < program->n_slots; i++) {
		const struct pawl_slot *a = &program->slots[i];
		int64_t end = a->offset + a->bytes + PAWL_RED_ZONE;

		if (!is_scratch(a))
			continue;
		ck_assert_msg(end <= program->scratch_bytes, "%s: slot %d ends the memory", what, i);
		for (j = 0; j < program->n_slots; j++) {
			const struct pawl_slot *b = &program->slots[j];

			ck_assert_msg(i == j || !is_scratch(b) || b->offset >= end ||
					b->offset + b->bytes <= a->offset,
				"%s: slot %d lies in the zone of %d", what, j, i);
		}
	}
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
	if (options->red_zones && options->no_reuse)
		check_red_zones(program, what);
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
