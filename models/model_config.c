#include "models/model_config.h"

#include <string.h>

#include "models/gemma_graph.h"
#include "models/llama_graph.h"

static const struct pawl_model_family families[] = {
	{"llama", pawl_llama_config_read, pawl_llama_graph},
	{"gemma3", pawl_gemma_config_read, pawl_gemma_graph},
};

enum pawl_status
pawl_model_family_find(
	const struct pawl_gguf *gguf, const struct pawl_model_family **out, struct pawl_error *err)
{
	struct pawl_gguf_string name;
	enum pawl_status status = pawl_gguf_need_string(gguf, "general.architecture", &name, err);

	if (status != PAWL_OK)
		return status;
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
		if (name.n == strlen(families[i].name) &&
			!memcmp(name.text, families[i].name, name.n)) {
			*out = &families[i];
			return PAWL_OK;
		}
	}
	return pawl_fail(err, PAWL_UNSUPPORTED,
		"%s: general.architecture: '%.*s' is no family known here (llama and gemma3 are)",
		gguf->name, (int)(name.n < 32 ? name.n : 32), name.text);
}

enum pawl_status
pawl_model_config_read(const struct pawl_gguf *gguf, const struct pawl_model_family **family,
	struct pawl_model_config *out, struct pawl_error *err)
{
	enum pawl_status status = pawl_model_family_find(gguf, family, err);

	return status == PAWL_OK ? (*family)->read(gguf, out, err) : status;
}
