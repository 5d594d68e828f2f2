/*
 * What a session on latents is moved to and what it refuses: caches of another geometry, foreign
 * memory, names of the other kind of cache.
 */
#include "runtime/latent_kv_cache.h"

#include <stdio.h>
#include <string.h>

#include "runtime/decode_session.h"
#include "runtime/inference_context.h"
#include "tests/latent_cache_fixture.h"
#include "tests/latent_session_fixture.h"
#include "tests/suites.h"

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

/* A source whose every answer can be replaced. */
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
pawl_latent_rebind_suite(void)
{
	Suite *suite = suite_create("latent_rebind");
	TCase *tests = tcase_create("session");

	tcase_add_checked_fixture(tests, begin_model, end_model);
	tcase_add_loop_test(tests, sessions_refuse_caches_of_another_geometry, 0, 6);
	tcase_add_loop_test(
		tests, refusals_change_nothing, 0, (int)(sizeof(refusals) / sizeof(refusals[0])));
	tcase_add_test(tests, a_session_without_its_own_slot_is_refused);
	tcase_add_test(tests, refresh_tells_before_it_touches);
	tcase_add_test(tests, names_of_the_other_kind_are_refused);
	suite_add_tcase(suite, tests);
	return suite;
}
