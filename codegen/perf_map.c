#include "codegen/perf_map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum pawl_status
pawl_perf_map_add(const void *code, size_t n_bytes, const char *name, struct pawl_error *err)
{
	char path[64], line[512];
	enum pawl_status status = PAWL_OK;
	struct stat info;
	ssize_t written;
	int fd, n;

	snprintf(path, sizeof(path), "/tmp/perf-%ld.map", (long)getpid());
	n = snprintf(line, sizeof(line), "%llx %zx %.400s\n", (unsigned long long)(uintptr_t)code,
		n_bytes, name);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return pawl_fail(err, PAWL_ENVIRONMENT, "perf map %s: %s", path, strerror(errno));
	if (fstat(fd, &info) || !S_ISREG(info.st_mode) || info.st_uid != geteuid())
		status = pawl_fail(
			err, PAWL_ENVIRONMENT, "perf map %s is not a file of this user", path);
	else if ((written = write(fd, line, (size_t)n)) != n)
		status = pawl_fail(err, PAWL_ENVIRONMENT, "perf map %s: %s", path,
			strerror(written < 0 ? errno : ENOSPC));
	close(fd);
	return status;
}
