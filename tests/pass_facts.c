#include "tests/pass_facts.h"

static enum pawl_layout
weight_layout(const void *target, const struct pawl_type *type)
{
	(void)target;
	return pawl_dtype_info(type->dtype)->kind == PAWL_KIND_QUANT ? PAWL_LAYOUT_TILE16 :
								       PAWL_LAYOUT_ROWS;
}

const struct pawl_pass_facts *
pawl_test_packing_facts(void)
{
	static const struct pawl_pass_facts facts = {
		.precision = PAWL_PRECISION_A16, .weight_layout = weight_layout, .max_prologue_rows = 4};

	return &facts;
}

const struct pawl_pass_facts *
pawl_test_facts(enum pawl_pass pass)
{
	static const struct pawl_pass_facts facts = {
		.precision = PAWL_PRECISION_A16, .max_prologue_rows = 4};

	return pass == PAWL_PASS_choose_layouts ? pawl_test_packing_facts() : &facts;
}
