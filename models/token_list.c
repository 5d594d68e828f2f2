#include "models/token_list.h"

#include <stdlib.h>

void
pawl_token_list_init(struct pawl_token_list *list)
{
	list->ids = NULL;
	list->n = 0;
	list->capacity = 0;
}

void
pawl_token_list_release(struct pawl_token_list *list)
{
	free(list->ids);
	pawl_token_list_init(list);
}

enum pawl_status
pawl_token_list_add(struct pawl_token_list *list, uint32_t id, struct pawl_error *err)
{
	if (list->n == list->capacity) {
		size_t capacity = list->capacity ? 2 * list->capacity : 64;
		uint32_t *ids = capacity > SIZE_MAX / sizeof(*ids)
				       ? NULL
				       : realloc(list->ids, capacity * sizeof(*ids));

		if (!ids)
			return pawl_fail(
				err, PAWL_OUT_OF_MEMORY, "no memory for %zu token ids", capacity);
		list->ids = ids;
		list->capacity = capacity;
	}
	list->ids[list->n++] = id;
	return PAWL_OK;
}
