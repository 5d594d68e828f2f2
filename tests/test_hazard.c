/*
 * A reader of old content beside a writer in place: the reader gets what was there before, in
 * whatever order the two stand.
 */
#include "codegen/interp.h"
#include "ir/build.h"

#include "tests/suites.h"

static struct pawl_node *
write_at_0(struct pawl_graph *graph, struct pawl_node *dest, struct pawl_node *slab)
{
	return pawl_build_write_slice(graph, dest, slab, (int64_t[]){0, 0}, -1, NULL);
}

/*
 * kv [2, 1] = 1, 2 is read through a view and written 99, 98.  The view's reader comes before
 * or after the write.
 */
static void
check_hazard(bool reads_last, enum pawl_interp_mode mode)
{
	struct pawl_graph *graph = pawl_graph_new("hazard");
	struct pawl_type type = pawl_type_make(PAWL_DTYPE_F32, 2, (int64_t[]){2, 1});
	float kv_data[2] = {1, 2}, slab_data[2] = {99, 98};
	struct pawl_node *kv, *slab, *view, *read = NULL, *written;
	struct pawl_interp *interp;
	struct pawl_error err;
	double x[2];

	kv = pawl_build_const(graph, PAWL_ROLE_KV, "kv", &type);
	slab = pawl_build_const(graph, PAWL_ROLE_DATA, "slab", &type);
	view = pawl_build_reshape(graph, kv, 1, (int64_t[]){2});
	if (!reads_last)
		read = pawl_build_unary(graph, PAWL_OP_COPY, view);
	written = write_at_0(graph, kv, slab);
	if (reads_last)
		read = pawl_build_unary(graph, PAWL_OP_COPY, view);
	pawl_graph_add_output(graph, read);
	pawl_graph_add_output(graph, written);
	ck_assert_int_eq(graph->error.status, PAWL_OK);
	ck_assert_int_eq(pawl_interp_new(graph, mode, &interp, &err), PAWL_OK);
	ck_assert_int_eq(pawl_interp_bind(interp, "kv", kv_data, sizeof(kv_data), &err), PAWL_OK);
	ck_assert_int_eq(
		pawl_interp_bind(interp, "slab", slab_data, sizeof(slab_data), &err), PAWL_OK);
	ck_assert_int_eq(pawl_interp_run(interp, &err), PAWL_OK);
	ck_assert_int_eq(pawl_interp_read(interp, 0, x, 2, &err), PAWL_OK);
	ck_assert(x[0] == 1 && x[1] == 2);
	ck_assert_int_eq(pawl_interp_read(interp, 1, x, 2, &err), PAWL_OK);
	ck_assert(x[0] == 99 && x[1] == 98);
	ck_assert(kv_data[0] == 99 && kv_data[1] == 98);
	pawl_interp_free(interp);
	pawl_graph_free(graph);
}

START_TEST(a_reader_sees_the_old_content)
{
	check_hazard(false, PAWL_INTERP_PLANNED);
	check_hazard(true, PAWL_INTERP_PLANNED);
	check_hazard(false, PAWL_INTERP_EXACT);
	check_hazard(true, PAWL_INTERP_EXACT);
}
END_TEST

/* Every version in a chain of writes stays what it was. */
START_TEST(versions_of_a_chain_stay_apart)
{
	struct pawl_graph *graph = pawl_graph_new("chain");
	struct pawl_type type = pawl_type_make(PAWL_DTYPE_F32, 1, (int64_t[]){3});
	struct pawl_type one = pawl_type_make(PAWL_DTYPE_F32, 1, (int64_t[]){1});
	struct pawl_node *version[4];
	float kv_data[3] = {1, 2, 3};
	struct pawl_interp *interp;
	struct pawl_error err;
	double x[3];
	int i, j;

	version[0] = pawl_build_const(graph, PAWL_ROLE_KV, "kv", &type);
	for (i = 0; i < 3; i++)
		version[i + 1] = pawl_build_write_slice(graph, version[i],
			pawl_build_splat(graph, &one, 10 * (i + 1)), (int64_t[]){i}, -1, NULL);
	for (i = 0; i < 4; i++)
		pawl_graph_add_output(graph, version[i]);
	ck_assert_int_eq(pawl_interp_new(graph, PAWL_INTERP_PLANNED, &interp, &err), PAWL_OK);
	ck_assert_int_eq(pawl_interp_bind(interp, "kv", kv_data, sizeof(kv_data), &err), PAWL_OK);
	ck_assert_int_eq(pawl_interp_run(interp, &err), PAWL_OK);
	for (i = 0; i < 4; i++) {
		ck_assert_int_eq(pawl_interp_read(interp, i, x, 3, &err), PAWL_OK);
		for (j = 0; j < 3; j++)
			ck_assert(x[j] == (j < i ? 10 * (j + 1) : j + 1));
	}
	ck_assert(kv_data[0] == 10 && kv_data[1] == 20 && kv_data[2] == 30);
	pawl_interp_free(interp);
	pawl_graph_free(graph);
}
END_TEST

START_TEST(two_writers_of_one_version_are_refused)
{
	struct pawl_graph *graph = pawl_graph_new("fork");
	struct pawl_type type = pawl_type_make(PAWL_DTYPE_F32, 2, (int64_t[]){2, 1});
	float kv_data[2] = {1, 2}, slab_data[2] = {99, 98};
	struct pawl_node *kv, *slab;
	struct pawl_interp *interp;
	struct pawl_error err;

	kv = pawl_build_const(graph, PAWL_ROLE_KV, "kv", &type);
	slab = pawl_build_const(graph, PAWL_ROLE_DATA, "slab", &type);
	pawl_graph_add_output(graph, write_at_0(graph, kv, slab));
	pawl_graph_add_output(graph, write_at_0(graph, kv, slab));
	ck_assert_int_eq(pawl_interp_new(graph, PAWL_INTERP_PLANNED, &interp, &err), PAWL_OK);
	ck_assert_int_eq(pawl_interp_bind(interp, "kv", kv_data, sizeof(kv_data), &err), PAWL_OK);
	ck_assert_int_eq(
		pawl_interp_bind(interp, "slab", slab_data, sizeof(slab_data), &err), PAWL_OK);
	ck_assert_int_eq(pawl_interp_run(interp, &err), PAWL_INVALID_GRAPH);
	ck_assert(kv_data[0] == 1 && kv_data[1] == 2);
	pawl_interp_free(interp);
	pawl_graph_free(graph);
}
END_TEST

Suite *
pawl_hazard_suite(void)
{
	Suite *suite = suite_create("hazard");
	TCase *tcase = tcase_create("hazard");

	tcase_add_test(tcase, a_reader_sees_the_old_content);
	tcase_add_test(tcase, versions_of_a_chain_stay_apart);
	tcase_add_test(tcase, two_writers_of_one_version_are_refused);
	suite_add_tcase(suite, tcase);
	return suite;
}
