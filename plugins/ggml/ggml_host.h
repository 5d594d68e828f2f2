/*
 * The host's ggml: found among the objects that are mapped already, asked for its version, and
 * called through pointers.  The module links none of it, so that one binary serves every host that
 * shows its symbols, whether ggml is a library of its own or part of the program.
 *
 * Bound once for the process; afterwards read by any thread.
 */
#ifndef PAWL_PLUGINS_GGML_HOST_H
#define PAWL_PLUGINS_GGML_HOST_H

#include "ir/dtype.h"
#include "ir/status.h"
#include "plugins/ggml/ggml_abi.h"

enum pawl_ggml_op {
#define PAWL_GGML_OP_ROW(id, name) PAWL_GGML_OP_##id,
#include "plugins/ggml/ggml_ops.def"
	PAWL_GGML_OP_OTHER, /* the host has it, nothing here does */
	PAWL_GGML_N_OPS
};

enum pawl_ggml_unary {
	PAWL_GGML_UNARY_TANH,
	PAWL_GGML_UNARY_RELU,
	PAWL_GGML_UNARY_SIGMOID,
	PAWL_GGML_UNARY_GELU,
	PAWL_GGML_UNARY_SILU,
	PAWL_GGML_UNARY_OTHER
};

enum pawl_ggml_glu { PAWL_GGML_GLU_GEGLU, PAWL_GGML_GLU_SWIGLU, PAWL_GGML_GLU_OTHER };

enum pawl_ggml_level { PAWL_GGML_DEBUG = 1, PAWL_GGML_INFO, PAWL_GGML_WARN, PAWL_GGML_ERROR };

/* Where the functions of a generation stand in their tables. */
struct pawl_ggml_layout {
	int until_minor; /* of versions 0.x below this */
	int api;
	bool has_uid;
	int n_buffer_fns, memset_tensor, set_tensor, get_tensor, clear;
	int buft_alignment, buft_is_host, n_buft_fns;
	int graph_compute, n_stream_fns;
};

struct pawl_ggml_host {
	char version[32];
	const struct pawl_ggml_layout *layout;
	struct pawl_ggml_buffer *(*buffer_init)(void);
	void *(*device_by_type)(int type);
	void *(*device_init)(void *device, const char *params);
	int (*graph_compute)(void *stream, struct pawl_ggml_graph *graph);
	void (*stream_free)(void *stream);
	void *(*device_registry)(void *device);
	void *(*registry_proc)(void *registry, const char *name);
	void (*log)(int level, const char *format, ...); /* NULL: the host has none */
	const char *(*op_name)(int op);
	int n_ops;
	uint8_t op[256];   /* enum pawl_ggml_op by the host's number */
	uint8_t unary[64]; /* enum pawl_ggml_unary */
	uint8_t glu[16];   /* enum pawl_ggml_glu */
};

/*
 * How a symbol is found; tests put their own in place of it.  NULL: no mapped object shows it.
 */
typedef void *pawl_ggml_finder(void *arg, const char *symbol);

/*
 * Looks in the object that has the code at that address (NULL: none) and in what it needs, then through
 * all objects that are mapped now: there may be more than one ggml.
 */
void *pawl_ggml_find_mapped(void *code, const char *symbol);

/*
 * PAWL_ENVIRONMENT: a symbol is missing, a tensor of the host has another size, or its version is
 * none of those known; the error names it.
 */
enum pawl_status pawl_ggml_host_bind(struct pawl_ggml_host *host, pawl_ggml_finder *find, void *arg,
	struct pawl_error *err);

/* The layout for a version such as "0.25.3"; NULL: none is known. */
const struct pawl_ggml_layout *pawl_ggml_layout_of(const char *version);

enum pawl_ggml_op pawl_ggml_op_of(const struct pawl_ggml_host *host, const struct pawl_ggml_tensor *t);
/* The name that the host gives its op; "?" for a number that is none. */
const char *pawl_ggml_op_text(const struct pawl_ggml_host *host, const struct pawl_ggml_tensor *t);

/* A line in the host's log; a final newline is added. */
void pawl_ggml_log(const struct pawl_ggml_host *host, enum pawl_ggml_level level, const char *format, ...)
	PAWL_PRINTF(3, 4);

/*
 * Whether this processor reads and writes the memory of a tensor by its address: there is one, and its
 * buffer's kind says so, whosever it is.
 */
bool pawl_ggml_is_reachable(const struct pawl_ggml_host *host, const struct pawl_ggml_tensor *t);

/* What a buffer is for, which may be of another backend. */
enum pawl_ggml_usage pawl_ggml_buffer_usage(
	const struct pawl_ggml_host *host, const struct pawl_ggml_buffer *buffer);

#endif
