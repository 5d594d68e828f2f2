/* What the backend for llama.cpp declines, whatever a host hands over. */
#include "tests/ggml_layer.h"

#include <check.h>
#include <string.h>

#include "plugins/ggml/ggml_stream.h"
#include "tests/suites.h"

enum { D = PAWL_FAKE_WIDTH, CELLS = PAWL_FAKE_CELLS };

static struct pawl_ggml_host host;
static struct pawl_error err;
static struct pawl_fake_graph g;

static void
begin(void)
{
	ck_assert_msg(!pawl_ggml_host_bind(&host, pawl_fake_find, pawl_fake_host(), &err), "%s",
		err.text);
	pawl_fake_graph_init(&g);
}

static void
end(void)
{
	pawl_fake_graph_release(&g);
}

/* Values that are part of the keys, as some models have it: another window than the cache's. */
START_TEST(two_windows_on_a_cache)
{
	struct pawl_ggml_tensor *q = pawl_fake_leaf(&g, PAWL_FAKE_F32, D, 1, 1, 0);
	struct pawl_ggml_tensor *cache = pawl_fake_leaf(&g, PAWL_FAKE_F16, D, CELLS, 0, 0);
	const size_t nb[4] = {2, 2 * D, 2 * D * CELLS, 2 * D * CELLS};
	struct pawl_ggml_tensor *k = pawl_fake_view(&g, cache, (int64_t[]){D, CELLS, 1, 1}, nb, 0);
	struct pawl_ggml_tensor *v =
		pawl_fake_view(&g, cache, (int64_t[]){D / 2, CELLS, 1, 1}, nb, 0);
	struct pawl_ggml_tensor *y = pawl_fake_node(&g, "FLASH_ATTN_EXT", q, k, D / 2, 1, 1, 0);

	pawl_fake_param(y, 0, 1);
	y->src[2] = v;
	ck_assert(!pawl_ggml_supports(&host, y, &err));
	ck_assert_msg(strstr(err.text, "source 2 is another part of a cache"), "%s", err.text);
	y->src[2] = k;
	y->ne[0] = D;
	ck_assert_msg(pawl_ggml_supports(&host, y, &err), "%s", err.text);
}
END_TEST

static void
assert_declined(const struct pawl_ggml_tensor *op, const char *says)
{
	ck_assert(!pawl_ggml_supports(&host, op, &err));
	ck_assert_msg(strstr(err.text, says), "%s", err.text);
}

START_TEST(what_is_not_known_is_declined)
{
	struct pawl_ggml_tensor *a = pawl_fake_leaf(&g, PAWL_FAKE_F32, 32, 3, 0, 0);
	struct pawl_ggml_tensor *op = pawl_fake_node(&g, "ARGSORT", a, NULL, 32, 3, 0, 0);

	assert_declined(op, "op ARGSORT of t1: not known");
	op = pawl_fake_node(&g, "SCALE", a, NULL, 32, 3, 0, 0);
	ck_assert(pawl_ggml_supports(&host, op, &err));
	op->params[7] = 1;
	assert_declined(op, "op SCALE of t2: a parameter that is not known");
	op->params[7] = 0;
	op->view_src = a;
	assert_declined(op, "in place");
	op->view_src = NULL;
	op = pawl_fake_node(&g, "UNARY", a, NULL, 32, 3, 0, 0);
	assert_declined(op, "function 0");
	op->params[0] = 1;
	ck_assert(pawl_ggml_supports(&host, op, &err));
	op->type = PAWL_FAKE_F16;
	assert_declined(op, "a result of type 1");
}
END_TEST

/* Softcaps and precisions are known; biases by position, sinks and masks for each head are not. */
START_TEST(attention_of_another_kind_is_declined)
{
	const size_t nb[4] = {2, 2 * D, 2 * D * CELLS, 2 * D * CELLS};
	struct pawl_ggml_tensor *q = pawl_fake_leaf(&g, PAWL_FAKE_F32, D, 2, 4, 0);
	struct pawl_ggml_tensor *cache = pawl_fake_leaf(&g, PAWL_FAKE_F16, D, CELLS, 0, 0);
	struct pawl_ggml_tensor *k = pawl_fake_view(&g, cache, (int64_t[]){D, CELLS, 1, 1}, nb, 0);
	struct pawl_ggml_tensor *mask = pawl_fake_leaf(&g, PAWL_FAKE_F16, CELLS, 2, 0, 0);
	struct pawl_ggml_tensor *sinks = pawl_fake_leaf(&g, PAWL_FAKE_F32, 4, 0, 0, 0);
	struct pawl_ggml_tensor *op = pawl_fake_node(&g, "FLASH_ATTN_EXT", q, k, D, 4, 2, 0);
	int i;

	pawl_fake_param(op, 0, 1);
	pawl_fake_param(op, 2, 30);
	op->params[3] = 10;
	op->params[4] = CELLS;
	op->src[2] = k;
	op->src[3] = mask;
	ck_assert_msg(pawl_ggml_supports(&host, op, &err), "%s", err.text);
	op->src[4] = sinks;
	assert_declined(op, "op FLASH_ATTN_EXT of ");
	op->src[4] = NULL;
	pawl_fake_param(op, 1, 8);
	assert_declined(op, "biases, sinks or shapes that are not known");
	op->params[1] = 0;
	for (i = 5; i < PAWL_GGML_PARAMS; i++) {
		op->params[i] = 1;
		assert_declined(op, "biases, sinks or shapes that are not known");
		op->params[i] = 0;
	}
	q->type = PAWL_FAKE_F16;
	assert_declined(op, "biases, sinks or shapes that are not known");
	q->type = PAWL_FAKE_F32;
	mask->ne[2] = 4;
	assert_declined(op, "a mask or streams of another kind");
	mask->ne[2] = 1;
	mask->ne[0] = CELLS - 1;
	assert_declined(op, "a mask or streams of another kind");
	mask->ne[0] = CELLS;
	k->nb[1] *= 2; /* every second cell */
	k->ne[1] /= 2;
	mask->ne[0] /= 2;
	assert_declined(op, "");
	k->nb[1] /= 2;
	k->ne[1] *= 2;
	mask->ne[0] *= 2;
	cache->type = k->type = 30; /* bf16, as wide */
	ck_assert_msg(pawl_ggml_supports(&host, op, &err), "%s", err.text);
	cache->type = k->type = PAWL_FAKE_I32;
	assert_declined(op, "");
	cache->type = k->type = PAWL_FAKE_F16;
	ck_assert_msg(pawl_ggml_supports(&host, op, &err), "%s", err.text);
}
END_TEST

START_TEST(sizes_beyond_all_memory_are_declined)
{
	struct pawl_ggml_tensor *a = pawl_fake_leaf(&g, PAWL_FAKE_F32, 32, 3, 0, 0);
	struct pawl_ggml_tensor *op = pawl_fake_node(&g, "ADD", a, a, 32, 3, 0, 0);
	const struct pawl_ggml_tensor before = *a, result = *op;
	static const int64_t sizes[] = {-1, INT64_MIN, INT64_MAX, INT64_C(1) << 41};
	size_t i;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		a->ne[i % 4] = sizes[i];
		assert_declined(op, "source 0 of a size beyond all memory");
		*a = before;
		op->ne[i % 4] = sizes[i];
		assert_declined(op, "a size beyond all memory");
		*op = result;
	}
	a->ne[0] = a->ne[1] = a->ne[2] = INT64_C(1) << 40; /* whose product is 0 */
	assert_declined(op, "source 0 of a size beyond all memory");
	*a = before;
	a->nb[2] = SIZE_MAX;
	assert_declined(op, "source 0 of a size beyond all memory");
	*a = before;
	ck_assert_msg(pawl_ggml_supports(&host, op, &err), "%s", err.text);
}
END_TEST

/* Were it computed, what is behind the source would be copied into the result. */
START_TEST(a_result_that_is_not_filled_is_declined)
{
	struct pawl_ggml_tensor *a = pawl_fake_leaf(&g, PAWL_FAKE_F32, 32, 3, 0, 0);
	struct pawl_ggml_tensor *op = pawl_fake_node(&g, "ADD", a, a, 32, 4, 0, 0);

	assert_declined(op, "a result of another shape");
	op = pawl_fake_node(&g, "ADD", a, a, 32, 3, 0, 0);
	op->nb[1] *= 2;
	assert_declined(op, "a result with gaps");
	op->nb[1] /= 2;
	a->ne[1] = 0;
	assert_declined(op, "source 0 without elements");
	a->ne[1] = 3;
	ck_assert_msg(pawl_ggml_supports(&host, op, &err), "%s", err.text);
}
END_TEST

/* A cache without cells, a mask without columns, and views that begin where no cell does. */
START_TEST(caches_without_cells_are_declined)
{
	const size_t nb[4] = {2, 2 * D, 2 * D * CELLS, 2 * D * CELLS};
	struct pawl_ggml_tensor *q = pawl_fake_leaf(&g, PAWL_FAKE_F32, D, 2, 1, 0);
	struct pawl_ggml_tensor *cache = pawl_fake_leaf(&g, PAWL_FAKE_F16, D, CELLS, 0, 0);
	struct pawl_ggml_tensor *k = pawl_fake_view(&g, cache, (int64_t[]){D, CELLS, 1, 1}, nb, 0);
	struct pawl_ggml_tensor *mask = pawl_fake_leaf(&g, PAWL_FAKE_F16, CELLS, 2, 0, 0);
	struct pawl_ggml_tensor *op = pawl_fake_node(&g, "FLASH_ATTN_EXT", q, k, D, 1, 2, 0);
	const struct pawl_ggml_tensor all = *k;

	pawl_fake_param(op, 0, 1);
	op->src[2] = k;
	op->src[3] = mask;
	ck_assert_msg(pawl_ggml_supports(&host, op, &err), "%s", err.text);
	k->ne[1] = mask->ne[0] = 0;
	assert_declined(op, "without elements");
	*k = all;
	mask->ne[0] = CELLS;
	k->view_offs = 1;
	assert_declined(op, "op FLASH_ATTN_EXT");
	k->view_offs = 2 * D * CELLS; /* the end */
	assert_declined(op, "op FLASH_ATTN_EXT");
	k->view_offs = SIZE_MAX;
	assert_declined(op, "a size beyond all memory");
	*k = all;
	cache->ne[1] = 0;
	cache->nb[2] = cache->nb[3] = 0;
	assert_declined(op, "op FLASH_ATTN_EXT");
}
END_TEST

Suite *
pawl_ggml_declined_suite(void)
{
	Suite *suite = suite_create("ggml_declined");
	TCase *tcase = tcase_create("ggml_declined");

	tcase_add_checked_fixture(tcase, begin, end);
	tcase_add_test(tcase, two_windows_on_a_cache);
	tcase_add_test(tcase, what_is_not_known_is_declined);
	tcase_add_test(tcase, attention_of_another_kind_is_declined);
	tcase_add_test(tcase, sizes_beyond_all_memory_are_declined);
	tcase_add_test(tcase, a_result_that_is_not_filled_is_declined);
	tcase_add_test(tcase, caches_without_cells_are_declined);
	suite_add_tcase(suite, tcase);
	return suite;
}
