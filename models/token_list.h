/* A growing list of token ids.  One thread at a time. */
#ifndef PAWL_MODELS_TOKEN_LIST_H
#define PAWL_MODELS_TOKEN_LIST_H

#include "ir/status.h"

#include <stddef.h>
#include <stdint.h>

struct pawl_token_list {
	uint32_t *ids; /* NULL while nothing was ever added */
	size_t n;
	size_t capacity;
};

void pawl_token_list_init(struct pawl_token_list *list);
void pawl_token_list_release(struct pawl_token_list *list);

/* OUT_OF_MEMORY leaves the list as it was. */
enum pawl_status pawl_token_list_add(
	struct pawl_token_list *list, uint32_t id, struct pawl_error *err);

#endif
