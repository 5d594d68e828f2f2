/* The numbers of a literal const as storage. */
#ifndef PAWL_RUNTIME_LITERAL_H
#define PAWL_RUNTIME_LITERAL_H

#include "runtime/storage.h"

/*
 * values: one for all elements, or one for each in row-major order; rounded to the type.
 * type is static, row-major, plain (not blocked).
 */
enum pawl_status pawl_literal_new(const struct pawl_type *type, const double *values,
	uint32_t n_values, struct pawl_storage **out, struct pawl_error *err);

#endif
