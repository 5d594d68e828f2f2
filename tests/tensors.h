/*
 * Tensors for tests of the reference: memory that the fixture frees, random content, single
 * elements by their row-major number, and one call of an op with scratch of just the right size.
 */
#ifndef PAWL_TESTS_TENSORS_H
#define PAWL_TESTS_TENSORS_H

#include "codegen/ref_ops.h"

/* The fixture; everything made in between is freed at the end, and the numbers start afresh. */
void pawl_tensors_begin(void);
void pawl_tensors_end(void);

#define PAWL_DIMS(...)                                                                             \
	(int64_t[])                                                                                \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}

struct pawl_tensor pawl_test_tensor(enum pawl_dtype dtype, int rank, const int64_t *dims);
struct pawl_tensor pawl_test_wide(int rank, const int64_t *dims);
struct pawl_tensor pawl_test_k16(enum pawl_dtype dtype, const int64_t *dims);
struct pawl_tensor pawl_test_int(int64_t value);

/* Between -most and most. */
double pawl_test_random(double most);
/* A float tensor, or a quantized one whose scales are powers of two about most / 16. */
void pawl_test_fill(const struct pawl_tensor *t, double most);

double pawl_test_get(const struct pawl_tensor *t, int64_t i);
void pawl_test_set(const struct pawl_tensor *t, int64_t i, double value);

enum pawl_status pawl_test_call(bool exact, enum pawl_op op, const struct pawl_attrs *attrs,
	const struct pawl_tensor *inputs, int n_inputs, const struct pawl_tensor *out,
	struct pawl_error *err);

/* The same, and it must succeed. */
void pawl_test_run(bool exact, enum pawl_op op, const struct pawl_attrs *attrs,
	const struct pawl_tensor *inputs, int n_inputs, const struct pawl_tensor *out);

/* An f32 tensor with the dims of t, wide in exact mode. */
struct pawl_tensor pawl_test_result(const struct pawl_tensor *t, bool exact);

void pawl_test_near(double got, long double want, double tolerance);

#endif
