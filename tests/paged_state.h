/* All that later results of a paged decoder depend on, as a number. */
#ifndef PAWL_TESTS_PAGED_STATE_H
#define PAWL_TESTS_PAGED_STATE_H

#include "runtime/paged_decoder.h"

/*
 * FNV-1a over the pool (pawl_kv_block_pool_digest), the bytes of every position that some sequence
 * or prefix has, and the bytes that were evicted.
 */
uint64_t pawl_test_paged_state(struct pawl_paged_decoder *decoder);

#endif
