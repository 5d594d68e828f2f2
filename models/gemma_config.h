/*
 * Hyperparameters of a model of family `gemma3` (text only).
 *
 * Of six layers five see a window and turn with base 10000 (files may say another,
 * gemma3.rope.freq_base_swa); the sixth sees everything and turns with gemma3.rope.freq_base, the
 * only one that a rope scaling is for.
 */
#ifndef PAWL_MODELS_GEMMA_CONFIG_H
#define PAWL_MODELS_GEMMA_CONFIG_H

#include "models/model_config.h"

/* As struct pawl_model_family says; PAWL_UNSUPPORTED for soft caps. */
enum pawl_status pawl_gemma_config_read(
	const struct pawl_gguf *gguf, struct pawl_model_config *out, struct pawl_error *err);

#endif
