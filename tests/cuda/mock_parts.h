/* What the mock's parts share: objects, the work of streams, the memory of the device. */
#ifndef PAWL_TESTS_CUDA_MOCK_PARTS_H
#define PAWL_TESTS_CUDA_MOCK_PARTS_H

#include "tests/cuda/mock.h"

enum pawl_mock_kind {
	PAWL_MOCK_MEMORY,
	PAWL_MOCK_PINNED,
	PAWL_MOCK_STREAM,
	PAWL_MOCK_MODULE,
	PAWL_MOCK_GRAPH,
	PAWL_MOCK_EXEC
};

enum pawl_mock_work_kind {
	PAWL_MOCK_UP,
	PAWL_MOCK_DOWN,
	PAWL_MOCK_WITHIN,
	PAWL_MOCK_FILL,
	PAWL_MOCK_KERNEL
};

struct pawl_mock_work {
	enum pawl_mock_work_kind kind;
	void *to;
	const void *from;
	void *staged; /* a copy of what was not pinned */
	size_t n;
	unsigned char value;
	const struct pawl_mock_kernel *kernel;
	char *shared_begin, *shared_end;
	void *args, *state;
	unsigned int blocks;
	struct pawl_mock_work *next;
};

/* Whatever was made, and stays known when it is freed. */
struct pawl_mock_object {
	enum pawl_mock_kind kind;
	bool is_live;
	int64_t *count;
	char *bytes; /* MEMORY, PINNED */
	size_t n_bytes;
	char *pages; /* MEMORY: those that it lies in */
	size_t n_pages_bytes;
	void *library;                /* MODULE */
	int fd;                       /* MODULE: what the library is known by */
	struct pawl_mock_work *first; /* STREAM: to be done; GRAPH, EXEC: its nodes */
	struct pawl_mock_work *captured;
	bool is_capturing, is_broken;
	struct pawl_mock_object *next;
};

extern struct pawl_mock pawl_mock __attribute__((visibility("default")));

/* Records a mistake of the caller's. */
void pawl_mock_mistake(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Whether these bytes lie in one allocation of the device. */
bool pawl_mock_has(const void *bytes, size_t n);

/* Bytes that end at a page that nobody may touch; addresses are never given twice. */
void pawl_mock_memory_make(struct pawl_mock_object *object, size_t n);
void pawl_mock_memory_open(const struct pawl_mock_object *object, bool is_open);
void pawl_mock_memory_end(struct pawl_mock_object *object);

/* A library of the shared object at image, known by *fd, which stays open; NULL: it is none. */
void *pawl_mock_image_open(const void *image, int *fd);

void *pawl_mock_function_new(
	const struct pawl_mock_object *module, const struct pawl_mock_kernel *kernel);

struct pawl_mock_work *pawl_mock_copy_new(
	enum pawl_mock_work_kind kind, void *to, const void *from, size_t n);
/* NULL when the kernel has another number of threads. */
struct pawl_mock_work *pawl_mock_kernel_new(
	const void *function, unsigned int blocks, unsigned int threads, void **parameters);
void pawl_mock_work_free(struct pawl_mock_work *work);
void pawl_mock_works_free(struct pawl_mock_work *works);
struct pawl_mock_work *pawl_mock_works_copy(const struct pawl_mock_work *works);
/* With the memory of the device open. */
CUresult pawl_mock_work_run(const struct pawl_mock_work *work);

#endif
