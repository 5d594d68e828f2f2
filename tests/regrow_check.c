#include "tests/regrow_check.h"

#include <check.h>
#include <stdlib.h>

#include "codegen/cuda/cuda_program.h"
#include "codegen/kernel_key.h"
#include "passes/regrow.h"
#include "tests/program_check.h"

#define OK(call) ck_assert_msg((call) == PAWL_OK, "%s", err.text)

static const struct pawl_optimize_options plain = {.run = {.bisect = -1}};

void
pawl_test_check_same_code(const struct pawl_graph *small, const struct pawl_graph *large)
{
	struct pawl_cuda_program cuda_a, cuda_b;
	struct pawl_program *a, *b;
	struct pawl_error err;

	OK(pawl_optimize(small, &plain, &a, NULL, &err));
	OK(pawl_optimize(large, &plain, &b, NULL, &err));
	ck_assert_int_eq(a->n_steps, b->n_steps);
	for (int32_t i = 0; i < a->n_steps; i++) {
		char *key_a = pawl_kernel_key(a, &a->steps[i], PAWL_CPU_BASELINE);
		char *key_b = pawl_kernel_key(b, &b->steps[i], PAWL_CPU_BASELINE);

		ck_assert_str_eq(key_a, key_b);
		free(key_a);
		free(key_b);
	}
	OK(pawl_cuda_program_init(&cuda_a, a, &err));
	OK(pawl_cuda_program_init(&cuda_b, b, &err));
	ck_assert_int_eq(cuda_a.n_units, cuda_b.n_units);
	for (int32_t i = 0; i < cuda_a.n_units; i++)
		ck_assert_str_eq(cuda_a.sources[i].bytes, cuda_b.sources[i].bytes);
	ck_assert_int_eq(cuda_a.n_launches, cuda_b.n_launches);
	pawl_cuda_program_release(&cuda_a);
	pawl_cuda_program_release(&cuda_b);
	pawl_program_free(a);
	pawl_program_free(b);
}

void
pawl_test_check_regrown(struct pawl_graph **kept, uint64_t hash, const struct pawl_graph *to)
{
	struct pawl_program *program, *anew;
	struct pawl_graph *next;
	struct pawl_error err;
	char *text, *wanted;

	OK(pawl_regrow(*kept, hash, to, &plain, &next, &program, &err));
	ck_assert_uint_eq(program->hash, pawl_graph_hash(to));
	OK(pawl_optimize(to, &plain, &anew, NULL, &err));
	text = pawl_test_dump_program(program);
	wanted = pawl_test_dump_program(anew);
	ck_assert_str_eq(text, wanted);
	pawl_test_check_program(program, "regrown");
	free(text);
	free(wanted);
	pawl_program_free(program);
	pawl_program_free(anew);
	pawl_graph_free(*kept);
	*kept = next;
}
