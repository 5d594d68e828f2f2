#include "ir/dump.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum pawl_status
fail(const char *path, struct pawl_error *err)
{
	return pawl_fail(err, PAWL_ENVIRONMENT, "cannot dump to %.800s: %s", path, strerror(errno));
}

/* Refuses a pipe, which would wait for its reader. */
static enum pawl_status
open_file(const char *path, FILE **out, struct pawl_error *err)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0666);
	bool is_pipe = fd < 0 && errno == ENXIO;
	enum pawl_status status;
	struct stat info;

	if (fd >= 0 && !fstat(fd, &info))
		is_pipe = S_ISFIFO(info.st_mode);
	*out = fd >= 0 && !is_pipe ? fdopen(fd, "wb") : NULL;
	if (*out)
		return PAWL_OK;
	status = is_pipe ? pawl_fail(err, PAWL_ENVIRONMENT, "cannot dump to %.800s: a pipe", path)
			 : fail(path, err);
	if (fd >= 0)
		close(fd);
	return status;
}

enum pawl_status
pawl_dump_check(const char *folder, struct pawl_error *err)
{
	struct stat info;

	if (mkdir(folder, 0777) && errno != EEXIST)
		return fail(folder, err);
	if (stat(folder, &info) || access(folder, W_OK | X_OK))
		return fail(folder, err);
	errno = ENOTDIR;
	return S_ISDIR(info.st_mode) ? PAWL_OK : fail(folder, err);
}

enum pawl_status
pawl_dump_bytes(const char *folder, const char *name, const void *bytes, size_t n,
	struct pawl_error *err)
{
	char path[4096];
	int length = snprintf(path, sizeof(path), "%s/%s", folder, name);
	enum pawl_status status;
	FILE *file;
	bool ok;

	if (length < 0 || (size_t)length >= sizeof(path))
		return pawl_fail(err, PAWL_ENVIRONMENT, "the path of dump %.64s is too long", name);
	if (mkdir(folder, 0777) && errno != EEXIST)
		return fail(folder, err);
	status = open_file(path, &file, err);
	if (status)
		return status;
	errno = 0;
	ok = fwrite(bytes, 1, n, file) == n;
	ok = !fclose(file) && ok;
	return ok ? PAWL_OK : fail(path, err);
}

enum pawl_status
pawl_dump_text(const char *folder, const char *name, const char *text, struct pawl_error *err)
{
	return pawl_dump_bytes(folder, name, text, strlen(text), err);
}
