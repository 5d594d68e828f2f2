/* Hyperparameters of a model of family `llama`. */
#ifndef PAWL_MODELS_LLAMA_CONFIG_H
#define PAWL_MODELS_LLAMA_CONFIG_H

#include "models/model_config.h"

/* As struct pawl_model_family says; PAWL_UNSUPPORTED for experts. */
enum pawl_status pawl_llama_config_read(
	const struct pawl_gguf *gguf, struct pawl_model_config *out, struct pawl_error *err);

#endif
