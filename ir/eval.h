/*
 * What the scalar primitives of ir/scalar.def compute, bit for bit.  The constant folder and
 * the reference target call these functions; the emitters write the same operations.
 *
 * The results are specified in the environment of ir/fpenv.h, which the caller has entered.
 * Outside of it they differ only where a subnormal number is an operand or a result.
 */
#ifndef PAWL_IR_EVAL_H
#define PAWL_IR_EVAL_H

#include "ir/op.h"

enum pawl_scalar {
#define PAWL_SCALAR_ROW(id, name, arity, formula) PAWL_SCALAR_##id,
#include "ir/scalar.def"
	PAWL_N_SCALARS
};

#define PAWL_SCALAR_MAX_ARITY 3

struct pawl_scalar_info {
	const char *name;
	int arity;
	const char *formula;
};

const struct pawl_scalar_info *pawl_scalar_info(enum pawl_scalar scalar);

/*
 * The primitive that an elementwise op is, element by element.  False for all others, also for
 * those elementwise ops that need an attribute: copy, cast, scale.
 */
bool pawl_op_scalar(enum pawl_op op, enum pawl_scalar *out);

/* x holds as many operands as the arity says. */
float pawl_scalar_eval(enum pawl_scalar scalar, const float *x);

#define PAWL_EVAL_PARAMETERS_1 float x
#define PAWL_EVAL_PARAMETERS_2 float x, float y
#define PAWL_EVAL_PARAMETERS_3 float x, float y, float z
#define PAWL_SCALAR_ROW(id, name, arity, formula)                                                  \
	float pawl_eval_##name(PAWL_EVAL_PARAMETERS_##arity);
#include "ir/scalar.def"

/*
 * Whether a specified result equals another: equal bits, or both NaN (payloads and signs of
 * NaNs are not specified), or both zero or subnormal with one sign (a subnormal that passes
 * through max, min, neg, abs, relu or a copy may come out as it is or as zero; whatever reads
 * it next reads zero).
 */
bool pawl_eval_same(float x, float y);

#endif
