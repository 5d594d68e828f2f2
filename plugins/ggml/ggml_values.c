#include "plugins/ggml/ggml_values.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum pawl_status
pawl_ggml_decline(struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *op,
	const char *format, ...)
{
	char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return pawl_fail(t->err, PAWL_UNSUPPORTED, "op %s of %.63s: %s",
		pawl_ggml_op_text(t->host, op), op->name, text);
}

static size_t
place_of(const struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *tensor)
{
	size_t i = ((uintptr_t)tensor >> 4) * (size_t)0x9e3779b97f4a7c15u % t->n_places;

	while (t->values[i].tensor && t->values[i].tensor != tensor)
		i = (i + 1) % t->n_places;
	return i;
}

struct pawl_ggml_value *
pawl_ggml_value_find(struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *tensor)
{
	struct pawl_ggml_value *value = &t->values[place_of(t, tensor)];

	return value->tensor ? value : NULL;
}

struct pawl_ggml_value *
pawl_ggml_value_add(struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *tensor,
	struct pawl_ggml_place place)
{
	struct pawl_ggml_value *value = &t->values[place_of(t, tensor)];

	*value = (struct pawl_ggml_value){.tensor = tensor, .place = place};
	return value;
}

void
pawl_ggml_set(
	struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *op, struct pawl_node *node)
{
	struct pawl_ggml_value *value = pawl_ggml_value_find(t, op);

	value->node = node;
	value->pending = PAWL_GGML_READY;
}

struct pawl_ggml_place
pawl_ggml_source_place(const struct pawl_ggml_translator *t, int i, bool is_root)
{
	return (struct pawl_ggml_place){t->at, i, is_root};
}

struct pawl_dim
pawl_ggml_token_dim(const struct pawl_ggml_translator *t, int64_t n)
{
	const struct pawl_ggml_symbols *symbols = &t->out->symbols;

	if (symbols->tokens >= 0 && n == symbols->n_tokens)
		return (struct pawl_dim){0, symbols->streams, symbols->tokens};
	return pawl_dim_const(n);
}

struct pawl_dim
pawl_ggml_stream_dim(const struct pawl_ggml_translator *t, int64_t n)
{
	const struct pawl_ggml_symbols *symbols = &t->out->symbols;

	if (symbols->tokens >= 0 && n * symbols->streams == symbols->n_tokens)
		return (struct pawl_dim){0, 1, symbols->tokens};
	return pawl_dim_const(n);
}

bool
pawl_ggml_takes_turns(const struct pawl_ggml_translator *t)
{
	return t->out->symbols.tokens >= 0 && t->out->symbols.streams > 1;
}

struct pawl_ggml_bind *
pawl_ggml_bind_add(struct pawl_ggml_translator *t, enum pawl_ggml_bind_kind kind,
	struct pawl_ggml_place place)
{
	struct pawl_ggml_translation *out = t->out;
	struct pawl_ggml_bind *grown, *bind;

	if (out->n_binds == out->cap_binds) {
		grown = realloc(out->binds, (size_t)(out->cap_binds * 2 + 64) * sizeof(*grown));
		if (!grown) {
			pawl_fail(&t->graph->error, PAWL_OUT_OF_MEMORY, "no memory for bindings");
			return NULL;
		}
		out->binds = grown;
		out->cap_binds = out->cap_binds * 2 + 64;
	}
	bind = &out->binds[out->n_binds++];
	memset(bind, 0, sizeof(*bind));
	bind->kind = kind;
	bind->tensor = place;
	bind->window.node = bind->factors.node = -1;
	bind->symbol = -1;
	bind->number = out->n_numbers++;
	return bind;
}

struct pawl_node *
pawl_ggml_const(struct pawl_ggml_translator *t, const struct pawl_ggml_bind *bind,
	enum pawl_role role, const struct pawl_type *type)
{
	char name[16];

	snprintf(name, sizeof(name), "%c%" PRId32,
		role == PAWL_ROLE_WEIGHT ? 'w' : role == PAWL_ROLE_KV ? 's' : 'd', bind->number);
	return pawl_build_const(t->graph, role, name, type);
}

int
pawl_ggml_rank(const struct pawl_ggml_tensor *tensor)
{
	int rank = PAWL_GGML_DIMS;

	while (rank > 1 && tensor->ne[rank - 1] == 1)
		rank--;
	return rank;
}

int
pawl_ggml_value_rank(const struct pawl_ggml_tensor *tensor)
{
	int rank = pawl_ggml_rank(tensor);

	return rank < 2 ? 2 : rank;
}

bool
pawl_ggml_is_leaf(struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *root)
{
	struct pawl_ggml_value *value = pawl_ggml_value_find(t, root);

	return !value || value->place.src >= 0;
}

bool
pawl_ggml_is_weight(const struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *tensor)
{
	if (tensor->view_src || pawl_ggml_op_of(t->host, tensor) != PAWL_GGML_OP_NONE)
		return false;
	/* Before anything is allocated whatever stands alone is taken for one. */
	return !tensor->buffer ||
	       pawl_ggml_buffer_usage(t->host, tensor->buffer) == PAWL_GGML_WEIGHTS;
}

bool
pawl_ggml_is_contiguous(const struct pawl_ggml_tensor *tensor)
{
	const struct pawl_dtype_info *info;
	enum pawl_dtype dtype;
	size_t stride;
	int64_t n;
	int i;

	if (!pawl_dtype_from_ggml((uint32_t)tensor->type, &dtype))
		return false;
	info = pawl_dtype_info(dtype);
	stride = (size_t)info->block_bytes;
	n = tensor->ne[0] / info->block;
	if (tensor->ne[0] % info->block)
		return false;
	for (i = 0; i < PAWL_GGML_DIMS; i++) {
		if (tensor->ne[i] != 1 && tensor->nb[i] != stride && (i || n != 1))
			return false;
		stride *= (size_t)(i ? tensor->ne[i] : n);
	}
	return true;
}

struct pawl_ggml_value *
pawl_ggml_leaf(struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *op, int i)
{
	const struct pawl_ggml_tensor *root = pawl_ggml_root(op->src[i]);
	struct pawl_ggml_value *value = pawl_ggml_value_find(t, root);
	bool is_weight = pawl_ggml_is_weight(t, root);
	int rank, a;
	struct pawl_ggml_bind *bind;
	struct pawl_type type;
	enum pawl_dtype dtype;

	if (value)
		return value;
	if (pawl_ggml_state_find(t, root)) {
		pawl_ggml_decline(t, op, "source %d is a cache", i);
		return NULL;
	}
	if (!pawl_dtype_from_ggml((uint32_t)root->type, &dtype)) {
		pawl_ggml_decline(t, op, "source %d is of ggml's type %d", i, root->type);
		return NULL;
	}
	if (!pawl_ggml_is_contiguous(root)) {
		pawl_ggml_decline(t, op, "source %d is no cache of this device, and has gaps", i);
		return NULL;
	}
	rank = is_weight || !pawl_dtype_is_float(dtype) ? pawl_ggml_rank(root)
							: pawl_ggml_value_rank(root);
	type = (struct pawl_type){.dtype = dtype, .rank = rank};
	for (a = 0; a < rank; a++)
		type.dim[a] = pawl_dim_const(root->ne[rank - 1 - a]);
	if (!is_weight)
		type.dim[0] = pawl_ggml_token_dim(t, type.dim[0].base);
	bind = pawl_ggml_bind_add(t, is_weight ? PAWL_GGML_BIND_WEIGHT : PAWL_GGML_BIND_DATA,
		pawl_ggml_source_place(t, i, true));
	if (!bind)
		return NULL;
	value = pawl_ggml_value_add(t, root, bind->tensor);
	value->node = pawl_ggml_const(
		t, bind, is_weight ? PAWL_ROLE_WEIGHT : PAWL_ROLE_DATA, &type);
	return value;
}

/* The axis of a type that is symbolic, -1: none. */
static int
symbolic_axis(const struct pawl_type *type)
{
	int i;

	for (i = 0; i < type->rank; i++)
		if (type->dim[i].sym >= 0)
			return i;
	return -1;
}

static int64_t
count_of(const struct pawl_ggml_translator *t, struct pawl_dim dim)
{
	const struct pawl_ggml_symbols *symbols = &t->out->symbols;

	if (dim.sym < 0)
		return dim.base;
	return dim.sym == symbols->tokens ? symbols->n_tokens / symbols->streams * dim.factor
					  : symbols->n_rows;
}

static int64_t
elems_of(const struct pawl_ggml_translator *t, const struct pawl_type *type)
{
	int64_t n = 1;
	int i;

	for (i = 0; i < type->rank; i++)
		n *= count_of(t, type->dim[i]);
	return n;
}

bool
pawl_ggml_fills(struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *op)
{
	const struct pawl_ggml_value *value = pawl_ggml_value_find(t, op);
	const struct pawl_node *node;

	if (!value || value->pending != PAWL_GGML_READY || op->view_src)
		return true;
	node = value->turned ? value->turned : value->node;
	return node &&
	       elems_of(t, &node->type) == op->ne[0] * op->ne[1] * op->ne[2] * op->ne[3];
}

struct axis {
	int dim; /* of the tensor */
	int64_t n, stride;
};

/* The dims with more than one element, the slowest first; false where strides do not nest. */
static bool
find_axes(const struct pawl_ggml_tensor *x, const struct pawl_dtype_info *info, struct axis *axes,
	int *n_axes)
{
	struct axis axis;
	int i, j, n = 0;

	for (i = 0; i < PAWL_GGML_DIMS; i++) {
		if (x->ne[i] == 1)
			continue;
		axis = (struct axis){i, x->ne[i], 1};
		if (i || info->block == 1) {
			if (x->nb[i] % (size_t)info->block_bytes)
				return false;
			axis.stride =
				(int64_t)(x->nb[i] / (size_t)info->block_bytes) * info->block;
		}
		for (j = n++; j > 0 && axes[j - 1].stride < axis.stride; j--)
			axes[j] = axes[j - 1];
		axes[j] = axis;
	}
	for (i = 0; i < n; i++)
		if (axes[i].stride < 1 || (i && axes[i - 1].stride % axes[i].stride))
			return false;
	*n_axes = n;
	return true;
}

static struct pawl_node *
reshape(struct pawl_ggml_translator *t, struct pawl_node *x, const struct pawl_type *type)
{
	if (!x || pawl_type_same_dims(&x->type, type))
		return x;
	return pawl_build(t->graph, PAWL_OP_RESHAPE, NULL, &x, 1, NULL, type);
}

/* Cut out of x, seen as `shape`, what begins `offset` elements into it. */
static struct pawl_node *
cut(struct pawl_ggml_translator *t, struct pawl_node *x, const struct pawl_type *shape,
	const int64_t *strides, const struct axis *axes, int n, int64_t offset)
{
	int64_t start[PAWL_MAX_RANK], stop[PAWL_MAX_RANK];
	bool any = false;
	int i;

	x = reshape(t, x, shape);
	for (i = 0; i < shape->rank; i++) {
		int64_t wanted = i < n ? axes[i].n : 1;

		start[i] = offset / strides[i];
		offset %= strides[i];
		stop[i] = start[i] + wanted;
		if (shape->dim[i].sym >= 0) {
			if (start[i] || wanted != count_of(t, shape->dim[i]))
				return NULL;
			stop[i] = 0;
			continue;
		}
		if (stop[i] > shape->dim[i].base)
			return NULL;
		any |= wanted != shape->dim[i].base;
	}
	return any && x ? pawl_build_slice(t->graph, x, start, stop) : x;
}

/* x, whose elements the axes are a window on, with one axis for each of them. */
static struct pawl_node *
window_on(struct pawl_ggml_translator *t, struct pawl_node *x, const struct axis *axes, int n,
	int64_t offset)
{
	int64_t strides[PAWL_MAX_RANK], total = elems_of(t, &x->type), row = total;
	struct pawl_type shape = {.dtype = x->type.dtype};
	int at = symbolic_axis(&x->type), i;

	if (at >= 0)
		row = total / count_of(t, x->type.dim[at]);
	for (i = 0; i < n; i++) {
		int64_t above = i ? axes[i - 1].stride : total;

		if (above % axes[i].stride)
			return NULL;
		strides[i] = axes[i].stride;
		shape.dim[i] = pawl_dim_const(above / axes[i].stride);
	}
	shape.rank = n;
	if (n == 0 || axes[n - 1].stride > 1) {
		strides[n] = 1;
		shape.dim[shape.rank++] = pawl_dim_const(n ? axes[n - 1].stride : total);
	}
	if (at >= 0) {
		if (n == 0 || axes[0].stride != row)
			return NULL;
		shape.dim[0] = x->type.dim[at];
	}
	return cut(t, x, &shape, strides, axes, n, offset);
}

/* The axes of x, which are those of `axes` (and one of one element), as the dims of order. */
static struct pawl_node *
arrange(struct pawl_ggml_translator *t, struct pawl_node *x, const struct axis *axes, int n, int rank,
	const int *order)
{
	struct pawl_type type = {.dtype = x->type.dtype, .rank = rank};
	int perm[PAWL_MAX_RANK], n_perm = 0, a, i;
	bool moves = false;

	for (a = 0; a < rank; a++) {
		type.dim[a] = pawl_dim_const(1);
		for (i = 0; i < n && axes[i].dim != order[a]; i++)
			;
		if (i == n)
			continue;
		moves |= n_perm != i;
		perm[n_perm++] = i;
		type.dim[a] = x->type.dim[i];
	}
	if (n_perm != n)
		return NULL;
	if (x->type.rank > n)
		perm[n_perm++] = n;
	if (moves)
		x = pawl_build_permute(t->graph, x, perm);
	return reshape(t, x, &type);
}

static struct pawl_node *
read_turned(const struct pawl_ggml_value *value, const struct pawl_ggml_tensor *x, int rank,
	const int *order)
{
	const struct pawl_ggml_tensor *root = value->tensor;

	if (rank != 3 || order[0] != 2 || order[1] != 1 || order[2] != 0 || x->view_offs ||
		x->ne[0] != root->ne[0] || x->ne[1] != root->ne[2] || x->ne[2] != root->ne[1] ||
		x->ne[3] != root->ne[3] || x->nb[0] != root->nb[0] || x->nb[1] != root->nb[2] ||
		x->nb[2] != root->nb[1] || x->nb[3] != root->nb[3])
		return NULL;
	return value->turned;
}

static struct pawl_node *
read_value(struct pawl_ggml_translator *t, const struct pawl_ggml_value *value,
	const struct pawl_ggml_tensor *x, int rank, const int *order)
{
	const struct pawl_dtype_info *info = pawl_dtype_info(value->node->type.dtype);
	struct pawl_node *node = value->node;
	struct axis axes[PAWL_GGML_DIMS];
	int64_t offset;
	int n;

	if ((x->view_src && x->view_offs % (size_t)info->block_bytes) ||
		!find_axes(x, info, axes, &n))
		return NULL;
	offset = (int64_t)(x->view_src ? x->view_offs / (size_t)info->block_bytes : 0) * info->block;
	node = window_on(t, node, axes, n, offset);
	return node ? arrange(t, node, axes, n, rank, order) : NULL;
}

struct pawl_node *
pawl_ggml_read_as(struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *op, int i,
	const struct pawl_ggml_tensor *x, int rank, const int *order)
{
	struct pawl_ggml_value *value = pawl_ggml_leaf(t, op, i);
	struct pawl_node *node;

	if (!value)
		return NULL;
	if (value->pending != PAWL_GGML_READY && pawl_ggml_force(t, value))
		return NULL;
	if (value->turned)
		node = read_turned(value, x, rank, order);
	else
		node = value->node ? read_value(t, value, x, rank, order) : NULL;
	if (!node && t->graph->error.status == PAWL_OK)
		pawl_ggml_decline(
			t, op, "source %d is no window on %.63s", i, value->tensor->name);
	return node;
}

struct pawl_node *
pawl_ggml_read_in_order(struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *op, int i,
	int rank, const int *order)
{
	struct pawl_node *node;

	if (!op->src[i]) {
		pawl_ggml_decline(t, op, "source %d is missing", i);
		return NULL;
	}
	node = pawl_ggml_read_as(t, op, i, op->src[i], rank, order);
	if (node && (node->type.dtype == PAWL_DTYPE_F16 || node->type.dtype == PAWL_DTYPE_BF16))
		node = pawl_build_cast(t->graph, node, PAWL_DTYPE_F32);
	return node;
}

struct pawl_node *
pawl_ggml_read(struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *op, int i, int rank)
{
	int order[PAWL_GGML_DIMS], a;

	for (a = 0; a < rank; a++)
		order[a] = rank - 1 - a;
	return pawl_ggml_read_in_order(t, op, i, rank, order);
}
