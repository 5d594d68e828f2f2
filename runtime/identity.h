/*
 * Identities: process-wide monotonic counters.  A value is never 0 and never given twice, even
 * when its owner is gone; addresses are no identities, since they come back.  Any thread.
 */
#ifndef PAWL_RUNTIME_IDENTITY_H
#define PAWL_RUNTIME_IDENTITY_H

#include <stdint.h>

/* Of a set of weights; models that share weights share it. */
struct pawl_model_instance_id {
	uint64_t value;
};

/* Of the storages of a KV cache: a new one whenever they may have changed. */
struct pawl_kv_alloc_id {
	uint64_t value;
};

struct pawl_model_instance_id pawl_model_instance_id_new(void);
struct pawl_kv_alloc_id pawl_kv_alloc_id_new(void);

/* Of what lives in a KV block pool: sessions, handles, copies and prefixes share one counter. */
uint64_t pawl_kv_object_id_new(void);

/* Of a request to a scheduler. */
uint64_t pawl_request_id_new(void);

/* Of an opened target. */
uint64_t pawl_device_id_new(void);

#endif
