#include "tools/commands.h"

#include "tools/output.h"
#include "tools/progress.h"
#include "tools/simulate_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { DEFAULT_BLOCK = 32, DEFAULT_PREFIXES = 16 };

static const char doc[] =
	"Serves the requests of a file as a host would, over one pool of cache blocks.\n"
	"Each line is a JSON object: \"prompt\" and \"n\" (tokens at most), and if wanted\n"
	"\"arrival\" (the scheduler step before which it comes, not a time, so that a run\n"
	"can be repeated; default: 0), \"temp\", \"seed\", \"priority\" (low, normal, high,\n"
	"critical) and \"id\", no two alike.  - is standard input.  A prompt is taken as\n"
	"it is, without a chat template; control tokens that it spells are these tokens.\n\n"
	"A step runs one chunk of prompts beside one batch; a prompt takes a run for each\n"
	"chunk or, when no more than a quarter of one is left, for each token.  Of each\n"
	"request: steps and time in the queue and to the first token, tokens per second\n"
	"from admission on, how often it was evicted, and how often its cache had to be\n"
	"computed again.  Times include building plans and compiling kernels, which the\n"
	"first requests wait for.\n\n"
	"What prompts begin with is shared in whole blocks: a common beginning shorter\n"
	"than --block-size is computed for each.  Of finished requests the prompts are\n"
	"kept, not the answers; a prompt that goes on after an answer computes it anew.\n\n"
	"A request that could never fit is refused, and the others go on.  The exit\n"
	"status is 1 when one was refused or failed.  --policy round-robin has a pool for\n"
	"8 of the longest requests, as the default of --max-batch.";

struct simulate {
	const char *model, *requests;
	bool show, json;
	struct pawl_engine_options engine_options;
	struct pawl_simulation_options options;
	const struct pawl_command *command;
	struct pawl_engine engine;
	struct pawl_request_file file;
	struct pawl_simulation simulation;
	struct pawl_progress progress;
	struct pawl_json out;
	cJSON *looks;
};

static void
look(void *arg, const struct pawl_scheduler_stats *stats)
{
	struct simulate *s = arg;

	if (s->json) {
		pawl_simulate_add_look(&s->out, s->looks, stats);
		return;
	}
	pawl_progress_end(&s->progress); /* lines follow that tell more */
	pawl_simulate_print_look(stats);
}

static enum pawl_status
report(struct simulate *s, struct pawl_error *err)
{
	enum pawl_status status;
	char *text;

	if (!s->json)
		return pawl_simulate_print(&s->simulation, s->show, err);
	status = pawl_simulate_add(&s->simulation, s->show, &s->out, err);
	if (!status)
		status = pawl_json_text(&s->out, false, &text, err);
	if (status)
		return status;
	fputs(text, stdout);
	free(text);
	return PAWL_OK;
}

static enum pawl_status
simulate(struct simulate *s, struct pawl_error *err)
{
	const struct pawl_inputs inputs = {{s->model, s->requests}};
	enum pawl_status status = pawl_check_environment(&inputs, err);

	if (!status)
		status = pawl_request_file_read(s->requests, &s->file, err);
	if (!status)
		status = pawl_model_open(s->model, &s->engine.model, err);
	if (status)
		return status;
	status = pawl_simulation_init(&s->simulation, &s->engine, &s->file, &s->options, err);
	if (!status) {
		pawl_progress_stage(&s->progress, "serving", 0, 0);
		status = pawl_simulation_run(&s->simulation, err);
	}
	pawl_progress_end(&s->progress);
	return status ? status : report(s, err);
}

static int
report_failures(const struct simulate *s)
{
	int64_t n = pawl_simulation_failures(&s->simulation);

	if (!n)
		return PAWL_EXIT_OK;
	pawl_note(s->command, "%" PRId64 " of %zu requests were refused or failed", n,
		s->simulation.n_requests);
	return PAWL_EXIT_FAILED;
}

static int
simulate_and_report(struct simulate *s)
{
	struct pawl_error err = {0};
	enum pawl_status status;
	int exit_status;

	s->options.look = look;
	s->options.arg = s;
	pawl_engine_init(&s->engine, s->command, &s->engine_options);
	pawl_json_init(&s->out);
	if (s->json && s->options.every)
		s->looks = pawl_json_array(&s->out, s->out.root, "pool");
	pawl_progress_start(&s->progress, "loading the model");
	status = simulate(s, &err);
	pawl_progress_end(&s->progress);
	exit_status = status ? pawl_report_error(s->command, &err) : pawl_finish_output(s->command);
	if (!exit_status)
		exit_status = report_failures(s);
	pawl_simulation_release(&s->simulation);
	pawl_request_file_release(&s->file);
	pawl_json_release(&s->out);
	pawl_engine_release(&s->engine);
	return exit_status;
}

int
pawl_cmd_simulate(int argc, char **argv)
{
	struct simulate s = {.engine_options = PAWL_ENGINE_DEFAULTS,
		.options = {.block_size = DEFAULT_BLOCK,
			.scheduler = {.max_prefixes = DEFAULT_PREFIXES}}};
	int policy = 1, max_batch = 3, admission = PAWL_ADMIT_OPTIMISTIC;
	const struct pawl_option options[] = {
		{"--blocks", PAWL_OPTION_INT, &s.options.n_blocks, "N",
			"blocks of the pool (default: for --max-batch of the longest requests)", 1,
			PAWL_MAX_KV_BLOCKS},
		{"--block-size", PAWL_OPTION_INT, &s.options.block_size, "N",
			"positions of a block, a multiple of 16 (default: 32)", 16, 65536},
		{"--policy", PAWL_OPTION_CHOICE, &policy, "round-robin|batched",
			"one request a run, in turn, or several (default: batched)", 0, 0},
		{"--max-batch", PAWL_OPTION_CHOICE, &max_batch, "1|2|4|8",
			"requests in a run (default: 8)", 0, 0},
		{"--admission", PAWL_OPTION_CHOICE, &admission, "reserved|optimistic",
			"when the whole answer, or (default) the prompt, has room", 0, 0},
		{"--prefixes", PAWL_OPTION_INT, &s.options.scheduler.max_prefixes, "N",
			"beginnings of prompts to keep for others; 0: none (default: 16)", 0,
			65536},
		{"--chunk", PAWL_OPTION_INT, &s.options.chunk, "N",
			"prompt tokens in a step (default: 32)", 1, 4096},
		{"--every", PAWL_OPTION_INT, &s.options.every, "N",
			"show the pool after every N steps", 1, PAWL_MAX_ARRIVAL},
		{"--ignore-end", PAWL_OPTION_ON, &s.options.ignore_end, NULL,
			"go on after a token that ends the answer", 0, 0},
		{"--show", PAWL_OPTION_ON, &s.show, NULL, "the texts as well", 0, 0},
		{"--json", PAWL_OPTION_ON, &s.json, NULL, "as JSON", 0, 0},
		PAWL_OPTION_THREADS(s.engine_options),
		PAWL_OPTION_TARGET(s.engine_options),
		PAWL_OPTION_ACTIVATIONS(s.engine_options),
		PAWL_OPTION_KV(s.engine_options),
	};
	const struct pawl_command command = {"simulate", "MODEL REQUESTS.jsonl", doc, options,
		sizeof(options) / sizeof(options[0]), 2, 2};
	struct pawl_args args;
	int exit_status = pawl_options_parse(&command, argc, argv, &args);

	if (exit_status < 0 && !policy)
		exit_status = pawl_options_refuse(&command, &args, "--max-batch",
			"is for --policy batched, the other runs one at a time");
	if (exit_status < 0 && s.options.block_size % 16)
		exit_status = pawl_usage_error(&command, "--block-size: %lld is no multiple of 16",
			(long long)s.options.block_size);
	if (exit_status >= 0)
		return exit_status;
	s.model = args.operands[0];
	s.requests = args.operands[1];
	s.command = &command;
	s.options.n_at_once = 1 << max_batch;
	s.options.scheduler.max_batch = policy ? s.options.n_at_once : 1;
	s.options.scheduler.admission = (enum pawl_admission)admission;
	return simulate_and_report(&s);
}
