/* A small llama with a cache: embedding, blocks, norm, head. */
#ifndef PAWL_TESTS_SMALL_LLAMA_H
#define PAWL_TESTS_SMALL_LLAMA_H

#include "ir/graph.h"

/* Width 64, 4 heads over 2 groups of 16, weights q4_0 and q8_0, cache f16 of 32 positions, K16. */
struct pawl_graph *pawl_test_small_llama(int64_t n_tokens, int n_layers);

#endif
