/* What `pawl run --draft` and `--lookup` guess with. */
#ifndef PAWL_TOOLS_SPECULATE_H
#define PAWL_TOOLS_SPECULATE_H

#include "runtime/speculative.h"
#include "tools/engine.h"

struct pawl_speculate {
	const char *draft; /* path of a model, NULL: none */
	bool lookup;
	int64_t n_guess;
	struct pawl_engine engine; /* the draft's */
	struct pawl_draft *guesser;
	struct pawl_lookup repeat;
	struct pawl_speculative *speculative; /* NULL before start, and when nothing is guessed */
};

/* clang-format off */
#define PAWL_SPECULATE_DEFAULTS {.n_guess = 7}

/* Rows of an option table; s is a struct pawl_speculate. */
#define PAWL_OPTION_DRAFT(s) \
	{"--draft", PAWL_OPTION_TEXT, &(s).draft, "FILE", \
		"a smaller model of the same vocabulary guesses tokens ahead", 0, 0}
#define PAWL_OPTION_LOOKUP(s) \
	{"--lookup", PAWL_OPTION_ON, &(s).lookup, NULL, \
		"guess tokens ahead from what the text has had before", 0, 0}
#define PAWL_OPTION_GUESS(s) \
	{"--guess", PAWL_OPTION_INT, &(s).n_guess, "N", \
		"so many tokens ahead (default: 7)", 1, PAWL_MAX_GUESS}
/* clang-format on */

/*
 * Opens the draft model, if there is one.  PAWL_INVALID_ARGUMENT names it when its vocabulary is
 * not that of engine's model.
 */
enum pawl_status pawl_speculate_open(
	struct pawl_speculate *s, const struct pawl_engine *engine, struct pawl_error *err);
/* Tokens that guessing takes back at once. */
int64_t pawl_speculate_rollback(const struct pawl_speculate *s);

/* For the decoder of engine, which must outlive this. */
enum pawl_status pawl_speculate_start(
	struct pawl_speculate *s, struct pawl_engine *engine, struct pawl_error *err);
void pawl_speculate_release(struct pawl_speculate *s);

#endif
