/*
 * A model driven through the ABI: the host builds the graphs of a tiny model when it is asked, and
 * what comes out is compared bit for bit with a decoder of the runtime.  Everything asserts that
 * it works.
 */
#ifndef PAWL_TESTS_DRIVEN_H
#define PAWL_TESTS_DRIVEN_H

#include "tests/host_fixture.h"
#include "tests/tiny_model.h"

enum { PAWL_DRIVEN_VOCAB = 40, PAWL_DRIVEN_CAPACITY = 64 };

struct pawl_driven {
	struct pawl_host_context *context;
	struct pawl_test_host lender; /* has the weights */
	struct pawl_host_model *model;
	struct pawl_tiny_model *tiny;
	const struct pawl_model_source *source;
	int n_built, fails; /* fails: builds nothing; 2: a graph that is wrong */
	/* NULL, or text of a graph that is handed over otherwise, wherever it is. */
	const char *from, *to;
	int n_exchanged;
	int is_stranger; /* the sizes of the model are not the graph's */
};

/* All but the model. */
void pawl_driven_init(struct pawl_driven *d, const char *target, int n_threads,
	const struct pawl_services *services, const struct pawl_tiny_options *tiny);
/* With the model, of the defaults of tiny models. */
void pawl_driven_begin(struct pawl_driven *d, const char *target, int n_threads,
	const struct pawl_services *services);
/* Nothing else of the context may be left. */
void pawl_driven_end(struct pawl_driven *d);
/* What model_create takes. */
struct pawl_model_options pawl_driven_options(struct pawl_driven *d);

/* Of PAWL_DRIVEN_CAPACITY positions. */
struct pawl_host_decoder *pawl_driven_decoder(struct pawl_driven *d, int64_t prefill_chunk);

/* Tokens first .. first + n - 1 of a sequence, until the next call. */
const uint32_t *pawl_driven_tokens(unsigned seed, int64_t first, int64_t n);
/* The token of the largest logit. */
uint32_t pawl_driven_likeliest(const float *logits);
/* These are the logits after the first n tokens of a sequence. */
void pawl_driven_expect(
	const struct pawl_driven *d, const float *logits, unsigned seed, int64_t n);

#endif
