#include "plugins/cpu_room.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

enum { STACK_BYTES = 8 << 20 };

struct call {
	void (*fn)(void *arg);
	void *arg;
};

enum pawl_status
pawl_cpu_room(size_t n, struct pawl_error *err)
{
	void *probe = mmap(NULL, n, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (probe == MAP_FAILED)
		return pawl_fail(err, PAWL_ENVIRONMENT,
			"the cpu compiler needs %zu MiB of address space more than this process may "
			"have",
			n >> 20);
	munmap(probe, n);
	return PAWL_OK;
}

static void *
run(void *arg)
{
	struct call *call = arg;

	call->fn(call->arg);
	return NULL;
}

enum pawl_status
pawl_cpu_run_roomy(void (*fn)(void *arg), void *arg, struct pawl_error *err)
{
	struct call call = {fn, arg};
	sigset_t all, before;
	pthread_attr_t attr;
	pthread_t thread;
	int error = pthread_attr_init(&attr);

	if (!error) {
		pthread_attr_setstacksize(&attr, STACK_BYTES);
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &before);
		error = pthread_create(&thread, &attr, run, &call);
		pthread_sigmask(SIG_SETMASK, &before, NULL);
		pthread_attr_destroy(&attr);
	}
	if (error)
		return pawl_fail(err, PAWL_ENVIRONMENT, "no thread to compile on: %s",
			strerror(error));
	pthread_join(thread, NULL);
	return PAWL_OK;
}
