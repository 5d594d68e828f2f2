/* The verdict on a held plan, and the refusals of rebinding. */
#include "runtime/validity.h"

#include "runtime/rebind.h"
#include "tests/decoding.h"
#include "tests/suites.h"

#include <stdio.h>
#include <string.h>

static struct pawl_error err;

static const struct pawl_plan_key held = {
	.seq = 1,
	.max_seq_len = 256,
	.n_layers = 30,
	.cache_dtype = PAWL_DTYPE_F16,
	.shape_key = 0x1234,
	.precision = PAWL_PRECISION_A16,
	.n_kv_heads = 3,
	.head_dim = 64,
	.k_layout = PAWL_LAYOUT_K16,
	.v_layout = PAWL_LAYOUT_ROWS,
	.device = 1,
};

/* The key with one field changed. */
static struct pawl_plan_key
change(struct pawl_plan_key key, enum pawl_key_field field)
{
	switch (field) {
	case PAWL_KEY_SEQ:
		key.seq = 8;
		break;
	case PAWL_KEY_MAX_SEQ_LEN:
		key.max_seq_len = 512;
		break;
	case PAWL_KEY_N_LAYERS:
		key.n_layers = 31;
		break;
	case PAWL_KEY_CACHE_DTYPE:
		key.cache_dtype = PAWL_DTYPE_F32;
		break;
	case PAWL_KEY_SHAPE_KEY:
		key.shape_key = 0x1235;
		break;
	case PAWL_KEY_PRECISION:
		key.precision = PAWL_PRECISION_A8;
		break;
	case PAWL_KEY_N_KV_HEADS:
		key.n_kv_heads = 6;
		break;
	case PAWL_KEY_HEAD_DIM:
		key.head_dim = 32;
		break;
	case PAWL_KEY_K_LAYOUT:
		key.k_layout = PAWL_LAYOUT_ROWS;
		break;
	case PAWL_KEY_V_LAYOUT:
		key.v_layout = PAWL_LAYOUT_K16;
		break;
	case PAWL_KEY_DEVICE:
		key.device = 2;
		break;
	case PAWL_KEY_RING:
		key.ring = 128;
		break;
	case PAWL_KEY_RING_WINDOW:
		key.ring_window = 100;
		break;
	case PAWL_KEY_N_SEQUENCES:
		key.n_sequences = 1;
		break;
	case PAWL_KEY_BLOCK_SIZE:
		key.block_size = 16;
		break;
	case PAWL_KEY_MAX_BLOCKS:
		key.max_blocks = 4;
		break;
	case PAWL_KEY_ALLOC_ID:
	case PAWL_KEY_NONE:
		ck_abort();
	}
	return key;
}

static struct pawl_verdict
judge(const struct pawl_plan_key *asked, uint64_t alloc_id)
{
	return pawl_plan_validity(
		&held, (struct pawl_kv_alloc_id){5}, asked, (struct pawl_kv_alloc_id){alloc_id});
}

START_TEST(equal_is_valid)
{
	struct pawl_verdict verdict = judge(&held, 5);
	char text[128];

	ck_assert_int_eq(verdict.validity, PAWL_VALID);
	ck_assert_int_eq(verdict.field, PAWL_KEY_NONE);
	ck_assert_str_eq(pawl_verdict_text(&verdict, text, sizeof(text)), "valid");
}
END_TEST

START_TEST(allocation_alone)
{
	struct pawl_verdict verdict = judge(&held, 6);
	char text[128];

	ck_assert_int_eq(verdict.validity, PAWL_ALLOCATION_CHANGED);
	ck_assert_int_eq(verdict.field, PAWL_KEY_ALLOC_ID);
	ck_assert_str_eq(pawl_verdict_text(&verdict, text, sizeof(text)),
		"allocation changed: alloc_id is 5, 6 is asked for");
}
END_TEST

START_TEST(each_structural_field_is_stale)
{
	enum pawl_key_field field = (enum pawl_key_field)_i;
	struct pawl_plan_key asked = change(held, field);

	for (uint64_t alloc_id = 5; alloc_id <= 6; alloc_id++) {
		struct pawl_verdict verdict = judge(&asked, alloc_id);

		ck_assert_int_eq(verdict.validity, PAWL_PLAN_STALE);
		ck_assert_int_eq(verdict.field, field);
		ck_assert_uint_eq(verdict.held, pawl_plan_key_value(&held, field));
		ck_assert_uint_eq(verdict.asked, pawl_plan_key_value(&asked, field));
		ck_assert_uint_ne(verdict.held, verdict.asked);
	}
}
END_TEST

START_TEST(the_first_difference_is_named)
{
	struct pawl_plan_key asked = held;

	for (int i = PAWL_KEY_ALLOC_ID - 1; i >= 0; i--) {
		asked = change(asked, (enum pawl_key_field)i);
		ck_assert_int_eq(judge(&asked, 6).field, i);
	}
}
END_TEST

START_TEST(verdicts_as_text)
{
	static const struct {
		enum pawl_key_field field;
		const char *text;
	} cases[] = {
		{PAWL_KEY_MAX_SEQ_LEN, "stale: max_seq_len is 256, 512 is asked for"},
		{PAWL_KEY_CACHE_DTYPE, "stale: cache_dtype is f16, f32 is asked for"},
		{PAWL_KEY_SHAPE_KEY,
			"stale: shape_key is 0x0000000000001234, 0x0000000000001235 is asked for"},
		{PAWL_KEY_PRECISION, "stale: precision is a16, a8 is asked for"},
		{PAWL_KEY_K_LAYOUT, "stale: k_layout is k16, rows is asked for"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pawl_plan_key asked = change(held, cases[i].field);
		struct pawl_verdict verdict = judge(&asked, 5);
		char text[128];

		ck_assert_str_eq(pawl_verdict_text(&verdict, text, sizeof(text)), cases[i].text);
	}
}
END_TEST

/* Rebinding: a session on one cache, and a source whose every answer can be replaced. */

static struct pawl_tiny_model *model;
static struct pawl_decoder *decoder;
static struct pawl_kv_cache *other;
static struct pawl_bindings *bindings;
static struct pawl_kv_binding kv;
static int32_t kv_slots[4];

static struct {
	struct pawl_location location;
	struct pawl_storage *storages[4];
} answers;

static struct pawl_kv_alloc_id
source_alloc_id(void *ctx)
{
	(void)ctx;
	return (struct pawl_kv_alloc_id){77};
}

static struct pawl_location
source_location(void *ctx)
{
	(void)ctx;
	return answers.location;
}

static struct pawl_storage *
source_slot(void *ctx, int32_t layer, int which)
{
	(void)ctx;
	return answers.storages[2 * layer + which];
}

static const struct pawl_kv_rebind_source source = {
	NULL, source_alloc_id, source_location, source_slot, NULL, NULL};

static struct pawl_kv_cache *
new_cache(void)
{
	struct pawl_kv_cache *cache;

	ck_assert_int_eq(pawl_kv_cache_with_capacity(pawl_decoder_context(decoder),
				 pawl_kv_cache_shape(pawl_decoder_cache(decoder)), &cache, &err),
		PAWL_OK);
	return cache;
}

static void
begin(void)
{
	struct pawl_decoder_options options = pawl_test_decoder_options();
	struct pawl_tiny_options tiny = pawl_tiny_defaults();
	const struct pawl_plan *plan;

	model = pawl_tiny_model_new(&tiny);
	decoder = pawl_test_decoder(model, &options);
	other = new_cache();
	ck_assert_int_eq(pawl_decoder_prepare(decoder, 1, PAWL_LOGITS_LAST, &plan, &err), PAWL_OK);
	ck_assert_int_eq(pawl_bindings_new((struct pawl_plan *)(uintptr_t)plan,
				 pawl_inference_context_team(pawl_decoder_context(decoder)),
				 &bindings, &err),
		PAWL_OK);
	kv = (struct pawl_kv_binding){2, 2, kv_slots, {5}, PAWL_LOCATION_HOST};
	answers.location = PAWL_LOCATION_HOST;
	for (int i = 0; i < 4; i++) {
		struct pawl_kv_layer_id id = {i / 2, (enum pawl_kv_slot)(i % 2)};
		char name[32];

		snprintf(name, sizeof(name), "cache.%c.%d", i % 2 ? 'v' : 'k', i / 2);
		kv_slots[i] = pawl_plan_find_slot(plan, PAWL_SLOT_KV, name);
		ck_assert_int_ge(kv_slots[i], 0);
		ck_assert_int_eq(
			pawl_bindings_bind(bindings, kv_slots[i],
				pawl_kv_cache_storage(pawl_decoder_cache(decoder), id), &err),
			PAWL_OK);
		answers.storages[i] = pawl_kv_cache_storage(other, id);
	}
}

static void
end(void)
{
	pawl_bindings_free(bindings);
	pawl_kv_cache_free(other);
	pawl_decoder_free(decoder);
	pawl_tiny_model_free(model);
}

/* Everything a rebind may touch. */
struct state {
	struct pawl_storage *storages[4];
	struct pawl_kv_binding kv;
	uint64_t caches[2];
};

static struct state
state_now(void)
{
	struct state state;

	memset(&state, 0, sizeof(state));
	for (int i = 0; i < 4; i++)
		state.storages[i] = pawl_bindings_storage(bindings, kv_slots[i]);
	state.kv = kv;
	state.caches[0] = pawl_test_cache_digest(pawl_decoder_cache(decoder));
	state.caches[1] = pawl_test_cache_digest(other);
	return state;
}

static struct pawl_refusal
refuse(enum pawl_refusal_kind kind)
{
	struct state before = state_now(), after;
	struct pawl_refusal refusal;

	ck_assert(!pawl_kv_rebind(bindings, &kv, &source, &refusal));
	ck_assert_str_eq(pawl_refusal_name(refusal.kind), pawl_refusal_name(kind));
	after = state_now();
	ck_assert_int_eq(memcmp(&before, &after, sizeof(before)), 0);
	return refusal;
}

START_TEST(interchangeable_caches_rebind)
{
	struct pawl_refusal refusal;

	ck_assert(pawl_kv_rebind(bindings, &kv, &source, &refusal));
	ck_assert_int_eq(refusal.kind, PAWL_REFUSAL_NONE);
	ck_assert_uint_eq(kv.alloc_id.value, 77);
	for (int i = 0; i < 4; i++)
		ck_assert_ptr_eq(pawl_bindings_storage(bindings, kv_slots[i]), answers.storages[i]);
	/* And onto itself. */
	ck_assert(pawl_kv_rebind(bindings, &kv, &source, &refusal));
}
END_TEST

START_TEST(residency_unknown)
{
	struct pawl_refusal refusal;
	char text[256];

	answers.location = PAWL_LOCATION_UNKNOWN;
	refusal = refuse(PAWL_REFUSAL_RESIDENCY_UNKNOWN);
	ck_assert_str_eq(pawl_refusal_text(&refusal, text, sizeof(text)),
		"residency unknown: the plan's cache is on host, the incoming one on unknown");
	answers.location = PAWL_LOCATION_HOST;
	kv.location = PAWL_LOCATION_UNKNOWN;
	refuse(PAWL_REFUSAL_RESIDENCY_UNKNOWN);
	answers.location = PAWL_LOCATION_UNKNOWN;
	refuse(PAWL_REFUSAL_RESIDENCY_UNKNOWN);
}
END_TEST

START_TEST(residency_differs)
{
	struct pawl_refusal refusal;
	char text[256];

	answers.location = (struct pawl_location){PAWL_MEMORY_CUDA, 0};
	refusal = refuse(PAWL_REFUSAL_RESIDENCY_DIFFERS);
	ck_assert_str_eq(pawl_refusal_text(&refusal, text, sizeof(text)),
		"residency differs: the plan's cache is on host, the incoming one on cuda:0");
}
END_TEST

START_TEST(missing_slot)
{
	struct pawl_refusal refusal;
	char text[256];

	answers.storages[3] = NULL;
	refusal = refuse(PAWL_REFUSAL_MISSING_SLOT);
	ck_assert_int_eq(refusal.layer, 1);
	ck_assert_int_eq(refusal.which, 1);
	ck_assert_str_eq(
		pawl_refusal_text(&refusal, text, sizeof(text)), "layer 1 slot 1: missing slot");
	answers.storages[2] = NULL;
	ck_assert_int_eq(refuse(PAWL_REFUSAL_MISSING_SLOT).which, 0);
}
END_TEST

START_TEST(unbaked_slot)
{
	struct pawl_plan *plan = pawl_bindings_plan(bindings);
	struct pawl_bindings *fresh;
	struct pawl_refusal refusal;

	ck_assert_int_eq(
		pawl_bindings_new(plan, pawl_inference_context_team(pawl_decoder_context(decoder)),
			&fresh, &err),
		PAWL_OK);
	ck_assert(!pawl_kv_rebind(fresh, &kv, &source, &refusal));
	ck_assert_int_eq(refusal.kind, PAWL_REFUSAL_UNBAKED_SLOT);
	ck_assert_int_eq(refusal.layer, 0);
	ck_assert_uint_eq(kv.alloc_id.value, 5);
	ck_assert_ptr_null(pawl_bindings_storage(fresh, kv_slots[0]));
	/* Missing comes before unbaked. */
	answers.storages[0] = NULL;
	ck_assert(!pawl_kv_rebind(fresh, &kv, &source, &refusal));
	ck_assert_int_eq(refusal.kind, PAWL_REFUSAL_MISSING_SLOT);
	pawl_bindings_free(fresh);
}
END_TEST

static struct pawl_storage *
storage_like(int slot, enum pawl_dtype dtype, int64_t n_heads, int64_t n_positions,
	int64_t head_dim, enum pawl_layout layout)
{
	const int64_t dims[] = {1, n_heads, n_positions, head_dim};
	struct pawl_type type = pawl_type_make(dtype, 4, dims);
	struct pawl_storage *storage;

	type.layout = layout;
	ck_assert_int_eq(pawl_storage_new(&type, &storage, &err), PAWL_OK);
	answers.storages[slot] = storage;
	return storage;
}

START_TEST(storage_differs)
{
	struct pawl_storage *storage = storage_like(2, PAWL_DTYPE_BF16, 2, 64, 16, PAWL_LAYOUT_K16);
	struct pawl_refusal refusal = refuse(PAWL_REFUSAL_STORAGE_DIFFERS);
	char text[400];

	ck_assert_int_eq(refusal.layer, 1);
	ck_assert_int_eq(refusal.which, 0);
	ck_assert_str_eq(pawl_refusal_text(&refusal, text, sizeof(text)),
		"layer 1 slot 0: storage differs: the plan has f16 [1, 2, 64, 16]@k16 of 4096 "
		"bytes, "
		"the incoming cache bf16 [1, 2, 64, 16]@k16 of 4096 bytes");
	pawl_storage_unref(storage);
	storage = storage_like(2, PAWL_DTYPE_F16, 2, 128, 16, PAWL_LAYOUT_K16);
	refuse(PAWL_REFUSAL_STORAGE_DIFFERS);
	pawl_storage_unref(storage);
}
END_TEST

START_TEST(shape_differs_at_equal_bytes)
{
	struct pawl_storage *storage = storage_like(1, PAWL_DTYPE_F16, 16, 64, 2, PAWL_LAYOUT_ROWS);

	ck_assert_int_eq(storage->n_bytes, 4096);
	ck_assert_int_eq(refuse(PAWL_REFUSAL_SHAPE_DIFFERS).which, 1);
	pawl_storage_unref(storage);
}
END_TEST

START_TEST(layout_differs)
{
	struct pawl_storage *storage = storage_like(0, PAWL_DTYPE_F16, 2, 64, 16, PAWL_LAYOUT_ROWS);

	ck_assert_int_eq(refuse(PAWL_REFUSAL_LAYOUT_DIFFERS).layer, 0);
	pawl_storage_unref(storage);
}
END_TEST

START_TEST(aliased)
{
	struct pawl_storage *own = pawl_bindings_storage(bindings, kv_slots[1]);
	struct pawl_refusal refusal;
	char text[256];

	answers.storages[3] = answers.storages[1];
	refusal = refuse(PAWL_REFUSAL_ALIASED);
	ck_assert_str_eq(pawl_refusal_text(&refusal, text, sizeof(text)),
		"layer 1 slot 1: aliased: it shares memory with layer 0 slot 1");
	/* Also when one of the two is what the session has already. */
	answers.storages[1] = answers.storages[3] = own;
	refuse(PAWL_REFUSAL_ALIASED);
}
END_TEST

START_TEST(a_source_that_contradicts_itself)
{
	struct pawl_location elsewhere = {PAWL_MEMORY_CUDA, 0};
	struct pawl_storage *storage;

	ck_assert_int_eq(
		pawl_storage_wrap(&answers.storages[2]->type, elsewhere, answers.storages[2]->bytes,
			answers.storages[2]->n_bytes, NULL, NULL, &storage, &err),
		PAWL_OK);
	answers.storages[2] = storage;
	ck_assert_int_eq(refuse(PAWL_REFUSAL_RESIDENCY_DIFFERS).layer, 1);
	pawl_storage_unref(storage);
}
END_TEST

Suite *
pawl_validity_suite(void)
{
	Suite *suite = suite_create("validity");
	TCase *tcase = tcase_create("verdict");

	tcase_add_test(tcase, equal_is_valid);
	tcase_add_test(tcase, allocation_alone);
	tcase_add_loop_test(tcase, each_structural_field_is_stale, 0, PAWL_KEY_ALLOC_ID);
	tcase_add_test(tcase, the_first_difference_is_named);
	tcase_add_test(tcase, verdicts_as_text);
	suite_add_tcase(suite, tcase);
	tcase = tcase_create("rebind");
	tcase_add_checked_fixture(tcase, begin, end);
	tcase_add_test(tcase, interchangeable_caches_rebind);
	tcase_add_test(tcase, residency_unknown);
	tcase_add_test(tcase, residency_differs);
	tcase_add_test(tcase, missing_slot);
	tcase_add_test(tcase, unbaked_slot);
	tcase_add_test(tcase, storage_differs);
	tcase_add_test(tcase, shape_differs_at_equal_bytes);
	tcase_add_test(tcase, layout_differs);
	tcase_add_test(tcase, aliased);
	tcase_add_test(tcase, a_source_that_contradicts_itself);
	suite_add_tcase(suite, tcase);
	return suite;
}
