/*
 * The shape of a ggml graph in 128 bits: ops, types, params, dims, strides, edges, views, what is a
 * weight and what is read from outside; no address and no name.  Two graphs of one key translate to
 * the same.
 */
#ifndef PAWL_PLUGINS_GGML_KEY_H
#define PAWL_PLUGINS_GGML_KEY_H

#include "plugins/ggml/ggml_host.h"

struct pawl_ggml_key {
	uint64_t a, b;
};

/* Room for numbering the tensors of a graph, kept from call to call. */
struct pawl_ggml_numbers {
	const struct pawl_ggml_tensor **tensors; /* room places, by address */
	int32_t *numbers;
	size_t room;
};

/* PAWL_OUT_OF_MEMORY. */
enum pawl_status pawl_ggml_key_of(const struct pawl_ggml_host *host,
	const struct pawl_ggml_graph *graph, struct pawl_ggml_numbers *numbers,
	struct pawl_ggml_key *out, struct pawl_error *err);
void pawl_ggml_numbers_release(struct pawl_ggml_numbers *numbers);

/* How many ops of the whole graph, that this one may be part of, use t; -1: not known. */
int32_t pawl_ggml_uses(const struct pawl_ggml_graph *graph, const struct pawl_ggml_tensor *t);

#endif
