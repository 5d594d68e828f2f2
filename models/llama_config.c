#include "models/llama_config.h"

#include "models/config_read.h"

enum pawl_status
pawl_llama_config_read(
	const struct pawl_gguf *gguf, struct pawl_model_config *out, struct pawl_error *err)
{
	struct pawl_model_config c;
	uint32_t n_experts;
	enum pawl_status status = pawl_config_read_shape(gguf, "llama", &c, err);

	if (status == PAWL_OK)
		status = pawl_gguf_get_u32(gguf, "llama.expert_count", 0, &n_experts, err);
	if (status == PAWL_OK && n_experts)
		return pawl_fail(err, PAWL_UNSUPPORTED,
			"%s: llama.expert_count: experts are not supported", gguf->name);
	if (status == PAWL_OK)
		status = pawl_config_check_tensors(gguf, &c, NULL, 0, err);
	if (status != PAWL_OK)
		return status;
	c.rope_pairs = PAWL_PAIRS_ADJACENT;
	*out = c;
	return PAWL_OK;
}
