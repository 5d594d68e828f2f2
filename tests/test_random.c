#include "ir/random.h"

#include "ir/decode.h"
#include "ir/infer.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/verify.h"

#include "tests/suites.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N_SEEDS = 300 };

static struct pawl_graph *
make(uint64_t seed, unsigned flavours)
{
	struct pawl_random_options options = {.flavours = flavours};
	struct pawl_graph *graph = NULL;
	struct pawl_error err = {0};

	pawl_random_graph(seed, &options, &graph, &err);
	ck_assert_msg(graph != NULL, "seed %d: %s", (int)seed, err.text);
	return graph;
}

/* Verifies, and survives print -> parse -> print and a copy. */
static void
check_graph(const struct pawl_graph *graph, uint64_t seed)
{
	char *text = pawl_print(graph, NULL), *again;
	struct pawl_graph *parsed = NULL, *copy = NULL;
	struct pawl_error err = {0};

	ck_assert_msg(!pawl_verify(graph, NULL, &err), "seed %d: %s", (int)seed, err.text);
	pawl_parse(text, strlen(text), "random", &parsed, NULL, &err);
	ck_assert_msg(parsed != NULL, "seed %d: %s", (int)seed, err.text);
	again = pawl_print(parsed, NULL);
	ck_assert_str_eq(again, text);
	ck_assert_uint_eq(pawl_graph_hash(parsed), pawl_graph_hash(graph));
	free(again);
	pawl_graph_free(parsed);
	ck_assert_int_eq(pawl_graph_clone(graph, &copy, &err), PAWL_OK);
	again = pawl_print(copy, NULL);
	ck_assert_str_eq(again, text);
	ck_assert_uint_eq(pawl_graph_hash(copy), pawl_graph_hash(graph));
	ck_assert_int_eq(pawl_verify(copy, NULL, &err), PAWL_OK);
	free(again);
	free(text);
	pawl_graph_free(copy);
}

START_TEST(graphs_are_valid_and_have_every_op)
{
	int counts[PAWL_N_OPS] = {0}, i;
	const struct pawl_node *node;

	for (i = 0; i < N_SEEDS; i++) {
		struct pawl_graph *graph = make((uint64_t)i, 0);

		check_graph(graph, (uint64_t)i);
		ck_assert_int_ge(graph->n_nodes, 40);
		ck_assert_int_ge(graph->n_outputs, 1);
		pawl_foreach_node (node, graph)
			counts[node->op]++;
		pawl_graph_free(graph);
	}
	for (i = 0; i < PAWL_N_OPS; i++)
		ck_assert_msg(counts[i] > 0, "no %s", pawl_op_name((enum pawl_op)i));
}
END_TEST

START_TEST(flavours_are_valid_and_kept_apart)
{
	unsigned flavour;
	uint64_t seed;

	for (flavour = 1; flavour <= PAWL_RANDOM_SYMBOLIC; flavour <<= 1) {
		unsigned flavours = flavour == PAWL_RANDOM_SYMBOLIC
					    ? PAWL_RANDOM_SYMBOLIC | PAWL_RANDOM_DEFAULT
					    : flavour;
		int n_writes = 0, n_symbolic = 0, n_lowered = 0;

		for (seed = 1000; seed < 1030; seed++) {
			struct pawl_graph *graph = make(seed, flavours);
			const struct pawl_node *node;

			check_graph(graph, seed);
			n_symbolic += graph->n_symbols > 0;
			pawl_foreach_node (node, graph) {
				n_writes += pawl_op_has(node->op, PAWL_OPF_INPLACE);
				/* One to q8_0 is a host's, for its cache. */
				n_lowered += (node->op == PAWL_OP_QUANTIZE &&
						     node->type.dtype != PAWL_DTYPE_Q8_0) ||
					     node->op == PAWL_OP_PACK;
			}
			pawl_graph_free(graph);
		}
		ck_assert_int_eq(
			n_writes > 0, (flavours & (PAWL_RANDOM_STATE | PAWL_RANDOM_BLOCK)) != 0);
		ck_assert_int_eq(n_symbolic > 0, (flavours & PAWL_RANDOM_SYMBOLIC) != 0);
		ck_assert_int_eq(n_lowered > 0, (flavours & PAWL_RANDOM_LOWERED) != 0);
	}
}
END_TEST

START_TEST(a_seed_is_a_graph)
{
	struct pawl_graph *a = make(7, 0), *b = make(7, 0), *c = make(8, 0);
	char *x = pawl_print(a, NULL), *y = pawl_print(b, NULL);

	ck_assert_str_eq(x, y);
	ck_assert_uint_eq(pawl_graph_hash(a), pawl_graph_hash(b));
	ck_assert_uint_ne(pawl_graph_hash(a), pawl_graph_hash(c));
	free(x);
	free(y);
	pawl_graph_free(a);
	pawl_graph_free(b);
	pawl_graph_free(c);
}
END_TEST

START_TEST(sizes_and_wrong_flavours)
{
	struct pawl_random_options options = {.n_nodes = 400};
	struct pawl_graph *graph = NULL;
	struct pawl_error err;

	ck_assert_int_eq(pawl_random_graph(1, &options, &graph, &err), PAWL_OK);
	ck_assert_int_ge(graph->n_nodes, 400);
	check_graph(graph, 1);
	pawl_graph_free(graph);
	options.flavours = PAWL_RANDOM_SYMBOLIC;
	ck_assert_int_eq(pawl_random_graph(1, &options, &graph, &err), PAWL_INVALID_ARGUMENT);
	options.flavours = 1u << 20;
	ck_assert_int_eq(pawl_random_graph(1, &options, &graph, &err), PAWL_INVALID_ARGUMENT);
}
END_TEST

START_TEST(every_type_is_filled_tame)
{
	enum { N = 512 };
	unsigned char bytes[N * 8];
	double x[N], sum = 0;
	int dtype, i;

	for (dtype = 0; dtype < PAWL_N_DTYPES; dtype++) {
		double most = 0,
		       limit = pawl_dtype_info((enum pawl_dtype)dtype)->kind == PAWL_KIND_INT ? 15
											      : 1.6;

		if (dtype == PAWL_DTYPE_A16 || dtype == PAWL_DTYPE_A8)
			continue;
		pawl_random_fill((enum pawl_dtype)dtype, 3, "w", bytes, N);
		pawl_decode_f64((enum pawl_dtype)dtype, bytes, N, x);
		for (i = 0; i < N; i++) {
			ck_assert(isfinite(x[i]));
			if (fabs(x[i]) > most)
				most = fabs(x[i]);
		}
		ck_assert_msg(most > 0.3 && most <= limit, "%s: %g",
			pawl_dtype_name((enum pawl_dtype)dtype), most);
		sum += most;
	}
	ck_assert(sum > 0);
}
END_TEST

static void
read_ints(const struct pawl_node *node, const void *bytes, int64_t n, double *x)
{
	ck_assert_int_le(n, 64);
	pawl_decode_f64(node->type.dtype, bytes, n, x);
}

/* What the users of consts, looked at one by one, ask of their contents. */
static int
check_user(const struct pawl_graph *graph, const struct pawl_node *node, uint64_t seed)
{
	int i = node->op == PAWL_OP_GATHER ? 1 : node->op == PAWL_OP_ATTENTION ? 3 : 2;
	const struct pawl_node *def;
	const struct pawl_type *dest;
	unsigned char bytes[512];
	double x[64];
	int64_t n, j, k;

	if (node->n_inputs <= i || node->op == PAWL_OP_LAYER_NORM || node->op == PAWL_OP_ROPE)
		return 0;
	def = pawl_node_input(node, i);
	if (def->op != PAWL_OP_CONST || def->attrs.role != PAWL_ROLE_DATA ||
		pawl_dtype_is_float(def->type.dtype))
		return 0;
	n = pawl_type_elems(&def->type);
	dest = &pawl_node_input(node, 0)->type;
	ck_assert_int_eq(pawl_random_fill_const(graph, def, seed, NULL, bytes, NULL), PAWL_OK);
	read_ints(def, bytes, n, x);
	for (j = 0; j < n; j++) {
		double limit = 1e6, low = node->op == PAWL_OP_WRITE_ROWS ? -1 : 0;

		if (node->op == PAWL_OP_GATHER)
			limit = (double)dest->dim[0].base - 1;
		else if (node->op == PAWL_OP_WRITE_ROWS)
			limit = (double)dest->dim[pawl_write_rows_axis(&node->attrs)].base - 1;
		else if (node->op == PAWL_OP_WRITE_SLICE)
			limit = (double)(dest->dim[node->attrs.axis].base -
					 pawl_node_input(node, 1)->type.dim[node->attrs.axis].base);
		else if (node->op == PAWL_OP_ATTENTION)
			limit = (double)(pawl_node_input(node, 1)->type.dim[2].base -
					 dest->dim[0].base);
		ck_assert_msg(x[j] >= low && x[j] <= limit, "%s: %g of %g", pawl_op_name(node->op),
			x[j], limit);
		for (k = 0; k < j && node->op == PAWL_OP_WRITE_ROWS; k++)
			ck_assert(x[k] != x[j] || x[j] == -1);
	}
	return 1;
}

START_TEST(consts_are_filled_as_their_users_want)
{
	int counts[PAWL_N_OPS] = {0};
	uint64_t seed;

	for (seed = 0; seed < N_SEEDS; seed++) {
		struct pawl_graph *graph = make(seed, 0);
		const struct pawl_node *node;

		pawl_foreach_node (node, graph) {
			if (node->n_inputs)
				counts[node->op] += check_user(graph, node, seed);
		}
		pawl_graph_free(graph);
	}
	ck_assert_int_gt(counts[PAWL_OP_GATHER], 10);
	ck_assert_int_gt(counts[PAWL_OP_WRITE_SLICE], 10);
	ck_assert_int_gt(counts[PAWL_OP_WRITE_SLICE_ROTATING], 10);
	ck_assert_int_gt(counts[PAWL_OP_WRITE_ROWS], 10);
	ck_assert_int_gt(counts[PAWL_OP_ATTENTION], 10);
}
END_TEST

START_TEST(masks_and_literals)
{
	static const char text[] = "pawl 1\ngraph @g stage values {\n"
				   "  sym $T : 1..8\n"
				   "  %mask = const {role = data} : f32[$T, 32]\n"
				   "  %c = const {role = literal, values = [-1, 2, 3]} : i8[3]\n"
				   "  %d = const {role = literal, values = [0.5]} : f32[3]\n}\n";
	struct pawl_graph *graph = NULL;
	struct pawl_error err;
	const int64_t three = 3;
	float mask[96 + 1], half[3];
	int8_t ints[3];
	int i, n_hidden = 0;

	ck_assert_int_eq(pawl_parse(text, strlen(text), "t", &graph, NULL, &err), PAWL_OK);
	mask[96] = 42;
	ck_assert_int_eq(pawl_random_fill_const(
				 graph, pawl_graph_find(graph, "mask"), 1, &three, mask, &err),
		PAWL_OK);
	for (i = 0; i < 96; i++) {
		ck_assert(mask[i] == 0 || mask[i] == -INFINITY);
		n_hidden += mask[i] != 0;
	}
	ck_assert(n_hidden > 0 && n_hidden < 96 && mask[96] == 42);
	pawl_random_fill_const(graph, pawl_graph_find(graph, "c"), 1, NULL, ints, &err);
	ck_assert(ints[0] == -1 && ints[1] == 2 && ints[2] == 3);
	pawl_random_fill_const(graph, pawl_graph_find(graph, "d"), 1, NULL, half, &err);
	ck_assert(half[0] == 0.5f && half[1] == 0.5f && half[2] == 0.5f);
	pawl_graph_free(graph);
}
END_TEST

Suite *
pawl_random_suite(void)
{
	Suite *suite = suite_create("random");
	TCase *tcase = tcase_create("random");

	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, graphs_are_valid_and_have_every_op);
	tcase_add_test(tcase, flavours_are_valid_and_kept_apart);
	tcase_add_test(tcase, a_seed_is_a_graph);
	tcase_add_test(tcase, sizes_and_wrong_flavours);
	tcase_add_test(tcase, every_type_is_filled_tame);
	tcase_add_test(tcase, consts_are_filled_as_their_users_want);
	tcase_add_test(tcase, masks_and_literals);
	suite_add_tcase(suite, tcase);
	return suite;
}
