/*
 * The environment.  This is the one place that reads it; rows in ir/debug.def.  A set-user-id
 * process sees every variable as unset.
 */
#ifndef PAWL_IR_DEBUG_H
#define PAWL_IR_DEBUG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ir/status.h"

enum pawl_env {
#define PAWL_ENV_ROW(id, name, doc) PAWL_ENV_##id,
#include "ir/debug.def"
	PAWL_N_ENVS
};

struct pawl_env_info {
	const char *name, *doc;
};

const struct pawl_env_info *pawl_env_info(enum pawl_env variable);

/* The value; NULL when unset or empty.  Belongs to the process environment. */
const char *pawl_env(enum pawl_env variable);

/*
 * False when unset or not a whole decimal number that fits; *out is then left alone.
 */
bool pawl_env_int(enum pawl_env variable, int64_t *out);

/* The words of PAWL_DEBUG. */
enum pawl_debug {
#define PAWL_DEBUG_ROW(id, word, doc) PAWL_DEBUG_##id,
#include "ir/debug.def"
	PAWL_N_DEBUGS
};

const struct pawl_env_info *pawl_debug_info(enum pawl_debug word);

bool pawl_debug(enum pawl_debug word);

/*
 * PAWL_INVALID_ARGUMENT for a word of PAWL_DEBUG that is none, naming those there are, and for a
 * PAWL_BISECT that is no whole number from 0 on.
 */
enum pawl_status pawl_debug_check(struct pawl_error *err);

/* Whether `word` is an entry of the comma-separated list; an unset list holds nothing. */
bool pawl_env_lists(enum pawl_env variable, const char *word);

/*
 * The folder for compiled kernels, to be freed: PAWL_KERNEL_CACHE, else `kernels` in PAWL_CACHE_DIR,
 * else in XDG_CACHE_HOME/pawl, else in HOME/.cache/pawl.  NULL when that is "off" or none is set.
 */
enum pawl_status pawl_env_kernel_cache(char **out, struct pawl_error *err);

#endif
