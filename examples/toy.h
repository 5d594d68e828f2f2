/*
 * The toy model of examples/host.c: the graph of one decode step and made-up weights.  One layer, 64
 * tokens, width 32, two heads that share one key-value head, argmax at the end; a cache of f16.
 */
#ifndef PAWL_EXAMPLES_TOY_H
#define PAWL_EXAMPLES_TOY_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

enum {
	TOY_VOCAB = 64,
	TOY_WIDTH = 32,
	TOY_HEAD = 16,
	TOY_FFN = 64,
	TOY_CAPACITY = 32,
	TOY_TOKENS = 16
};

static const struct {
	const char *name, *type;
	size_t n; /* elements */
} toy_weights[] = {
	{"embedding", "f32[64, 32]", TOY_VOCAB * TOY_WIDTH},
	{"norm", "f32[32]", TOY_WIDTH},
	{"wq", "f32[32, 32]", TOY_WIDTH * TOY_WIDTH},
	{"wk", "f32[16, 32]", TOY_HEAD * TOY_WIDTH},
	{"wv", "f32[16, 32]", TOY_HEAD * TOY_WIDTH},
	{"wo", "f32[32, 32]", TOY_WIDTH * TOY_WIDTH},
	{"up", "f32[64, 32]", TOY_FFN * TOY_WIDTH},
	{"down", "f32[32, 64]", TOY_WIDTH * TOY_FFN},
	{"head", "f32[64, 32]", TOY_VOCAB * TOY_WIDTH},
};

enum { TOY_N_WEIGHTS = sizeof(toy_weights) / sizeof(toy_weights[0]) };

enum { TOY_MAX_INPUTS = 4 };

/* The step graph: what a real host would translate from its own.  type NULL: that of the cache. */
struct toy_node {
	const char *name, *op, *inputs[TOY_MAX_INPUTS], *attrs, *type;
};

static const struct toy_node toy_nodes[] = {
	{"ids", "const", {NULL}, "{role = data}", "u32[1]"},
	{"cos", "const", {NULL}, "{role = data}", "f32[1, 16]"},
	{"sin", "const", {NULL}, "{role = data}", "f32[1, 16]"},
	{"offset", "const", {NULL}, "{role = data}", "i64[]"},
	{"embedding", "const", {NULL}, NULL, "f32[64, 32]"},
	{"norm", "const", {NULL}, NULL, "f32[32]"},
	{"wq", "const", {NULL}, NULL, "f32[32, 32]"},
	{"wk", "const", {NULL}, NULL, "f32[16, 32]"},
	{"wv", "const", {NULL}, NULL, "f32[16, 32]"},
	{"wo", "const", {NULL}, NULL, "f32[32, 32]"},
	{"up", "const", {NULL}, NULL, "f32[64, 32]"},
	{"down", "const", {NULL}, NULL, "f32[32, 64]"},
	{"head", "const", {NULL}, NULL, "f32[64, 32]"},
	{"cache.k.0", "const", {NULL}, "{role = kv}", NULL},
	{"cache.v.0", "const", {NULL}, "{role = kv}", NULL},
	{"x", "gather", {"embedding", "ids"}, NULL, "f32[1, 32]"},
	{"n", "rms_norm", {"x", "norm"}, "{eps = 1e-05}", "f32[1, 32]"},
	{"q0", "matmul", {"n", "wq"}, NULL, "f32[1, 32]"},
	{"k0", "matmul", {"n", "wk"}, NULL, "f32[1, 16]"},
	{"v0", "matmul", {"n", "wv"}, NULL, "f32[1, 16]"},
	{"q1", "reshape", {"q0"}, NULL, "f32[1, 2, 16]"},
	{"k1", "reshape", {"k0"}, NULL, "f32[1, 1, 16]"},
	{"v1", "reshape", {"v0"}, NULL, "f32[1, 1, 1, 16]"},
	{"q", "rope", {"q1", "cos", "sin"}, NULL, "f32[1, 2, 16]"},
	{"k2", "rope", {"k1", "cos", "sin"}, NULL, "f32[1, 1, 16]"},
	{"k3", "reshape", {"k2"}, NULL, "f32[1, 1, 1, 16]"},
	{"k4", "cast", {"k3"}, "{dtype = f16}", "f16[1, 1, 1, 16]"},
	{"v2", "cast", {"v1"}, "{dtype = f16}", "f16[1, 1, 1, 16]"},
	{"k", "write_slice", {"cache.k.0", "k4", "offset"}, "{axis = 2}", NULL},
	{"v", "write_slice", {"cache.v.0", "v2", "offset"}, "{axis = 2}", NULL},
	{"a0", "attention", {"q", "k", "v", "offset"},
		"{scale = 0.25, sym = $attended_len}", "f32[1, 2, 16]"},
	{"a1", "reshape", {"a0"}, NULL, "f32[1, 32]"},
	{"a", "matmul", {"a1", "wo"}, NULL, "f32[1, 32]"},
	{"h", "add", {"x", "a"}, NULL, "f32[1, 32]"},
	{"m", "rms_norm", {"h", "norm"}, "{eps = 1e-05}", "f32[1, 32]"},
	{"u0", "matmul", {"m", "up"}, NULL, "f32[1, 64]"},
	{"u", "silu", {"u0"}, NULL, "f32[1, 64]"},
	{"d", "matmul", {"u", "down"}, NULL, "f32[1, 32]"},
	{"y", "add", {"h", "d"}, NULL, "f32[1, 32]"},
	{"logits", "matmul", {"y", "head"}, NULL, "f32[1, 64]"},
	{"next", "argmax", {"logits"}, NULL, "i32[1]"},
};

enum { TOY_N_NODES = sizeof(toy_nodes) / sizeof(toy_nodes[0]) };

/* Weight i: made-up numbers in [-0.5, 0.5), the same on every machine. */
static inline void
toy_fill(size_t i, float *w)
{
	uint32_t seed = (uint32_t)i + 1;
	size_t j;

	for (j = 0; j < toy_weights[i].n; j++) {
		seed = seed * 1664525u + 1013904223u;
		w[j] = (float)(seed >> 8) / 16777216.0f - 0.5f;
	}
}

/* Rows of the rope tables at a position: both elements of a pair have the pair's value. */
static inline void
toy_rope(int64_t position, float *cos_row, float *sin_row)
{
	int i;

	for (i = 0; i < TOY_HEAD; i++) {
		double angle = (double)position * pow(10000.0, -(double)(i / 2 * 2) / TOY_HEAD);

		cos_row[i] = (float)cos(angle);
		sin_row[i] = (float)sin(angle);
	}
}

#endif
