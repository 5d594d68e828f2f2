#include "codegen/code_memory.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static enum pawl_status
fail(const char *what, size_t bytes, struct pawl_error *err)
{
	return pawl_fail(err, PAWL_ENVIRONMENT, "%s of %zu bytes for code: %s", what, bytes,
		strerror(errno));
}

static enum pawl_status
map_twice(struct pawl_code_memory *memory, struct pawl_error *err)
{
	enum pawl_status status = PAWL_OK;
	int fd = memfd_create("pawl-code", MFD_CLOEXEC);
	void *map;

	if (fd < 0 || ftruncate(fd, (off_t)memory->bytes)) {
		status = fail("memfd", memory->bytes, err);
		goto out;
	}
	map = mmap(NULL, memory->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED) {
		status = fail("mmap for writing", memory->bytes, err);
		goto out;
	}
	memory->write = map;
	map = mmap(NULL, memory->bytes, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED) {
		status = fail("mmap for execution", memory->bytes, err);
		goto out;
	}
	memory->run = map;
out:
	if (fd >= 0)
		close(fd);
	return status;
}

enum pawl_status
pawl_code_memory_init(struct pawl_code_memory *memory, enum pawl_code_memory_kind kind,
	size_t bytes, struct pawl_error *err)
{
	enum pawl_status status;
	void *map;

	*memory = (struct pawl_code_memory){.kind = kind, .bytes = bytes};
	if (kind == PAWL_CODE_MEMORY_TWICE) {
		status = map_twice(memory, err);
		if (status != PAWL_OK)
			pawl_code_memory_release(memory);
		return status;
	}
	map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED)
		return fail("mmap", bytes, err);
	memory->write = memory->run = map;
	return PAWL_OK;
}

enum pawl_status
pawl_code_memory_seal(struct pawl_code_memory *memory, struct pawl_error *err)
{
	if (memory->kind == PAWL_CODE_MEMORY_TWICE)
		munmap(memory->write, memory->bytes);
	else if (mprotect(memory->run, memory->bytes, PROT_READ | PROT_EXEC))
		return fail("mprotect", memory->bytes, err);
	memory->write = NULL;
	__builtin___clear_cache(memory->run, memory->run + memory->bytes);
	return PAWL_OK;
}

void
pawl_code_memory_release(struct pawl_code_memory *memory)
{
	if (memory->write && memory->write != memory->run)
		munmap(memory->write, memory->bytes);
	if (memory->run)
		munmap(memory->run, memory->bytes);
	memory->write = memory->run = NULL;
}
