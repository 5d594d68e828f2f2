/*
 * A random model file of family llama with everything that the tool needs of one: 2 layers of 256,
 * 4 heads over 2, 300 byte-level tokens, ChatML.  The same options give the same bytes.
 */
#ifndef PAWL_TESTS_TINY_GGUF_H
#define PAWL_TESTS_TINY_GGUF_H

#include "tests/gguf_build.h"

struct pawl_tiny_gguf_options {
	enum pawl_dtype dtype; /* of the matrices */
	bool no_template;      /* no tokenizer.chat_template */
	bool extra_tensor;     /* one that no llama has */
	bool infinite_logits;  /* the last norm has an infinite weight */
	bool other_token;      /* token 0 has another text */
	bool more_tokens;      /* one beyond PAWL_TINY_GGUF_VOCAB */
	uint64_t seed;
};

enum { PAWL_TINY_GGUF_VOCAB = 300, PAWL_TINY_GGUF_CTX = 256, PAWL_TINY_GGUF_EOS = 299 };

/* For pawl_gguf_build_finish() or pawl_gguf_build_write(). */
struct pawl_gguf_build *pawl_tiny_gguf(const struct pawl_tiny_gguf_options *options);

#endif
