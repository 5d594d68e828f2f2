/*
 * The fixture of a suite that runs one tiny_mla model over latents.  Included by the one source of
 * a suite, whose own the statics are.
 */
#ifndef PAWL_TESTS_LATENT_FIXTURE_H
#define PAWL_TESTS_LATENT_FIXTURE_H

#include <check.h>

#include "runtime/latent_kv_cache.h"
#include "tests/latent_runner.h"

enum { N_VOCAB = PAWL_LATENT_N_VOCAB };

static struct pawl_tiny_mla *model;
static struct pawl_latent_runner life;
static struct pawl_latent_way way;
static struct pawl_error err;

#define OK(call) ck_assert_msg((call) == PAWL_OK, "%s", err.text)

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

static inline struct pawl_latent_kv_cache *
fork_now(void)
{
	struct pawl_latent_kv_cache *fork;

	OK(pawl_latent_kv_cache_fork(life.cache, &fork, &err));
	return fork;
}

#endif
