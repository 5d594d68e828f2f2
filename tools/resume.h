/* A session in a file: what `pawl run --restore` begins with and `--save` leaves behind. */
#ifndef PAWL_TOOLS_RESUME_H
#define PAWL_TOOLS_RESUME_H

#include "models/token_list.h"
#include "tools/engine.h"

struct pawl_resume {
	const char *restore, *save; /* paths, NULL: not asked for */
	struct pawl_kv_snapshot *snapshot;
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

/* Reads and proves the file of --restore, if there is one. */
enum pawl_status pawl_resume_open(struct pawl_resume *resume, struct pawl_error *err);
void pawl_resume_release(struct pawl_resume *resume);

/* All tokens of the saved session, for a run without a prompt of its own. */
enum pawl_status pawl_resume_prompt(
	const struct pawl_resume *resume, struct pawl_token_list *ids, struct pawl_error *err);

/* Positions that restoring needs room for. */
int64_t pawl_resume_positions(const struct pawl_resume *resume);

/*
 * Fills the decoder with the saved positions whose tokens the prompt begins with, at most all but
 * its last: that one brings the logits.
 */
enum pawl_status pawl_resume_restore(const struct pawl_resume *resume, struct pawl_engine *engine,
	const struct pawl_token_list *ids, struct pawl_error *err);

/* Prompt and answer, as far as the decoder has them. */
enum pawl_status pawl_resume_save(const struct pawl_resume *resume,
	const struct pawl_engine *engine, const struct pawl_token_list *prompt,
	const struct pawl_token_list *answer, struct pawl_error *err);

#endif
