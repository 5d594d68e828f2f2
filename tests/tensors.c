#include "tests/tensors.h"

#include "ir/arena.h"
#include "ir/fpenv.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct pawl_arena arena;
static uint64_t state;

void
pawl_tensors_begin(void)
{
	pawl_arena_init(&arena);
	state = 1;
}

void
pawl_tensors_end(void)
{
	pawl_arena_release(&arena);
}

static struct pawl_tensor
make(enum pawl_dtype dtype, enum pawl_layout layout, bool wide, int rank, const int64_t *dims)
{
	struct pawl_tensor t;
	int64_t bytes;

	ck_assert_int_eq(
		pawl_tensor_init(&t, dtype, layout, wide, rank, dims, &bytes, NULL), PAWL_OK);
	t.data = pawl_arena_alloc(&arena, (size_t)bytes + 1, 1);
	ck_assert_ptr_nonnull(t.data);
	return t;
}

struct pawl_tensor
pawl_test_tensor(enum pawl_dtype dtype, int rank, const int64_t *dims)
{
	return make(dtype, PAWL_LAYOUT_ROWS, false, rank, dims);
}

struct pawl_tensor
pawl_test_wide(int rank, const int64_t *dims)
{
	return make(PAWL_DTYPE_F32, PAWL_LAYOUT_ROWS, true, rank, dims);
}

struct pawl_tensor
pawl_test_k16(enum pawl_dtype dtype, const int64_t *dims)
{
	return make(dtype, PAWL_LAYOUT_K16, false, 4, dims);
}

struct pawl_tensor
pawl_test_int(int64_t value)
{
	struct pawl_tensor t = pawl_test_tensor(PAWL_DTYPE_I64, 0, NULL);

	pawl_tensor_store_i64(&t, 0, value);
	return t;
}

double
pawl_test_random(double most)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return most * ((double)(state >> 11) * 0x1p-52 - 1.0);
}

static void
fill_quantized(const struct pawl_tensor *t, double most)
{
	const struct pawl_dtype_info *info = pawl_dtype_info(t->dtype);
	int64_t bytes = pawl_dtype_bytes(t->dtype, pawl_tensor_elems(t)), i;
	uint16_t scale = most >= 1.0 ? 0x2c00 : 0x1c00; /* 2^-4, 2^-8 */
	bool has_two = t->dtype == PAWL_DTYPE_Q4_1 || t->dtype == PAWL_DTYPE_Q5_1 ||
		       t->dtype == PAWL_DTYPE_Q4_K || t->dtype == PAWL_DTYPE_Q5_K;
	int at = t->dtype == PAWL_DTYPE_Q6_K ? info->block_bytes - 2 : 0;

	for (i = 0; i < bytes; i++)
		t->data[i] = (char)(int)pawl_test_random(127.0);
	for (i = 0; i < bytes; i += info->block_bytes) {
		memcpy(t->data + i + at, &scale, sizeof(scale));
		if (has_two)
			memcpy(t->data + i + 2, &scale, sizeof(scale));
	}
}

void
pawl_test_fill(const struct pawl_tensor *t, double most)
{
	int64_t n = pawl_tensor_elems(t), i;

	if (pawl_dtype_info(t->dtype)->kind == PAWL_KIND_QUANT) {
		fill_quantized(t, most);
		return;
	}
	for (i = 0; i < n; i++)
		pawl_test_set(t, i, pawl_test_random(most));
}

double
pawl_test_get(const struct pawl_tensor *t, int64_t i)
{
	int64_t length = pawl_tensor_row_length(t), block = pawl_dtype_info(t->dtype)->block;
	double x[256];

	if (t->wide)
		block = 1;
	pawl_tensor_load_f64(t, i / length, i % length / block * block, block, x);
	return x[i % length % block];
}

void
pawl_test_set(const struct pawl_tensor *t, int64_t i, double value)
{
	int64_t length = pawl_tensor_row_length(t);

	if (pawl_dtype_info(t->dtype)->kind == PAWL_KIND_INT)
		pawl_tensor_store_i64(t, i, (int64_t)value);
	else
		pawl_tensor_store_f64(t, i / length, i % length, 1, &value);
}

enum pawl_status
pawl_test_call(bool exact, enum pawl_op op, const struct pawl_attrs *attrs,
	const struct pawl_tensor *inputs, int n_inputs, const struct pawl_tensor *out,
	struct pawl_error *err)
{
	struct pawl_attrs defaults = pawl_attrs_default();
	struct pawl_ref_call call = {.attrs = attrs ? attrs : &defaults,
		.inputs = inputs,
		.n_inputs = n_inputs,
		.out = out,
		.scratch = malloc((size_t)pawl_ref_scratch_bytes(op, inputs, n_inputs, out) + 1)};
	enum pawl_status status;
	uint32_t saved;

	ck_assert_ptr_nonnull(call.scratch);
	if (exact) {
		status = pawl_exact_run(op, &call, err);
	} else {
		saved = pawl_fpenv_enter();
		status = pawl_ref_run(op, &call, err);
		pawl_fpenv_leave(saved);
	}
	free(call.scratch);
	return status;
}

void
pawl_test_run(bool exact, enum pawl_op op, const struct pawl_attrs *attrs,
	const struct pawl_tensor *inputs, int n_inputs, const struct pawl_tensor *out)
{
	struct pawl_error err = {0};
	enum pawl_status status = pawl_test_call(exact, op, attrs, inputs, n_inputs, out, &err);

	ck_assert_msg(status == PAWL_OK, "%s", err.text);
}

struct pawl_tensor
pawl_test_result(const struct pawl_tensor *t, bool exact)
{
	return exact ? pawl_test_wide(t->rank, t->dim)
		     : pawl_test_tensor(PAWL_DTYPE_F32, t->rank, t->dim);
}

void
pawl_test_near(double got, long double want, double tolerance)
{
	ck_assert_msg(fabsl(got - want) <= tolerance, "got %.17g, want %.17Lg within %g", got, want,
		tolerance);
}
