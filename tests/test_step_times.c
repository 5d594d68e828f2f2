/* Steps that are timed: which, how much, and that nothing else is different. */
#include "runtime/decoder.h"

#include "runtime/clock.h"
#include "tests/model_fixture.h"
#include "tests/skip.h"
#include "tests/suites.h"

#include <string.h>

enum { MAX_STEPS = 64, N_TIMED = 5 };

static struct pawl_error err;

#ifdef PAWL_HAVE_LLVM
START_TEST(every_step_takes_its_time)
{
	struct pawl_device *device;
	struct pawl_decoder *timed, *plain;
	const struct pawl_plan *plan;
	int64_t ns[MAX_STEPS] = {0}, kept[MAX_STEPS], sum = 0, all;
	const float *a, *b;

	options.n_threads = _i;
	ck_assert_int_eq(pawl_device_open("cpu", NULL, &device, &err), PAWL_OK);
	timed = pawl_test_decoder_on(device, model, &options);
	plain = pawl_test_decoder_on(device, model, &options);
	ck_assert_int_eq(pawl_decoder_prepare(timed, 1, PAWL_LOGITS_LAST, &plan, &err), PAWL_OK);
	ck_assert_int_lt(plan->program->n_steps, MAX_STEPS);
	ck_assert_int_eq(pawl_decoder_time_steps(timed, ns, &err), PAWL_OK);
	all = pawl_nanoseconds();
	for (int i = 0; i < N_TIMED; i++) {
		a = pawl_test_step(timed, 1, i);
		b = pawl_test_step(plain, 1, i);
		ck_assert(pawl_test_same(timed, a, b));
	}
	all = pawl_nanoseconds() - all;
	for (int i = 0; i < plan->program->n_steps; i++) {
		ck_assert_msg(ns[i] > 0, "step %d took no time", i);
		sum += ns[i];
	}
	ck_assert_int_le(sum, all);
	for (int i = plan->program->n_steps; i < MAX_STEPS; i++)
		ck_assert_int_eq(ns[i], 0);

	memcpy(kept, ns, sizeof(kept));
	pawl_test_prefill(timed, 1, N_TIMED, 9); /* chunks are not timed; its last token is */
	ck_assert_int_eq(pawl_decoder_time_steps(timed, NULL, &err), PAWL_OK);
	ck_assert_int_ne(memcmp(kept, ns, sizeof(kept)), 0);
	memcpy(kept, ns, sizeof(kept));
	pawl_test_step(timed, 1, N_TIMED + 9);
	ck_assert_int_eq(memcmp(kept, ns, sizeof(kept)), 0);
	pawl_decoder_free(timed);
	pawl_decoder_free(plain);
	pawl_device_unref(device);
}
END_TEST
#else
START_TEST(every_step_takes_its_time)
{
	pawl_skip("every_step_takes_its_time", "built without llvm");
}
END_TEST
#endif

START_TEST(a_target_that_does_not_says_so)
{
	struct pawl_decoder *decoder = pawl_test_decoder(model, &options);
	int64_t ns[MAX_STEPS] = {0};

	ck_assert_int_eq(pawl_decoder_time_steps(decoder, ns, &err), PAWL_UNSUPPORTED);
	ck_assert_str_eq(err.text, "target ref does not time its steps");
	pawl_test_step(decoder, 1, 0);
	for (int i = 0; i < MAX_STEPS; i++)
		ck_assert_int_eq(ns[i], 0);
	pawl_decoder_free(decoder);
}
END_TEST

Suite *
pawl_step_times_suite(void)
{
	Suite *suite = suite_create("step_times");
	TCase *tcase = tcase_create("step_times");

	tcase_add_checked_fixture(tcase, begin_model, end_model);
#ifdef PAWL_HAVE_LLVM
	tcase_add_loop_test(tcase, every_step_takes_its_time, 1, 3);
#else
	tcase_add_test(tcase, every_step_takes_its_time);
#endif
	tcase_add_test(tcase, a_target_that_does_not_says_so);
	suite_add_tcase(suite, tcase);
	return suite;
}
