#include "tests/cuda/mock_parts.h"

#include <dlfcn.h>
#include <elf.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ir/fpenv.h"

enum { PAGE = 4096, ALIGNMENT = 256 };

static const size_t ARENA = (size_t)1 << 40;

struct function {
	const struct pawl_mock_kernel *kernel;
	char *shared_begin, *shared_end;
	struct function *next;
};

static char *arena;
static size_t arena_used;
static struct function *functions;
static sigjmp_buf faulted;

void
pawl_mock_memory_make(struct pawl_mock_object *object, size_t n)
{
	size_t whole = (n + PAGE - 1) / PAGE * PAGE;

	if (!arena) {
		arena = mmap(
			NULL, ARENA, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (arena == MAP_FAILED)
			abort();
	}
	object->pages = arena + arena_used;
	object->n_pages_bytes = whole;
	arena_used += whole + PAGE;
	if (arena_used > ARENA)
		abort();
	object->n_bytes = n;
	object->bytes = object->pages + (whole - n) / ALIGNMENT * ALIGNMENT;
	pawl_mock_memory_open(object, true);
	memset(object->pages, 0xff, whole);
	pawl_mock_memory_open(object, false);
}

void
pawl_mock_memory_open(const struct pawl_mock_object *object, bool is_open)
{
	if (mprotect(object->pages, object->n_pages_bytes,
		    is_open ? PROT_READ | PROT_WRITE : PROT_NONE))
		abort();
}

void
pawl_mock_memory_end(struct pawl_mock_object *object)
{
	madvise(object->pages, object->n_pages_bytes, MADV_DONTNEED);
}

/* Section headers end what a linker writes. */
static size_t
image_bytes(const void *image)
{
	const Elf64_Ehdr *header = image;

	if (memcmp(header->e_ident, ELFMAG, SELFMAG))
		return 0;
	return header->e_shoff + (size_t)header->e_shnum * header->e_shentsize;
}

void *
pawl_mock_image_open(const void *image, int *fd)
{
	size_t n = image_bytes(image);
	void *library = NULL;
	char path[64];

	*fd = n ? memfd_create("pawl_mock", MFD_CLOEXEC) : -1;
	if (*fd < 0)
		return NULL;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", *fd);
	if (write(*fd, image, n) == (ssize_t)n)
		library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		pawl_mock_mistake("%s", dlerror());
		close(*fd);
	}
	return library;
}

void *
pawl_mock_function_new(
	const struct pawl_mock_object *module, const struct pawl_mock_kernel *kernel)
{
	struct function *function = calloc(1, sizeof(*function));
	pawl_mock_shared_fn *shared;

	if (!function)
		abort();
	*(void **)&shared = dlsym(module->library, "pawl_mock_shared");
	shared(&function->shared_begin, &function->shared_end);
	function->kernel = kernel;
	function->next = functions;
	functions = function;
	return function;
}

struct pawl_mock_work *
pawl_mock_copy_new(enum pawl_mock_work_kind kind, void *to, const void *from, size_t n)
{
	struct pawl_mock_work *work = calloc(1, sizeof(*work));

	if (!work)
		abort();
	work->kind = kind;
	work->to = to;
	work->from = from;
	work->n = n;
	return work;
}

struct pawl_mock_work *
pawl_mock_kernel_new(
	const void *function, unsigned int blocks, unsigned int threads, void **parameters)
{
	const struct function *f = function;
	struct pawl_mock_work *work;

	if ((int)threads != f->kernel->threads)
		return NULL;
	work = pawl_mock_copy_new(PAWL_MOCK_KERNEL, NULL, NULL, 0);
	work->kernel = f->kernel;
	work->shared_begin = f->shared_begin;
	work->shared_end = f->shared_end;
	memcpy(&work->args, parameters[0], sizeof(work->args));
	memcpy(&work->state, parameters[1], sizeof(work->state));
	work->blocks = blocks;
	return work;
}

void
pawl_mock_work_free(struct pawl_mock_work *work)
{
	free(work->staged);
	free(work);
}

void
pawl_mock_works_free(struct pawl_mock_work *works)
{
	struct pawl_mock_work *next;

	for (; works; works = next) {
		next = works->next;
		pawl_mock_work_free(works);
	}
}

struct pawl_mock_work *
pawl_mock_works_copy(const struct pawl_mock_work *works)
{
	struct pawl_mock_work *copy = NULL, **end = &copy;

	for (; works; works = works->next) {
		*end = pawl_mock_copy_new(works->kind, works->to, works->from, works->n);
		**end = *works;
		(*end)->next = NULL;
		end = &(*end)->next;
	}
	return copy;
}

static void
on_fault(int signal)
{
	siglongjmp(faulted, signal);
}

/* An address that is nobody's ends the kernel. */
static CUresult
run_fibers(const struct pawl_fiber_launch *launch)
{
	struct sigaction action = {.sa_handler = on_fault, .sa_flags = SA_NODEFER}, was[2];
	volatile CUresult result = PAWL_CUDA_ERROR_ILLEGAL_ADDRESS;
	volatile uint32_t saved = pawl_fpenv_enter();
	struct pawl_error err;

	sigaction(SIGSEGV, &action, &was[0]);
	sigaction(SIGBUS, &action, &was[1]);
	if (!sigsetjmp(faulted, 1)) {
		result = pawl_fibers_run(launch, &err) ? PAWL_CUDA_ERROR_LAUNCH_FAILED
						       : PAWL_CUDA_SUCCESS;
		if (result)
			pawl_mock_mistake("%s", err.text);
	} else {
		pawl_mock_mistake("kernel %s touches what is no memory of the device",
			launch->name);
	}
	sigaction(SIGSEGV, &was[0], NULL);
	sigaction(SIGBUS, &was[1], NULL);
	pawl_fpenv_leave(saved);
	return result;
}

static CUresult
run_kernel(const struct pawl_mock_work *work)
{
	const struct pawl_mock_kernel *kernel = work->kernel;
	void *const *args = work->args;
	const struct pawl_fiber_launch launch = {.kernel = kernel->run,
		.name = kernel->name,
		.args = args,
		.state = work->state,
		.shared_begin = work->shared_begin,
		.shared_end = work->shared_end,
		.blocks = work->blocks,
		.threads = kernel->threads,
		.order = pawl_mock.order};

	if (!pawl_mock_has(args, (size_t)kernel->n_args * sizeof(*args)) ||
		!pawl_mock_has(work->state, sizeof(int64_t))) {
		pawl_mock_mistake("kernel %s: its table or its state is freed", kernel->name);
		return PAWL_CUDA_ERROR_ILLEGAL_ADDRESS;
	}
	for (int i = 0; i < kernel->n_args; i++)
		if (!pawl_mock_has(args[i], 1)) {
			pawl_mock_mistake("kernel %s: argument %d is no memory of the device",
				kernel->name, i);
			return PAWL_CUDA_ERROR_ILLEGAL_ADDRESS;
		}
	pawl_mock.kernels_run++;
	return run_fibers(&launch);
}

CUresult
pawl_mock_work_run(const struct pawl_mock_work *work)
{
	bool reads = work->kind == PAWL_MOCK_DOWN || work->kind == PAWL_MOCK_WITHIN;
	bool writes = work->kind == PAWL_MOCK_UP || work->kind == PAWL_MOCK_WITHIN ||
		      work->kind == PAWL_MOCK_FILL;

	if (work->kind == PAWL_MOCK_KERNEL)
		return run_kernel(work);
	if ((reads && !pawl_mock_has(work->from, work->n)) ||
		(writes && !pawl_mock_has(work->to, work->n))) {
		pawl_mock_mistake("a copy leaves the memory of the device");
		return PAWL_CUDA_ERROR_ILLEGAL_ADDRESS;
	}
	if (work->kind == PAWL_MOCK_DOWN)
		pawl_mock.bytes_down += work->n;
	if (work->kind == PAWL_MOCK_FILL)
		memset(work->to, work->value, work->n);
	else
		memcpy(work->to, work->from, work->n);
	return PAWL_CUDA_SUCCESS;
}
