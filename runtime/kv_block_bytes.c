#include "runtime/kv_block_bytes.h"

#include "codegen/tensor.h"
#include "ir/fpenv.h"
#include "ir/rowops.h"
#include "runtime/kv_layout.h"

#include <string.h>

enum { POSITION_AXIS = 2 };

static struct pawl_storage *
storage_of(const struct pawl_kv_cache *cache, int32_t i)
{
	struct pawl_kv_layer_id id = {
		i / PAWL_N_KV_SLOTS, (enum pawl_kv_slot)(i % PAWL_N_KV_SLOTS)};

	return pawl_kv_cache_storage(cache, id);
}

static int32_t
count_storages(const struct pawl_kv_cache *cache)
{
	return pawl_kv_cache_shape(cache)->n_layers * PAWL_N_KV_SLOTS;
}

int64_t
pawl_kv_block_bytes(const struct pawl_kv_cache *cache, int64_t block_size)
{
	int64_t bytes = 0;

	for (int32_t i = 0; i < count_storages(cache); i++) {
		struct pawl_kv_planes planes =
			pawl_kv_planes_of(&storage_of(cache, i)->type, POSITION_AXIS);

		bytes += pawl_kv_logical_bytes(&planes, block_size);
	}
	return bytes;
}

void
pawl_kv_block_copy_bytes(struct pawl_kv_cache *cache, int64_t block_size, int64_t from, int64_t to)
{
	for (int32_t i = 0; i < count_storages(cache); i++) {
		struct pawl_storage *storage = storage_of(cache, i);
		struct pawl_kv_planes planes = pawl_kv_planes_of(&storage->type, POSITION_AXIS);
		char *bytes = storage->bytes;

		for (int64_t p = 0; p < planes.n; p++)
			memcpy(bytes + pawl_kv_piece_at(&planes, p, to * block_size),
				bytes + pawl_kv_piece_at(&planes, p, from * block_size),
				(size_t)(block_size * planes.row_bytes));
	}
}

/* The pieces of a block one after the other, into or out of outside. */
static void
move_block(const struct pawl_kv_cache *cache, int64_t block_size, int64_t block, char *outside,
	bool is_read)
{
	for (int32_t i = 0; i < count_storages(cache); i++) {
		struct pawl_storage *storage = storage_of(cache, i);
		struct pawl_kv_planes planes = pawl_kv_planes_of(&storage->type, POSITION_AXIS);
		size_t n = (size_t)(block_size * planes.row_bytes);

		for (int64_t p = 0; p < planes.n; p++, outside += n) {
			char *inside = (char *)storage->bytes +
				       pawl_kv_piece_at(&planes, p, block * block_size);

			if (is_read)
				memcpy(outside, inside, n);
			else
				memcpy(inside, outside, n);
		}
	}
}

void
pawl_kv_block_read(
	const struct pawl_kv_cache *cache, int64_t block_size, int64_t block, void *out)
{
	move_block(cache, block_size, block, out, true);
}

void
pawl_kv_block_write(
	struct pawl_kv_cache *cache, int64_t block_size, int64_t block, const void *in)
{
	move_block(cache, block_size, block, (char *)(uintptr_t)in, false);
}

static void
turn_keys(const struct pawl_storage *storage, int64_t first, int64_t n,
	const struct pawl_key_turn *turn, bool has_window)
{
	const struct pawl_type *type = &storage->type;
	int64_t dims[PAWL_MAX_RANK], positions = type->dim[POSITION_AXIS].base, bytes;
	struct pawl_tensor keys;
	const float *cos = has_window ? turn->window_cos : turn->cos;
	const float *sin = has_window ? turn->window_sin : turn->sin;
	float x[PAWL_MAX_ROPE_WIDTH];

	for (int i = 0; i < type->rank; i++)
		dims[i] = type->dim[i].base;
	pawl_tensor_init(
		&keys, type->dtype, type->layout, false, type->rank, dims, &bytes, NULL);
	keys.data = storage->bytes;
	for (int64_t head = 0; head < dims[1]; head++)
		for (int64_t p = first; p < first + n; p++) {
			pawl_tensor_load_f32(&keys, head * positions + p, 0, turn->width, x);
			pawl_rope_vector(turn->pairs == PAWL_PAIRS_ADJACENT, turn->width, cos, sin,
				x);
			pawl_tensor_store_f32(&keys, head * positions + p, 0, turn->width, x);
		}
}

void
pawl_kv_block_shift(struct pawl_kv_cache *cache, int64_t block_size, int64_t from, int64_t to,
	const struct pawl_key_turn *turn)
{
	uint32_t saved;

	pawl_kv_block_copy_bytes(cache, block_size, from, to);
	saved = pawl_fpenv_enter();
	for (int32_t i = PAWL_KV_K; i < count_storages(cache); i += PAWL_N_KV_SLOTS)
		turn_keys(storage_of(cache, i), to * block_size, block_size, turn,
			turn->window_cos &&
				pawl_layer_set_has(turn->window_layers, i / PAWL_N_KV_SLOTS));
	pawl_fpenv_leave(saved);
}
