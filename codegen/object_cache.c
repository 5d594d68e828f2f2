#include "codegen/object_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* More than any kernel has; nothing larger is read. */
#define MAX_ENTRY_BYTES ((uint64_t)64 << 20)

/* Writing an entry takes milliseconds. */
enum { STALE_SECONDS = 600 };

static const char magic[8] = {'P', 'A', 'W', 'L', 'O', 'B', 'J', '1'};

static uint64_t
checksum(uint64_t hash, const void *bytes, size_t n)
{
	const unsigned char *at = bytes;

	for (size_t i = 0; i < n; i++)
		hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
	return hash;
}

static uint64_t
key_hash(const char *key)
{
	return checksum(UINT64_C(0xcbf29ce484222325), key, strlen(key));
}

/* Ours, and nobody else can change it. */
static bool
is_trusted(const struct stat *info)
{
	return info->st_uid == geteuid() && !(info->st_mode & (S_IWGRP | S_IWOTH));
}

/*
 * Makes the folders of a path that are missing, for the user alone.  That one cannot be made does not
 * matter where the last is there.
 */
static enum pawl_status
make_folders(const char *path, struct pawl_error *err)
{
	char *part = strdup(path), *end;
	enum pawl_status status = PAWL_OK;
	bool is_there;

	if (!part)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for a path");
	for (end = part + (*part == '/'); *end && status == PAWL_OK; end++) {
		if (*end != '/')
			continue;
		*end = '\0';
		if (mkdir(part, 0700) && errno != EEXIST)
			status = pawl_fail(err, PAWL_ENVIRONMENT, "kernel cache %.300s: %.300s: %s",
				path, part, strerror(errno));
		*end = '/';
	}
	free(part);
	is_there = !mkdir(path, 0700) || errno == EEXIST;
	if (!is_there && status == PAWL_OK)
		status = pawl_fail(
			err, PAWL_ENVIRONMENT, "kernel cache %.300s: %s", path, strerror(errno));
	return is_there ? PAWL_OK : status;
}

static enum pawl_status
open_folder(struct pawl_object_cache *cache, struct pawl_error *err)
{
	enum pawl_status status = make_folders(cache->path, err);
	struct stat info;

	if (status != PAWL_OK)
		return status;
	cache->folder = open(cache->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (cache->folder < 0) {
		int reason = errno;
		bool is_link = !lstat(cache->path, &info) && S_ISLNK(info.st_mode);

		return pawl_fail(err, PAWL_ENVIRONMENT, "kernel cache %.300s: %s", cache->path,
			is_link ? "a link, which is not followed" : strerror(reason));
	}
	if (fstat(cache->folder, &info) || !is_trusted(&info))
		return pawl_fail(err, PAWL_ENVIRONMENT,
			"kernel cache %.300s: not used, as it is another user's or others may write to it",
			cache->path);
	return PAWL_OK;
}

/* HASH.o.PID.ADDRESS: what an entry is called while it is written. */
static bool
is_temporary(const char *name)
{
	size_t digits = strspn(name, "0123456789abcdef"), pid;

	if (digits != 16 || strncmp(name + digits, ".o.", 3))
		return false;
	name += digits + 3;
	pid = strspn(name, "0123456789");
	return pid && name[pid] == '.';
}

/* Removes what processes left that ended while they wrote. */
static void
remove_stale(const struct pawl_object_cache *cache)
{
	int fd = openat(cache->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	struct stat info;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((entry = readdir(dir)))
		if (is_temporary(entry->d_name) &&
			!fstatat(fd, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) &&
			time(NULL) - info.st_mtime > STALE_SECONDS)
			unlinkat(fd, entry->d_name, 0);
	closedir(dir);
}

enum pawl_status
pawl_object_cache_open(struct pawl_object_cache *cache, const char *path, struct pawl_error *err)
{
	enum pawl_status status;
	char *end;

	*cache = PAWL_OBJECT_CACHE_NONE;
	cache->path = strdup(path);
	if (!cache->path)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for a path");
	/* Behind a slash a link would be followed. */
	for (end = cache->path + strlen(path); end > cache->path + 1 && end[-1] == '/'; end--)
		end[-1] = '\0';
	status = open_folder(cache, err);
	if (status == PAWL_OK)
		remove_stale(cache);
	else
		pawl_object_cache_release(cache);
	return status;
}

void
pawl_object_cache_release(struct pawl_object_cache *cache)
{
	if (cache->folder >= 0)
		close(cache->folder);
	free(cache->path);
	*cache = PAWL_OBJECT_CACHE_NONE;
}

static void
entry_name(char name[32], const char *key)
{
	snprintf(name, 32, "%016" PRIx64 ".o", key_hash(key));
}

static bool
read_all(int fd, void *bytes, size_t n)
{
	char *at = bytes;

	while (n) {
		ssize_t got = read(fd, at, n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		at += got;
		n -= (size_t)got;
	}
	return true;
}

static bool
write_all(int fd, const void *bytes, size_t n)
{
	const char *at = bytes;

	while (n) {
		ssize_t put = write(fd, at, n);

		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return false;
		at += put;
		n -= (size_t)put;
	}
	return true;
}

/*
 * The same where a file may only be so large: without the signal whose default is to end the process, which
 * a library must neither cause nor handle.
 */
static bool
write_quietly(int fd, const struct iovec *parts, int n_parts)
{
	static const struct timespec at_once = {0, 0};
	sigset_t signals, before, pending;
	bool written = true;

	sigemptyset(&signals);
	sigaddset(&signals, SIGXFSZ);
	sigpending(&pending);
	pthread_sigmask(SIG_BLOCK, &signals, &before);
	for (int i = 0; i < n_parts && written; i++)
		written = write_all(fd, parts[i].iov_base, parts[i].iov_len);
	if (!written && errno == EFBIG && !sigismember(&pending, SIGXFSZ)) {
		sigtimedwait(&signals, NULL, &at_once);
		errno = EFBIG;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return written;
}

static void *
read_entry(int fd, const char *key, size_t *size)
{
	size_t key_bytes = strlen(key);
	struct pawl_object_header header;
	struct stat info;
	char *bytes;

	if (fstat(fd, &info) || !S_ISREG(info.st_mode) || !is_trusted(&info) ||
		!read_all(fd, &header, sizeof(header)) ||
		memcmp(header.magic, magic, sizeof(magic)) || header.key_bytes != key_bytes ||
		header.object_bytes > MAX_ENTRY_BYTES ||
		(uint64_t)info.st_size != sizeof(header) + key_bytes + header.object_bytes)
		return NULL;
	*size = (size_t)header.object_bytes;
	bytes = malloc(key_bytes + *size + 1);
	if (!bytes)
		return NULL;
	if (!read_all(fd, bytes, key_bytes + *size) || memcmp(bytes, key, key_bytes) ||
		header.checksum != checksum(key_hash(key), bytes + key_bytes, *size)) {
		free(bytes);
		return NULL;
	}
	memmove(bytes, bytes + key_bytes, *size);
	return bytes;
}

void *
pawl_object_cache_find(const struct pawl_object_cache *cache, const char *key, size_t *size)
{
	char name[32];
	void *object;
	int fd;

	if (cache->folder < 0)
		return NULL;
	entry_name(name, key);
	fd = openat(cache->folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	object = read_entry(fd, key, size);
	close(fd);
	return object;
}

static enum pawl_status
cannot_write(const struct pawl_object_cache *cache, const char *name, struct pawl_error *err)
{
	return pawl_fail(err, PAWL_ENVIRONMENT, "kernel cache %.300s: %s: %s", cache->path, name,
		strerror(errno));
}

enum pawl_status
pawl_object_cache_store(const struct pawl_object_cache *cache, const char *key, const void *object,
	size_t size, struct pawl_error *err)
{
	struct pawl_object_header header = {.key_bytes = strlen(key), .object_bytes = size};
	const struct iovec parts[] = {{&header, sizeof(header)},
		{(void *)(uintptr_t)key, strlen(key)}, {(void *)(uintptr_t)object, size}};
	char name[32], temporary[96];
	bool written;
	int fd;

	if (cache->folder < 0)
		return PAWL_OK;
	memcpy(header.magic, magic, sizeof(magic));
	header.checksum = checksum(key_hash(key), object, size);
	entry_name(name, key);
	/* Unique among the processes and threads that may write the entry. */
	snprintf(temporary, sizeof(temporary), "%s.%ld.%p", name, (long)getpid(), (void *)&header);
	fd = openat(cache->folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		0600);
	if (fd < 0)
		return cannot_write(cache, temporary, err);
	written = write_quietly(fd, parts, 3);
	if (!written)
		cannot_write(cache, name, err);
	if ((close(fd) || (written && renameat(cache->folder, temporary, cache->folder, name))) &&
		written) {
		written = false;
		cannot_write(cache, name, err);
	}
	if (!written)
		unlinkat(cache->folder, temporary, 0);
	return written ? PAWL_OK : PAWL_ENVIRONMENT;
}
