/*
 * A session in a file: what `pawl run --restore` goes on from, `--reuse` takes the beginning of a
 * prompt from, and `--save` leaves behind.
 */
#ifndef PAWL_TOOLS_RESUME_H
#define PAWL_TOOLS_RESUME_H

#include "models/token_list.h"
#include "tools/engine.h"
#include "tools/output.h"

struct pawl_resume {
	const char *restore, *reuse, *save; /* paths, NULL: not asked for; of the first two one */
	struct pawl_kv_snapshot *snapshot;
	struct pawl_output output;
};

/* clang-format off */
/* Rows of an option table; r is a struct pawl_resume. */
#define PAWL_OPTION_RESTORE(r) \
	{"--restore", PAWL_OPTION_TEXT, &(r).restore, "FILE", \
		"a saved session to go on from; a prompt is what comes next in it", 0, 0}
#define PAWL_OPTION_REUSE(r) \
	{"--reuse", PAWL_OPTION_TEXT, &(r).reuse, "FILE", \
		"begin anew; what the prompt and that session begin with is not computed", 0, 0}
#define PAWL_OPTION_SAVE(r) \
	{"--save", PAWL_OPTION_TEXT, &(r).save, "FILE", \
		"save the session when the answer is complete", 0, 0}
/* clang-format on */

/*
 * Opens the file of --save, then reads and proves that of --restore or --reuse, as far as they are
 * asked for.  inputs are those besides these two, which may be the same file as --save.
 * PAWL_INVALID_ARGUMENT, beside pawl_output_open's, when a standard stream would be mixed with what
 * is saved.
 */
enum pawl_status pawl_resume_open(struct pawl_resume *resume, const struct pawl_inputs *inputs,
	struct pawl_error *err);
/* Drops what is not saved. */
void pawl_resume_release(struct pawl_resume *resume);

/*
 * Adds all tokens of the session of --restore, if there is one.  PAWL_INVALID_FILE when one is not
 * below n_vocab.
 */
enum pawl_status pawl_resume_tokens(const struct pawl_resume *resume, int64_t n_vocab,
	struct pawl_token_list *ids, struct pawl_error *err);

/* Positions that restoring needs room for. */
int64_t pawl_resume_positions(const struct pawl_resume *resume);

/*
 * Fills the decoder with the saved positions whose tokens the prompt begins with, at most all but
 * its last: that one brings the logits.  Says so on stderr.
 */
enum pawl_status pawl_resume_restore(const struct pawl_resume *resume, struct pawl_engine *engine,
	const struct pawl_token_list *ids, struct pawl_error *err);

/* Prompt and answer, as far as the decoder has them. */
enum pawl_status pawl_resume_save(struct pawl_resume *resume,
	const struct pawl_engine *engine, const struct pawl_token_list *prompt,
	const struct pawl_token_list *answer, struct pawl_error *err);

#endif
