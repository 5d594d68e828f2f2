#include "tests/rounding.h"

#include "passes/run.h"

#include "tests/pass_facts.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>

static struct pawl_error err;

#define OK(call) ck_assert_msg((call) == PAWL_OK, "%s", err.text)

enum { MAX_SUBJECTS = 64 };

/* The values that a pass may change, and what depends on them. */
struct reach {
	struct pawl_graph *graph; /* whose outputs n_outputs .. are two operands and the result of each subject */
	int32_t n_outputs;
	struct pawl_node *subjects[MAX_SUBJECTS]; /* that depend on no other */
	int n_subjects;
	bool *is_reached; /* by id */
};

static bool
may_change(const struct pawl_node *node, enum pawl_pass pass)
{
	if (pass == PAWL_PASS_fuse_attention)
		return node->op == PAWL_OP_BATCH_MATMUL && node->inputs[0].def->op == PAWL_OP_SOFTMAX;
	return node->op == PAWL_OP_MATMUL && node->inputs[0].def->type.dtype == PAWL_DTYPE_F32 &&
		pawl_dtype_info(node->inputs[1].def->type.dtype)->kind == PAWL_KIND_QUANT;
}

static void
find_subjects(struct reach *r, enum pawl_pass pass)
{
	struct pawl_node *node;
	int i;

	r->is_reached = calloc((size_t)r->graph->n_ids + 1, sizeof(*r->is_reached));
	ck_assert_ptr_nonnull(r->is_reached);
	pawl_foreach_node(node, r->graph) {
		bool *reached = &r->is_reached[node->id];

		for (i = 0; i < node->n_inputs; i++)
			*reached = *reached || r->is_reached[node->inputs[i].def->id];
		if (!may_change(node, pass))
			continue;
		if (!*reached && r->n_subjects < MAX_SUBJECTS)
			r->subjects[r->n_subjects++] = node;
		*reached = true;
	}
}

/* What the result of a subject is compared by: the other operands as the op sees them. */
static void
add_outputs(struct reach *r, enum pawl_pass pass)
{
	int i;

	r->n_outputs = r->graph->n_outputs;
	for (i = 0; i < r->n_subjects; i++) {
		struct pawl_node *node = r->subjects[i];

		/* The probabilities must have one reader. */
		pawl_graph_add_output(
			r->graph, node->inputs[pass == PAWL_PASS_fuse_attention].def);
		pawl_graph_add_output(r->graph, node->inputs[1].def);
		pawl_graph_add_output(r->graph, node);
	}
	ck_assert_int_eq(r->graph->error.status, PAWL_OK);
}

static double
largest(const struct pawl_test_value *v)
{
	double most = 0;
	int64_t i;

	for (i = 0; i < v->n; i++)
		most = fmax(most, fabs(pawl_test_value_at(v, i)));
	return most;
}

/* 1e-5 of the largest value. */
static void
check_attention(const struct pawl_test_value *v, const struct pawl_test_value *a,
	const struct pawl_test_value *b, const char *what)
{
	double bound = 1e-5 * largest(v);
	int64_t i;

	for (i = 0; i < a->n; i++) {
		double x = pawl_test_value_at(a, i), y = pawl_test_value_at(b, i);

		ck_assert_msg((isnan(x) && isnan(y)) || fabs(x - y) <= bound,
			"%s: attention [%d] is %.9g and %.9g, bound %g", what, (int)i, x, y, bound);
	}
}

static void
decode(const struct pawl_test_value *w, double *values)
{
	struct pawl_tensor t = {.data = w->data, .dtype = w->dtype, .rank = 1, .dim = {w->n},
		.stride = {1}, .pos_dim = -1, .at_dim = -1};

	pawl_tensor_load_f64(&t, 0, 0, w->n, values);
}

/* How far the rounding of x to a16 may move a row of the result, and f32 sums in either order. */
static double
matmul_bound(const double *x, const double *w, int64_t k)
{
	double bound = 0, most;
	int64_t block, i;

	for (block = 0; block < k; block += 32) {
		most = 0;
		for (i = block; i < block + 32; i++)
			most = fmax(most, fabs(x[i]));
		for (i = block; i < block + 32; i++)
			bound += fabs(w[i]) * (most / 32512 + fabs(x[i]) * ((double)k + 8) * 0x1p-23);
	}
	return bound;
}

static void
check_matmul(const struct pawl_node *node, const struct pawl_test_value *x,
	const struct pawl_test_value *w, const struct pawl_test_value *a, const struct pawl_test_value *b,
	const char *what)
{
	int64_t k = node->inputs[1].def->type.dim[1].base, n = node->inputs[1].def->type.dim[0].base;
	double *wide = calloc((size_t)(w->n + k), sizeof(*wide)), *row = wide + w->n;
	int64_t i, j, c;

	ck_assert_ptr_nonnull(wide);
	decode(w, wide);
	for (i = 0; i < a->n / n; i++) {
		for (c = 0; c < k; c++)
			row[c] = pawl_test_value_at(x, i * k + c);
		for (j = 0; j < n; j++) {
			double p = pawl_test_value_at(a, i * n + j), q = pawl_test_value_at(b, i * n + j);
			double bound = matmul_bound(row, wide + j * k, k);

			ck_assert_msg((isnan(p) && isnan(q)) || fabs(p - q) <= bound,
				"%s: matmul [%d, %d] is %.9g and %.9g, bound %g", what, (int)i, (int)j, p,
				q, bound);
		}
	}
	free(wide);
}

/* Bits of what the subjects do not reach: outputs, and state by its last value. */
static void
check_rest(const struct reach *r, const struct pawl_test_inputs *inputs,
	const struct pawl_test_results *a, const struct pawl_test_results *b, const char *what)
{
	const struct pawl_node *node;
	int32_t i, kv = a->n_outputs;

	for (i = 0; i < r->n_outputs; i++)
		ck_assert_msg(r->is_reached[r->graph->outputs[i]->id] ||
				pawl_test_first_difference(&a->values[i], &b->values[i]) < 0,
			"%s: output %d differs", what, i);
	for (i = 0; i < inputs->n_consts; i++) {
		bool reached = false;

		if (!inputs->consts[i].is_kv)
			continue;
		pawl_foreach_node(node, r->graph) {
			if (pawl_op_has(node->op, PAWL_OPF_INPLACE) &&
				pawl_node_storage(node) == pawl_graph_find(r->graph, inputs->consts[i].name))
				reached = reached || r->is_reached[node->id];
		}
		ck_assert_msg(reached || pawl_test_first_difference(&a->values[kv], &b->values[kv]) < 0,
			"%s: kv %s differs", what, inputs->consts[i].name);
		kv++;
	}
}

void
pawl_test_check_rounding(const struct pawl_graph *graph, enum pawl_pass pass,
	const struct pawl_test_inputs *inputs, const char *what)
{
	struct pawl_run_options options = {.bisect = -1, .verify_each = true};
	struct pawl_test_results a, b;
	struct pawl_graph *after;
	struct reach r = {0};
	int i;

	OK(pawl_graph_clone(graph, &r.graph, &err));
	find_subjects(&r, pass);
	add_outputs(&r, pass);
	OK(pawl_graph_clone(r.graph, &after, &err));
	OK(pawl_passes_run(after, &pass, 1, pawl_test_packing_facts(), &options, NULL, &err));
	a = pawl_test_run_graph(r.graph, inputs, PAWL_INTERP_PLANNED);
	b = pawl_test_run_graph(after, inputs, PAWL_INTERP_PLANNED);
	check_rest(&r, inputs, &a, &b, what);
	for (i = 0; i < r.n_subjects; i++) {
		const struct pawl_test_value *x = &a.values[r.n_outputs + 3 * i];
		const struct pawl_test_value *y = &b.values[r.n_outputs + 3 * i];

		if (pass == PAWL_PASS_fuse_attention)
			check_attention(&x[1], &x[2], &y[2], what);
		else
			check_matmul(r.subjects[i], &x[0], &x[1], &x[2], &y[2], what);
	}
	pawl_test_results_release(&a);
	pawl_test_results_release(&b);
	pawl_graph_free(after);
	pawl_graph_free(r.graph);
	free(r.is_reached);
}
