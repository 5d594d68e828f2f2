/* What a model file is, the same in every process that opens it. */
#ifndef PAWL_MODELS_FINGERPRINT_H
#define PAWL_MODELS_FINGERPRINT_H

#include "models/gguf.h"

/*
 * Over all metadata but general.*, and the name, type, dims and content of every tensor.  Reads the
 * whole file, some 5 GB a second where it is in the page cache, and gives its pages back.
 */
uint64_t pawl_gguf_fingerprint(const struct pawl_gguf *gguf);

#endif
