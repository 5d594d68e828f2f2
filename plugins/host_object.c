#include <stdlib.h>

#include "plugins/host_api.h"

bool
pawl_host_is(const void *handle, enum pawl_host_kind kind)
{
	const struct pawl_host_object *object = handle;

	return object && object->kind == kind;
}

void *
pawl_host_object_new(enum pawl_host_kind kind, struct pawl_host_context *context, size_t n)
{
	struct pawl_host_object *object = calloc(1, n);

	if (!object)
		return NULL;
	object->kind = kind;
	object->context = context ? context : (struct pawl_host_context *)object;
	atomic_init(&object->n_refs, 1);
	if (context)
		pawl_host_retain(context);
	atomic_fetch_add(&object->context->counts.handles, 1);
	return object;
}

void
pawl_host_retain(void *handle)
{
	struct pawl_host_object *object = handle;

	atomic_fetch_add_explicit(&object->n_refs, 1, memory_order_relaxed);
}

bool
pawl_host_drop(void *handle, enum pawl_host_kind kind)
{
	struct pawl_host_object *object = handle;

	return pawl_host_is(handle, kind) &&
	       atomic_fetch_sub_explicit(&object->n_refs, 1, memory_order_acq_rel) == 1;
}

void
pawl_host_object_free(void *handle)
{
	struct pawl_host_object *object = handle;
	struct pawl_host_context *context = object->context;
	bool is_context = object->kind == PAWL_HOST_CONTEXT;

	atomic_fetch_sub(&context->counts.handles, 1);
	object->kind = 0;
	free(object);
	if (!is_context)
		pawl_host_context_release(context);
}

const struct pawl_block_source *
pawl_host_enter(const struct pawl_host_context *context)
{
	return pawl_memory_use(context->services.alloc ? &context->memory : NULL);
}

void
pawl_host_leave(const struct pawl_block_source *before)
{
	pawl_memory_use(before);
}

bool
pawl_host_is_aborted(void *arg)
{
	const struct pawl_host_context *context = arg;

	return context->services.is_aborted && context->services.is_aborted(context->services.user);
}
