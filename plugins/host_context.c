#include <stdlib.h>
#include <string.h>

#include "codegen/cpu_variant.h"
#include "ir/build_id.h"
#include "plugins/host_api.h"
#include "runtime/cpu_count.h"
#include "runtime/json_write.h"
#include "runtime/target_load.h"

/* Sizes of version 1. */
enum { SERVICES_1 = 56, CONTEXT_OPTIONS_1 = 32 };

_Static_assert(sizeof(struct pawl_services) >= SERVICES_1, "structs only grow");
_Static_assert(sizeof(struct pawl_context_options) >= CONTEXT_OPTIONS_1, "structs only grow");

static enum pawl_status
try_threads(const struct pawl_host_context *context, struct pawl_error *err)
{
	const struct pawl_parallel_for lent = {
		context->services.parallel_for, context->services.user};
	struct pawl_lent_team *team;
	enum pawl_status status;

	if (!lent.run)
		return PAWL_OK;
	status = pawl_lent_team_new(&lent, context->n_threads, &team, err);
	if (!status)
		pawl_lent_team_free(team);
	return status;
}

static enum pawl_status
init(struct pawl_host_context *context, const struct pawl_context_options *options,
	struct pawl_error *err)
{
	enum pawl_status status = PAWL_OK;
	const struct pawl_services *services = &context->services;

	if (options->activation_bits != 0 && options->activation_bits != 16 &&
		options->activation_bits != 8)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"context_create: activations of %lld bits",
			(long long)options->activation_bits);
	if (options->n_threads < 0 || options->n_threads > PAWL_MAX_THREADS)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT, "context_create: %lld threads",
			(long long)options->n_threads);
	if (!services->alloc != !services->free)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"context_create: alloc and free of the services come together");
	context->memory =
		(struct pawl_block_source){services->alloc, services->free, services->user};
	context->precision = options->activation_bits == 8 ? PAWL_PRECISION_A8 : PAWL_PRECISION_A16;
	context->n_threads = (int)options->n_threads;
	if (!context->n_threads)
		status = pawl_default_threads(NULL, 0, &context->n_threads, err);
	if (!status)
		status = try_threads(context, err);
	if (!status)
		status = pawl_device_open(
			options->target ? options->target : "cpu", NULL, &context->device, err);
	return status;
}

struct pawl_host_status *
pawl_host_context_create(const struct pawl_services *services,
	const struct pawl_context_options *options, struct pawl_host_context **out)
{
	struct pawl_context_options known = {0};
	struct pawl_services lent = {0};
	const struct pawl_block_source *before;
	struct pawl_host_context *context;
	enum pawl_status status;
	struct pawl_error err;

	if (!out)
		return pawl_host_refuse(PAWL_INVALID_ARGUMENT, "context_create: a pointer is NULL");
	if (options && !pawl_host_read(&known, sizeof(known), CONTEXT_OPTIONS_1, options))
		return pawl_host_refuse(PAWL_INVALID_ARGUMENT,
			"context_create: struct_size of the options is wrong");
	if (services && !pawl_host_read(&lent, sizeof(lent), SERVICES_1, services))
		return pawl_host_refuse(PAWL_INVALID_ARGUMENT,
			"context_create: struct_size of the services is wrong");
	context = pawl_host_object_new(PAWL_HOST_CONTEXT, NULL, sizeof(*context));
	if (!context)
		return pawl_host_refuse(PAWL_OUT_OF_MEMORY, "no memory for a context");
	context->services = lent;
	context->memory = (struct pawl_block_source){lent.alloc, lent.free, lent.user};
	before = pawl_memory_use(NULL);
	status = init(context, &known, &err);
	pawl_host_leave(before);
	if (status) {
		pawl_host_context_release(context);
		return pawl_host_status(status, &err);
	}
	*out = context;
	return NULL;
}

void
pawl_host_context_release(struct pawl_host_context *context)
{
	if (!pawl_host_drop(context, PAWL_HOST_CONTEXT))
		return;
	pawl_device_unref(context->device);
	pawl_host_object_free(context);
}

static void
describe_targets(struct pawl_json *json)
{
	static const char *const names[] = {"cpu", "cuda", "ref"};
	cJSON *list = pawl_json_array(json, json->root, "targets");

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		cJSON *target = pawl_json_object(json, list, NULL);
		const struct pawl_target_api *api;
		struct pawl_error err;
		enum pawl_status status = pawl_target_load(names[i], &api, &err);

		pawl_json_string(json, target, "name", names[i]);
		pawl_json_string(json, target, "missing", status ? err.text : NULL);
	}
}

static void
describe_cpu(struct pawl_json *json)
{
	cJSON *list = pawl_json_array(json, json->root, "cpu_variants");

	for (int i = 0; i < PAWL_N_CPU_VARIANTS; i++)
		if (pawl_cpu_can_run((enum pawl_cpu_variant)i))
			pawl_json_string(json, list, NULL,
				pawl_cpu_variant_info((enum pawl_cpu_variant)i)->name);
}

static void
describe_ir(struct pawl_json *json)
{
	cJSON *types = pawl_json_array(json, json->root, "types"), *ops;

	for (int i = 0; i < PAWL_N_DTYPES; i++)
		pawl_json_string(json, types, NULL, pawl_dtype_name((enum pawl_dtype)i));
	ops = pawl_json_array(json, json->root, "ops");
	for (int i = 0; i < PAWL_N_OPS; i++) {
		const struct pawl_op_info *info = pawl_op_info((enum pawl_op)i);
		cJSON *op = pawl_json_object(json, ops, NULL);

		pawl_json_string(json, op, "name", info->name);
		pawl_json_number(json, op, "min_inputs", info->min_inputs);
		pawl_json_number(json, op, "max_inputs", info->max_inputs);
	}
}

struct pawl_host_status *
pawl_host_context_describe(struct pawl_host_context *context, pawl_sink *sink, void *user)
{
	struct pawl_json json;
	enum pawl_status status;
	struct pawl_error err;
	char *text;
	int stopped;

	if (!pawl_host_is(context, PAWL_HOST_CONTEXT) || !sink)
		return pawl_host_refuse(
			PAWL_INVALID_ARGUMENT, "context_describe: no context or no sink");
	pawl_json_init(&json);
	pawl_json_number(&json, json.root, "abi_version", (int32_t)PAWL_ABI_VERSION);
	pawl_json_string(&json, json.root, "build_id", pawl_build_id);
	pawl_json_string(&json, json.root, "target", context->device->api->name);
	pawl_json_number(&json, json.root, "n_threads", context->n_threads);
	describe_targets(&json);
	describe_cpu(&json);
	describe_ir(&json);
	status = pawl_json_text(&json, false, &text, &err);
	pawl_json_release(&json);
	if (status)
		return pawl_host_status(status, &err);
	stopped = sink(user, text, strlen(text));
	free(text);
	return stopped ? pawl_host_refuse(PAWL_ENVIRONMENT, "context_describe: the sink refused")
		       : NULL;
}
