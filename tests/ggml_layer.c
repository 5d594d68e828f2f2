#include "tests/ggml_layer.h"

#include <check.h>
#include <math.h>

#include "ir/half.h"

enum { D = PAWL_FAKE_WIDTH, HEADS = PAWL_FAKE_HEADS };

void
pawl_fake_random(struct pawl_ggml_tensor *t, unsigned seed)
{
	float *x = pawl_fake_floats(t);
	int64_t i;

	for (i = 0; i < t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3]; i++) {
		seed = seed * 1664525u + 1013904223u;
		x[i] = (float)(seed >> 8) / (1 << 23) - 1.0f;
	}
}

void
pawl_fake_assert_near(double x, double y)
{
	ck_assert_msg(fabs(x - y) <= 2e-5 * (1 + fabs(y)), "%.9g is not near %.9g", x, y);
}

static struct pawl_ggml_tensor *
rope(struct pawl_fake_layer *l, struct pawl_ggml_tensor *x, int64_t heads, int64_t n)
{
	struct pawl_ggml_tensor *y = pawl_fake_node(l->g, "ROPE", x, l->positions, D, heads, n, 0);

	y->params[1] = D;
	y->params[2] = 2;
	pawl_fake_param(y, 5, 10000);
	pawl_fake_param(y, 6, 1);
	pawl_fake_param(y, 8, 1);
	return y;
}

static void
set_rows(struct pawl_fake_layer *l, struct pawl_ggml_tensor *cache, struct pawl_ggml_tensor *x,
	struct pawl_ggml_tensor *list, int64_t width, int64_t n)
{
	struct pawl_ggml_tensor *rows = pawl_fake_view(l->g, x, (int64_t[]){width, n, 1, 1},
		(size_t[]){4, 4 * (size_t)width, 4 * (size_t)(width * n), 4 * (size_t)(width * n)}, 0);
	struct pawl_ggml_tensor *dest = cache, *write;

	if (width == 1)
		dest = pawl_fake_view(l->g, cache,
			(int64_t[]){1, cache->ne[0] * l->cells * cache->ne[2], 1, 1},
			(size_t[]){2, 2, cache->nb[3], cache->nb[3]}, 0);
	write = pawl_fake_view(l->g, dest, dest->ne, dest->nb, 0);
	write->op = 14; /* SET_ROWS */
	write->src[0] = rows;
	write->src[1] = list;
	write->src[2] = dest;
}

/* Queries turned as ggml wants them: [D, n, HEADS, streams]. */
static struct pawl_ggml_tensor *
turn(const struct pawl_fake_layer *l, int64_t n)
{
	return pawl_fake_view(l->g, l->q, (int64_t[]){D, n, HEADS, l->streams},
		(size_t[]){4, 4 * D * HEADS, 4 * D, 4 * D * HEADS * (size_t)n}, 0);
}

static struct pawl_ggml_tensor *
cells_of(const struct pawl_fake_layer *l, struct pawl_ggml_tensor *cache, int64_t n)
{
	return pawl_fake_view(l->g, cache, (int64_t[]){D, n, l->groups, cache->ne[2]},
		(size_t[]){2, 2 * D * l->groups, 2 * D, 2 * D * l->groups * l->cells}, 0);
}

static void
products(struct pawl_fake_layer *l, int64_t n, int64_t seen)
{
	struct pawl_ggml_tensor *scores, *weighed, *y, *v;

	scores = pawl_fake_node(l->g, "MUL_MAT", cells_of(l, l->k_cache, seen), turn(l, n), seen, n,
		HEADS, l->streams);
	scores->params[0] = 10;
	weighed = pawl_fake_node(l->g, "SOFT_MAX", scores, l->mask, seen, n, HEADS, l->streams);
	pawl_fake_param(weighed, 0, 0.125f);
	v = pawl_fake_view(l->g, l->v_cache, (int64_t[]){seen, D, l->groups, l->streams},
		(size_t[]){2, 2 * l->cells, 2 * l->cells * D, 2 * l->cells * D * l->groups}, 0);
	y = pawl_fake_node(l->g, "MUL_MAT", v, weighed, D, n, HEADS, l->streams);
	y = pawl_fake_view(l->g, y, (int64_t[]){D, HEADS, n, l->streams},
		(size_t[]){4, 4 * D * (size_t)n, 4 * D, 4 * D * HEADS * (size_t)n}, 0);
	l->y = pawl_fake_node(l->g, "CONT", y, NULL, D * HEADS, n * l->streams, 0, 0);
}

/* n tokens of each stream that look at `seen` cells; spelled out as products, or as one op. */
void
pawl_fake_layer_make(struct pawl_fake_layer *l, int64_t n, int64_t seen, bool spelled_out)
{
	struct pawl_ggml_tensor *attention;
	int64_t all = n * l->streams, n_values = spelled_out ? all * D * l->groups : all;

	l->q = pawl_fake_leaf(l->g, PAWL_FAKE_F32, D, HEADS, all, 0);
	l->k = pawl_fake_leaf(l->g, PAWL_FAKE_F32, D, l->groups, all, 0);
	l->v = pawl_fake_leaf(l->g, PAWL_FAKE_F32, D * l->groups, all, 0, 0);
	l->positions = pawl_fake_leaf(l->g, PAWL_FAKE_I32, all, 0, 0, 0);
	l->k_list = pawl_fake_leaf(l->g, PAWL_FAKE_I64, all, 0, 0, 0);
	l->v_list = pawl_fake_leaf(l->g, PAWL_FAKE_I64, n_values, 0, 0, 0);
	l->mask = pawl_fake_leaf(
		l->g, spelled_out ? PAWL_FAKE_F32 : PAWL_FAKE_F16, seen, n, 1, l->streams);
	l->k_cache = pawl_fake_leaf(l->g, PAWL_FAKE_F16, D * l->groups, l->cells, l->streams, 0);
	l->v_cache = pawl_fake_leaf(l->g, PAWL_FAKE_F16, D * l->groups, l->cells, l->streams, 0);
	l->q = rope(l, l->q, HEADS, all);
	l->k = rope(l, l->k, l->groups, all);
	set_rows(l, l->k_cache, l->k, l->k_list, D * l->groups, all);
	set_rows(l, l->v_cache, l->v, l->v_list, spelled_out ? 1 : D * l->groups, n_values);
	if (spelled_out) {
		products(l, n, seen);
		return;
	}
	attention = pawl_fake_node(l->g, "FLASH_ATTN_EXT", turn(l, n), cells_of(l, l->k_cache, seen), D,
		HEADS, n, l->streams);
	attention->src[2] = cells_of(l, l->v_cache, seen);
	attention->src[3] = l->mask;
	pawl_fake_param(attention, 0, 0.125f);
	attention->params[3] = 10;
	/* Its sources come before it. */
	l->g->nodes[l->g->graph.n_nodes - 2] = attention->src[2];
	l->g->nodes[l->g->graph.n_nodes - 1] = attention;
	l->y = attention;
}

static void
hide(struct pawl_fake_layer *l, int64_t at, bool hides)
{
	if (l->mask->type == PAWL_FAKE_F32)
		pawl_fake_floats(l->mask)[at] = hides ? -INFINITY : 0.0f;
	else
		((uint16_t *)l->mask->data)[at] = hides ? 0xfc00 : 0;
}

/*
 * Token t of a stream stands at position 100 + t, in cell `first` + 7 t, and sees the cells of all up to
 * itself.
 */
void
pawl_fake_layer_fill(struct pawl_fake_layer *l, int64_t n, int64_t seen, int64_t first, bool spelled_out)
{
	int64_t row, s, e;

	pawl_fake_random(l->q->src[0], 5);
	pawl_fake_random(l->k->src[0], 6);
	pawl_fake_random(l->v, 7);
	for (row = 0; row < n * l->streams; row++) {
		int64_t t = row % n, cell = row / n * l->cells + first + 7 * t;

		((int32_t *)l->positions->data)[row] = (int32_t)(100 + t);
		((int64_t *)l->k_list->data)[row] = cell;
		for (e = 0; spelled_out && e < D * l->groups; e++)
			((int64_t *)l->v_list->data)[row * D * l->groups + e] =
				(row / n * D * l->groups + e) * l->cells + first + 7 * t;
		if (!spelled_out)
			((int64_t *)l->v_list->data)[row] = cell;
		for (s = 0; s < seen; s++)
			hide(l, row * seen + s,
				s < first || (s - first) % 7 || (s - first) / 7 > t);
	}
}

static double
turned(const float *x, int64_t position, int i)
{
	int half = D / 2, k = i % half;
	double angle = (double)position * pow(10000, -2.0 * k / D);

	return i < half ? (double)x[k] * cos(angle) - (double)x[k + half] * sin(angle)
			: (double)x[k + half] * cos(angle) + (double)x[k] * sin(angle);
}

static double
stored(double x)
{
	return (double)pawl_f32_from_f16(pawl_f16_from_f32((float)x));
}

static void
assert_row(const struct pawl_fake_layer *l, int64_t n, int64_t row, int h)
{
	const float *q = pawl_fake_floats(l->q->src[0]), *k = pawl_fake_floats(l->k->src[0]);
	const float *v = pawl_fake_floats(l->v);
	int64_t t = row % n, first = row - t, u;
	double weight[16], sum = 0, most = -1e9, y;
	int i;

	for (u = 0; u <= t; u++) {
		const float *key = k + ((first + u) * l->groups + h / (HEADS / l->groups)) * D;

		for (i = 0, weight[u] = 0; i < D; i++)
			weight[u] += turned(q + (row * HEADS + h) * D, 100 + t, i) *
				     stored(turned(key, 100 + u, i)) / 8;
		most = fmax(most, weight[u]);
	}
	for (u = 0; u <= t; u++)
		sum += weight[u] = exp(weight[u] - most);
	for (i = 0; i < D; i++) {
		for (u = 0, y = 0; u <= t; u++)
			y += weight[u] / sum *
			     stored((double)v[((first + u) * l->groups + h / (HEADS / l->groups)) * D + i]);
		pawl_fake_assert_near(pawl_fake_floats(l->y)[(row * HEADS + h) * D + i], y);
	}
}

void
pawl_fake_layer_assert(const struct pawl_fake_layer *l, int64_t n)
{
	int64_t row;
	int h;

	for (row = 0; row < n * l->streams; row++)
		for (h = 0; h < HEADS; h++)
			assert_row(l, n, row, h);
}
