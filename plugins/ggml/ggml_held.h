/*
 * A held plan for graphs of one shape, bound to the memory of a host's graph anew for each run.
 * Belongs to one thread at a time.
 */
#ifndef PAWL_PLUGINS_GGML_HELD_H
#define PAWL_PLUGINS_GGML_HELD_H

#include "plugins/ggml/ggml_translate.h"
#include "runtime/bindings.h"

struct pawl_ggml_held;

/*
 * Takes the translation over, whether it fails or not.  team and scratch outlive it; others that do not
 * run at once may use that scratch memory too.  The plan is referenced.
 */
enum pawl_status pawl_ggml_held_new(const struct pawl_ggml_host *host,
	struct pawl_ggml_translation *translation, struct pawl_plan *plan, struct pawl_team *team,
	struct pawl_scratch *scratch, struct pawl_ggml_held **out, struct pawl_error *err);
/* NULL is allowed. */
void pawl_ggml_held_free(struct pawl_ggml_held *held);

/*
 * Computes a graph whose translation has the same hash; the lengths are its own.  On failure nothing
 * of the graph was written: the host may compute it otherwise.
 */
enum pawl_status pawl_ggml_held_run(struct pawl_ggml_held *held,
	const struct pawl_ggml_graph *graph, int64_t n_tokens, int64_t n_rows,
	struct pawl_error *err);

#endif
