/* Files for people who look into Pawl; where PAWL_DUMP says. */
#ifndef PAWL_IR_DUMP_H
#define PAWL_IR_DUMP_H

#include "ir/status.h"

/*
 * Writes text as folder/name, replacing what was there; makes the folder when only it is missing.
 * PAWL_ENVIRONMENT names the path and the reason.
 */
enum pawl_status pawl_dump_text(
	const char *folder, const char *name, const char *text, struct pawl_error *err);

#endif
