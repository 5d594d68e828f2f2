#include "tests/cuda/kernel_run.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/ref_step.h"
#include "ir/fpenv.h"

static struct pawl_error err;

#define OK(call) ck_assert_msg((call) == PAWL_OK, "%s", err.text)

static const struct pawl_cuda_kernels *
kernels_of(const struct pawl_cuda_case *c)
{
	int i, j;

	for (i = 0; i < pawl_cuda_n_kernels; i++) {
		const struct pawl_cuda_kernels *k = &pawl_cuda_kernels[i];

		if (strcmp(k->case_name, c->name))
			continue;
		ck_assert_int_eq(k->n, c->cuda.n_kernels);
		for (j = 0; j < k->n; j++)
			ck_assert_str_eq(k->kernels[j].name, c->cuda.kernels[j].name);
		return k;
	}
	ck_abort_msg("%s was not compiled", c->name);
}

void
pawl_cuda_run(const struct pawl_cuda_case *c, const struct pawl_cuda_memory *m,
	const int64_t *symbols, enum pawl_fiber_order order, int32_t blocks,
	const struct pawl_cuda_spoiled *spoiled)
{
	const struct pawl_cuda_kernels *kernels = kernels_of(c);
	uint32_t saved = pawl_fpenv_enter();
	int64_t *state = calloc(1, (size_t)c->cuda.state_bytes);
	int32_t i;

	ck_assert_ptr_nonnull(state);
	memcpy(state, symbols, (size_t)c->program->n_symbols * sizeof(*state));

	for (i = 0; i < c->cuda.n_launches; i++) {
		const struct pawl_cuda_launch *launch = &c->cuda.launches[i];
		const struct pawl_cuda_kernel *kernel = &c->cuda.kernels[launch->kernel];
		struct pawl_fiber_launch l = {.kernel = kernels->kernels[launch->kernel].run,
			.name = kernel->name,
			.args = m->args + c->program->steps[launch->step].first_arg,
			.state = state,
			.shared_begin = kernels->shared_begin,
			.shared_end = kernels->shared_end,
			.blocks = blocks ? blocks : launch->blocks,
			.threads = kernel->threads,
			.order = order};

		if (spoiled && spoiled->kernel == launch->kernel)
			l.kernel = spoiled->run;
		OK(pawl_fibers_run(&l, &err));
	}
	pawl_fpenv_leave(saved);
	ck_assert_msg(!memcmp(state, symbols, (size_t)c->program->n_symbols * sizeof(*state)),
		"%s changed its symbols", c->name);
	for (i = 8 * c->program->n_symbols; i < c->cuda.state_bytes; i++)
		ck_assert_msg(!((char *)state)[i], "%s leaves a counter", c->name);
	free(state);
}

void
pawl_cuda_run_reference(const struct pawl_cuda_memory *m, const int64_t *symbols)
{
	int64_t bytes;
	uint32_t saved;
	void *scratch;

	OK(pawl_ref_program_check(m->program, &bytes, &err));
	scratch = aligned_alloc(64, ((size_t)bytes / 64 + 1) * 64);
	ck_assert_ptr_nonnull(scratch);
	saved = pawl_fpenv_enter();
	OK(pawl_ref_program_run(m->program, m->args, symbols, scratch, &err));
	pawl_fpenv_leave(saved);
	free(scratch);
}
