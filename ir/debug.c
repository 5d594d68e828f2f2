#include "ir/debug.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct pawl_env_info infos[PAWL_N_ENVS] = {
#define PAWL_ENV_ROW(id, text, meaning) [PAWL_ENV_##id] = {text, meaning},
#include "ir/debug.def"
};

static const struct pawl_env_info words[PAWL_N_DEBUGS] = {
#define PAWL_DEBUG_ROW(id, text, meaning) [PAWL_DEBUG_##id] = {text, meaning},
#include "ir/debug.def"
};

const struct pawl_env_info *
pawl_env_info(enum pawl_env variable)
{
	return &infos[variable];
}

const char *
pawl_env(enum pawl_env variable)
{
	const char *value = secure_getenv(infos[variable].name);

	return value && *value ? value : NULL;
}

bool
pawl_env_int(enum pawl_env variable, int64_t *out)
{
	const char *text = pawl_env(variable);
	char *end;
	long long value;

	if (!text)
		return false;
	errno = 0;
	value = strtoll(text, &end, 10);
	if (errno || end == text || *end)
		return false;
	*out = value;
	return true;
}

bool
pawl_env_lists(enum pawl_env variable, const char *word)
{
	const char *at = pawl_env(variable);
	size_t n = strlen(word);

	while (at) {
		size_t length = strcspn(at, ",");

		if (length == n && !memcmp(at, word, n))
			return true;
		at = at[length] ? at + length + 1 : NULL;
	}
	return false;
}

const struct pawl_env_info *
pawl_debug_info(enum pawl_debug word)
{
	return &words[word];
}

bool
pawl_debug(enum pawl_debug word)
{
	return pawl_env_lists(PAWL_ENV_DEBUG, words[word].name);
}

static bool
is_debug_word(const char *text, size_t n)
{
	for (int i = 0; i < PAWL_N_DEBUGS; i++)
		if (strlen(words[i].name) == n && !memcmp(words[i].name, text, n))
			return true;
	return !n;
}

enum pawl_status
pawl_debug_check(struct pawl_error *err)
{
	const char *at = pawl_env(PAWL_ENV_DEBUG), *bisect = pawl_env(PAWL_ENV_BISECT);
	char there_are[256] = "";
	int64_t value;

	for (int i = 0; i < PAWL_N_DEBUGS; i++) {
		size_t used = strlen(there_are);

		snprintf(there_are + used, sizeof(there_are) - used, "%s%s", i ? ", " : "",
			words[i].name);
	}
	while (at) {
		size_t n = strcspn(at, ",");

		if (!is_debug_word(at, n))
			return pawl_fail(err, PAWL_INVALID_ARGUMENT,
				"PAWL_DEBUG: '%.*s' is none of %s", (int)(n < 64 ? n : 64), at,
				there_are);
		at = at[n] ? at + n + 1 : NULL;
	}
	if (bisect && (!pawl_env_int(PAWL_ENV_BISECT, &value) || value < 0))
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"PAWL_BISECT: '%.64s' is no whole number from 0 on", bisect);
	return PAWL_OK;
}

enum pawl_status
pawl_env_kernel_cache(char **out, struct pawl_error *err)
{
	static const struct {
		enum pawl_env variable;
		const char *below;
	} places[] = {
		{PAWL_ENV_KERNELS, ""},
		{PAWL_ENV_CACHE_DIR, "/kernels"},
		{PAWL_ENV_XDG_CACHE, "/pawl/kernels"},
		{PAWL_ENV_HOME, "/.cache/pawl/kernels"},
	};
	const char *base = NULL;
	size_t i, n;

	*out = NULL;
	for (i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if ((base = pawl_env(places[i].variable)))
			break;
	if (!base || (!i && !strcmp(base, "off")))
		return PAWL_OK;
	n = strlen(base) + strlen(places[i].below) + 1;
	*out = malloc(n);
	if (!*out)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for a path");
	snprintf(*out, n, "%s%s", base, places[i].below);
	return PAWL_OK;
}
