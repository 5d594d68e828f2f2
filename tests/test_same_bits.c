/* The comparisons of same_bits.h on a tiny model of each family; model_state.c has a real one. */
#include "tests/same_bits.h"

#include "tests/decoding.h"
#include "tests/suites.h"
#include "tests/tiny_mla.h"
#include "tests/tiny_model.h"

static struct pawl_device *device;
static struct pawl_tiny_model *llama;
static struct pawl_tiny_mla *mla;

static void
begin(const char *target, const struct pawl_model_source *source)
{
	struct pawl_error err;

	ck_assert_msg(!pawl_device_open(target, NULL, &device, &err), "%s", err.text);
	pawl_same_begin(source, device);
}

static void
end(void)
{
	pawl_same_end();
	pawl_device_unref(device);
}

static void
begin_llama(void)
{
	const struct pawl_tiny_options options = pawl_tiny_defaults();

	llama = pawl_tiny_model_new(&options);
	begin("ref", pawl_tiny_model_source(llama));
}

static void
end_llama(void)
{
	end();
	pawl_tiny_model_free(llama);
}

static void
begin_mla_by(const char *target)
{
	struct pawl_tiny_mla_options options = pawl_tiny_mla_defaults();

	options.has_pairs = true;
	mla = pawl_tiny_mla_new(&options);
	begin(target, pawl_tiny_mla_source(mla));
}

static void
begin_mla(void)
{
	begin_mla_by("ref");
}

#ifdef PAWL_HAVE_LLVM
static void
begin_mla_on_cpu(void)
{
	begin_mla_by("cpu");
}
#endif

static void
end_mla(void)
{
	end();
	pawl_tiny_mla_free(mla);
}

static void
expect_equal(void (*part)(void))
{
	part();
	ck_assert_int_eq(pawl_same_bits.n_failed, 0);
	ck_assert_int_gt(pawl_same_bits.n_passed, 1);
}

START_TEST(replanned_is_planned_once)
{
	expect_equal(pawl_same_replanned);
}
END_TEST

START_TEST(forked_is_fresh)
{
	expect_equal(pawl_same_forked);
}
END_TEST

START_TEST(restored_is_never_saved)
{
	expect_equal(pawl_same_restored);
}
END_TEST

START_TEST(guessed_is_plain)
{
	expect_equal(pawl_same_guessed);
}
END_TEST

START_TEST(a_ring_is_contiguous)
{
	expect_equal(pawl_same_ring);
}
END_TEST

START_TEST(paged_is_contiguous)
{
	expect_equal(pawl_same_paged);
}
END_TEST

START_TEST(paged_and_replanned_is_planned_once)
{
	expect_equal(pawl_same_paged_replanned);
}
END_TEST

START_TEST(a_batched_row_is_alone)
{
	expect_equal(pawl_same_batched);
}
END_TEST

START_TEST(a_ragged_batch_is_alone)
{
	expect_equal(pawl_same_ragged);
}
END_TEST

START_TEST(forked_in_pages_is_fresh)
{
	expect_equal(pawl_same_paged_forked);
}
END_TEST

START_TEST(evicted_and_restored_is_never_evicted)
{
	expect_equal(pawl_same_evicted);
}
END_TEST

START_TEST(guessed_in_pages_is_plain)
{
	expect_equal(pawl_same_paged_guessed);
}
END_TEST

START_TEST(a_thousand_tokens_in_one_plan_a_bucket)
{
	expect_equal(pawl_same_thousand_tokens);
}
END_TEST

START_TEST(taking_turns_rebuilds_nothing)
{
	expect_equal(pawl_same_turns);
}
END_TEST

static void
add_case(Suite *suite, const char *name, SFun setup, SFun teardown)
{
	TCase *tcase = tcase_create(name);

	/* Tests are processes of their own, which have the plans of the setup. */
	tcase_add_unchecked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, replanned_is_planned_once);
	tcase_add_test(tcase, forked_is_fresh);
	tcase_add_test(tcase, restored_is_never_saved);
	tcase_add_test(tcase, guessed_is_plain);
	tcase_add_test(tcase, a_ring_is_contiguous);
	tcase_add_test(tcase, paged_is_contiguous);
	tcase_add_test(tcase, paged_and_replanned_is_planned_once);
	tcase_add_test(tcase, a_batched_row_is_alone);
	tcase_add_test(tcase, a_ragged_batch_is_alone);
	tcase_add_test(tcase, forked_in_pages_is_fresh);
	tcase_add_test(tcase, evicted_and_restored_is_never_evicted);
	tcase_add_test(tcase, guessed_in_pages_is_plain);
	tcase_add_test(tcase, a_thousand_tokens_in_one_plan_a_bucket);
	tcase_add_test(tcase, taking_turns_rebuilds_nothing);
	suite_add_tcase(suite, tcase);
}

Suite *
pawl_same_bits_suite(void)
{
	Suite *suite = suite_create("same_bits");

	add_case(suite, "llama", begin_llama, end_llama);
	add_case(suite, "mla", begin_mla, end_mla);
#ifdef PAWL_HAVE_LLVM
	add_case(suite, "mla on cpu", begin_mla_on_cpu, end_mla);
#endif
	return suite;
}
