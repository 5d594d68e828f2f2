/*
 * Requests to a scheduler as JSON lines, one object a line:
 *
 *   {"prompt": "Once upon", "n": 20, "arrival": 3, "temp": 0.8, "seed": 7, "priority": "high",
 *    "id": "first"}
 *
 * prompt and n must be there.  arrival: the scheduler step before which it is submitted, default 0.
 * Lines without anything are skipped.
 */
#ifndef PAWL_TOOLS_REQUEST_FILE_H
#define PAWL_TOOLS_REQUEST_FILE_H

#include "ir/status.h"
#include "runtime/scheduler.h"

#include <stddef.h>
#include <stdint.h>

enum {
	PAWL_MAX_REQUESTS = 65536,
	PAWL_MAX_REQUEST_LINE = 1 << 20, /* bytes */
	PAWL_MAX_ARRIVAL = 1000000,
	PAWL_MAX_REQUEST_NAME = 64 /* bytes of an id */
};

struct pawl_file_request {
	int line; /* from 1 */
	char *name;
	char *prompt;
	int64_t arrival, n;
	double temp; /* 0 or less: the likeliest token */
	uint64_t seed;
	enum pawl_priority priority;
};

struct pawl_request_file {
	const char *name;                   /* in messages; lives as long as the path */
	struct pawl_file_request *requests; /* in the order of arrival, then of the lines */
	size_t n;
};

/*
 * PAWL_INVALID_FILE names file, line and field, or the byte of the line.  Where no id is given the
 * name is "line N".
 */
enum pawl_status pawl_request_file_read(
	const char *path, struct pawl_request_file *out, struct pawl_error *err);
void pawl_request_file_release(struct pawl_request_file *file);

#endif
