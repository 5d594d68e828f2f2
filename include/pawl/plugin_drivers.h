/*
 * What a host gives and gets that leaves caches, lengths and the kinds of steps to Pawl: models,
 * decoders, pools, schedulers and speculation.  Included by pawl/plugin.h, which states the rules.
 */
#ifndef PAWL_PLUGIN_DRIVERS_H
#define PAWL_PLUGIN_DRIVERS_H

#include <pawl/plugin_base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Numbers are fixed for good. */
enum pawl_step_logits {
	PAWL_STEP_LOGITS_NONE = 0,
	PAWL_STEP_LOGITS_LAST = 1, /* [1, n_vocab], of the last token */
	PAWL_STEP_LOGITS_ALL = 2   /* [n_tokens, n_vocab] */
};

/*
 * A step that a driver wants the graph of; docs/hosts.md has one whole.  Its consts:
 *   kv    cache.k.<layer> of k_type, cache.v.<layer> of v_type; of the window's layers,
 *         where ring is not 0, of ring_k_type and ring_v_type; all written by every step
 *   data  token_ids u32[n_tokens]; as it needs them rope_cos, rope_sin, window_cos, window_sin
 *         f32[n_tokens, rope_width], positions i64[n_tokens]; where n_sequences is 0 offset i64[],
 *         mask [n_tokens, capacity] of f32, f16 or bf16, 0 where a row sees a position, else
 *         -inf; otherwise write_index i64[n_tokens], block_table u32[n_sequences, max_blocks]
 *   weights  all others, by name
 * Symbols, as it needs them, of that range or a larger one:
 *   attended_len  n_tokens..capacity; where n_sequences is not 0, 1..max_blocks * block_size
 *   cached_len    0..capacity - n_tokens, where n_sequences is 0
 * Output 0: the logits, f32 of enum pawl_step_logits, unless there are none.  What is written to
 * caches need not be an output.
 *
 * Where one of these, or of the sizes in pawl_model_options, is otherwise in the graph, the call of
 * the driver is PAWL_CODE_INVALID_GRAPH and says what it found and what it asked for; nothing was
 * run, and the next call asks for the graph again.
 */
struct pawl_step_request {
	size_t struct_size;
	int64_t n_tokens;
	int64_t capacity; /* positions of the cache, of all blocks together */
	int64_t logits;   /* enum pawl_step_logits */
	const char *k_type, *v_type, *ring_k_type, *ring_v_type;
	int64_t ring; /* positions of a ring; 0: there are none */
	/*
	 * 0: one sequence in order.  Else n_tokens is a multiple of it, and the caches are in
	 * blocks.
	 */
	int64_t n_sequences, block_size, max_blocks;
};

/* A model as a host has it. */
struct pawl_model_options {
	size_t struct_size;
	int64_t n_layers; /* 1 to 1024 */
	int64_t n_kv_heads, head_dim, n_vocab;
	int64_t rope_width;  /* values of a row of the tables, two of each pair; 0: none */
	int64_t rope_halves; /* 1: element i turns with i + rope_width / 2; 0: adjacent elements */
	int64_t window;      /* that attention of window_layers sees, 0: none has one */
	const int64_t *window_layers;
	int64_t n_window_layers;
	uint64_t model; /* as of cache_save; 0: snapshots are declined */
	/*
	 * Fills graph, by the calls of graphs; called when a kind of step is run first.  0: done;
	 * anything else ends the call of the driver with PAWL_CODE_ENVIRONMENT.
	 */
	int (*build)(void *user, const struct pawl_step_request *request,
		struct pawl_host_graph *graph);
	/*
	 * Row of the rope tables for one position, rope_width values each: cos[j] is the cosine of
	 * the angle by which element j of a head turns, so each pair's value is there twice, at
	 * j = 2i and 2i + 1, or where rope_halves is 1 at i and i + rope_width / 2.  NULL without.
	 */
	void (*rope)(void *user, int64_t position, float *cos, float *sin);
	/* The same for window_layers; NULL: as all. */
	void (*window_rope)(void *user, int64_t position, float *cos, float *sin);
	void *user;
};

struct pawl_decoder_settings {
	size_t struct_size;
	int64_t capacity;    /* positions */
	const char *kv_type; /* "f16", "bf16", "f32", "q8_0"; NULL: "f16" */
	/*
	 * Tokens of a prompt in one run, 1 to 4096; 0: 32.  A rest of at most a quarter of it, and
	 * where it has no room a longer one, goes token by token, as does the last token always.
	 */
	int64_t prefill_chunk;
	int64_t rings;         /* not 0: layers with a window keep rings where that is less */
	int64_t ring_rollback; /* positions that may be taken back from rings */
};

struct pawl_pool_settings {
	size_t struct_size;
	int64_t n_blocks;      /* of all sequences together; the cache has n_blocks * block_size */
	int64_t block_size;    /* positions of a block, a multiple of 16 */
	int64_t max_blocks;    /* of one sequence, 1 to n_blocks: it grows to as many positions */
	const char *kv_type;   /* as of pawl_decoder_settings */
	int64_t prefill_chunk; /* the same */
};

/* Numbers are fixed for good. */
enum pawl_scheduled_event_kind {
	PAWL_SCHEDULED_ADMITTED = 0, /* also after it was put back */
	PAWL_SCHEDULED_TOKEN = 1,
	PAWL_SCHEDULED_SUSPENDED = 2, /* evicted, or put back to where its prompt begins */
	PAWL_SCHEDULED_RESTORED = 3,
	PAWL_SCHEDULED_ENDED = 4
};

/* What happened to a request. */
struct pawl_scheduled_event {
	size_t struct_size;
	uint64_t request;
	int64_t kind;        /* enum pawl_scheduled_event_kind */
	uint64_t token;      /* of TOKEN */
	const float *logits; /* of TOKEN: what it was chosen from, n_vocab; during the call */
};

struct pawl_scheduler_settings {
	size_t struct_size;
	int64_t max_batch; /* requests in one run: 1, 2, 4 or 8 */
	/*
	 * 0: a request is admitted when its last token has room too.  1: when its prompt has; where
	 * that was too bold, the request that is last in order is evicted and comes back by itself.
	 */
	int64_t optimistic;
	int64_t max_prefixes; /* beginnings of prompts kept for later ones; 0: none is shared */
	/* NULL, or told in order, on the thread of the call; must not call the scheduler or its pool. */
	void (*event)(void *user, const struct pawl_scheduled_event *event);
	void *user;
};

/* A prompt to be continued. */
struct pawl_request_settings {
	size_t struct_size;
	const uint32_t *prompt;
	int64_t n_prompt;
	int64_t max_new;     /* tokens, at least 1 */
	const uint32_t *eos; /* a token that ends the request, and is not among its tokens */
	int64_t n_eos;
	int64_t priority;   /* 0 to 3; the higher go first and are evicted last */
	int64_t no_sharing; /* not 0: neither uses nor leaves a prefix */
	/*
	 * Chooses a token by n_vocab logits and returns 0; anything else, or a token that the model
	 * does not have, ends the request.  NULL: the largest, the lowest id of equal ones.  Called
	 * as event, until the request has ended.
	 */
	int (*sample)(void *user, const float *logits, uint32_t *token);
	void *user;
};

/* Numbers are fixed for good. */
enum pawl_scheduled_phase {
	PAWL_SCHEDULED_WAITING = 0, /* holds no blocks */
	PAWL_SCHEDULED_PREFILLING = 1,
	PAWL_SCHEDULED_DECODING = 2,
	PAWL_SCHEDULED_EVICTED = 3,
	PAWL_SCHEDULED_FINISHED = 4
};

/* Numbers are fixed for good. */
enum pawl_scheduled_finish {
	PAWL_SCHEDULED_NOT_YET = 0,
	PAWL_SCHEDULED_EOS = 1,
	PAWL_SCHEDULED_LENGTH = 2,
	PAWL_SCHEDULED_CANCELLED = 3,
	PAWL_SCHEDULED_ERROR = 4
};

/* Where a request is.  Steps are counted from 1; 0: not yet.  Pointers: until the next call. */
struct pawl_request_report {
	size_t struct_size;
	int64_t phase;      /* enum pawl_scheduled_phase */
	int64_t finish;     /* enum pawl_scheduled_finish */
	const char *error;  /* a line, of ERROR; else NULL */
	int64_t n_prompt, n_new;
	const uint32_t *tokens; /* n_new of them */
	int64_t n_shared;       /* prompt tokens that were taken from a prefix */
	int64_t submit_step, admit_step, first_token_step, finish_step;
	int64_t n_evictions, n_restores;
	int64_t n_recomputes; /* times its blocks were lost, not kept */
};

/* Who guesses how a sequence goes on: propose, else draft, else a lookup in the sequence. */
struct pawl_speculation_settings {
	size_t struct_size;
	int64_t n_guess;  /* tokens: 1 to 31, of a pool to 7, over rings as many as they take */
	int64_t capacity; /* tokens of the sequence; 0: of the decoder or the pool as it is now */
	/*
	 * What may follow tokens[0 .. n): writes at most `most` tokens and their number, which may
	 * be 0, and returns 0; anything else ends the step with PAWL_CODE_ENVIRONMENT.  On the
	 * thread of the step.
	 */
	int (*propose)(void *user, const uint32_t *tokens, int64_t n, int64_t most, uint32_t *guess,
		int64_t *n_guess);
	void *user;
	/*
	 * A smaller model of the same vocabulary, of the same context; the speculation's from then
	 * on, whatever it holds.
	 */
	struct pawl_host_decoder *draft;
	/*
	 * The lookup: what followed the last time that the sequence ended in the same tokens, so
	 * many at least and at most; 0: 2 and 4.
	 */
	int64_t least_repeat, most_repeat;
};

#ifdef __cplusplus
}
#endif

#endif
