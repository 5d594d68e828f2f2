#include "models/gguf.h"

#include <stdlib.h>
#include <string.h>

#include "models/gguf_read.h"

enum { NAME_SHOWN = 256 }; /* a longer path is shown by its end, so that the reason has room */

static enum pawl_status
read_header(struct pawl_gguf_cursor *cursor, uint64_t *n_tensors, uint64_t *n_values)
{
	uint32_t magic, version;
	enum pawl_status status = pawl_gguf_read_u32(cursor, "magic", &magic);

	if (!status && memcmp(&magic, "GGUF", sizeof(magic)))
		return pawl_gguf_bad(cursor, 0, "magic", "not a GGUF file: begins with 0x%08x",
			__builtin_bswap32(magic));
	if (!status)
		status = pawl_gguf_read_u32(cursor, "version", &version);
	if (status)
		return status;
	if (version != 2 && version != 3) {
		uint32_t swapped = __builtin_bswap32(version);

		return pawl_gguf_bad(cursor, 4, "version", "%u is not read (2 and 3 are)%s",
			version, swapped == 2 || swapped == 3 ? "; a big-endian file?" : "");
	}
	cursor->gguf->version = version;
	status = pawl_gguf_read_u64(cursor, "tensor count", n_tensors);
	if (!status)
		status = pawl_gguf_read_u64(cursor, "metadata count", n_values);
	if (status)
		return status;
	if (*n_tensors > pawl_gguf_left(cursor) / PAWL_GGUF_MIN_TENSOR)
		return pawl_gguf_bad(cursor, 8, "tensor count", "%llu do not fit in %zu bytes",
			(unsigned long long)*n_tensors, pawl_gguf_left(cursor));
	if (*n_values > pawl_gguf_left(cursor) / PAWL_GGUF_MIN_VALUE)
		return pawl_gguf_bad(cursor, 16, "metadata count", "%llu do not fit in %zu bytes",
			(unsigned long long)*n_values, pawl_gguf_left(cursor));
	return PAWL_OK;
}

static enum pawl_status
read_alignment(struct pawl_gguf_cursor *cursor)
{
	static const char key[] = "general.alignment";
	struct pawl_gguf *gguf = cursor->gguf;
	const struct pawl_gguf_value *value = pawl_gguf_find(gguf, key);
	uint32_t alignment;

	gguf->alignment = 32;
	if (!value)
		return PAWL_OK;
	if (value->type != PAWL_GGUF_U32)
		return pawl_gguf_refuse(gguf, key, cursor->err, "wanted u32, found %s",
			pawl_gguf_type_name(value->type));
	memcpy(&alignment, value->data, sizeof(alignment));
	if (!alignment || alignment % 8 || alignment > 1u << 20)
		return pawl_gguf_refuse(gguf, key, cursor->err,
			"%u is not a non-zero multiple of 8 up to 1048576", alignment);
	gguf->alignment = alignment;
	return PAWL_OK;
}

static enum pawl_status
read_file(struct pawl_gguf *gguf, struct pawl_error *err)
{
	struct pawl_gguf_cursor cursor = {.gguf = gguf, .err = err};
	uint64_t n_tensors, n_values;
	enum pawl_status status = read_header(&cursor, &n_tensors, &n_values);

	if (!status)
		status = pawl_gguf_read_metadata(&cursor, n_values);
	if (!status)
		status = read_alignment(&cursor);
	if (!status)
		status = pawl_gguf_read_tensors(&cursor, n_tensors);
	return status;
}

static struct pawl_gguf *
new_gguf(const char *name)
{
	struct pawl_gguf *gguf = calloc(1, sizeof(*gguf));
	size_t n = strlen(name);

	if (!gguf)
		return NULL;
	gguf->name = strdup(n > NAME_SHOWN ? name + n - NAME_SHOWN : name);
	if (!gguf->name) {
		free(gguf);
		return NULL;
	}
	return gguf;
}

enum pawl_status
pawl_gguf_open(const char *path, struct pawl_gguf **out, struct pawl_error *err)
{
	struct pawl_gguf *gguf = new_gguf(path);
	enum pawl_status status;

	if (!gguf)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "out of memory opening %s", path);
	status = pawl_file_map_init(&gguf->map, path, err);
	if (!status) {
		gguf->bytes = gguf->map.bytes;
		gguf->n_bytes = gguf->map.n_bytes;
		status = read_file(gguf, err);
	}
	if (status) {
		pawl_gguf_free(gguf);
		return status;
	}
	*out = gguf;
	return PAWL_OK;
}

enum pawl_status
pawl_gguf_parse(const void *bytes, size_t n_bytes, const char *name, struct pawl_gguf **out,
	struct pawl_error *err)
{
	struct pawl_gguf *gguf = new_gguf(name);
	enum pawl_status status;

	if (!gguf)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "out of memory reading %s", name);
	gguf->bytes = bytes;
	gguf->n_bytes = n_bytes;
	status = read_file(gguf, err);
	if (status) {
		pawl_gguf_free(gguf);
		return status;
	}
	*out = gguf;
	return PAWL_OK;
}

void
pawl_gguf_free(struct pawl_gguf *gguf)
{
	if (!gguf)
		return;
	pawl_file_map_release(&gguf->map);
	free(gguf->values_by_key);
	free(gguf->tensors_by_name);
	free(gguf->values);
	free(gguf->tensors);
	free(gguf->name);
	free(gguf);
}

const struct pawl_gguf_value *
pawl_gguf_find(const struct pawl_gguf *gguf, const char *key)
{
	struct pawl_gguf_string wanted = {key, strlen(key)};
	size_t low = 0, high = gguf->n_values;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		struct pawl_gguf_value *value = gguf->values_by_key[middle];
		int order = pawl_gguf_compare_strings(wanted, value->key);

		if (!order)
			return value;
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

struct pawl_gguf_tensor *
pawl_gguf_find_tensor(const struct pawl_gguf *gguf, const char *name)
{
	struct pawl_gguf_string wanted = {name, strlen(name)};
	size_t low = 0, high = gguf->n_tensors;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		struct pawl_gguf_tensor *tensor = gguf->tensors_by_name[middle];
		int order = pawl_gguf_compare_strings(wanted, tensor->name);

		if (!order)
			return tensor;
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

enum pawl_status
pawl_gguf_need_tensor(const struct pawl_gguf *gguf, const char *name,
	const struct pawl_gguf_tensor **out, struct pawl_error *err)
{
	struct pawl_gguf_tensor *tensor = pawl_gguf_find_tensor(gguf, name);

	if (!tensor)
		return pawl_fail(err, PAWL_INVALID_FILE, "%s: there is no tensor %s among its %zu",
			gguf->name, name, gguf->n_tensors);
	tensor->used = true;
	*out = tensor;
	return PAWL_OK;
}
