/*
 * What tests of the ABI share: the module opened as a host opens it, and a model driven through it.
 */
#ifndef PAWL_TESTS_HOST_FIXTURE_H
#define PAWL_TESTS_HOST_FIXTURE_H

#include "pawl/plugin.h"
#include "runtime/model_source.h"

/* Kernels where there is a compiler, which ThreadSanitizer does not see through. */
#if defined(PAWL_HAVE_LLVM) && !defined(__SANITIZE_THREAD__)
#define PAWL_TEST_HAS_KERNELS
#endif

/* The table of pawl_plugin.so, opened by dlopen.  Everything here asserts that it works. */
const struct pawl_api *pawl_test_host_api(void);
/* A context of n_threads on a target; services may be NULL. */
struct pawl_host_context *pawl_test_host_context(
	const char *target, int64_t n_threads, const struct pawl_services *services);
/* Releases one of which nothing else may be left. */
void pawl_test_host_context_end(struct pawl_host_context *context);
/* The value of a counter; fails when there is none of that name. */
uint64_t pawl_test_host_counter(struct pawl_host_context *context, const char *name);
/* Frees the status, which must be of that code and have text in its message. */
void pawl_test_host_refused(
	struct pawl_host_status *status, enum pawl_status_code code, const char *text);
/* The same of PAWL_CODE_INVALID_ARGUMENT. */
void pawl_test_host_invalid(struct pawl_host_status *status, const char *text);
#define PAWL_HOST_OK(call) pawl_test_host_ok(call, #call)
void pawl_test_host_ok(struct pawl_host_status *status, const char *what);

/* A model's step in a plan, its weights lent to a session. */
struct pawl_test_host {
	struct pawl_host_context *context; /* referenced by what follows only */
	const struct pawl_model_source *source;
	struct pawl_graph_request request;
	struct pawl_host_weights *weights; /* shared with those that are made like this one */
	struct pawl_storage *lent[256];
	int n_lent;
	struct pawl_host_plan *plan;
	struct pawl_host_session *session;
};

/* The graph of a request, handed over as text. */
struct pawl_host_graph *pawl_test_host_graph(struct pawl_host_context *context,
	const struct pawl_model_source *source, const struct pawl_graph_request *request);
void pawl_test_host_init(struct pawl_test_host *host, struct pawl_host_context *context,
	const struct pawl_model_source *source, const struct pawl_graph_request *request);
/* Another kind of step of the same model, with the weights of `like`, which must outlive it. */
void pawl_test_host_init_like(struct pawl_test_host *host, const struct pawl_test_host *like,
	const struct pawl_graph_request *request);
void pawl_test_host_release(struct pawl_test_host *host);
/*
 * Appends tokens, as many as the plan takes, to a cache; the logits of the last.  The session must
 * have moved to the cache.
 */
const float *pawl_test_host_step(struct pawl_test_host *host, struct pawl_host_cache *cache,
	const uint32_t *tokens);
/* The same of a run that may fail. */
struct pawl_host_status *pawl_test_host_try(struct pawl_test_host *host,
	struct pawl_host_cache *cache, const uint32_t *tokens, const float **logits);
/* The same at a position, whatever the memory is; appends n_new to the session's cache. */
struct pawl_host_status *pawl_test_host_run(struct pawl_test_host *host, int64_t at, int64_t n_new,
	const uint32_t *tokens, const float **logits);

#endif
