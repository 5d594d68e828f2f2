/* Random buffers, chains of writes to them, and readers of every version in whatever order. */
#include "ir/random_parts.h"

#include <stdio.h>

enum { MAX_VERSIONS = 16 };

/* A buffer and the values it has held; version 0 is the oldest that may be read. */
struct history {
	struct pawl_node *versions[MAX_VERSIONS];
	int n;
	int axis; /* that slabs lie along */
	double bound;
};

static struct pawl_node *
newest(const struct history *h)
{
	return h->versions[h->n - 1];
}

static struct pawl_type
slab_type(const struct history *h, int64_t length)
{
	struct pawl_type type = newest(h)->type;

	type.layout = PAWL_LAYOUT_ROWS;
	type.dim[h->axis] = pawl_dim_const(length);
	return type;
}

static int64_t
capacity(const struct history *h)
{
	return newest(h)->type.dim[h->axis].base;
}

/* Part of an old version: written back, it is read and destroyed by the same chain. */
static struct pawl_node *
old_slab(struct pawl_random *r, const struct history *h, int64_t length)
{
	struct pawl_node *old = h->versions[pawl_random_below(r, h->n)];
	int64_t start[PAWL_MAX_RANK] = {0}, stop[PAWL_MAX_RANK];
	int i;

	for (i = 0; i < old->type.rank; i++)
		stop[i] = old->type.dim[i].base;
	start[h->axis] = pawl_random_below(r, capacity(h) - length + 1);
	stop[h->axis] = start[h->axis] + length;
	return pawl_random_some(r, pawl_build_slice(r->graph, old, start, stop));
}

static struct pawl_node *
slab(struct pawl_random *r, struct history *h, int64_t length)
{
	struct pawl_type type = slab_type(h, length);
	struct pawl_random_value x;
	int i;

	if (newest(h)->type.layout == PAWL_LAYOUT_ROWS && pawl_random_chance(r, 15))
		return old_slab(r, h, length);
	for (i = 0; i < r->n_pool; i++) {
		if (!pawl_type_same_dims(&r->pool[i].node->type, &type) ||
			!pawl_random_chance(r, 50))
			continue;
		x = pawl_random_tame(r, r->pool[i], 100);
		if (h->bound < x.bound)
			h->bound = x.bound;
		if (type.dtype == PAWL_DTYPE_F32)
			return x.node;
		return pawl_random_some(r, pawl_build_cast(r->graph, x.node, type.dtype));
	}
	return pawl_random_const(r, PAWL_ROLE_DATA, "slab", &type);
}

static void
push(struct history *h, struct pawl_node *version)
{
	if (h->n < MAX_VERSIONS)
		h->versions[h->n++] = version;
}

static void
write_at(struct pawl_random *r, struct history *h, int64_t start_at, int64_t length)
{
	int64_t start[PAWL_MAX_RANK] = {0};

	start[h->axis] = start_at;
	push(h, pawl_random_some(r, pawl_build_write_slice(r->graph, newest(h), slab(r, h, length),
					    start, -1, NULL)));
}

static void
write_symbol(struct pawl_random *r, struct history *h, int64_t length)
{
	struct pawl_attrs attrs = pawl_attrs_default();
	struct pawl_node *inputs[] = {newest(h), slab(r, h, length)};
	char name[32];

	snprintf(name, sizeof(name), "P%d", r->n_names++);
	attrs.axis = h->axis;
	attrs.sym = pawl_graph_add_symbol(r->graph, name, 0, capacity(h) - length, 1);
	push(h, pawl_random_op(r, PAWL_OP_WRITE_SLICE, inputs, 2, &attrs, NULL));
}

static void
write_data(struct pawl_random *r, struct history *h, int64_t length)
{
	struct pawl_node *offset =
		pawl_random_dims(r, PAWL_ROLE_DATA, "offset", PAWL_DTYPE_I64, 0, NULL);

	push(h, pawl_random_some(r, pawl_build_write_slice(r->graph, newest(h), slab(r, h, length),
					    NULL, h->axis, offset)));
}

static void
write_rotating(struct pawl_random *r, struct history *h, int64_t length)
{
	struct pawl_attrs attrs = pawl_attrs_default();
	struct pawl_node *inputs[] = {newest(h), slab(r, h, length),
		pawl_random_dims(r, PAWL_ROLE_DATA, "position", PAWL_DTYPE_I64, 0, NULL)};

	attrs.axis = h->axis;
	attrs.modulus = length + pawl_random_below(r, capacity(h) - length + 1);
	push(h, pawl_random_op(r, PAWL_OP_WRITE_SLICE_ROTATING, inputs, 3, &attrs, NULL));
}

static void
write_rows(struct pawl_random *r, struct history *h, int64_t length)
{
	struct pawl_node *inputs[] = {newest(h), slab(r, h, length),
		pawl_random_dims(r, PAWL_ROLE_DATA, "index", PAWL_DTYPE_I64, 1, &length)};
	struct pawl_attrs attrs = pawl_attrs_default();

	if (h->axis || pawl_random_chance(r, 50))
		attrs.axis = h->axis;
	push(h, pawl_random_op(r, PAWL_OP_WRITE_ROWS, inputs, 3, &attrs, NULL));
}

static void
add_write(struct pawl_random *r, struct history *h)
{
	int64_t n = capacity(h), length = 1 + pawl_random_below(r, n), start;

	switch (pawl_random_below(r, 8)) {
	case 0:
		write_data(r, h, length);
		break;
	case 1:
		write_rotating(r, h, length);
		break;
	case 2:
		if (h->axis == 0 || h->axis < newest(h)->type.rank - 1)
			write_rows(r, h, length);
		else
			write_data(r, h, length);
		break;
	case 3:
		push(h, pawl_random_op1(r, PAWL_OP_ZERO_FILL, newest(h)));
		break;
	case 4: /* adjacent slabs */
		start = pawl_random_below(r, n);
		if (start > 0)
			write_at(r, h, pawl_random_below(r, start), 1);
		write_at(r, h, start, 1);
		if (start + 1 < n)
			write_at(r, h, start + 1, 1 + pawl_random_below(r, n - start - 1));
		break;
	case 5:
		if (pawl_random_has(r, PAWL_RANDOM_SYMBOLIC)) {
			write_symbol(r, h, length);
			break;
		}
		/* fall through */
	default:
		write_at(r, h, pawl_random_below(r, n - length + 1), length);
		break;
	}
}

/* An f32 value read from some version, through a view or not. */
static void
add_reader(struct pawl_random *r, const struct history *h)
{
	struct pawl_node *x = h->versions[pawl_random_below(r, h->n)];
	int64_t flat = pawl_type_elems(&x->type);

	if (x->type.layout != PAWL_LAYOUT_ROWS)
		x = pawl_random_op1(r, PAWL_OP_COPY, x);
	else if (pawl_random_chance(r, 40))
		x = old_slab(r, h, 1 + pawl_random_below(r, capacity(h)));
	else if (pawl_random_chance(r, 40))
		x = pawl_random_some(r, pawl_build_reshape(r->graph, x, 1, &flat));
	x = pawl_random_f32(r, x);
	if (pawl_random_chance(r, 60))
		x = pawl_random_op1(r, PAWL_OP_NEG, x);
	pawl_random_keep(r, x, h->bound);
}

static struct pawl_node *
alloc(struct pawl_random *r, const struct pawl_type *type, enum pawl_fill fill)
{
	struct pawl_attrs attrs = pawl_attrs_default();

	attrs.fill = fill;
	return pawl_random_op(r, PAWL_OP_ALLOC, NULL, 0, &attrs, type);
}

static void
open_buffer(struct pawl_random *r, struct history *h, const struct pawl_type *type)
{
	int64_t cut, n = type->dim[h->axis].base;
	struct pawl_node *buffer;

	h->n = 1;
	switch (pawl_random_below(r, 5)) {
	case 0:
		h->versions[0] = alloc(r, type, PAWL_FILL_ZERO);
		break;
	case 1:
		buffer = alloc(r, type, PAWL_FILL_NONE);
		h->versions[0] = pawl_random_op1(r, PAWL_OP_ZERO_FILL, buffer);
		break;
	case 2: /* what the buffer held at first nobody reads: two slabs cover it */
		if (type->layout == PAWL_LAYOUT_ROWS && n > 1) {
			struct pawl_type part = *type;
			int64_t start[PAWL_MAX_RANK] = {0};

			cut = 1 + pawl_random_below(r, n - 1);
			buffer = alloc(r, type, PAWL_FILL_NONE);
			part.dim[h->axis] = pawl_dim_const(cut);
			buffer = pawl_random_some(
				r, pawl_build_write_slice(r->graph, buffer,
					   pawl_random_const(r, PAWL_ROLE_DATA, "slab", &part),
					   start, -1, NULL));
			start[h->axis] = cut;
			part.dim[h->axis] = pawl_dim_const(n - cut);
			h->versions[0] = pawl_random_some(
				r, pawl_build_write_slice(r->graph, buffer,
					   pawl_random_const(r, PAWL_ROLE_DATA, "slab", &part),
					   start, -1, NULL));
			break;
		}
		/* fall through */
	default:
		h->versions[0] = pawl_random_const(r, PAWL_ROLE_KV, "state", type);
		break;
	}
}

void
pawl_random_add_state(struct pawl_random *r)
{
	const int64_t plain[] = {1 + pawl_random_below(r, 9), 1 + pawl_random_below(r, 20)};
	const int64_t heads[] = {1, 1 + pawl_random_below(r, 3), 16 * (1 + pawl_random_below(r, 2)),
		1 + pawl_random_below(r, 9)};
	enum pawl_dtype dtype = pawl_random_chance(r, 60) ? PAWL_DTYPE_F32 : PAWL_DTYPE_F16;
	struct history h = {.bound = 1};
	struct pawl_type type = pawl_type_make(dtype, 2, plain);
	int n = 1 + (int)pawl_random_below(r, 4);

	if (pawl_random_chance(r, 25)) {
		type = pawl_type_make(dtype, 4, heads);
		type.layout = pawl_random_chance(r, 60) ? PAWL_LAYOUT_K16 : PAWL_LAYOUT_ROWS;
		h.axis = 2;
	}
	open_buffer(r, &h, &type);
	if (pawl_random_chance(r, 30))
		add_reader(r, &h);
	while (n--) {
		add_write(r, &h);
		if (pawl_random_chance(r, 50))
			add_reader(r, &h);
	}
	add_reader(r, &h);
	if (pawl_random_chance(r, 30))
		pawl_random_result(r, newest(&h));
	if (pawl_random_chance(r, 8))
		pawl_random_result(r, h.versions[0]);
}
