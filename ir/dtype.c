#include "ir/dtype.h"

#include "ir/each_token.h"

#include <string.h>

static const struct pawl_dtype_info infos[PAWL_N_DTYPES] = {
#define PAWL_DTYPE_ROW(id, name, block, bytes, ggml, kind)                                         \
	[PAWL_DTYPE_##id] = {name, block, bytes, ggml, PAWL_KIND_##kind},
#include "ir/dtypes.def"
};

_Static_assert(sizeof(struct pawl_block_a16) == 72, "the a16 row of dtypes.def");
_Static_assert(sizeof(struct pawl_block_a8) == 40, "the a8 row of dtypes.def");

PAWL_EACH_TOKEN const struct pawl_dtype_info *
pawl_dtype_info(enum pawl_dtype dtype)
{
	return &infos[dtype];
}

const char *
pawl_dtype_name(enum pawl_dtype dtype)
{
	return infos[dtype].name;
}

bool
pawl_dtype_from_name(const char *name, size_t n, enum pawl_dtype *out)
{
	int i;

	for (i = 0; i < PAWL_N_DTYPES; i++) {
		if (strlen(infos[i].name) == n && !memcmp(infos[i].name, name, n)) {
			*out = (enum pawl_dtype)i;
			return true;
		}
	}
	return false;
}

bool
pawl_dtype_from_ggml(uint32_t ggml_type, enum pawl_dtype *out)
{
	int i;

	for (i = 0; i < PAWL_N_DTYPES; i++) {
		if (infos[i].ggml_type >= 0 && (uint32_t)infos[i].ggml_type == ggml_type) {
			*out = (enum pawl_dtype)i;
			return true;
		}
	}
	return false;
}
