/* What a model file is, the same in every process that opens it. */
#ifndef PAWL_MODELS_FINGERPRINT_H
#define PAWL_MODELS_FINGERPRINT_H

#include "models/gguf.h"

/*
 * Over all metadata but general.*, and of every tensor the name, type, dims and 64 bytes from its
 * middle: enough to tell two trainings of one architecture apart without reading the file.
 */
uint64_t pawl_gguf_fingerprint(const struct pawl_gguf *gguf);

#endif
