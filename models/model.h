/*
 * A model file, ready to run: metadata, weights, tokenizer, and what the runtime needs of its family.
 * Immutable after loading and shareable; sessions belong to one thread each.
 */
#ifndef PAWL_MODELS_MODEL_H
#define PAWL_MODELS_MODEL_H

#include "models/gguf.h"
#include "models/tokenizer.h"
#include "runtime/model_source.h"

struct pawl_model_info {
	const char *family; /* general.architecture */
	int64_t n_layers, n_embd, n_heads, n_kv_heads, head_dim, n_vocab, n_ctx;
	bool has_head;      /* output.weight; otherwise the embedding is the head too */
	const char *rope;   /* how elements are paired: "halves", "adjacent pairs, frequency factors" */
};

struct pawl_model;

/*
 * PAWL_INVALID_FILE names file and field; PAWL_UNSUPPORTED a family, tensor type or tokenizer that
 * nothing here knows.
 */
enum pawl_status pawl_model_open(const char *path, struct pawl_model **out, struct pawl_error *err);
/* The same without the tokenizer, for a file that has none or another kind: tokens in, logits out. */
enum pawl_status pawl_model_open_bare(const char *path, struct pawl_model **out, struct pawl_error *err);
/* NULL is allowed.  Decoders made from the model must be gone. */
void pawl_model_free(struct pawl_model *model);

const struct pawl_gguf *pawl_model_gguf(const struct pawl_model *model);
/* NULL after pawl_model_open_bare. */
const struct pawl_tokenizer *pawl_model_tokenizer(const struct pawl_model *model);
const struct pawl_model_source *pawl_model_source(const struct pawl_model *model);
const struct pawl_model_info *pawl_model_info(const struct pawl_model *model);

#endif
