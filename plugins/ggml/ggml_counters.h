/* What the backend did in this process, and what it keeps.  Any thread. */
#ifndef PAWL_PLUGINS_GGML_COUNTERS_H
#define PAWL_PLUGINS_GGML_COUNTERS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* PAWL_GGML_COUNTER_ROW(name, "meaning") */
#define PAWL_GGML_COUNTERS                                                                         \
	PAWL_GGML_COUNTER_ROW(graphs, "graphs that the host handed over")                          \
	PAWL_GGML_COUNTER_ROW(same, "of these the graph before once more, by its number")          \
	PAWL_GGML_COUNTER_ROW(known, "of these of a shape that was met before")                    \
	PAWL_GGML_COUNTER_ROW(translated, "of these translated")                                   \
	PAWL_GGML_COUNTER_ROW(shapes, "distinct shapes, lengths left out")                         \
	PAWL_GGML_COUNTER_ROW(optimizes, "plans built")                                            \
	PAWL_GGML_COUNTER_ROW(rebuilds, "of these built before, and dropped meanwhile")            \
	PAWL_GGML_COUNTER_ROW(evicted, "plans dropped, as too many others came")                   \
	PAWL_GGML_COUNTER_ROW(plans, "plans that are kept now")                                    \
	PAWL_GGML_COUNTER_ROW(runs, "runs of plans")                                               \
	PAWL_GGML_COUNTER_ROW(fallbacks, "graphs that the host's CPU backend computed instead")

struct pawl_ggml_counters {
#define PAWL_GGML_COUNTER_ROW(name, doc) _Atomic uint64_t name;
	PAWL_GGML_COUNTERS
#undef PAWL_GGML_COUNTER_ROW
};

extern struct pawl_ggml_counters pawl_ggml_counters;

/* An op that a graph, or the host's question for it, was declined for. */
void pawl_ggml_count_declined(const char *op);

/* "graphs 12, same 10, ..., declined: GET_ROWS 3"; cut off at n bytes; returns out. */
const char *pawl_ggml_counters_text(char *out, size_t n);

#endif
