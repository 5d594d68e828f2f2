/*
 * make-tiny-gguf FILE [DTYPE] [plain] [extra] [inf] [other] [more]: writes the model of tests/tiny_gguf.h; q8_0
 * unless told otherwise.  make-tiny-gguf FILE gemma: that of tests/tiny_gemma.h.
 */
#include "tests/tiny_gemma.h"
#include "tests/tiny_gguf.h"

#include <stdio.h>
#include <string.h>

int
main(int argc, char **argv)
{
	struct pawl_tiny_gguf_options options = {.dtype = PAWL_DTYPE_Q8_0, .seed = 1};
	const struct pawl_tiny_gemma_options gemma = {
		.dtype = PAWL_DTYPE_Q8_0, .window = 20, .chat = true, .seed = 1};
	bool ok = argc > 1;

	if (argc == 3 && !strcmp(argv[2], "gemma")) {
		pawl_gguf_build_write(pawl_tiny_gemma(&gemma), argv[1]);
		return 0;
	}
	for (int i = 2; i < argc; i++) {
		if (!strcmp(argv[i], "plain"))
			options.no_template = true;
		else if (!strcmp(argv[i], "extra"))
			options.extra_tensor = true;
		else if (!strcmp(argv[i], "inf"))
			options.infinite_logits = true;
		else if (!strcmp(argv[i], "other"))
			options.other_token = true;
		else if (!strcmp(argv[i], "more"))
			options.more_tokens = true;
		else
			ok &= pawl_dtype_from_name(argv[i], strlen(argv[i]), &options.dtype);
	}
	if (!ok) {
		fprintf(stderr, "usage: make-tiny-gguf FILE [DTYPE] [plain] [extra] [inf] "
				"[other] [more] | gemma\n");
		return 2;
	}
	pawl_gguf_build_write(pawl_tiny_gguf(&options), argv[1]);
	return 0;
}
