/*
 * The toy model of examples/host.c: a step graph as text and made-up weights.  One layer, 64 tokens,
 * width 32, two heads that share one key-value head, f16 cache of 32 positions, argmax at the end.
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
	TOY_TOKENS = 16,
	TOY_KV_BYTES = TOY_CAPACITY * TOY_HEAD * 2
};

static const struct {
	const char *name;
	size_t n;
} toy_weights[] = {
	{"embedding", TOY_VOCAB * TOY_WIDTH},
	{"norm", TOY_WIDTH},
	{"wq", TOY_WIDTH * TOY_WIDTH},
	{"wk", TOY_HEAD * TOY_WIDTH},
	{"wv", TOY_HEAD * TOY_WIDTH},
	{"wo", TOY_WIDTH * TOY_WIDTH},
	{"up", TOY_FFN * TOY_WIDTH},
	{"down", TOY_WIDTH * TOY_FFN},
	{"head", TOY_VOCAB * TOY_WIDTH},
};

enum { TOY_N_WEIGHTS = sizeof(toy_weights) / sizeof(toy_weights[0]) };

/* The step graph: what a real host would translate from its own. */
static const char toy_graph[] =
	"pawl 1\n"
	"graph @toy stage values {\n"
	"  sym $attended_len : 1..32\n"
	"  %ids = const : u32[1] {role = data}\n"
	"  %cos = const : f32[1, 16] {role = data}\n"
	"  %sin = const : f32[1, 16] {role = data}\n"
	"  %offset = const : i64[] {role = data}\n"
	"  %embedding = const : f32[64, 32]\n"
	"  %norm = const : f32[32]\n"
	"  %wq = const : f32[32, 32]\n"
	"  %wk = const : f32[16, 32]\n"
	"  %wv = const : f32[16, 32]\n"
	"  %wo = const : f32[32, 32]\n"
	"  %up = const : f32[64, 32]\n"
	"  %down = const : f32[32, 64]\n"
	"  %head = const : f32[64, 32]\n"
	"  %k_cache = const : f16[1, 1, 32, 16] {role = kv}\n"
	"  %v_cache = const : f16[1, 1, 32, 16] {role = kv}\n"
	"  %x = gather %embedding, %ids : f32[1, 32]\n"
	"  %n = rms_norm %x, %norm {eps = 1e-05} : f32[1, 32]\n"
	"  %q0 = matmul %n, %wq : f32[1, 32]\n"
	"  %k0 = matmul %n, %wk : f32[1, 16]\n"
	"  %v0 = matmul %n, %wv : f32[1, 16]\n"
	"  %q1 = reshape %q0 : f32[1, 2, 16]\n"
	"  %k1 = reshape %k0 : f32[1, 1, 16]\n"
	"  %v1 = reshape %v0 : f32[1, 1, 1, 16]\n"
	"  %q = rope %q1, %cos, %sin : f32[1, 2, 16]\n"
	"  %k2 = rope %k1, %cos, %sin : f32[1, 1, 16]\n"
	"  %k3 = reshape %k2 : f32[1, 1, 1, 16]\n"
	"  %k4 = cast %k3 {dtype = f16} : f16[1, 1, 1, 16]\n"
	"  %v2 = cast %v1 {dtype = f16} : f16[1, 1, 1, 16]\n"
	"  %k = write_slice %k_cache, %k4, %offset {axis = 2} : f16[1, 1, 32, 16]\n"
	"  %v = write_slice %v_cache, %v2, %offset {axis = 2} : f16[1, 1, 32, 16]\n"
	"  %a0 = attention %q, %k, %v, %offset {scale = 0.25, sym = $attended_len} : f32[1, 2, 16]\n"
	"  %a1 = reshape %a0 : f32[1, 32]\n"
	"  %a = matmul %a1, %wo : f32[1, 32]\n"
	"  %h = add %x, %a : f32[1, 32]\n"
	"  %m = rms_norm %h, %norm {eps = 1e-05} : f32[1, 32]\n"
	"  %u0 = matmul %m, %up : f32[1, 64]\n"
	"  %u = silu %u0 : f32[1, 64]\n"
	"  %d = matmul %u, %down : f32[1, 32]\n"
	"  %y = add %h, %d : f32[1, 32]\n"
	"  %logits = matmul %y, %head : f32[1, 64]\n"
	"  %next = argmax %logits : i32[1]\n"
	"  output %next\n"
	"  output %logits\n"
	"}\n";

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
