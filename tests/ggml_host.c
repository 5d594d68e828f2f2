#include "tests/ggml_host.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct pawl_fake_host fake = {.version = "0.26.0", .tensor_bytes = 336 + 32};

static const char *const op_names[] = {"NONE", "DUP", "MUL_MAT", "ADD", "SUB", "VIEW", "MUL", "DIV",
	"SCALE", "CONT", "RESHAPE", "PERMUTE", "TRANSPOSE", "GET_ROWS", "SET_ROWS", "RMS_NORM", "ROPE",
	"SOFT_MAX", "FLASH_ATTN_EXT", "ARGSORT", "UNARY", "GLU"};
static const char *const unary_names[] = {
	"ABS", "SILU", "TANH", "RELU", "SIGMOID", "GELU", "EXP", "X", "X", "X", "X", "X"};
static const char *const glu_names[] = {
	"REGLU", "SWIGLU", "GEGLU", "X", "X", "X", "X", "X", "X", "X", "X", "X"};

struct pawl_fake_host *
pawl_fake_host(void)
{
	return &fake;
}

static const char *
version(void)
{
	return fake.version;
}

static const char *
op_name(int op)
{
	return op_names[op];
}

static const char *
unary_name(int op)
{
	return unary_names[op];
}

static const char *
glu_name(int op)
{
	return glu_names[op];
}

static size_t
tensor_overhead(void)
{
	return fake.tensor_bytes;
}

struct buffer_11 {
	pawl_ggml_fn fn[11];
	void *buft, *context;
	size_t size;
	int32_t usage;
};

struct fns_11 {
	pawl_ggml_fn fn[11];
};

static void *
buffer_init(void *buft, struct fns_11 fns, void *context, size_t size)
{
	struct buffer_11 *buffer = calloc(1, sizeof(*buffer));

	ck_assert_ptr_nonnull(buffer);
	memcpy(buffer->fn, fns.fn, sizeof(buffer->fn));
	buffer->buft = buft;
	buffer->context = context;
	buffer->size = size;
	return buffer;
}

static void *
any_device(int type)
{
	ck_assert_int_eq(type, 0);
	return &fake;
}

static void *
device_init(void *device, const char *params)
{
	ck_assert_ptr_eq(device, &fake);
	ck_assert_ptr_null(params);
	return &fake;
}

static int
graph_compute(void *stream, struct pawl_ggml_graph *graph)
{
	ck_assert_ptr_eq(stream, &fake);
	ck_assert_int_gt(graph->n_nodes, 0);
	fake.n_computed++;
	return PAWL_GGML_SUCCESS;
}

static void
stream_free(void *stream)
{
	ck_assert_ptr_eq(stream, &fake);
}

static void
log_line(int level, const char *format, ...)
{
	(void)format;
	fake.n_warnings += level == PAWL_GGML_WARN;
}

static void *
device_registry(void *device)
{
	return device;
}

static void *
registry_proc(void *registry, const char *name)
{
	(void)registry;
	(void)name;
	return NULL;
}

void *
pawl_fake_find(void *arg, const char *symbol)
{
	const struct {
		const char *name;
		pawl_ggml_fn fn;
	} symbols[] = {
		{"ggml_version", (pawl_ggml_fn)version},
		{"ggml_op_name", (pawl_ggml_fn)op_name},
		{"ggml_unary_op_name", (pawl_ggml_fn)unary_name},
		{"ggml_glu_op_name", (pawl_ggml_fn)glu_name},
		{"ggml_tensor_overhead", (pawl_ggml_fn)tensor_overhead},
		{"ggml_backend_buffer_init", (pawl_ggml_fn)buffer_init},
		{"ggml_backend_dev_by_type", (pawl_ggml_fn)any_device},
		{"ggml_backend_dev_init", (pawl_ggml_fn)device_init},
		{"ggml_backend_graph_compute", (pawl_ggml_fn)graph_compute},
		{"ggml_log_internal", (pawl_ggml_fn)log_line},
		{"ggml_backend_free", (pawl_ggml_fn)stream_free},
		{"ggml_backend_dev_backend_reg", (pawl_ggml_fn)device_registry},
		{"ggml_backend_reg_get_proc_address", (pawl_ggml_fn)registry_proc},
	};
	void *found = NULL;
	size_t i;

	ck_assert_ptr_eq(arg, &fake);
	if (fake.lacks && !strcmp(fake.lacks, symbol))
		return NULL;
	for (i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++)
		if (!strcmp(symbols[i].name, symbol))
			memcpy(&found, &symbols[i].fn, sizeof(found));
	return found;
}

void
pawl_fake_graph_init(struct pawl_fake_graph *g)
{
	memset(g, 0, sizeof(*g));
	g->graph.nodes = g->nodes;
}

void
pawl_fake_graph_release(struct pawl_fake_graph *g)
{
	int i;

	for (i = 0; i < g->n; i++) {
		if (!g->tensors[i]->view_src)
			free(g->tensors[i]->data);
		free(g->tensors[i]);
	}
}

static size_t
place_of(const struct pawl_fake_graph *g, const struct pawl_ggml_tensor *t)
{
	size_t at = ((uintptr_t)t >> 4) % 1024;

	while ((g->used[at / 32] >> at % 32 & 1) && g->keys[at] != t)
		at = (at + 1) % 1024;
	return at;
}

void
pawl_fake_graph_count(struct pawl_fake_graph *g)
{
	int i, j;

	for (i = 0; i < g->n; i++) {
		size_t at = place_of(g, g->tensors[i]);

		g->keys[at] = g->tensors[i];
		g->used[at / 32] |= 1u << at % 32;
		g->counts[at] = 0;
	}
	for (i = 0; i < g->graph.n_nodes; i++)
		for (j = 0; j < PAWL_GGML_SOURCES; j++)
			if (g->nodes[i]->src[j])
				g->counts[place_of(g, g->nodes[i]->src[j])]++;
	g->graph.use_counts = g->counts;
	g->graph.hash_size = 1024;
	g->graph.hash_used = g->used;
	g->graph.hash_keys = g->keys;
}

static struct pawl_ggml_tensor *
add(struct pawl_fake_graph *g, int32_t type, const int64_t ne[4])
{
	struct pawl_ggml_tensor *t = aligned_alloc(64, 384);
	enum pawl_dtype dtype;
	int i;

	ck_assert_ptr_nonnull(t);
	ck_assert_int_lt(g->n, 256);
	ck_assert(pawl_dtype_from_ggml((uint32_t)type, &dtype));
	memset(t, 0, 384);
	t->type = type;
	for (i = 0; i < 4; i++)
		t->ne[i] = ne[i] ? ne[i] : 1;
	t->nb[0] = (size_t)pawl_dtype_info(dtype)->block_bytes;
	t->nb[1] = (size_t)pawl_dtype_bytes(dtype, t->ne[0]);
	t->nb[2] = t->nb[1] * (size_t)t->ne[1];
	t->nb[3] = t->nb[2] * (size_t)t->ne[2];
	snprintf(t->name, sizeof(t->name), "t%d", g->n);
	g->tensors[g->n++] = t;
	return t;
}

static void
allocate(struct pawl_ggml_tensor *t)
{
	size_t n = t->nb[3] * (size_t)t->ne[3];

	t->data = aligned_alloc(64, (n + 63) / 64 * 64);
	ck_assert_ptr_nonnull(t->data);
	memset(t->data, 0, n);
}

static bool
is_host(const void *type)
{
	(void)type;
	return true;
}

/* A buffer with nothing but a usage, which tells data from weights, and a kind. */
static const pawl_ggml_fn host_type[8] = {[7] = (pawl_ggml_fn)is_host};
static struct buffer_11 plain = {.buft = (void *)(uintptr_t)host_type};

struct pawl_ggml_buffer *
pawl_fake_remote_buffer(void)
{
	static const pawl_ggml_fn type[8] = {NULL};
	static struct buffer_11 remote = {.buft = (void *)(uintptr_t)type};

	return (struct pawl_ggml_buffer *)&remote;
}

struct pawl_ggml_tensor *
pawl_fake_leaf(struct pawl_fake_graph *g, int32_t type, int64_t ne0, int64_t ne1, int64_t ne2,
	int64_t ne3)
{
	struct pawl_ggml_tensor *t = add(g, type, (int64_t[]){ne0, ne1, ne2, ne3});

	allocate(t);
	t->buffer = (struct pawl_ggml_buffer *)&plain;
	return t;
}

static int32_t
number_of(const char *op)
{
	int32_t i;

	for (i = 0; strcmp(op_names[i], op); i++)
		ck_assert_str_ne(op_names[i], "GLU");
	return i;
}

static void
append(struct pawl_fake_graph *g, struct pawl_ggml_tensor *t)
{
	g->nodes[g->graph.n_nodes++] = t;
	t->flags = PAWL_GGML_COMPUTE;
}

struct pawl_ggml_tensor *
pawl_fake_node(struct pawl_fake_graph *g, const char *op, struct pawl_ggml_tensor *a,
	struct pawl_ggml_tensor *b, int64_t ne0, int64_t ne1, int64_t ne2, int64_t ne3)
{
	struct pawl_ggml_tensor *t = add(g, PAWL_FAKE_F32, (int64_t[]){ne0, ne1, ne2, ne3});

	allocate(t);
	t->buffer = (struct pawl_ggml_buffer *)&plain;
	t->op = number_of(op);
	t->src[0] = a;
	t->src[1] = b;
	append(g, t);
	return t;
}

struct pawl_ggml_tensor *
pawl_fake_view(struct pawl_fake_graph *g, struct pawl_ggml_tensor *x, const int64_t ne[4],
	const size_t nb[4], size_t offset)
{
	struct pawl_ggml_tensor *t = add(g, x->type, ne);

	memcpy(t->nb, nb, sizeof(t->nb));
	t->op = number_of("VIEW");
	t->src[0] = x;
	t->view_src = x->view_src ? x->view_src : x;
	t->view_offs = offset + (x->view_src ? x->view_offs : 0);
	t->data = (char *)t->view_src->data + t->view_offs;
	t->buffer = x->buffer;
	append(g, t);
	return t;
}

void
pawl_fake_param(struct pawl_ggml_tensor *t, int i, float value)
{
	memcpy(&t->params[i], &value, sizeof(value));
}

float *
pawl_fake_floats(struct pawl_ggml_tensor *t)
{
	return t->data;
}
