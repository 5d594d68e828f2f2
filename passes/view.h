/*
 * Views as strided windows: what a chain of reshape, permute, slice and broadcast nodes means
 * in terms of the storage underneath.
 */
#ifndef PAWL_PASSES_VIEW_H
#define PAWL_PASSES_VIEW_H

#include "ir/graph.h"
#include "passes/step.h"

/* A window that covers a value of `type` stored at the start of its slot; arg is unset. */
struct pawl_access pawl_access_whole(const struct pawl_graph *graph, const struct pawl_type *type);

/*
 * The window that `value` is on the value under its views.  *base is the node under the views
 * (no view itself), *offset the window's start in elements from the base's.  False when the chain is
 * not a strided window (a reshape across strides), or longer than PAWL_MAX_VIEWS.
 */
enum { PAWL_MAX_VIEWS = 32 };
bool pawl_access_of(const struct pawl_graph *graph, const struct pawl_node *value,
	const struct pawl_node **base, struct pawl_access *access, int64_t *offset);

/* Re-expresses a window over dims `from` as one over dims `to` of equally many elements. */
bool pawl_access_reshape(const struct pawl_graph *graph, struct pawl_access *access,
	const struct pawl_type *from, const struct pawl_type *to);

/*
 * A store through views: `value` is stored as src of a write whose destination window (over src's
 * dims) is *access; src is reached from value through views only.  Re-expresses *access over
 * value's dims.  False when a view between cannot be inverted (slice, broadcast).
 */
bool pawl_access_invert(const struct pawl_graph *graph, const struct pawl_node *src,
	const struct pawl_node *value, struct pawl_access *access);

/* The node under the views of value; value itself when it is no view. */
const struct pawl_node *pawl_node_base(const struct pawl_node *value);

/* The uses of value and of its views, those by the views themselves included. */
#define pawl_foreach_use_through(use, value)                                                       \
	for ((use) = (value)->uses; (use); (use) = pawl_use_through(use, value))
struct pawl_use *pawl_use_through(const struct pawl_use *use, const struct pawl_node *value);

#endif
