#include <stdlib.h>
#include <string.h>

#include "plugins/host_api.h"

enum { WEIGHT_OPTIONS_1 = 24, ALIGNMENT = 4 };

_Static_assert(sizeof(struct pawl_weight_options) >= WEIGHT_OPTIONS_1, "structs only grow");

struct lent {
	char *name;
	struct pawl_weight weight;
};

struct pawl_host_weights {
	struct pawl_host_object object;
	struct pawl_weight_options options;
	struct pawl_weights *weights;
	struct lent *lent;
	int64_t n, capacity;
};

struct pawl_weights *
pawl_host_weights_of(struct pawl_host_weights *weights)
{
	return weights->weights;
}

static const struct lent *
find(const struct pawl_host_weights *weights, const char *name)
{
	for (int64_t i = 0; i < weights->n; i++)
		if (!strcmp(weights->lent[i].name, name))
			return &weights->lent[i];
	return NULL;
}

static enum pawl_status
find_weight(void *ctx, const char *name, struct pawl_weight *out, struct pawl_error *err)
{
	const struct lent *lent = find(ctx, name);

	if (!lent)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT, "no weight '%.64s' was added", name);
	*out = lent->weight;
	return PAWL_OK;
}

static void
drop(void *ctx, const void *bytes, int64_t n_bytes)
{
	const struct pawl_host_weights *weights = ctx;

	if (weights->options.unneeded)
		weights->options.unneeded(weights->options.user, bytes, (size_t)n_bytes);
}

static void
weights_free(struct pawl_host_weights *weights)
{
	pawl_weights_unref(weights->weights);
	for (int64_t i = 0; i < weights->n; i++)
		free(weights->lent[i].name);
	free(weights->lent);
	pawl_host_object_free(weights);
}

struct pawl_host_status *
pawl_host_weights_create(struct pawl_host_context *context,
	const struct pawl_weight_options *options, struct pawl_host_weights **out)
{
	struct pawl_weight_options known = {0};
	struct pawl_weight_source source = {NULL, find_weight, drop};
	struct pawl_host_weights *weights;
	enum pawl_status status;
	struct pawl_error err;

	if (!pawl_host_is(context, PAWL_HOST_CONTEXT) || !out)
		return pawl_host_refuse(
			PAWL_INVALID_ARGUMENT, "weights_create: no context or a pointer is NULL");
	if (options && !pawl_host_read(&known, sizeof(known), WEIGHT_OPTIONS_1, options))
		return pawl_host_refuse(PAWL_INVALID_ARGUMENT,
			"weights_create: struct_size of the options is wrong");
	weights = pawl_host_object_new(PAWL_HOST_WEIGHTS, context, sizeof(*weights));
	if (!weights)
		return pawl_host_refuse(PAWL_OUT_OF_MEMORY, "no memory for weights");
	weights->options = known;
	source.ctx = weights;
	status = pawl_weights_new(&source, &weights->weights, &err);
	if (status)
		weights_free(weights);
	else
		*out = weights;
	return pawl_host_status(status, &err);
}

static enum pawl_status
reserve(struct pawl_host_weights *weights, struct pawl_error *err)
{
	int64_t capacity = 2 * weights->n + 16;
	struct lent *bigger;

	if (weights->n < weights->capacity)
		return PAWL_OK;
	bigger = realloc(weights->lent, (size_t)capacity * sizeof(*bigger));
	if (!bigger)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for weights");
	weights->lent = bigger;
	weights->capacity = capacity;
	return PAWL_OK;
}

static enum pawl_status
check(const struct pawl_host_weights *weights, const char *name, const struct pawl_type *type,
	const void *bytes, size_t n_bytes, struct pawl_error *err)
{
	int64_t wanted = pawl_storage_bytes(type);

	if (find(weights, name))
		return pawl_fail(
			err, PAWL_INVALID_ARGUMENT, "weights_add: '%.64s' is there already", name);
	if (type->layout != PAWL_LAYOUT_ROWS || wanted < 0)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"weights_add: '%.64s' is not row-major or has no bytes", name);
	if (n_bytes != (size_t)wanted)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"weights_add: '%.64s' has %lld bytes, %zu are given", name,
			(long long)wanted, n_bytes);
	if ((uintptr_t)bytes % ALIGNMENT)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"weights_add: '%.64s' is not aligned to %d bytes", name, ALIGNMENT);
	return PAWL_OK;
}

struct pawl_host_status *
pawl_host_weights_add(struct pawl_host_weights *weights, const char *name, const char *type,
	const void *bytes, size_t n_bytes)
{
	struct lent lent = {0};
	enum pawl_status status;
	struct pawl_error err;
	struct pawl_type parsed;

	if (!pawl_host_is(weights, PAWL_HOST_WEIGHTS) || !name || !type || !bytes)
		return pawl_host_refuse(
			PAWL_INVALID_ARGUMENT, "weights_add: no weights or a pointer is NULL");
	status = pawl_parse_type(name, type, &parsed, &err);
	if (!status)
		status = check(weights, name, &parsed, bytes, n_bytes, &err);
	if (!status)
		status = reserve(weights, &err);
	if (status)
		return pawl_host_status(status, &err);
	lent.name = strdup(name);
	if (!lent.name)
		return pawl_host_refuse(PAWL_OUT_OF_MEMORY, "no memory for weights");
	lent.weight = (struct pawl_weight){.bytes = bytes,
		.n_bytes = (int64_t)n_bytes,
		.dtype = parsed.dtype,
		.rank = parsed.rank};
	for (int i = 0; i < parsed.rank; i++)
		lent.weight.dim[i] = parsed.dim[i].base;
	weights->lent[weights->n++] = lent;
	return NULL;
}

void
pawl_host_weights_release(struct pawl_host_weights *weights)
{
	if (pawl_host_drop(weights, PAWL_HOST_WEIGHTS))
		weights_free(weights);
}
