#include "tools/resume.h"

#include <inttypes.h>
#include <stdlib.h>

static const char *
session_option(const struct pawl_resume *resume)
{
	return resume->restore ? "--restore" : "--reuse";
}

/* NULL: none. */
static const char *
session_path(const struct pawl_resume *resume)
{
	return resume->restore ? resume->restore : resume->reuse;
}

static enum pawl_status
open_output(
	struct pawl_resume *resume, const struct pawl_inputs *inputs, struct pawl_error *err)
{
	enum pawl_status status =
		pawl_output_open(&resume->output, "--save", resume->save, inputs, err);
	const char *stream = status ? NULL : pawl_output_stream(&resume->output);

	return stream ? pawl_fail(err, PAWL_INVALID_ARGUMENT,
				"--save: %.300s is the same file as %s", resume->save, stream)
		      : status;
}

enum pawl_status
pawl_resume_open(
	struct pawl_resume *resume, const struct pawl_inputs *inputs, struct pawl_error *err)
{
	enum pawl_status status = resume->save ? open_output(resume, inputs, err) : PAWL_OK;

	if (status || !session_path(resume))
		return status;
	return pawl_kv_snapshot_open(session_path(resume), &resume->snapshot, err)
		       ? pawl_error_prefix(err, "%s", session_option(resume))
		       : PAWL_OK;
}

void
pawl_resume_release(struct pawl_resume *resume)
{
	pawl_output_release(&resume->output);
	pawl_kv_snapshot_free(resume->snapshot);
	resume->snapshot = NULL;
}

enum pawl_status
pawl_resume_tokens(const struct pawl_resume *resume, int64_t n_vocab, struct pawl_token_list *ids,
	struct pawl_error *err)
{
	enum pawl_status status = PAWL_OK;
	const uint32_t *tokens;
	int64_t n;

	if (!resume->restore)
		return PAWL_OK;
	tokens = pawl_kv_snapshot_tokens(resume->snapshot, &n);
	for (int64_t i = 0; i < n && !status; i++)
		status = tokens[i] >= n_vocab
				 ? pawl_fail(err, PAWL_INVALID_FILE,
					   "--restore: %.300s: token %" PRId64 " is %" PRIu32
					   ", the model has %" PRId64,
					   resume->restore, i, tokens[i], n_vocab)
				 : pawl_token_list_add(ids, (int32_t)tokens[i], err);
	return status;
}

int64_t
pawl_resume_positions(const struct pawl_resume *resume)
{
	return resume->snapshot ? pawl_kv_snapshot_positions(resume->snapshot) : 0;
}

/* How much of the session the run has now. */
static void
note_restored(const struct pawl_resume *resume, const struct pawl_command *command, int64_t common)
{
	int64_t n_tokens, n = pawl_kv_snapshot_positions(resume->snapshot);

	pawl_kv_snapshot_tokens(resume->snapshot, &n_tokens);
	if (resume->restore)
		pawl_note(command,
			"--restore: goes on after %" PRId64 " saved tokens, %" PRId64
			" positions of which are taken over",
			n_tokens, common);
	else
		pawl_note(command,
			"--reuse: the prompt begins with %" PRId64 " of %" PRId64
			" saved positions, which are taken over; %" PRId64 " are dropped",
			common, n, n - common);
}

enum pawl_status
pawl_resume_restore(const struct pawl_resume *resume, struct pawl_engine *engine,
	const struct pawl_token_list *ids, struct pawl_error *err)
{
	const uint32_t *tokens;
	int64_t n, common = 0, most = (int64_t)ids->n - 1;

	if (!resume->snapshot)
		return PAWL_OK;
	if (pawl_decoder_restore(engine->decoder, resume->snapshot, err))
		return pawl_error_prefix(
			err, "%s: %.300s", session_option(resume), session_path(resume));
	tokens = pawl_kv_snapshot_tokens(resume->snapshot, &n);
	if (most > pawl_kv_snapshot_positions(resume->snapshot))
		most = pawl_kv_snapshot_positions(resume->snapshot);
	while (common < most && tokens[common] == (uint32_t)ids->ids[common])
		common++;
	pawl_decoder_truncate(engine->decoder, common);
	note_restored(resume, engine->command, common);
	return PAWL_OK;
}

enum pawl_status
pawl_resume_save(struct pawl_resume *resume, const struct pawl_engine *engine,
	const struct pawl_token_list *prompt, const struct pawl_token_list *answer,
	struct pawl_error *err)
{
	const struct pawl_kv_snapshot_sink to = pawl_kv_snapshot_file_sink(resume->output.file);
	size_t n = prompt->n + answer->n;
	enum pawl_status status;
	uint32_t *tokens;

	if (!resume->save)
		return PAWL_OK;
	tokens = malloc((n + 1) * sizeof(*tokens));
	if (!tokens)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for %zu tokens", n);
	for (size_t i = 0; i < n; i++)
		tokens[i] = (uint32_t)(i < prompt->n ? prompt->ids[i] : answer->ids[i - prompt->n]);
	status = pawl_decoder_save(engine->decoder, tokens, (int64_t)n, &to, err);
	free(tokens);
	return status ? pawl_error_prefix(err, "--save: %.300s", resume->save)
		      : pawl_output_commit(&resume->output, err);
}
