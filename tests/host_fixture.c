#include "tests/host_fixture.h"

#include <check.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/print.h"
#include "ir/text_graph.h"

static struct pawl_error err;

#define OK(call) ck_assert_msg((call) == PAWL_OK, "%s", err.text)

const struct pawl_api *
pawl_test_host_api(void)
{
	static const struct pawl_api *api;
	const struct pawl_api *(*get_api)(uint32_t version);
	char path[4200];
	void *module;

	if (api)
		return api;
	snprintf(path, sizeof(path), "%s/pawl_plugin.so", getenv("PAWL_PLUGIN_PATH"));
	module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	ck_assert_msg(module != NULL, "%s", dlerror());
	*(void **)&get_api = dlsym(module, "pawl_get_api");
	ck_assert(get_api != NULL);
	api = get_api(PAWL_ABI_VERSION);
	ck_assert_ptr_nonnull(api);
	return api;
}

void
pawl_test_host_ok(struct pawl_host_status *status, const char *what)
{
	ck_assert_msg(!status, "%s: %s", what, pawl_test_host_api()->status_message(status));
}

void
pawl_test_host_refused(
	struct pawl_host_status *status, enum pawl_status_code code, const char *text)
{
	const struct pawl_api *api = pawl_test_host_api();

	ck_assert_msg(status != NULL, "not refused: %s", text);
	ck_assert_msg(api->status_code(status) == code, "code %d, not %d: %s",
		(int)api->status_code(status), (int)code, api->status_message(status));
	ck_assert_msg(strstr(api->status_message(status), text) != NULL, "%s, not %s",
		api->status_message(status), text);
	ck_assert_ptr_null(strchr(api->status_message(status), '\n'));
	api->status_free(status);
}

void
pawl_test_host_invalid(struct pawl_host_status *status, const char *text)
{
	pawl_test_host_refused(status, PAWL_CODE_INVALID_ARGUMENT, text);
}

struct pawl_host_context *
pawl_test_host_context(const char *target, int64_t n_threads, const struct pawl_services *services)
{
	const struct pawl_context_options options = {
		.struct_size = sizeof(options), .target = target, .n_threads = n_threads};
	struct pawl_host_context *context;

	PAWL_HOST_OK(pawl_test_host_api()->context_create(services, &options, &context));
	return context;
}

uint64_t
pawl_test_host_counter(struct pawl_host_context *context, const char *name)
{
	struct pawl_counter counter = {.struct_size = sizeof(counter)};

	for (int64_t i = 0; pawl_test_host_api()->context_counter(context, i, &counter); i++)
		if (!strcmp(counter.name, name))
			return counter.value;
	ck_abort_msg("no counter %s", name);
	return 0;
}

void
pawl_test_host_context_end(struct pawl_host_context *context)
{
	ck_assert_uint_eq(pawl_test_host_counter(context, "handles"), 1);
	pawl_test_host_api()->context_release(context);
}

struct pawl_host_graph *
pawl_test_host_graph(struct pawl_host_context *context, const struct pawl_model_source *source,
	const struct pawl_graph_request *request)
{
	struct pawl_host_graph *graph;
	struct pawl_graph *built;
	char *text;

	OK(source->build(source->ctx, request, &built, &err));
	text = pawl_print(built, NULL);
	ck_assert_ptr_nonnull(text);
	PAWL_HOST_OK(pawl_test_host_api()->graph_from_text(context, text, strlen(text), &graph));
	free(text);
	pawl_graph_free(built);
	return graph;
}

static void
lend_weights(struct pawl_test_host *host)
{
	const struct pawl_api *api = pawl_test_host_api();
	struct pawl_binding binding = {.struct_size = sizeof(binding)};

	PAWL_HOST_OK(api->weights_create(host->context, NULL, &host->weights));
	for (int64_t i = 0; api->plan_binding(host->plan, i, &binding); i++) {
		struct pawl_storage *storage;
		struct pawl_type type;

		if (binding.role != PAWL_BINDING_WEIGHT)
			continue;
		OK(pawl_parse_type(binding.name, binding.type, &type, &err));
		OK(pawl_weights_bind(
			host->source->weights, binding.name, &type, NULL, &storage, &err));
		ck_assert_int_lt(host->n_lent, 256);
		host->lent[host->n_lent++] = storage;
		PAWL_HOST_OK(api->weights_add(host->weights, binding.name, binding.type,
			storage->bytes, (size_t)storage->n_bytes));
	}
}

static void
init(struct pawl_test_host *host, const struct pawl_graph_request *request)
{
	const struct pawl_api *api = pawl_test_host_api();
	struct pawl_host_graph *graph = pawl_test_host_graph(host->context, host->source, request);

	host->request = *request;
	PAWL_HOST_OK(api->plan_compile(graph, &host->plan));
	api->graph_release(graph);
	if (!host->weights)
		lend_weights(host);
	PAWL_HOST_OK(api->session_create(host->plan, host->weights, &host->session));
}

void
pawl_test_host_init(struct pawl_test_host *host, struct pawl_host_context *context,
	const struct pawl_model_source *source, const struct pawl_graph_request *request)
{
	*host = (struct pawl_test_host){.context = context, .source = source};
	init(host, request);
}

void
pawl_test_host_init_like(struct pawl_test_host *host, const struct pawl_test_host *like,
	const struct pawl_graph_request *request)
{
	*host = (struct pawl_test_host){
		.context = like->context, .source = like->source, .weights = like->weights};
	init(host, request);
}

void
pawl_test_host_release(struct pawl_test_host *host)
{
	const struct pawl_api *api = pawl_test_host_api();

	api->session_release(host->session);
	api->plan_release(host->plan);
	if (host->n_lent)
		api->weights_release(host->weights);
	for (int i = 0; i < host->n_lent; i++)
		pawl_storage_unref(host->lent[i]);
}

/* The data that the plan has of that name. */
static void
set(struct pawl_test_host *host, const char *name, const void *bytes, size_t n_bytes)
{
	const struct pawl_api *api = pawl_test_host_api();
	int64_t binding = api->plan_find(host->plan, PAWL_BINDING_DATA, name);

	if (binding >= 0)
		PAWL_HOST_OK(api->session_set(host->session, binding, bytes, n_bytes));
}

static void
set_symbol(struct pawl_test_host *host, const char *name, int64_t value)
{
	const struct pawl_api *api = pawl_test_host_api();
	int64_t binding = api->plan_find(host->plan, PAWL_BINDING_SYMBOL, name);

	if (binding >= 0)
		PAWL_HOST_OK(api->session_set_symbol(host->session, binding, value));
}

struct pawl_host_status *
pawl_test_host_try(struct pawl_test_host *host, struct pawl_host_cache *cache,
	const uint32_t *tokens, const float **logits)
{
	return pawl_test_host_run(host, pawl_test_host_api()->cache_len(cache),
		host->request.n_tokens, tokens, logits);
}

struct pawl_host_status *
pawl_test_host_run(struct pawl_test_host *host, int64_t at, int64_t n_new, const uint32_t *tokens,
	const float **logits)
{
	const struct pawl_api *api = pawl_test_host_api();
	const struct pawl_model_source *source = host->source;
	int64_t n = host->request.n_tokens, width = source->rope_width;
	int64_t positions[64];
	float tables[4][64 * 64];
	struct pawl_host_status *status;
	const void *out;
	size_t n_bytes;

	ck_assert_int_le(n, 64);
	ck_assert_int_le(width, 64);
	for (int64_t i = 0; i < n; i++) {
		positions[i] = at + i;
		if (source->rope)
			source->rope(source->ctx, at + i, width, tables[0] + i * width,
				tables[1] + i * width);
		if (source->window_rope)
			source->window_rope(source->ctx, at + i, width, tables[2] + i * width,
				tables[3] + i * width);
	}
	set(host, "token_ids", tokens, (size_t)n * sizeof(*tokens));
	set(host, "rope_cos", tables[0], (size_t)(n * width) * sizeof(float));
	set(host, "rope_sin", tables[1], (size_t)(n * width) * sizeof(float));
	set(host, "window_cos", tables[2], (size_t)(n * width) * sizeof(float));
	set(host, "window_sin", tables[3], (size_t)(n * width) * sizeof(float));
	set(host, "offset", &at, sizeof(at));
	set(host, "positions", positions, (size_t)n * sizeof(*positions));
	set_symbol(host, "cached_len", at);
	set_symbol(host, "attended_len", at + n);
	status = api->session_run(host->session, n_new);
	if (status)
		return status;
	status = api->session_output(host->session, 0, &out, &n_bytes);
	if (!status)
		*logits = (const float *)out + n_bytes / sizeof(float) - (size_t)source->n_vocab;
	return status;
}

const float *
pawl_test_host_step(
	struct pawl_test_host *host, struct pawl_host_cache *cache, const uint32_t *tokens)
{
	const float *logits = NULL;

	PAWL_HOST_OK(pawl_test_host_try(host, cache, tokens, &logits));
	return logits;
}
