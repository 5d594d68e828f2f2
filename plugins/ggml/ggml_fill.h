/* What a run's data consts get, made from what the host hands over. */
#ifndef PAWL_PLUGINS_GGML_FILL_H
#define PAWL_PLUGINS_GGML_FILL_H

#include "plugins/ggml/ggml_translate.h"

/* Where the part of a cache that the graph looks at begins, in bytes from the start of the tensor. */
int64_t pawl_ggml_window_of(
	const struct pawl_ggml_bind *bind, const struct pawl_ggml_graph *graph);

/*
 * The cells that rows go to, from the start of their part of the cache on.  PAWL_CAPACITY for one
 * that lies outside, PAWL_UNSUPPORTED where the elements of a row do not go to one cell.
 */
enum pawl_status pawl_ggml_fill_index(const struct pawl_ggml_bind *bind,
	const struct pawl_ggml_graph *graph, int64_t *out, struct pawl_error *err);

/*
 * The mask's columns up to the last that a row sees: *seen is their number.  No row r sees a column
 * beyond *offset + r.
 */
void pawl_ggml_fill_mask(const struct pawl_ggml_bind *bind, const struct pawl_ggml_tensor *mask,
	int64_t rows, float *out, int64_t *seen, int64_t *offset);

/* frequencies: width of them, of which the upper half is room. */
void pawl_ggml_fill_rope(const struct pawl_ggml_bind *bind, double *frequencies,
	const struct pawl_ggml_graph *graph, float *cosines, float *sines);

/* The n rows of a stream, as indices and as places; either may be NULL. */
void pawl_ggml_fill_turn(const struct pawl_ggml_bind *bind, int64_t n, int32_t *from, int64_t *to);

#endif
