/*
 * The data slots of bindings, what they are offered for the next run and where it is copied.  All in one
 * array: a run of a model leaves nothing of the host's in the caches, so that each line counts.
 */
#ifndef PAWL_RUNTIME_OFFERS_H
#define PAWL_RUNTIME_OFFERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pawl_offer {
	const void *bytes; /* NULL: none */
	void *to;
	size_t n_bytes;
	int32_t slot;
	bool is_filled; /* it has had bytes */
};

struct pawl_offers {
	struct pawl_offer *list;
	int32_t n;
};

/* Of a data slot; NULL when it is none. */
static inline struct pawl_offer *
pawl_offers_find(const struct pawl_offers *offers, int32_t slot)
{
	for (int32_t i = 0; i < offers->n; i++) {
		if (offers->list[i].slot == slot)
			return &offers->list[i];
	}
	return NULL;
}

/* A slot that never had bytes and is offered none; NULL: there is none. */
static inline const struct pawl_offer *
pawl_offers_find_empty(const struct pawl_offers *offers)
{
	for (int32_t i = 0; i < offers->n; i++) {
		if (!offers->list[i].is_filled && !offers->list[i].bytes)
			return &offers->list[i];
	}
	return NULL;
}

/*
 * What was offered is forgotten, and copied in place before, where it is not there already, unless the
 * run is refused.  Returns the bytes that were offered to a run.
 */
uint64_t pawl_offers_take(struct pawl_offers *offers, bool is_refused);

#endif
