#include "passes/pass.h"

#include <string.h>

static const struct pawl_pass_info infos[PAWL_N_PASSES] = {
#define REQUIRED true
#define OPTIONAL false
#define ROUNDS true
#define EXACT false
#define PAWL_PASS_ROW(id, name, kind, from, to, exactness, doc)                                    \
	[PAWL_PASS_##id] = {name, pawl_pass_##id, kind, exactness, PAWL_STAGE_##from,              \
		PAWL_STAGE_##to, doc},
#include "passes/passes.def"
#undef REQUIRED
#undef OPTIONAL
#undef ROUNDS
#undef EXACT
};

const struct pawl_pass_info *
pawl_pass_info(enum pawl_pass pass)
{
	return &infos[pass];
}

bool
pawl_pass_from_name(const char *name, size_t n, enum pawl_pass *out)
{
	int i;

	for (i = 0; i < PAWL_N_PASSES; i++) {
		if (strlen(infos[i].name) == n && !memcmp(infos[i].name, name, n)) {
			*out = (enum pawl_pass)i;
			return true;
		}
	}
	return false;
}
