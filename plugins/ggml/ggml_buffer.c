#include "plugins/ggml/ggml_buffer.h"

#include <stdlib.h>
#include <string.h>

#include "plugins/ggml/ggml_packs.h"
#include "runtime/memory.h"

enum { ALIGNMENT = 64 };

struct memory {
	struct pawl_block block; /* empty: somebody else's */
	void *bytes;
	size_t n_bytes;
};

static const struct pawl_ggml_host *host;
static struct pawl_ggml_buft buft;

static struct memory *
memory_of(const struct pawl_ggml_buffer *buffer)
{
	struct memory *memory;

	memcpy(&memory,
		(const char *)buffer + sizeof(pawl_ggml_fn) * (size_t)host->layout->n_buffer_fns +
			sizeof(void *),
		sizeof(memory));
	return memory;
}

static void
forget(const struct memory *memory)
{
	pawl_ggml_packs_forget(memory->bytes, memory->n_bytes);
}

static void
buffer_free(struct pawl_ggml_buffer *buffer)
{
	struct memory *memory = memory_of(buffer);

	forget(memory);
	pawl_block_release(&memory->block);
	free(memory);
}

static void *
buffer_base(struct pawl_ggml_buffer *buffer)
{
	return memory_of(buffer)->bytes;
}

static void
memset_tensor(struct pawl_ggml_buffer *buffer, struct pawl_ggml_tensor *t, uint8_t value, size_t at,
	size_t n)
{
	(void)buffer;
	pawl_ggml_packs_forget((char *)t->data + at, n);
	memset((char *)t->data + at, value, n);
}

static void
set_tensor(struct pawl_ggml_buffer *buffer, struct pawl_ggml_tensor *t, const void *bytes, size_t at,
	size_t n)
{
	if (pawl_ggml_buffer_usage(host, buffer) == PAWL_GGML_WEIGHTS)
		pawl_ggml_packs_forget((char *)t->data + at, n);
	memcpy((char *)t->data + at, bytes, n);
}

static void
get_tensor(struct pawl_ggml_buffer *buffer, const struct pawl_ggml_tensor *t, void *bytes, size_t at,
	size_t n)
{
	(void)buffer;
	memcpy(bytes, (const char *)t->data + at, n);
}

static void
clear(struct pawl_ggml_buffer *buffer, uint8_t value)
{
	struct memory *memory = memory_of(buffer);

	forget(memory);
	memset(memory->bytes, value, memory->n_bytes);
}

#define FN(fn) ((pawl_ggml_fn)(fn))

struct fns_9 {
	pawl_ggml_fn fn[9];
};

struct fns_11 {
	pawl_ggml_fn fn[11];
};

/* The host's constructor takes the functions by value. */
static struct pawl_ggml_buffer *
construct(struct memory *memory)
{
	const struct pawl_ggml_layout *layout = host->layout;
	struct fns_11 all = {{NULL}};
	struct fns_9 old;
	struct pawl_ggml_buffer *(*init_9)(void *, struct fns_9, void *, size_t);
	struct pawl_ggml_buffer *(*init_11)(void *, struct fns_11, void *, size_t);

	all.fn[0] = FN(buffer_free);
	all.fn[1] = FN(buffer_base);
	all.fn[layout->memset_tensor] = FN(memset_tensor);
	all.fn[layout->set_tensor] = FN(set_tensor);
	all.fn[layout->get_tensor] = FN(get_tensor);
	all.fn[layout->clear] = FN(clear);
	if (layout->n_buffer_fns == 9) {
		memcpy(&old, &all, sizeof(old));
		memcpy(&init_9, &host->buffer_init, sizeof(init_9));
		return init_9(&buft, old, memory, memory->n_bytes);
	}
	memcpy(&init_11, &host->buffer_init, sizeof(init_11));
	return init_11(&buft, all, memory, memory->n_bytes);
}

static struct pawl_ggml_buffer *
alloc_buffer(struct pawl_ggml_buft *type, size_t n_bytes)
{
	struct memory *memory = calloc(1, sizeof(*memory));
	struct pawl_error err;

	(void)type;
	if (!memory)
		return NULL;
	if (n_bytes > INT64_MAX ||
		pawl_block_init(&memory->block, n_bytes ? (int64_t)n_bytes : 1, &err)) {
		pawl_ggml_log(host, PAWL_GGML_ERROR, "no memory for a buffer of %zu bytes", n_bytes);
		free(memory);
		return NULL;
	}
	memory->bytes = memory->block.bytes;
	memory->n_bytes = n_bytes;
	return construct(memory);
}

struct pawl_ggml_buffer *
pawl_ggml_buffer_of(void *bytes, size_t n_bytes)
{
	struct memory *memory = calloc(1, sizeof(*memory));

	if (!memory)
		return NULL;
	memory->bytes = bytes;
	memory->n_bytes = n_bytes;
	return construct(memory);
}

static const char *
buft_name(struct pawl_ggml_buft *type)
{
	(void)type;
	return "Pawl";
}

static size_t
buft_alignment(struct pawl_ggml_buft *type)
{
	(void)type;
	return ALIGNMENT;
}

static bool
buft_is_host(struct pawl_ggml_buft *type)
{
	(void)type;
	return true;
}

void
pawl_ggml_buft_init(const struct pawl_ggml_host *bound, struct pawl_ggml_device *device)
{
	const struct pawl_ggml_layout *layout = bound->layout;

	host = bound;
	memset(&buft, 0, sizeof(buft));
	buft.fn[0] = FN(buft_name);
	buft.fn[1] = FN(alloc_buffer);
	buft.fn[layout->buft_alignment] = FN(buft_alignment);
	buft.fn[layout->buft_is_host] = FN(buft_is_host);
	memcpy((char *)&buft + sizeof(pawl_ggml_fn) * (size_t)layout->n_buft_fns, &device,
		sizeof(device));
}

struct pawl_ggml_buft *
pawl_ggml_buft(void)
{
	return &buft;
}

bool
pawl_ggml_buffer_is_ours(const struct pawl_ggml_buffer *buffer)
{
	pawl_ggml_fn first;

	if (!buffer)
		return false;
	memcpy(&first, buffer, sizeof(first));
	return first == FN(buffer_free);
}

bool
pawl_ggml_buffer_is_foreign_memory(const struct pawl_ggml_buffer *buffer)
{
	return !memory_of(buffer)->block.bytes;
}
