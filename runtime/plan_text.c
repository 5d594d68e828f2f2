#include "runtime/plan_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *
pawl_program_dim_text(const struct pawl_program *program, struct pawl_dim dim, char *out, size_t n)
{
	char factor[32] = "", base[32] = "";

	if (!dim.factor) {
		snprintf(out, n, "%" PRId64, dim.base);
		return out;
	}
	if (dim.factor != 1)
		snprintf(factor, sizeof(factor), "%" PRId64 "*", dim.factor);
	if (dim.base)
		snprintf(base, sizeof(base), "%+" PRId64, dim.base);
	snprintf(out, n, "%s$%s%s", factor, program->symbols[dim.sym].name, base);
	return out;
}

const char *
pawl_program_type_text(
	const struct pawl_program *program, const struct pawl_type *type, char *out, size_t n)
{
	char dims[PAWL_MAX_RANK * 64] = "", dim[320];
	bool rows = type->layout == PAWL_LAYOUT_ROWS;

	for (int i = 0; i < type->rank; i++) {
		size_t used = strlen(dims);

		snprintf(dims + used, sizeof(dims) - used, "%s%s", i ? ", " : "",
			pawl_program_dim_text(program, type->dim[i], dim, sizeof(dim)));
	}
	snprintf(out, n, "%s[%s]%s%s", pawl_dtype_name(type->dtype), dims, rows ? "" : "@",
		rows ? "" : pawl_layout_name(type->layout));
	return out;
}

/* "0.041": thousandths, whatever the locale. */
static const char *
milliseconds(double seconds, char *out, size_t n)
{
	int64_t us = (int64_t)(seconds * 1e6 + 0.5);

	snprintf(out, n, "%" PRId64 ".%03d", us / 1000, (int)(us % 1000));
	return out;
}

void
pawl_plan_time_lines(
	const struct pawl_plan *plan, void (*line)(void *arg, const char *text), void *arg)
{
	char text[160], ms[32];

	for (int i = 0; i < plan->report.n_passes; i++) {
		const struct pawl_pass_report *report = &plan->report.passes[i];

		if (!report->ran)
			continue;
		snprintf(text, sizeof(text), "pass %s: %d changes, %s ms",
			pawl_pass_info(report->pass)->name, report->n_changes,
			milliseconds(report->seconds, ms, sizeof(ms)));
		line(arg, text);
	}
	snprintf(text, sizeof(text), "%" PRId32 " steps, %" PRIu64 " kernels compiled, %" PRIu64 " from disk: %s ms",
		plan->program->n_steps, plan->n_kernels_compiled, plan->n_kernels_read,
		milliseconds(plan->compile_seconds, ms, sizeof(ms)));
	line(arg, text);
}
