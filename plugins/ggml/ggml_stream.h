/*
 * A stream of the host's graphs, one for each of its contexts: computes them by held plans, and by
 * the host's own CPU backend what has none.  Belongs to one thread at a time; streams do not share
 * anything but plans and packed weights.
 */
#ifndef PAWL_PLUGINS_GGML_STREAM_H
#define PAWL_PLUGINS_GGML_STREAM_H

#include "plugins/ggml/ggml_host.h"
#include "runtime/device.h"

struct pawl_ggml_stream;

/* For the registration: the host and where code runs.  Both outlive streams. */
void pawl_ggml_streams_init(const struct pawl_ggml_host *host, struct pawl_device *target);

/* The host's init_backend, set_n_threads and set_abort_callback. */
struct pawl_ggml_stream *pawl_ggml_stream_new(struct pawl_ggml_device *device, const char *params);
void pawl_ggml_stream_set_threads(struct pawl_ggml_stream *stream, int n_threads);
void pawl_ggml_stream_set_stop(
	struct pawl_ggml_stream *stream, bool (*should_stop)(void *data), void *data);

/* Whether an op could be part of a plan; what it is that is not known goes to err. */
bool pawl_ggml_supports(const struct pawl_ggml_host *host, const struct pawl_ggml_tensor *op,
	struct pawl_error *err);

#endif
