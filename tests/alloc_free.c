/*
 * A rebind token allocates nothing: every allocating function of libc is counted from the moment
 * the sessions are built.  A program of its own, since it replaces malloc.
 */
#include "tests/decoding.h"

#include <check.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef PAWL_SANITIZERS

int
main(void)
{
	puts("skipped: a sanitizer has its own malloc");
	return 77;
}

#else

#define EXPORTED __attribute__((visibility("default")))

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t n);
void *__libc_memalign(size_t alignment, size_t n);
void __libc_free(void *memory);

static atomic_ulong n_allocations, n_frees;

EXPORTED void *
malloc(size_t n)
{
	atomic_fetch_add(&n_allocations, 1);
	return __libc_malloc(n);
}

EXPORTED void *
calloc(size_t count, size_t size)
{
	atomic_fetch_add(&n_allocations, 1);
	return __libc_calloc(count, size);
}

EXPORTED void *
realloc(void *old, size_t n)
{
	atomic_fetch_add(&n_allocations, 1);
	return __libc_realloc(old, n);
}

EXPORTED void *
aligned_alloc(size_t alignment, size_t n)
{
	atomic_fetch_add(&n_allocations, 1);
	return __libc_memalign(alignment, n);
}

EXPORTED int
posix_memalign(void **out, size_t alignment, size_t n)
{
	atomic_fetch_add(&n_allocations, 1);
	*out = __libc_memalign(alignment, n);
	return *out ? 0 : ENOMEM;
}

EXPORTED void
free(void *memory)
{
	if (memory)
		atomic_fetch_add(&n_frees, 1);
	__libc_free(memory);
}

static const char *const targets[] = {"ref", "cpu"};
static int n_targets_run;

/* Whether that target is built here; the reference always is.  One that is refused is a failure. */
static bool
has_target(const char *name)
{
	struct pawl_error err = {0};
	struct pawl_device *device;

	if (pawl_device_open(name, NULL, &device, &err)) {
		ck_assert_ptr_nonnull(strstr(err.text, ": no target_"));
		printf("skipped: target %s: %s\n", name, err.text);
		return false;
	}
	pawl_device_unref(device);
	return true;
}

START_TEST(rebind_tokens_allocate_nothing)
{
	struct pawl_tiny_options tiny = pawl_tiny_defaults();
	struct pawl_decoder_options options = pawl_test_decoder_options();
	struct pawl_tiny_model *model = pawl_tiny_model_new(&tiny);
	struct pawl_error err = {0};
	struct pawl_device *device;
	struct pawl_decoder *decoder;
	struct pawl_decoder_stats stats;
	uint32_t tokens[64];
	unsigned long before, between, after, freed, built;
	const float *logits;
	float sum = 0;

	ck_assert(_i > 0 || has_target(targets[_i]));
	if (_i > 0 && !has_target(targets[_i])) {
		pawl_tiny_model_free(model);
		return;
	}
	ck_assert_int_eq(pawl_device_open(targets[_i], NULL, &device, &err), PAWL_OK);
	options.n_threads = 2;
	before = atomic_load(&n_allocations);
	ck_assert_int_eq(
		pawl_decoder_new(pawl_tiny_model_source(model), device, &options, &decoder, &err),
		PAWL_OK);
	for (int i = 0; i < 64; i++)
		tokens[i] = pawl_test_token(1, i);
	ck_assert_int_eq(pawl_decoder_prefill(decoder, tokens, 20, &logits, &err), PAWL_OK);
	built = atomic_load(&n_allocations) - before;
	/* The hook works: a build allocates a lot. */
	ck_assert_uint_gt(built, 100);

	between = atomic_load(&n_allocations);
	freed = atomic_load(&n_frees);
	for (int i = 20; i < 40; i++) {
		if (pawl_decoder_step(decoder, tokens[i], &logits, &err))
			break;
		sum += logits[0];
	}
	/* A second prompt goes through sessions that exist as well. */
	pawl_decoder_truncate(decoder, 0);
	if (!pawl_decoder_prefill(decoder, tokens, 20, &logits, &err))
		sum += logits[0];
	after = atomic_load(&n_allocations);
	freed = atomic_load(&n_frees) - freed;
	ck_assert_uint_eq(after, between);
	ck_assert_uint_eq(freed, 0);
	ck_assert_int_eq(pawl_decoder_len(decoder), 20);
	ck_assert(sum == sum);
	pawl_decoder_stats(decoder, &stats);
	ck_assert_uint_eq(stats.counters.optimizes, 3);
	printf("%s: %lu allocations to build 3 plans, %lu for 40 tokens\n", targets[_i], built,
		after - between);
	n_targets_run++;
	pawl_decoder_free(decoder);
	pawl_device_unref(device);
	pawl_tiny_model_free(model);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("alloc_free");
	TCase *tcase = tcase_create("alloc_free");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_loop_test(
		tcase, rebind_tokens_allocate_nothing, 0, sizeof(targets) / sizeof(targets[0]));
	suite_add_tcase(suite, tcase);
	srunner_set_fork_status(runner, CK_NOFORK);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed || !n_targets_run ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
