#include "runtime/offers.h"

#include "ir/each_token.h"

#include <string.h>

PAWL_EACH_TOKEN uint64_t
pawl_offers_take(struct pawl_offers *offers, bool is_refused)
{
	uint64_t n_bytes = 0;

	for (int32_t i = 0; i < offers->n; i++) {
		struct pawl_offer *offer = &offers->list[i];

		if (!is_refused && offer->bytes) {
			if (offer->bytes != offer->to)
				memcpy(offer->to, offer->bytes, offer->n_bytes);
			offer->is_filled = true;
			n_bytes += offer->n_bytes;
		}
		offer->bytes = NULL;
	}
	return n_bytes;
}
