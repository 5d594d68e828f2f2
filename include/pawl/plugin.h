/*
 * The C ABI between Pawl and a host executor.
 *
 * A host opens the module (pawl_plugin.so) or links libpawl, calls pawl_negotiate and pawl_get_api,
 * and uses the table from then on.  Nothing of Pawl aborts, exits, prints or unwinds across this
 * border.
 *
 *	uint32_t version = PAWL_ABI_VERSION;
 *	if (!pawl_negotiate(&version))  ...  the library is older than this header's oldest
 *	const struct pawl_api *api = pawl_get_api(version);
 *
 * Versions: tables and structs are append-only and start with their size in bytes.  Each side fills in
 * the size it knows; the other reads only fields inside of it.  A struct smaller than in version 1
 * is PAWL_CODE_INVALID_ARGUMENT.
 *
 * Errors: a fallible function returns NULL for success, otherwise a status object that the caller
 * frees with status_free.  Its outcomes are of three kinds: ok, declined (PAWL_CODE_UNSUPPORTED, with
 * the reason), and error.  A function that fails has changed nothing.
 *
 * Ownership: whoever creates an object destroys it; contexts outlive what was made in them.  Strings
 * and arrays are borrowed for the call unless stated.  NULL may be destroyed.
 *
 * Threads: api, context and plan may be used by many threads at once.  A graph or an instance belongs
 * to one thread at a time.
 */
#ifndef PAWL_PLUGIN_H
#define PAWL_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PAWL_ABI_VERSION 1u
#define PAWL_ABI_OLDEST 1u /* the oldest version this header describes a way to talk to */

#ifndef PAWL_API
#define PAWL_API __attribute__((visibility("default")))
#endif

/* Numbers are fixed for good; names through status_code_name. */
enum pawl_status_code {
	PAWL_CODE_OK = 0,
	PAWL_CODE_INVALID_ARGUMENT = 1,
	PAWL_CODE_INVALID_FILE = 2,
	PAWL_CODE_INVALID_TEXT = 3,
	PAWL_CODE_INVALID_GRAPH = 4,
	PAWL_CODE_UNSUPPORTED = 5, /* declined */
	PAWL_CODE_OUT_OF_MEMORY = 6,
	PAWL_CODE_ENVIRONMENT = 7,
	PAWL_CODE_CAPACITY = 8,
	PAWL_CODE_SYMBOL = 9,
	PAWL_CODE_STALE = 10,
	PAWL_CODE_INTERNAL = 11
};

struct pawl_status_object;
struct pawl_context;
struct pawl_host_graph;
struct pawl_host_plan;
struct pawl_instance;

/* What the host lends; copied by context_create.  Members may be NULL. */
struct pawl_host_services {
	size_t struct_size;
	/* level: 0 error, 1 warning, 2 information.  May be called from any thread. */
	void (*log)(void *user, int level, const char *message);
	void *user;
};

struct pawl_context_options {
	size_t struct_size;
	const char *target;      /* "cpu" or "ref"; NULL: "cpu".  Its module is looked for
	                            in PAWL_PLUGIN_PATH, then beside this one */
	int32_t n_threads;       /* of each instance's team; 0: what affinity and quota allow */
	int32_t activations;     /* 16 or 8 bits of quantized matmuls' inputs; 0: 16 */
};

/* A named value that an instance can be given or asked for. */
struct pawl_binding_info {
	size_t struct_size;
	const char *name;  /* of the const; belongs to the plan */
	const char *role;  /* "weight", "kv", "data" */
	const char *type;  /* text form, "f16[1, 3, 256, 64]@k16"; belongs to the plan */
	int64_t n_bytes;   /* at the largest extents */
};

/* Receives text piece by piece; returns 0 to go on, anything else to stop (PAWL_CODE_ENVIRONMENT). */
typedef int pawl_sink(void *user, const char *bytes, size_t n);

/* Counters since the context was made. */
struct pawl_api_counters {
	size_t struct_size;
	uint64_t optimizes;       /* graphs optimized into plans */
	uint64_t kernel_compiles; /* kernels generated */
	uint64_t runs;            /* instance_run that succeeded */
	uint64_t bytes_bound;     /* copied by instance_set_data */
};

struct pawl_api {
	size_t struct_size;
	uint32_t abi_version;
	const char *build_id;

	/* Valid until status_free. */
	enum pawl_status_code (*status_code)(const struct pawl_status_object *status);
	const char *(*status_message)(const struct pawl_status_object *status);
	void (*status_free)(struct pawl_status_object *status);

	/* options and services may be NULL. */
	struct pawl_status_object *(*context_create)(const struct pawl_host_services *services,
		const struct pawl_context_options *options, struct pawl_context **out);
	/* PAWL_CODE_INVALID_ARGUMENT, and nothing happens, while graphs, plans or instances live. */
	struct pawl_status_object *(*context_destroy)(struct pawl_context *context);
	void (*context_counters)(struct pawl_context *context, struct pawl_api_counters *out);

	/*
	 * A graph from its text form (grammar: docs/text-form.md), n bytes.  The message of
	 * PAWL_CODE_INVALID_TEXT names line and column.
	 */
	struct pawl_status_object *(*graph_from_text)(struct pawl_context *context, const char *text,
		size_t n, struct pawl_host_graph **out);
	/* An empty graph for graph_add. */
	struct pawl_status_object *(*graph_create)(
		struct pawl_context *context, const char *name, struct pawl_host_graph **out);
	/* Declares a symbol: min <= value <= max, a multiple of `multiple`. */
	struct pawl_status_object *(*graph_symbol)(struct pawl_host_graph *graph, const char *name,
		int64_t min, int64_t max, int64_t multiple);
	/*
	 * Appends one node.  name: of the result, unique, [A-Za-z_][A-Za-z0-9_.]*.  inputs: n_inputs
	 * names of earlier results.  attrs: "{eps = 1e-05}" or NULL.  type: of the result, as in the
	 * text form; it is checked against what the op infers.
	 */
	struct pawl_status_object *(*graph_add)(struct pawl_host_graph *graph, const char *name,
		const char *op, const char *const *inputs, int32_t n_inputs, const char *attrs,
		const char *type);
	struct pawl_status_object *(*graph_output)(struct pawl_host_graph *graph, const char *name);
	void (*graph_destroy)(struct pawl_host_graph *graph);

	/* Optimizes and compiles, once.  The graph is not changed and may be destroyed. */
	struct pawl_status_object *(*plan_compile)(
		struct pawl_host_graph *graph, struct pawl_host_plan **out);
	void (*plan_retain)(struct pawl_host_plan *plan);
	void (*plan_release)(struct pawl_host_plan *plan);
	int32_t (*plan_n_bindings)(const struct pawl_host_plan *plan);
	/* False (0) when i is out of range. */
	int (*plan_binding)(const struct pawl_host_plan *plan, int32_t i, struct pawl_binding_info *out);
	/* The plan as JSON (docs/plan-schema.json); the same plan gives the same bytes. */
	struct pawl_status_object *(*plan_to_json)(
		const struct pawl_host_plan *plan, pawl_sink *sink, void *user);

	/* Run state of a plan: pointer table, scratch memory, worker team.  References the plan. */
	struct pawl_status_object *(*instance_create)(
		struct pawl_host_plan *plan, struct pawl_instance **out);
	void (*instance_destroy)(struct pawl_instance *instance);
	/*
	 * Lends memory to a weight or kv const: n_bytes must be its size, the pointer aligned to the
	 * element (weights: 4, kv: 64 bytes).  Borrowed until bound anew or the instance is
	 * destroyed.  Weights may be copied into another layout now: changing them later needs a new
	 * bind.  Rebinding a kv is cheap and allocates nothing that stays.  The memory of two kv
	 * consts, or of a kv and a weight that is read where it lies, may overlap until the next run, which
	 * refuses it; a weight that was packed is read no more.
	 */
	struct pawl_status_object *(*instance_bind)(
		struct pawl_instance *instance, const char *name, void *bytes, size_t n_bytes);
	/* New bytes for a data const: borrowed until the next run, which copies them. */
	struct pawl_status_object *(*instance_set_data)(
		struct pawl_instance *instance, const char *name, const void *bytes, size_t n_bytes);
	/* The value of a symbol for the next run; forgotten after it. */
	struct pawl_status_object *(*instance_set_symbol)(
		struct pawl_instance *instance, const char *name, int64_t value);
	/*
	 * One run.  Everything must be bound and every index in range, otherwise nothing is written.
	 * Allocates nothing.
	 */
	struct pawl_status_object *(*instance_run)(struct pawl_instance *instance);
	/*
	 * Output i of the graph after a run; valid until the next.  PAWL_CODE_INVALID_ARGUMENT before
	 * the first that succeeded.
	 */
	struct pawl_status_object *(*instance_output)(const struct pawl_instance *instance, int32_t i,
		const void **bytes, size_t *n_bytes);
};

/*
 * *version: in, the newest that the host knows; out, the newest that both know.  Returns 0, leaving
 * *version alone, when there is none.  Thread-safe; may be called before anything else.
 */
PAWL_API int pawl_negotiate(uint32_t *version);
/* The table of a negotiated version, for the life of the process; NULL for one not offered. */
PAWL_API const struct pawl_api *pawl_get_api(uint32_t version);

#ifdef __cplusplus
}
#endif

#endif
