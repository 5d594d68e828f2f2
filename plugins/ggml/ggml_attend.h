/* What attention and the products that it may be spelled out as share.  Private to the translation. */
#ifndef PAWL_PLUGINS_GGML_ATTEND_H
#define PAWL_PLUGINS_GGML_ATTEND_H

#include "plugins/ggml/ggml_values.h"

/* An op of the host and which of its sources; reading one stands where the op does. */
struct pawl_ggml_source {
	const struct pawl_ggml_tensor *op;
	int i;
};

static inline const struct pawl_ggml_tensor *
pawl_ggml_source_of(const struct pawl_ggml_source *s)
{
	return s->op->src[s->i];
}

float pawl_ggml_param_f32(const struct pawl_ggml_tensor *op, int i);
/* Whether a parameter from n on is not 0. */
bool pawl_ggml_has_params_beyond(const struct pawl_ggml_tensor *op, int n);

/* pawl_ggml_read_as of the source itself. */
struct pawl_node *pawl_ggml_read_source(
	struct pawl_ggml_translator *t, const struct pawl_ggml_source *s, int rank, const int *order);

/* Keys or values of a stream: [1, heads, positions, d].  NULL: err or graph->error. */
struct pawl_node *pawl_ggml_cache_of(
	struct pawl_ggml_translator *t, const struct pawl_ggml_source *s, int64_t stream);

/* The parts one after the other along axis 0. */
struct pawl_node *pawl_ggml_join(
	struct pawl_ggml_translator *t, struct pawl_node *const *parts, int64_t n_parts);

/*
 * Where streams take turns: the rows of a stream of a source [d, rows, heads, streams], as
 * [rows, heads, d]; and rows of all streams [all, heads, d] made of those.  NULL: err or graph->error.
 */
struct pawl_node *pawl_ggml_take_turn(
	struct pawl_ggml_translator *t, const struct pawl_ggml_source *s, int64_t stream);
struct pawl_node *pawl_ggml_put_turns(struct pawl_ggml_translator *t,
	const struct pawl_ggml_source *s, struct pawl_node *const *parts, int64_t n_parts);

/* What stands in err or graph->error, as op's failure. */
enum pawl_status pawl_ggml_failure(
	struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *op);

/* Values times weighed scores: attention, when all that it is made of is known. */
enum pawl_status pawl_ggml_attention_of_products(
	struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *op);

#endif
