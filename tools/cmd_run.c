#include "tools/commands.h"

#include "models/chat.h"
#include "models/tokenizer_gguf.h"
#include "runtime/clock.h"
#include "tools/generate.h"
#include "tools/input.h"
#include "tools/resume.h"
#include "tools/speculate.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_N = 256 };

struct run {
	const char *model, *prompt, *file, *stats_json;
	bool raw, stats, verbose, default_n;
	struct pawl_engine_options options;
	struct pawl_generate_options generate;
	const struct pawl_command *command;
	struct pawl_engine engine;
	struct pawl_token_list ids;
	struct pawl_generation generation;
	struct pawl_output output;
	struct pawl_resume resume;
	struct pawl_speculate speculate;
};

/* What the messages about the prompt's text begin with. */
static const char *
prompt_name(const struct run *r)
{
	return r->prompt ? "-p" : pawl_input_name(r->file);
}

static enum pawl_status
encode_raw(struct run *r, const char *text, size_t n, struct pawl_error *err)
{
	const struct pawl_tokenizer *tokenizer = pawl_model_tokenizer(r->engine.model);
	bool bos = !r->ids.n && pawl_tokenizer_wants_bos(tokenizer);
	enum pawl_status status = pawl_tokenizer_encode(tokenizer, text, n,
		PAWL_ENCODE_SPECIAL | (bos ? PAWL_ENCODE_BOS : 0), &r->ids, err);

	if (status)
		return pawl_error_prefix(err, "%.300s", prompt_name(r));
	if (bos && r->ids.n > 1 && r->ids.ids[1] == r->ids.ids[0])
		pawl_note(r->command,
			"the prompt begins with the BOS token, and the model puts one "
			"there itself: it is there twice");
	return status;
}

static enum pawl_status
encode_message(struct run *r, const char *text, size_t n, struct pawl_error *err)
{
	const struct pawl_chat_message message = {"user", {text, n}};
	struct pawl_text template;
	struct pawl_chat chat;
	enum pawl_status status =
		pawl_chat_template_from_gguf(pawl_model_gguf(r->engine.model), &template, err);

	if (!status)
		status =
			pawl_chat_init(&chat, pawl_model_tokenizer(r->engine.model), template, err);
	if (status)
		return status;
	if (r->verbose)
		pawl_note(r->command, "template: %s, from tokenizer.chat_template%s",
			pawl_chat_form_name(chat.form),
			chat.system ? ", with its default system message" : "");
	status = r->ids.n ? pawl_chat_continue(&chat, message.content, &r->ids, err)
			  : pawl_chat_prompt(&chat, &message, 1, true, &r->ids, err);
	if (status)
		pawl_error_prefix(err, "%.300s", prompt_name(r));
	pawl_chat_release(&chat);
	return status;
}

/* Adds the prompt to what a session has. */
static enum pawl_status
read_prompt(struct run *r, struct pawl_error *err)
{
	size_t n = r->prompt ? strlen(r->prompt) : 0, n_before = r->ids.n;
	char *text = NULL;
	enum pawl_status status = PAWL_OK;

	if (!r->prompt)
		status = pawl_read_input(r->file, PAWL_MAX_INPUT_MIB, &text, &n, err);
	if (!status)
		status = (r->raw ? encode_raw : encode_message)(
			r, r->prompt ? r->prompt : text, n, err);
	if (!status && r->ids.n == n_before)
		status = pawl_fail(err, PAWL_INVALID_ARGUMENT, "%.300s: the prompt is empty",
			prompt_name(r));
	free(text);
	return status;
}

static enum pawl_status
read_ids(struct run *r, struct pawl_error *err)
{
	int64_t n_vocab = pawl_model_info(r->engine.model)->n_vocab;
	enum pawl_status status = pawl_resume_tokens(&r->resume, n_vocab, &r->ids, err);

	if (status)
		return status;
	if (r->prompt || r->file)
		return read_prompt(r, err);
	return r->ids.n ? PAWL_OK
			: pawl_fail(err, PAWL_INVALID_FILE,
				  "--restore: %.300s: a session without tokens, and no prompt is "
				  "given",
				  r->resume.restore);
}

static void
note_model(const struct run *r)
{
	const struct pawl_model_info *info = pawl_model_info(r->engine.model);
	const struct pawl_tokenizer *tokenizer = pawl_model_tokenizer(r->engine.model);
	char ends[512] = "";
	const uint32_t *eog;
	size_t n;

	eog = pawl_tokenizer_eog(tokenizer, &n);
	for (size_t i = 0; i < n && strlen(ends) + 16 < sizeof(ends); i++)
		sprintf(ends + strlen(ends), " %" PRIu32, eog[i]);
	pawl_note(r->command,
		"model: %s, %" PRId64 " layers, %" PRId64 " tokens, rope %s, context %" PRId64,
		info->family, info->n_layers, info->n_vocab, info->rope, info->n_ctx);
	pawl_note(r->command, "tokens: BOS %" PRId32 "%s, a generation ends at%s",
		pawl_tokenizer_bos(tokenizer),
		pawl_tokenizer_wants_bos(tokenizer) ? " put in front of plain text" : "",
		n ? ends : " none");
}

/* A tensor nobody reads is how a wrong family or a missing feature shows. */
static void
note_unused(const struct run *r)
{
	const struct pawl_gguf *gguf = pawl_model_gguf(r->engine.model);
	const struct pawl_gguf_tensor *first = NULL;
	size_t n = 0;

	for (size_t i = 0; i < gguf->n_tensors; i++) {
		if (gguf->tensors[i].used)
			continue;
		first = first ? first : &gguf->tensors[i];
		n++;
	}
	if (n)
		pawl_note(r->command, "warning: %zu tensors of the file are not used, such as %.*s",
			n, (int)first->name.n, first->name.text);
}

static void
note_cache(const struct run *r, const struct pawl_decoder_stats *stats, int64_t capacity)
{
	const struct pawl_kv_shape *shape =
		pawl_kv_cache_shape(pawl_decoder_cache(r->engine.decoder));
	char rings[48] = "";

	if (shape->rings.positions)
		snprintf(rings, sizeof(rings), ", rings of %" PRId64, shape->rings.positions);
	pawl_note(r->command, "%s; cache for %" PRId64 " positions, %" PRId64 " bytes%s",
		stats->threads, capacity, stats->kv_bytes, rings);
}

/* Without -n: DEFAULT_N tokens, fewer where the context has no room for them. */
static enum pawl_status
choose_capacity(struct run *r, int64_t *capacity, struct pawl_error *err)
{
	int64_t n_prompt = (int64_t)r->ids.n;
	int64_t limit = r->options.ctx ? r->options.ctx : pawl_model_info(r->engine.model)->n_ctx;

	if (!r->generate.n) {
		r->generate.n = DEFAULT_N;
		r->generate.fills_context = limit - n_prompt < DEFAULT_N;
		if (r->generate.fills_context)
			r->generate.n = limit > n_prompt ? limit - n_prompt : 1;
	}
	n_prompt += r->generate.n;
	if (n_prompt < pawl_resume_positions(&r->resume))
		n_prompt = pawl_resume_positions(&r->resume);
	return pawl_engine_capacity(&r->engine, n_prompt, capacity, err);
}

/* What is given on the command line, before anything is computed. */
static enum pawl_status
open_files(struct run *r, struct pawl_error *err)
{
	const struct pawl_inputs read_only = {{r->model, r->file, r->speculate.draft}};
	const struct pawl_inputs inputs = {{r->model, r->file, r->speculate.draft,
		r->resume.restore ? r->resume.restore : r->resume.reuse}};
	enum pawl_status status = pawl_check_environment(&inputs, err);

	if (!status)
		status = pawl_resume_open(&r->resume, &read_only, err);
	if (!status && r->stats_json)
		status = pawl_output_open(&r->output, "--stats-json", r->stats_json, &inputs, err);
	if (!status)
		status = pawl_model_open(r->model, &r->engine.model, err);
	return status ? status : pawl_speculate_open(&r->speculate, &r->engine, err);
}

static enum pawl_status
run(struct run *r, struct pawl_progress *progress, struct pawl_error *err)
{
	struct pawl_decoder_stats stats;
	int64_t capacity;
	enum pawl_status status = open_files(r, err);

	if (status)
		return status;
	note_unused(r);
	if (r->verbose)
		note_model(r);
	status = read_ids(r, err);
	if (!status)
		status = choose_capacity(r, &capacity, err);
	if (status)
		return status;
	r->engine.keeps_all = r->resume.save || r->resume.snapshot;
	r->engine.rollback = pawl_speculate_rollback(&r->speculate);
	pawl_progress_stage(progress, "preparing", 0, 0);
	status = pawl_engine_start(&r->engine, capacity, 0, err);
	if (!status)
		status = pawl_speculate_start(&r->speculate, &r->engine, err);
	if (status)
		return status;
	pawl_engine_note_threads(&r->engine);
	if (r->verbose) {
		pawl_decoder_stats(r->engine.decoder, &stats);
		note_cache(r, &stats, capacity);
	}
	pawl_progress_stage(progress, "reading the prompt", 0, 0);
	r->generate.speculative = r->speculate.speculative;
	status = pawl_resume_restore(&r->resume, &r->engine, &r->ids, err);
	if (!status)
		status = pawl_generate(
			&r->engine, &r->ids, &r->generate, progress, &r->generation, err);
	return status ? status
		      : pawl_resume_save(&r->resume, &r->engine, &r->ids, &r->generation.tokens, err);
}

/* An answer that nobody asked to be that short, or one that was there already. */
static void
note_end(const struct run *r)
{
	if (r->generation.end == PAWL_ENDED_BY_CONTEXT)
		pawl_note(r->command,
			"cut off after %" PRId64 " tokens: the context of %" PRId64
			" positions is full",
			r->generate.n, pawl_decoder_capacity(r->engine.decoder));
	else if (r->generation.end == PAWL_ENDED_BY_LENGTH && r->default_n)
		pawl_note(r->command, "cut off after %" PRId64 " tokens (-n sets how many)",
			r->generate.n);
	else if (r->generation.end == PAWL_ENDED_BY_TOKEN && !r->generation.tokens.n &&
		!r->prompt && !r->file)
		pawl_note(r->command,
			"--restore: the saved answer was complete, nothing was added (-p goes on "
			"with a message, --ignore-end with the answer)");
}

/* With -v, after the text: where things came from and went to. */
static void
note_files(const struct run *r)
{
	char kernels[400];

	if (r->resume.save)
		pawl_note(r->command, "--save: %zu tokens, %" PRId64 " positions of them, in %.300s",
			r->ids.n + r->generation.tokens.n, pawl_decoder_len(r->engine.decoder),
			r->resume.save);
	if (!r->stats && pawl_engine_kernels_text(&r->engine, kernels, sizeof(kernels)))
		pawl_note(r->command, "%s", kernels);
}

static int
run_and_report(struct run *r)
{
	struct pawl_progress progress;
	struct pawl_error err = {0};
	enum pawl_status status;
	int exit_status;

	pawl_engine_init(&r->engine, r->command, &r->options);
	pawl_token_list_init(&r->ids);
	pawl_token_list_init(&r->generation.tokens);
	pawl_progress_start(&progress, "loading the model");
	status = run(r, &progress, &err);
	pawl_progress_end(&progress);
	exit_status = status ? pawl_report_error(r->command, &err) : pawl_finish_output(r->command);
	if (!exit_status)
		note_end(r);
	if (!exit_status && r->verbose)
		note_files(r);
	if (!exit_status && r->stats)
		pawl_generation_note(&r->engine, &r->generation);
	if (!exit_status && r->stats_json &&
		(pawl_generation_write(&r->engine, &r->generation, &r->output, &err) ||
			pawl_output_commit(&r->output, &err)))
		exit_status = pawl_report_error(r->command, &err);
	pawl_output_release(&r->output);
	pawl_speculate_release(&r->speculate);
	pawl_resume_release(&r->resume);
	pawl_token_list_release(&r->generation.tokens);
	pawl_token_list_release(&r->ids);
	pawl_engine_release(&r->engine);
	return exit_status;
}

static bool
is_stream(const char *path)
{
	return path && !strcmp(path, "-");
}

/* Options that do not go together: an exit status, or -1. */
static int
check_options(
	const struct run *r, const struct pawl_command *command, const struct pawl_args *args)
{
	int exit_status = -1;

	if (r->prompt ? r->file != NULL : !r->file && !r->resume.restore)
		return pawl_usage_error(command, "%s",
			r->prompt ? "-p and -f exclude each other" : "no prompt given (-p or -f)");
	if (r->resume.restore && r->resume.reuse)
		return pawl_usage_error(command, "--restore and --reuse exclude each other");
	if (is_stream(r->speculate.draft))
		return pawl_usage_error(command,
			"--draft: a model is in a file, not in a standard stream (a file - is ./-)");
	if (is_stream(r->resume.restore) || is_stream(r->resume.reuse) ||
		is_stream(r->resume.save))
		return pawl_usage_error(command,
			"%s: a session is in a file, not in a standard stream (a file - is ./-)",
			is_stream(r->resume.restore) ? "--restore"
			: is_stream(r->resume.reuse) ? "--reuse"
						     : "--save");
	if (r->speculate.draft && r->speculate.lookup)
		return pawl_usage_error(command, "--draft and --lookup exclude each other");
	if (!r->speculate.draft && !r->speculate.lookup)
		exit_status = pawl_options_refuse(command, args, "--guess",
			"is for guesses, and there are none without --draft or --lookup");
	if (exit_status < 0 && !pawl_option_is_given(command, args, "--temp"))
		exit_status = pawl_options_refuse(command, args,
			"--top-k --top-p --min-p --seed",
			"is for draws, and without --temp the likeliest token is taken");
	return exit_status;
}

static const char doc[] =
	"Continues the prompt and prints the text as it comes.  A prompt is a user's\n"
	"message in the model's chat template unless --raw is given.  What prompt and\n"
	"answer need must fit in the context, which has its size from the start; an\n"
	"answer that is cut off because -n was not given, or not given --ctx, says so.\n\n"
	"--save S keeps the text and what was computed for it.  --restore S goes on from\n"
	"there: without a prompt with the same text, with one by the user's next message\n"
	"(with --raw, by plain text).  --reuse S takes a whole prompt, as if nothing had\n"
	"been said, and computes only what S does not begin with.\n\n"
	"Guessing ahead changes the time that an answer takes and nothing else: guesses\n"
	"are computed together with the next token, and used where the answer goes so.\n\n"
	"In the figures, optimizes is the number of plans (one that makes the cache, a\n"
	"chunk of the prompt, a single token, one with guesses), plan reuses the runs that\n"
	"a held plan served with new data; a draft model's are not in these two.\n"
	"Allocations are those of the whole program after the prompt: a draft and plans\n"
	"with guesses are built then, so that a long answer has fewer a token.  Guesses\n"
	"beyond the end of the answer count as wrong.  A rate counts what was computed,\n"
	"not what a saved session had.  Kernels are those of all plans.";

int
pawl_cmd_run(int argc, char **argv)
{
	struct run r = {
		.options = PAWL_ENGINE_DEFAULTS,
		.generate = {.sampler = {.top_p = 1, .seed = 1}},
		.generation.start = pawl_seconds(),
		.speculate = PAWL_SPECULATE_DEFAULTS,
	};
	int64_t seed = 1;
	const struct pawl_option options[] = {
		{"-p", PAWL_OPTION_TEXT, &r.prompt, "TEXT", "the prompt", 0, 0},
		{"-f", PAWL_OPTION_TEXT, &r.file, "FILE", "read it from a file (-: standard input)",
			0, 0},
		{"-n", PAWL_OPTION_INT, &r.generate.n, "N",
			"at most N tokens (default: 256, or what the context has room for)", 1,
			PAWL_ENGINE_MAX_CTX},
		{"--raw", PAWL_OPTION_ON, &r.raw, NULL,
			"the prompt is plain text, not a message to the model's chat template", 0,
			0},
		{"--temp", PAWL_OPTION_REAL, &r.generate.sampler.temp, "X",
			"temperature, up to 100; 0 or less takes the likeliest token (default: 0)",
			-100, 100},
		{"--top-k", PAWL_OPTION_INT, &r.generate.sampler.top_k, "N",
			"draw from the N likeliest (default: 0, all)", 0, INT32_MAX},
		{"--top-p", PAWL_OPTION_REAL, &r.generate.sampler.top_p, "X",
			"from the fewest whose probabilities reach X (default: 1)", 0, 1},
		{"--min-p", PAWL_OPTION_REAL, &r.generate.sampler.min_p, "X",
			"from those above X times the largest (default: 0)", 0, 1},
		{"--seed", PAWL_OPTION_INT, &seed, "N", "of the draws (default: 1)", 0, INT64_MAX},
		{"--ignore-end", PAWL_OPTION_ON, &r.generate.ignore_end, NULL,
			"go on after a token that ends the answer", 0, 0},
		PAWL_OPTION_THREADS(r.options),
		PAWL_OPTION_TARGET(r.options),
		PAWL_OPTION_ACTIVATIONS(r.options),
		PAWL_OPTION_KV(r.options),
		PAWL_OPTION_CTX(r.options),
		PAWL_OPTION_RESTORE(r.resume),
		PAWL_OPTION_REUSE(r.resume),
		PAWL_OPTION_SAVE(r.resume),
		PAWL_OPTION_DRAFT(r.speculate),
		PAWL_OPTION_LOOKUP(r.speculate),
		PAWL_OPTION_GUESS(r.speculate),
		{"--stats", PAWL_OPTION_ON, &r.stats, NULL, "a line of figures on standard error",
			0, 0},
		{"--stats-json", PAWL_OPTION_TEXT, &r.stats_json, "FILE",
			"write the figures as JSON (-: standard output)", 0, 0},
		{"-v", PAWL_OPTION_ON, &r.verbose, NULL,
			"say what was made of the model, on standard error", 0, 0},
	};
	const struct pawl_command command = {"run", "MODEL", doc, options,
		sizeof(options) / sizeof(options[0]), 1, 1};
	struct pawl_args args;
	int exit_status = pawl_options_parse(&command, argc, argv, &args);

	if (exit_status < 0)
		exit_status = check_options(&r, &command, &args);
	if (exit_status >= 0)
		return exit_status;
	r.model = args.operands[0];
	r.command = &command;
	r.default_n = !r.generate.n;
	r.generate.sampler.seed = (uint64_t)seed;
	return run_and_report(&r);
}
