/*
 * A host of ggml for tests: functions that the backend looks for, and graphs made by hand.  Ops have
 * numbers of their own, so that whoever relies on those of a real host is found out.
 */
#ifndef PAWL_TESTS_GGML_HOST_H
#define PAWL_TESTS_GGML_HOST_H

#include "plugins/ggml/ggml_host.h"

enum { PAWL_FAKE_F32 = 0, PAWL_FAKE_F16 = 1, PAWL_FAKE_Q8_0 = 8, PAWL_FAKE_I32 = 26, PAWL_FAKE_I64 = 27 };

/* Version and size of a tensor that the host tells; a symbol that it lacks, NULL: none. */
struct pawl_fake_host {
	const char *version;
	size_t tensor_bytes;
	const char *lacks;
	int n_computed; /* graphs that its own CPU backend got */
	int n_warnings; /* lines in its log */
};

/* One for the process; of version 0.26.0. */
struct pawl_fake_host *pawl_fake_host(void);
/* A pawl_ggml_finder. */
void *pawl_fake_find(void *arg, const char *symbol);

/* Tensors of a graph, and memory for all of them. */
struct pawl_fake_graph {
	struct pawl_ggml_graph graph;
	struct pawl_ggml_tensor *tensors[256];
	struct pawl_ggml_tensor *nodes[256];
	int n;
	int32_t counts[1024];
	uint32_t used[32];
	struct pawl_ggml_tensor *keys[1024];
};

void pawl_fake_graph_init(struct pawl_fake_graph *g);
void pawl_fake_graph_release(struct pawl_fake_graph *g);

/* Counts the uses of all tensors, after the last was added: who is used by none is an output. */
void pawl_fake_graph_count(struct pawl_fake_graph *g);

/* A leaf with zeroed memory; dims that are 0 count as 1. */
struct pawl_ggml_tensor *pawl_fake_leaf(struct pawl_fake_graph *g, int32_t type, int64_t ne0,
	int64_t ne1, int64_t ne2, int64_t ne3);
/* A node of the op that the host calls `op`, its result f32 with memory of its own. */
struct pawl_ggml_tensor *pawl_fake_node(struct pawl_fake_graph *g, const char *op,
	struct pawl_ggml_tensor *a, struct pawl_ggml_tensor *b, int64_t ne0, int64_t ne1, int64_t ne2,
	int64_t ne3);
/* A view of x's memory as a node; strides of dims 1 to 3 in bytes. */
struct pawl_ggml_tensor *pawl_fake_view(struct pawl_fake_graph *g, struct pawl_ggml_tensor *x,
	const int64_t ne[4], const size_t nb[4], size_t offset);
/* A buffer that does not say that its memory is the host's. */
struct pawl_ggml_buffer *pawl_fake_remote_buffer(void);
void pawl_fake_param(struct pawl_ggml_tensor *t, int i, float value);
float *pawl_fake_floats(struct pawl_ggml_tensor *t);

#endif
