/*
 * Hyperparameters of a model of family `gemma3` (text only).
 *
 * With gemma3.attention.sliding_window above 0 some layers see only that many tokens and turn with
 * base 10000 (files may say another, gemma3.rope.freq_base_swa); the others see everything and turn
 * with gemma3.rope.freq_base, the only one that a rope scaling is for.  Which those are is said by
 * gemma3.attention.sliding_window_pattern, a bool for each layer (true: it has the window), or a
 * period of which the last layer has none (0: all have it; 6 where the key is missing).  Without a
 * window all layers see everything and turn alike, whatever those keys say.
 */
#ifndef PAWL_MODELS_GEMMA_CONFIG_H
#define PAWL_MODELS_GEMMA_CONFIG_H

#include "models/model_config.h"

/* As struct pawl_model_family says; PAWL_UNSUPPORTED for soft caps. */
enum pawl_status pawl_gemma_config_read(
	const struct pawl_gguf *gguf, struct pawl_model_config *out, struct pawl_error *err);

#endif
