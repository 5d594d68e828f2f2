/*
 * Sessions on caches of latents: what those on the contiguous cache are asked in test_session.c and
 * test_validity.c.
 */
#include "runtime/latent_kv_cache.h"

#include <stdio.h>
#include <string.h>

#include "ir/build.h"
#include "runtime/decode_session.h"
#include "runtime/inference_context.h"
#include "tests/latent_cache_fixture.h"
#include "tests/suites.h"

enum { N_VOCAB = 40 };

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

	begin_shape();
	for (int i = 0; i < N_VOCAB * WIDTH; i++)
		embedding[i / WIDTH][i % WIDTH] = (float)((i * 37 + 11) % 101 - 50) / 64.0f;
	graph = latent_graph();
	OK(pawl_weights_new(&source, &weights, &err));
	OK(pawl_plan_build(graph, pawl_test_device(), &plan_options, &plan, &err));
	pawl_graph_free(graph);
	OK(pawl_symenv_init(&env, plan->program->symbols, plan->program->n_symbols, &err));
	first = new_cache();
	second = new_cache();
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
	end_shape();
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
	struct pawl_latent_kv_cache *cache = new_cache();
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
		second = new_cache();
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

static void
spoil_from(struct pawl_latent_kv_cache *cache, int64_t from)
{
	for (int32_t i = 0; i < 2 * N_LAYERS; i++) {
		struct pawl_storage *storage = pawl_latent_kv_cache_storage(cache, i / 2, i % 2);
		int64_t row = storage->n_bytes / CAPACITY;

		memset((char *)storage->bytes + from * row, 0xff,
			(size_t)((CAPACITY - from) * row));
	}
}

START_TEST(what_lies_beyond_the_length_means_nothing)
{
	const float *row = NULL;
	float wanted[WIDTH];

	fresh(1, 14, wanted);
	spoil_from(first, 0);
	for (int i = 0; i < 14; i++) {
		row = step(session, first, 1);
		spoil_from(first, i + 1);
	}
	ck_assert(!memcmp(row, wanted, sizeof(wanted)));
	pawl_latent_kv_cache_truncate_to(first, 13);
	spoil_from(first, 12);
	ck_assert(memcmp(step(session, first, 1), wanted, sizeof(wanted)));
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
	cache = new_cache();
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

static struct pawl_storage *
k16_slot(void)
{
	struct pawl_type type = answers.storages[3]->type;
	struct pawl_storage *storage;

	type.layout = PAWL_LAYOUT_K16;
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
	{"layout", PAWL_REFUSAL_LAYOUT_DIFFERS},
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
	else if (!strcmp(what, "layout"))
		other = k16_slot();
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

START_TEST(a_session_without_its_own_slot_is_refused)
{
	const struct pawl_kv_rebind_source source = pawl_latent_kv_cache_source(second);
	int32_t slots[2 * N_LAYERS];
	struct pawl_kv_binding kv = {N_LAYERS, 2, slots, {5}, PAWL_LOCATION_HOST};
	struct pawl_bindings *unbound;
	struct pawl_refusal refusal;

	for (int i = 0; i < 2 * N_LAYERS; i++) {
		char name[16];

		snprintf(name, sizeof(name), "cache.%d.%d", i % 2, i / 2);
		slots[i] = pawl_plan_find_slot(plan, PAWL_SLOT_KV, name);
	}
	OK(pawl_bindings_new(plan, pawl_inference_context_team(context), &unbound, &err));
	ck_assert(!pawl_kv_rebind(unbound, &kv, &source, &refusal));
	ck_assert_int_eq(refusal.kind, PAWL_REFUSAL_UNBAKED_SLOT);
	ck_assert_int_eq(refusal.layer, 0);
	ck_assert_uint_eq(kv.alloc_id.value, 5);
	ck_assert_ptr_null(pawl_bindings_storage(unbound, slots[0]));
	pawl_bindings_free(unbound);
}
END_TEST

struct watch {
	struct pawl_kv_alloc_id alloc_id; /* of the session when the callback ran */
	int n_calls;
};

static void
watch_it(void *arg)
{
	struct watch *watch = arg;

	watch->n_calls++;
	watch->alloc_id = pawl_decode_session_alloc_id(session);
}

START_TEST(refresh_tells_before_it_touches)
{
	const uint64_t id = pawl_latent_kv_cache_alloc_id(first).value;
	struct pawl_counters counters = {0};
	struct watch watch = {.n_calls = 0};
	struct pawl_disposition what;

	for (int refused = 0; refused < 2; refused++) {
		const struct pawl_kv_rebind_source source = pawl_latent_kv_cache_source(second);
		const struct pawl_plan_key key = latent_key();

		pawl_decode_session_refresh(&session, &key, &source,
			(struct pawl_invalidate){watch_it, &watch}, &counters, &what);
		ck_assert_int_eq(what.kind,
			refused ? PAWL_SESSION_DROPPED : PAWL_SESSION_REBOUND);
		ck_assert_int_eq(watch.n_calls, 1 + refused);
		ck_assert_int_eq(watch.alloc_id.value == id, !refused);
		pawl_latent_kv_cache_clear(second);
	}
	ck_assert_ptr_null(session);
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
pawl_latent_session_suite(void)
{
	Suite *suite = suite_create("latent_session");
	TCase *tests = tcase_create("session");

	tcase_add_checked_fixture(tests, begin_model, end_model);
	tcase_add_test(tests, a_swapped_cache_serves_its_own_content);
	tcase_add_test(tests, a_stale_session_is_told_apart);
	tcase_add_test(tests, a_freed_cache_that_comes_back_at_its_address);
	tcase_add_test(tests, rollback_equals_straight);
	tcase_add_test(tests, what_lies_beyond_the_length_means_nothing);
	tcase_add_test(tests, capacity_is_checked);
	tcase_add_test(tests, a_cleared_cache_is_refused);
	tcase_add_loop_test(tests, sessions_refuse_caches_of_another_geometry, 0, 6);
	tcase_add_loop_test(
		tests, refusals_change_nothing, 0, (int)(sizeof(refusals) / sizeof(refusals[0])));
	tcase_add_test(tests, a_session_without_its_own_slot_is_refused);
	tcase_add_test(tests, refresh_tells_before_it_touches);
	tcase_add_test(tests, names_of_the_other_kind_are_refused);
	suite_add_tcase(suite, tests);
	return suite;
}
