/* Kernels that several threads make at once. */
#include <check.h>
#include <pthread.h>

#include "passes/optimize.h"
#include "tests/cpu_subject.h"
#include "tests/skip.h"
#include "tests/suites.h"

#ifdef PAWL_HAVE_LLVM

enum { N_CALLERS = 4 };

static struct pawl_error err;

#define OK(call) ck_assert_msg((call) == PAWL_OK, "%s", err.text)

static const struct pawl_target_api *api;
static struct pawl_target *target;
static struct pawl_program *program;

static void *
compile(void *arg)
{
	struct pawl_error why;

	if (api->compile(target, program, arg, &why) != PAWL_OK)
		*(struct pawl_code **)arg = NULL;
	return NULL;
}

/* Kernels of a program that have the same key are one. */
static uint64_t
n_distinct(const struct pawl_code *code)
{
	uint64_t n = 0;

	for (int32_t i = 0; i < program->n_steps; i++) {
		int32_t j = 0;

		while (j < i && api->kernel_hash(code, j) != api->kernel_hash(code, i))
			j++;
		n += j == i;
	}
	return n;
}

START_TEST(each_kernel_is_made_once)
{
	static const struct pawl_optimize_options options = {.run = {.bisect = -1}};
	struct pawl_code *codes[N_CALLERS];
	struct pawl_target_counters counters;
	struct pawl_code_info first, other;
	pthread_t threads[N_CALLERS];
	struct pawl_cpu_subject s;
	int i;

	pawl_cpu_subject_begin(&s,
		"%x = const {role=data} : f32[1,64]\n%g = const {role=weight} : f32[64]\n"
		"%a = const {role=weight} : q4_0[64,64]\n%b = const {role=weight} : q8_0[96,64]\n"
		"%c = const {role=weight} : f16[32,64]\n%d = const {role=weight} : q4_0[64,64]\n"
		"%n = rms_norm %x, %g {eps=1e-5} : f32[1,64]\n%y = matmul %n, %a : f32[1,64]\n"
		"%m = rms_norm %y, %g {eps=1e-5} : f32[1,64]\n%z = matmul %m, %d : f32[1,64]\n"
		"%o = matmul %z, %b : f32[1,96]\n%p = softmax %o : f32[1,96]\n"
		"%q = matmul %y, %c : f32[1,32]\n%r = argmax %q : i32[1]\n"
		"output %p\noutput %q\noutput %r\n",
		0);
	OK(pawl_optimize(s.graph, &options, &program, NULL, &err));
	api = pawl_cpu_target();
	OK(api->open(NULL, &target, &err));
	for (i = 0; i < N_CALLERS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, compile, &codes[i]), 0);
	for (i = 0; i < N_CALLERS; i++)
		ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
	for (i = 0; i < N_CALLERS; i++) {
		ck_assert_ptr_nonnull(codes[i]);
		api->code_info(codes[0], &first);
		api->code_info(codes[i], &other);
		ck_assert_uint_eq(other.code_hash, first.code_hash);
		ck_assert_int_eq(other.code_bytes, first.code_bytes);
	}
	api->counters(target, &counters);
	ck_assert_uint_ge(n_distinct(codes[0]), 4);
	ck_assert_uint_lt(n_distinct(codes[0]), (uint64_t)program->n_steps);
	ck_assert_uint_eq(counters.kernel_compiles, n_distinct(codes[0]));
	for (i = 0; i < N_CALLERS; i++)
		api->code_free(codes[i]);
	api->close(target);
	pawl_program_free(program);
	pawl_cpu_subject_end(&s);
}
END_TEST

#else

START_TEST(each_kernel_is_made_once)
{
	pawl_skip("each_kernel_is_made_once", "built without llvm");
}
END_TEST

#endif

Suite *
pawl_cpu_make_suite(void)
{
	Suite *suite = suite_create("cpu_make");
	TCase *tcase = tcase_create("cpu_make");

	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(tcase, each_kernel_is_made_once, 0, 4);
	suite_add_tcase(suite, tcase);
	return suite;
}
