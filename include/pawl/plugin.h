/*
 * The C ABI between Pawl and a host executor.
 *
 * A host opens the module (pawl_plugin.so) or links libpawl, negotiates a version, and uses the
 * table from then on.  docs/hosts.md shows how, examples/host.c and examples/host.py are whole
 * hosts.
 *
 *	uint32_t version = PAWL_ABI_VERSION;
 *	if (!pawl_negotiate(&version))  ...  the library is older than this header's oldest
 *	const struct pawl_api *api = pawl_get_api(version);
 *
 * A graph is optimized and compiled once into a plan.  A session runs a plan on weights and caches.
 * A token is then: new bytes for a few data consts, new values of symbols, one run.
 *
 * Border: nothing of Pawl aborts, exits, prints or unwinds across it.  What the host gives as
 * callbacks must not unwind into Pawl, and must not call Pawl unless it says so.
 *
 * Versions: structs and the table are append-only and start with their size in bytes, a multiple of
 * 8 as all their members are 8 bytes wide.  Each side fills in the size it knows; the other reads
 * and writes only inside of it and takes what lies beyond for 0.  A size below that of version 1,
 * or one that is no multiple of 8, is PAWL_CODE_INVALID_ARGUMENT.
 *
 * The table may grow within a version: a host that can do without the functions at its end looks at
 * struct_size.
 *
 * Errors: a fallible function returns NULL for success, otherwise a status that the caller frees
 * with status_free.  Its outcomes are of three kinds: ok; declined, which is PAWL_CODE_UNSUPPORTED
 * or PAWL_CODE_STALE, with the reason; error.  A function that fails has changed nothing and leaves
 * its outputs alone, unless it says otherwise.
 *
 * Handles: whoever creates one releases it, in any order: each keeps alive what it was made from.
 * Release takes NULL and cannot fail.  A handle of another kind or NULL where one is wanted is
 * PAWL_CODE_INVALID_ARGUMENT; one that was released is the host's mistake.
 *
 * Borrowing: strings and arrays are read during the call and not kept, unless a function says
 * "lent": then the memory must stay, and stay as it is but for what Pawl writes, until the stated
 * end.
 *
 * Threads: table, context, plan, weights and status may be used by many threads at once.  A graph,
 * a cache or a session belongs to one thread at a time; a cache and the session that uses it to the
 * same.  Callbacks come on the calling thread, but for those of pawl_services and
 * pawl_weight_options.
 *
 * Units: sizes in bytes, times in nanoseconds, positions and lengths in tokens.  Types are text,
 * "f16[1, 3, 256, 64]"; the first axis is the slowest; docs/text-form.md has the grammar.
 */
#ifndef PAWL_PLUGIN_H
#define PAWL_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#include <pawl/plugin_base.h>
#include <pawl/plugin_drivers.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PAWL_ABI_VERSION 1u
#define PAWL_ABI_OLDEST 1u /* the oldest version this header describes a way to talk to */

#ifndef PAWL_API
#define PAWL_API __attribute__((visibility("default")))
#endif

struct pawl_api {
	size_t struct_size;
	uint64_t abi_version;
	const char *build_id;

	/* --- status: a message is one line; both live until status_free.  NULL is "ok". --- */

	enum pawl_status_code (*status_code)(const struct pawl_host_status *status);
	const char *(*status_message)(const struct pawl_host_status *status);
	void (*status_free)(struct pawl_host_status *status);

	/* --- context: a target, and the services of the host --- */

	/* services and options may be NULL. */
	struct pawl_host_status *(*context_create)(const struct pawl_services *services,
		const struct pawl_context_options *options, struct pawl_host_context **out);
	void (*context_release)(struct pawl_host_context *context);
	/*
	 * What this library can do, as JSON (docs/hosts.md): targets and why one is not there, the
	 * variant of kernels, CPU features, element types, ops.
	 */
	struct pawl_host_status *(*context_describe)(
		struct pawl_host_context *context, pawl_sink *sink, void *user);
	/*
	 * Counter i of all that happened in the context; 0, and *out left alone, when i is out of
	 * range.
	 */
	int (*context_counter)(
		struct pawl_host_context *context, int64_t i, struct pawl_counter *out);

	/* --- graph: made from text, node by node, or from the host's own --- */

	/* n bytes of text.  The message of PAWL_CODE_INVALID_TEXT names line and column. */
	struct pawl_host_status *(*graph_from_text)(struct pawl_host_context *context,
		const char *text, size_t n, struct pawl_host_graph **out);
	/*
	 * Empty, for the calls below.  Names are [A-Za-z_][A-Za-z0-9_.]* of up to 255 characters.
	 */
	struct pawl_host_status *(*graph_create)(struct pawl_host_context *context,
		const char *name, struct pawl_host_graph **out);
	/* Declares a symbol: min <= value <= max, a multiple of `multiple`. */
	struct pawl_host_status *(*graph_symbol)(struct pawl_host_graph *graph, const char *name,
		int64_t min, int64_t max, int64_t multiple);
	/*
	 * Appends one node.  name: of the result, unique.  inputs: n_inputs names of earlier
	 * results. attrs: "{eps = 1e-05}" or NULL.  type: of the result; it is checked against what
	 * the op infers.  Consts are nodes too: op "const", attrs NULL, "{role = data}" or "{role =
	 * kv}".
	 */
	struct pawl_host_status *(*graph_add)(struct pawl_host_graph *graph, const char *name,
		const char *op, const char *const *inputs, int64_t n_inputs, const char *attrs,
		const char *type);
	struct pawl_host_status *(*graph_output)(struct pawl_host_graph *graph, const char *name);
	/*
	 * Appends the nodes that `node` hands over: called with i = 0, 1, ... it fills *out, whose
	 * struct_size is Pawl's, and returns 1; 0: there are no more; negative: the host failed
	 * (PAWL_CODE_ENVIRONMENT).  A failure leaves the nodes before it in the graph.
	 */
	struct pawl_host_status *(*graph_add_all)(struct pawl_host_graph *graph,
		int (*node)(void *user, int64_t i, struct pawl_host_node *out), void *user);
	/* The graph in text form. */
	struct pawl_host_status *(*graph_to_text)(
		const struct pawl_host_graph *graph, pawl_sink *sink, void *user);
	void (*graph_release)(struct pawl_host_graph *graph);

	/* --- plan: immutable, shareable --- */

	/*
	 * Optimizes and compiles: the expensive call, once.  The graph stays as it is.
	 * PAWL_CODE_UNSUPPORTED names the step and the op that the target cannot do.
	 */
	struct pawl_host_status *(*plan_compile)(
		struct pawl_host_graph *graph, struct pawl_host_plan **out);
	/*
	 * A plan for a graph that differs from that of `like` in the capacity of its caches only,
	 * from the code of `like`: nothing is optimized or compiled.  PAWL_CODE_UNSUPPORTED where
	 * it differs in more; compile it.
	 */
	struct pawl_host_status *(*plan_regrow)(struct pawl_host_plan *like,
		struct pawl_host_graph *graph, struct pawl_host_plan **out);
	void (*plan_retain)(struct pawl_host_plan *plan);
	void (*plan_release)(struct pawl_host_plan *plan);
	/*
	 * Binding i = 0, 1, ...; 0, and *out left alone, when i is out of range.  First the outputs
	 * in their order, so that output i is binding i.  What the passes have removed is not
	 * there.
	 */
	int (*plan_binding)(
		const struct pawl_host_plan *plan, int64_t i, struct pawl_binding *out);
	/* The first binding of that name and role, -1 when there is none. */
	int64_t (*plan_find)(
		const struct pawl_host_plan *plan, int64_t role, const char *name);
	/* The plan as JSON (docs/plan-schema.json); the same plan gives the same bytes. */
	struct pawl_host_status *(*plan_to_json)(
		const struct pawl_host_plan *plan, pawl_sink *sink, void *user);
	/* What sessions of these plans over one set of weights and one cache will take. */
	struct pawl_host_status *(*plans_forecast)(struct pawl_host_plan *const *plans,
		int64_t n_plans, struct pawl_memory_needs *out);

	/* --- weights: the host's, lent; packed once for all sessions --- */

	/* options may be NULL. */
	struct pawl_host_status *(*weights_create)(struct pawl_host_context *context,
		const struct pawl_weight_options *options, struct pawl_host_weights **out);
	/*
	 * Lends one: n_bytes of type, row-major, aligned to 4 bytes, until the weights and all
	 * sessions of them are released.  Names are those of the consts of graphs.  Matrices are
	 * read where they lie unless the target packs them; vectors are copied.  Not while another
	 * thread makes a session.
	 */
	struct pawl_host_status *(*weights_add)(struct pawl_host_weights *weights,
		const char *name, const char *type, const void *bytes, size_t n_bytes);
	void (*weights_release)(struct pawl_host_weights *weights);

	/* --- cache: the kv consts of a plan as one thing, with a length and an identity --- */

	/*
	 * A cache for the kv consts of a plan and its like, which must be named
	 *   cache.k.<layer>, cache.v.<layer>    [1, heads, positions, width] each; those with fewer
	 *                                       positions than the rest are rings
	 *   cache.<slot>.<layer>                [positions, ...]: latents, up to 4 slots
	 * of layers 0, 1, ...; otherwise PAWL_CODE_UNSUPPORTED, and session_bind is for those,
	 * batches [n, heads, ...] among them.  A pool of blocks is a cache of as many positions as
	 * all its blocks have.  Empty; zeroed unless lent.  options may be NULL.
	 */
	struct pawl_host_status *(*cache_create)(struct pawl_host_plan *plan,
		const struct pawl_cache_options *options, struct pawl_host_cache **out);
	void (*cache_release)(struct pawl_host_cache *cache);
	int64_t (*cache_len)(const struct pawl_host_cache *cache);
	int64_t (*cache_capacity)(const struct pawl_host_cache *cache);
	/*
	 * Says that the first n positions hold what they should: after the host wrote them, or to
	 * forget what lies behind.  PAWL_CODE_CAPACITY beyond the capacity.  With rings: less than
	 * what they still hold forgets all (*len, may be NULL, is the length that came of it).
	 */
	struct pawl_host_status *(*cache_set_len)(
		struct pawl_host_cache *cache, int64_t n, int64_t *len);
	/*
	 * The memory of a kv const, of the plan's type, until the cache grows, is owned or
	 * released.  PAWL_CODE_UNSUPPORTED where it is the target's own.
	 */
	struct pawl_host_status *(*cache_memory)(struct pawl_host_cache *cache, const char *name,
		void **bytes, size_t *n_bytes);
	/*
	 * Room for n positions at least: larger memory (Pawl's) with the same content; rings stay.
	 * Plans for the old capacity are stale then: plan_regrow.  PAWL_CODE_OUT_OF_MEMORY names
	 * the size.
	 */
	struct pawl_host_status *(*cache_reserve)(struct pawl_host_cache *cache, int64_t n);
	/*
	 * A cache of the same content; nothing is copied until a session moves to one of the two,
	 * which then gets memory of its own.  A session of the other must be moved to it again.
	 */
	struct pawl_host_status *(*cache_fork)(
		struct pawl_host_cache *cache, struct pawl_host_cache **out);
	/*
	 * A snapshot of the content with the n_tokens >= length tokens that made it.  model: the
	 * host's number for weights and graph, the same in every process.
	 */
	struct pawl_host_status *(*cache_save)(const struct pawl_host_cache *cache, uint64_t model,
		const uint32_t *tokens, int64_t n_tokens, pawl_sink *sink, void *user);
	/*
	 * Takes over content and length of a snapshot of n_bytes, proved whole first, of the same
	 * model, geometry and activation bits; the capacity may differ.  Up to max_tokens of its
	 * tokens are written to tokens (may be NULL), *n_tokens (may be NULL) is how many it has.
	 */
	struct pawl_host_status *(*cache_restore)(struct pawl_host_cache *cache, uint64_t model,
		const void *bytes, size_t n_bytes, uint32_t *tokens, int64_t max_tokens,
		int64_t *n_tokens);

	/* --- session: one thread's run state of a plan --- */

	/* weights: NULL for a plan without.  Packs what no session of them has packed yet. */
	struct pawl_host_status *(*session_create)(struct pawl_host_plan *plan,
		struct pawl_host_weights *weights, struct pawl_host_session **out);
	void (*session_release)(struct pawl_host_session *session);
	/*
	 * Lends memory to a kv const: n_bytes of its size, aligned to 64 bytes, until bound anew or
	 * the session is released.  The host keeps lengths itself.  Cheap, allocates nothing that
	 * stays.  Memory that two kv consts or a kv and a weight share is refused by the next run.
	 * Leaves the session without a cache.  PAWL_CODE_UNSUPPORTED where the target has memory of
	 * its own.
	 */
	struct pawl_host_status *(*session_bind)(
		struct pawl_host_session *session, int64_t binding, void *bytes, size_t n_bytes);
	/*
	 * Moves the session to a cache, under a guard that proves it interchangeable with what the
	 * plan was made for: ok for KEPT and REBOUND, else PAWL_CODE_STALE, and the session is as
	 * before. report may be NULL; it is filled in both cases.  The session keeps the cache
	 * alive.  A cache of another context is PAWL_CODE_INVALID_ARGUMENT.
	 */
	struct pawl_host_status *(*session_use_cache)(struct pawl_host_session *session,
		struct pawl_host_cache *cache, struct pawl_cache_report *report);
	/* New bytes for a data const: lent until the next run, which copies them. */
	struct pawl_host_status *(*session_set)(struct pawl_host_session *session,
		int64_t binding, const void *bytes, size_t n_bytes);
	/* The value of a symbol for the next run; forgotten after it. */
	struct pawl_host_status *(*session_set_symbol)(
		struct pawl_host_session *session, int64_t binding, int64_t value);
	/*
	 * One run.  Everything must be bound and every index in range, otherwise nothing is
	 * written. n_new: positions that it appends to the session's cache, whose length grows by
	 * them on success; they must fit.  0: the length stays.  PAWL_CODE_STALE when the cache has
	 * other memory than when the session moved to it: session_use_cache.  Allocates nothing.
	 * After a failure the outputs, and positions of caches behind their length, may have any
	 * value.
	 */
	struct pawl_host_status *(*session_run)(
		struct pawl_host_session *session, int64_t n_new);
	/*
	 * Output i of the graph after a run; valid until the next, or until what it lies in is
	 * bound anew.  PAWL_CODE_INVALID_ARGUMENT unless the last run succeeded;
	 * PAWL_CODE_UNSUPPORTED for state that lies in the target's own memory.
	 */
	struct pawl_host_status *(*session_output)(const struct pawl_host_session *session,
		int64_t i, const void **bytes, size_t *n_bytes);

	/*
	 * Appends statements of the text form to a graph that graph_create made, one a line: what
	 * stands between the braces.  A failure leaves the statements before it in the graph.
	 */
	struct pawl_host_status *(*graph_add_text)(
		struct pawl_host_graph *graph, const char *text, size_t n);

	/*
	 * --- drivers: for hosts that leave caches, lengths and the kinds of steps to Pawl ---
	 *
	 * A model is shareable, its callbacks are called by whichever thread drives it.  A decoder
	 * or a pool belongs to one thread at a time.  Logits are valid until the driver's next
	 * call.  A call that fails has appended nothing, and may be made again.  Tokens are ids
	 * below n_vocab.
	 */

	/* Callbacks are called until the model and all made from it are released. */
	struct pawl_host_status *(*model_create)(struct pawl_host_context *context,
		struct pawl_host_weights *weights, const struct pawl_model_options *options,
		struct pawl_host_model **out);
	void (*model_release)(struct pawl_host_model *model);

	/* One sequence in a cache of its own. */
	struct pawl_host_status *(*decoder_create)(struct pawl_host_model *model,
		const struct pawl_decoder_settings *settings, struct pawl_host_decoder **out);
	void (*decoder_release)(struct pawl_host_decoder *decoder);
	/*
	 * Appends n >= 1 tokens, a prompt in chunks; the logits after the last, n_vocab (may be
	 * NULL).
	 */
	struct pawl_host_status *(*decoder_append)(struct pawl_host_decoder *decoder,
		const uint32_t *tokens, int64_t n, const float **logits);
	/*
	 * Appends n >= 1 tokens in one run of rows >= n, for which there must be room; the logits
	 * after each, [n][n_vocab].  With decoder_set_len what verifying a guess takes.
	 */
	struct pawl_host_status *(*decoder_verify)(struct pawl_host_decoder *decoder,
		const uint32_t *tokens, int64_t n, int64_t rows, const float **logits);
	int64_t (*decoder_len)(const struct pawl_host_decoder *decoder);
	int64_t (*decoder_capacity)(const struct pawl_host_decoder *decoder);
	/* Forgets what lies at n <= length and beyond; rings as cache_set_len. */
	struct pawl_host_status *(*decoder_set_len)(
		struct pawl_host_decoder *decoder, int64_t n, int64_t *len);
	/* Room for n positions at least; plans are regrown from their code. */
	struct pawl_host_status *(*decoder_reserve)(struct pawl_host_decoder *decoder, int64_t n);
	/* As cache_save and cache_restore, for the model's number. */
	struct pawl_host_status *(*decoder_save)(const struct pawl_host_decoder *decoder,
		const uint32_t *tokens, int64_t n_tokens, pawl_sink *sink, void *user);
	struct pawl_host_status *(*decoder_restore)(struct pawl_host_decoder *decoder,
		const void *bytes, size_t n_bytes, uint32_t *tokens, int64_t max_tokens,
		int64_t *n_tokens);

	/*
	 * Many sequences over one pool of blocks; a step decodes up to 8 of them in one run.
	 * Sequences, prefixes and handles are numbers that never come back.  PAWL_CODE_CAPACITY
	 * when blocks run out.
	 */
	struct pawl_host_status *(*pool_create)(struct pawl_host_model *model,
		const struct pawl_pool_settings *settings, struct pawl_host_pool **out);
	void (*pool_release)(struct pawl_host_pool *pool);
	struct pawl_host_status *(*pool_open)(struct pawl_host_pool *pool, uint64_t *sequence);
	struct pawl_host_status *(*pool_close)(struct pawl_host_pool *pool, uint64_t sequence);
	/* A sequence of the same content; blocks are shared until one of the two writes there. */
	struct pawl_host_status *(*pool_fork)(
		struct pawl_host_pool *pool, uint64_t sequence, uint64_t *fork);
	/* -1 when it is not open. */
	int64_t (*pool_len)(const struct pawl_host_pool *pool, uint64_t sequence);
	struct pawl_host_status *(*pool_set_len)(
		struct pawl_host_pool *pool, uint64_t sequence, int64_t n);
	int64_t (*pool_free_blocks)(const struct pawl_host_pool *pool);
	/* As decoder_append. */
	struct pawl_host_status *(*pool_append)(struct pawl_host_pool *pool, uint64_t sequence,
		const uint32_t *tokens, int64_t n, const float **logits);
	/* One token for each of 1 to 8 different sequences; logits [n][n_vocab] in their order. */
	struct pawl_host_status *(*pool_step)(struct pawl_host_pool *pool,
		const uint64_t *sequences, const uint32_t *tokens, int64_t n, const float **logits);
	/*
	 * Takes the blocks that are a sequence's alone out of the pool and keeps their bytes; until
	 * pool_restore puts them back, the sequence is refused if *n_freed (may be NULL) is not 0.
	 */
	struct pawl_host_status *(*pool_evict)(struct pawl_host_pool *pool, uint64_t sequence,
		uint64_t *handle, int64_t *n_freed);
	struct pawl_host_status *(*pool_restore)(struct pawl_host_pool *pool, uint64_t handle);
	/*
	 * Keeps the first n tokens of a sequence, whole blocks, for others; they are its first
	 * tokens.
	 */
	struct pawl_host_status *(*pool_keep_prefix)(struct pawl_host_pool *pool, uint64_t sequence,
		const uint32_t *tokens, int64_t n, uint64_t *prefix);
	/*
	 * Makes an empty sequence begin with the most whole blocks that some prefix has in common
	 * with the tokens, less one block if that were all n, so that a token is left to run.
	 * *n_shared: how many tokens are there now, 0: none are common.
	 */
	struct pawl_host_status *(*pool_use_prefix)(struct pawl_host_pool *pool, uint64_t sequence,
		const uint32_t *tokens, int64_t n, int64_t *n_shared);
	struct pawl_host_status *(*pool_drop_prefix)(struct pawl_host_pool *pool, uint64_t prefix);

	/*
	 * --- scheduler: many requests over a pool; who gets blocks, who waits, who runs next ---
	 *
	 * Belongs to the thread of its pool.  Tokens and logits of a request are bit for bit those of
	 * the request alone, whatever the batches, evictions and shared prefixes.  Requests are
	 * numbers that are never 0 and never come back; an unknown one is PAWL_CODE_INVALID_ARGUMENT.
	 */

	/*
	 * Takes a pool of which no block is in use.  Until the scheduler is released its calls are
	 * refused, but for pool_len, pool_free_blocks and pool_release.
	 */
	struct pawl_host_status *(*scheduler_create)(struct pawl_host_pool *pool,
		const struct pawl_scheduler_settings *settings, struct pawl_host_scheduler **out);
	/* All blocks are free again, whatever the requests were at.  Tells no events. */
	void (*scheduler_release)(struct pawl_host_scheduler *scheduler);
	/* PAWL_CODE_CAPACITY, naming both sizes, when the request could never fit. */
	struct pawl_host_status *(*scheduler_submit)(struct pawl_host_scheduler *scheduler,
		const struct pawl_request_settings *settings, uint64_t *request);
	/* Ends a request that has not ended. */
	struct pawl_host_status *(*scheduler_cancel)(
		struct pawl_host_scheduler *scheduler, uint64_t request);
	/*
	 * Takes a request's blocks and keeps it out until scheduler_restore lets it come back, in
	 * its turn.
	 */
	struct pawl_host_status *(*scheduler_evict)(
		struct pawl_host_scheduler *scheduler, uint64_t request);
	struct pawl_host_status *(*scheduler_restore)(
		struct pawl_host_scheduler *scheduler, uint64_t request);
	/*
	 * Admits what fits, runs at most one chunk of prompts and one batch.  A failure is none of a
	 * request's: nothing is lost, and the call may be made again.
	 */
	struct pawl_host_status *(*scheduler_step)(struct pawl_host_scheduler *scheduler);
	/* Whether a step would do anything. */
	int (*scheduler_has_work)(const struct pawl_host_scheduler *scheduler);
	struct pawl_host_status *(*scheduler_report)(const struct pawl_host_scheduler *scheduler,
		uint64_t request, struct pawl_request_report *out);
	/* Of the requests that have ended, and were not forgotten, the first to end; 0: none. */
	uint64_t (*scheduler_finished)(const struct pawl_host_scheduler *scheduler);
	/* Forgets a request that has ended. */
	struct pawl_host_status *(*scheduler_forget)(
		struct pawl_host_scheduler *scheduler, uint64_t request);
	struct pawl_host_status *(*scheduler_drop_prefixes)(struct pawl_host_scheduler *scheduler);
	/* As context_counter: requests by phase and by how they ended, blocks, runs. */
	int (*scheduler_counter)(const struct pawl_host_scheduler *scheduler, int64_t i,
		struct pawl_counter *out);

	/*
	 * --- speculation: a run computes a token and a guess of what follows ---
	 *
	 * As far as the host then goes where the guess went, logits are there already.  They are bit
	 * for bit those of decoder_append, whatever is guessed and however tokens are chosen.
	 * Belongs to the thread of its decoder or pool.
	 */

	/* Over a decoder, which may be ahead by what is guessed until speculation_settle. */
	struct pawl_host_status *(*speculation_create)(struct pawl_host_decoder *decoder,
		const struct pawl_speculation_settings *settings,
		struct pawl_host_speculation **out);
	/* Over a sequence of a pool, of which a guess holds blocks until speculation_settle. */
	struct pawl_host_status *(*speculation_of_sequence)(struct pawl_host_pool *pool,
		uint64_t sequence, const struct pawl_speculation_settings *settings,
		struct pawl_host_speculation **out);
	/* Leaves the sequence as it is; settle first. */
	void (*speculation_release)(struct pawl_host_speculation *speculation);
	/*
	 * Says which n tokens the decoder holds: after a prompt, or after anything else than steps
	 * changed its length.  PAWL_CODE_INVALID_ARGUMENT when it holds another number of them.
	 */
	struct pawl_host_status *(*speculation_begin)(
		struct pawl_host_speculation *speculation, const uint32_t *tokens, int64_t n);
	/* Appends a token; the logits after it, n_vocab, until the next call. */
	struct pawl_host_status *(*speculation_step)(struct pawl_host_speculation *speculation,
		uint32_t token, const float **logits);
	/* The decoder holds exactly the tokens that were appended. */
	struct pawl_host_status *(*speculation_settle)(struct pawl_host_speculation *speculation);
	/* As context_counter: tokens guessed, guesses that came true, runs. */
	int (*speculation_counter)(const struct pawl_host_speculation *speculation, int64_t i,
		struct pawl_counter *out);
};

/*
 * *version: in, the newest that the host knows; out, the newest that both know.  Returns 0, leaving
 * *version alone, when there is none.  Any thread; may be called before anything else.
 */
PAWL_API int pawl_negotiate(uint32_t *version);
/* The table of a negotiated version, for the life of the process; NULL for one not offered. */
PAWL_API const struct pawl_api *pawl_get_api(uint32_t version);

#ifdef __cplusplus
}
#endif

#endif
