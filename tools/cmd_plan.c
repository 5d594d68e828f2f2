#include "tools/commands.h"

#include "ir/parse.h"
#include "runtime/plan_json.h"
#include "tools/engine.h"
#include "tools/input.h"
#include "tools/output.h"
#include "tools/forecast_print.h"
#include "tools/plan_print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct plan {
	bool json, memory, save;
	int64_t seq;
	int logits; /* enum pawl_logits; -1: not given */
	const char *target;
	struct pawl_engine_options options;
};

static int
print(const struct plan *p, const struct pawl_command *command, const struct pawl_plan *plan)
{
	struct pawl_error err = {0};
	char *text;

	if (!p->json) {
		pawl_plan_print(plan);
	} else {
		if (pawl_plan_json(plan, &text, &err))
			return pawl_report_error(command, &err);
		fputs(text, stdout);
		free(text);
	}
	return pawl_finish_output(command);
}

static bool
is_text(const char *path)
{
	size_t n = strlen(path);

	return n >= 5 && !strcmp(path + n - 5, ".pawl");
}

static enum pawl_status
plan_text(struct pawl_engine *engine, const char *path, struct pawl_plan **out,
	struct pawl_error *err)
{
	const struct pawl_plan_options options = {
		.key.precision = (enum pawl_precision)engine->options.precision};
	struct pawl_graph *graph;
	enum pawl_status status;
	char *text;
	size_t n;

	status = pawl_read_input(path, PAWL_MAX_TEXT_MIB, &text, &n, err);
	if (status)
		return status;
	status = pawl_parse(text, n, path, &graph, NULL, err);
	free(text);
	if (status)
		return status;
	status = pawl_engine_open_device(engine, err);
	if (!status) {
		status = pawl_plan_build(graph, engine->device, &options, out, err);
		if (status)
			pawl_error_prefix(err, "%.300s", path);
	}
	if (!status)
		pawl_plan_print_times(engine->command, *out);
	pawl_graph_free(graph);
	return status;
}

/* The plan that a decoder of the model holds for such a step. */
static enum pawl_status
plan_model(struct pawl_engine *engine, const struct plan *p, const char *path,
	const struct pawl_plan **out, struct pawl_error *err)
{
	enum pawl_logits logits = p->logits >= 0 ? (enum pawl_logits)p->logits
				  : p->seq == 1  ? PAWL_LOGITS_LAST
						 : PAWL_LOGITS_NONE;
	int64_t capacity;
	enum pawl_status status = pawl_model_open_bare(path, &engine->model, err);

	if (!status)
		status = pawl_engine_capacity(engine, p->seq, &capacity, err);
	if (!status)
		status = pawl_engine_start(
			engine, capacity, p->seq > PAWL_PREFILL_CHUNK ? p->seq : 0, err);
	return status ? status : pawl_decoder_prepare(engine->decoder, p->seq, logits, out, err);
}

static enum pawl_status
forecast(struct pawl_engine *engine, const struct plan *p, const char *path, struct pawl_error *err)
{
	int64_t capacity;
	enum pawl_status status = pawl_model_open_bare(path, &engine->model, err);

	engine->keeps_all = p->save;
	if (!status)
		status = pawl_engine_capacity(engine, 1, &capacity, err);
	return status ? status : pawl_forecast_print(engine, capacity, p->json, err);
}

/* Opens target cuda, and says that a plan for it needs no device when there is none. */
static enum pawl_status
open_cuda(struct pawl_engine *engine, struct pawl_error *err)
{
	struct pawl_error why;
	enum pawl_status status = pawl_engine_open_device(engine, &why);

	return status ? pawl_fail(err, status,
				"%.900s; cuda:sm_90, for a GPU elsewhere, needs NVRTC only",
				why.text)
		      : PAWL_OK;
}

/* That the compiler of kernels, who tells resources, does not know the architecture. */
static void
note_arch(const struct pawl_engine *engine)
{
	struct pawl_target_counters counters;

	pawl_device_counters(engine->device, &counters);
	if (counters.arch_fault)
		pawl_note(engine->command, "%s, resources unknown", counters.arch_fault);
}

int
pawl_cmd_plan(int argc, char **argv)
{
	struct plan p = {.seq = 1, .logits = -1, .options = PAWL_ENGINE_DEFAULTS};
	const struct pawl_option options[] = {
		{"--json", PAWL_OPTION_ON, &p.json, NULL, "as JSON (docs/plan-schema.json)", 0, 0},
		{"--memory", PAWL_OPTION_ON, &p.memory, NULL,
			"the bytes that a generation will take, instead of one plan", 0, 0},
		{"--save", PAWL_OPTION_ON, &p.save, NULL,
			"those of one with --save, --restore or --reuse, which has no rings", 0, 0},
		{"--seq", PAWL_OPTION_INT, &p.seq, "N", "tokens a run takes (default: 1)", 1, 4096},
		{"--logits", PAWL_OPTION_CHOICE, &p.logits, "none|last|all|greedy",
			"rows of logits, or a token (default: last for one token, else none)", 0, 0},
		PAWL_OPTION_CTX(p.options),
		PAWL_OPTION_KV(p.options),
		{"--target", PAWL_OPTION_TEXT, &p.target, PAWL_ENGINE_TARGETS "|cuda:sm_NN",
			"cuda:sm_90: for a GPU elsewhere (default: cpu)", 0, 0},
		{"--code", PAWL_OPTION_TEXT, &p.options.code_dir, "DIR",
			"write the generated code there", 0, 0},
		PAWL_OPTION_ACTIVATIONS(p.options),
		PAWL_OPTION_THREADS(p.options),
	};
	const struct pawl_command command = {"plan", "MODEL|FILE.pawl",
		"Shows the held plan of a step of a model, or of a graph in text form; or the\n"
		"memory that running a model will take: contiguous, without a draft model, whose\n"
		"own forecast is to be added, and not in a pool of simulate.  A session that is\n"
		"restored takes the size of its file beside that.  --memory, --seq, --logits,\n"
		"--ctx and --kv are for models, --threads and --save are for --memory.",
		options, sizeof(options) / sizeof(options[0]), 1, 1};
	struct pawl_args args;
	struct pawl_plan *own = NULL;
	const struct pawl_plan *plan = NULL;
	struct pawl_engine engine;
	struct pawl_error err = {0};
	struct pawl_inputs inputs = {0};
	enum pawl_status status;
	int exit_status = pawl_options_parse(&command, argc, argv, &args);

	if (exit_status < 0 && is_text(args.operands[0]))
		exit_status = pawl_options_refuse(&command, &args,
			"--memory --save --seq --logits --ctx --kv",
			"is for models, and a file named *.pawl is a graph");
	if (exit_status < 0)
		exit_status = pawl_options_refuse(&command, &args,
			p.memory ? "--seq --logits" : "--threads --save",
			p.memory ? "is not for --memory, which is about whole generations"
				 : "is for --memory");
	if (exit_status >= 0)
		return exit_status;
	if (p.target)
		exit_status = pawl_engine_set_target(&command, &p.options, p.target);
	if (exit_status < 0 && p.options.code_dir && p.target && !strcmp(p.target, "ref"))
		exit_status = pawl_usage_error(
			&command, "--code: target ref interprets, and has no code to write");
	if (exit_status >= 0)
		return exit_status;
	inputs.paths[0] = args.operands[0];
	pawl_engine_init(&engine, &command, &p.options);
	status = pawl_check_environment(&inputs, &err);
	if (!status && p.target && !strcmp(p.target, "cuda"))
		status = open_cuda(&engine, &err);
	if (!status && is_text(args.operands[0])) {
		status = plan_text(&engine, args.operands[0], &own, &err);
		plan = own;
	} else if (!status && p.memory) {
		status = forecast(&engine, &p, args.operands[0], &err);
	} else if (!status) {
		status = plan_model(&engine, &p, args.operands[0], &plan, &err);
	}
	if (!status)
		note_arch(&engine);
	exit_status = status     ? pawl_report_error(&command, &err)
		      : p.memory ? pawl_finish_output(&command)
				 : print(&p, &command, plan);
	pawl_plan_unref(own);
	pawl_engine_release(&engine);
	return exit_status;
}
