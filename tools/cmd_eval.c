#include "tools/commands.h"

#include "tools/engine.h"
#include "tools/exact_eval.h"
#include "tools/input.h"
#include "tools/progress.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { DEFAULT_CHUNK = 32 };

struct eval {
	const char *model, *tokens, *logits;
	bool last, exact;
	int64_t chunk;
	struct pawl_engine_options options;
	const struct pawl_command *command;
	struct pawl_engine engine;
	struct pawl_progress progress;
	uint32_t *ids;
	int64_t n;
	FILE *file;
};

static enum pawl_status
read_ids(struct eval *e, struct pawl_error *err)
{
	struct pawl_token_list list;
	enum pawl_status status;

	pawl_token_list_init(&list);
	status = pawl_read_tokens(e->tokens, &list, err);
	if (!status && !list.n)
		status = pawl_fail(err, PAWL_INVALID_ARGUMENT, "--tokens: the list is empty");
	if (!status) {
		e->ids = malloc(list.n * sizeof(*e->ids));
		if (!e->ids)
			status = pawl_fail(
				err, PAWL_OUT_OF_MEMORY, "no memory for %zu tokens", list.n);
	}
	for (size_t i = 0; i < list.n && !status; i++)
		e->ids[i] = (uint32_t)list.ids[i];
	e->n = (int64_t)list.n;
	pawl_token_list_release(&list);
	return status;
}

/* Rows come in order; all but the last are dropped with --last. */
static enum pawl_status
write_row(void *arg, int64_t position, const float *logits, struct pawl_error *err)
{
	struct eval *e = arg;
	size_t n = (size_t)pawl_model_info(e->engine.model)->n_vocab;

	pawl_progress_stage(&e->progress, "evaluating", position + 1, e->n);
	if (e->last && position + 1 < e->n)
		return PAWL_OK;
	errno = 0;
	if (fwrite(logits, sizeof(*logits), n, e->file) != n)
		return pawl_fail(err, PAWL_ENVIRONMENT, "%.300s: %s", e->logits, strerror(errno));
	return PAWL_OK;
}

static enum pawl_status
eval_planned(struct eval *e, struct pawl_error *err)
{
	const float *logits;
	int64_t capacity;
	enum pawl_status status = pawl_engine_capacity(&e->engine, e->n, &capacity, err);

	if (!status)
		status = pawl_engine_start(&e->engine, capacity, e->chunk, err);
	if (status || !e->last)
		return status ? status
			      : pawl_decoder_eval(
					e->engine.decoder, e->ids, e->n, write_row, e, err);
	status = pawl_decoder_prefill(e->engine.decoder, e->ids, e->n, &logits, err);
	return status ? status : write_row(e, e->n - 1, logits, err);
}

/* For ids that cannot be evaluated no file is touched, and the model never is. */
static enum pawl_status
check_before_writing(const struct eval *e, bool *is_new, struct pawl_error *err)
{
	int64_t n_vocab = pawl_model_info(e->engine.model)->n_vocab, i;
	struct stat out, model;

	*is_new = stat(e->logits, &out) != 0;
	if (!*is_new && !stat(e->model, &model) && out.st_dev == model.st_dev &&
		out.st_ino == model.st_ino)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT, "--logits: %.300s is the model", e->logits);
	for (i = 0; i < (int64_t)e->n; i++) {
		if (e->ids[i] >= n_vocab)
			return pawl_fail(err, PAWL_INVALID_ARGUMENT,
				"token %lld is %u, the model has %lld", (long long)i, e->ids[i],
				(long long)n_vocab);
	}
	return PAWL_OK;
}

static enum pawl_status
eval(struct eval *e, struct pawl_error *err)
{
	bool is_new = false;
	enum pawl_status status = read_ids(e, err);

	if (!status)
		status = pawl_model_open_bare(e->model, &e->engine.model, err);
	if (status)
		return status;
	status = check_before_writing(e, &is_new, err);
	if (status)
		return status;
	e->file = fopen(e->logits, "wb");
	if (!e->file)
		return pawl_fail(err, PAWL_ENVIRONMENT, "%.300s: %s", e->logits, strerror(errno));
	status = e->exact ? pawl_exact_eval(e->engine.model, e->ids, e->n,
				    e->chunk ? e->chunk : DEFAULT_CHUNK, write_row, e, err)
			  : eval_planned(e, err);
	if (fclose(e->file) && !status)
		status = pawl_fail(err, PAWL_ENVIRONMENT, "%.300s: %s", e->logits, strerror(errno));
	if (status && is_new)
		remove(e->logits);
	return status;
}

int
pawl_cmd_eval(int argc, char **argv)
{
	struct eval e = {.options = PAWL_ENGINE_DEFAULTS};
	const struct pawl_option options[] = {
		{"--tokens", PAWL_OPTION_TEXT, &e.tokens, "LIST|FILE",
			"token ids, separated by commas or blanks, or a file of them", 0, 0},
		{"--logits", PAWL_OPTION_TEXT, &e.logits, "OUT", "the file to write", 0, 0},
		{"--last", PAWL_OPTION_ON, &e.last, NULL, "only those after the last token", 0, 0},
		{"--chunk", PAWL_OPTION_INT, &e.chunk, "N", "tokens in a run (default: 32)", 1,
			4096},
		{"--exact", PAWL_OPTION_ON, &e.exact, NULL,
			"the graph before any pass, weights exactly decoded, sums in f64", 0, 0},
		PAWL_OPTION_THREADS(e.options),
		PAWL_OPTION_TARGET(e.options),
		PAWL_OPTION_ACTIVATIONS(e.options),
		PAWL_OPTION_KV(e.options),
		PAWL_OPTION_CTX(e.options),
	};
	const struct pawl_command command = {"eval", "MODEL",
		"Writes the logits after each of the given tokens: little-endian f32, a row of\n"
		"all tokens of the vocabulary for each position.",
		options, sizeof(options) / sizeof(options[0]), 1, 1};
	const char *operands[PAWL_MAX_OPERANDS];
	struct pawl_error err = {0};
	enum pawl_status status;
	int exit_status = pawl_options_parse(&command, argc, argv, operands);

	if (exit_status >= 0)
		return exit_status;
	if (!e.tokens || !e.logits)
		return pawl_usage_error(&command, "%s is missing",
			e.tokens ? "--logits OUT" : "--tokens LIST|FILE");
	if (e.exact && (e.options.target >= 0 || e.options.precision || e.options.threads))
		return pawl_usage_error(&command, "--exact runs no plan: --target, --activations "
						  "and --threads do not go with it");
	e.model = operands[0];
	e.command = &command;
	pawl_engine_init(&e.engine, &command, &e.options);
	pawl_progress_start(&e.progress, "loading the model");
	status = eval(&e, &err);
	pawl_progress_end(&e.progress);
	exit_status = status ? pawl_report_error(&command, &err) : PAWL_EXIT_OK;
	free(e.ids);
	pawl_engine_release(&e.engine);
	return exit_status;
}
