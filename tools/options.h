/*
 * Command lines, read by table.  Options take their value from the next word or after '='
 * ("-n 5", "--ctx=512"); a later one replaces an earlier one; "--" ends them.  Everything else is
 * an operand.
 */
#ifndef PAWL_TOOLS_OPTIONS_H
#define PAWL_TOOLS_OPTIONS_H

#include "ir/status.h"

#include <stdbool.h>
#include <stdint.h>

/* Exit statuses of the tool. */
enum { PAWL_EXIT_OK = 0, PAWL_EXIT_FAILED = 1, PAWL_EXIT_USAGE = 2 };

enum { PAWL_MAX_OPERANDS = 2, PAWL_MAX_INTS = 16 };

/* A comma-separated list of numbers. */
struct pawl_ints {
	int64_t items[PAWL_MAX_INTS];
	int n;
};

enum pawl_option_kind {
	PAWL_OPTION_ON,     /* bool: becomes true */
	PAWL_OPTION_OFF,    /* bool: becomes false */
	PAWL_OPTION_INT,    /* int64_t, min .. max */
	PAWL_OPTION_REAL,   /* double, min .. max, finite */
	PAWL_OPTION_TEXT,   /* const char *: the word itself, not empty */
	PAWL_OPTION_CHOICE, /* int: which of the words that `value` lists, "a16|a8" */
	PAWL_OPTION_INTS,   /* struct pawl_ints, each min .. max */
};

struct pawl_option {
	const char *name; /* "-n", "--temp" */
	enum pawl_option_kind kind;
	void *out;         /* left alone when the option is not given */
	const char *value; /* its name in the help; NULL for ON and OFF */
	const char *doc;
	int64_t min, max;
};

struct pawl_command {
	const char *name;     /* "run" */
	const char *operands; /* in the usage line: "MODEL" */
	const char *doc;      /* whole sentences, lines of at most 80 columns */
	const struct pawl_option *options;
	int n_options;
	int min_operands, max_operands; /* at most PAWL_MAX_OPERANDS */
};

/* What a command line held. */
struct pawl_args {
	const char *operands[PAWL_MAX_OPERANDS]; /* NULL: not given */
	uint64_t given;                          /* bit i: option i of the command */
};

/*
 * argv[0] is the command's name.  Returns -1 when the command may go on, else its exit status: the
 * help was printed, or the one line that says what is wrong.
 */
int pawl_options_parse(
	const struct pawl_command *command, int argc, char **argv, struct pawl_args *out);

bool pawl_option_is_given(
	const struct pawl_command *command, const struct pawl_args *args, const char *name);

/*
 * For options that would do nothing: -1 when none of the names ("--seq --ctx") is given, else
 * prints "NAME REASON" and returns PAWL_EXIT_USAGE.
 */
int pawl_options_refuse(const struct pawl_command *command, const struct pawl_args *args,
	const char *names, const char *reason);

/* Prints one line on stderr and returns PAWL_EXIT_USAGE. */
int pawl_usage_error(const struct pawl_command *command, const char *format, ...) PAWL_PRINTF(2, 3);

/* Prints one line on stderr and returns PAWL_EXIT_FAILED. */
int pawl_report_error(const struct pawl_command *command, const struct pawl_error *err);

/* One line on stderr: "pawl run: ...". */
void pawl_note(const struct pawl_command *command, const char *format, ...) PAWL_PRINTF(2, 3);

/* Flushes stdout; PAWL_ENVIRONMENT when something could not be written. */
enum pawl_status pawl_flush_output(struct pawl_error *err);

/*
 * Flushes stdout.  PAWL_EXIT_OK, or PAWL_EXIT_FAILED after a line on stderr when something could
 * not be written.
 */
int pawl_finish_output(const struct pawl_command *command);

#endif
