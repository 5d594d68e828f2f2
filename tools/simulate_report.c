#include "tools/simulate_report.h"

#include "models/utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is told of one request. */
struct row {
	const struct pawl_simulated *one;
	struct pawl_request_info info;
	const char *end;    /* "length", "refused" */
	const char *reason; /* of an error or a refusal, else NULL */
	int64_t queue_steps,
		first_steps; /* from submission until admission, until the first token */
	double queue_ms, first_ms, tokens_per_second; /* the last from admission on */
};

static double
seconds_between(const struct pawl_simulation *s, int64_t from, int64_t to)
{
	return s->seconds[to] - s->seconds[from];
}

static struct row
row_of(const struct pawl_simulation *s, const struct pawl_simulated *one)
{
	struct row row = {.one = one, .end = "refused", .reason = one->refusal.text};
	const struct pawl_request_info *info = &row.info;

	row.info.n_prompt = (int64_t)one->prompt.n;
	row.info.submit_step = one->request->arrival;
	if (!one->id || pawl_scheduler_info(s->scheduler, one->id, &row.info, NULL))
		return row;
	row.end = pawl_finish_name(info->finish);
	row.reason = info->error ? info->error->text : NULL;
	if (info->admit_step) {
		double seconds = seconds_between(s, info->admit_step - 1, info->finish_step);

		row.queue_steps = info->admit_step - 1 - info->submit_step;
		row.queue_ms = 1e3 * seconds_between(s, info->submit_step, info->admit_step - 1);
		row.tokens_per_second = seconds > 0 ? (double)info->n_new / seconds : 0;
	}
	if (info->first_token_step) {
		row.first_steps = info->first_token_step - info->submit_step;
		row.first_ms = 1e3 * seconds_between(s, info->submit_step, info->first_token_step);
	}
	return row;
}

void
pawl_simulate_print_look(const struct pawl_scheduler_stats *stats)
{
	const int64_t *n = stats->n_requests;

	printf("step %" PRId64 ": waiting %" PRId64 ", prefilling %" PRId64 ", decoding %" PRId64
	       ", evicted %" PRId64 ", finished %" PRId64 "; blocks free %" PRId64 " of %" PRId64
	       ", prefixes %" PRId64 "\n",
		stats->step, n[PAWL_REQUEST_WAITING], n[PAWL_REQUEST_PREFILLING],
		n[PAWL_REQUEST_DECODING], n[PAWL_REQUEST_EVICTED], n[PAWL_REQUEST_FINISHED],
		stats->free_blocks, stats->n_blocks, stats->n_prefixes);
}

static void
print_row(const struct row *row)
{
	const struct pawl_request_info *info = &row->info;

	printf("%-12s %7" PRId64 " %6" PRId64 " %6" PRId64 " %5" PRId64 " %6" PRId64
	       " %9.1f %6" PRId64 " %9.1f %8.1f %5" PRId64 " %5" PRId64 "  %s%s%s\n",
		row->one->request->name, info->submit_step, info->n_prompt, info->n_shared,
		info->n_new, row->queue_steps, row->queue_ms, row->first_steps, row->first_ms,
		row->tokens_per_second, info->n_evictions, info->n_recomputes, row->end,
		row->reason ? ": " : "", row->reason ? row->reason : "");
}

static void
print_summary(const struct pawl_simulation *s)
{
	struct pawl_scheduler_stats stats;
	struct pawl_decoder_stats paged;

	pawl_scheduler_stats(s->scheduler, &stats);
	pawl_paged_decoder_stats(s->decoder, &paged);
	printf("\nsteps %" PRId64 ": prompt runs %" PRId64 ", decode runs %" PRId64
	       "; tokens run %" PRId64 ", shared %" PRId64 "; %.3f s\n",
		stats.step, stats.prompt_runs, stats.decode_runs, stats.tokens_fed,
		stats.tokens_shared, s->seconds[s->n_seconds - 1]);
	printf("blocks of %" PRId64 " tokens: %" PRId64 ", at most %" PRId64 " in use, %" PRId64
	       " free at the end beside %" PRId64 " prefixes\n",
		s->options.block_size, stats.n_blocks, stats.peak_blocks, stats.free_blocks,
		stats.n_prefixes);
	printf("evictions %" PRId64 ", restores %" PRId64 ", recomputes %" PRId64
	       "; optimizes %" PRIu64 ", rebuilds %" PRIu64 "\n",
		stats.evictions, stats.restores, stats.recomputes, paged.counters.optimizes,
		pawl_counters_rebuilds(&paged.counters));
}

/*
 * n_text bytes of UTF-8, malloc'ed, which may hold zeros; what is no UTF-8 comes out as U+FFFD.  NULL for
 * a refused request.
 */
static enum pawl_status
text_of(const struct pawl_simulation *s, const struct row *row, char **text, size_t *n_text,
	struct pawl_error *err)
{
	struct pawl_utf8_stream stream;
	enum pawl_status status;
	char *bytes;
	size_t n;

	*text = NULL;
	*n_text = 0;
	if (!row->one->id)
		return PAWL_OK;
	status = pawl_tokenizer_decode(pawl_model_tokenizer(s->engine->model),
		row->info.tokens, (size_t)row->info.n_new, false, &bytes, &n, err);
	if (status)
		return status;
	*text = malloc(PAWL_UTF8_STREAM_ROOM(n) + PAWL_UTF8_STREAM_ROOM(0));
	if (*text) {
		pawl_utf8_stream_init(&stream);
		*n_text = pawl_utf8_stream_push(&stream, bytes, n, *text);
		*n_text += pawl_utf8_stream_flush(&stream, *text + *n_text);
	}
	free(bytes);
	return *text ? PAWL_OK : pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for %zu bytes", n);
}

static enum pawl_status
print_text(const struct pawl_simulation *s, const struct row *row, struct pawl_error *err)
{
	char *text;
	size_t n;
	enum pawl_status status = text_of(s, row, &text, &n, err);

	if (status || !text)
		return status;
	printf("\n== %s\n", row->one->request->name);
	fwrite(text, 1, n, stdout);
	fputs("\n", stdout);
	free(text);
	return PAWL_OK;
}

enum pawl_status
pawl_simulate_print(const struct pawl_simulation *s, bool show, struct pawl_error *err)
{
	enum pawl_status status = PAWL_OK;

	printf("%-12s %7s %6s %6s %5s %6s %9s %6s %9s %8s %5s %5s  %s\n", "request", "arrival",
		"prompt", "shared", "new", "queue", "queue/ms", "first", "first/ms", "tokens/s",
		"evict", "again", "end");
	for (size_t i = 0; i < s->n_requests; i++) {
		struct row row = row_of(s, &s->requests[i]);

		print_row(&row);
	}
	print_summary(s);
	for (size_t i = 0; i < s->n_requests && show && !status; i++) {
		struct row row = row_of(s, &s->requests[i]);

		status = print_text(s, &row, err);
	}
	return status;
}

void
pawl_simulate_add_look(
	struct pawl_json *json, cJSON *looks, const struct pawl_scheduler_stats *stats)
{
	cJSON *o = pawl_json_object(json, looks, NULL);

	pawl_json_real(json, o, "step", (double)stats->step);
	for (int i = 0; i < PAWL_N_REQUEST_PHASES; i++)
		pawl_json_real(json, o, pawl_request_phase_name((enum pawl_request_phase)i),
			(double)stats->n_requests[i]);
	pawl_json_real(json, o, "free_blocks", (double)stats->free_blocks);
	pawl_json_real(json, o, "resident_bytes", (double)stats->bytes_resident);
	pawl_json_real(json, o, "evicted_bytes", (double)stats->bytes_evicted);
	pawl_json_real(json, o, "prefixes", (double)stats->n_prefixes);
}

static enum pawl_status
add_row(const struct pawl_simulation *s, const struct row *row, bool show, struct pawl_json *json,
	cJSON *rows, struct pawl_error *err)
{
	const struct pawl_request_info *info = &row->info;
	cJSON *o = pawl_json_object(json, rows, NULL), *tokens;
	enum pawl_status status;
	char *text;
	size_t n;

	pawl_json_string(json, o, "id", row->one->request->name);
	pawl_json_real(json, o, "line", row->one->request->line);
	pawl_json_string(json, o, "end", row->end);
	pawl_json_string(json, o, "reason", row->reason);
	pawl_json_real(json, o, "prompt_tokens", (double)info->n_prompt);
	pawl_json_real(json, o, "shared_tokens", (double)info->n_shared);
	pawl_json_real(json, o, "generated_tokens", (double)info->n_new);
	tokens = pawl_json_array(json, o, "tokens");
	for (int64_t i = 0; i < info->n_new; i++)
		pawl_json_number(json, tokens, NULL, (int32_t)info->tokens[i]);
	pawl_json_real(json, o, "arrival_step", (double)info->submit_step);
	pawl_json_real(json, o, "admit_step", (double)info->admit_step);
	pawl_json_real(json, o, "first_token_step", (double)info->first_token_step);
	pawl_json_real(json, o, "finish_step", (double)info->finish_step);
	pawl_json_real(json, o, "queue_steps", (double)row->queue_steps);
	pawl_json_real(json, o, "queue_ms", row->queue_ms);
	pawl_json_real(json, o, "first_token_steps", (double)row->first_steps);
	pawl_json_real(json, o, "first_token_ms", row->first_ms);
	pawl_json_real(json, o, "tokens_per_s", row->tokens_per_second);
	pawl_json_real(json, o, "evictions", (double)info->n_evictions);
	pawl_json_real(json, o, "restores", (double)info->n_restores);
	pawl_json_real(json, o, "recomputes", (double)info->n_recomputes);
	if (!show)
		return PAWL_OK;
	status = text_of(s, row, &text, &n, err);
	if (!status)
		pawl_json_bytes(json, o, "text", text, n);
	free(text);
	return status;
}

enum pawl_status
pawl_simulate_add(
	const struct pawl_simulation *s, bool show, struct pawl_json *json, struct pawl_error *err)
{
	cJSON *rows = pawl_json_array(json, json->root, "requests"), *o;
	struct pawl_scheduler_stats stats;
	struct pawl_decoder_stats paged;
	enum pawl_status status = PAWL_OK;

	for (size_t i = 0; i < s->n_requests && !status; i++) {
		struct row row = row_of(s, &s->requests[i]);

		status = add_row(s, &row, show, json, rows, err);
	}
	pawl_scheduler_stats(s->scheduler, &stats);
	pawl_paged_decoder_stats(s->decoder, &paged);
	o = pawl_json_object(json, json->root, "summary");
	pawl_json_real(json, o, "steps", (double)stats.step);
	pawl_json_real(json, o, "seconds", s->seconds[s->n_seconds - 1]);
	pawl_json_real(json, o, "prompt_runs", (double)stats.prompt_runs);
	pawl_json_real(json, o, "decode_runs", (double)stats.decode_runs);
	pawl_json_real(json, o, "tokens_run", (double)stats.tokens_fed);
	pawl_json_real(json, o, "tokens_shared", (double)stats.tokens_shared);
	pawl_json_real(json, o, "blocks", (double)stats.n_blocks);
	pawl_json_real(json, o, "block_size", (double)s->options.block_size);
	pawl_json_real(json, o, "peak_blocks", (double)stats.peak_blocks);
	pawl_json_real(json, o, "free_blocks", (double)stats.free_blocks);
	pawl_json_real(json, o, "prefixes", (double)stats.n_prefixes);
	pawl_json_real(json, o, "evictions", (double)stats.evictions);
	pawl_json_real(json, o, "restores", (double)stats.restores);
	pawl_json_real(json, o, "recomputes", (double)stats.recomputes);
	pawl_json_real(json, o, "optimizes", (double)paged.counters.optimizes);
	pawl_json_real(json, o, "rebuilds", (double)pawl_counters_rebuilds(&paged.counters));
	pawl_json_real(json, o, "build_s", paged.build_seconds);
	return status;
}
