#include "tools/options.h"

#include "ir/parse.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LINE_BYTES = 2048, HELP_COLUMN = 24 };

static void
print_line(const struct pawl_command *command, const char *format, va_list args)
{
	char line[LINE_BYTES];

	vsnprintf(line, sizeof(line), format, args);
	for (char *at = line; *at; at++) {
		if ((unsigned char)*at < ' ' || *at == 0x7f)
			*at = '?';
	}
	pawl_flush_output(NULL);
	fprintf(stderr, "pawl%s%s: %s\n", command->name ? " " : "",
		command->name ? command->name : "", line);
}

void
pawl_note(const struct pawl_command *command, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print_line(command, format, args);
	va_end(args);
}

int
pawl_usage_error(const struct pawl_command *command, const char *format, ...)
{
	char line[LINE_BYTES];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	pawl_note(command, "%.1900s (pawl %s%s--help explains)", line,
		command->name ? command->name : "", command->name ? " " : "");
	return PAWL_EXIT_USAGE;
}

int
pawl_report_error(const struct pawl_command *command, const struct pawl_error *err)
{
	pawl_note(command, "%s", err->text);
	return PAWL_EXIT_FAILED;
}

enum pawl_status
pawl_flush_output(struct pawl_error *err)
{
	static int reason; /* the first: what failed once may not fail again */
	int before = errno;

	errno = 0;
	if (!fflush(stdout) && !ferror(stdout))
		return PAWL_OK;
	/* When it was printing that failed, it left errno, which no success changes. */
	if (!reason)
		reason = errno ? errno : before;
	return pawl_fail(err, PAWL_ENVIRONMENT, "standard output: %s",
		reason ? strerror(reason) : "something could not be written");
}

int
pawl_finish_output(const struct pawl_command *command)
{
	struct pawl_error err;

	return pawl_flush_output(&err) ? pawl_report_error(command, &err) : PAWL_EXIT_OK;
}

static void
print_help(const struct pawl_command *command)
{
	printf("usage: pawl %s %s%s\n\n%s\n", command->name, command->operands,
		command->n_options ? " [OPTION]..." : "", command->doc);
	printf("\n");
	for (int i = 0; i < command->n_options; i++) {
		const struct pawl_option *option = &command->options[i];
		int n = printf("  %s%s%s", option->name, option->value ? " " : "",
			option->value ? option->value : "");

		printf("%*s%s\n", n < HELP_COLUMN ? HELP_COLUMN - n : 2, "", option->doc);
	}
	printf("  %-*s%s\n", HELP_COLUMN - 2, "--help", "this text");
}

/* label is the option's name, or names an entry of its list. */
static int
refuse_range(const struct pawl_command *command, const struct pawl_option *option,
	const char *label, const char *word, size_t n)
{
	int length = (int)(n < 100 ? n : 100);

	if (option->max == INT64_MAX)
		return pawl_usage_error(
			command, "%s: %.*s is below %" PRId64, label, length, word, option->min);
	return pawl_usage_error(command, "%s: %.*s is not in %" PRId64 " .. %" PRId64, label,
		length, word, option->min, option->max);
}

static int
read_int(const struct pawl_command *command, const struct pawl_option *option, const char *label,
	const char *word, size_t n, int64_t *out)
{
	int64_t value;

	if (!pawl_parse_int(word, n, &value))
		return pawl_usage_error(command, "%s: '%.*s' is not a whole number", label,
			(int)(n < 100 ? n : 100), word);
	if (value < option->min || value > option->max)
		return refuse_range(command, option, label, word, n);
	*out = value;
	return -1;
}

static int
read_real(const struct pawl_command *command, const struct pawl_option *option, const char *word)
{
	size_t n = strlen(word);
	double value;

	if (!pawl_parse_double(word, n, &value) || !isfinite(value))
		return pawl_usage_error(
			command, "%s: '%.100s' is not a finite number", option->name, word);
	if (value < (double)option->min || value > (double)option->max)
		return refuse_range(command, option, option->name, word, n);
	*(double *)option->out = value;
	return -1;
}

static int
read_choice(const struct pawl_command *command, const struct pawl_option *option, const char *word)
{
	size_t n = strlen(word);
	int i = 0;

	for (const char *at = option->value; *at; i++) {
		size_t length = strcspn(at, "|");

		if (length == n && !memcmp(at, word, n)) {
			*(int *)option->out = i;
			return -1;
		}
		at += length + (at[length] == '|');
	}
	return pawl_usage_error(
		command, "%s: '%.100s' is none of %s", option->name, word, option->value);
}

static int
read_ints(const struct pawl_command *command, const struct pawl_option *option, const char *word)
{
	struct pawl_ints *list = option->out;
	const char *at = word;
	char label[64];

	list->n = 0;
	for (;;) {
		size_t n = strcspn(at, ",");
		int status;

		if (at[n] || at > word)
			snprintf(label, sizeof(label), "%s: entry %d", option->name, list->n + 1);
		else
			snprintf(label, sizeof(label), "%s", option->name);

		if (list->n == PAWL_MAX_INTS)
			return pawl_usage_error(
				command, "%s: more than %d numbers", option->name, PAWL_MAX_INTS);
		status = read_int(command, option, label, at, n, &list->items[list->n++]);
		if (status >= 0 || !at[n])
			return status;
		at += n + 1;
	}
}

static int
read_value(const struct pawl_command *command, const struct pawl_option *option, const char *word)
{
	switch (option->kind) {
	case PAWL_OPTION_ON:
	case PAWL_OPTION_OFF:
		break;
	case PAWL_OPTION_INT:
		return read_int(
			command, option, option->name, word, strlen(word), option->out);
	case PAWL_OPTION_REAL:
		return read_real(command, option, word);
	case PAWL_OPTION_TEXT:
		if (!*word)
			return pawl_usage_error(command, "%s: an empty value", option->name);
		*(const char **)option->out = word;
		return -1;
	case PAWL_OPTION_CHOICE:
		return read_choice(command, option, word);
	case PAWL_OPTION_INTS:
		return read_ints(command, option, word);
	}
	return -1;
}

static const struct pawl_option *
find_option(const struct pawl_command *command, const char *word, size_t n)
{
	for (int i = 0; i < command->n_options; i++) {
		const char *name = command->options[i].name;

		if (strlen(name) == n && !memcmp(name, word, n))
			return &command->options[i];
	}
	return NULL;
}

bool
pawl_option_is_given(
	const struct pawl_command *command, const struct pawl_args *args, const char *name)
{
	return args->given >> (find_option(command, name, strlen(name)) - command->options) & 1;
}

int
pawl_options_refuse(const struct pawl_command *command, const struct pawl_args *args,
	const char *names, const char *reason)
{
	for (const char *at = names; *at;) {
		size_t n = strcspn(at, " ");
		const struct pawl_option *option = find_option(command, at, n);

		if (args->given >> (option - command->options) & 1)
			return pawl_usage_error(command, "%s %s", option->name, reason);
		at += n + (at[n] == ' ');
	}
	return -1;
}

/* Reads the option at argv[*i] and leaves *i at its last word. */
static int
read_option(
	const struct pawl_command *command, int argc, char **argv, int *i, struct pawl_args *out)
{
	const char *word = argv[*i];
	size_t n = strcspn(word, "=");
	const char *value = word[n] ? word + n + 1 : NULL;
	const struct pawl_option *option = find_option(command, word, n);

	if (!option)
		return pawl_usage_error(
			command, "there is no option %.*s", (int)(n < 100 ? n : 100), word);
	out->given |= UINT64_C(1) << (option - command->options);
	if (!option->value) {
		if (value)
			return pawl_usage_error(command, "%s takes no value", option->name);
		*(bool *)option->out = option->kind == PAWL_OPTION_ON;
		return -1;
	}
	if (!value) {
		if (*i + 1 == argc)
			return pawl_usage_error(
				command, "%s: no %s after it", option->name, option->value);
		value = argv[++*i];
	}
	return read_value(command, option, value);
}

/* Models are mapped.  Other operands, and what options name, may be standard input. */
static bool
is_model_on_stream(const struct pawl_command *command, int i, const char *word)
{
	return !i && !strcmp(word, "-") && !strncmp(command->operands, "MODEL", 5);
}

int
pawl_options_parse(
	const struct pawl_command *command, int argc, char **argv, struct pawl_args *out)
{
	int n = 0, status = -1;
	bool ended = false;

	*out = (struct pawl_args){0};
	for (int i = 1; i < argc && status < 0; i++) {
		const char *word = argv[i];

		if (ended || word[0] != '-' || !word[1]) {
			if (n == command->max_operands)
				return pawl_usage_error(
					command, "'%.100s' is one word too many", word);
			if (!*word)
				return pawl_usage_error(
					command, "%s: an empty value", command->operands);
			if (is_model_on_stream(command, n, word))
				return pawl_usage_error(command,
					"a model is in a file, not in a standard stream (a file - "
					"is ./-)");
			out->operands[n++] = word;
		} else if (!strcmp(word, "--")) {
			ended = true;
		} else if (!strcmp(word, "--help")) {
			print_help(command);
			return pawl_finish_output(command);
		} else {
			status = read_option(command, argc, argv, &i, out);
		}
	}
	if (status < 0 && n < command->min_operands)
		return pawl_usage_error(command, "no %s given", command->operands);
	return status;
}
