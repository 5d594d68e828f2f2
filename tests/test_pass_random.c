/*
 * Each pass of the pipeline, executed before and after on random graphs: PAWL_TEST_RANDOM of them,
 * 200 when it is not set.  An exact pass keeps every bit of outputs and state; a pass that rounds
 * keeps what it does not reach, and the first values that it reaches stay within its bound.
 */
#include "ir/random.h"
#include "passes/run.h"

#include "tests/graph_run.h"
#include "tests/pass_facts.h"
#include "tests/rounding.h"
#include "tests/suites.h"

#include <stdio.h>
#include <stdlib.h>

enum { N_SEEDS = 200, LEAST_FIRED = 20 };

static struct pawl_error err;

#define OK(call) ck_assert_msg((call) == PAWL_OK, "%s", err.text)

static uint64_t
n_seeds(void)
{
	const char *text = getenv("PAWL_TEST_RANDOM");

	return text ? strtoull(text, NULL, 10) : N_SEEDS;
}

/* Makes every value that nothing reads an output. */
static void
keep_all(struct pawl_graph *graph)
{
	struct pawl_node *node;

	pawl_foreach_node(node, graph) {
		if (!pawl_node_is_used(node) && !pawl_dtype_is_blocked(node->type.dtype))
			pawl_graph_add_output(graph, node);
	}
}

static struct pawl_graph *
random_graph(uint64_t seed)
{
	/* Every kind together, and by themselves those that are rare or often dead. */
	static const unsigned flavours[] = {PAWL_RANDOM_DEFAULT, PAWL_RANDOM_DEFAULT | PAWL_RANDOM_SYMBOLIC,
		PAWL_RANDOM_COMPUTE | PAWL_RANDOM_REDUNDANT, PAWL_RANDOM_STATE | PAWL_RANDOM_VIEWS,
		PAWL_RANDOM_ATTENTION, PAWL_RANDOM_BLOCK,
		PAWL_RANDOM_ATTENTION | PAWL_RANDOM_VIEWS, PAWL_RANDOM_COMPUTE};
	struct pawl_random_options options = {.flavours = flavours[seed % 8]};
	struct pawl_graph *graph;

	OK(pawl_random_graph(seed, &options, &graph, &err));
	if (options.flavours & PAWL_RANDOM_ATTENTION && !(options.flavours & PAWL_RANDOM_STATE))
		keep_all(graph);
	return graph;
}

/* Runs one pass on graph; true when it changed something. */
static bool
run_pass(struct pawl_graph *graph, enum pawl_pass pass, const char *what)
{
	struct pawl_run_options options = {.bisect = -1, .verify_each = true};
	struct pawl_pass_report report;

	ck_assert_msg(pawl_passes_run(graph, &pass, 1, pawl_test_packing_facts(), &options, &report,
			      &err) == PAWL_OK, "%s: %s", what, err.text);
	return report.n_changes > 0;
}

static void
check_graph(uint64_t seed, int *n_fired)
{
	struct pawl_graph *graph = random_graph(seed), *before;
	struct pawl_test_inputs inputs = pawl_test_inputs_of(graph, seed);
	struct pawl_test_results old = pawl_test_run_graph(graph, &inputs, PAWL_INTERP_PLANNED), new;
	bool fired[PAWL_N_PASSES] = {false};
	int i, n;
	const enum pawl_pass *passes = pawl_pipeline(&n);

	for (i = 0; i < n; i++) {
		const struct pawl_pass_info *info = pawl_pass_info(passes[i]);
		char what[128];

		snprintf(what, sizeof(what), "seed %llu, %s", (unsigned long long)seed, info->name);
		OK(pawl_graph_clone(graph, &before, &err));
		if (run_pass(graph, passes[i], what)) {
			fired[passes[i]] = true;
			new = pawl_test_run_graph(graph, &inputs, PAWL_INTERP_PLANNED);
			if (info->rounds)
				pawl_test_check_rounding(before, passes[i], &inputs, what);
			else
				pawl_test_same_results(&old, &new, what);
			pawl_test_results_release(&old);
			old = new;
		}
		pawl_graph_free(before);
	}
	for (i = 0; i < PAWL_N_PASSES; i++)
		n_fired[i] += fired[i];
	pawl_test_results_release(&old);
	pawl_test_inputs_release(&inputs);
	pawl_graph_free(graph);
}

START_TEST(every_pass_keeps_the_meaning)
{
	uint64_t seed, n = n_seeds();
	int n_fired[PAWL_N_PASSES] = {0}, i;

	for (seed = 0; seed < n; seed++)
		check_graph(seed, n_fired);
	for (i = 0; i < PAWL_N_PASSES; i++) {
		if (getenv("PAWL_TEST_RANDOM"))
			printf("%-22s changed %d graphs\n", pawl_pass_info((enum pawl_pass)i)->name,
				n_fired[i]);
		ck_assert_msg(n_fired[i] >= LEAST_FIRED || n < N_SEEDS,
			"%s changed %d of %d random graphs, %d are needed: let ir/random_*.c make more of "
			"what it looks for, and passes/pipeline.c run it",
			pawl_pass_info((enum pawl_pass)i)->name, n_fired[i], (int)n, LEAST_FIRED);
	}
}
END_TEST

Suite *
pawl_pass_random_suite(void)
{
	Suite *suite = suite_create("pass_random");
	TCase *tcase = tcase_create("pass_random");

	if (getenv("PAWL_TEST_RANDOM"))
		tcase_set_timeout(tcase, 0);
	tcase_add_test(tcase, every_pass_keeps_the_meaning);
	suite_add_tcase(suite, tcase);
	return suite;
}
