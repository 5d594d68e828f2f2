/*
 * The fixture of a suite that runs one tiny_mla model over latents.  Included by the one source of a
 * suite, whose own the statics are.
 */
#ifndef PAWL_TESTS_LATENT_FIXTURE_H
#define PAWL_TESTS_LATENT_FIXTURE_H

#include "tests/latent_runner.h"

static struct pawl_tiny_mla *model;
static struct pawl_latent_runner life;
static struct pawl_latent_way way;

static inline void
begin_life(void)
{
	const struct pawl_tiny_mla_options options = pawl_tiny_mla_defaults();

	model = pawl_tiny_mla_new(&options);
	way = pawl_latent_plain;
	pawl_latent_runner_init(&life, model, &way);
}

static inline void
end_life(void)
{
	pawl_latent_runner_release(&life);
	pawl_tiny_mla_free(model);
}

#endif
