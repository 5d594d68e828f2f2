#include "passes/run.h"

#include <string.h>
#include <time.h>

#include "ir/print.h"
#include "passes/observe.h"

static double
seconds_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool
list_holds(const char *list, const char *name)
{
	size_t n = strlen(name);
	const char *p = list;

	while (p && *p) {
		size_t len = strcspn(p, ",");

		if (len == n && !memcmp(p, name, n))
			return true;
		p += len;
		if (*p == ',')
			p++;
	}
	return false;
}

enum pawl_status
pawl_passes_from_list(
	const char *list, enum pawl_pass *passes, int *n_passes, struct pawl_error *err)
{
	*n_passes = 0;
	for (const char *p = list; p;) {
		size_t len = strcspn(p, ",");

		if (*n_passes == PAWL_MAX_PASSES)
			return pawl_fail(err, PAWL_INVALID_ARGUMENT,
				"more than %d passes in '%.64s'", PAWL_MAX_PASSES, list);
		if (!len)
			return pawl_fail(err, PAWL_INVALID_ARGUMENT, "an empty name in '%.64s'",
				list);
		if (!pawl_pass_from_name(p, len, &passes[(*n_passes)++]))
			return pawl_fail(err, PAWL_INVALID_ARGUMENT, "there is no pass '%.*s'",
				(int)(len < 64 ? len : 64), p);
		p = p[len] ? p + len + 1 : NULL;
	}
	return PAWL_OK;
}

enum pawl_status
pawl_passes_check_skip(const char *list, struct pawl_error *err)
{
	enum pawl_pass passes[PAWL_MAX_PASSES];
	enum pawl_status status;
	int n = 0;

	status = list ? pawl_passes_from_list(list, passes, &n, err) : PAWL_OK;
	for (int i = 0; i < n && !status; i++)
		if (pawl_pass_info(passes[i])->required)
			status = pawl_fail(err, PAWL_INVALID_ARGUMENT, "%s is required",
				pawl_pass_info(passes[i])->name);
	return status;
}

static enum pawl_status
run_one(struct pawl_graph *graph, enum pawl_pass pass, struct pawl_pass_ctx *ctx, double *seconds,
	struct pawl_error *err)
{
	const struct pawl_pass_info *info = pawl_pass_info(pass);
	struct pawl_error inner = {0};
	double start = seconds_now();

	*seconds = 0;
	if (graph->stage != info->from)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"pass %s works on stage %s, graph '%.64s' is at stage %s", info->name,
			pawl_stage_name(info->from), graph->name, pawl_stage_name(graph->stage));
	ctx->n_changes = 0;
	if (info->run(ctx, graph, &inner) == PAWL_OK && graph->error.status != PAWL_OK)
		inner = graph->error;
	*seconds = seconds_now() - start;
	if (inner.status != PAWL_OK) {
		pawl_error_prefix(&inner, "pass %s", info->name);
		return pawl_fail(err, inner.status, "%s", inner.text);
	}
	graph->stage = info->to;
	return PAWL_OK;
}

/* A pass that broke the graph leaves it to be looked at: the dump comes first. */
static enum pawl_status
observe(const struct pawl_graph *graph, const struct pawl_run_options *options, int dump,
	int pass_at, const char *pass, struct pawl_error *err)
{
	enum pawl_status status = PAWL_OK;
	struct pawl_error wrong;

	if (options->dump_folder)
		status = pawl_observe_dump(graph, options->dump_folder, dump, pass_at, pass, err);
	if (status == PAWL_OK && pawl_observe_check(graph, options, &wrong) != PAWL_OK)
		status = pawl_fail(err, wrong.status, "after pass %s: %.900s", pass, wrong.text);
	return status;
}

static enum pawl_status
begin(const struct pawl_graph *graph, const struct pawl_run_options *options, int *dump,
	struct pawl_error *err)
{
	struct pawl_error wrong;

	if (pawl_passes_check_skip(options->skip, &wrong) != PAWL_OK)
		return pawl_fail(err, wrong.status, "passes to skip: %.900s", wrong.text);
	if (!options->dump_folder)
		return PAWL_OK;
	*dump = pawl_observe_next_dump();
	return pawl_observe_dump(graph, options->dump_folder, *dump, -1, NULL, err);
}

enum pawl_status
pawl_passes_run(struct pawl_graph *graph, const enum pawl_pass *passes, int n_passes,
	const struct pawl_pass_facts *facts, const struct pawl_run_options *options,
	struct pawl_pass_report *reports, struct pawl_error *err)
{
	struct pawl_pass_ctx ctx = {.facts = facts};
	int64_t n_optional = 0;
	int dump = 0;
	enum pawl_status status = begin(graph, options, &dump, err);

	for (int i = 0; i < n_passes && status == PAWL_OK; i++) {
		const struct pawl_pass_info *info = pawl_pass_info(passes[i]);
		double seconds;
		bool skipped = !info->required &&
			       (list_holds(options->skip, info->name) ||
				       (options->bisect >= 0 && n_optional++ >= options->bisect));

		if (reports)
			reports[i] = (struct pawl_pass_report){.pass = passes[i], .ran = !skipped};
		if (skipped)
			continue;
		pawl_arena_init(&ctx.scratch);
		status = run_one(graph, passes[i], &ctx, &seconds, err);
		pawl_arena_release(&ctx.scratch);
		if (reports) {
			reports[i].n_changes = ctx.n_changes;
			reports[i].seconds = seconds;
		}
		if (status == PAWL_OK && (ctx.n_changes || info->from != info->to))
			status = observe(graph, options, dump, i, info->name, err);
		if (status == PAWL_OK && options->after)
			options->after(options->arg, i, passes[i], graph, ctx.n_changes, seconds);
	}
	return status;
}
