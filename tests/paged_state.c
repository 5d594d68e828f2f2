#include "tests/paged_state.h"

#include <check.h>
#include <stdlib.h>

#include "runtime/kv_block_parts.h"
#include "runtime/kv_layout.h"
#include "runtime/paged_parts.h"
#include "runtime/shape_key.h"

/* n_seen[block]: positions of it that some owner has. */
static void
see(int64_t *n_seen, const int32_t *blocks, int64_t n_blocks, int64_t n_tokens, int64_t block_size)
{
	for (int64_t i = 0; i < n_blocks; i++) {
		int64_t n = n_tokens - i * block_size;

		n = n < block_size ? n : block_size;
		if (blocks[i] >= 0 && n_seen[blocks[i]] < n)
			n_seen[blocks[i]] = n;
	}
}

static void
mix_rows(const struct pawl_storage *storage, const int64_t *n_seen,
	const struct pawl_paged_options *o, struct pawl_shape_key *key)
{
	const struct pawl_kv_planes planes = pawl_kv_planes_of(&storage->type, 2);
	char *rows = malloc((size_t)pawl_kv_logical_bytes(&planes, planes.positions));

	ck_assert_ptr_nonnull(rows);
	pawl_kv_read_positions(&planes, storage->bytes, planes.positions, rows);
	for (int64_t plane = 0; plane < planes.n; plane++)
		for (int64_t b = 0; b < o->n_blocks; b++)
			pawl_shape_key_bytes(key,
				rows + (plane * planes.positions + b * o->block_size) *
						planes.row_bytes,
				(size_t)(n_seen[b] * planes.row_bytes));
	free(rows);
}

uint64_t
pawl_test_paged_state(struct pawl_paged_decoder *d)
{
	const struct pawl_kv_block_pool *pool = d->pool;
	int64_t size = d->options.block_size;
	int64_t *n_seen = calloc((size_t)d->options.n_blocks, sizeof(*n_seen));
	struct pawl_shape_key key = PAWL_SHAPE_KEY_INIT;

	ck_assert_ptr_nonnull(n_seen);
	pawl_shape_key_u64(&key, pawl_kv_block_pool_digest(pool));
	for (int64_t i = 0; i < pool->sessions.n; i++) {
		const struct pawl_kv_session *session = pool->sessions.items[i];

		see(n_seen, session->blocks, session->n_slots, session->n_tokens, size);
	}
	for (int64_t i = 0; i < pool->prefixes.n; i++) {
		const struct pawl_kv_prefix *prefix = pool->prefixes.items[i];

		see(n_seen, prefix->blocks, prefix->n_blocks, prefix->n_blocks * size, size);
	}
	for (int32_t i = 0; i < d->source.n_layers * PAWL_N_KV_SLOTS; i++) {
		const struct pawl_kv_layer_id id = {
			i / PAWL_N_KV_SLOTS, (enum pawl_kv_slot)(i % PAWL_N_KV_SLOTS)};

		mix_rows(pawl_kv_cache_storage(d->cache, id), n_seen, &d->options, &key);
	}
	for (const struct pawl_evicted *evicted = d->evicted; evicted; evicted = evicted->next) {
		pawl_shape_key_u64(&key, evicted->handle.value);
		pawl_shape_key_bytes(&key, evicted->bytes, (size_t)evicted->n_bytes);
	}
	free(n_seen);
	return key.value;
}
