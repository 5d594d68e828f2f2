#include "passes/optimize.h"

#include "ir/verify.h"
#include "passes/lower.h"
#include "passes/plan_memory.h"

enum pawl_status
pawl_optimized_to_program(const struct pawl_graph *graph, const struct pawl_optimize_options *options,
	struct pawl_program **out, struct pawl_error *err)
{
	struct pawl_program *program;
	struct pawl_error wrong;
	enum pawl_status status = pawl_verify(graph, NULL, &wrong);

	if (status != PAWL_OK)
		return pawl_fail(err, PAWL_INTERNAL, "before lowering: %.900s", wrong.text);
	status = pawl_lower(graph, &program, err);
	if (status != PAWL_OK)
		return status;
	status = pawl_plan_memory(program, options->no_reuse, options->red_zones, err);
	if (status == PAWL_OK)
		status = pawl_check_memory(program, err);
	if (status == PAWL_OK)
		*out = program;
	else
		pawl_program_free(program);
	return status;
}

enum pawl_status
pawl_optimize(const struct pawl_graph *graph, const struct pawl_optimize_options *options,
	struct pawl_program **out, struct pawl_optimize_report *report, struct pawl_error *err)
{
	static const struct pawl_optimize_options defaults = {.run = {.bisect = -1}};
	struct pawl_graph *copy;
	const enum pawl_pass *passes;
	enum pawl_status status;
	int n_passes;

	if (!options)
		options = &defaults;
	status = pawl_verify(graph, NULL, err);
	if (status == PAWL_OK)
		status = pawl_graph_clone(graph, &copy, err);
	if (status != PAWL_OK)
		return status;
	passes = pawl_pipeline(&n_passes);
	status = pawl_passes_run(copy, passes, n_passes, &options->facts, &options->run,
		report ? report->passes : NULL, err);
	if (report) {
		report->n_passes = n_passes;
		report->nodes_in = graph->n_nodes;
		report->nodes_out = copy->n_nodes;
	}
	if (status == PAWL_OK)
		status = pawl_optimized_to_program(copy, options, out, err);
	if (status == PAWL_OK)
		(*out)->hash = pawl_graph_hash(graph);
	if (status == PAWL_OK && options->optimized)
		*options->optimized = copy;
	else
		pawl_graph_free(copy);
	return status;
}
