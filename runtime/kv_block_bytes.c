#include "runtime/kv_block_bytes.h"

#include "codegen/target.h"
#include "codegen/tensor.h"
#include "ir/fpenv.h"
#include "ir/rowops.h"
#include "runtime/kv_layout.h"
#include "runtime/memory.h"

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

/* A block within a storage: the pieces of all planes, and where the first lies. */
static struct pawl_copy_pieces
pieces_of(const struct pawl_kv_planes *planes, int64_t block_size)
{
	const int64_t pitch = pawl_kv_piece_at(planes, 1, 0);

	return (struct pawl_copy_pieces){planes->n, block_size * planes->row_bytes, pitch, pitch};
}

enum pawl_status
pawl_kv_block_copy_bytes(struct pawl_kv_cache *cache, int64_t block_size, int64_t from, int64_t to,
	struct pawl_error *err)
{
	enum pawl_status status = PAWL_OK;

	for (int32_t i = 0; i < count_storages(cache) && !status; i++) {
		struct pawl_storage *storage = storage_of(cache, i);
		struct pawl_kv_planes planes = pawl_kv_planes_of(&storage->type, POSITION_AXIS);
		const struct pawl_copy_pieces pieces = pieces_of(&planes, block_size);

		status = pawl_storage_copy(storage, pawl_kv_piece_at(&planes, 0, to * block_size),
			storage, pawl_kv_piece_at(&planes, 0, from * block_size), &pieces, err);
	}
	return status;
}

/* A block of a storage out of it, one piece after the other. */
static enum pawl_status
read_block(const struct pawl_storage *storage, int64_t block_size, int64_t block, void *out,
	struct pawl_error *err)
{
	struct pawl_kv_planes planes = pawl_kv_planes_of(&storage->type, POSITION_AXIS);
	struct pawl_copy_pieces pieces = pieces_of(&planes, block_size);

	pieces.to_pitch = pieces.bytes;
	return pawl_storage_read(storage, pawl_kv_piece_at(&planes, 0, block * block_size), out,
		&pieces, err);
}

static enum pawl_status
write_block(struct pawl_storage *storage, int64_t block_size, int64_t block, const void *in,
	struct pawl_error *err)
{
	struct pawl_kv_planes planes = pawl_kv_planes_of(&storage->type, POSITION_AXIS);
	struct pawl_copy_pieces pieces = pieces_of(&planes, block_size);

	pieces.from_pitch = pieces.bytes;
	return pawl_storage_write(storage, pawl_kv_piece_at(&planes, 0, block * block_size), in,
		&pieces, err);
}

static int64_t
storage_block_bytes(const struct pawl_storage *storage, int64_t block_size)
{
	struct pawl_kv_planes planes = pawl_kv_planes_of(&storage->type, POSITION_AXIS);

	return pawl_kv_logical_bytes(&planes, block_size);
}

enum pawl_status
pawl_kv_block_read(const struct pawl_kv_cache *cache, int64_t block_size, int64_t block, void *out,
	struct pawl_error *err)
{
	enum pawl_status status = PAWL_OK;
	char *to = out;

	for (int32_t i = 0; i < count_storages(cache) && !status; i++) {
		status = read_block(storage_of(cache, i), block_size, block, to, err);
		to += storage_block_bytes(storage_of(cache, i), block_size);
	}
	return status;
}

enum pawl_status
pawl_kv_block_write(struct pawl_kv_cache *cache, int64_t block_size, int64_t block, const void *in,
	struct pawl_error *err)
{
	enum pawl_status status = PAWL_OK;
	const char *from = in;

	for (int32_t i = 0; i < count_storages(cache) && !status; i++) {
		status = write_block(storage_of(cache, i), block_size, block, from, err);
		from += storage_block_bytes(storage_of(cache, i), block_size);
	}
	return status;
}

/* bytes hold keys of that type on the host. */
static enum pawl_status
turn_keys(const struct pawl_type *type, void *bytes, int64_t first, int64_t n,
	const struct pawl_key_turn *turn, bool has_window, struct pawl_error *err)
{
	int64_t dims[PAWL_MAX_RANK], positions = type->dim[POSITION_AXIS].base, n_bytes;
	struct pawl_tensor keys;
	const float *cos = has_window ? turn->window_cos : turn->cos;
	const float *sin = has_window ? turn->window_sin : turn->sin;
	float x[PAWL_MAX_ROPE_WIDTH];
	enum pawl_status status;

	for (int i = 0; i < type->rank; i++)
		dims[i] = type->dim[i].base;
	status = pawl_tensor_init(
		&keys, type->dtype, type->layout, false, type->rank, dims, &n_bytes, err);
	if (status)
		return status;
	keys.data = bytes;
	for (int64_t head = 0; head < dims[1]; head++)
		for (int64_t p = first; p < first + n; p++) {
			pawl_tensor_load_f32(&keys, head * positions + p, 0, turn->width, x);
			pawl_rope_vector(turn->pairs == PAWL_PAIRS_ADJACENT, turn->width, cos, sin,
				x);
			pawl_tensor_store_f32(&keys, head * positions + p, 0, turn->width, x);
		}
	return PAWL_OK;
}

/* The keys of a device come to the host as a storage of one block, and go back. */
static enum pawl_status
turn_away(struct pawl_storage *storage, int64_t block_size, int64_t block,
	const struct pawl_key_turn *turn, bool has_window, struct pawl_error *err)
{
	struct pawl_type type = storage->type;
	struct pawl_block bytes;
	enum pawl_status status;

	type.dim[POSITION_AXIS] = pawl_dim_const(block_size);
	status = pawl_block_init(&bytes, storage_block_bytes(storage, block_size), err);
	if (status)
		return status;
	status = read_block(storage, block_size, block, bytes.bytes, err);
	if (!status)
		status = turn_keys(&type, bytes.bytes, 0, block_size, turn, has_window, err);
	if (!status)
		status = write_block(storage, block_size, block, bytes.bytes, err);
	pawl_block_release(&bytes);
	return status;
}

enum pawl_status
pawl_kv_block_shift(struct pawl_kv_cache *cache, int64_t block_size, int64_t from, int64_t to,
	const struct pawl_key_turn *turn, struct pawl_error *err)
{
	enum pawl_status status = pawl_kv_block_copy_bytes(cache, block_size, from, to, err);
	uint32_t saved = pawl_fpenv_enter();

	for (int32_t i = PAWL_KV_K; i < count_storages(cache) && !status; i += PAWL_N_KV_SLOTS) {
		struct pawl_storage *storage = storage_of(cache, i);
		bool has_window = turn->window_cos &&
			pawl_layer_set_has(turn->window_layers, i / PAWL_N_KV_SLOTS);

		status = storage->device
			? turn_away(storage, block_size, to, turn, has_window, err)
			: turn_keys(&storage->type, storage->bytes, to * block_size, block_size,
				turn, has_window, err);
	}
	pawl_fpenv_leave(saved);
	return status;
}
