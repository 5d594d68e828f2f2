/*
 * What every host of pawl/plugin.h gives and gets: outcomes, handles, services, plans and what they
 * take, caches.  Included by it, which states the rules.
 */
#ifndef PAWL_PLUGIN_BASE_H
#define PAWL_PLUGIN_BASE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Numbers are fixed for good. */
enum pawl_status_code {
	PAWL_CODE_OK = 0,
	PAWL_CODE_INVALID_ARGUMENT = 1,
	PAWL_CODE_INVALID_FILE = 2, /* a snapshot */
	PAWL_CODE_INVALID_TEXT = 3,
	PAWL_CODE_INVALID_GRAPH = 4,
	PAWL_CODE_UNSUPPORTED = 5, /* declined: nothing here can do it */
	PAWL_CODE_OUT_OF_MEMORY = 6,
	PAWL_CODE_ENVIRONMENT = 7, /* the machine, a module or a callback of the host refused */
	PAWL_CODE_CAPACITY = 8,    /* a cache is full, an index out of range */
	PAWL_CODE_SYMBOL = 9,      /* unbound, bound to two values, out of range */
	PAWL_CODE_STALE = 10,      /* declined: a plan does not fit what it is asked to serve */
	PAWL_CODE_INTERNAL = 11    /* a bug in Pawl */
};

struct pawl_host_status;
struct pawl_host_context;
struct pawl_host_graph;
struct pawl_host_plan;
struct pawl_host_weights;
struct pawl_host_cache;
struct pawl_host_session;
struct pawl_host_model;
struct pawl_host_decoder;
struct pawl_host_pool;
struct pawl_host_scheduler;
struct pawl_host_speculation;

/*
 * Receives text or bytes piece by piece; returns 0 to go on, else the call ends
 * (PAWL_CODE_ENVIRONMENT).
 */
typedef int pawl_sink(void *user, const void *bytes, size_t n);

/*
 * What the host lends; copied by context_create, and called until the last handle made in the
 * context is released.  Any member may be NULL.
 */
struct pawl_services {
	size_t struct_size;
	void *user;
	/* level: 0 error, 1 warning, 2 information.  A line without its end.  Any thread. */
	void (*log)(void *user, int level, const char *message);
	/*
	 * Memory of caches, packed weights, scratch and data; not of the small objects that
	 * describe them, nor of code.  n_bytes is a multiple of alignment, a power of two; need not
	 * be zeroed; NULL, or memory that is not so aligned: there is none
	 * (PAWL_CODE_OUT_OF_MEMORY).  Both or none.  Any thread.
	 */
	void *(*alloc)(void *user, size_t n_bytes, size_t alignment);
	void (*free)(void *user, void *bytes, size_t n_bytes);
	/*
	 * Threads for runs and packing, in place of Pawl's own.  Calls part(arg, i) once for each i
	 * below n, all at the same time, since they wait for each other; returns 0 when all have
	 * returned, anything else when none was called (the caller then works alone).  Called on
	 * the thread of the call that runs or packs, never by two at a time for one session or
	 * driver.  context_create tries it and fails where the parts do not all run at once.
	 */
	int (*parallel_for)(
		void *user, int64_t n, void (*part)(void *arg, int64_t i), void *arg);
	/*
	 * Asked now and then on the calling thread of plan_compile and of whatever runs a plan
	 * whether to give up: non-zero ends the call with PAWL_CODE_ENVIRONMENT.
	 */
	int (*is_aborted)(void *user);
};

struct pawl_context_options {
	size_t struct_size;
	/* "cpu", "ref" or another; NULL: "cpu".  Its module is looked for in the folders of
	 * PAWL_PLUGIN_PATH, beside this one, then where modules are installed. */
	const char *target;
	int64_t n_threads;       /* of a session; 0: what affinity and quota allow */
	int64_t activation_bits; /* of the inputs of quantized matmuls, 16 or 8; 0: 16 */
};

/* Numbers are fixed for good. */
enum pawl_binding_role {
	PAWL_BINDING_WEIGHT = 0, /* of the plan's weights */
	PAWL_BINDING_KV = 1,     /* state: session_bind, or the session's cache */
	PAWL_BINDING_DATA = 2,   /* session_set, for each run */
	PAWL_BINDING_SYMBOL = 3, /* session_set_symbol, for each run */
	PAWL_BINDING_OUTPUT = 4  /* session_output */
};

/* Something of a plan that a host gives or gets; strings live as long as the plan. */
struct pawl_binding {
	size_t struct_size;
	const char *name; /* of the const, the symbol, or the node that is an output */
	int64_t role;     /* enum pawl_binding_role */
	const char *type; /* as the host sees it, symbols at their largest; of a symbol "" */
	int64_t n_bytes;  /* of a value of that type; of a symbol 0 */
	int64_t min, max, multiple; /* of a symbol, else 0 */
};

/* One node of a host's graph, for graph_from_host; lent until the next is asked for. */
struct pawl_host_node {
	size_t struct_size;
	const char *name, *op;
	const char *const *inputs; /* names of earlier nodes */
	int64_t n_inputs;
	const char *attrs; /* as of graph_add */
	const char *type;
	int64_t is_output;
};

struct pawl_memory_needs {
	size_t struct_size;
	int64_t weights; /* packed and copied by Pawl, once for all sessions of the weights */
	int64_t read;    /* weights that are read where the host has them */
	int64_t kv;
	int64_t scratch; /* of one session of each plan: temporaries, outputs, memory of threads */
	int64_t data;    /* of the same: data consts and literals */
	int64_t code;    /* of all plans of the target so far */
};

/* A value and what it counts, "rebuilds.stale"; the names are for the life of the process. */
struct pawl_counter {
	size_t struct_size;
	const char *name;
	uint64_t value;
};

struct pawl_weight_options {
	size_t struct_size;
	/*
	 * NULL, or told of bytes of a lent weight that were copied and will hardly be read again,
	 * so that their pages may go; they must still be there when read.  Any thread.
	 */
	void (*unneeded)(void *user, const void *bytes, size_t n);
	void *user;
};

struct pawl_cache_options {
	size_t struct_size;
	/*
	 * NULL: the memory is Pawl's.  Else asked for the memory of each kv const: n_bytes, aligned
	 * to 64 bytes, apart from all others; lent until returned.  NULL ends the call with
	 * PAWL_CODE_OUT_OF_MEMORY; PAWL_CODE_UNSUPPORTED where a target has memory of its own.
	 */
	void *(*memory)(void *user, const char *name, size_t n_bytes);
	/* NULL, or told of memory that is no longer used; also when cache_create fails. */
	void (*returned)(void *user, void *bytes);
	void *user; /* of both */
};

/* Numbers are fixed for good. */
enum pawl_cache_verdict {
	PAWL_CACHE_KEPT = 0,    /* the session used this very memory already */
	PAWL_CACHE_REBOUND = 1, /* the session moved to it */
	PAWL_CACHE_STALE = 2,   /* the plan is for another geometry: field, held, asked */
	PAWL_CACHE_REFUSED = 3  /* its memory cannot take the place of the plan's: reason, name */
};

/*
 * Why a session does or does not use a cache; strings are for the life of the process but for name.
 */
struct pawl_cache_report {
	size_t struct_size;
	int64_t verdict;    /* enum pawl_cache_verdict */
	const char *field;  /* STALE: "max_seq_len", "cache_dtype", ...; else "none" */
	uint64_t held, asked; /* STALE: its values */
	const char *reason; /* REFUSED: "shared", "shape differs", "aliased", ...; else "none" */
	const char *name;   /* REFUSED: of the kv const, lives as long as the plan; else NULL */
};

#ifdef __cplusplus
}
#endif

#endif
