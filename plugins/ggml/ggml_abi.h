/*
 * What a ggml backend shares with its host, declared anew: ggml publishes no header for it that could
 * be relied on, and changes it without a word.  Three generations are known (ggml_host.h chooses):
 * before 0.10, 0.10 to 0.25, 0.26.  The structs here are the same in all three; tables of functions
 * differ and are arrays whose places struct pawl_ggml_layout names.
 */
#ifndef PAWL_PLUGINS_GGML_ABI_H
#define PAWL_PLUGINS_GGML_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PAWL_GGML_DIMS = 4, PAWL_GGML_SOURCES = 10, PAWL_GGML_PARAMS = 16 };

enum pawl_ggml_flag {
	PAWL_GGML_OUTPUT = 2,
	PAWL_GGML_COMPUTE = 16 /* from 0.9.6 on; nodes without are to be left out */
};

enum pawl_ggml_usage { PAWL_GGML_ANY = 0, PAWL_GGML_WEIGHTS = 1 };

enum pawl_ggml_result { PAWL_GGML_FAILED = -1, PAWL_GGML_SUCCESS = 0, PAWL_GGML_ABORTED = 1 };

/* Dim 0 is the fastest; nb are bytes. */
struct pawl_ggml_tensor {
	int32_t type;
	struct pawl_ggml_buffer *buffer;
	int64_t ne[PAWL_GGML_DIMS];
	size_t nb[PAWL_GGML_DIMS];
	int32_t op;
	int32_t params[PAWL_GGML_PARAMS];
	int32_t flags;
	struct pawl_ggml_tensor *src[PAWL_GGML_SOURCES];
	struct pawl_ggml_tensor *view_src; /* never a view itself */
	size_t view_offs;
	void *data;
	char name[64];
	void *extra;
	char padding[8];
};

struct pawl_ggml_graph {
	int32_t size, n_nodes, n_leafs;
	struct pawl_ggml_tensor **nodes, **grads, **grad_accs, **leafs;
	int32_t *use_counts; /* by place in the hash table */
	size_t hash_size;
	uint32_t *hash_used; /* a bit for each place */
	struct pawl_ggml_tensor **hash_keys;
	int32_t order;
	uint64_t uid; /* from 0.10 on, 0: unknown */
};

/* A function in a table; cast to what it is before it is called. */
typedef void (*pawl_ggml_fn)(void);

enum {
	PAWL_GGML_BUFFER_FNS = 11,
	PAWL_GGML_BUFT_FNS = 8,
	PAWL_GGML_STREAM_FNS = 16,
	PAWL_GGML_DEVICE_FNS = 15
};

/* What the host's constructor makes; the functions of a buffer come first. */
struct pawl_ggml_buffer;

struct pawl_ggml_device {
	pawl_ggml_fn fn[PAWL_GGML_DEVICE_FNS];
	struct pawl_ggml_registry *registry;
	void *context;
};

struct pawl_ggml_registry {
	int32_t api;
	pawl_ggml_fn fn[4];
	void *context;
};

struct pawl_ggml_properties {
	const char *name, *description;
	size_t memory_free, memory_total;
	int32_t type;
	const char *id;
	bool caps[8]; /* async, host buffer, from host pointer, events, mmap */
};

_Static_assert(sizeof(struct pawl_ggml_tensor) == 336, "a tensor has 336 bytes");
_Static_assert(offsetof(struct pawl_ggml_tensor, data) == 248, "data of a tensor");
_Static_assert(offsetof(struct pawl_ggml_graph, use_counts) == 48, "use_counts of a graph");
_Static_assert(offsetof(struct pawl_ggml_graph, uid) == 88, "uid of a graph");
_Static_assert(sizeof(struct pawl_ggml_device) == 136, "a device has 136 bytes");
_Static_assert(sizeof(struct pawl_ggml_registry) == 48, "a registry has 48 bytes");
_Static_assert(sizeof(struct pawl_ggml_properties) == 56, "properties have 56 bytes");

#endif
