#include "ir/status.h"

#include <stdio.h>
#include <string.h>

enum pawl_status
pawl_vfail(struct pawl_error *err, enum pawl_status status, const char *format, va_list args)
{
	if (err) {
		err->status = status;
		vsnprintf(err->text, sizeof(err->text), format, args);
	}
	return status;
}

enum pawl_status
pawl_fail(struct pawl_error *err, enum pawl_status status, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	pawl_vfail(err, status, format, args);
	va_end(args);
	return status;
}

enum pawl_status
pawl_error_prefix(struct pawl_error *err, const char *format, ...)
{
	char old[sizeof(err->text)];
	va_list args;
	int n;

	memcpy(old, err->text, sizeof(old));
	va_start(args, format);
	n = vsnprintf(err->text, sizeof(err->text), format, args);
	va_end(args);
	if (n >= 0 && (size_t)n < sizeof(err->text))
		snprintf(err->text + n, sizeof(err->text) - (size_t)n, ": %.900s", old);
	return err->status;
}

const char *
pawl_status_name(enum pawl_status status)
{
	switch (status) {
#define PAWL_STATUS_ROW(id, number, text)                                                          \
	case PAWL_##id:                                                                            \
		return #id;
#include "ir/errors.def"
	}
	return "UNKNOWN";
}
