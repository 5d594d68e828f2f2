#include "runtime/literal.h"

#include "codegen/tensor.h"

enum pawl_status
pawl_literal_new(const struct pawl_type *type, const double *values, uint32_t n_values,
	struct pawl_storage **out, struct pawl_error *err)
{
	int64_t n = pawl_type_elems(type), dims[PAWL_MAX_RANK], bytes;
	bool is_float = pawl_dtype_is_float(type->dtype);
	struct pawl_tensor t;
	enum pawl_status status;

	if (type->layout != PAWL_LAYOUT_ROWS || pawl_dtype_is_blocked(type->dtype) ||
		(n_values != 1 && n_values != n))
		return pawl_fail(err, PAWL_INVALID_GRAPH,
			"a literal of %s has %u values for %lld elements",
			pawl_dtype_name(type->dtype), n_values, (long long)n);
	for (int i = 0; i < type->rank; i++)
		dims[i] = type->dim[i].base;
	status = pawl_tensor_init(
		&t, type->dtype, type->layout, false, type->rank, dims, &bytes, err);
	if (status)
		return status;
	status = pawl_storage_new(type, out, err);
	if (status)
		return status;
	t.data = (*out)->bytes;
	for (int64_t i = 0, width = pawl_type_row_length(type); i < n; i++) {
		double value = values[n_values == 1 ? 0 : i];

		if (is_float)
			pawl_tensor_store_f64(&t, i / width, i % width, 1, &value);
		else
			pawl_tensor_store_i64(&t, i, (int64_t)value);
	}
	return PAWL_OK;
}
