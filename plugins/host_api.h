/* Objects behind the opaque handles of include/pawl/plugin.h; shared by plugins/host_*.c. */
#ifndef PAWL_PLUGINS_HOST_API_H
#define PAWL_PLUGINS_HOST_API_H

#include <pawl/plugin.h>
#include <stdatomic.h>

#include "runtime/bindings.h"
#include "runtime/pool.h"

struct pawl_context {
	struct pawl_device *device;
	struct pawl_host_services services;
	enum pawl_precision precision;
	int n_threads;
	atomic_int n_children; /* graphs, plans, instances */
	atomic_ullong optimizes, runs, bytes_bound;
};

/* A graph is kept as text until it is compiled: one form, one parser. */
struct pawl_host_graph {
	struct pawl_context *context;
	char *text; /* statements so far, without the closing brace when built node by node */
	size_t n, cap;
	int is_open;
};

struct pawl_host_plan {
	struct pawl_context *context;
	struct pawl_plan *plan;
	atomic_int n_refs;
	int32_t n_bindings;
	int32_t *slots;      /* n_bindings: the first slot of each named value */
	char (*types)[96];   /* n_bindings: text of its type as the host sees it, row-major weights */
};

struct pawl_instance {
	struct pawl_host_plan *plan;
	struct pawl_pool *pool;
	struct pawl_bindings *bindings;
	struct pawl_symenv env;
	int has_run;
};

/* A status object for a failure, NULL for PAWL_OK. */
struct pawl_status_object *pawl_host_status(enum pawl_status status, const struct pawl_error *err);
struct pawl_status_object *pawl_host_refuse(enum pawl_status status, const char *format, ...)
	PAWL_PRINTF(2, 3);
enum pawl_status_code pawl_host_status_code(const struct pawl_status_object *status);
const char *pawl_host_status_message(const struct pawl_status_object *status);
void pawl_host_status_free(struct pawl_status_object *status);

void pawl_host_log(const struct pawl_context *context, int level, const char *format, ...)
	PAWL_PRINTF(3, 4);

/* The entries of struct pawl_api, see there. */
struct pawl_status_object *pawl_host_graph_from_text(struct pawl_context *context, const char *text,
	size_t n, struct pawl_host_graph **out);
struct pawl_status_object *pawl_host_graph_create(
	struct pawl_context *context, const char *name, struct pawl_host_graph **out);
struct pawl_status_object *pawl_host_graph_symbol(struct pawl_host_graph *graph, const char *name,
	int64_t min, int64_t max, int64_t multiple);
struct pawl_status_object *pawl_host_graph_add(struct pawl_host_graph *graph, const char *name,
	const char *op, const char *const *inputs, int32_t n_inputs, const char *attrs,
	const char *type);
struct pawl_status_object *pawl_host_graph_output(struct pawl_host_graph *graph, const char *name);
void pawl_host_graph_destroy(struct pawl_host_graph *graph);

struct pawl_status_object *pawl_host_plan_compile(
	struct pawl_host_graph *graph, struct pawl_host_plan **out);
void pawl_host_plan_retain(struct pawl_host_plan *plan);
void pawl_host_plan_release(struct pawl_host_plan *plan);
int32_t pawl_host_plan_n_bindings(const struct pawl_host_plan *plan);
int pawl_host_plan_binding(
	const struct pawl_host_plan *plan, int32_t i, struct pawl_binding_info *out);
struct pawl_status_object *pawl_host_plan_to_json(
	const struct pawl_host_plan *plan, pawl_sink *sink, void *user);

struct pawl_status_object *pawl_host_instance_create(
	struct pawl_host_plan *plan, struct pawl_instance **out);
void pawl_host_instance_destroy(struct pawl_instance *instance);
struct pawl_status_object *pawl_host_instance_bind(
	struct pawl_instance *instance, const char *name, void *bytes, size_t n_bytes);
struct pawl_status_object *pawl_host_instance_set_data(
	struct pawl_instance *instance, const char *name, const void *bytes, size_t n_bytes);
struct pawl_status_object *pawl_host_instance_set_symbol(
	struct pawl_instance *instance, const char *name, int64_t value);
struct pawl_status_object *pawl_host_instance_run(struct pawl_instance *instance);
struct pawl_status_object *pawl_host_instance_output(const struct pawl_instance *instance, int32_t i,
	const void **bytes, size_t *n_bytes);

#endif
