#include <stdio.h>
#include <stdlib.h>

#include "plugins/host_api.h"

struct pawl_host_status {
	struct pawl_error error;
};

#define PAWL_STATUS_ROW(id, number, text)                                                          \
	_Static_assert((int)PAWL_CODE_##id == number, "codes of the ABI are those of errors.def");
#include "ir/errors.def"

/* What is left when there is no memory even for a status; never freed. */
static struct pawl_host_status exhausted = {{PAWL_OUT_OF_MEMORY, "no memory"}};

struct pawl_host_status *
pawl_host_status(enum pawl_status status, const struct pawl_error *err)
{
	struct pawl_host_status *object;

	if (status == PAWL_OK)
		return NULL;
	object = malloc(sizeof(*object));
	if (!object)
		return &exhausted;
	object->error = *err;
	object->error.status = status;
	return object;
}

struct pawl_host_status *
pawl_host_refuse(enum pawl_status status, const char *format, ...)
{
	struct pawl_error err;
	va_list args;

	va_start(args, format);
	pawl_vfail(&err, status, format, args);
	va_end(args);
	return pawl_host_status(status, &err);
}

enum pawl_status_code
pawl_host_status_code(const struct pawl_host_status *status)
{
	return status ? (enum pawl_status_code)status->error.status : PAWL_CODE_OK;
}

const char *
pawl_host_status_message(const struct pawl_host_status *status)
{
	return status ? status->error.text : "ok";
}

void
pawl_host_status_free(struct pawl_host_status *status)
{
	if (status != &exhausted)
		free(status);
}

void
pawl_host_log(const struct pawl_host_context *context, int level, const char *format, ...)
{
	char text[512];
	va_list args;

	if (!context->services.log)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	context->services.log(context->services.user, level, text);
}
