#include "tools/commands.h"

#include "ir/debug.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "passes/observe.h"
#include "tools/exec.h"
#include "tools/input.h"
#include "tools/options.h"
#include "tools/output.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct opt {
	const char *path, *passes, *print_after, *exec;
	int precision;
	int64_t seed, threads;
	double within;
	bool list_ops, list_passes, all_errors, changes;
	const struct pawl_command *command;
	struct pawl_graph *input, *graph; /* as given; after the passes */
	enum pawl_pass list[PAWL_MAX_PASSES], after;
	int n_list;
};

static void
list_ops(void)
{
	for (int op = 0; op < PAWL_N_OPS; op++) {
		const struct pawl_op_info *info = pawl_op_info((enum pawl_op)op);
		const char *separator = "  {";

		printf("%-21s%d", info->name, info->min_inputs);
		if (info->max_inputs != info->min_inputs)
			printf("..%d", info->max_inputs);
		printf("  %s", info->doc);
		for (int attr = 0; attr < PAWL_N_ATTRS; attr++) {
			if (!pawl_op_has_attr((enum pawl_op)op, (enum pawl_attr)attr))
				continue;
			printf("%s%s", separator, pawl_attr_info((enum pawl_attr)attr)->name);
			separator = ", ";
		}
		printf("%s\n", *separator == ',' ? "}" : "");
	}
}

static void
list_passes(void)
{
	for (int pass = 0; pass < PAWL_N_PASSES; pass++) {
		const struct pawl_pass_info *info = pawl_pass_info((enum pawl_pass)pass);

		printf("%-22s%-10s%s -> %s: %s%s\n", info->name,
			info->required ? "required" : "optional", pawl_stage_name(info->from),
			pawl_stage_name(info->to), info->doc, info->rounds ? " (rounds)" : "");
	}
}

static void
print_after(void *arg, int n, enum pawl_pass pass, const struct pawl_graph *graph, int n_changes,
	double seconds)
{
	const struct opt *opt = arg;
	const char *name = pawl_pass_info(pass)->name;
	char *text, ms[32];

	if (pawl_debug(PAWL_DEBUG_TIME)) {
		pawl_print_double(ms, sizeof(ms), round(seconds * 1e6) / 1e3);
		pawl_note(opt->command, "%d %s: %d changes, %s ms", n, name, n_changes, ms);
	} else if (opt->changes && n_changes) {
		pawl_note(opt->command, "%d %s: %d", n, name, n_changes);
	}
	if (!opt->print_after || pass != opt->after)
		return;
	text = pawl_print(graph, NULL);
	printf("; %d %s: %d changes\n%s", n, name, n_changes, text ? text : "");
	free(text);
}

static enum pawl_status
parse_file(struct opt *opt, struct pawl_error *err)
{
	char *text, *all = NULL;
	size_t n;
	enum pawl_status status = pawl_read_input(opt->path, PAWL_MAX_TEXT_MIB, &text, &n, err);

	if (status)
		return status;
	status = pawl_parse(text, n, pawl_input_name(opt->path), &opt->input, &all, err);
	/* The last of them is reported as every error is. */
	if (status && all && opt->all_errors) {
		char *last = all, *end;

		while ((end = strchr(last, '\n')) && end[1]) {
			*end = 0;
			pawl_note(opt->command, "%s", last);
			last = end + 1;
		}
		pawl_fail(err, status, "%.*s", (int)strcspn(last, "\n"), last);
	}
	free(all);
	free(text);
	return status;
}

static enum pawl_status
run_passes(struct opt *opt, struct pawl_error *err)
{
	const struct pawl_pass_facts facts = {
		.precision = (enum pawl_precision)opt->precision, .max_prologue_rows = 1};
	struct pawl_run_options options;
	enum pawl_status status = pawl_run_options_from_env(&options, err);

	options.verify_each = true;
	options.after = print_after;
	options.arg = opt;
	if (!status)
		status = pawl_graph_clone(opt->input, &opt->graph, err);
	if (status)
		return status;
	status = pawl_passes_run(
		opt->graph, opt->list, opt->n_list, &facts, &options, NULL, err);
	if (status)
		pawl_error_prefix(err, "%.300s", pawl_input_name(opt->path));
	return status;
}

/* The first target runs the graph as `name` says; see the help. */
static enum pawl_status
exec_one(const struct opt *opt, const struct pawl_exec_inputs *inputs, const char *name,
	struct pawl_exec_result *out, struct pawl_error *err)
{
	if (!strcmp(name, "input"))
		return pawl_exec_interp(inputs, opt->input, PAWL_INTERP_PLANNED, out, err);
	if (!strcmp(name, "exact"))
		return pawl_exec_interp(inputs, opt->input, PAWL_INTERP_EXACT, out, err);
	if (!strcmp(name, "interp"))
		return pawl_exec_interp(inputs, opt->graph, PAWL_INTERP_PLANNED, out, err);
	return pawl_exec_plan(inputs, opt->passes ? opt->graph : opt->input, name,
		(enum pawl_precision)opt->precision, (int)opt->threads, out, err);
}

/* The number of elements that are further apart than allowed. */
static int64_t
print_comparison(
	const struct opt *opt, const struct pawl_exec_result *a, const struct pawl_exec_result *b)
{
	int64_t n_different = 0;

	for (int32_t i = 0; i < a->n; i++) {
		const struct pawl_exec_value *value = &a->values[i];
		struct pawl_exec_difference d = pawl_exec_compare(
			value, &b->values[i], opt->within);
		char max[32];

		printf("%s: %" PRId64 " elements, ", value->name, value->n);
		if (!d.n) {
			printf("same bits\n");
			continue;
		}
		printf("%" PRId64 " differ, first at %" PRId64, d.n, d.first);
		if (d.n_nan)
			printf(", %" PRId64 " nan in one of the two", d.n_nan);
		pawl_print_double(max, sizeof(max), d.max);
		if (d.n_nan < d.n)
			printf(", by at most %s", max);
		printf("\n");
		n_different += d.beyond;
	}
	return n_different;
}

static enum pawl_status
exec_both(const struct opt *opt, const char *first, const char *second, int64_t *n_different,
	struct pawl_error *err)
{
	struct pawl_exec_result a = {0}, b = {0};
	struct pawl_exec_inputs inputs;
	enum pawl_status status =
		pawl_exec_inputs_init(&inputs, opt->input, (uint64_t)opt->seed, err);

	if (!status) {
		status = exec_one(opt, &inputs, first, &a, err);
		if (status)
			pawl_error_prefix(err, "%s", first);
	}
	if (!status) {
		status = exec_one(opt, &inputs, second, &b, err);
		if (status)
			pawl_error_prefix(err, "%s", second);
	}
	if (!status)
		*n_different = print_comparison(opt, &a, &b);
	pawl_exec_result_release(&a);
	pawl_exec_result_release(&b);
	pawl_exec_inputs_release(&inputs);
	return status;
}

static int
exec_targets(struct opt *opt, struct pawl_error *err)
{
	char names[64], *second;
	int64_t n_different = 0;
	int exit_status;

	snprintf(names, sizeof(names), "%s", opt->exec);
	second = strchr(names, ',');
	*second++ = 0;
	if (exec_both(opt, names, second, &n_different, err))
		return pawl_report_error(opt->command, err);
	exit_status = pawl_finish_output(opt->command);
	if (!exit_status && n_different) {
		pawl_note(opt->command, "%s and %s differ in %" PRId64 " element%s", names, second,
			n_different, n_different == 1 ? "" : "s");
		exit_status = PAWL_EXIT_FAILED;
	}
	return exit_status;
}

static int
print_graph(const struct opt *opt)
{
	char *text = opt->print_after ? NULL : pawl_print(opt->graph, NULL);

	if (text)
		fputs(text, stdout);
	free(text);
	return pawl_finish_output(opt->command);
}

/* -1, or the exit status for a command line that contradicts itself. */
static int
check(struct opt *opt)
{
	const enum pawl_pass *pipeline = pawl_pipeline(&opt->n_list);
	struct pawl_error err = {0};
	bool found = false;

	memcpy(opt->list, pipeline, (size_t)opt->n_list * sizeof(*pipeline));
	if (opt->passes && !strcmp(opt->passes, "none"))
		opt->n_list = 0;
	else if (opt->passes && pawl_passes_from_list(opt->passes, opt->list, &opt->n_list, &err))
		return pawl_usage_error(opt->command, "--passes: %s", err.text);
	if (opt->print_after) {
		if (!pawl_pass_from_name(opt->print_after, strlen(opt->print_after), &opt->after))
			return pawl_usage_error(opt->command,
				"--print-after: there is no pass '%.64s'", opt->print_after);
		for (int i = 0; i < opt->n_list; i++)
			found |= opt->list[i] == opt->after;
		if (!found)
			return pawl_usage_error(opt->command,
				"--print-after: %s is not among the passes", opt->print_after);
	}
	if (opt->exec) {
		const char *comma = strchr(opt->exec, ',');

		if (!comma || comma == opt->exec || !comma[1] || strchr(comma + 1, ',') ||
			strlen(opt->exec) >= 64)
			return pawl_usage_error(
				opt->command, "--exec: '%.64s' is not TARGET,TARGET", opt->exec);
	}
	if (!opt->path)
		return pawl_usage_error(opt->command, "no FILE.pawl given");
	return -1;
}

static int
run(struct opt *opt)
{
	const struct pawl_inputs inputs = {{opt->path}};
	struct pawl_error err = {0};
	int exit_status = check(opt);

	if (exit_status >= 0)
		return exit_status;
	if (pawl_check_environment(&inputs, &err) || parse_file(opt, &err) || run_passes(opt, &err))
		exit_status = pawl_report_error(opt->command, &err);
	else if (opt->exec)
		exit_status = exec_targets(opt, &err);
	else
		exit_status = print_graph(opt);
	pawl_graph_free(opt->graph);
	pawl_graph_free(opt->input);
	return exit_status;
}

static int
list(const struct opt *opt, const struct pawl_args *args)
{
	int exit_status = pawl_options_refuse(opt->command, args,
		"--passes --print-after --changes --all-errors --activations --exec --seed "
		"--within --threads",
		"does not go with --list-ops and --list-passes");

	if (exit_status >= 0)
		return exit_status;
	if (opt->path)
		return pawl_usage_error(opt->command,
			"'%.100s' is one word too many for --list-ops and --list-passes",
			opt->path);
	if (opt->list_ops)
		list_ops();
	if (opt->list_passes)
		list_passes();
	return pawl_finish_output(opt->command);
}

int
pawl_cmd_opt(int argc, char **argv)
{
	struct opt opt = {.seed = 1, .threads = 1};
	const struct pawl_option options[] = {
		{"--passes", PAWL_OPTION_TEXT, &opt.passes, "PASS,...",
			"run these (default: the whole pipeline; none: no pass)", 0, 0},
		{"--print-after", PAWL_OPTION_TEXT, &opt.print_after, "PASS",
			"print the graph after this pass instead of the last", 0, 0},
		{"--changes", PAWL_OPTION_ON, &opt.changes, NULL,
			"say on standard error which passes changed something", 0, 0},
		{"--all-errors", PAWL_OPTION_ON, &opt.all_errors, NULL,
			"every error in the text, not only the first", 0, 0},
		{"--activations", PAWL_OPTION_CHOICE, &opt.precision, "a16|a8",
			"rounding of activations (default: a16)", 0, 0},
		{"--exec", PAWL_OPTION_TEXT, &opt.exec, "A,B",
			"run on two targets and compare instead of printing", 0, 0},
		{"--seed", PAWL_OPTION_INT, &opt.seed, "N", "of the inputs (default: 1)", 0,
			INT64_MAX},
		{"--within", PAWL_OPTION_REAL, &opt.within, "X",
			"allow differences up to X, at most 1000 (default: 0, equal bits)", 0, 1000},
		{"--threads", PAWL_OPTION_INT, &opt.threads, "N", "of a target (default: 1)", 1,
			1024},
		{"--list-ops", PAWL_OPTION_ON, &opt.list_ops, NULL, "name the ops and end", 0, 0},
		{"--list-passes", PAWL_OPTION_ON, &opt.list_passes, NULL, "name the passes and end",
			0, 0},
	};
	const struct pawl_command command = {"opt", "FILE.pawl",
		"Reads a graph in text form (- is standard input), runs passes over it and\n"
		"prints it.\n\n"
		"--exec runs it on seeded inputs.  A target is that of a module (ref, cpu), which\n"
		"plans the graph itself, as given or after --passes; or the graph interpreter:\n"
		"`interp` runs the graph after the passes, `input` the graph as given, `exact`\n"
		"the same in f64 with weights exactly decoded.  The exit status is 1 when the two\n"
		"differ.",
		options, sizeof(options) / sizeof(options[0]), 0, 1};
	struct pawl_args args;
	int exit_status = pawl_options_parse(&command, argc, argv, &args);

	if (exit_status >= 0)
		return exit_status;
	opt.command = &command;
	opt.path = args.operands[0];
	if (opt.list_ops || opt.list_passes)
		return list(&opt, &args);
	exit_status = opt.exec ? pawl_options_refuse(&command, &args, "--print-after",
					 "does not go with --exec, which compares instead of "
					 "printing")
			       : pawl_options_refuse(&command, &args, "--seed --within --threads",
					 "is for --exec");
	return exit_status >= 0 ? exit_status : run(&opt);
}
