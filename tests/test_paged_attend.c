/*
 * Paged attention in both arithmetics: the bits of plain attention, wherever the blocks of a
 * sequence lie and whoever else has blocks in the same cache.  What no row sees is NaN.
 */
#include "tests/suites.h"
#include "tests/tensors.h"

#include <math.h>
#include <string.h>

enum { HEADS = 6, GROUPS = 2, SIZE = 20, WIDTH = 12, CACHE = 768, MOST_ROWS = 6 };

/* Rows of n_sequences sequences, rows_each of every one, at given positions. */
struct scene {
	int64_t block, columns, n_sequences, rows_each, window;
	int64_t positions[MOST_ROWS];
	enum pawl_dtype dtype;
	enum pawl_layout layout;
};

/* The paged call, and each sequence's keys and values by position. */
struct stage {
	struct pawl_attrs attrs;
	struct pawl_tensor in[5], k[MOST_ROWS], v[MOST_ROWS];
	int64_t n_rows, n_positions;
};

static struct pawl_tensor
new_cache(enum pawl_dtype dtype, enum pawl_layout layout, int64_t positions, int64_t width)
{
	const int64_t dims[] = {1, GROUPS, positions, width};
	struct pawl_tensor t = layout == PAWL_LAYOUT_K16 ? pawl_test_k16(dtype, dims)
							 : pawl_test_tensor(dtype, 4, dims);
	int64_t i;

	for (i = 0; i < GROUPS * positions * width; i++)
		pawl_test_set(&t, i, NAN);
	return t;
}

static void
put(struct pawl_tensor *paged, struct pawl_tensor *plain, int64_t slot, int64_t position,
	int64_t width)
{
	int64_t g, i;

	for (g = 0; g < GROUPS; g++) {
		for (i = 0; i < width; i++) {
			double x = pawl_test_random(2.0);

			pawl_test_set(paged, (g * paged->dim[2] + slot) * width + i, x);
			pawl_test_set(plain, (g * plain->dim[2] + position) * width + i, x);
		}
	}
}

static int64_t
last_position(const struct scene *s, int64_t sequence)
{
	int64_t last = -1, i;

	for (i = sequence * s->rows_each; i < (sequence + 1) * s->rows_each; i++)
		last = s->positions[i] > last ? s->positions[i] : last;
	return last;
}

/* Blocks are dealt from the last to the first, in turns, so that none is where it would be. */
static void
set_up(const struct scene *s, struct stage *g)
{
	int64_t next = CACHE / s->block, i, j, p;

	*g = (struct stage){.attrs = pawl_attrs_default(), .n_rows = s->n_sequences * s->rows_each,
		.n_positions = s->columns * s->block};
	g->attrs.scale = 0.3;
	g->attrs.window = s->window;
	g->attrs.block = s->block;
	g->in[0] = pawl_test_tensor(PAWL_DTYPE_F32, 3, PAWL_DIMS(g->n_rows, HEADS, SIZE));
	pawl_test_fill(&g->in[0], 2.0);
	g->in[1] = new_cache(s->dtype, s->layout, CACHE, SIZE);
	g->in[2] = new_cache(s->dtype, PAWL_LAYOUT_ROWS, CACHE, WIDTH);
	g->in[3] = pawl_test_tensor(PAWL_DTYPE_I64, 1, PAWL_DIMS(g->n_rows));
	g->in[4] = pawl_test_tensor(PAWL_DTYPE_U32, 2, PAWL_DIMS(s->n_sequences, s->columns));
	for (i = 0; i < g->n_rows; i++)
		pawl_tensor_store_i64(&g->in[3], i, s->positions[i]);
	for (i = 0; i < s->n_sequences; i++) {
		g->k[i] = new_cache(s->dtype, PAWL_LAYOUT_ROWS, g->n_positions, SIZE);
		g->v[i] = new_cache(s->dtype, PAWL_LAYOUT_ROWS, g->n_positions, WIDTH);
	}
	for (j = 0; j < s->columns; j++) {
		for (i = 0; i < s->n_sequences; i++) {
			int64_t first = j * s->block;

			pawl_tensor_store_i64(&g->in[4], i * s->columns + j, 0);
			if (first > last_position(s, i))
				continue;
			ck_assert_int_gt(next, 0);
			pawl_tensor_store_i64(&g->in[4], i * s->columns + j, --next);
			for (p = first; p < first + s->block && p <= last_position(s, i); p++) {
				put(&g->in[1], &g->k[i], next * s->block + p % s->block, p, SIZE);
				put(&g->in[2], &g->v[i], next * s->block + p % s->block, p, WIDTH);
			}
		}
	}
}

/* Row t, alone over its sequence's keys and values. */
static void
attend_alone(const struct stage *g, const struct scene *s, int64_t t, bool exact,
	struct pawl_tensor *out)
{
	struct pawl_attrs attrs = g->attrs;
	struct pawl_tensor in[4];

	attrs.block = 0;
	pawl_tensor_slice(&g->in[0], PAWL_DIMS(t, 0, 0), PAWL_DIMS(t + 1, HEADS, SIZE), &in[0]);
	in[1] = g->k[t / s->rows_each];
	in[2] = g->v[t / s->rows_each];
	in[3] = pawl_test_int(s->positions[t]);
	*out = exact ? pawl_test_wide(3, PAWL_DIMS(1, HEADS, WIDTH))
		     : pawl_test_tensor(PAWL_DTYPE_F32, 3, PAWL_DIMS(1, HEADS, WIDTH));
	pawl_test_run(exact, PAWL_OP_ATTENTION, &attrs, in, 4, out);
}

static void
check(const struct scene *s)
{
	struct stage g;
	int64_t t, i, row = HEADS * WIDTH;
	int exact;

	set_up(s, &g);
	for (exact = 0; exact < 2; exact++) {
		struct pawl_tensor one, all =
			exact ? pawl_test_wide(3, PAWL_DIMS(g.n_rows, HEADS, WIDTH))
			      : pawl_test_tensor(
					PAWL_DTYPE_F32, 3, PAWL_DIMS(g.n_rows, HEADS, WIDTH));

		pawl_test_run(exact, PAWL_OP_PAGED_ATTENTION, &g.attrs, g.in, 5, &all);
		for (t = 0; t < g.n_rows; t++) {
			if (s->positions[t] < 0) {
				for (i = 0; i < row; i++)
					ck_assert(pawl_test_get(&all, t * row + i) == 0);
				continue;
			}
			attend_alone(&g, s, t, exact, &one);
			for (i = 0; i < row; i++) {
				double got = pawl_test_get(&all, t * row + i);

				ck_assert(!isnan(got));
				ck_assert_double_eq(got, pawl_test_get(&one, i));
			}
		}
	}
}

static const struct scene scenes[] = {
	{16, 24, 1, 1, 0, {299}, PAWL_DTYPE_F32, PAWL_LAYOUT_K16},
	{16, 20, 1, 3, 0, {126, 127, 128}, PAWL_DTYPE_F16, PAWL_LAYOUT_K16},
	{48, 8, 4, 1, 0, {0, 15, 130, 255}, PAWL_DTYPE_F32, PAWL_LAYOUT_K16},
	{64, 6, 3, 2, 0, {40, 41, -1, -1, 200, -1}, PAWL_DTYPE_BF16, PAWL_LAYOUT_ROWS},
	{128, 2, 2, 1, 100, {160, 3}, PAWL_DTYPE_F32, PAWL_LAYOUT_K16},
	{16, 12, 2, 1, 5, {190, INT64_MIN}, PAWL_DTYPE_F16, PAWL_LAYOUT_ROWS},
	{256, 1, 3, 1, 0, {255, 0, 128}, PAWL_DTYPE_F32, PAWL_LAYOUT_K16},
};

START_TEST(every_row_is_as_if_alone)
{
	check(&scenes[_i]);
}
END_TEST

/* A table that repeats its blocks keeps what a window needs and no more: a ring. */
START_TEST(a_ring_is_a_table_that_repeats)
{
	const struct scene plain = {128, 4, 1, 1, 120, {400}, PAWL_DTYPE_F32, PAWL_LAYOUT_K16};
	struct pawl_tensor want = pawl_test_tensor(PAWL_DTYPE_F32, 3, PAWL_DIMS(1, HEADS, WIDTH)),
			   got = pawl_test_tensor(PAWL_DTYPE_F32, 3, PAWL_DIMS(1, HEADS, WIDTH));
	struct pawl_tensor ring[5];
	struct stage g;
	int64_t p, h, i;

	set_up(&plain, &g);
	pawl_test_run(false, PAWL_OP_PAGED_ATTENTION, &g.attrs, g.in, 5, &want);
	memcpy(ring, g.in, sizeof(ring));
	ring[1] = new_cache(PAWL_DTYPE_F32, PAWL_LAYOUT_K16, 256, SIZE);
	ring[2] = new_cache(PAWL_DTYPE_F32, PAWL_LAYOUT_ROWS, 256, WIDTH);
	ring[4] = pawl_test_tensor(PAWL_DTYPE_U32, 2, PAWL_DIMS(1, 4));
	for (i = 0; i < 4; i++)
		pawl_tensor_store_i64(&ring[4], i, i % 2);
	for (p = 400 - 119; p <= 400; p++) {
		for (h = 0; h < GROUPS; h++) {
			for (i = 0; i < SIZE; i++)
				pawl_test_set(&ring[1], (h * 256 + p % 256) * SIZE + i,
					pawl_test_get(&g.k[0], (h * 512 + p) * SIZE + i));
			for (i = 0; i < WIDTH; i++)
				pawl_test_set(&ring[2], (h * 256 + p % 256) * WIDTH + i,
					pawl_test_get(&g.v[0], (h * 512 + p) * WIDTH + i));
		}
	}
	pawl_test_run(false, PAWL_OP_PAGED_ATTENTION, &g.attrs, ring, 5, &got);
	for (i = 0; i < HEADS * WIDTH; i++) {
		ck_assert(!isnan(pawl_test_get(&got, i)));
		ck_assert_double_eq(pawl_test_get(&got, i), pawl_test_get(&want, i));
	}
}
END_TEST

START_TEST(blocks_and_positions_out_of_range_are_refused)
{
	const struct scene scene = {48, 8, 2, 1, 0, {383, 383}, PAWL_DTYPE_F32, PAWL_LAYOUT_K16};
	struct pawl_tensor out = pawl_test_tensor(PAWL_DTYPE_F32, 3, PAWL_DIMS(2, HEADS, WIDTH));
	struct pawl_error err;
	struct stage g;

	set_up(&scene, &g);
	pawl_test_run(false, PAWL_OP_PAGED_ATTENTION, &g.attrs, g.in, 5, &out);
	pawl_tensor_store_i64(&g.in[3], 1, 384);
	ck_assert_int_eq(pawl_test_call(
				 false, PAWL_OP_PAGED_ATTENTION, &g.attrs, g.in, 5, &out, &err),
		PAWL_CAPACITY);
	ck_assert_str_eq(err.text, "paged_attention: row 1 stands at 384 of 384 positions");
	pawl_tensor_store_i64(&g.in[3], 1, 383);
	pawl_tensor_store_i64(&g.in[4], 15, 16);
	ck_assert_int_eq(
		pawl_test_call(true, PAWL_OP_PAGED_ATTENTION, &g.attrs, g.in, 5, &out, &err),
		PAWL_CAPACITY);
	ck_assert_str_eq(err.text, "paged_attention: entry 15 of the table is block 16 of 16");
}
END_TEST

Suite *
pawl_paged_attend_suite(void)
{
	Suite *suite = suite_create("paged_attend");
	TCase *tcase = tcase_create("paged_attend");

	tcase_add_checked_fixture(tcase, pawl_tensors_begin, pawl_tensors_end);
	tcase_add_loop_test(tcase, every_row_is_as_if_alone, 0,
		(int)(sizeof(scenes) / sizeof(scenes[0])));
	tcase_add_test(tcase, a_ring_is_a_table_that_repeats);
	tcase_add_test(tcase, blocks_and_positions_out_of_range_are_refused);
	suite_add_tcase(suite, tcase);
	return suite;
}
