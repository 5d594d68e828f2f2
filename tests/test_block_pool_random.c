/*
 * Random operations on the KV block pool beside a plain model of it, which is compared after each.
 * Arguments are often absurd and allocations often fail.
 */
#include "runtime/kv_block_pool.h"

#include "ir/random_parts.h"
#include "runtime/kv_block_parts.h"
#include "runtime/memory.h"

#include "tests/pool_model.h"
#include "tests/suites.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* PAWL_TEST_OPERATIONS: that many for each seed. */
enum { N_SEEDS = 12, N_OPERATIONS = 15000, MAX_BATCH = 4, N_STALE = 64 };

enum operation {
	OPEN,
	APPEND,
	APPEND_TAIL, /* breaking the tail before, as a decode step does */
	FORK,
	TRUNCATE,
	CLOSE,
	SPLICE,
	SPLICE_PREFIX,
	EVICT_BLOCKS,
	EVICT_RANGE,
	EVICT,
	RESTORE,
	RESTORE_RESERVE,
	RESTORE_COMMIT,
	RESTORE_ABORT,
	COW,
	SHIFT,
	COMMIT,
	ABORT,
	UNDO, /* of a copy that was just committed */
	REGISTER,
	RELEASE,
	SPLICE_FROM,
	N_KINDS
};

struct drive {
	uint64_t random;
	struct pawl_kv_block_pool *pool;
	struct pawl_pool_model *m;
	struct pawl_error err;
	uint64_t stale[N_STALE];
	uint64_t n_ids;
	uint64_t last_id;
	enum operation kind;
	enum pawl_status status;     /* of the pool */
	int64_t n_ended[N_KINDS][3]; /* ok, refused, out of memory */
	int64_t n_found;
};

static int64_t
below(struct drive *d, int64_t n)
{
	return n > 0 ? (int64_t)(pawl_random_next(&d->random) % (uint64_t)n) : 0;
}

static bool
chance(struct drive *d, int percent)
{
	return below(d, 100) < percent;
}

/* Mostly 0 .. n, sometimes a little or far outside. */
static int64_t
number(struct drive *d, int64_t n)
{
	const int64_t absurd[] = {-1, n + 1, INT64_MAX, INT64_MIN, INT64_MAX - 1, INT64_C(1) << 32,
		INT64_C(1) << 62, -n};

	return chance(d, 4) ? absurd[below(d, sizeof(absurd) / sizeof(absurd[0]))]
			    : below(d, n + 1);
}

/* An id of the list; sometimes of something else, dead or never given. */
#define PICK(d, list, count)                                                                       \
	((d)->m->count && !chance(d, 3) ? (d)->m->list[below(d, (d)->m->count)].id : bad_id(d))

static uint64_t
bad_id(struct drive *d)
{
	switch (below(d, 4)) {
	case 0:
		return 0;
	case 1:
		return UINT64_MAX;
	case 2:
		return d->m->n_sessions ? d->m->sessions[0].id + 1 : 7;
	}
	return d->stale[below(d, N_STALE)];
}

/* Records a new id, which must be above all before. */
static uint64_t
fresh(struct drive *d, uint64_t id)
{
	if (d->status)
		return 0;
	if (id <= d->last_id)
		ck_abort_msg("an id came back");
	d->last_id = id;
	d->stale[d->n_ids++ % N_STALE] = id;
	return id;
}

/* For calls that had the memory they asked for: ends as the model says. */
static void
settle(struct drive *d, enum pawl_status expected)
{
	if (d->status != expected)
		ck_abort_msg("operation %d ended as %s (%s), not as %s", d->kind,
			pawl_status_name(d->status), d->status ? d->err.text : "",
			pawl_status_name(expected));
	d->n_ended[d->kind][d->status != PAWL_OK]++;
}

static bool
is_starved(struct drive *d)
{
	if (d->status != PAWL_OUT_OF_MEMORY)
		return false;
	d->n_ended[d->kind][2]++;
	return true;
}

/* Runs the call, at times with an allocation that fails, and sees that a failure changes nothing.
 */
#define CALL(d, call)                                                                              \
	do {                                                                                       \
		uint64_t before_ = pawl_kv_block_pool_digest((d)->pool);                           \
		bool starve_ = chance(d, 25);                                                      \
                                                                                                   \
		if (starve_)                                                                       \
			pawl_memory_fail_after(below(d, 1 + below(d, 7)));                         \
		(d)->status = (call);                                                              \
		pawl_memory_fail_after(-1);                                                        \
		if ((d)->status == PAWL_OUT_OF_MEMORY && !starve_)                                 \
			ck_abort_msg("out of memory by itself: %s", (d)->err.text);                \
		if ((d)->status && pawl_kv_block_pool_digest((d)->pool) != before_)                \
			ck_abort_msg("operation %d failed (%s) and changed the pool", (d)->kind,   \
				(d)->err.text);                                                    \
	} while (0)

static void
do_open(struct drive *d)
{
	struct pawl_kv_session_id id = {0};
	int64_t max_tokens = number(d, 40);

	if (d->m->n_sessions == PAWL_MODEL_OBJECTS)
		return;
	CALL(d, pawl_kv_block_pool_open(d->pool, max_tokens, &id, &d->err));
	if (!is_starved(d))
		settle(d, pawl_pool_model_open(d->m, max_tokens, fresh(d, id.value)));
}

static void
do_fork(struct drive *d)
{
	struct pawl_kv_session_id id = {0}, parent = {PICK(d, sessions, n_sessions)};

	if (d->m->n_sessions == PAWL_MODEL_OBJECTS)
		return;
	CALL(d, pawl_kv_block_pool_fork(d->pool, parent, &id, &d->err));
	if (!is_starved(d))
		settle(d, pawl_pool_model_fork(d->m, parent.value, fresh(d, id.value)));
}

/* Room in the model's arrays, which the pool does not have to respect. */
static bool
has_room(struct drive *d, uint64_t id, int64_t n_slots)
{
	const struct pawl_model_session *s = pawl_pool_model_session(d->m, id);

	return !s || s->n_slots + n_slots <= PAWL_MODEL_SLOTS;
}

static void
do_append(struct drive *d)
{
	struct pawl_kv_session_id id = {PICK(d, sessions, n_sessions)};
	int64_t n = number(d, chance(d, 10) ? d->m->n_blocks * d->m->block_size : 12);
	uint32_t tokens[PAWL_MODEL_BLOCKS * PAWL_MODEL_BLOCK_SIZE];

	if (!has_room(d, id.value, d->m->n_blocks))
		return;
	/* Equal but for the bits above 8, and mostly the same. */
	for (size_t i = 0; i < sizeof(tokens) / sizeof(tokens[0]); i++)
		tokens[i] = chance(d, 12) ? 321 : 65;
	if (d->kind == APPEND_TAIL) {
		struct pawl_kv_copy_id copy;
		int64_t slots = pawl_kv_block_pool_session_slots(d->pool, id);

		if (d->m->n_copies == PAWL_MODEL_OBJECTS ||
			!pawl_kv_block_pool_tail_is_shared(d->pool, id) ||
			pawl_kv_block_pool_cow_reserve(d->pool, id, slots - 1, &copy, &d->err))
			return;
		d->status = PAWL_OK;
		ck_assert_int_eq(pawl_pool_model_cow_reserve(
					 d->m, id.value, slots - 1, fresh(d, copy.value)),
			PAWL_OK);
		ck_assert_int_eq(pawl_kv_block_pool_copy_commit(d->pool, copy, &d->err), PAWL_OK);
		ck_assert_int_eq(pawl_pool_model_copy_commit(d->m, copy.value), PAWL_OK);
	}
	CALL(d, pawl_kv_block_pool_append(d->pool, id, n, &d->err));
	if (!is_starved(d))
		settle(d, pawl_pool_model_append(d->m, id.value, n, tokens));
}

static void
do_truncate(struct drive *d)
{
	struct pawl_kv_session_id id = {PICK(d, sessions, n_sessions)};
	int64_t len = pawl_kv_block_pool_session_len(d->pool, id), n = number(d, len);

	if (chance(d, 60))
		n = len - below(d, 6);
	CALL(d, pawl_kv_block_pool_truncate(d->pool, id, n, &d->err));
	settle(d, pawl_pool_model_truncate(d->m, id.value, n));
}

static void
do_close(struct drive *d)
{
	struct pawl_kv_session_id id = {PICK(d, sessions, n_sessions)};

	CALL(d, pawl_kv_block_pool_close(d->pool, id, &d->err));
	settle(d, pawl_pool_model_close(d->m, id.value));
}

static void
do_splice(struct drive *d)
{
	struct pawl_kv_session_id src = {PICK(d, sessions, n_sessions)};
	struct pawl_kv_session_id dst = {PICK(d, sessions, n_sessions)};
	int64_t n = pawl_kv_block_pool_session_slots(d->pool, src), to = number(d, n);
	int64_t from =
		chance(d, 70) ? pawl_kv_block_pool_session_slots(d->pool, dst) : number(d, n);

	if (d->kind == SPLICE) {
		CALL(d, pawl_kv_block_pool_splice(d->pool, src, from, to, dst, &d->err));
		if (!is_starved(d))
			settle(d, pawl_pool_model_splice(d->m, src.value, from, to, dst.value));
		return;
	}
	CALL(d, pawl_kv_block_pool_splice_prefix(d->pool, src, to, dst, &d->err));
	if (!is_starved(d))
		settle(d, pawl_pool_model_splice_prefix(d->m, src.value, to, dst.value));
}

static void
do_evict(struct drive *d)
{
	struct pawl_kv_session_id id = {PICK(d, sessions, n_sessions)};
	int64_t n_slots = pawl_kv_block_pool_session_slots(d->pool, id), slots[4];
	int64_t from = number(d, n_slots), to = number(d, n_slots), n = number(d, 3);
	enum pawl_kv_fidelity fidelity = chance(d, 50) ? PAWL_KV_EXACT : PAWL_KV_LOSSY;
	struct pawl_kv_evict_report report = {.n_freed = 0}, expected;
	enum pawl_status status;

	if (d->m->n_handles == PAWL_MODEL_OBJECTS)
		return;
	if (n > 4)
		n = 4;
	for (int i = 0; i < 4; i++)
		slots[i] = number(d, n_slots - 1);
	if (to < from && !chance(d, 5))
		to = from;
	if (d->kind == EVICT_BLOCKS)
		CALL(d, pawl_kv_block_pool_evict_blocks(
				d->pool, id, slots, n, fidelity, &report, &d->err));
	else if (d->kind == EVICT_RANGE)
		CALL(d, pawl_kv_block_pool_evict_range(
				d->pool, id, from, to, fidelity, &report, &d->err));
	else
		CALL(d, pawl_kv_block_pool_evict(d->pool, id, fidelity, &report, &d->err));
	if (is_starved(d))
		return;
	fresh(d, report.handle.value);
	if (d->kind == EVICT_BLOCKS)
		status = pawl_pool_model_evict_blocks(
			d->m, id.value, slots, n, fidelity, &expected, report.handle.value);
	else
		status = pawl_pool_model_evict_range(d->m, id.value, d->kind == EVICT ? 0 : from,
			d->kind == EVICT ? n_slots : to, fidelity, &expected, report.handle.value);
	settle(d, status);
	if (status)
		return;
	ck_assert_int_eq(report.n_freed, expected.n_freed);
	ck_assert_int_eq(report.n_still_shared, expected.n_still_shared);
}

static void
do_restore(struct drive *d)
{
	struct pawl_kv_handle_id id = {PICK(d, handles, n_handles)};
	enum pawl_status status;

	if (d->kind == RESTORE) {
		CALL(d, pawl_kv_block_pool_restore(d->pool, id, &d->err));
		status = pawl_pool_model_restore_reserve(d->m, id.value);
		settle(d, status ? status : pawl_pool_model_restore_commit(d->m, id.value));
	} else if (d->kind == RESTORE_RESERVE) {
		CALL(d, pawl_kv_block_pool_restore_reserve(d->pool, id, &d->err));
		settle(d, pawl_pool_model_restore_reserve(d->m, id.value));
	} else if (d->kind == RESTORE_COMMIT) {
		CALL(d, pawl_kv_block_pool_restore_commit(d->pool, id, &d->err));
		settle(d, pawl_pool_model_restore_commit(d->m, id.value));
	} else {
		CALL(d, pawl_kv_block_pool_restore_abort(d->pool, id, &d->err));
		settle(d, pawl_pool_model_restore_abort(d->m, id.value));
	}
}

static void
do_copy(struct drive *d)
{
	struct pawl_kv_session_id session = {PICK(d, sessions, n_sessions)};
	struct pawl_kv_prefix_id prefix = {PICK(d, prefixes, n_prefixes)};
	int64_t len = pawl_kv_block_pool_session_len(d->pool, session), n = number(d, 3);
	int64_t slot = number(d, pawl_kv_block_pool_session_slots(d->pool, session) - 1);
	int64_t offset = chance(d, 80) ? len : number(d, len);
	struct pawl_kv_copy_id id = {0};

	if (d->m->n_copies == PAWL_MODEL_OBJECTS)
		return;
	if (d->kind == COW) {
		CALL(d, pawl_kv_block_pool_cow_reserve(d->pool, session, slot, &id, &d->err));
		if (is_starved(d))
			return;
		if (!d->status && id.value)
			fresh(d, id.value);
		settle(d, pawl_pool_model_cow_reserve(d->m, session.value, slot, id.value));
		return;
	}
	if (!has_room(d, session.value, 4))
		return;
	CALL(d, pawl_kv_block_pool_shift_reserve(
			d->pool, prefix, n, session, offset, &id, &d->err));
	if (!is_starved(d))
		settle(d, pawl_pool_model_shift_reserve(d->m, prefix.value, n, session.value,
				  offset, fresh(d, id.value)));
}

static void
do_end_copy(struct drive *d)
{
	struct pawl_kv_copy_id id = {PICK(d, copies, n_copies)};

	if (d->kind == COMMIT) {
		CALL(d, pawl_kv_block_pool_copy_commit(d->pool, id, &d->err));
		settle(d, pawl_pool_model_copy_commit(d->m, id.value));
		return;
	}
	CALL(d, pawl_kv_block_pool_copy_abort(d->pool, id, &d->err));
	settle(d, pawl_pool_model_copy_abort(d->m, id.value));
}

/* The pool is then what it was before the copy, and the model never hears of it. */
static void
do_undo(struct drive *d)
{
	struct pawl_kv_session_id session = {PICK(d, sessions, n_sessions)};
	int64_t slot = number(d, pawl_kv_block_pool_session_slots(d->pool, session) - 1);
	uint64_t before = pawl_kv_block_pool_digest(d->pool);
	int32_t block = (int32_t)number(d, d->m->n_blocks - 1);
	struct pawl_kv_copy_info info;
	struct pawl_kv_copy_id id = {0};

	d->status = pawl_kv_block_pool_cow_reserve(d->pool, session, slot, &id, &d->err);
	if (!d->status && id.value) {
		fresh(d, id.value);
		ck_assert_int_eq(pawl_kv_block_pool_copy(d->pool, id, &info, &d->err), PAWL_OK);
		block = info.blocks[0].from;
		ck_assert_int_eq(pawl_kv_block_pool_copy_commit(d->pool, id, &d->err), PAWL_OK);
		CALL(d, pawl_kv_block_pool_copy_undo(d->pool, session, slot, block, &d->err));
		settle(d, PAWL_OK);
		ck_assert_uint_eq(pawl_kv_block_pool_digest(d->pool), before);
		return;
	}
	/* Where the slot is no copy of it, whoever owns it. */
	if (pawl_kv_block_pool_owners(d->pool, block) > 0 &&
		pawl_kv_block_pool_slot(d->pool, session, slot, &block, NULL))
		block = -1;
	CALL(d, pawl_kv_block_pool_copy_undo(d->pool, session, slot, block, &d->err));
	settle(d, PAWL_INVALID_ARGUMENT);
}

static struct pawl_kv_prefix_key
key_of(struct drive *d, uint64_t session)
{
	static const char *const texts[] = {NULL, NULL, NULL, NULL, NULL, "", "x"};
	const struct pawl_model_session *s = pawl_pool_model_session(d->m, session);
	struct pawl_kv_prefix_key key = {
		.tokens = s ? s->content : NULL,
		.n_tokens = s ? s->n_tokens : 0,
		.adapter = texts[below(d, 7)],
		.salt = texts[below(d, 7)],
	};

	return key;
}

static void
do_register(struct drive *d)
{
	struct pawl_kv_session_id session = {PICK(d, sessions, n_sessions)};
	struct pawl_kv_prefix_key key = key_of(d, session.value);
	struct pawl_kv_prefix_id id = {0};

	if (d->m->n_prefixes == PAWL_MODEL_OBJECTS)
		return;
	key.n_tokens = number(d, key.n_tokens);
	if (chance(d, 90))
		key.n_tokens -= key.n_tokens % d->m->block_size;
	CALL(d, pawl_kv_block_pool_register_prefix(d->pool, session, &key, &id, &d->err));
	if (!is_starved(d))
		settle(d, pawl_pool_model_register_prefix(
				  d->m, session.value, &key, fresh(d, id.value)));
}

static void
do_prefix(struct drive *d)
{
	struct pawl_kv_prefix_id id = {PICK(d, prefixes, n_prefixes)};
	struct pawl_kv_session_id dst = {PICK(d, sessions, n_sessions)};
	int64_t n;

	if (d->kind == RELEASE) {
		CALL(d, pawl_kv_block_pool_release_prefix(d->pool, id, &d->err));
		settle(d, pawl_pool_model_release_prefix(d->m, id.value));
		return;
	}
	pawl_kv_block_pool_prefix_blocks(d->pool, id, &n);
	n = number(d, n);
	CALL(d, pawl_kv_block_pool_splice_prefix_from(d->pool, id, n, dst, &d->err));
	if (!is_starved(d))
		settle(d, pawl_pool_model_splice_prefix_from(d->m, id.value, n, dst.value));
}

#define SAME(a, b)                                                                                 \
	do {                                                                                       \
		if ((a) != (b))                                                                    \
			ck_abort_msg("pool and model differ: %s and %s", #a, #b);                  \
	} while (0)

static void
look(struct drive *d)
{
	struct pawl_kv_session_id id = {PICK(d, sessions, n_sessions)};
	struct pawl_kv_prefix_key key = key_of(d, id.value);
	struct pawl_kv_prefix_match found = {.n_blocks = 0};
	struct pawl_kv_prefix_match expected = pawl_pool_model_find_prefix(d->m, &key);
	struct pawl_kv_append batch[MAX_BATCH];
	uint32_t table[PAWL_MODEL_SLOTS] = {1}, expected_table[PAWL_MODEL_SLOTS] = {1};
	int64_t cap = below(d, PAWL_MODEL_SLOTS + 1), n = below(d, MAX_BATCH + 1), need = 0, want;
	enum pawl_status status;

	d->n_found += expected.n_blocks > 0;
	SAME(pawl_kv_block_pool_find_prefix(d->pool, &key, &found), expected.n_blocks > 0);
	if (expected.n_blocks) {
		SAME(found.prefix.value, expected.prefix.value);
		SAME(found.n_blocks, expected.n_blocks);
	}
	status = pawl_kv_block_pool_block_table(d->pool, id, table, cap, &d->err);
	SAME(status, pawl_pool_model_block_table(d->m, id.value, expected_table, cap));
	SAME(memcmp(table, expected_table, sizeof(table)), 0);
	for (int64_t i = 0; i < n; i++)
		batch[i] = (struct pawl_kv_append){{PICK(d, sessions, n_sessions)}, number(d, 9)};
	status = pawl_kv_block_pool_blocks_to_append(d->pool, batch, n, &need, &d->err);
	SAME(status, pawl_pool_model_blocks_to_append(d->m, batch, n, &want));
	if (!status)
		SAME(need, want);
}

static const struct {
	int weight;
	void (*run)(struct drive *);
} operations[N_KINDS] = {
	[OPEN] = {3, do_open},
	[APPEND] = {10, do_append},
	[APPEND_TAIL] = {20, do_append},
	[FORK] = {3, do_fork},
	[TRUNCATE] = {4, do_truncate},
	[CLOSE] = {4, do_close},
	[SPLICE] = {6, do_splice},
	[SPLICE_PREFIX] = {6, do_splice},
	[EVICT_BLOCKS] = {4, do_evict},
	[EVICT_RANGE] = {3, do_evict},
	[EVICT] = {1, do_evict},
	[RESTORE] = {1, do_restore},
	[RESTORE_RESERVE] = {3, do_restore},
	[RESTORE_COMMIT] = {2, do_restore},
	[RESTORE_ABORT] = {1, do_restore},
	[COW] = {6, do_copy},
	[SHIFT] = {8, do_copy},
	[COMMIT] = {3, do_end_copy},
	[ABORT] = {1, do_end_copy},
	[UNDO] = {2, do_undo},
	[REGISTER] = {6, do_register},
	[RELEASE] = {2, do_prefix},
	[SPLICE_FROM] = {6, do_prefix},
};

static enum operation
choose(struct drive *d)
{
	int64_t sum = 0, at;
	int kind = 0;

	for (int i = 0; i < N_KINDS; i++)
		sum += operations[i].weight;
	for (at = below(d, sum); at >= operations[kind].weight; kind++)
		at -= operations[kind].weight;
	return (enum operation)kind;
}

static void
close_all(struct drive *d)
{
	while (d->m->n_sessions) {
		uint64_t id = d->m->sessions[below(d, d->m->n_sessions)].id;

		ck_assert_int_eq(
			pawl_kv_block_pool_close(d->pool, (struct pawl_kv_session_id){id}, &d->err),
			PAWL_OK);
		ck_assert_int_eq(pawl_pool_model_close(d->m, id), PAWL_OK);
		pawl_pool_model_compare(d->m, d->pool);
	}
	while (d->m->n_prefixes) {
		uint64_t id = d->m->prefixes[below(d, d->m->n_prefixes)].id;

		ck_assert_int_eq(pawl_kv_block_pool_release_prefix(
					 d->pool, (struct pawl_kv_prefix_id){id}, &d->err),
			PAWL_OK);
		ck_assert_int_eq(pawl_pool_model_release_prefix(d->m, id), PAWL_OK);
	}
	pawl_pool_model_compare(d->m, d->pool);
	ck_assert_int_eq(pawl_kv_block_pool_free_blocks(d->pool), d->m->n_blocks);
}

static void
drive(struct drive *d, int seed, int64_t n)
{
	static const struct pawl_kv_pool_geometry geometries[] = {
		{2, 24, 4, 3, 16},
		{1, 7, 1, 1, 4},
		{3, 40, 16, 2, 256},
		{1, 48, 3, 1, 2},
	};

	d->random = (uint64_t)seed + 1;
	ck_assert_int_eq(pawl_kv_block_pool_new(&geometries[seed % 4], &d->pool, &d->err), PAWL_OK);
	pawl_pool_model_init(d->m, d->pool);
	/* One seed in three where all hashes are equal, one where few differ. */
	d->pool->hash_mask = seed % 3 == 0 ? 0 : seed % 3 == 1 ? 3 : UINT64_MAX;
	while (n--) {
		d->kind = choose(d);
		operations[d->kind].run(d);
		pawl_pool_model_compare(d->m, d->pool);
		look(d);
	}
	close_all(d);
	pawl_kv_block_pool_free(d->pool);
}

START_TEST(like_the_model)
{
	static const bool allocates[N_KINDS] = {
		[OPEN] = true,
		[APPEND] = true,
		[APPEND_TAIL] = true,
		[FORK] = true,
		[SPLICE] = true,
		[SPLICE_PREFIX] = true,
		[EVICT_BLOCKS] = true,
		[EVICT_RANGE] = true,
		[EVICT] = true,
		[COW] = true,
		[SHIFT] = true,
		[REGISTER] = true,
		[SPLICE_FROM] = true,
	};
	struct drive *d = calloc(1, sizeof(*d));
	const char *asked = getenv("PAWL_TEST_OPERATIONS");
	int64_t n_ended = 0, n_starved = 0, n_refused = 0;

	d->m = malloc(sizeof(*d->m));
	for (int seed = 0; seed < N_SEEDS; seed++)
		drive(d, seed, asked ? strtoll(asked, NULL, 10) : N_OPERATIONS);
	for (int kind = 0; kind < N_KINDS; kind++) {
		const int64_t *n = d->n_ended[kind];

		ck_assert_msg(n[0] >= 200, "operation %d hardly ever succeeds", kind);
		ck_assert_msg(n[1] >= 40, "operation %d is hardly ever refused", kind);
		ck_assert_msg(n[2] || !allocates[kind], "operation %d had memory always", kind);
		ck_assert_msg(!n[2] || allocates[kind], "operation %d asks for memory", kind);
		n_ended += n[0] + n[1] + n[2];
		n_refused += n[1];
		n_starved += n[2];
	}
	if (asked)
		printf("%lld operations, %lld refused, %lld without memory\n", (long long)n_ended,
			(long long)n_refused, (long long)n_starved);
	ck_assert_int_ge(n_ended, 100000);
	ck_assert_int_ge(d->n_found, 10000);
	free(d->m);
	free(d);
}
END_TEST

Suite *
pawl_block_pool_random_suite(void)
{
	Suite *suite = suite_create("block_pool_random");
	TCase *tcase = tcase_create("block_pool_random");

	tcase_set_timeout(tcase, getenv("PAWL_TEST_OPERATIONS") ? 3600 : 60);
	tcase_add_test(tcase, like_the_model);
	suite_add_tcase(suite, tcase);
	return suite;
}
