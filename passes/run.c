#include "passes/run.h"

#include <string.h>
#include <time.h>

#include "ir/verify.h"

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
pawl_passes_from_list(const char *list, enum pawl_pass *passes, int *n_passes, struct pawl_error *err)
{
	const char *p = list;

	*n_passes = 0;
	while (*p) {
		size_t len = strcspn(p, ",");

		if (*n_passes == PAWL_MAX_PASSES)
			return pawl_fail(err, PAWL_INVALID_ARGUMENT, "more than %d passes in '%.64s'",
				PAWL_MAX_PASSES, list);
		if (!pawl_pass_from_name(p, len, &passes[(*n_passes)++]))
			return pawl_fail(err, PAWL_INVALID_ARGUMENT, "there is no pass '%.*s'",
				(int)(len < 64 ? len : 64), p);
		p += len;
		if (*p == ',')
			p++;
	}
	return PAWL_OK;
}

static enum pawl_status
run_one(struct pawl_graph *graph, enum pawl_pass pass, struct pawl_pass_ctx *ctx,
	const struct pawl_run_options *options, struct pawl_error *err)
{
	const struct pawl_pass_info *info = pawl_pass_info(pass);
	struct pawl_error inner = {0};

	if (graph->stage != info->from)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"pass %s does not fit the stage of graph '%s'", info->name, graph->name);
	ctx->n_changes = 0;
	if (info->run(ctx, graph, &inner) == PAWL_OK && graph->error.status != PAWL_OK)
		inner = graph->error;
	if (inner.status != PAWL_OK) {
		pawl_error_prefix(&inner, "pass %s", info->name);
		return pawl_fail(err, inner.status, "%s", inner.text);
	}
	graph->stage = info->to;
	if ((ctx->n_changes || info->from != info->to) && options->verify_each &&
		pawl_verify(graph, NULL, &inner) != PAWL_OK)
		return pawl_fail(err, PAWL_INTERNAL, "after pass %s: %s", info->name, inner.text);
	return PAWL_OK;
}

enum pawl_status
pawl_passes_run(struct pawl_graph *graph, const enum pawl_pass *passes, int n_passes,
	const struct pawl_pass_facts *facts, const struct pawl_run_options *options,
	struct pawl_pass_report *reports, struct pawl_error *err)
{
	struct pawl_pass_ctx ctx = {.facts = facts};
	enum pawl_status status = PAWL_OK;
	int64_t n_optional = 0;
	int i;

	for (i = 0; i < n_passes && status == PAWL_OK; i++) {
		const struct pawl_pass_info *info = pawl_pass_info(passes[i]);
		double start = seconds_now(), taken;
		bool skipped = !info->required &&
			(list_holds(options->skip, info->name) ||
				(options->bisect >= 0 && n_optional++ >= options->bisect));

		if (reports)
			reports[i] = (struct pawl_pass_report){.pass = passes[i], .ran = !skipped};
		if (skipped)
			continue;
		pawl_arena_init(&ctx.scratch);
		status = run_one(graph, passes[i], &ctx, options, err);
		pawl_arena_release(&ctx.scratch);
		taken = seconds_now() - start;
		if (reports) {
			reports[i].n_changes = ctx.n_changes;
			reports[i].seconds = taken;
		}
		if (status == PAWL_OK && options->after)
			options->after(options->arg, i, passes[i], graph, ctx.n_changes, taken);
	}
	return status;
}
