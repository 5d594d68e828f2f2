/*
 * Caches of latents: what the contiguous cache is asked in test_kv_cache.c, test_validity.c and
 * test_session.c, asked of this kind.
 */
#include "runtime/latent_kv_cache.h"

#include <stdio.h>
#include <string.h>

#include "ir/build.h"
#include "runtime/decode_session.h"
#include "runtime/inference_context.h"
#include "runtime/memory.h"
#include "tests/decoding.h"
#include "tests/suites.h"

enum { N_LAYERS = 2, WIDTH = 16, ROPE = 8, N_VOCAB = 40, CAPACITY = 48 };

static struct pawl_inference_context *context;
static struct pawl_latent_shape shape;
static struct pawl_error err;

#define OK(call) ck_assert_msg((call) == PAWL_OK, "%s", err.text)

static struct pawl_latent_kv_cache *
make(void)
{
	struct pawl_latent_kv_cache *cache;

	OK(pawl_latent_kv_cache_with_capacity(context, &shape, &cache, &err));
	return cache;
}

static void
begin(void)
{
	OK(pawl_inference_context_new(pawl_test_device(), 1, &context, &err));
	shape = (struct pawl_latent_shape){.n_layers = N_LAYERS,
		.n_slots = 2,
		.max_seq_len = CAPACITY,
		.dtype = PAWL_DTYPE_F16,
		.trailing = {{1, {WIDTH}}, {1, {ROPE}}}};
}

static void
end(void)
{
	pawl_inference_context_free(context);
}

/* The cache alone. */

START_TEST(one_realize_makes_all_slots)
{
	static const struct pawl_latent_trailing trailing[] = {
		{1, {5}}, {2, {3, 7}}, {4, {2, 1, 3, 2}}, {1, {1}}};
	const struct pawl_counters *counters = pawl_inference_context_counters(context);
	struct pawl_latent_kv_cache *cache;
	int64_t bytes = 0;

	shape.n_slots = 4;
	shape.n_layers = 3;
	shape.max_seq_len = 50;
	memcpy(shape.trailing, trailing, sizeof(trailing));
	cache = make();
	ck_assert_uint_eq(counters->optimizes, 1);
	ck_assert_uint_eq(counters->runs, 1);
	ck_assert_int_eq(pawl_latent_kv_cache_len(cache), 0);
	ck_assert(pawl_location_equal(pawl_latent_kv_cache_location(cache), PAWL_LOCATION_HOST));
	for (int32_t i = 0; i < 12; i++) {
		const struct pawl_latent_slot *slot =
			pawl_latent_kv_cache_slot(cache, i / 4, i % 4);
		const struct pawl_type type = pawl_latent_shape_type(&shape, i % 4);
		const struct pawl_storage *storage = slot->storage;

		ck_assert_int_eq(type.rank, 1 + trailing[i % 4].rank);
		ck_assert_int_eq(type.dim[0].base, 50);
		ck_assert_int_eq(type.dim[1].base, trailing[i % 4].dims[0]);
		ck_assert(pawl_type_equal(&storage->type, &type));
		for (int64_t b = 0; b < storage->n_bytes; b++)
			ck_assert_int_eq(((const char *)storage->bytes)[b], 0);
		ck_assert_uint_eq(slot->version, 0);
		ck_assert_int_eq(slot->authority.authority, PAWL_AUTHORITY_HOST);
		for (int32_t j = 0; j < i; j++)
			ck_assert(!pawl_storage_overlaps(storage,
				pawl_latent_kv_cache_storage(cache, j / 4, j % 4)));
		bytes += storage->n_bytes;
	}
	ck_assert_int_eq(pawl_latent_shape_bytes(&shape), bytes);
	ck_assert_int_eq(bytes, 3 * 50 * (5 + 21 + 12 + 1) * 2);
	pawl_latent_kv_cache_free(cache);
}
END_TEST

static const struct {
	const char *says;
	struct pawl_latent_shape shape;
} bad_shapes[] = {
	{"a latent cache of 0 layers and 8 positions has no content",
		{0, 1, 8, PAWL_DTYPE_F32, {{1, {4}}}}},
	{"a latent cache of -1 layers", {-1, 1, 8, PAWL_DTYPE_F32, {{1, {4}}}}},
	{"a latent cache of 1 layers and 0 positions", {1, 1, 0, PAWL_DTYPE_F32, {{1, {4}}}}},
	{"a latent cache of 1 layers and -9 positions", {1, 1, -9, PAWL_DTYPE_F32, {{1, {4}}}}},
	{"a latent cache of 0 slots; 1 to 4 are possible", {1, 0, 8, PAWL_DTYPE_F32, {{1, {4}}}}},
	{"a latent cache of 5 slots", {1, 5, 8, PAWL_DTYPE_F32, {{1, {4}}}}},
	{"slot 1 has 0 dims behind the position; 1 to 4 are possible",
		{1, 2, 8, PAWL_DTYPE_F32, {{1, {4}}, {0, {0}}}}},
	{"slot 0 has 5 dims", {1, 1, 8, PAWL_DTYPE_F32, {{5, {1, 1, 1, 1}}}}},
	{"slot 0 has 0 elements along dim 2", {1, 1, 8, PAWL_DTYPE_F32, {{2, {3, 0}}}}},
	{"a latent cache is f16, bf16 or f32, not i32", {1, 1, 8, PAWL_DTYPE_I32, {{1, {4}}}}},
	{"a latent cache of 9223372036854775807 positions is larger than memory can be",
		{1, 1, INT64_MAX, PAWL_DTYPE_F32, {{1, {4}}}}},
	{"a latent cache of 8 positions is larger",
		{1, 1, 8, PAWL_DTYPE_F32, {{2, {INT64_MAX, INT64_MAX}}}}},
	{"a latent cache of 8 positions is larger",
		{INT32_MAX, 4, 8, PAWL_DTYPE_F32, {{1, {4}}, {1, {4}}, {1, {4}}, {1, {4}}}}},
};

START_TEST(sizes_that_hold_nothing)
{
	struct pawl_latent_kv_cache *cache = NULL;

	ck_assert_int_eq(pawl_latent_kv_cache_with_capacity(
				 context, &bad_shapes[_i].shape, &cache, &err),
		PAWL_INVALID_ARGUMENT);
	ck_assert_msg(!strncmp(err.text, bad_shapes[_i].says, strlen(bad_shapes[_i].says)), "%s",
		err.text);
	ck_assert_ptr_null(cache);
	ck_assert_uint_eq(pawl_inference_context_counters(context)->runs, 0);
}
END_TEST

START_TEST(more_than_memory_holds)
{
	struct pawl_latent_kv_cache *cache = NULL;
	enum pawl_status status = PAWL_OUT_OF_MEMORY;
	int n = 0;

	shape.max_seq_len = (int64_t)1 << 36;
	ck_assert_int_eq(pawl_latent_kv_cache_with_capacity(context, &shape, &cache, &err),
		PAWL_OUT_OF_MEMORY);
	ck_assert_ptr_nonnull(strstr(
		err.text, "a latent cache of 6597069766656 bytes (2 layers, 68719476736 positions)"));
	shape.max_seq_len = (int64_t)1 << 37;
	ck_assert_int_eq(pawl_latent_kv_cache_with_capacity(context, &shape, &cache, &err),
		PAWL_INVALID_ARGUMENT);
	ck_assert_ptr_nonnull(strstr(err.text, "a latent cache of 137438953472 positions: "));
	shape.max_seq_len = CAPACITY;
	for (; status == PAWL_OUT_OF_MEMORY; n++) {
		ck_assert_ptr_null(cache);
		pawl_memory_fail_after(n);
		status = pawl_latent_kv_cache_with_capacity(context, &shape, &cache, &err);
		pawl_memory_fail_after(-1);
	}
	ck_assert_int_eq(status, PAWL_OK);
	ck_assert_int_gt(n, 10);
	pawl_latent_kv_cache_free(cache);
}
END_TEST

static uint64_t
version(const struct pawl_latent_kv_cache *cache, int32_t layer, int32_t slot)
{
	return pawl_latent_kv_cache_slot(cache, layer, slot)->version;
}

START_TEST(advance_and_versions)
{
	struct pawl_latent_kv_cache *cache = make();

	OK(pawl_latent_kv_cache_check_room(cache, CAPACITY, &err));
	ck_assert_int_eq(
		pawl_latent_kv_cache_check_room(cache, CAPACITY + 1, &err), PAWL_CAPACITY);
	pawl_latent_kv_cache_advance(cache, 40);
	ck_assert_int_eq(pawl_latent_kv_cache_len(cache), 40);
	OK(pawl_latent_kv_cache_check_room(cache, 8, &err));
	ck_assert_int_eq(pawl_latent_kv_cache_check_room(cache, 9, &err), PAWL_CAPACITY);
	ck_assert_str_eq(err.text, "9 more positions do not fit: 40 of 48 are in use");
	ck_assert_int_eq(pawl_latent_kv_cache_check_room(cache, INT64_MAX, &err), PAWL_CAPACITY);
	ck_assert_int_eq(pawl_latent_kv_cache_check_room(cache, -1, &err), PAWL_CAPACITY);
	/* One step a forward, not one a token. */
	for (int32_t i = 0; i < 4; i++)
		ck_assert_uint_eq(version(cache, i / 2, i % 2), 1);
	pawl_latent_kv_cache_bump(cache, 1, 0);
	ck_assert_uint_eq(version(cache, 1, 0), 2);
	ck_assert_uint_eq(version(cache, 1, 1), 1);
	pawl_latent_kv_cache_bump(cache, 2, 0);
	pawl_latent_kv_cache_bump(cache, -1, 0);
	pawl_latent_kv_cache_bump(cache, 0, 2);
	pawl_latent_kv_cache_bump(cache, 0, -1);
	ck_assert_ptr_null(pawl_latent_kv_cache_slot(cache, 2, 0));
	ck_assert_ptr_null(pawl_latent_kv_cache_slot(cache, 0, 2));
	ck_assert_ptr_null(pawl_latent_kv_cache_storage(cache, 0, -1));
	pawl_latent_kv_cache_free(cache);
}
END_TEST

START_TEST(truncate_keeps_storage_and_records_the_cut)
{
	struct pawl_latent_kv_cache *cache = make();
	struct pawl_storage *first = pawl_latent_kv_cache_storage(cache, 0, 0);
	uint64_t id = pawl_latent_kv_cache_alloc_id(cache).value;

	pawl_latent_kv_cache_advance(cache, 10);
	pawl_latent_kv_cache_truncate_to(cache, 10);
	pawl_latent_kv_cache_truncate_to(cache, 11);
	pawl_latent_kv_cache_truncate_to(cache, -1);
	ck_assert_int_eq(pawl_latent_kv_cache_len(cache), 10);
	ck_assert_uint_eq(version(cache, 0, 0), 1);
	pawl_latent_kv_cache_truncate_to(cache, 9);
	ck_assert_int_eq(pawl_latent_kv_cache_len(cache), 9);
	ck_assert_uint_eq(version(cache, 0, 0), 2);
	ck_assert_uint_eq(pawl_latent_kv_cache_alloc_id(cache).value, id);
	ck_assert_ptr_eq(pawl_latent_kv_cache_storage(cache, 0, 0), first);
	pawl_latent_kv_cache_free(cache);
}
END_TEST

START_TEST(clear_gives_up_capacity_too)
{
	struct pawl_latent_kv_cache *cache = make(), *other = make();
	uint64_t id = pawl_latent_kv_cache_alloc_id(other).value;

	ck_assert_uint_gt(id, pawl_latent_kv_cache_alloc_id(cache).value);
	pawl_latent_kv_cache_advance(cache, 10);
	pawl_latent_kv_cache_clear(cache);
	ck_assert_int_eq(pawl_latent_kv_cache_len(cache), 0);
	ck_assert_int_eq(pawl_latent_kv_cache_shape(cache)->max_seq_len, 0);
	ck_assert_int_eq(pawl_latent_shape_bytes(pawl_latent_kv_cache_shape(cache)), -1);
	ck_assert_int_eq(pawl_latent_kv_cache_check_room(cache, 1, &err), PAWL_CAPACITY);
	ck_assert_uint_gt(pawl_latent_kv_cache_alloc_id(cache).value, id);
	/* Geometry and location stay, as is not so for the other kind. */
	ck_assert_int_eq(pawl_latent_kv_cache_shape(cache)->n_slots, 2);
	ck_assert_int_eq(pawl_latent_kv_cache_shape(cache)->trailing[1].dims[0], ROPE);
	ck_assert(pawl_location_equal(pawl_latent_kv_cache_location(cache), PAWL_LOCATION_HOST));
	ck_assert_ptr_null(pawl_latent_kv_cache_storage(cache, 0, 0));
	pawl_latent_kv_cache_bump(cache, 0, 0);
	ck_assert_uint_eq(version(cache, 0, 0), 0);
	pawl_latent_kv_cache_free(cache);
	pawl_latent_kv_cache_free(other);
}
END_TEST

/* A model over it: each layer writes x and half of it, and adds what it sees of both. */

static float embedding[N_VOCAB][WIDTH];
static struct pawl_weights *weights;
static struct pawl_plan *plan;
static struct pawl_symenv env;
static struct pawl_latent_kv_cache *first, *second;
static struct pawl_decode_session *session;

static enum pawl_status
find_weight(void *ctx, const char *name, struct pawl_weight *out, struct pawl_error *e)
{
	(void)ctx;
	(void)name;
	(void)e;
	*out = (struct pawl_weight){
		embedding, sizeof(embedding), PAWL_DTYPE_F32, 2, {N_VOCAB, WIDTH}};
	return PAWL_OK;
}

static struct pawl_node *
attend(struct pawl_graph *g, struct pawl_node *cache, struct pawl_node *x, int64_t width,
	struct pawl_node *offset)
{
	const int64_t as_cache[] = {1, 1, CAPACITY, width}, as_heads[] = {1, 1, width},
		      as_row[] = {1, width};
	struct pawl_attrs attrs = pawl_attrs_default();
	struct pawl_node *k, *in[4];

	cache = pawl_build_write_slice(
		g, cache, pawl_build_cast(g, x, PAWL_DTYPE_F16), NULL, 0, offset);
	pawl_graph_add_output(g, cache);
	k = pawl_build_reshape(g, cache, 4, as_cache);
	in[0] = pawl_build_reshape(g, x, 3, as_heads);
	in[1] = in[2] = k;
	in[3] = offset;
	attrs.scale = 0.25;
	attrs.sym = 0;
	return pawl_build_reshape(
		g, pawl_build(g, PAWL_OP_ATTENTION, NULL, in, 4, &attrs, NULL), 2, as_row);
}

static struct pawl_graph *
latent_graph(void)
{
	struct pawl_graph *g = pawl_graph_new("latent");
	const struct pawl_type scalar = pawl_type_make(PAWL_DTYPE_I64, 0, NULL);
	const struct pawl_type ids = pawl_type_make(PAWL_DTYPE_U32, 1, (const int64_t[]){1});
	const struct pawl_type table =
		pawl_type_make(PAWL_DTYPE_F32, 2, (const int64_t[]){N_VOCAB, WIDTH});
	static const int64_t start[] = {0, 0}, stop[] = {1, ROPE};
	struct pawl_attrs join = pawl_attrs_default();
	struct pawl_node *token, *offset, *x, *outs[N_LAYERS];

	join.axis = 1;
	pawl_graph_add_symbol(g, "attended_len", 1, CAPACITY, 1);
	token = pawl_build_const(g, PAWL_ROLE_DATA, "token_ids", &ids);
	offset = pawl_build_const(g, PAWL_ROLE_DATA, "offset", &scalar);
	x = pawl_build_gather(g, pawl_build_const(g, PAWL_ROLE_WEIGHT, "embedding", &table), token);
	for (int i = 0; i < N_LAYERS; i++) {
		struct pawl_node *slots[2], *halves[2];

		for (int slot = 0; slot < 2; slot++) {
			const struct pawl_type type = pawl_latent_shape_type(&shape, slot);
			char name[32];

			snprintf(name, sizeof(name), "cache.%d.%d", slot, i);
			slots[slot] = pawl_build_const(g, PAWL_ROLE_KV, name, &type);
		}
		halves[0] = halves[1] = attend(
			g, slots[1], pawl_build_slice(g, x, start, stop), ROPE, offset);
		x = pawl_build_binary(g, PAWL_OP_ADD, x, attend(g, slots[0], x, WIDTH, offset));
		x = pawl_build_binary(g, PAWL_OP_ADD, x,
			pawl_build(g, PAWL_OP_CONCAT, NULL, halves, 2, &join, NULL));
		outs[i] = x;
	}
	pawl_graph_add_output(g, outs[N_LAYERS - 1]);
	ck_assert_msg(!g->error.status, "%s", g->error.text);
	return g;
}

static struct pawl_plan_key
latent_key(void)
{
	return (struct pawl_plan_key){.seq = 1,
		.max_seq_len = CAPACITY,
		.n_layers = N_LAYERS,
		.cache_dtype = PAWL_DTYPE_F16,
		.device = pawl_test_device()->id};
}

static struct pawl_decode_session *
session_on(struct pawl_latent_kv_cache *cache)
{
	struct pawl_decode_session *made;

	OK(pawl_decode_session_new_latent(
		plan, weights, cache, pawl_inference_context_team(context), &made, &err));
	return made;
}

static void
begin_model(void)
{
	static const struct pawl_weight_source source = {NULL, find_weight, NULL};
	const struct pawl_plan_options plan_options = {.key = latent_key()};
	struct pawl_graph *graph;

	begin();
	for (int i = 0; i < N_VOCAB * WIDTH; i++)
		embedding[i / WIDTH][i % WIDTH] = (float)((i * 37 + 11) % 101 - 50) / 64.0f;
	graph = latent_graph();
	OK(pawl_weights_new(&source, &weights, &err));
	OK(pawl_plan_build(graph, pawl_test_device(), &plan_options, &plan, &err));
	pawl_graph_free(graph);
	OK(pawl_symenv_init(&env, plan->program->symbols, plan->program->n_symbols, &err));
	first = make();
	second = make();
	session = session_on(first);
}

static void
end_model(void)
{
	pawl_decode_session_free(session);
	pawl_latent_kv_cache_free(first);
	pawl_latent_kv_cache_free(second);
	pawl_symenv_release(&env);
	pawl_plan_unref(plan);
	pawl_weights_unref(weights);
	end();
}

/* One token of a sequence through a session; its output. */
static const float *
step(struct pawl_decode_session *s, struct pawl_latent_kv_cache *cache, unsigned seed)
{
	const int64_t offset = pawl_latent_kv_cache_len(cache);
	const uint32_t token = pawl_test_token(seed, offset);
	const struct pawl_token_data data = {.token_ids = &token, .offset = &offset};

	pawl_symenv_clear(&env);
	OK(pawl_symenv_bind(&env, 0, offset + 1, &err));
	OK(pawl_decode_session_realize(
		s, &data, &env, pawl_inference_context_counters(context), &err));
	pawl_latent_kv_cache_advance(cache, 1);
	return pawl_decode_session_output(s, 2 * N_LAYERS, NULL);
}

/* The output of a fresh session on a fresh cache after n tokens. */
static void
fresh(unsigned seed, int n, float *out)
{
	struct pawl_latent_kv_cache *cache = make();
	struct pawl_decode_session *s = session_on(cache);
	const float *row = NULL;

	for (int i = 0; i < n; i++)
		row = step(s, cache, seed);
	memcpy(out, row, WIDTH * sizeof(float));
	pawl_decode_session_free(s);
	pawl_latent_kv_cache_free(cache);
}

static enum pawl_disposition_kind
refresh(struct pawl_latent_kv_cache *cache, struct pawl_disposition *what)
{
	const struct pawl_kv_rebind_source source = pawl_latent_kv_cache_source(cache);
	const struct pawl_plan_key key = latent_key();

	pawl_decode_session_refresh(&session, &key, &source, (struct pawl_invalidate){NULL, NULL},
		pawl_inference_context_counters(context), what);
	return what->kind;
}

START_TEST(a_swapped_cache_serves_its_own_content)
{
	struct pawl_counters *counters = pawl_inference_context_counters(context);
	uint64_t optimizes = counters->optimizes;
	struct pawl_disposition what;
	float one[WIDTH], two[WIDTH];
	const float *row;

	fresh(1, 14, one);
	fresh(2, 14, two);
	ck_assert(memcmp(one, two, sizeof(one)));
	for (int i = 0; i < 13; i++)
		step(session, first, 1);
	ck_assert_int_eq(refresh(second, &what), PAWL_SESSION_REBOUND);
	for (int i = 0; i < 13; i++)
		step(session, second, 2);
	row = step(session, second, 2);
	ck_assert(!memcmp(row, two, sizeof(two)));
	/* Back, as if nothing had been. */
	ck_assert_int_eq(refresh(first, &what), PAWL_SESSION_REBOUND);
	ck_assert(!memcmp(step(session, first, 1), one, sizeof(one)));
	ck_assert_int_eq(refresh(first, &what), PAWL_SESSION_KEPT);
	ck_assert_uint_eq(counters->rebinds, 2);
	ck_assert_uint_eq(counters->optimizes, optimizes + 2); /* of the caches of fresh */
}
END_TEST

/* Negative control: what would come out of a session that was not rebound. */
START_TEST(a_stale_session_is_told_apart)
{
	float two[WIDTH];

	fresh(2, 14, two);
	for (int i = 0; i < 13; i++)
		step(session, first, 1);
	for (int i = 0; i < 13; i++)
		pawl_latent_kv_cache_advance(second, 1);
	/* The second cache's length, the first one's content. */
	ck_assert(memcmp(step(session, second, 2), two, sizeof(two)));
}
END_TEST

START_TEST(a_freed_cache_that_comes_back_at_its_address)
{
	struct pawl_disposition what;
	float two[WIDTH];

	fresh(2, 14, two);
	for (int i = 0; i < 4; i++) {
		pawl_latent_kv_cache_free(second);
		second = make();
		ck_assert_int_eq(refresh(second, &what), PAWL_SESSION_REBOUND);
		for (int j = 0; j < 13; j++)
			step(session, second, i == 3 ? 2 : 1);
	}
	ck_assert(!memcmp(step(session, second, 2), two, sizeof(two)));
}
END_TEST

START_TEST(rollback_equals_straight)
{
	float wanted[WIDTH];

	fresh(1, 14, wanted);
	for (int i = 0; i < 10; i++)
		step(session, first, 1);
	for (int i = 0; i < 6; i++)
		step(session, first, 7);
	pawl_latent_kv_cache_truncate_to(first, 10);
	for (int i = 0; i < 3; i++)
		step(session, first, 1);
	ck_assert(!memcmp(step(session, first, 1), wanted, sizeof(wanted)));
}
END_TEST

START_TEST(capacity_is_checked)
{
	int64_t offset = CAPACITY;
	const uint32_t token = 3;
	const struct pawl_token_data data = {.token_ids = &token, .offset = &offset};

	for (int i = 0; i < CAPACITY; i++)
		step(session, first, 1);
	ck_assert_int_eq(pawl_latent_kv_cache_check_room(first, 1, &err), PAWL_CAPACITY);
	ck_assert_int_eq(pawl_decode_session_realize(session, &data, &env,
				 pawl_inference_context_counters(context), &err),
		PAWL_CAPACITY);
	offset = -1;
	ck_assert_int_eq(pawl_decode_session_realize(session, &data, &env,
				 pawl_inference_context_counters(context), &err),
		PAWL_INVALID_ARGUMENT);
}
END_TEST

START_TEST(a_cleared_cache_is_refused)
{
	struct pawl_disposition what;
	struct pawl_decode_session *none = NULL;

	pawl_latent_kv_cache_clear(second);
	ck_assert_int_eq(refresh(second, &what), PAWL_SESSION_DROPPED);
	ck_assert_int_eq(what.refusal.kind, PAWL_REFUSAL_MISSING_SLOT);
	ck_assert_ptr_null(session);
	ck_assert_int_eq(pawl_decode_session_new_latent(plan, weights, second,
				 pawl_inference_context_team(context), &none, &err),
		PAWL_INVALID_ARGUMENT);
	ck_assert_str_eq(err.text, "a decode session needs a cache with capacity");
	ck_assert_ptr_null(none);
}
END_TEST

START_TEST(sessions_refuse_caches_of_another_geometry)
{
	static const char *const says[] = {
		"the plan is for a cache of 2 layers, 48 positions, this one has 3, 48",
		"the plan is for a cache of 2 layers, 48 positions, this one has 2, 64",
		"kv const cache.1.0 is not cache.0.<layer> to cache.0.<layer> of 2 layers",
		"the graph has no kv const cache.2.0",
		"cache.0.0: the plan wants f16",
		"cache.1.0: the plan wants f16",
	};
	struct pawl_decode_session *none = NULL;
	struct pawl_latent_kv_cache *cache;
	enum pawl_status status;

	shape.n_layers = _i == 0 ? 3 : N_LAYERS;
	shape.max_seq_len = _i == 1 ? 64 : CAPACITY;
	shape.n_slots = _i == 2 ? 1 : _i == 3 ? 3 : 2;
	shape.trailing[2] = shape.trailing[1];
	if (_i == 4)
		shape.dtype = PAWL_DTYPE_F32;
	if (_i == 5)
		shape.trailing[1] = (struct pawl_latent_trailing){2, {4, 2}};
	cache = make();
	status = pawl_decode_session_new_latent(
		plan, weights, cache, pawl_inference_context_team(context), &none, &err);
	ck_assert_int_eq(status, _i == 2 || _i == 3 ? PAWL_INVALID_GRAPH : PAWL_INVALID_ARGUMENT);
	ck_assert_msg(!strncmp(err.text, says[_i], strlen(says[_i])), "%s", err.text);
	ck_assert_ptr_null(none);
	pawl_latent_kv_cache_free(cache);
}
END_TEST

/* Rebinding, with a source whose every answer can be replaced. */

static struct {
	struct pawl_location location;
	struct pawl_storage *storages[2 * N_LAYERS];
} answers;

static struct pawl_kv_alloc_id
answer_alloc_id(void *ctx)
{
	(void)ctx;
	return (struct pawl_kv_alloc_id){77};
}

static struct pawl_location
answer_location(void *ctx)
{
	(void)ctx;
	return answers.location;
}

static struct pawl_storage *
answer_slot(void *ctx, int32_t layer, int which)
{
	(void)ctx;
	return answers.storages[2 * layer + which];
}

static struct pawl_storage *
storage_of(enum pawl_dtype dtype, int rank, const int64_t *dims)
{
	const struct pawl_type type = pawl_type_make(dtype, rank, dims);
	struct pawl_storage *storage;

	OK(pawl_storage_new(&type, &storage, &err));
	return storage;
}

/* What differs at slot 1 of layer 1, or about the source. */
static const struct {
	const char *what;
	enum pawl_refusal_kind kind;
} refusals[] = {
	{"unknown", PAWL_REFUSAL_RESIDENCY_UNKNOWN},
	{"elsewhere", PAWL_REFUSAL_RESIDENCY_DIFFERS},
	{"missing", PAWL_REFUSAL_MISSING_SLOT},
	{"dtype", PAWL_REFUSAL_STORAGE_DIFFERS},
	{"longer", PAWL_REFUSAL_STORAGE_DIFFERS},
	{"shape", PAWL_REFUSAL_SHAPE_DIFFERS},
	{"rank", PAWL_REFUSAL_SHAPE_DIFFERS},
	{"aliased", PAWL_REFUSAL_ALIASED},
	{"one storage elsewhere", PAWL_REFUSAL_RESIDENCY_DIFFERS},
};

START_TEST(refusals_change_nothing)
{
	static const struct pawl_kv_rebind_source source = {
		NULL, answer_alloc_id, answer_location, answer_slot, NULL, NULL};
	const char *what = refusals[_i].what;
	struct pawl_storage *other = NULL, *before[4];
	struct pawl_bindings *bindings = pawl_decode_session_bindings(session);
	struct pawl_refusal refusal;
	float wanted[WIDTH];

	fresh(1, 2, wanted);
	step(session, first, 1);
	answers.location = PAWL_LOCATION_HOST;
	for (int i = 0; i < 4; i++) {
		char name[16];

		answers.storages[i] = pawl_latent_kv_cache_storage(second, i / 2, i % 2);
		snprintf(name, sizeof(name), "cache.%d.%d", i % 2, i / 2);
		before[i] = pawl_bindings_storage(
			bindings, pawl_plan_find_slot(plan, PAWL_SLOT_KV, name));
		ck_assert_ptr_eq(before[i], pawl_latent_kv_cache_storage(first, i / 2, i % 2));
	}
	if (!strcmp(what, "unknown"))
		answers.location = PAWL_LOCATION_UNKNOWN;
	else if (!strcmp(what, "elsewhere"))
		answers.location = (struct pawl_location){PAWL_MEMORY_CUDA, 0};
	else if (!strcmp(what, "dtype"))
		other = storage_of(PAWL_DTYPE_BF16, 2, (const int64_t[]){CAPACITY, ROPE});
	else if (!strcmp(what, "longer"))
		other = storage_of(PAWL_DTYPE_F16, 2, (const int64_t[]){CAPACITY * 2, ROPE});
	else if (!strcmp(what, "shape"))
		other = storage_of(PAWL_DTYPE_F16, 2, (const int64_t[]){ROPE, CAPACITY});
	else if (!strcmp(what, "rank"))
		other = storage_of(PAWL_DTYPE_F16, 3, (const int64_t[]){CAPACITY, 4, 2});
	else if (!strcmp(what, "aliased"))
		other = pawl_storage_ref(answers.storages[1]);
	else if (!strcmp(what, "one storage elsewhere"))
		OK(pawl_storage_wrap(&answers.storages[3]->type,
			(struct pawl_location){PAWL_MEMORY_CUDA, 0}, answers.storages[3]->bytes,
			answers.storages[3]->n_bytes, NULL, NULL, &other, &err));
	if (other || !strcmp(what, "missing"))
		answers.storages[3] = other;
	ck_assert(!pawl_decode_session_rebind(session, &source, &refusal));
	ck_assert_str_eq(
		pawl_refusal_name(refusal.kind), pawl_refusal_name(refusals[_i].kind));
	if (refusal.layer >= 0) {
		ck_assert_int_eq(refusal.layer, 1);
		ck_assert_int_eq(refusal.which, 1);
	}
	ck_assert_uint_eq(pawl_decode_session_alloc_id(session).value,
		pawl_latent_kv_cache_alloc_id(first).value);
	for (int i = 0; i < 4; i++) {
		char name[16];

		snprintf(name, sizeof(name), "cache.%d.%d", i % 2, i / 2);
		ck_assert_ptr_eq(pawl_bindings_storage(bindings,
					 pawl_plan_find_slot(plan, PAWL_SLOT_KV, name)),
			before[i]);
	}
	ck_assert(!memcmp(step(session, first, 1), wanted, sizeof(wanted)));
	/* And without what differs it goes. */
	answers.location = PAWL_LOCATION_HOST;
	answers.storages[3] = pawl_latent_kv_cache_storage(second, 1, 1);
	ck_assert(pawl_decode_session_rebind(session, &source, &refusal));
	ck_assert_uint_eq(pawl_decode_session_alloc_id(session).value, 77);
	pawl_storage_unref(other);
}
END_TEST

/* A graph of the other kind, and a slot twice. */
START_TEST(names_of_the_other_kind_are_refused)
{
	struct pawl_kv_cache *cache;
	const struct pawl_kv_shape other = {.n_layers = N_LAYERS,
		.n_kv_heads = 1,
		.head_dim = WIDTH,
		.max_seq_len = CAPACITY,
		.dtype = PAWL_DTYPE_F16,
		.layout = {PAWL_LAYOUT_ROWS, PAWL_LAYOUT_ROWS}};
	struct pawl_decode_session *none = NULL;

	plan->key.n_kv_heads = 1;
	plan->key.head_dim = WIDTH;
	OK(pawl_kv_cache_with_capacity(context, &other, &cache, &err));
	ck_assert_int_eq(pawl_decode_session_new(plan, weights, cache,
				 pawl_inference_context_team(context), &none, &err),
		PAWL_INVALID_GRAPH);
	ck_assert_str_eq(err.text,
		"kv const cache.0.0 is not cache.k.<layer> to cache.v.<layer> of 2 layers");
	pawl_kv_cache_free(cache);
}
END_TEST

Suite *
pawl_latent_cache_suite(void)
{
	Suite *suite = suite_create("latent_cache");
	TCase *tests = tcase_create("cache");

	tcase_add_checked_fixture(tests, begin, end);
	tcase_add_test(tests, one_realize_makes_all_slots);
	tcase_add_loop_test(tests, sizes_that_hold_nothing, 0,
		(int)(sizeof(bad_shapes) / sizeof(bad_shapes[0])));
	tcase_add_test(tests, more_than_memory_holds);
	tcase_add_test(tests, advance_and_versions);
	tcase_add_test(tests, truncate_keeps_storage_and_records_the_cut);
	tcase_add_test(tests, clear_gives_up_capacity_too);
	suite_add_tcase(suite, tests);
	tests = tcase_create("session");
	tcase_add_checked_fixture(tests, begin_model, end_model);
	tcase_add_test(tests, a_swapped_cache_serves_its_own_content);
	tcase_add_test(tests, a_stale_session_is_told_apart);
	tcase_add_test(tests, a_freed_cache_that_comes_back_at_its_address);
	tcase_add_test(tests, rollback_equals_straight);
	tcase_add_test(tests, capacity_is_checked);
	tcase_add_test(tests, a_cleared_cache_is_refused);
	tcase_add_loop_test(tests, sessions_refuse_caches_of_another_geometry, 0, 6);
	tcase_add_loop_test(
		tests, refusals_change_nothing, 0, (int)(sizeof(refusals) / sizeof(refusals[0])));
	tcase_add_test(tests, names_of_the_other_kind_are_refused);
	suite_add_tcase(suite, tests);
	return suite;
}
