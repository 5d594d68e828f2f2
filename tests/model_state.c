/*
 * The comparisons of tests/same_bits.h on a model file.
 *
 *	model-state MODEL TARGET
 */
#include "models/model.h"
#include "tests/same_bits.h"

#include <stdio.h>

int
main(int argc, char **argv)
{
	struct pawl_device *device;
	struct pawl_model *model;
	struct pawl_error err;

	if (argc != 3) {
		fprintf(stderr, "usage: model-state MODEL TARGET\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (pawl_model_open(argv[1], &model, &err) || pawl_device_open(argv[2], NULL, &device, &err)) {
		fprintf(stderr, "model-state: %s\n", err.text);
		return 1;
	}
	pawl_same_begin(pawl_model_source(model), device);
	pawl_same_bits.tells = true;
	pawl_same_replanned();
	pawl_same_forked();
	pawl_same_restored();
	pawl_same_guessed();
	pawl_same_ring();
	pawl_same_paged();
	pawl_same_paged_replanned();
	pawl_same_batched();
	pawl_same_ragged();
	pawl_same_paged_forked();
	pawl_same_evicted();
	pawl_same_paged_guessed();
	pawl_same_thousand_tokens();
	pawl_same_turns();
	pawl_same_end();
	pawl_device_unref(device);
	pawl_model_free(model);
	printf("%d passed, %d failed, 0 skipped\n", pawl_same_bits.n_passed, pawl_same_bits.n_failed);
	return pawl_same_bits.n_failed != 0;
}
