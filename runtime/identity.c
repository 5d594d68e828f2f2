#include "runtime/identity.h"

#include <stdatomic.h>

static uint64_t
next(_Atomic uint64_t *last)
{
	return atomic_fetch_add_explicit(last, 1, memory_order_relaxed) + 1;
}

struct pawl_model_instance_id
pawl_model_instance_id_new(void)
{
	static _Atomic uint64_t last;

	return (struct pawl_model_instance_id){next(&last)};
}

struct pawl_kv_alloc_id
pawl_kv_alloc_id_new(void)
{
	static _Atomic uint64_t last;

	return (struct pawl_kv_alloc_id){next(&last)};
}

uint64_t
pawl_kv_object_id_new(void)
{
	static _Atomic uint64_t last;

	return next(&last);
}

uint64_t
pawl_request_id_new(void)
{
	static _Atomic uint64_t last;

	return next(&last);
}

uint64_t
pawl_device_id_new(void)
{
	static _Atomic uint64_t last;

	return next(&last);
}
