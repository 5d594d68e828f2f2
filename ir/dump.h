/* Files for people who look into Pawl; where PAWL_DUMP says. */
#ifndef PAWL_IR_DUMP_H
#define PAWL_IR_DUMP_H

#include <stddef.h>

#include "ir/status.h"

/*
 * Writes n bytes as the file folder/name, replacing what was in it; makes the folder when only it
 * is missing.  PAWL_ENVIRONMENT names the path and the reason, which may be that it is a pipe.
 */
enum pawl_status pawl_dump_bytes(const char *folder, const char *name, const void *bytes, size_t n,
	struct pawl_error *err);

/* The same of text without its end. */
enum pawl_status pawl_dump_text(
	const char *folder, const char *name, const char *text, struct pawl_error *err);

/* Makes the folder, and fails as they would, before there is anything to write. */
enum pawl_status pawl_dump_check(const char *folder, struct pawl_error *err);

#endif
