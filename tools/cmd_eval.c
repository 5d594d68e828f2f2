#include "tools/commands.h"

#include "tools/engine.h"
#include "tools/exact_eval.h"
#include "tools/input.h"
#include "tools/output.h"
#include "tools/perplexity.h"
#include "tools/progress.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { DEFAULT_CHUNK = 32, DEFAULT_WINDOW = 512 };

struct eval {
	const char *model, *tokens, *logits;
	bool last, exact, perplexity;
	int64_t chunk, from, window;
	struct pawl_engine_options options;
	const struct pawl_command *command;
	struct pawl_engine engine;
	struct pawl_progress progress;
	uint32_t *ids;
	int64_t n;
	struct pawl_output output;
};

static enum pawl_status
read_ids(struct eval *e, struct pawl_error *err)
{
	struct pawl_token_list list;
	enum pawl_status status;

	pawl_token_list_init(&list);
	status = pawl_read_tokens(e->tokens, "--tokens", &list, err);
	if (!status && !list.n)
		status = pawl_fail(err, PAWL_INVALID_ARGUMENT, "--tokens: the list is empty");
	if (!status) {
		e->ids = malloc(list.n * sizeof(*e->ids));
		if (!e->ids)
			status = pawl_fail(
				err, PAWL_OUT_OF_MEMORY, "no memory for %zu tokens", list.n);
	}
	for (size_t i = 0; i < list.n && !status; i++)
		e->ids[i] = list.ids[i];
	e->n = (int64_t)list.n;
	pawl_token_list_release(&list);
	return status;
}

/* Rows come in order; those before --from are dropped, with --last all but the last. */
static enum pawl_status
write_row(void *arg, int64_t position, const float *logits, struct pawl_error *err)
{
	struct eval *e = arg;
	size_t n = (size_t)pawl_model_info(e->engine.model)->n_vocab;

	pawl_progress_stage(&e->progress, "evaluating", position + 1, e->n);
	if (position < e->from || (e->last && position + 1 < e->n))
		return PAWL_OK;
	return pawl_output_write(&e->output, logits, n * sizeof(*logits), err);
}

static enum pawl_status
eval_planned(struct eval *e, struct pawl_error *err)
{
	const float *logits;
	int64_t capacity;
	enum pawl_status status = pawl_engine_capacity(&e->engine, e->n, &capacity, err);

	if (!status)
		status = pawl_engine_start(&e->engine, capacity, e->chunk, err);
	if (!status)
		pawl_engine_note_threads(&e->engine);
	if (!status && e->from)
		status = pawl_decoder_prefill(e->engine.decoder, e->ids, e->from, NULL, err);
	if (status || !e->last)
		return status ? status
			      : pawl_decoder_eval(e->engine.decoder, e->ids + e->from,
					e->n - e->from, write_row, e, err);
	status = pawl_decoder_prefill(e->engine.decoder, e->ids, e->n, &logits, err);
	return status ? status : write_row(e, e->n - 1, logits, err);
}

static enum pawl_status
check_ids(const struct eval *e, struct pawl_error *err)
{
	int64_t n_vocab = pawl_model_info(e->engine.model)->n_vocab;

	for (int64_t i = 0; i < e->n; i++) {
		if (e->ids[i] >= n_vocab)
			return pawl_fail(err, PAWL_INVALID_ARGUMENT,
				"--tokens: token %" PRId64 " is %" PRIu32 ", the model has %" PRId64, i,
				e->ids[i], n_vocab);
	}
	return PAWL_OK;
}

static enum pawl_status
print_perplexity(struct eval *e, struct pawl_error *err)
{
	struct pawl_perplexity p = {.window = e->window, .exact = e->exact,
		.chunk = e->exact && !e->chunk ? DEFAULT_CHUNK : e->chunk};
	enum pawl_status status =
		pawl_perplexity_measure(&p, &e->engine, e->ids, e->n, &e->progress, err);

	if (status)
		return status;
	pawl_progress_end(&e->progress);
	p.nll /= (double)p.n_scored;
	printf("perplexity %.4f, mean negative log likelihood %.6f nats; %" PRId64
	       " of %" PRId64 " tokens scored, windows of %" PRId64 "\n",
		exp(p.nll), p.nll, p.n_scored, e->n, p.window);
	return pawl_flush_output(err);
}

static enum pawl_status
eval(struct eval *e, struct pawl_error *err)
{
	const struct pawl_inputs inputs = {
		{e->model, pawl_is_token_list(e->tokens) ? NULL : e->tokens}};
	enum pawl_status status =
		e->logits ? pawl_output_open(&e->output, "--logits", e->logits, &inputs, err)
			  : PAWL_OK;

	if (!status)
		status = pawl_check_environment(&inputs, err);
	if (!status)
		status = read_ids(e, err);
	if (!status)
		status = (e->perplexity ? pawl_model_open : pawl_model_open_bare)(
			e->model, &e->engine.model, err);
	if (!status)
		status = check_ids(e, err);
	if (!status && e->perplexity)
		return print_perplexity(e, err);
	if (!status && e->from >= e->n)
		status = pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"--from: position %" PRId64 " of %" PRId64 " tokens", e->from, e->n);
	if (status)
		return status;
	status = e->exact ? pawl_exact_eval(e->engine.model, e->ids, e->n,
				    e->chunk ? e->chunk : DEFAULT_CHUNK, write_row, e, err)
			  : eval_planned(e, err);
	return status ? status : pawl_output_commit(&e->output, err);
}

/* Options that do not go together: an exit status, or -1. */
static int
check_options(
	const struct eval *e, const struct pawl_command *command, const struct pawl_args *args)
{
	int exit_status = -1;

	if (!e->tokens || (!e->logits && !e->perplexity))
		return pawl_usage_error(command, "%s is missing",
			e->tokens ? "--logits OUT or --perplexity" : "--tokens LIST|FILE");
	if (e->last && pawl_option_is_given(command, args, "--from"))
		return pawl_usage_error(command, "--last and --from exclude each other");
	if (e->perplexity)
		exit_status = pawl_options_refuse(
			command, args, "--logits --last --from", "does not go with --perplexity");
	else
		exit_status = pawl_options_refuse(command, args, "--window", "is for --perplexity");
	if (exit_status < 0 && e->exact)
		exit_status = pawl_options_refuse(command, args,
			"--threads --target --activations --kv --ctx",
			"does not go with --exact, which runs no plan");
	return exit_status;
}

int
pawl_cmd_eval(int argc, char **argv)
{
	struct eval e = {.options = PAWL_ENGINE_DEFAULTS, .window = DEFAULT_WINDOW};
	const struct pawl_option options[] = {
		{"--tokens", PAWL_OPTION_TEXT, &e.tokens, "LIST|FILE",
			"token ids between commas or blanks, or a file of them (-: standard input)",
			0, 0},
		{"--logits", PAWL_OPTION_TEXT, &e.logits, "OUT",
			"the file to write (-: standard output)", 0, 0},
		{"--last", PAWL_OPTION_ON, &e.last, NULL, "only those after the last token", 0, 0},
		{"--from", PAWL_OPTION_INT, &e.from, "N",
			"only those from this position on (default: 0)", 0, PAWL_ENGINE_MAX_CTX},
		{"--chunk", PAWL_OPTION_INT, &e.chunk, "N", "tokens in a run (default: 32)", 1,
			4096},
		{"--perplexity", PAWL_OPTION_ON, &e.perplexity, NULL,
			"print how well the tokens are foretold, instead of writing logits", 0, 0},
		{"--window", PAWL_OPTION_INT, &e.window, "N",
			"tokens that are read from an empty cache each time (default: 512)",
			PAWL_PERPLEXITY_LEAST_WINDOW, PAWL_ENGINE_MAX_CTX},
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
		"all tokens of the vocabulary for each position.\n\n"
		"With --perplexity the tokens are cut into windows.  In each, BOS takes the place\n"
		"of the first token where the model wants one in front of a text, and the second\n"
		"half is scored, as llama-perplexity does it.  Tokens of a text:\n"
		"pawl tokenize MODEL --no-special <TEXT",
		options, sizeof(options) / sizeof(options[0]), 1, 1};
	struct pawl_args args;
	struct pawl_error err = {0};
	enum pawl_status status;
	int exit_status = pawl_options_parse(&command, argc, argv, &args);

	if (exit_status < 0)
		exit_status = check_options(&e, &command, &args);
	if (exit_status >= 0)
		return exit_status;
	e.model = args.operands[0];
	e.command = &command;
	pawl_engine_init(&e.engine, &command, &e.options);
	pawl_progress_start(&e.progress, "loading the model");
	status = eval(&e, &err);
	pawl_progress_end(&e.progress);
	exit_status = status ? pawl_report_error(&command, &err) : PAWL_EXIT_OK;
	pawl_output_release(&e.output);
	free(e.ids);
	pawl_engine_release(&e.engine);
	return exit_status;
}
