#include "codegen/module_file.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct file {
	int fd;
	uint64_t size;
	const char *path;
};

static bool
holds(const struct file *file, uint64_t offset, uint64_t bytes)
{
	return offset <= file->size && bytes <= file->size - offset;
}

static bool
read_at(const struct file *file, void *out, size_t n, uint64_t offset)
{
	return holds(file, offset, n) && pread(file->fd, out, n, (off_t)offset) == (ssize_t)n;
}

static enum pawl_status
check_segments(const struct file *file, const ElfW(Ehdr) *header, struct pawl_error *err)
{
	for (int i = 0; i < header->e_phnum; i++) {
		ElfW(Phdr) segment;

		if (!read_at(file, &segment, sizeof(segment),
			    header->e_phoff + (uint64_t)i * sizeof(segment)))
			return pawl_fail(err, PAWL_ENVIRONMENT,
				"%s: its program headers leave the file of %llu bytes", file->path,
				(unsigned long long)file->size);
		if (!holds(file, segment.p_offset, segment.p_filesz))
			return pawl_fail(err, PAWL_ENVIRONMENT,
				"%s: segment %d leaves the file of %llu bytes", file->path, i,
				(unsigned long long)file->size);
	}
	return PAWL_OK;
}

static enum pawl_status
check(const struct file *file, struct pawl_error *err)
{
	ElfW(Ehdr) header;

	if (!read_at(file, &header, sizeof(header), 0) ||
		memcmp(header.e_ident, ELFMAG, SELFMAG) ||
		header.e_ident[EI_CLASS] != __ELF_NATIVE_CLASS / 32 ||
		header.e_phentsize != sizeof(ElfW(Phdr)))
		return pawl_fail(err, PAWL_ENVIRONMENT, "%s: no %d-bit elf file", file->path,
			__ELF_NATIVE_CLASS);
	if (!holds(file, header.e_shoff, (uint64_t)header.e_shnum * header.e_shentsize))
		return pawl_fail(err, PAWL_ENVIRONMENT,
			"%s: its section headers leave the file of %llu bytes", file->path,
			(unsigned long long)file->size);
	return check_segments(file, &header, err);
}

enum pawl_status
pawl_module_open(const char *path, void **handle, struct pawl_error *err)
{
	struct file file = {.path = path};
	enum pawl_status status;
	struct stat info;

	file.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (file.fd < 0)
		return pawl_fail(err, PAWL_ENVIRONMENT, "%s: %s", path, strerror(errno));
	if (fstat(file.fd, &info) || !S_ISREG(info.st_mode)) {
		close(file.fd);
		return pawl_fail(err, PAWL_ENVIRONMENT, "%s: no regular file", path);
	}
	file.size = (uint64_t)info.st_size;
	status = check(&file, err);
	close(file.fd);
	if (status)
		return status;
	*handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	return *handle ? PAWL_OK : pawl_fail(err, PAWL_ENVIRONMENT, "%s", dlerror());
}
