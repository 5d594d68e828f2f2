#include "tools/commands.h"

#include "runtime/cpu_count.h"
#include "runtime/json_write.h"
#include "tools/bench_batch.h"
#include "tools/bench_replan.h"
#include "tools/bench_steps.h"
#include "runtime/clock.h"
#include "tools/engine.h"
#include "tools/median.h"
#include "tools/output.h"
#include "tools/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_REPEATS = 100 };

struct bench {
	const char *model;
	bool json, replan, steps, verbose;
	struct pawl_ints threads, depths, batches;
	int64_t n_prompt, n_generate, repeats;
	struct pawl_engine_options options;
	const struct pawl_command *command;
	struct pawl_engine engine;
	struct pawl_progress progress;
	uint32_t *ids; /* as many as the largest depth or the prompt needs */
	char threads_reason[128]; /* of the default number; "" with -t */
};

struct row {
	int64_t threads, depth;
	double prompt_tps, decode_tps;       /* medians; 0: not measured */
	double prompt_spread, decode_spread; /* (largest - smallest) / median */
	double host_us;                      /* of a decoded token, outside of compiled code */
	double uploads, launches;            /* of one, to and on a device; a captured run is one */
	int64_t kv_bytes;                    /* that a decoded token attends to, in the mean */
	struct pawl_decoder_stats stats;
	struct pawl_step_times steps; /* empty without --steps */
};

/* Ids that exercise the embedding; their meaning does not matter. */
static uint32_t
token(int64_t i, int64_t n_vocab)
{
	return (uint32_t)((uint64_t)i * 2654435761u % (uint64_t)n_vocab);
}

static int64_t
larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int64_t
deepest(const struct bench *b)
{
	int64_t most = 0;

	for (int i = 0; i < b->depths.n; i++)
		most = larger(most, b->depths.items[i]);
	return most;
}

static enum pawl_status
make_ids(struct bench *b, struct pawl_error *err)
{
	int64_t n_vocab = pawl_model_info(b->engine.model)->n_vocab;
	int64_t n = larger(deepest(b), b->n_prompt);

	b->ids = malloc((size_t)(n + 1) * sizeof(*b->ids));
	if (!b->ids)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for %" PRId64 " tokens", n);
	for (int64_t i = 0; i < n; i++)
		b->ids[i] = token(i, n_vocab);
	return PAWL_OK;
}

/* The last chunk of a prompt is filled up where there is room, and taken one by one where not. */
static int64_t
needed_positions(const struct bench *b)
{
	int64_t need = deepest(b) + larger(b->n_prompt, b->n_generate);
	int64_t made_for = pawl_model_info(b->engine.model)->n_ctx;

	return need + PAWL_PREFILL_CHUNK <= made_for && !b->options.ctx ? need + PAWL_PREFILL_CHUNK
									: need;
}

/* Tokens per second of a prompt on `depth` positions. */
static enum pawl_status
time_prompt(struct bench *b, int64_t depth, double *out, struct pawl_error *err)
{
	double start;
	enum pawl_status status;

	pawl_decoder_truncate(b->engine.decoder, depth);
	start = pawl_seconds();
	status = pawl_decoder_prefill(b->engine.decoder, b->ids, b->n_prompt, NULL, err);
	*out = (double)b->n_prompt / (pawl_seconds() - start);
	return status;
}

/*
 * The same of single tokens, and the microseconds of one outside of compiled code; what they did on
 * a device is left in the row.
 */
static enum pawl_status
time_decode(struct bench *b, struct row *row, int64_t n, double *out, double *host_us,
	struct pawl_error *err)
{
	int64_t n_vocab = pawl_decoder_n_vocab(b->engine.decoder), ns;
	struct pawl_target_counters from, to;
	struct pawl_decoder_stats before, after;
	enum pawl_status status = PAWL_OK;
	const float *logits;

	pawl_decoder_truncate(b->engine.decoder, row->depth);
	pawl_decoder_stats(b->engine.decoder, &before);
	pawl_device_counters(b->engine.device, &from);
	ns = pawl_nanoseconds();
	for (int64_t i = 0; i < n && !status; i++)
		status = pawl_decoder_step(b->engine.decoder, token(i, n_vocab), &logits, err);
	ns = pawl_nanoseconds() - ns;
	pawl_decoder_stats(b->engine.decoder, &after);
	pawl_device_counters(b->engine.device, &to);
	row->uploads = (double)(to.uploads - from.uploads) / (double)n;
	row->launches = (double)(to.launches - from.launches + to.graph_launches -
				 from.graph_launches) /
			(double)n;
	*out = 1e9 * (double)n / (double)ns;
	ns -= (int64_t)(after.counters.run_ns - before.counters.run_ns);
	*host_us = 1e-3 * (double)ns / (double)n;
	return status;
}

/* Bytes of keys and values that a token behind n positions attends to. */
static int64_t
attended_bytes(const struct bench *b, int64_t n)
{
	const struct pawl_model_source *source = pawl_model_source(b->engine.model);
	struct pawl_kv_shape shape = *pawl_kv_cache_shape(pawl_decoder_cache(b->engine.decoder));

	if (n <= 0)
		return 0;
	shape.max_seq_len = n;
	shape.rings = (struct pawl_kv_rings){0};
	if (source->window && n > source->window)
		shape.rings = (struct pawl_kv_rings){
			source->window, source->window, source->window_layers};
	return pawl_kv_shape_bytes(&shape);
}

/* In a round of its own, as a reading of the clock a step is not free. */
static enum pawl_status
time_steps(struct bench *b, struct row *row, struct pawl_error *err)
{
	enum pawl_status status = pawl_step_times_start(&row->steps, b->engine.decoder, err);
	double tps, host_us;

	if (!status)
		status = time_decode(b, row, b->n_generate, &tps, &host_us, err);
	return status ? status
		      : pawl_step_times_stop(
				&row->steps, b->engine.decoder, b->n_generate, err);
}

/* One round of each kind is not counted: it builds the plans and touches the memory. */
static enum pawl_status
measure(struct bench *b, struct row *row, struct pawl_error *err)
{
	double prompt[MAX_REPEATS], decode[MAX_REPEATS], host[MAX_REPEATS], warm, spread;
	int64_t warm_steps = b->n_generate < 4 ? b->n_generate : 4;
	enum pawl_status status = PAWL_OK;

	pawl_decoder_truncate(b->engine.decoder, 0);
	if (row->depth)
		status = pawl_decoder_prefill(b->engine.decoder, b->ids, row->depth, NULL, err);
	if (!status && b->n_prompt)
		status = time_prompt(b, row->depth, &warm, err);
	if (!status && b->n_generate)
		status = time_decode(b, row, warm_steps, &warm, &host[0], err);
	for (int64_t i = 0; i < b->repeats && !status; i++) {
		if (b->n_prompt)
			status = time_prompt(b, row->depth, &prompt[i], err);
		if (!status && b->n_generate)
			status = time_decode(
				b, row, b->n_generate, &decode[i], &host[i], err);
	}
	if (!status && b->steps)
		status = time_steps(b, row, err);
	if (status)
		return status;
	if (b->n_prompt)
		row->prompt_tps = pawl_median(prompt, (int)b->repeats, &row->prompt_spread);
	if (b->n_generate)
		row->decode_tps = pawl_median(decode, (int)b->repeats, &row->decode_spread);
	if (b->n_generate)
		row->host_us = pawl_median(host, (int)b->repeats, &spread);
	row->kv_bytes = attended_bytes(b, row->depth + b->n_generate / 2);
	pawl_decoder_stats(b->engine.decoder, &row->stats);
	return PAWL_OK;
}

static enum pawl_status
print_row(const struct bench *b, const struct row *row, struct pawl_error *err)
{
	char prompt[PAWL_SPREAD_BYTES], decode[PAWL_SPREAD_BYTES];

	if (row->threads == b->threads.items[0] && row->depth == b->depths.items[0])
		printf("threads   depth  prompt %4" PRId64 " tok/s  decode %4" PRId64
		       " tok/s  host us/token\n",
			b->n_prompt, b->n_generate);
	printf("%7" PRId64 "%8" PRId64 "%15.1f +- %5s%14.1f +- %5s%15.1f\n", row->threads,
		row->depth, row->prompt_tps,
		pawl_spread_text(row->prompt_spread, b->n_prompt ? b->repeats : 0, 1, prompt),
		row->decode_tps,
		pawl_spread_text(row->decode_spread, b->n_generate ? b->repeats : 0, 1, decode),
		row->host_us);
	if (b->steps)
		pawl_step_times_print(&row->steps);
	return pawl_flush_output(err);
}

static void
add_row(const struct bench *b, struct pawl_json *json, cJSON *array, const struct row *row)
{
	cJSON *object = pawl_json_object(json, array, NULL);

	pawl_json_real(json, object, "threads", (double)row->threads);
	pawl_json_real(json, object, "depth", (double)row->depth);
	pawl_json_real(json, object, "n_prompt", (double)b->n_prompt);
	pawl_json_real(json, object, "n_generate", (double)b->n_generate);
	pawl_json_real(json, object, "repeats", (double)b->repeats);
	pawl_json_real(json, object, "prompt_tps", row->prompt_tps);
	pawl_json_real(json, object, "prompt_spread", row->prompt_spread);
	pawl_json_real(json, object, "decode_tps", row->decode_tps);
	pawl_json_real(json, object, "decode_spread", row->decode_spread);
	pawl_json_real(json, object, "host_us", row->host_us);
	pawl_json_real(json, object, "uploads", row->uploads);
	pawl_json_real(json, object, "launches", row->launches);
	pawl_json_real(json, object, "weight_bytes", (double)row->stats.packed_bytes);
	pawl_json_real(json, object, "kv_bytes", (double)row->kv_bytes);
	pawl_json_real(json, object, "optimizes", (double)row->stats.counters.optimizes);
	pawl_json_real(
		json, object, "rebuilds", (double)pawl_counters_rebuilds(&row->stats.counters));
	pawl_json_real(json, object, "build_s", row->stats.build_seconds);
	pawl_json_real(json, object, "thread_step_backs", (double)row->stats.thread_step_backs);
	if (b->steps)
		pawl_step_times_add(&row->steps, json, object);
}

/* What all rows were measured with. */
static void
describe_rows(const struct bench *b, struct pawl_json *json, cJSON *rows)
{
	cJSON *row;

	cJSON_ArrayForEach(row, rows)
	{
		if (b->replan)
			pawl_json_real(json, row, "threads", (double)b->threads.items[0]);
		pawl_json_string(json, row, "model", b->model);
		pawl_json_string(json, row, "target", b->engine.device->api->name);
		pawl_json_string(json, row, "activations",
			pawl_precision_name((enum pawl_precision)b->options.precision));
		pawl_json_string(
			json, row, "kv", pawl_dtype_name(pawl_engine_kv_dtype(&b->options)));
	}
}

/* With -v, how so many threads came about. */
static void
note_threads(const struct bench *b, int64_t n)
{
	if (b->verbose && *b->threads_reason)
		pawl_note(b->command, "%s", b->threads_reason);
	else if (b->verbose)
		pawl_note(b->command, "%" PRId64 " thread%s: as asked for", n, n == 1 ? "" : "s");
	pawl_engine_note_threads(&b->engine);
}

static void
note_kernels(const struct bench *b)
{
	char kernels[400];

	if (pawl_engine_kernels_text(&b->engine, kernels, sizeof(kernels)))
		pawl_note(b->command, "%s", kernels);
}

/* -v of a row, on standard error. */
static void
note_row(const struct bench *b, const struct row *row)
{
	if (b->verbose)
		pawl_note(b->command,
			"threads %" PRId64 ", depth %" PRId64 ": %" PRIu64
			" steps back to fewer threads until then",
			row->threads, row->depth, row->stats.thread_step_backs);
}

static enum pawl_status
bench(struct bench *b, struct pawl_json *json, cJSON *rows, struct pawl_error *err)
{
	int64_t capacity;
	const struct pawl_inputs inputs = {{b->model}};
	enum pawl_status status = pawl_check_environment(&inputs, err);

	if (!status)
		status = pawl_model_open_bare(b->model, &b->engine.model, err);
	if (!status && (b->replan || b->batches.n)) {
		b->engine.options.threads = b->threads.items[0];
		status = pawl_engine_open_device(&b->engine, err);
		if (status)
			return status;
		note_threads(b, b->threads.items[0]);
		if (b->replan)
			return pawl_bench_replan(&b->engine, b->n_generate, b->repeats,
				&b->progress, json, rows, err);
		return pawl_bench_batch(&b->engine, &b->batches, b->depths.items[0], b->n_generate,
			b->repeats, &b->progress, json, rows, err);
	}
	if (!status)
		status = make_ids(b, err);
	if (!status)
		status = pawl_engine_capacity(&b->engine, needed_positions(b), &capacity, err);
	/* What is measured is taken back, the rows that fill up a chunk with it. */
	b->engine.rollback = larger(b->n_prompt + PAWL_PREFILL_CHUNK, b->n_generate);
	for (int i = 0; i < b->threads.n && !status; i++) {
		b->engine.options.threads = b->threads.items[i];
		pawl_decoder_free(b->engine.decoder);
		b->engine.decoder = NULL;
		status = pawl_engine_start(&b->engine, capacity, 0, err);
		if (!status)
			note_threads(b, b->threads.items[i]);
		for (int j = 0; j < b->depths.n && !status; j++) {
			struct row row = {
				.threads = b->threads.items[i], .depth = b->depths.items[j]};

			pawl_progress_stage(&b->progress, "measuring", i * b->depths.n + j + 1,
				(int64_t)b->threads.n * b->depths.n);
			status = measure(b, &row, err);
			if (!status && b->json)
				add_row(b, json, rows, &row);
			else if (!status)
				status = print_row(b, &row, err);
			if (!status)
				note_row(b, &row);
			pawl_step_times_release(&row.steps);
		}
	}
	return status;
}

static enum pawl_status
print_json(struct pawl_json *json, struct pawl_error *err)
{
	char *text;
	enum pawl_status status = pawl_json_text(json, false, &text, err);

	if (status)
		return status;
	fputs(text, stdout);
	free(text);
	return PAWL_OK;
}

/* Options that do not go together: the exit status, -1 when there are none. */
static int
refuse_clashes(
	const struct bench *b, const struct pawl_command *command, const struct pawl_args *args)
{
	int exit_status = -1;

	if (b->replan)
		exit_status = pawl_options_refuse(
			command, args, "-p -d --ctx --steps", "is not for --replan");
	if (exit_status < 0 && b->batches.n)
		exit_status = pawl_options_refuse(
			command, args, "-p --ctx --replan --steps", "is not for --batch");
	if (exit_status >= 0)
		return exit_status;
	if ((b->replan || b->batches.n) && b->threads.n > 1)
		return pawl_usage_error(command, "-t: one number with --replan and --batch");
	if (b->batches.n && b->depths.n > 1)
		return pawl_usage_error(command, "-d: one number with --batch");
	if ((b->replan || b->batches.n || b->steps) && !b->n_generate)
		return pawl_usage_error(command, "-n 0 leaves nothing to measure");
	if (!b->n_prompt && !b->n_generate)
		return pawl_usage_error(command, "-p 0 and -n 0 leave nothing to measure");
	return -1;
}

static enum pawl_status
default_threads(struct bench *b, struct pawl_error *err)
{
	int n_threads;
	enum pawl_status status = pawl_default_threads(
		b->threads_reason, sizeof(b->threads_reason), &n_threads, err);

	if (!status)
		b->threads = (struct pawl_ints){{n_threads}, 1};
	return status;
}

int
pawl_cmd_bench(int argc, char **argv)
{
	struct bench b = {.n_prompt = 128,
		.n_generate = 64,
		.repeats = 3,
		.depths = {{0}, 1},
		.options = PAWL_ENGINE_DEFAULTS};
	const struct pawl_option options[] = {
		{"-t", PAWL_OPTION_INTS, &b.threads, "N,...",
			"threads (default: what affinity and control groups grant)", 1,
			PAWL_MAX_THREADS},
		{"-p", PAWL_OPTION_INT, &b.n_prompt, "N", "tokens of a prompt (default: 128)", 0,
			PAWL_ENGINE_MAX_CTX},
		{"-n", PAWL_OPTION_INT, &b.n_generate, "N", "tokens to decode (default: 64)", 0,
			PAWL_ENGINE_MAX_CTX},
		{"-d", PAWL_OPTION_INTS, &b.depths, "N,...",
			"positions that are filled before (default: 0)", 0, PAWL_ENGINE_MAX_CTX},
		{"-r", PAWL_OPTION_INT, &b.repeats, "N", "rounds (default: 3)", 1, MAX_REPEATS},
		PAWL_OPTION_TARGET(b.options),
		PAWL_OPTION_ACTIVATIONS(b.options),
		PAWL_OPTION_KV(b.options),
		PAWL_OPTION_CTX(b.options),
		{"--replan", PAWL_OPTION_ON, &b.replan, NULL,
			"what a held plan saves: tokens decoded with and without", 0, 0},
		{"--batch", PAWL_OPTION_INTS, &b.batches, "N,...",
			"decode so many sequences together instead, 1 to 8", 1, PAWL_BENCH_MAX_BATCH},
		{"--steps", PAWL_OPTION_ON, &b.steps, NULL,
			"where the time of a decoded token goes, by the kernels of its plan", 0, 0},
		{"--json", PAWL_OPTION_ON, &b.json, NULL, "as JSON: {\"rows\": [...]}", 0, 0},
		{"-v", PAWL_OPTION_ON, &b.verbose, NULL,
			"say why so many threads, how they fared, where kernels are from", 0, 0},
	};
	const struct pawl_command command = {"bench", "MODEL",
		"Measures tokens per second of a prompt and of decoding, each behind `depth`\n"
		"positions that are there already.  Medians of the rounds after one that is not\n"
		"counted; +- is half of the range, - that of a single round.  host us is what a\n"
		"decoded token costs outside of compiled code: checks, token data, binding, and on a\n"
		"GPU the upload and the launch, all but the wait for it.\n"
		"weight_bytes and kv_bytes of JSON are what a decoded token reads: packed weights,\n"
		"and keys and values in the mean of a round; uploads and launches are those of one on\n"
		"a GPU, a captured run being one launch.\n"
		"--steps, of target cpu only, times each step, with what thread 0 waits for the others\n"
		"at its end, in one round more; steps that share a kernel are a line.",
		options, sizeof(options) / sizeof(options[0]), 1, 1};
	struct pawl_args args;
	struct pawl_error err = {0};
	struct pawl_json json;
	cJSON *rows;
	enum pawl_status status;
	int exit_status = pawl_options_parse(&command, argc, argv, &args);

	if (exit_status < 0)
		exit_status = refuse_clashes(&b, &command, &args);
	if (exit_status >= 0)
		return exit_status;
	if (!b.threads.n && default_threads(&b, &err))
		return pawl_report_error(&command, &err);
	b.model = args.operands[0];
	b.command = &command;
	pawl_engine_init(&b.engine, &command, &b.options);
	pawl_json_init(&json);
	pawl_progress_start(&b.progress, "loading the model");
	rows = b.json ? pawl_json_array(&json, json.root, "rows") : NULL;
	status = bench(&b, &json, rows, &err);
	pawl_progress_end(&b.progress);
	if (!status && b.json) {
		describe_rows(&b, &json, rows);
		status = print_json(&json, &err);
	}
	if (!status && b.verbose)
		note_kernels(&b);
	exit_status = status ? pawl_report_error(&command, &err) : pawl_finish_output(&command);
	pawl_json_release(&json);
	free(b.ids);
	pawl_engine_release(&b.engine);
	return exit_status;
}
