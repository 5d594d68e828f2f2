/* Views of views. */
#include "ir/random_parts.h"

#include <string.h>

/* A random factor of n, neither 1 nor n if there is one; powers of two are not preferred. */
static int64_t
factor_of(struct pawl_random *r, int64_t n)
{
	int64_t f = 2 + pawl_random_below(r, n > 2 ? n - 1 : 1);

	while (n % f)
		f--;
	return f < 1 ? 1 : f;
}

static struct pawl_node *
reshape(struct pawl_random *r, struct pawl_node *x)
{
	int64_t dims[PAWL_MAX_RANK], left = 1, f;
	int i, rank = 0;

	if (x->type.rank && x->type.dim[0].sym >= 0)
		dims[rank++] = -1;
	for (i = rank; i < x->type.rank; i++) {
		if (x->type.dim[i].sym >= 0)
			return x;
		left *= x->type.dim[i].base;
	}
	while (rank < PAWL_MAX_RANK - 1 && left > 1 && pawl_random_chance(r, 60)) {
		f = pawl_random_chance(r, 15) ? 1 : factor_of(r, left);
		dims[rank++] = f;
		left /= f;
	}
	dims[rank++] = left;
	return pawl_random_some(r, pawl_build_reshape(r->graph, x, rank, dims));
}

static struct pawl_node *
permute(struct pawl_random *r, struct pawl_node *x)
{
	int perm[PAWL_MAX_RANK], i, j, kept;

	for (i = 0; i < x->type.rank; i++)
		perm[i] = i;
	for (i = x->type.rank - 1; i > 0; i--) {
		j = (int)pawl_random_below(r, i + 1);
		kept = perm[i];
		perm[i] = perm[j];
		perm[j] = kept;
	}
	return pawl_random_some(r, pawl_build_permute(r->graph, x, perm));
}

static struct pawl_node *
slice(struct pawl_random *r, struct pawl_node *x)
{
	int64_t start[PAWL_MAX_RANK] = {0}, stop[PAWL_MAX_RANK] = {0};
	int i;

	for (i = 0; i < x->type.rank; i++) {
		int64_t n = x->type.dim[i].base;

		if (x->type.dim[i].sym >= 0)
			continue;
		stop[i] = n;
		if (pawl_random_chance(r, 60)) {
			start[i] = pawl_random_below(r, n);
			stop[i] = start[i] + 1 + pawl_random_below(r, n - start[i]);
		}
	}
	return pawl_random_some(r, pawl_build_slice(r->graph, x, start, stop));
}

static struct pawl_node *
broadcast(struct pawl_random *r, struct pawl_node *x)
{
	struct pawl_type type = x->type;
	int i, lead = type.rank < PAWL_MAX_RANK && pawl_random_chance(r, 60);

	for (i = type.rank - 1; lead && i >= 0; i--)
		type.dim[i + 1] = type.dim[i];
	if (lead)
		type.dim[0] = pawl_dim_const(1 + pawl_random_below(r, 3));
	type.rank += lead;
	for (i = lead; i < type.rank; i++) {
		if (pawl_dim_equal(type.dim[i], pawl_dim_const(1)) && pawl_random_chance(r, 50))
			type.dim[i] = pawl_dim_const(1 + pawl_random_below(r, 4));
	}
	if (pawl_random_elems(r, &type) > PAWL_RANDOM_MAX_ELEMS)
		return x;
	return pawl_random_op(r, PAWL_OP_BROADCAST, &x, 1, NULL, &type);
}

static struct pawl_node *
view(struct pawl_random *r, struct pawl_node *x)
{
	switch (pawl_random_below(r, 4)) {
	case 0:
		return reshape(r, x);
	case 1:
		return permute(r, x);
	case 2:
		return slice(r, x);
	default:
		return broadcast(r, x);
	}
}

/* A weight cut into two, as hosts pack query and key. */
static void
add_cut_weight(struct pawl_random *r)
{
	struct pawl_random_value x = pawl_random_tame(r, pawl_random_rows(r, r->width), 10);
	const int64_t dims[] = {24, r->width};
	struct pawl_node *w = pawl_random_dims(
		r, PAWL_ROLE_WEIGHT, "w", pawl_random_weight_dtype(r, r->width), 2, dims);
	int64_t cut = 1 + pawl_random_below(r, 23);
	const int64_t start[2][2] = {{0, 0}, {cut, 0}};
	const int64_t stop[2][2] = {{cut, r->width}, {24, r->width}};
	int i;

	for (i = 0; i < 2; i++) {
		struct pawl_node *part =
			pawl_random_some(r, pawl_build_slice(r->graph, w, start[i], stop[i]));

		pawl_random_keep(r, pawl_random_some(r, pawl_build_matmul(r->graph, x.node, part)),
			x.bound * 2 * (double)r->width);
	}
}

void
pawl_random_add_views(struct pawl_random *r)
{
	struct pawl_random_value x = pawl_random_any(r);
	int n = 1 + (int)pawl_random_below(r, 4);

	if (pawl_random_chance(r, 10)) {
		add_cut_weight(r);
		return;
	}
	while (n--) {
		x.node = view(r, x.node);
		if (pawl_random_chance(r, 30))
			pawl_random_keep(r, x.node, x.bound);
	}
	if (pawl_random_chance(r, 30) &&
		(x.node->type.rank == 0 || pawl_type_is_static(&x.node->type)))
		x.node = pawl_random_op1(r, PAWL_OP_COPY, x.node);
	pawl_random_keep(r, x.node, x.bound);
}
