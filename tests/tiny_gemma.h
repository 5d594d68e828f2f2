/*
 * A random model file of family gemma3 with everything that the tool needs of one: 7 layers of 64,
 * of which one has no window unless told otherwise, 4 heads over one, SentencePiece tokens.  The
 * same options give the same bytes.
 */
#ifndef PAWL_TESTS_TINY_GEMMA_H
#define PAWL_TESTS_TINY_GEMMA_H

#include "models/model.h"
#include "tests/gguf_build.h"

struct pawl_tiny_gemma_options {
	enum pawl_dtype dtype; /* of the matrices */
	uint32_t window;       /* 0: the file does not say one */
	const uint8_t *windows; /* for each layer whether it has the window; NULL: not said */
	bool chat; /* a chat template */
	uint64_t seed;
};

enum {
	PAWL_TINY_GEMMA_LAYERS = 7,
	PAWL_TINY_GEMMA_EMBD = 64,
	PAWL_TINY_GEMMA_HEADS = 4,
	PAWL_TINY_GEMMA_HEAD_DIM = 32,
	PAWL_TINY_GEMMA_FF = 96,
	PAWL_TINY_GEMMA_VOCAB = 304,
	PAWL_TINY_GEMMA_CTX = 1024,
};

/* For pawl_gguf_build_finish() or pawl_gguf_build_write(). */
struct pawl_gguf_build *pawl_tiny_gemma(const struct pawl_tiny_gemma_options *options);
/* Opened, the file being gone; the test fails when that does not work. */
struct pawl_model *pawl_tiny_gemma_open(const struct pawl_tiny_gemma_options *options);

#endif
