#include "ir/dump.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static enum pawl_status
fail(const char *path, struct pawl_error *err)
{
	return pawl_fail(err, PAWL_ENVIRONMENT, "cannot dump to %.800s: %s", path, strerror(errno));
}

enum pawl_status
pawl_dump_text(const char *folder, const char *name, const char *text, struct pawl_error *err)
{
	char path[4096];
	int n = snprintf(path, sizeof(path), "%s/%s", folder, name);
	FILE *file;
	int bad;

	if (n < 0 || (size_t)n >= sizeof(path))
		return pawl_fail(err, PAWL_ENVIRONMENT, "the path of dump %.64s is too long", name);
	if (mkdir(folder, 0777) && errno != EEXIST)
		return fail(folder, err);
	file = fopen(path, "wbe");
	if (!file)
		return fail(path, err);
	errno = 0;
	bad = fputs(text, file) < 0;
	bad |= fclose(file) != 0;
	return bad ? fail(path, err) : PAWL_OK;
}
