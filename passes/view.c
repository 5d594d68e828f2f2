#include "passes/view.h"

#include <string.h>

#include "ir/infer.h"

const struct pawl_node *
pawl_node_base(const struct pawl_node *value)
{
	while (pawl_op_has(value->op, PAWL_OPF_VIEW))
		value = value->inputs[0].def;
	return value;
}

struct pawl_use *
pawl_use_through(const struct pawl_use *use, const struct pawl_node *value)
{
	if (pawl_op_has(use->user->op, PAWL_OPF_VIEW) && use->user->uses)
		return use->user->uses;
	while (!use->next && use->def != value)
		use = &use->def->inputs[0];
	return use->next;
}

struct pawl_access
pawl_access_whole(const struct pawl_graph *graph, const struct pawl_type *type)
{
	struct pawl_access a = {.arg = -1, .dtype = type->dtype, .layout = type->layout, .pos_dim = -1,
		.at_dim = -1, .at_arg = -1, .at_sym = -1};
	int64_t stride = 1;
	int i;

	for (i = type->rank - 1; i >= 0; i--) {
		a.stride[i] = stride;
		stride *= pawl_dim_max(graph, type->dim[i]);
	}
	if (type->layout == PAWL_LAYOUT_K16) {
		a.pos_dim = 2;
		a.width = type->dim[3].base;
	}
	return a;
}

static int64_t
extent(const struct pawl_graph *graph, struct pawl_dim dim)
{
	return pawl_dim_max(graph, dim);
}

/* Strides of the dims to[j0..j1) that together cover from's dims with one stride `inner`. */
static void
spread(const struct pawl_graph *graph, const struct pawl_type *to, int j0, int j1, int64_t inner,
	int64_t *stride)
{
	int j;

	for (j = j1 - 1; j >= j0; j--) {
		stride[j] = inner;
		inner *= extent(graph, to->dim[j]);
	}
}

/* Whether dims [i0, i1) of the window lie as one: stride[i] = stride[i + 1] * extent[i + 1]. */
static bool
is_mergeable(const struct pawl_graph *graph, const struct pawl_access *a, const struct pawl_type *from,
	int i0, int i1)
{
	int i, next = -1;

	for (i = i1 - 1; i >= i0; i--) {
		if (extent(graph, from->dim[i]) == 1 && i != a->at_dim && i != a->pos_dim)
			continue;
		if (next >= 0 && (a->at_dim == i || a->at_dim == next || a->pos_dim == i ||
					 a->pos_dim == next))
			return false;
		if (next >= 0 &&
			a->stride[i] != a->stride[next] * extent(graph, from->dim[next]))
			return false;
		next = i;
	}
	return true;
}

/* The stride of the fastest dim of [i0, i1) that has more than one element, 1 when none has. */
static int64_t
inner_stride(const struct pawl_graph *graph, const struct pawl_access *a, const struct pawl_type *from,
	int i0, int i1)
{
	int i;

	for (i = i1 - 1; i >= i0; i--) {
		if (extent(graph, from->dim[i]) > 1)
			return a->stride[i];
	}
	return i1 > i0 ? a->stride[i1 - 1] : 1;
}

/* Where a special dim (at_dim, pos_dim) of from's [i0, i1) goes in to's [j0, j1); false if torn. */
static bool
move_special(const struct pawl_graph *graph, const struct pawl_type *from, int special, int i0, int i1,
	const struct pawl_type *to, int j0, int j1, int32_t *moved)
{
	int64_t n;
	int j;

	if (special < i0 || special >= i1)
		return true;
	n = extent(graph, from->dim[special]);
	for (j = j0; j < j1; j++) {
		if (extent(graph, to->dim[j]) == n) {
			*moved = j;
			return true;
		}
	}
	return false;
}

bool
pawl_access_reshape(const struct pawl_graph *graph, struct pawl_access *access,
	const struct pawl_type *from, const struct pawl_type *to)
{
	struct pawl_access old = *access;
	int i0 = 0, j0 = 0;

	/* The fastest axis of k16 is woven into the positions: it must stay what it is. */
	if (old.layout == PAWL_LAYOUT_K16 &&
		(!to->rank || extent(graph, to->dim[to->rank - 1]) != old.width))
		return false;
	memset(access->stride, 0, sizeof(access->stride));
	/* Leading dims of 1 that only one side has, or a special dim of 1 meets one of more elements. */
	while (from->rank - i0 > to->rank && extent(graph, from->dim[i0]) == 1 && i0 != old.at_dim &&
		i0 != old.pos_dim)
		i0++;
	while (i0 < from->rank || j0 < to->rank) {
		int64_t n = i0 < from->rank ? extent(graph, from->dim[i0]) : 1;
		int64_t m = j0 < to->rank ? extent(graph, to->dim[j0]) : 1;
		int i1 = i0 + (i0 < from->rank), j1 = j0 + (j0 < to->rank);

		while (n != m) {
			if (n < m && i1 < from->rank)
				n *= extent(graph, from->dim[i1++]);
			else if (n > m && j1 < to->rank)
				m *= extent(graph, to->dim[j1++]);
			else
				return false;
		}
		if (!is_mergeable(graph, &old, from, i0, i1))
			return false;
		spread(graph, to, j0, j1, inner_stride(graph, &old, from, i0, i1), access->stride);
		if (!move_special(graph, from, old.at_dim, i0, i1, to, j0, j1, &access->at_dim) ||
			!move_special(graph, from, old.pos_dim, i0, i1, to, j0, j1, &access->pos_dim))
			return false;
		i0 = i1;
		j0 = j1;
	}
	return true;
}

static void
apply_permute(const struct pawl_node *node, struct pawl_access *a)
{
	struct pawl_access old = *a;
	int i;

	for (i = 0; i < node->type.rank; i++)
		a->stride[i] = old.stride[node->attrs.perm[i]];
}

static void
apply_slice(const struct pawl_node *node, const struct pawl_access *a, int64_t *offset)
{
	int i;

	for (i = 0; i < node->type.rank; i++)
		*offset += node->attrs.start[i] * a->stride[i];
}

static void
apply_broadcast(const struct pawl_node *node, struct pawl_access *a)
{
	const struct pawl_type *from = &node->inputs[0].def->type, *to = &node->type;
	struct pawl_access old = *a;
	int lead = to->rank - from->rank, i;

	for (i = 0; i < to->rank; i++)
		a->stride[i] = i >= lead && pawl_dim_equal(from->dim[i - lead], to->dim[i]) ?
			old.stride[i - lead] :
			0;
}

/* The window that view is, from the window that its input is.  Only row-major values have views. */
static bool
apply_view(const struct pawl_graph *graph, const struct pawl_node *view, struct pawl_access *access,
	int64_t *offset)
{
	if (view->op == PAWL_OP_RESHAPE)
		return pawl_access_reshape(graph, access, &view->inputs[0].def->type, &view->type);
	if (view->op == PAWL_OP_BROADCAST)
		apply_broadcast(view, access);
	else if (view->op == PAWL_OP_SLICE)
		apply_slice(view, access, offset);
	else
		apply_permute(view, access);
	return true;
}

bool
pawl_access_of(const struct pawl_graph *graph, const struct pawl_node *value,
	const struct pawl_node **base, struct pawl_access *access, int64_t *offset)
{
	const struct pawl_node *views[PAWL_MAX_VIEWS];
	int n = 0;

	for (; pawl_op_has(value->op, PAWL_OPF_VIEW); value = value->inputs[0].def) {
		if (n == PAWL_MAX_VIEWS)
			return false;
		views[n++] = value;
	}
	*base = value;
	*offset = 0;
	*access = pawl_access_whole(graph, &value->type);
	while (n > 0) {
		if (!apply_view(graph, views[--n], access, offset))
			return false;
	}
	return true;
}

bool
pawl_access_invert(const struct pawl_graph *graph, const struct pawl_node *src,
	const struct pawl_node *value, struct pawl_access *access)
{
	while (src != value) {
		const struct pawl_node *input = src->inputs[0].def;
		struct pawl_access old = *access;
		int i;

		if (src->op == PAWL_OP_RESHAPE) {
			if (!pawl_access_reshape(graph, access, &src->type, &input->type))
				return false;
		} else if (src->op == PAWL_OP_PERMUTE) {
			const int64_t *perm = src->attrs.perm;

			if (old.layout == PAWL_LAYOUT_K16 && perm[src->type.rank - 1] != src->type.rank - 1)
				return false;
			for (i = 0; i < src->type.rank; i++)
				access->stride[perm[i]] = old.stride[i];
			if (old.pos_dim >= 0)
				access->pos_dim = (int32_t)perm[old.pos_dim];
			if (old.at_dim >= 0)
				access->at_dim = (int32_t)perm[old.at_dim];
		} else {
			return false;
		}
		src = input;
	}
	return true;
}
