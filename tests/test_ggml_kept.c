/* What the backend for llama.cpp keeps: packed weights, plans, streams that hold them. */
#include "tests/ggml_layer.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plugins/ggml/ggml_buffer.h"
#include "plugins/ggml/ggml_counters.h"
#include "plugins/ggml/ggml_packs.h"
#include "plugins/ggml/ggml_plans.h"
#include "plugins/ggml/ggml_stream.h"
#include "plugins/ggml/ggml_translate.h"
#include "tests/suites.h"

static struct pawl_ggml_host host;
static struct pawl_device *device;
static struct pawl_error err;
static struct pawl_fake_graph g;

static void
begin(void)
{
	ck_assert_msg(!pawl_ggml_host_bind(&host, pawl_fake_find, pawl_fake_host(), &err), "%s",
		err.text);
	ck_assert_msg(!pawl_device_open("ref", NULL, &device, &err), "%s", err.text);
	pawl_fake_graph_init(&g);
}

static void
end(void)
{
	pawl_fake_graph_release(&g);
	pawl_device_unref(device);
}

START_TEST(writing_to_a_buffer_forgets_what_was_packed)
{
	struct pawl_ggml_device tables = {{NULL}, NULL, NULL};
	struct pawl_type type = pawl_type_make(PAWL_DTYPE_F32, 2, (int64_t[]){16, 32});
	struct pawl_storage *packed, *again;
	struct pawl_ggml_tensor t = {.ne = {32, 16, 1, 1}};
	struct pawl_ggml_buffer *(*alloc)(struct pawl_ggml_buft *, size_t);
	void (*set)(struct pawl_ggml_buffer *, struct pawl_ggml_tensor *, const void *, size_t, size_t);
	void *(*base)(struct pawl_ggml_buffer *);
	void (*release)(struct pawl_ggml_buffer *);
	struct pawl_ggml_buffer *buffer;
	int64_t before = pawl_ggml_packs_bytes();
	uint64_t epoch = pawl_ggml_packs_epoch();
	float one = 1;

	type.layout = PAWL_LAYOUT_TILE16;
	pawl_ggml_buft_init(&host, &tables);
	memcpy(&alloc, &pawl_ggml_buft()->fn[1], sizeof(alloc));
	buffer = alloc(pawl_ggml_buft(), 2048);
	ck_assert(pawl_ggml_buffer_is_ours(buffer));
	ck_assert(!pawl_ggml_buffer_is_foreign_memory(buffer));
	memcpy(&release, buffer, sizeof(release));
	memcpy(&base, (char *)buffer + 8, sizeof(base));
	memcpy(&set, (char *)buffer + 8 * (size_t)host.layout->set_tensor, sizeof(set));
	((int32_t *)buffer)[11 * 2 + 3 * 2] = PAWL_GGML_WEIGHTS;
	t.data = base(buffer);
	ck_assert_int_eq(pawl_ggml_packs_get(t.data, &type, NULL, false, &packed, &err), PAWL_OK);
	ck_assert_int_eq(pawl_ggml_packs_get(t.data, &type, NULL, false, &again, &err), PAWL_OK);
	ck_assert_ptr_eq(packed, again);
	/* Small matrices are side by side, in huge pages where there are any. */
	ck_assert_ptr_nonnull(packed->block.chunk);
	ck_assert_int_gt(pawl_ggml_packs_bytes(), before);
	ck_assert_uint_eq(pawl_ggml_packs_epoch(), epoch);
	pawl_storage_unref(again);
	set(buffer, &t, &one, 4, 4);
	ck_assert_uint_gt(pawl_ggml_packs_epoch(), epoch);
	ck_assert_int_eq(pawl_ggml_packs_get(t.data, &type, NULL, false, &again, &err), PAWL_OK);
	ck_assert_ptr_ne(packed, again);
	pawl_storage_unref(packed);
	pawl_storage_unref(again);
	release(buffer);
	free(buffer);
	ck_assert_int_eq(pawl_ggml_packs_bytes(), before);
}
END_TEST

/* What a host calls of a stream. */
struct stream {
	struct pawl_ggml_stream *stream;
	int (*run)(struct pawl_ggml_stream *, struct pawl_ggml_graph *);
	void (*release)(struct pawl_ggml_stream *);
};

static struct stream
open_stream(int n_threads)
{
	static struct pawl_ggml_device tables;
	struct stream s;

	pawl_ggml_streams_init(&host, device);
	s.stream = pawl_ggml_stream_new(&tables, NULL);
	ck_assert_ptr_nonnull(s.stream);
	pawl_ggml_stream_set_threads(s.stream, n_threads);
	memcpy(&s.release, (char *)s.stream + 8 * 2, sizeof(s.release));
	memcpy(&s.run, (char *)s.stream + 8 * (size_t)(1 + host.layout->graph_compute),
		sizeof(s.run));
	return s;
}

/* A stream computes what it knows, and leaves the rest to the host's own backend. */
START_TEST(a_stream_falls_back)
{
	struct pawl_ggml_tensor *a = pawl_fake_leaf(&g, PAWL_FAKE_F32, 32, 3, 0, 0);
	struct pawl_ggml_tensor *y = pawl_fake_node(&g, "ADD", a, a, 32, 3, 0, 0);
	struct stream s = open_stream(1);
	int i;

	pawl_fake_random(a, 8);
	for (i = 0; i < 3; i++) {
		pawl_fake_floats(y)[5] = 0;
		ck_assert_int_eq(s.run(s.stream, &g.graph), PAWL_GGML_SUCCESS);
		ck_assert(pawl_fake_floats(y)[5] == 2 * pawl_fake_floats(a)[5]);
	}
	ck_assert_int_eq(pawl_fake_host()->n_computed, 0);
	ck_assert_int_eq(pawl_fake_host()->n_warnings, 0);
	for (i = 0; i < 6; i++) {
		y->op = i < 3 ? 19 : 1; /* ARGSORT, DUP */
		ck_assert_int_eq(s.run(s.stream, &g.graph), PAWL_GGML_SUCCESS);
	}
	ck_assert_int_eq(pawl_fake_host()->n_computed, 6);
	ck_assert_int_eq(pawl_fake_host()->n_warnings, 1);
	s.release(s.stream);
}
END_TEST

/* As memory of a graphics card would be, which another backend may hand over at any run. */
START_TEST(memory_out_of_reach_is_left_to_the_host)
{
	struct pawl_ggml_tensor *a = pawl_fake_leaf(&g, PAWL_FAKE_F32, 32, 3, 0, 0);
	struct pawl_ggml_tensor *y = pawl_fake_node(&g, "ADD", a, a, 32, 3, 0, 0);
	struct pawl_ggml_buffer *here = a->buffer, *there = pawl_fake_remote_buffer();
	void *bytes[] = {a->data, y->data};
	struct stream s = open_stream(1);
	int i, n = 0;

	pawl_fake_random(a, 8);
	ck_assert_int_eq(s.run(s.stream, &g.graph), PAWL_GGML_SUCCESS);
	ck_assert_int_eq(pawl_fake_host()->n_computed, 0);
	for (i = 0; i < 2; i++) {
		struct pawl_ggml_tensor *t = i ? y : a;

		t->data = NULL;
		ck_assert_int_eq(s.run(s.stream, &g.graph), PAWL_GGML_SUCCESS);
		ck_assert_int_eq(pawl_fake_host()->n_computed, ++n);
		t->data = bytes[i];
		t->buffer = there;
		ck_assert_int_eq(s.run(s.stream, &g.graph), PAWL_GGML_SUCCESS);
		ck_assert_int_eq(pawl_fake_host()->n_computed, ++n);
		t->buffer = here;
	}
	s.release(s.stream);
}
END_TEST

static void
compute_twice_the_sum(struct stream *s, struct pawl_ggml_tensor *a, struct pawl_ggml_tensor *y)
{
	int i;

	memset(y->data, 0, 32 * 3 * 4);
	ck_assert_int_eq(s->run(s->stream, &g.graph), PAWL_GGML_SUCCESS);
	for (i = 0; i < 32 * 3; i++)
		ck_assert(pawl_fake_floats(y)[i] == 2 * pawl_fake_floats(a)[i]);
}

/* Into which no thread comes along. */
START_TEST(a_stream_goes_on_in_a_forked_process)
{
	struct pawl_ggml_tensor *a = pawl_fake_leaf(&g, PAWL_FAKE_F32, 32, 3, 0, 0);
	struct pawl_ggml_tensor *y = pawl_fake_node(&g, "ADD", a, a, 32, 3, 0, 0);
	struct stream s = open_stream(3);
	int status;
	pid_t child;

	pawl_fake_random(a, 8);
	compute_twice_the_sum(&s, a, y);
	child = fork();
	ck_assert_int_ge(child, 0);
	if (!child) {
		alarm(20);
		compute_twice_the_sum(&s, a, y);
		s.release(s.stream);
		_exit(0);
	}
	compute_twice_the_sum(&s, a, y);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	s.release(s.stream);
}
END_TEST

/* A model that is freed, and another whose weights come to lie where its lay. */
START_TEST(other_weights_at_the_same_address)
{
	enum { N = 32 };
	struct pawl_ggml_device tables = {{NULL}, NULL, NULL};
	struct pawl_ggml_tensor *x = pawl_fake_leaf(&g, PAWL_FAKE_F32, N, 2, 0, 0);
	struct pawl_ggml_tensor *w = pawl_fake_leaf(&g, PAWL_FAKE_F32, N, N, 0, 0);
	struct pawl_ggml_tensor *y = pawl_fake_node(&g, "MUL_MAT", w, x, N, 2, 0, 0);
	int64_t before = pawl_ggml_packs_bytes();
	void (*release)(struct pawl_ggml_buffer *);
	struct stream s;
	int turn, i;

	pawl_device_unref(device);
	ck_assert_msg(!pawl_device_open("cpu", NULL, &device, &err), "%s", err.text);
	pawl_ggml_buft_init(&host, &tables);
	s = open_stream(1);
	pawl_fake_random(x, 4);
	for (turn = 0; turn < 3; turn++) {
		w->buffer = pawl_ggml_buffer_of(w->data, N * N * 4);
		((int32_t *)w->buffer)[11 * 2 + 3 * 2] = PAWL_GGML_WEIGHTS;
		for (i = 0; i < N * N; i++)
			pawl_fake_floats(w)[i] = i % (N + 1) ? 0.0f : (float)(1 << turn);
		ck_assert_int_eq(s.run(s.stream, &g.graph), PAWL_GGML_SUCCESS);
		for (i = 0; i < 2 * N; i++)
			ck_assert(pawl_fake_floats(y)[i] ==
				  (float)(1 << turn) * pawl_fake_floats(x)[i]);
		ck_assert_int_gt(pawl_ggml_packs_bytes(), before);
		memcpy(&release, w->buffer, sizeof(release));
		release(w->buffer);
		free(w->buffer);
		ck_assert_int_eq(pawl_ggml_packs_bytes(), before);
	}
	ck_assert_int_eq(pawl_fake_host()->n_computed, 0);
	s.release(s.stream);
}
END_TEST

/* The plan of n rows times 2. */
static struct pawl_plan *
plan_of(int64_t n)
{
	struct pawl_ggml_translation translation;
	struct pawl_ggml_tensor *x;
	struct pawl_plan *plan;

	pawl_fake_graph_release(&g);
	pawl_fake_graph_init(&g);
	x = pawl_fake_leaf(&g, PAWL_FAKE_F32, 32, n, 0, 0);
	pawl_fake_node(&g, "ADD", x, x, 32, n, 0, 0);
	ck_assert_msg(!pawl_ggml_translate(&host, &g.graph, true, &translation, &err), "%s",
		err.text);
	ck_assert_msg(!pawl_ggml_plans_get(pawl_ggml_translation_hash(&translation),
			      translation.graph, device, &plan, &err),
		"%s", err.text);
	pawl_ggml_translation_release(&translation);
	return plan;
}

START_TEST(plans_are_few)
{
	const struct pawl_ggml_counters *c = &pawl_ggml_counters;
	struct pawl_plan *first = plan_of(1), *second = plan_of(2);
	int64_t n, each = pawl_plan_bytes(second);

	pawl_plan_unref(second);
	ck_assert_int_gt(each, 0);
	for (n = 3; n <= PAWL_GGML_MOST_PLANS; n++)
		pawl_plan_unref(plan_of(n));
	ck_assert_uint_eq(c->plans, PAWL_GGML_MOST_PLANS);
	ck_assert_uint_eq(c->evicted, 0);
	/* The first is used again, so that the second goes. */
	pawl_plan_unref(plan_of(1));
	pawl_plan_unref(plan_of(n));
	ck_assert_uint_eq(c->plans, PAWL_GGML_MOST_PLANS);
	ck_assert_uint_eq(c->evicted, 1);
	pawl_plan_unref(plan_of(1));
	ck_assert_uint_eq(c->rebuilds, 0);
	pawl_plan_unref(plan_of(2));
	ck_assert_uint_eq(c->rebuilds, 1);
	ck_assert_uint_eq(c->evicted, 2);
	ck_assert_uint_eq(c->optimizes, PAWL_GGML_MOST_PLANS + 2);
	/* By bytes, of which one plan may take what it wants. */
	for (n = 3; n < 8; n++)
		pawl_plan_unref(plan_of(n));
	pawl_ggml_plans_limit(PAWL_GGML_MOST_PLANS, 3 * each + each / 2);
	ck_assert_uint_eq(c->plans, 3);
	pawl_ggml_plans_limit(PAWL_GGML_MOST_PLANS, 1);
	ck_assert_uint_eq(c->plans, 1);
	pawl_plan_unref(plan_of(3));
	ck_assert_uint_eq(c->plans, 1);
	/* Who holds one has it still. */
	ck_assert_int_gt(pawl_plan_bytes(first), 0);
	pawl_plan_unref(first);
}
END_TEST

/* More shapes than are remembered are met as if for the first time. */
START_TEST(hashes_are_few)
{
	int64_t n;

	for (n = 1; n <= 1100; n++)
		pawl_plan_unref(plan_of(n));
	ck_assert_uint_eq(pawl_ggml_counters.shapes, 1100);
	ck_assert_uint_eq(pawl_ggml_counters.plans, PAWL_GGML_MOST_PLANS);
	pawl_plan_unref(plan_of(1000));
	ck_assert_uint_eq(pawl_ggml_counters.rebuilds, 1);
	pawl_plan_unref(plan_of(1));
	ck_assert_uint_eq(pawl_ggml_counters.rebuilds, 1);
}
END_TEST

Suite *
pawl_ggml_kept_suite(void)
{
	Suite *suite = suite_create("ggml_kept");
	TCase *tcase = tcase_create("ggml_kept");

	tcase_add_checked_fixture(tcase, begin, end);
	tcase_add_test(tcase, writing_to_a_buffer_forgets_what_was_packed);
	tcase_add_test(tcase, a_stream_falls_back);
	tcase_add_test(tcase, memory_out_of_reach_is_left_to_the_host);
	tcase_add_test(tcase, a_stream_goes_on_in_a_forked_process);
	tcase_add_test(tcase, other_weights_at_the_same_address);
	tcase_add_test(tcase, plans_are_few);
	tcase_add_test(tcase, hashes_are_few);
	suite_add_tcase(suite, tcase);
	return suite;
}
