/* The backend for llama.cpp, on graphs made by hand and a host of the tests' own. */
#include "tests/ggml_layer.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ir/half.h"
#include "plugins/ggml/ggml_held.h"
#include "plugins/ggml/ggml_key.h"
#include "plugins/ggml/ggml_plans.h"
#include "runtime/pool.h"
#include "tests/suites.h"

enum {
	D = PAWL_FAKE_WIDTH,
	HEADS = PAWL_FAKE_HEADS,
	GROUPS = PAWL_FAKE_GROUPS,
	CELLS = PAWL_FAKE_CELLS
};

static struct pawl_fake_graph g;
static const struct pawl_fake_layer one_stream = {
	.g = &g, .streams = 1, .groups = GROUPS, .cells = CELLS};

static struct pawl_ggml_host host;
static struct pawl_device *device;
static struct pawl_pool *pool;
static struct pawl_scratch scratch;
static struct pawl_error err;

static void
begin(void)
{
	ck_assert_msg(!pawl_ggml_host_bind(&host, pawl_fake_find, pawl_fake_host(), &err), "%s",
		err.text);
	ck_assert_msg(!pawl_device_open("ref", NULL, &device, &err), "%s", err.text);
	ck_assert_int_eq(pawl_pool_new(1, &pool, &err), PAWL_OK);
	pawl_fake_graph_init(&g);
}

static void
end(void)
{
	pawl_fake_graph_release(&g);
	pawl_scratch_release(&scratch);
	pawl_pool_free(pool);
	pawl_device_unref(device);
	*pawl_fake_host() = (struct pawl_fake_host){.version = "0.26.0", .tensor_bytes = 336 + 32};
}

START_TEST(versions)
{
	ck_assert_int_eq(pawl_ggml_layout_of("0.9.4")->n_buffer_fns, 9);
	ck_assert_int_eq(pawl_ggml_layout_of("0.10.0")->graph_compute, 12);
	ck_assert_int_eq(pawl_ggml_layout_of("0.25.3")->api, 2);
	ck_assert_int_eq(pawl_ggml_layout_of("0.26.0")->api, 3);
	ck_assert_int_eq(pawl_ggml_layout_of("0.26.1-dev")->buft_is_host, 7);
	ck_assert_ptr_null(pawl_ggml_layout_of("0.27.0"));
	ck_assert_ptr_null(pawl_ggml_layout_of("0.8.9"));
	ck_assert_ptr_null(pawl_ggml_layout_of("1.0.0"));
	ck_assert_ptr_null(pawl_ggml_layout_of("0."));
	ck_assert_ptr_null(pawl_ggml_layout_of("0.26"));
	ck_assert_ptr_null(pawl_ggml_layout_of("b4000"));
}
END_TEST

static void
assert_no_bind(const char *says)
{
	struct pawl_ggml_host other;

	ck_assert_int_eq(pawl_ggml_host_bind(&other, pawl_fake_find, pawl_fake_host(), &err),
		PAWL_ENVIRONMENT);
	ck_assert_msg(strstr(err.text, says), "%s", err.text);
}

START_TEST(a_host_that_is_not_known)
{
	pawl_fake_host()->version = "0.31.2";
	assert_no_bind("ggml 0.31.2 is none of the versions known here");
	pawl_fake_host()->version = "0.26.0";
	pawl_fake_host()->tensor_bytes = 352 + 32;
	assert_no_bind("takes 384 bytes, not 368");
	pawl_fake_host()->tensor_bytes = 336 + 32;
	pawl_fake_host()->lacks = "ggml_backend_dev_by_type";
	assert_no_bind("nothing in this process shows the symbol ggml_backend_dev_by_type");
	/* Nor does this program show any of them. */
	ck_assert_ptr_null(pawl_ggml_find_mapped(NULL, "ggml_version"));
	ck_assert_ptr_nonnull(pawl_ggml_find_mapped(NULL, "malloc"));
}
END_TEST

/* Translates the graph and makes its plan held. */
static struct pawl_ggml_held *
hold(struct pawl_ggml_symbols *symbols, uint64_t *hash)
{
	struct pawl_ggml_translation translation;
	struct pawl_ggml_held *held;
	struct pawl_plan *plan;

	ck_assert_msg(!pawl_ggml_translate(&host, &g.graph, true, &translation, &err), "%s",
		err.text);
	*symbols = translation.symbols;
	*hash = pawl_ggml_translation_hash(&translation);
	ck_assert_msg(!pawl_ggml_plans_get(*hash, translation.graph, device, &plan, &err), "%s",
		err.text);
	ck_assert_msg(!pawl_ggml_held_new(&host, &translation, plan, pawl_pool_team(pool),
			      &scratch, &held, &err),
		"%s", err.text);
	pawl_plan_unref(plan);
	return held;
}

/* Translates and computes the graph; returns the translation's hash. */
static uint64_t
compute(void)
{
	struct pawl_ggml_symbols symbols;
	uint64_t hash;
	struct pawl_ggml_held *held = hold(&symbols, &hash);

	ck_assert_msg(!pawl_ggml_held_run(held, &g.graph, symbols.n_tokens, symbols.n_rows, &err),
		"%s", err.text);
	pawl_ggml_held_free(held);
	return hash;
}

START_TEST(elements)
{
	struct pawl_ggml_tensor *a = pawl_fake_leaf(&g, PAWL_FAKE_F32, 32, 3, 0, 0);
	struct pawl_ggml_tensor *b = pawl_fake_leaf(&g, PAWL_FAKE_F32, 32, 1, 0, 0);
	struct pawl_ggml_tensor *sum = pawl_fake_node(&g, "ADD", a, b, 32, 3, 0, 0);
	struct pawl_ggml_tensor *scaled = pawl_fake_node(&g, "SCALE", sum, NULL, 32, 3, 0, 0);
	struct pawl_ggml_tensor *gated = pawl_fake_node(&g, "GLU", a, scaled, 32, 3, 0, 0);
	int64_t i;

	pawl_fake_param(scaled, 0, 0.5f);
	pawl_fake_param(scaled, 1, 2.0f);
	gated->params[0] = 1; /* SWIGLU of this host */
	pawl_fake_random(a, 1);
	pawl_fake_random(b, 2);
	compute();
	for (i = 0; i < 96; i++) {
		double x = pawl_fake_floats(a)[i], y = x + (double)pawl_fake_floats(b)[i % 32];

		pawl_fake_assert_near(pawl_fake_floats(sum)[i], y);
		pawl_fake_assert_near(pawl_fake_floats(scaled)[i], y / 2 + 2);
		pawl_fake_assert_near(pawl_fake_floats(gated)[i], x / (1 + exp(-x)) * (y / 2 + 2));
	}
}
END_TEST

START_TEST(norms_views_and_products)
{
	struct pawl_ggml_tensor *x = pawl_fake_leaf(&g, PAWL_FAKE_F32, 32, 2, 0, 0);
	struct pawl_ggml_tensor *w = pawl_fake_leaf(&g, PAWL_FAKE_F32, 32, 5, 0, 0);
	struct pawl_ggml_tensor *norm = pawl_fake_node(&g, "RMS_NORM", x, NULL, 32, 2, 0, 0);
	struct pawl_ggml_tensor *y = pawl_fake_node(&g, "MUL_MAT", w, norm, 5, 2, 0, 0);
	/* Elements 1 to 3 of each row, turned. */
	struct pawl_ggml_tensor *part = pawl_fake_view(
		&g, y, (int64_t[]){2, 3, 1, 1}, (size_t[]){20, 4, 40, 40}, 4);
	struct pawl_ggml_tensor *turned = pawl_fake_node(&g, "CONT", part, NULL, 2, 3, 0, 0);
	double rows[2][5], mean;
	int t, n, k;

	pawl_fake_param(norm, 0, 1e-5f);
	pawl_fake_random(x, 3);
	pawl_fake_random(w, 4);
	compute();
	for (t = 0; t < 2; t++) {
		const float *row = pawl_fake_floats(x) + 32 * t;

		for (k = 0, mean = 0; k < 32; k++)
			mean += (double)row[k] * (double)row[k] / 32;
		for (n = 0; n < 5; n++) {
			rows[t][n] = 0;
			for (k = 0; k < 32; k++)
				rows[t][n] += (double)pawl_fake_floats(w)[32 * n + k] *
					      (double)row[k] / sqrt(mean + 1e-5);
			pawl_fake_assert_near(pawl_fake_floats(y)[5 * t + n], rows[t][n]);
		}
	}
	for (n = 0; n < 3; n++)
		for (t = 0; t < 2; t++)
			pawl_fake_assert_near(pawl_fake_floats(turned)[2 * n + t], rows[t][n + 1]);
}
END_TEST

static uint64_t
attend_as(struct pawl_fake_layer l, int64_t n, int64_t seen, int64_t first, bool spelled_out, float *y)
{
	uint64_t hash;

	pawl_fake_graph_release(&g);
	pawl_fake_graph_init(&g);
	pawl_fake_layer_make(&l, n, seen, spelled_out);
	pawl_fake_graph_count(&g);
	pawl_fake_layer_fill(&l, n, seen, first, spelled_out);
	hash = compute();
	pawl_fake_layer_assert(&l, n);
	memcpy(y, l.y->data, (size_t)(l.streams * n * HEADS * D) * sizeof(*y));
	return hash;
}

static uint64_t
attend_streams(int64_t streams, int64_t n, int64_t seen, int64_t first, bool spelled_out, float *y)
{
	struct pawl_fake_layer l = one_stream;

	l.streams = streams;
	return attend_as(l, n, seen, first, spelled_out, y);
}

static uint64_t
attend(int64_t n, int64_t seen, int64_t first, bool spelled_out, float *y)
{
	return attend_streams(1, n, seen, first, spelled_out, y);
}

START_TEST(attention_sees_what_the_mask_says)
{
	float y[5 * HEADS * D], z[5 * HEADS * D];
	uint64_t hash = attend(1, 256, 3, false, y);

	/* Neither the positions that are looked at nor the cells are part of a plan. */
	ck_assert_uint_eq(attend(1, 256, 200, false, y), hash);
	ck_assert_uint_eq(attend(1, 512, 300, false, y), hash);
	/* Nor is the number of tokens, if it is not one. */
	hash = attend(5, 256, 3, false, y);
	ck_assert_uint_eq(attend(3, 512, 290, false, z), hash);
	attend(5, 256, 3, true, z);
	ck_assert_mem_eq(y, z, sizeof(y));
	hash = attend(2, 256, 0, true, z);
	ck_assert_uint_eq(attend(4, 512, 480, true, z), hash);
}
END_TEST

/* One head and as many cells as it has elements: rows and columns look alike. */
START_TEST(a_cache_that_is_square)
{
	struct pawl_fake_layer l = one_stream;
	float y[2 * 4 * HEADS * D], z[2 * 4 * HEADS * D];

	l.groups = 1;
	l.cells = D;
	for (l.streams = 1; l.streams < 3; l.streams++) {
		attend_as(l, 4, D, 3, false, y);
		attend_as(l, 4, D, 3, true, z);
		ck_assert_mem_eq(y, z, (size_t)(l.streams * 4 * HEADS * D) * sizeof(*y));
	}
}
END_TEST

/* With several streams, how many tokens each has is no more a part of a plan. */
START_TEST(streams_take_turns)
{
	float y[3 * 5 * HEADS * D], z[3 * 5 * HEADS * D];
	uint64_t hash = attend_streams(3, 5, 256, 3, false, y);
	uint64_t products = attend_streams(3, 5, 256, 3, true, z);

	ck_assert_mem_eq(y, z, sizeof(y));
	ck_assert_uint_eq(attend_streams(3, 3, 512, 290, false, z), hash);
	ck_assert_uint_eq(attend_streams(3, 4, 512, 290, true, z), products);
	ck_assert_uint_ne(attend_streams(2, 5, 256, 3, false, z), hash);
	/* A token of each is a plan of its own. */
	hash = attend_streams(3, 1, 256, 3, false, y);
	ck_assert_uint_eq(attend_streams(3, 1, 512, 290, false, z), hash);
	ck_assert_mem_eq(y, z, 3 * HEADS * D * sizeof(*y));
	attend_streams(3, 1, 256, 3, true, z);
	ck_assert_mem_eq(y, z, 3 * HEADS * D * sizeof(*y));
}
END_TEST

START_TEST(a_cell_outside_is_refused)
{
	struct pawl_ggml_symbols symbols;
	struct pawl_ggml_held *held;
	struct pawl_fake_layer l = one_stream;
	uint64_t hash;
	int i, spelled_out;

	for (spelled_out = 0; spelled_out < 2; spelled_out++) {
		pawl_fake_graph_release(&g);
		pawl_fake_graph_init(&g);
		pawl_fake_layer_make(&l, 1, 256, spelled_out);
		pawl_fake_graph_count(&g);
		pawl_fake_layer_fill(&l, 1, 256, 3, spelled_out);
		held = hold(&symbols, &hash);
		((int64_t *)l.v_list->data)[0] = spelled_out ? CELLS : -1;
		ck_assert_int_ne(pawl_ggml_held_run(held, &g.graph, 0, 0, &err), PAWL_OK);
		for (i = 0; i < D * GROUPS * CELLS; i++)
			ck_assert_int_eq(((uint16_t *)l.k_cache->data)[i], 0);
		pawl_fake_layer_fill(&l, 1, 256, 3, spelled_out);
		ck_assert_msg(!pawl_ggml_held_run(held, &g.graph, 0, 0, &err), "%s", err.text);
		pawl_fake_layer_assert(&l, 1);
		pawl_ggml_held_free(held);
	}
}
END_TEST

/* One more than there was room for moves what the others had pointed to. */
START_TEST(held_plans_take_turns_in_scratch_memory)
{
	enum { N = 3 };
	struct pawl_fake_graph graphs[N];
	struct pawl_ggml_held *held[N];
	struct pawl_ggml_tensor *x[N], *y[N];
	struct pawl_ggml_symbols symbols;
	const void *bytes = NULL;
	float first[32];
	uint64_t hash;
	int i, turn, n_moves = 0;

	for (i = 0; i < N; i++) {
		int64_t n = 1 << (6 * i);

		x[i] = pawl_fake_leaf(&g, PAWL_FAKE_F32, 32, n, 0, 0);
		y[i] = pawl_fake_node(&g, "RMS_NORM", x[i], NULL, 32, n, 0, 0);
		y[i] = pawl_fake_node(&g, "MUL_MAT", pawl_fake_leaf(&g, PAWL_FAKE_F32, 32, 32, 0, 0),
			y[i], 32, n, 0, 0);
		pawl_fake_random(y[i]->src[0], 9);
		y[i] = pawl_fake_node(&g, "RMS_NORM", y[i], NULL, 32, n, 0, 0);
		pawl_fake_graph_count(&g);
		pawl_fake_random(x[i], 11);
		held[i] = hold(&symbols, &hash);
		n_moves += scratch.common.bytes != bytes;
		bytes = scratch.common.bytes;
		graphs[i] = g;
		graphs[i].graph.nodes = graphs[i].nodes;
		graphs[i].graph.use_counts = graphs[i].counts;
		graphs[i].graph.hash_used = graphs[i].used;
		graphs[i].graph.hash_keys = graphs[i].keys;
		pawl_fake_graph_init(&g);
	}
	ck_assert_int_eq(n_moves, N);
	for (turn = 0; turn < 2; turn++) {
		for (i = 0; i < N; i++) {
			ck_assert_msg(!pawl_ggml_held_run(held[i], &graphs[i].graph, 0, 0, &err),
				"%s", err.text);
			/* The first row is the same in all. */
			if (!turn && !i)
				memcpy(first, y[0]->data, sizeof(first));
			ck_assert_mem_eq(y[i]->data, first, sizeof(first));
			pawl_fake_floats(y[i])[5] = 7;
		}
	}
	ck_assert_ptr_eq(scratch.common.bytes, bytes);
	for (i = 0; i < N; i++) {
		pawl_ggml_held_free(held[i]);
		pawl_fake_graph_release(&graphs[i]);
	}
}
END_TEST

START_TEST(shapes_have_keys)
{
	struct pawl_ggml_numbers numbers = {NULL, NULL, 0};
	static struct pawl_fake_graph first;
	struct pawl_ggml_key a, b;
	struct pawl_fake_layer l = one_stream;

	pawl_fake_layer_make(&l, 2, 256, false);
	ck_assert_int_eq(pawl_ggml_key_of(&host, &g.graph, &numbers, &a, &err), PAWL_OK);
	first = g;
	pawl_fake_graph_init(&g); /* at other addresses */
	pawl_fake_layer_make(&l, 2, 256, false);
	ck_assert_int_eq(pawl_ggml_key_of(&host, &g.graph, &numbers, &b, &err), PAWL_OK);
	ck_assert(a.a == b.a && a.b == b.b);
	l.y->params[0]++;
	ck_assert_int_eq(pawl_ggml_key_of(&host, &g.graph, &numbers, &b, &err), PAWL_OK);
	ck_assert(a.a != b.a && a.b != b.b);
	l.y->params[0]--;
	l.y->src[1]->ne[1] -= 1;
	ck_assert_int_eq(pawl_ggml_key_of(&host, &g.graph, &numbers, &b, &err), PAWL_OK);
	ck_assert(a.a != b.a && a.b != b.b);
	pawl_ggml_numbers_release(&numbers);
	pawl_fake_graph_release(&first);
}
END_TEST

Suite *
pawl_ggml_suite(void)
{
	Suite *suite = suite_create("ggml");
	TCase *tcase = tcase_create("ggml");

	tcase_add_checked_fixture(tcase, begin, end);
	tcase_add_test(tcase, versions);
	tcase_add_test(tcase, a_host_that_is_not_known);
	tcase_add_test(tcase, elements);
	tcase_add_test(tcase, norms_views_and_products);
	tcase_add_test(tcase, attention_sees_what_the_mask_says);
	tcase_add_test(tcase, a_cache_that_is_square);
	tcase_add_test(tcase, streams_take_turns);
	tcase_add_test(tcase, a_cell_outside_is_refused);
	tcase_add_test(tcase, held_plans_take_turns_in_scratch_memory);
	tcase_add_test(tcase, shapes_have_keys);
	suite_add_tcase(suite, tcase);
	return suite;
}
