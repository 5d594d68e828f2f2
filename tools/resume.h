/* A session in a file: what `pawl run --restore` begins with and `--save` leaves behind. */
#ifndef PAWL_TOOLS_RESUME_H
#define PAWL_TOOLS_RESUME_H

#include "models/token_list.h"
#include "tools/engine.h"
#include "tools/output.h"

struct pawl_resume {
	const char *restore, *save; /* paths, NULL: not asked for */
	struct pawl_kv_snapshot *snapshot;
	struct pawl_output output;
};

/* clang-format off */
/* Rows of an option table; r is a struct pawl_resume. */
#define PAWL_OPTION_RESTORE(r) \
	{"--restore", PAWL_OPTION_TEXT, &(r).restore, "FILE", \
		"a saved session: go on, or begin a prompt with what it has", 0, 0}
#define PAWL_OPTION_SAVE(r) \
	{"--save", PAWL_OPTION_TEXT, &(r).save, "FILE", \
		"save the session when the answer is complete", 0, 0}
/* clang-format on */

/*
 * Opens the file of --save, then reads and proves that of --restore, as far as they are asked for.
 * inputs are those besides --restore, which may be the same file.  PAWL_INVALID_ARGUMENT, beside
 * pawl_output_open's, when a standard stream would be mixed with what is saved.
 */
enum pawl_status pawl_resume_open(struct pawl_resume *resume, const struct pawl_inputs *inputs,
	struct pawl_error *err);
/* Drops what is not saved. */
void pawl_resume_release(struct pawl_resume *resume);

/*
 * All tokens of the saved session, for a run without a prompt of its own.  PAWL_INVALID_FILE when
 * there are none, or one is not below n_vocab.
 */
enum pawl_status pawl_resume_prompt(const struct pawl_resume *resume, int64_t n_vocab,
	struct pawl_token_list *ids, struct pawl_error *err);

/* Positions that restoring needs room for. */
int64_t pawl_resume_positions(const struct pawl_resume *resume);

/*
 * Fills the decoder with the saved positions whose tokens the prompt begins with, at most all but
 * its last: that one brings the logits.
 */
enum pawl_status pawl_resume_restore(const struct pawl_resume *resume, struct pawl_engine *engine,
	const struct pawl_token_list *ids, struct pawl_error *err);

/* Prompt and answer, as far as the decoder has them. */
enum pawl_status pawl_resume_save(struct pawl_resume *resume,
	const struct pawl_engine *engine, const struct pawl_token_list *prompt,
	const struct pawl_token_list *answer, struct pawl_error *err);

#endif
