/*
 * Buffers: memory of the host, in ggml's own layout, so that any backend may work on it; of its own,
 * or of the host's making, as a mapped model file.  Whatever is written to them through ggml makes
 * packed forms of weights forgotten.
 */
#ifndef PAWL_PLUGINS_GGML_BUFFER_H
#define PAWL_PLUGINS_GGML_BUFFER_H

#include "plugins/ggml/ggml_host.h"

struct pawl_ggml_buft {
	pawl_ggml_fn fn[PAWL_GGML_BUFT_FNS]; /* as many as the layout has; device, context follow */
	void *room[2];
};

/* Fills in the one buffer type for the host, which must outlive it. */
void pawl_ggml_buft_init(const struct pawl_ggml_host *host, struct pawl_ggml_device *device);
struct pawl_ggml_buft *pawl_ggml_buft(void);

/* A buffer on memory that somebody else keeps; NULL when memory is exhausted. */
struct pawl_ggml_buffer *pawl_ggml_buffer_of(void *bytes, size_t n_bytes);

bool pawl_ggml_buffer_is_ours(const struct pawl_ggml_buffer *buffer);
/* Whether one of ours lies on memory that somebody else keeps. */
bool pawl_ggml_buffer_is_foreign_memory(const struct pawl_ggml_buffer *buffer);

#endif
