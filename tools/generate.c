#include "tools/generate.h"

#include "models/utf8.h"
#include "runtime/json_write.h"
#include "runtime/memory.h"
#include "runtime/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum {
	PIECE_BYTES = 1024, /* of a piece that are printed at once */
	KERNELS_BYTES = 400
};

static enum pawl_status
print_piece(const struct pawl_tokenizer *tokenizer, uint32_t id, struct pawl_utf8_stream *stream,
	struct pawl_error *err)
{
	char text[PAWL_UTF8_STREAM_ROOM(PIECE_BYTES)];
	enum pawl_status status = PAWL_OK;
	struct pawl_text piece;

	if (pawl_tokenizer_is_control(tokenizer, id) ||
		!pawl_tokenizer_piece(tokenizer, id, &piece))
		return PAWL_OK;
	while (piece.n && !status) {
		size_t n = piece.n < PIECE_BYTES ? piece.n : PIECE_BYTES;

		fwrite(text, 1, pawl_utf8_stream_push(stream, piece.bytes, n, text), stdout);
		piece.bytes += n;
		piece.n -= n;
		status = pawl_flush_output(err);
	}
	return status;
}

static void
print_end(struct pawl_utf8_stream *stream)
{
	char text[PAWL_UTF8_STREAM_ROOM(0)];

	fwrite(text, 1, pawl_utf8_stream_flush(stream, text), stdout);
	fputs("\n", stdout);
	pawl_flush_output(NULL);
}

/* What comes next: chosen where the model runs, or to be drawn from logits. */
struct next {
	bool is_chosen;
	uint32_t id;
	const float *logits;
};

static enum pawl_status
prefill(struct pawl_engine *engine, const struct pawl_token_list *prompt,
	const struct pawl_generate_options *options, struct pawl_generation *g, struct next *next,
	struct pawl_error *err)
{
	const uint32_t *ids = prompt->ids + g->n_restored;
	int64_t n = (int64_t)prompt->n - g->n_restored;
	double start = pawl_seconds();
	enum pawl_status status =
		next->is_chosen
			? pawl_decoder_prefill_greedy(engine->decoder, ids, n, &next->id, err)
			: pawl_decoder_prefill(engine->decoder, ids, n, &next->logits, err);

	if (!status && options->speculative)
		status = pawl_speculative_begin(
			options->speculative, prompt->ids, (int64_t)prompt->n, err);
	pawl_decoder_stats(engine->decoder, &g->stats);
	g->prompt_seconds = pawl_seconds() - start - g->stats.build_seconds;
	return status;
}

static enum pawl_status
append(struct pawl_engine *engine, const struct pawl_generate_options *options, uint32_t token,
	struct next *next, struct pawl_error *err)
{
	if (options->speculative)
		return pawl_speculative_step(options->speculative, token, &next->logits, err);
	if (next->is_chosen)
		return pawl_decoder_step_greedy(engine->decoder, token, &next->id, err);
	return pawl_decoder_step(engine->decoder, token, &next->logits, err);
}

/* One token more, its allocations and bound bytes counted. */
static enum pawl_status
step(struct pawl_engine *engine, const struct pawl_generate_options *options, uint32_t token,
	struct next *next, struct pawl_generation *g, struct pawl_error *err)
{
	const struct pawl_counters *counters =
		pawl_inference_context_counters(pawl_decoder_context(engine->decoder));
	uint64_t allocations = pawl_memory_allocations(), bytes = counters->bytes_bound;
	enum pawl_status status = append(engine, options, token, next, err);

	g->step_allocations += pawl_memory_allocations() - allocations;
	g->step_bytes_bound += counters->bytes_bound - bytes;
	g->n_steps++;
	return status;
}

static enum pawl_status
generate(struct pawl_engine *engine, const struct pawl_generate_options *options,
	struct next *next, struct pawl_sampler *sampler, struct pawl_progress *progress,
	struct pawl_generation *g, struct pawl_error *err)
{
	const struct pawl_tokenizer *tokenizer = pawl_model_tokenizer(engine->model);
	struct pawl_utf8_stream stream;
	enum pawl_status status = PAWL_OK;
	double start = pawl_seconds();

	g->end = options->fills_context ? PAWL_ENDED_BY_CONTEXT : PAWL_ENDED_BY_LENGTH;
	pawl_utf8_stream_init(&stream);
	while (!status) {
		uint32_t id;

		if (!next->is_chosen)
			status = pawl_sampler_pick(sampler, next->logits, &next->id, err);
		if (status)
			break;
		id = next->id;
		if (!g->first_token_seconds) {
			pawl_progress_end(progress);
			g->first_token_seconds = pawl_seconds() - g->start;
		}
		if (!options->ignore_end && pawl_tokenizer_is_eog(tokenizer, id)) {
			g->end = PAWL_ENDED_BY_TOKEN;
			break;
		}
		status = pawl_token_list_add(&g->tokens, id, err);
		if (status)
			break;
		status = print_piece(tokenizer, id, &stream, err);
		if (status || (int64_t)g->tokens.n == options->n)
			break;
		status = step(engine, options, id, next, g, err);
	}
	g->decode_seconds = pawl_seconds() - start;
	if (g->first_token_seconds)
		print_end(&stream);
	return status;
}

enum pawl_status
pawl_generate(struct pawl_engine *engine, const struct pawl_token_list *prompt,
	const struct pawl_generate_options *options, struct pawl_progress *progress,
	struct pawl_generation *out, struct pawl_error *err)
{
	struct next next = {.is_chosen = options->sampler.temp <= 0 && !options->speculative};
	struct pawl_sampler *sampler = NULL;
	double build_seconds;
	enum pawl_status status = pawl_sampler_new(
		&options->sampler, pawl_decoder_n_vocab(engine->decoder), &sampler, err);

	out->n_prompt = (int64_t)prompt->n;
	out->n_restored = pawl_decoder_len(engine->decoder);
	if (!status)
		status = prefill(engine, prompt, options, out, &next, err);
	if (!status)
		status = generate(engine, options, &next, sampler, progress, out, err);
	pawl_sampler_free(sampler);
	out->speculation.runs = (uint64_t)out->n_steps;
	if (options->speculative) {
		pawl_speculative_settle(options->speculative);
		out->speculation = pawl_speculative_stats(options->speculative);
	}
	build_seconds = out->stats.build_seconds;
	pawl_decoder_stats(engine->decoder, &out->stats);
	out->decode_seconds -= out->stats.build_seconds - build_seconds;
	return status;
}

static double
per_second(int64_t n, double seconds)
{
	return seconds > 0 ? (double)n / seconds : 0;
}

/* " at N/s", or nothing of no tokens. */
static const char *
write_rate(char room[32], int64_t n, double seconds)
{
	room[0] = '\0';
	if (n)
		snprintf(room, 32, " at %.1f/s", per_second(n, seconds));
	return room;
}

static double
per_step(uint64_t total, const struct pawl_generation *g)
{
	return g->n_steps ? (double)total / (double)g->n_steps : 0;
}

/* Runs of a held plan with new data, in the same cache or another. */
static uint64_t
reuses(const struct pawl_counters *counters)
{
	return counters->verdicts[PAWL_VALID] + counters->rebinds;
}

void
pawl_generation_note(const struct pawl_engine *engine, const struct pawl_generation *g)
{
	const struct pawl_counters *counters = &g->stats.counters;
	char guesses[128] = "", restored[64] = "", rates[2][32], kernels[KERNELS_BYTES];
	bool has_kernels = pawl_engine_kernels_text(engine, kernels, sizeof(kernels));

	if (g->n_restored)
		snprintf(restored, sizeof(restored), ", %" PRId64 " of them restored, %" PRId64,
			g->n_restored, g->n_prompt - g->n_restored);
	if (g->speculation.proposed)
		snprintf(guesses, sizeof(guesses),
			"; of %" PRIu64 " guesses %" PRIu64 " right, %" PRIu64 " runs",
			g->speculation.proposed, g->speculation.accepted, g->speculation.runs);
	pawl_note(engine->command,
		"prompt %" PRId64 " tokens%s%s, then %zu%s; optimizes %" PRIu64
		", rebuilds %" PRIu64 ", plan reuses %" PRIu64 ", allocations per token %.4g%s%s%s",
		g->n_prompt, restored,
		write_rate(rates[0], g->n_prompt - g->n_restored, g->prompt_seconds), g->tokens.n,
		write_rate(rates[1], g->n_steps, g->decode_seconds), counters->optimizes,
		pawl_counters_rebuilds(counters), reuses(counters),
		per_step(g->step_allocations, g), guesses, has_kernels ? "; " : "",
		has_kernels ? kernels : "");
	if (g->stats.capture_fault)
		pawl_note(engine->command, "kernels are launched one by one: %s",
			g->stats.capture_fault);
}

static double
peak_rss(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_SELF, &usage) ? 0 : 1024.0 * (double)usage.ru_maxrss;
}

/* Of the rebuilds: what counters.h says of each. */
static void
add_reasons(struct pawl_json *json, cJSON *root, const struct pawl_counters *counters)
{
	cJSON *o = pawl_json_object(json, root, "rebuild_reasons");

	for (int i = PAWL_REBUILD_FIRST + 1; i < PAWL_N_REBUILD_REASONS; i++)
		pawl_json_real(json, o, pawl_rebuild_reason_name((enum pawl_rebuild_reason)i),
			(double)counters->builds[i]);
}

static const char *const end_names[] = {
	[PAWL_ENDED_BY_TOKEN] = "eos",
	[PAWL_ENDED_BY_LENGTH] = "length",
	[PAWL_ENDED_BY_CONTEXT] = "context",
};

enum pawl_status
pawl_generation_write(const struct pawl_engine *engine, const struct pawl_generation *g,
	struct pawl_output *out, struct pawl_error *err)
{
	const struct pawl_counters *counters = &g->stats.counters;
	char *text;
	struct pawl_json json;
	cJSON *root, *tokens;
	enum pawl_status status;

	pawl_json_init(&json);
	root = json.root;
	pawl_json_real(&json, root, "prompt_tokens", (double)g->n_prompt);
	pawl_json_real(&json, root, "restored_tokens", (double)g->n_restored);
	pawl_json_real(&json, root, "generated_tokens", (double)g->tokens.n);
	pawl_json_string(&json, root, "end", end_names[g->end]);
	tokens = pawl_json_array(&json, root, "tokens");
	for (size_t i = 0; i < g->tokens.n; i++)
		pawl_json_number(&json, tokens, NULL, g->tokens.ids[i]);
	pawl_json_real(&json, root, "prompt_tps",
		per_second(g->n_prompt - g->n_restored, g->prompt_seconds));
	pawl_json_real(&json, root, "decode_tps", per_second(g->n_steps, g->decode_seconds));
	pawl_json_real(&json, root, "optimizes", (double)counters->optimizes);
	pawl_json_real(&json, root, "rebuilds", (double)pawl_counters_rebuilds(counters));
	add_reasons(&json, root, counters);
	pawl_json_real(&json, root, "plan_reuses", (double)reuses(counters));
	pawl_json_real(&json, root, "regrows", (double)counters->regrows);
	pawl_json_real(&json, root, "validity_checks", (double)counters->validity_checks);
	pawl_json_real(&json, root, "kernel_compiles", (double)g->stats.kernel_compiles);
	pawl_json_real(&json, root, "kernels_read", (double)g->stats.kernels_read);
	pawl_json_string(&json, root, "kernel_folder", pawl_engine_kernel_folder(engine));
	pawl_json_real(&json, root, "captures", (double)g->stats.captures);
	pawl_json_real(&json, root, "graph_launches", (double)g->stats.graph_launches);
	pawl_json_real(&json, root, "capture_failures", (double)g->stats.capture_failures);
	pawl_json_real(&json, root, "thread_step_backs", (double)g->stats.thread_step_backs);
	pawl_json_real(&json, root, "allocations_per_token", per_step(g->step_allocations, g));
	pawl_json_real(&json, root, "bytes_bound_per_token", per_step(g->step_bytes_bound, g));
	pawl_json_real(&json, root, "proposed_tokens", (double)g->speculation.proposed);
	pawl_json_real(&json, root, "accepted_tokens", (double)g->speculation.accepted);
	pawl_json_real(&json, root, "decode_runs", (double)g->speculation.runs);
	pawl_json_real(&json, root, "peak_rss_bytes", peak_rss());
	pawl_json_real(&json, root, "first_token_s", g->first_token_seconds);
	status = pawl_json_text(&json, false, &text, err);
	pawl_json_release(&json);
	if (status)
		return status;
	status = pawl_output_write(out, text, strlen(text), err);
	free(text);
	return status;
}
