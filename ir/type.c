#include "ir/type.h"

#include <string.h>

static const char *const layout_names[PAWL_N_LAYOUTS] = {
	[PAWL_LAYOUT_ROWS] = "rows",
	[PAWL_LAYOUT_K16] = "k16",
	[PAWL_LAYOUT_TILE16] = "tile16",
};

const char *
pawl_layout_name(enum pawl_layout layout)
{
	return layout_names[layout];
}

bool
pawl_layout_from_name(const char *name, size_t n, enum pawl_layout *out)
{
	int i;

	for (i = 0; i < PAWL_N_LAYOUTS; i++) {
		if (strlen(layout_names[i]) == n && !memcmp(layout_names[i], name, n)) {
			*out = (enum pawl_layout)i;
			return true;
		}
	}
	return false;
}

struct pawl_type
pawl_type_make(enum pawl_dtype dtype, int rank, const int64_t *dims)
{
	struct pawl_type type = {.dtype = dtype, .rank = rank};
	int i;

	for (i = 0; i < PAWL_MAX_RANK; i++)
		type.dim[i] = pawl_dim_const(i < rank ? dims[i] : 0);
	return type;
}

bool
pawl_type_same_dims(const struct pawl_type *a, const struct pawl_type *b)
{
	int i;

	if (a->rank != b->rank)
		return false;
	for (i = 0; i < a->rank; i++) {
		if (!pawl_dim_equal(a->dim[i], b->dim[i]))
			return false;
	}
	return true;
}

bool
pawl_type_equal(const struct pawl_type *a, const struct pawl_type *b)
{
	return a->dtype == b->dtype && a->layout == b->layout && pawl_type_same_dims(a, b);
}

bool
pawl_type_is_static(const struct pawl_type *type)
{
	int i;

	for (i = 0; i < type->rank; i++) {
		if (type->dim[i].sym >= 0)
			return false;
	}
	return true;
}

int64_t
pawl_type_row_length(const struct pawl_type *type)
{
	return type->rank ? type->dim[type->rank - 1].base : 1;
}

int64_t
pawl_type_rows(const struct pawl_type *type)
{
	int64_t n = 1;
	int i;

	for (i = 0; i + 1 < type->rank; i++)
		n *= type->dim[i].base;
	return n;
}

int64_t
pawl_type_elems(const struct pawl_type *type)
{
	return pawl_type_rows(type) * pawl_type_row_length(type);
}
