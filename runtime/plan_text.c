#include "runtime/plan_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *
pawl_program_dim_text(
	const struct pawl_program *program, struct pawl_dim dim, char *out, size_t n)
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
