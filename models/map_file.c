#include "models/map_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static enum pawl_status
check_kind(const char *path, const struct stat *st, struct pawl_error *err)
{
	if (S_ISDIR(st->st_mode))
		return pawl_fail(err, PAWL_INVALID_FILE, "%s: is a directory, not a file", path);
	if (!S_ISREG(st->st_mode))
		return pawl_fail(err, PAWL_INVALID_FILE, "%s: is not a regular file", path);
	if (st->st_size == 0)
		return pawl_fail(err, PAWL_INVALID_FILE, "%s: byte 0: the file is empty", path);
	if ((uintmax_t)st->st_size > SIZE_MAX)
		return pawl_fail(err, PAWL_ENVIRONMENT,
			"%s: %jd bytes do not fit the address space", path, (intmax_t)st->st_size);
	return PAWL_OK;
}

enum pawl_status
pawl_file_map_init(struct pawl_file_map *map, const char *path, struct pawl_error *err)
{
	struct stat st;
	enum pawl_status status;
	void *bytes;
	int fd;

	map->bytes = NULL;
	map->n_bytes = 0;
	/* O_NONBLOCK: opening a FIFO must return so that it can be refused. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return pawl_fail(
			err, PAWL_ENVIRONMENT, "%s: cannot open: %s", path, strerror(errno));
	if (fstat(fd, &st)) {
		status = pawl_fail(
			err, PAWL_ENVIRONMENT, "%s: cannot stat: %s", path, strerror(errno));
		close(fd);
		return status;
	}
	status = check_kind(path, &st, err);
	if (status) {
		close(fd);
		return status;
	}
	bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (bytes == MAP_FAILED)
		status = pawl_fail(err, PAWL_ENVIRONMENT, "%s: cannot map %jd bytes: %s", path,
			(intmax_t)st.st_size, strerror(errno));
	close(fd);
	if (status)
		return status;
	map->bytes = bytes;
	map->n_bytes = (size_t)st.st_size;
	return PAWL_OK;
}

void
pawl_file_map_release(struct pawl_file_map *map)
{
	if (map->bytes)
		munmap((void *)(uintptr_t)map->bytes, map->n_bytes);
	map->bytes = NULL;
	map->n_bytes = 0;
}

void
pawl_file_map_drop(const struct pawl_file_map *map, const void *bytes, size_t n_bytes)
{
	uintptr_t page, from, to;

	if (!map->bytes)
		return;
	page = (uintptr_t)sysconf(_SC_PAGESIZE);
	from = ((uintptr_t)bytes + page - 1) / page * page;
	to = ((uintptr_t)bytes + n_bytes) / page * page;
	if (from < to)
		madvise((void *)from, to - from, MADV_DONTNEED);
}
