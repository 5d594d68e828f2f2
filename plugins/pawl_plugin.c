/* The host-facing entry: negotiation, contexts, and the table. */
#include <pawl/pawl.h>
#include <stdlib.h>
#include <string.h>

#include "ir/build_id.h"
#include "plugins/host_api.h"
#include "runtime/cpu_count.h"

static struct pawl_status_object *
context_init(struct pawl_context *context, const struct pawl_context_options *options)
{
	enum pawl_status status = PAWL_OK;
	struct pawl_error err;
	const char *target = options->target ? options->target : "cpu";

	if (options->activations != 0 && options->activations != 16 && options->activations != 8)
		return pawl_host_refuse(PAWL_INVALID_ARGUMENT, "context_create: %d-bit activations",
			options->activations);
	if (options->n_threads < 0 || options->n_threads > PAWL_MAX_THREADS)
		return pawl_host_refuse(
			PAWL_INVALID_ARGUMENT, "context_create: %d threads", options->n_threads);
	context->precision =
		options->activations == 8 ? PAWL_PRECISION_A8 : PAWL_PRECISION_A16;
	context->n_threads = options->n_threads;
	if (!context->n_threads)
		status = pawl_default_threads(NULL, 0, &context->n_threads, &err);
	if (status == PAWL_OK)
		status = pawl_device_open(target, NULL, &context->device, &err);
	return pawl_host_status(status, &err);
}

static struct pawl_status_object *
context_create(const struct pawl_host_services *services, const struct pawl_context_options *options,
	struct pawl_context **out)
{
	struct pawl_context_options known = {0};
	struct pawl_status_object *status;
	struct pawl_context *context;

	if (!out)
		return pawl_host_refuse(PAWL_INVALID_ARGUMENT, "context_create: a pointer is NULL");
	if ((options && options->struct_size < sizeof(known)) ||
		(services && services->struct_size < sizeof(*services)))
		return pawl_host_refuse(
			PAWL_INVALID_ARGUMENT, "context_create: struct_size is below version 1's");
	context = calloc(1, sizeof(*context));
	if (!context)
		return pawl_host_refuse(PAWL_OUT_OF_MEMORY, "no memory for a context");
	if (options)
		known = *options;
	if (services)
		context->services = *services;
	status = context_init(context, &known);
	if (status)
		free(context);
	else
		*out = context;
	return status;
}

static struct pawl_status_object *
context_destroy(struct pawl_context *context)
{
	int n;

	if (!context)
		return NULL;
	n = atomic_load(&context->n_children);
	if (n)
		return pawl_host_refuse(PAWL_INVALID_ARGUMENT,
			"context_destroy: %d graphs, plans or instances are alive", n);
	pawl_device_unref(context->device);
	free(context);
	return NULL;
}

static void
context_counters(struct pawl_context *context, struct pawl_api_counters *out)
{
	struct pawl_api_counters now = {0};
	struct pawl_target_counters target;

	if (!context || !out)
		return;
	now.struct_size = out->struct_size;
	now.optimizes = atomic_load(&context->optimizes);
	pawl_device_counters(context->device, &target);
	now.kernel_compiles = target.kernel_compiles;
	now.runs = atomic_load(&context->runs);
	now.bytes_bound = atomic_load(&context->bytes_bound);
	memcpy(out, &now, out->struct_size < sizeof(now) ? out->struct_size : sizeof(now));
}

static const struct pawl_api api = {
	.struct_size = sizeof(struct pawl_api),
	.abi_version = PAWL_ABI_VERSION,
	.build_id = pawl_build_id,
	.status_code = pawl_host_status_code,
	.status_message = pawl_host_status_message,
	.status_free = pawl_host_status_free,
	.context_create = context_create,
	.context_destroy = context_destroy,
	.context_counters = context_counters,
	.graph_from_text = pawl_host_graph_from_text,
	.graph_create = pawl_host_graph_create,
	.graph_symbol = pawl_host_graph_symbol,
	.graph_add = pawl_host_graph_add,
	.graph_output = pawl_host_graph_output,
	.graph_destroy = pawl_host_graph_destroy,
	.plan_compile = pawl_host_plan_compile,
	.plan_retain = pawl_host_plan_retain,
	.plan_release = pawl_host_plan_release,
	.plan_n_bindings = pawl_host_plan_n_bindings,
	.plan_binding = pawl_host_plan_binding,
	.plan_to_json = pawl_host_plan_to_json,
	.instance_create = pawl_host_instance_create,
	.instance_destroy = pawl_host_instance_destroy,
	.instance_bind = pawl_host_instance_bind,
	.instance_set_data = pawl_host_instance_set_data,
	.instance_set_symbol = pawl_host_instance_set_symbol,
	.instance_run = pawl_host_instance_run,
	.instance_output = pawl_host_instance_output,
};

PAWL_API int
pawl_negotiate(uint32_t *version)
{
	if (!version || *version < PAWL_ABI_OLDEST)
		return 0;
	if (*version > PAWL_ABI_VERSION)
		*version = PAWL_ABI_VERSION;
	return 1;
}

PAWL_API const struct pawl_api *
pawl_get_api(uint32_t version)
{
	return version == PAWL_ABI_VERSION ? &api : NULL;
}

PAWL_API const char *
pawl_version(void)
{
	return PACKAGE_VERSION;
}
