#include "models/gguf_read.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_NAME = 255 };

/* Types of the format without a row in ir/dtypes.def, to tell "not supported" from "malformed". */
static const struct {
	uint32_t number;
	const char *name;
} undecoded[] = {
	{9, "q8_1"},
	{10, "q2_k"},
	{11, "q3_k"},
	{15, "q8_k"},
	{16, "iq2_xxs"},
	{17, "iq2_xs"},
	{18, "iq3_xxs"},
	{19, "iq1_s"},
	{20, "iq4_nl"},
	{21, "iq3_s"},
	{22, "iq2_s"},
	{23, "iq4_xs"},
	{25, "i16"},
	{28, "f64"},
	{29, "iq1_m"},
	{34, "tq1_0"},
	{35, "tq2_0"},
	{39, "mxfp4"},
};

static enum pawl_status
refuse_type(const struct pawl_gguf_cursor *cursor, size_t at, uint32_t number)
{
	size_t i;

	for (i = 0; i < sizeof(undecoded) / sizeof(undecoded[0]); i++) {
		if (undecoded[i].number == number)
			return pawl_fail(cursor->err, PAWL_UNSUPPORTED,
				"%s: byte %zu: tensor %zu (%.*s): type: %s (%u) is not decoded",
				cursor->gguf->name, at, cursor->index, (int)cursor->record.n,
				cursor->record.text, undecoded[i].name, number);
	}
	return pawl_gguf_bad(cursor, at, "type", "there is no tensor type %u", number);
}

static enum pawl_status
read_dims(struct pawl_gguf_cursor *cursor, struct pawl_gguf_tensor *tensor)
{
	size_t at = cursor->at;
	uint32_t rank;
	enum pawl_status status = pawl_gguf_read_u32(cursor, "rank", &rank);
	int i;

	if (status)
		return status;
	if (!rank || rank > PAWL_GGUF_MAX_RANK)
		return pawl_gguf_bad(
			cursor, at, "rank", "%u is not 1..%d", rank, PAWL_GGUF_MAX_RANK);
	tensor->rank = (int)rank;
	for (i = 0; i < PAWL_GGUF_MAX_RANK; i++)
		tensor->dims[i] = 1;
	for (i = 0; i < tensor->rank; i++) {
		uint64_t dim;

		at = cursor->at;
		status = pawl_gguf_read_u64(cursor, "dims", &dim);
		if (status)
			return status;
		if (!dim || dim > INT64_MAX)
			return pawl_gguf_bad(
				cursor, at, "dims", "dim %d is %llu", i, (unsigned long long)dim);
		tensor->dims[i] = (int64_t)dim;
	}
	return PAWL_OK;
}

static enum pawl_status
measure(struct pawl_gguf_cursor *cursor, size_t dims_at, struct pawl_gguf_tensor *tensor)
{
	const struct pawl_dtype_info *info = pawl_dtype_info(tensor->dtype);
	int64_t n = 1;
	int i;

	if (tensor->dims[0] % info->block)
		return pawl_gguf_bad(cursor, dims_at, "dims",
			"dim 0 is %lld, not a multiple of the block of %d that %s has",
			(long long)tensor->dims[0], info->block, info->name);
	for (i = 0; i < tensor->rank; i++) {
		if (__builtin_mul_overflow(n, tensor->dims[i], &n))
			return pawl_gguf_bad(
				cursor, dims_at, "dims", "their product overflows at dim %d", i);
	}
	tensor->n_elements = n;
	if (__builtin_mul_overflow(n / info->block, info->block_bytes, &tensor->n_bytes))
		return pawl_gguf_bad(cursor, dims_at, "dims",
			"the bytes of %lld elements of %s overflow", (long long)n, info->name);
	return PAWL_OK;
}

/* All of a record but the data's address, which needs the end of the section. */
static enum pawl_status
read_tensor(struct pawl_gguf_cursor *cursor, struct pawl_gguf_tensor *tensor, uint64_t *offset)
{
	enum pawl_status status;
	size_t dims_at, type_at;
	uint32_t type;

	memset(tensor, 0, sizeof(*tensor));
	status = pawl_gguf_read_name(cursor, "name", MAX_NAME, &tensor->name);
	dims_at = cursor->at + sizeof(uint32_t);
	if (!status)
		status = read_dims(cursor, tensor);
	type_at = cursor->at;
	if (!status)
		status = pawl_gguf_read_u32(cursor, "type", &type);
	if (status)
		return status;
	if (!pawl_dtype_from_ggml(type, &tensor->dtype))
		return refuse_type(cursor, type_at, type);
	status = measure(cursor, dims_at, tensor);
	if (!status)
		status = pawl_gguf_read_u64(cursor, "offset", offset);
	if (!status && *offset % cursor->gguf->alignment)
		return pawl_gguf_bad(cursor, cursor->at - sizeof(*offset), "offset",
			"%llu is not a multiple of the alignment %u", (unsigned long long)*offset,
			cursor->gguf->alignment);
	return status;
}

/* Byte of the file where the offset in a tensor's record stands. */
static size_t
offset_at(const struct pawl_gguf *gguf, const struct pawl_gguf_tensor *tensor)
{
	size_t name_end =
		(size_t)((const unsigned char *)tensor->name.text - gguf->bytes) + tensor->name.n;

	return name_end + 4 + 8 * (size_t)tensor->rank + 4;
}

static enum pawl_status
bad_offset(struct pawl_gguf_cursor *cursor, const struct pawl_gguf_tensor *tensor,
	const char *format, unsigned long long a, unsigned long long b)
{
	cursor->index = (size_t)(tensor - cursor->gguf->tensors);
	cursor->record = tensor->name;
	return pawl_gguf_bad(cursor, offset_at(cursor->gguf, tensor), "offset", format, a, b);
}

/* Gives the tensors their data, which begins at the next multiple of the alignment. */
static enum pawl_status
place(struct pawl_gguf_cursor *cursor, const uint64_t *offsets)
{
	struct pawl_gguf *gguf = cursor->gguf;
	size_t padding = (gguf->alignment - cursor->at % gguf->alignment) % gguf->alignment;
	size_t left = pawl_gguf_left(cursor), i;

	left = left > padding ? left - padding : 0;
	for (i = 0; i < gguf->n_tensors; i++) {
		struct pawl_gguf_tensor *tensor = &gguf->tensors[i];

		if (offsets[i] > left || tensor->n_bytes > left - offsets[i])
			return bad_offset(cursor, tensor,
				"the data of %llu bytes ends beyond the file: %llu are there",
				tensor->n_bytes, offsets[i] > left ? 0 : left - offsets[i]);
		tensor->data = gguf->bytes + cursor->at + padding + offsets[i];
	}
	return PAWL_OK;
}

static int
by_data(const void *a, const void *b)
{
	const struct pawl_gguf_tensor *x = *(struct pawl_gguf_tensor *const *)a;
	const struct pawl_gguf_tensor *y = *(struct pawl_gguf_tensor *const *)b;

	if (x->data != y->data)
		return (const char *)x->data < (const char *)y->data ? -1 : 1;
	return x < y ? -1 : x > y;
}

static int
by_name(const void *a, const void *b)
{
	const struct pawl_gguf_tensor *x = *(struct pawl_gguf_tensor *const *)a;
	const struct pawl_gguf_tensor *y = *(struct pawl_gguf_tensor *const *)b;
	int order = pawl_gguf_compare_strings(x->name, y->name);

	return order ? order : x < y ? -1 : x > y;
}

/* In order of their data, each tensor must begin where the padding after the last one ends. */
static enum pawl_status
check_cover(struct pawl_gguf_cursor *cursor, struct pawl_gguf_tensor **sorted)
{
	struct pawl_gguf *gguf = cursor->gguf;
	const unsigned char *start = (const unsigned char *)gguf->bytes + cursor->at;
	uint64_t alignment = gguf->alignment;
	uint64_t end = (uint64_t)(start - gguf->bytes), next;
	size_t i;

	for (i = 0; i < gguf->n_tensors; i++) {
		struct pawl_gguf_tensor *tensor = sorted[i];
		uint64_t begin = (uint64_t)((const unsigned char *)tensor->data - gguf->bytes);

		next = (end + alignment - 1) / alignment * alignment;
		if (begin < end)
			return bad_offset(cursor, tensor,
				"the data overlaps that of tensor %llu by %llu bytes",
				(unsigned long long)(sorted[i - 1] - gguf->tensors), end - begin);
		if (begin > next)
			return bad_offset(cursor, tensor,
				"the data begins at byte %llu of the file, due is %llu", begin,
				next);
		end = begin + tensor->n_bytes;
	}
	return PAWL_OK;
}

static enum pawl_status
index_tensors(struct pawl_gguf_cursor *cursor)
{
	struct pawl_gguf *gguf = cursor->gguf;
	struct pawl_gguf_tensor **sorted;
	enum pawl_status status;
	size_t i;

	sorted = calloc(gguf->n_tensors, sizeof(struct pawl_gguf_tensor *));
	if (!sorted)
		return pawl_fail(
			cursor->err, PAWL_OUT_OF_MEMORY, "out of memory reading %s", gguf->name);
	gguf->tensors_by_name = sorted;
	for (i = 0; i < gguf->n_tensors; i++)
		sorted[i] = &gguf->tensors[i];
	qsort(sorted, gguf->n_tensors, sizeof(struct pawl_gguf_tensor *), by_name);
	for (i = 1; i < gguf->n_tensors; i++) {
		if (pawl_gguf_compare_strings(sorted[i - 1]->name, sorted[i]->name))
			continue;
		cursor->index = (size_t)(sorted[i] - gguf->tensors);
		cursor->record = sorted[i]->name;
		return pawl_gguf_bad(cursor,
			(size_t)((const unsigned char *)sorted[i]->name.text - gguf->bytes), "name",
			"is the same as that of tensor %td", sorted[i - 1] - gguf->tensors);
	}
	qsort(sorted, gguf->n_tensors, sizeof(struct pawl_gguf_tensor *), by_data);
	status = check_cover(cursor, sorted);
	qsort(sorted, gguf->n_tensors, sizeof(struct pawl_gguf_tensor *), by_name);
	return status;
}

/* offsets: array of the tensors' offsets, grown along and owned by the caller. */
static enum pawl_status
read_records(struct pawl_gguf_cursor *cursor, uint64_t n, uint64_t **offsets)
{
	struct pawl_gguf *gguf = cursor->gguf;
	size_t capacity = 0, offsets_capacity = 0;

	for (cursor->index = 0; cursor->index < n; cursor->index++) {
		struct pawl_gguf_tensor *grown = pawl_gguf_grow(
			gguf->tensors, gguf->n_tensors, &capacity, sizeof(*gguf->tensors));
		uint64_t *more;
		enum pawl_status status;

		if (grown)
			gguf->tensors = grown;
		more = pawl_gguf_grow(
			*offsets, gguf->n_tensors, &offsets_capacity, sizeof(**offsets));
		if (more)
			*offsets = more;
		if (!grown || !more)
			return pawl_fail(cursor->err, PAWL_OUT_OF_MEMORY,
				"out of memory reading %s", gguf->name);
		cursor->record.n = 0;
		status = read_tensor(
			cursor, &gguf->tensors[gguf->n_tensors], &(*offsets)[gguf->n_tensors]);
		if (status)
			return status;
		gguf->n_tensors++;
	}
	return PAWL_OK;
}

enum pawl_status
pawl_gguf_read_tensors(struct pawl_gguf_cursor *cursor, uint64_t n)
{
	uint64_t *offsets = NULL;
	enum pawl_status status;

	if (!n)
		return PAWL_OK;
	cursor->section = "tensor";
	status = read_records(cursor, n, &offsets);
	if (!status)
		status = place(cursor, offsets);
	free(offsets);
	if (!status)
		status = index_tensors(cursor);
	return status;
}
