/*
 * Random graphs before any pass: the planned arithmetic stays near the exact one, and both keep
 * the state alike.
 */
#include "codegen/interp.h"
#include "ir/random.h"

#include "tests/suites.h"
#include "tests/tensors.h"

#include <math.h>

enum { SEEDS = 40, MAX_CONSTS = 256, MAX_SYMBOLS = 8 };

static struct pawl_error err;

#define OK(call) ck_assert_msg((call) == PAWL_OK, "%s", err.text)

/* A run of one mode over consts of its own. */
struct side {
	struct pawl_interp *interp;
	struct pawl_tensor consts[MAX_CONSTS];
	int n;
};

static struct pawl_tensor
const_of(const struct pawl_node *node, const int64_t *symbols)
{
	const struct pawl_type *type = &node->type;
	int64_t dims[PAWL_MAX_RANK];
	int i;

	for (i = 0; i < type->rank; i++) {
		const struct pawl_dim *dim = &type->dim[i];

		dims[i] = dim->base + (dim->sym < 0 ? 0 : dim->factor * symbols[dim->sym]);
	}
	return type->layout == PAWL_LAYOUT_K16 ? pawl_test_k16(type->dtype, dims)
					       : pawl_test_tensor(type->dtype, type->rank, dims);
}

static void
run(struct side *side, const struct pawl_graph *graph, enum pawl_interp_mode mode, uint64_t seed,
	const int64_t *symbols)
{
	const struct pawl_node *node;
	int i;

	side->n = 0;
	OK(pawl_interp_new(graph, mode, &side->interp, &err));
	for (i = 0; i < graph->n_symbols; i++)
		OK(pawl_interp_set_symbol(side->interp, graph->symbols[i].name, symbols[i], &err));
	pawl_foreach_node(node, graph) {
		struct pawl_tensor *t = &side->consts[side->n];

		if (node->op != PAWL_OP_CONST || node->attrs.role == PAWL_ROLE_LITERAL)
			continue;
		ck_assert_int_lt(side->n++, MAX_CONSTS);
		*t = const_of(node, symbols);
		OK(pawl_random_fill_const(graph, node, seed, symbols, t->data, &err));
		OK(pawl_interp_bind_node(side->interp, node, t->data, INT64_MAX, &err));
	}
	OK(pawl_interp_run(side->interp, &err));
}

/*
 * Within one rounding to bf16 of the largest element: casts are among the ops.  In a cache of q8_0
 * a value halfway between two steps may go either way.
 */
static void
assert_near(const struct pawl_tensor *planned, const struct pawl_tensor *exact, uint64_t seed)
{
	int64_t n = pawl_tensor_elems(exact), i;
	double size = 1.0, most = exact->dtype == PAWL_DTYPE_Q8_0 ? 0x1p-6 : 0x1p-8;

	if (pawl_dtype_info(exact->dtype)->kind == PAWL_KIND_INT)
		return;
	for (i = 0; i < n; i++) {
		double x = fabs(pawl_test_get(exact, i));

		if (isfinite(x))
			size = fmax(size, x);
	}
	for (i = 0; i < n; i++) {
		double x = pawl_test_get(planned, i), y = pawl_test_get(exact, i);

		ck_assert_msg(isnan(y) ? isnan(x) : x == y || fabs(x - y) < most * size,
			"seed %d: [%d] is %.9g, not %.9g", (int)seed, (int)i, x, y);
	}
}

static int64_t
middle(const struct pawl_symbol *symbol)
{
	return symbol->min + (symbol->max - symbol->min) / 2 / symbol->multiple * symbol->multiple;
}

START_TEST(planned_stays_near_exact)
{
	struct pawl_random_options options = {0};
	struct side planned, exact;
	int64_t symbols[MAX_SYMBOLS] = {0};
	uint64_t seed;
	int32_t i;

	for (seed = 1; seed <= SEEDS; seed++) {
		struct pawl_graph *graph;

		options.flavours = PAWL_RANDOM_DEFAULT & ~(unsigned)PAWL_RANDOM_LOWERED;
		if (seed % 3 == 0)
			options.flavours |= PAWL_RANDOM_SYMBOLIC;
		OK(pawl_random_graph(seed, &options, &graph, &err));
		for (i = 0; i < graph->n_symbols; i++)
			symbols[i] = middle(&graph->symbols[i]);
		run(&planned, graph, PAWL_INTERP_PLANNED, seed, symbols);
		run(&exact, graph, PAWL_INTERP_EXACT, seed, symbols);
		for (i = 0; i < graph->n_outputs; i++)
			assert_near(pawl_interp_output(planned.interp, i),
				pawl_interp_output(exact.interp, i), seed);
		for (i = 0; i < planned.n; i++)
			assert_near(&planned.consts[i], &exact.consts[i], seed);
		pawl_interp_free(planned.interp);
		pawl_interp_free(exact.interp);
		pawl_graph_free(graph);
		pawl_tensors_end();
		pawl_tensors_begin();
	}
}
END_TEST

Suite *
pawl_ref_random_suite(void)
{
	Suite *suite = suite_create("ref_random");
	TCase *tcase = tcase_create("ref_random");

	tcase_add_checked_fixture(tcase, pawl_tensors_begin, pawl_tensors_end);
	tcase_add_test(tcase, planned_stays_near_exact);
	suite_add_tcase(suite, tcase);
	return suite;
}
