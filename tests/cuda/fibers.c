#include "tests/cuda/fibers.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { STACK_BYTES = 128 << 10, POISON = 0xff };

enum state { READY, AT_BARRIER, AT_SHUFFLE, ENDED };

struct fiber {
	void *stack; /* where it went on last */
	enum state state;
	float value; /* given to a shuffle, then taken from it */
	int lanes;
};

/* The shared memory of kernels that name no other: the section that PAWL_SHARED puts it in. */
extern char __start_pawl_shared[] __attribute__((weak));
extern char __stop_pawl_shared[] __attribute__((weak));

struct pawl_fiber_place pawl_fiber_place;

static struct fiber fibers[PAWL_FIBER_MOST];
static void *scheduler_stack;
static char *stacks;
static const struct pawl_fiber_launch *current;
static uint64_t random_state;
static bool is_misaligned; /* a load of the current block */

/*
 * Saves the registers that a call keeps and the stack pointer in *from, and goes on where `to` was
 * saved.
 */
void pawl_fiber_switch(void **from, void *to) __attribute__((visibility("hidden")));

#if defined(__x86_64__)
enum { SAVED_WORDS = 6 };
__asm__(".text\n"
	".globl pawl_fiber_switch\n"
	".hidden pawl_fiber_switch\n"
	".type pawl_fiber_switch, @function\n"
	"pawl_fiber_switch:\n"
	"	pushq %rbp\n"
	"	pushq %rbx\n"
	"	pushq %r12\n"
	"	pushq %r13\n"
	"	pushq %r14\n"
	"	pushq %r15\n"
	"	movq %rsp, (%rdi)\n"
	"	movq %rsi, %rsp\n"
	"	popq %r15\n"
	"	popq %r14\n"
	"	popq %r13\n"
	"	popq %r12\n"
	"	popq %rbx\n"
	"	popq %rbp\n"
	"	ret\n"
	".size pawl_fiber_switch, . - pawl_fiber_switch\n");
#elif defined(__aarch64__)
enum { SAVED_WORDS = 20 };
__asm__(".text\n"
	".globl pawl_fiber_switch\n"
	".hidden pawl_fiber_switch\n"
	".type pawl_fiber_switch, %function\n"
	"pawl_fiber_switch:\n"
	"	sub sp, sp, #160\n"
	"	stp x19, x20, [sp]\n"
	"	stp x21, x22, [sp, #16]\n"
	"	stp x23, x24, [sp, #32]\n"
	"	stp x25, x26, [sp, #48]\n"
	"	stp x27, x28, [sp, #64]\n"
	"	stp x29, x30, [sp, #80]\n"
	"	stp d8, d9, [sp, #96]\n"
	"	stp d10, d11, [sp, #112]\n"
	"	stp d12, d13, [sp, #128]\n"
	"	stp d14, d15, [sp, #144]\n"
	"	mov x9, sp\n"
	"	str x9, [x0]\n"
	"	mov sp, x1\n"
	"	ldp x19, x20, [sp]\n"
	"	ldp x21, x22, [sp, #16]\n"
	"	ldp x23, x24, [sp, #32]\n"
	"	ldp x25, x26, [sp, #48]\n"
	"	ldp x27, x28, [sp, #64]\n"
	"	ldp x29, x30, [sp, #80]\n"
	"	ldp d8, d9, [sp, #96]\n"
	"	ldp d10, d11, [sp, #112]\n"
	"	ldp d12, d13, [sp, #128]\n"
	"	ldp d14, d15, [sp, #144]\n"
	"	add sp, sp, #160\n"
	"	ret\n"
	".size pawl_fiber_switch, . - pawl_fiber_switch\n");
#else
#error "fibers are written for x86-64 and AArch64"
#endif

static void
leave(enum state state)
{
	struct fiber *me = &fibers[pawl_fiber_place.thread];

	me->state = state;
	pawl_fiber_switch(&me->stack, scheduler_stack);
}

void
pawl_fiber_sync(void)
{
	leave(AT_BARRIER);
}

float
pawl_fiber_shuffle_xor(float x, int lanes)
{
	struct fiber *me = &fibers[pawl_fiber_place.thread];

	me->value = x;
	me->lanes = lanes;
	leave(AT_SHUFFLE);
	return me->value;
}

void
pawl_fiber_check_aligned(const void *address, uintptr_t bytes)
{
	is_misaligned = is_misaligned || (uintptr_t)address % bytes;
}

static void
start(void)
{
	current->kernel(current->args, current->state);
	leave(ENDED);
	abort();
}

/* A stack whose first switch "returns" into start. */
static void
prepare(int thread)
{
	void **top = (void **)(stacks + (size_t)(thread + 1) * STACK_BYTES);
	struct fiber *fiber = &fibers[thread];

#if defined(__x86_64__)
	/* As after a call: the stack pointer is 8 below a multiple of 16. */
	*--top = NULL;
	*--top = (void *)(uintptr_t)start;
	top -= SAVED_WORDS;
	memset(top, 0, SAVED_WORDS * sizeof(*top));
#else
	top -= SAVED_WORDS;
	memset(top, 0, SAVED_WORDS * sizeof(*top));
	top[11] = (void *)(uintptr_t)start; /* x30 */
#endif
	*fiber = (struct fiber){.stack = top, .state = READY};
}

static uint64_t
next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

/* 0 .. n - 1 in the order of the launch. */
static void
choose_order(int *order, int n)
{
	int i, j, kept;

	for (i = 0; i < n; i++)
		order[i] = current->order == PAWL_FIBER_DESCENDING ? n - 1 - i : i;
	if (current->order != PAWL_FIBER_RANDOM)
		return;
	for (i = n - 1; i > 0; i--) {
		j = (int)(next_random() % (uint64_t)(i + 1));
		kept = order[i];
		order[i] = order[j];
		order[j] = kept;
	}
}

static int
count(int first, int n, enum state state)
{
	int found = 0, i;

	for (i = first; i < first + n; i++)
		found += fibers[i].state == state;
	return found;
}

static void
exchange(int warp)
{
	float given[PAWL_FIBER_WARP];
	int i;

	for (i = 0; i < PAWL_FIBER_WARP; i++)
		given[i] = fibers[warp + i].value;
	for (i = 0; i < PAWL_FIBER_WARP; i++) {
		fibers[warp + i].value = given[i ^ fibers[warp + i].lanes];
		fibers[warp + i].state = READY;
	}
}

/* Runs a warp up to the next barrier, so that it gets ahead of others as far as it can. */
static void
run_warp(int first)
{
	int order[PAWL_FIBER_WARP], i;

	while (count(first, PAWL_FIBER_WARP, READY)) {
		choose_order(order, PAWL_FIBER_WARP);
		for (i = 0; i < PAWL_FIBER_WARP; i++) {
			struct fiber *fiber = &fibers[first + order[i]];

			if (fiber->state != READY)
				continue;
			pawl_fiber_place.thread = first + order[i];
			pawl_fiber_switch(&scheduler_stack, fiber->stack);
		}
		if (count(first, PAWL_FIBER_WARP, AT_SHUFFLE) == PAWL_FIBER_WARP)
			exchange(first);
	}
}

static enum pawl_status
run_block(int threads, struct pawl_error *err)
{
	int order[PAWL_FIBER_MOST / PAWL_FIBER_WARP], n_warps = threads / PAWL_FIBER_WARP, i;

	memset(__start_pawl_shared, POISON, (size_t)(__stop_pawl_shared - __start_pawl_shared));
	if (current->shared_begin)
		memset(current->shared_begin, POISON,
			(size_t)(current->shared_end - current->shared_begin));
	is_misaligned = false;
	for (i = 0; i < threads; i++)
		prepare(i);
	do {
		for (i = 0; i < threads; i++)
			fibers[i].state = READY;
		choose_order(order, n_warps);
		for (i = 0; i < n_warps; i++)
			run_warp(order[i] * PAWL_FIBER_WARP);
	} while (count(0, threads, AT_BARRIER) == threads);
	if (is_misaligned)
		return pawl_fail(err, PAWL_INTERNAL,
			"kernel %s, block %" PRId64 ": a load is misaligned", current->name,
			pawl_fiber_place.block);
	if (count(0, threads, ENDED) == threads)
		return PAWL_OK;
	return pawl_fail(err, PAWL_INTERNAL,
		"kernel %s, block %" PRId64
		": %d threads wait at a barrier, %d at a shuffle, %d have ended",
		current->name, pawl_fiber_place.block, count(0, threads, AT_BARRIER),
		count(0, threads, AT_SHUFFLE), count(0, threads, ENDED));
}

/* The n-th block to run: by a step that has no divisor in common with their number. */
static int64_t
choose_block(int64_t n)
{
	int64_t blocks = current->blocks, step = 7919, a, b, rest;

	if (current->order == PAWL_FIBER_ASCENDING)
		return n;
	if (current->order == PAWL_FIBER_DESCENDING)
		return blocks - 1 - n;
	for (;; step++) {
		for (a = step, b = blocks; b; a = b, b = rest)
			rest = a % b;
		if (a == 1)
			return n * step % blocks;
	}
}

enum pawl_status
pawl_fibers_run(const struct pawl_fiber_launch *launch, struct pawl_error *err)
{
	enum pawl_status status = PAWL_OK;
	int64_t block;

	if (!stacks) {
		stacks = mmap(NULL, (size_t)PAWL_FIBER_MOST * STACK_BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (stacks == MAP_FAILED) {
			stacks = NULL;
			return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for stacks");
		}
	}
	current = launch;
	random_state = 88172645463325252u;
	pawl_fiber_place =
		(struct pawl_fiber_place){.threads = launch->threads, .blocks = launch->blocks};
	for (block = 0; block < launch->blocks && !status; block++) {
		pawl_fiber_place.block = choose_block(block);
		status = run_block(launch->threads, err);
	}
	return status;
}
