#include "plugins/cpu_make.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "codegen/launch.h"
#include "runtime/cpu_count.h"

enum { MOST_THREADS = 4 };

/* Steps whose kernels are missing, one for each kernel. */
struct making {
	struct pawl_cpu_kernels *kernels;
	const struct pawl_program *program;
	enum pawl_cpu_variant variant;
	int32_t n, *steps;
	uint64_t *hashes;
	const struct pawl_cpu_kernel **found; /* of all steps */
	_Atomic int32_t next;
};

static bool
is_listed(const struct making *m, uint64_t hash)
{
	for (int32_t i = 0; i < m->n; i++) {
		if (m->hashes[i] == hash)
			return true;
	}
	return false;
}

static void
list_missing(struct making *m)
{
	for (int32_t i = 0; i < m->program->n_steps; i++) {
		const struct pawl_step *step = &m->program->steps[i];
		uint64_t hash;

		if (step->n_ops > PAWL_MAX_BODY_OPS)
			continue;
		m->found[i] =
			pawl_cpu_kernels_find(m->kernels, m->program, step, m->variant, &hash);
		if (m->found[i] || is_listed(m, hash))
			continue;
		m->steps[m->n] = i;
		m->hashes[m->n++] = hash;
	}
}

static void *
make_some(void *arg)
{
	struct making *m = arg;
	const struct pawl_cpu_kernel *kernel;
	struct pawl_error none;
	int32_t i;

	while ((i = atomic_fetch_add(&m->next, 1)) < m->n)
		(void)pawl_cpu_kernels_get(m->kernels, m->program, &m->program->steps[m->steps[i]],
			m->variant, &kernel, &none);
	return NULL;
}

static void
make_all(struct making *m, int n_threads)
{
	pthread_t threads[MOST_THREADS];
	sigset_t all, before;
	int n = 0;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (n < n_threads - 1 && !pthread_create(&threads[n], NULL, make_some, m))
		n++;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	make_some(m);
	while (n > 0)
		pthread_join(threads[--n], NULL);
}

void
pawl_cpu_make_missing(struct pawl_cpu_kernels *kernels, const struct pawl_program *program,
	enum pawl_cpu_variant variant, const struct pawl_cpu_kernel **found)
{
	size_t n_steps = (size_t)program->n_steps + 1;
	struct making m = {kernels, program, variant, .steps = calloc(n_steps, sizeof(*m.steps)),
		.hashes = calloc(n_steps, sizeof(*m.hashes)), .found = found};
	struct pawl_error none;
	int n_threads = 1;

	/* Dumps are numbered in the order in which they are made. */
	if (m.steps && m.hashes && !kernels->dump_dir &&
		pawl_default_threads(NULL, 0, &n_threads, &none) == PAWL_OK && n_threads > 1) {
		list_missing(&m);
		if (n_threads > MOST_THREADS)
			n_threads = MOST_THREADS;
		if (m.n > 1)
			make_all(&m, n_threads < m.n ? n_threads : m.n);
	}
	free(m.steps);
	free(m.hashes);
}
