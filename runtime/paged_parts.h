/* What the files of the paged decoder share. */
#ifndef PAWL_RUNTIME_PAGED_PARTS_H
#define PAWL_RUNTIME_PAGED_PARTS_H

#include "runtime/paged_decoder.h"

/* Bytes of the slots of a handle, in its order. */
struct pawl_evicted {
	struct pawl_kv_handle_id handle;
	int64_t n_bytes;
	void *bytes;
	struct pawl_evicted *next;
};

struct pawl_paged_decoder {
	struct pawl_model_source source;
	struct pawl_paged_options options;
	struct pawl_session_set sessions;
	struct pawl_kv_cache *cache;
	struct pawl_kv_block_pool *pool;
	struct pawl_evicted *evicted;
	struct pawl_token_row *rows; /* of a run: as many as the largest has */
};

/* Drops what was evicted under handles that are no more. */
void pawl_paged_forget_evicted(struct pawl_paged_decoder *decoder);

#endif
