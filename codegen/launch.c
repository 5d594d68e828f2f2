#include "codegen/launch.h"

#include "codegen/pack.h"
#include "ir/eval_consts.h"
#include "passes/cost.h"

static int64_t
ceil_div(int64_t a, int64_t b)
{
	return (a + b - 1) / b;
}

int32_t
pawl_step_find(const struct pawl_step *step, enum pawl_op op)
{
	int32_t i;

	for (i = 0; i < step->n_ops; i++) {
		if (step->ops[i].op == op)
			return i;
	}
	return -1;
}

int32_t
pawl_step_attention(const struct pawl_step *step)
{
	int32_t i = 0;

	while (!pawl_op_attends(step->ops[i].op))
		i++;
	return i;
}

int
pawl_step_phases(const struct pawl_step *step)
{
	return step->template == PAWL_TEMPLATE_ATTEND ? 2 : 1;
}

static void
rename_segment(const struct pawl_step *step, struct pawl_segments *s, int32_t from, int32_t to)
{
	int32_t i;

	for (i = 0; i < step->n_ops; i++) {
		if (s->of[i] == from)
			s->of[i] = to;
	}
}

/* A segment is named by one of its matmuls until all are known. */
static void
join_matmuls(const struct pawl_step *step, struct pawl_segments *s)
{
	int32_t i, j;

	for (i = 0; i < step->n_ops; i++) {
		const struct pawl_step_op *op = &step->ops[i];

		s->of[i] = op->op == PAWL_OP_MATMUL ? i : -1;
		for (j = 0; op->op != PAWL_OP_MATMUL && j < op->n_inputs; j++) {
			int32_t value = op->inputs[j].value;

			if (value < 0 || s->of[value] < 0)
				continue;
			if (s->of[i] >= 0)
				rename_segment(step, s, s->of[i], s->of[value]);
			s->of[i] = s->of[value];
		}
	}
}

void
pawl_step_segments(const struct pawl_step *step, struct pawl_segments *out)
{
	int32_t i;

	*out = (struct pawl_segments){.n = 0};
	if (step->template == PAWL_TEMPLATE_MATMUL) {
		join_matmuls(step, out);
		for (i = 0; i < step->n_ops; i++) {
			/* Names of ops that were reached lie below 0 as -2 - number. */
			if (out->of[i] < 0)
				continue;
			out->first[out->n] = i;
			rename_segment(step, out, out->of[i], -2 - out->n++);
		}
		for (i = 0; i < step->n_ops; i++) {
			if (out->of[i] < -1)
				out->of[i] = -2 - out->of[i];
		}
		return;
	}
	for (i = 0; i < step->n_ops; i++) {
		bool alone = step->template != PAWL_TEMPLATE_ROWS &&
			     step->template != PAWL_TEMPLATE_ATTEND;

		out->of[i] = alone && step->ops[i].n_outs ? out->n : -1;
		if (out->of[i] >= 0)
			out->first[out->n++] = i;
	}
	if (step->template == PAWL_TEMPLATE_ROWS || step->template == PAWL_TEMPLATE_ATTEND)
		out->n = 1;
}

static int64_t
rows_of(const struct pawl_type *type, const int64_t *symbols)
{
	int64_t rows = 1;
	int i;

	for (i = 0; i + 1 < type->rank; i++)
		rows *= pawl_dim_value(type->dim[i], symbols);
	return rows;
}

int64_t
pawl_attend_length(const struct pawl_step_op *attention, const int64_t *symbols)
{
	int32_t sym = attention->attrs.sym;

	return sym >= 0 ? symbols[sym] : pawl_attend_most(attention);
}

int64_t
pawl_attend_window_chunks(const struct pawl_step_op *attention)
{
	int64_t window = attention->attrs.window;

	if (window <= 0 || !attention->attrs.causal)
		return INT64_MAX;
	/* One that begins with the last position of a chunk. */
	return 1 + ceil_div(window - 1, PAWL_ATTEND_CHUNK);
}

static int64_t
attend_units(const struct pawl_step *step, int phase, const int64_t *symbols)
{
	const struct pawl_step_op *attention = &step->ops[pawl_step_attention(step)];
	int64_t rows = pawl_dim_value(attention->type.dim[0], symbols), chunks, most;

	if (phase == 1)
		return rows * attention->type.dim[1].base;
	chunks = ceil_div(pawl_attend_length(attention, symbols), PAWL_ATTEND_CHUNK);
	most = pawl_attend_window_chunks(attention);
	return rows * attention->inputs[1].type.dim[1].base * (chunks < most ? chunks : most);
}

int64_t
pawl_step_units(const struct pawl_step *step, const struct pawl_segments *segments, int phase,
	const int64_t *symbols)
{
	int64_t units = 0;
	int s;

	if (step->template == PAWL_TEMPLATE_ATTEND)
		return attend_units(step, phase, symbols);
	if (step->template == PAWL_TEMPLATE_ROWS)
		return rows_of(&step->ops[0].inputs[0].type, symbols);
	for (s = 0; s < segments->n; s++) {
		const struct pawl_type *type = &step->ops[segments->first[s]].type;

		units += step->template == PAWL_TEMPLATE_MATMUL
				 ? ceil_div(pawl_type_row_length(type), PAWL_TILE_ROWS)
				 : rows_of(type, symbols);
	}
	return units;
}

bool
pawl_step_is_symbolic(const struct pawl_step *step)
{
	int32_t i;

	for (i = 0; i < step->n_ops; i++) {
		const struct pawl_step_op *op = &step->ops[i];

		if (!pawl_type_is_static(&op->type) ||
			(pawl_op_attends(op->op) && op->attrs.sym >= 0) ||
			(op->n_inputs && !pawl_type_is_static(&op->inputs[0].type)))
			return true;
	}
	return false;
}

int64_t
pawl_attend_scratch_bytes(int64_t rows, int64_t heads, int64_t value_width, int64_t max_length)
{
	return rows * heads * ceil_div(max_length, PAWL_ATTEND_CHUNK) * (value_width + 2) *
	       (int64_t)sizeof(float);
}
