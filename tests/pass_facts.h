/* What tests let passes know of a target that does not exist. */
#ifndef PAWL_TESTS_PASS_FACTS_H
#define PAWL_TESTS_PASS_FACTS_H

#include "passes/pass.h"

/* a16, prologues of up to 4 rows; packed quantized weights for choose_layouts, else rows. */
const struct pawl_pass_facts *pawl_test_facts(enum pawl_pass pass);

/* Packed layouts for every pass, which no program of the reference can have. */
const struct pawl_pass_facts *pawl_test_packing_facts(void);

#endif
