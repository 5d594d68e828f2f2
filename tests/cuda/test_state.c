/*
 * The comparisons of tests/same_bits.h on the mock: whatever keeps a model's state on the device,
 * and wherever it went meanwhile, gives the logits of a contiguous cache there, bit for bit.
 */
#include "models/model.h"
#include "tests/cuda/mock_use.h"
#include "tests/same_bits.h"
#include "tests/tiny_gemma.h"
#include "tests/tiny_mla.h"
#include "tests/tiny_model.h"

enum family { LLAMA, GEMMA, MLA };

static const struct part {
	enum family family;
	void (*compare)(void);
} parts[] = {
	{LLAMA, pawl_same_paged_forked},
	/* Those that follow are for make check-cuda. */
	{LLAMA, pawl_same_forked},
	{LLAMA, pawl_same_restored},
	{LLAMA, pawl_same_guessed},
	{LLAMA, pawl_same_ragged},
	{LLAMA, pawl_same_evicted},
	{GEMMA, pawl_same_ring},
	{GEMMA, pawl_same_restored},
	{GEMMA, pawl_same_ragged},
	{MLA, pawl_same_batched},
	{MLA, pawl_same_restored},
	{MLA, pawl_same_evicted},
};
enum { N_PARTS = sizeof(parts) / sizeof(*parts), N_SHORT = 1 };

static void
compare(const struct pawl_model_source *source, const struct part *part)
{
	struct pawl_device *device = pawl_mock_device();

	pawl_same_begin(source, device);
	part->compare();
	ck_assert_int_eq(pawl_same_bits.n_failed, 0);
	ck_assert_int_gt(pawl_same_bits.n_passed, 1);
	pawl_same_end();
	pawl_device_unref(device);
}

START_TEST(state_is_kept_bit_for_bit)
{
	const struct part *part = &parts[_i];
	const struct pawl_tiny_options llama_options = pawl_tiny_defaults();
	const struct pawl_tiny_gemma_options gemma_options = {
		.dtype = PAWL_DTYPE_F16, .window = 20, .seed = 5};
	const struct pawl_tiny_mla_options mla_options = pawl_tiny_mla_defaults();
	struct pawl_mock *mock = pawl_mock_use();
	struct pawl_tiny_model *llama;
	struct pawl_model *gemma;
	struct pawl_tiny_mla *mla;

	switch (part->family) {
	case LLAMA:
		llama = pawl_tiny_model_new(&llama_options);
		compare(pawl_tiny_model_source(llama), part);
		pawl_tiny_model_free(llama);
		break;
	case GEMMA:
		gemma = pawl_tiny_gemma_open(&gemma_options);
		compare(pawl_model_source(gemma), part);
		pawl_model_free(gemma);
		break;
	case MLA:
		mla = pawl_tiny_mla_new(&mla_options);
		compare(pawl_tiny_mla_pairs(mla), part);
		pawl_tiny_mla_free(mla);
		break;
	}
	pawl_mock_check_end(mock);
}
END_TEST

TCase *
pawl_cuda_state_tcase(void)
{
	TCase *tcase = tcase_create("state");

	tcase_add_loop_test(
		tcase, state_is_kept_bit_for_bit, 0, pawl_mock_is_long() ? N_PARTS : N_SHORT);
	tcase_set_timeout(tcase, 0);
	return tcase;
}
