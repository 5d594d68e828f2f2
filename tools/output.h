/*
 * Files that commands write.  A path is tried before the work begins; what is written lies beside
 * it under another name and takes the path's place when it is complete.  A failure or a signal that
 * ends the process leaves the path as it was and nothing beside it.
 *
 * Where the path is no regular file (a pipe, /dev/null) or is open as standard output or error
 * already, it is written directly.  "-" is standard output.
 */
#ifndef PAWL_TOOLS_OUTPUT_H
#define PAWL_TOOLS_OUTPUT_H

#include "ir/status.h"

#include <stddef.h>
#include <stdio.h>

struct pawl_output {
	const char *option; /* stands in front of messages */
	const char *path;   /* as given; "standard output" for "-" */
	FILE *file;
	char *place;              /* absolute, links resolved; NULL when written directly */
	char *volatile temporary; /* beside place; what a signal removes */
	struct pawl_output *volatile next; /* of those open */
};

/* Files a command reads: NULL is none, "-" is standard input. */
enum { PAWL_MAX_INPUT_FILES = 4 };

struct pawl_inputs {
	const char *paths[PAWL_MAX_INPUT_FILES];
};

/*
 * Opens path for writing; option ("--logits") and path must outlive out, which stays where it is
 * until it is released.  PAWL_INVALID_ARGUMENT when it is one of the inputs or of the outputs open
 * under whatever name, PAWL_ENVIRONMENT when it cannot be written; out is then released.  Two
 * outputs may be one device, such as /dev/null.
 */
enum pawl_status pawl_output_open(struct pawl_output *out, const char *option, const char *path,
	const struct pawl_inputs *inputs, struct pawl_error *err);

enum pawl_status pawl_output_write(
	struct pawl_output *out, const void *bytes, size_t n, struct pawl_error *err);

/* The standard stream whose file it is and shares, NULL: none.  A device shares nothing. */
const char *pawl_output_stream(const struct pawl_output *out);

/* Closes the file and puts it in its place.  out is released, also when that fails. */
enum pawl_status pawl_output_commit(struct pawl_output *out, struct pawl_error *err);

/* Drops what is not committed.  For one that is all zero or released it does nothing. */
void pawl_output_release(struct pawl_output *out);

/*
 * Whether what the environment asks of passes and dumps can be done, before the work begins: the
 * folder of PAWL_DUMP can be written to, and is made when only it is missing.
 * PAWL_INVALID_ARGUMENT when it holds one of the inputs with the name of a dump, "*.pawl", and as
 * pawl_run_options_from_env says.
 */
enum pawl_status pawl_check_environment(const struct pawl_inputs *inputs, struct pawl_error *err);

#endif
