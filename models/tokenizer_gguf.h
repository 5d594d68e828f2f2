/* Takes the vocabulary from a GGUF file. */
#ifndef PAWL_MODELS_TOKENIZER_GGUF_H
#define PAWL_MODELS_TOKENIZER_GGUF_H

#include "models/gguf.h"
#include "models/tokenizer.h"

/*
 * Errors name the file and the key.  The tokenizer does not need the reader afterwards.
 * Keys: tokenizer.ggml.model, .tokens, of model gpt2 .pre and .merges, of llama .scores: these must
 * be there; .token_type, .bos_token_id, .eos_token_id, .eot_token_id, .unknown_token_id,
 * .padding_token_id, .add_bos_token, .add_space_prefix.
 */
enum pawl_status pawl_tokenizer_from_gguf(
	const struct pawl_gguf *gguf, struct pawl_tokenizer **out, struct pawl_error *err);

/* tokenizer.chat_template, which points into the file; empty when there is none. */
enum pawl_status pawl_chat_template_from_gguf(
	const struct pawl_gguf *gguf, struct pawl_text *template, struct pawl_error *err);

#endif
