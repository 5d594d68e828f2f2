/*
 * Status codes and the error object every fallible function fills.
 *
 * A function that can fail returns enum pawl_status and takes a `struct pawl_error *err`
 * as its last parameter (NULL is allowed: the text is then dropped).  On success the error
 * object is left alone.  Errors never abort, exit or print.
 */
#ifndef PAWL_IR_STATUS_H
#define PAWL_IR_STATUS_H

#include <stdarg.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "Pawl reads and writes little-endian data in place; big-endian machines are not supported"
#endif

enum pawl_status {
#define PAWL_STATUS_ROW(id, number, text) PAWL_##id = number,
#include "ir/errors.def"
};

struct pawl_error {
	enum pawl_status status;
	char text[1024]; /* lower case, no final stop, says what and where */
};

#define PAWL_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

/* Stores status and text in err (may be NULL) and returns status. */
enum pawl_status pawl_fail(struct pawl_error *err, enum pawl_status status, const char *format, ...)
	PAWL_PRINTF(3, 4);
enum pawl_status pawl_vfail(struct pawl_error *err, enum pawl_status status, const char *format,
	va_list args) PAWL_PRINTF(3, 0);

/* Puts "context: " in front of the text of err; returns err's status.  err must not be NULL. */
enum pawl_status pawl_error_prefix(struct pawl_error *err, const char *format, ...)
	PAWL_PRINTF(2, 3);

/* "INVALID_FILE" and the like; never NULL. */
const char *pawl_status_name(enum pawl_status status);

#endif
