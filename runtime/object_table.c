#include "runtime/object_table.h"

#include "runtime/memory.h"

#include <inttypes.h>
#include <string.h>

enum { FIRST_ITEMS = 8 };

enum pawl_status
pawl_object_table_reserve(struct pawl_object_table *table, struct pawl_error *err)
{
	int64_t capacity = table->capacity ? 2 * table->capacity : FIRST_ITEMS;
	void **items;

	if (table->before + table->n < table->capacity)
		return PAWL_OK;
	if (table->before > table->capacity / 2) {
		items = table->items - table->before;
		memmove(items, table->items, (size_t)table->n * sizeof(*items));
		table->items = items;
		table->before = 0;
		return PAWL_OK;
	}
	items = pawl_memory_zalloc((size_t)capacity, sizeof(*items));
	if (!items)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY,
			"no memory for a list of %" PRId64 " objects", capacity);
	if (table->n)
		memcpy(items, table->items, (size_t)table->n * sizeof(*items));
	pawl_object_table_release(table);
	table->items = items;
	table->before = 0;
	table->capacity = capacity;
	return PAWL_OK;
}

void
pawl_object_table_release(struct pawl_object_table *table)
{
	if (table->items)
		pawl_memory_free(table->items - table->before);
}

uint64_t
pawl_object_table_add(struct pawl_object_table *table, void *item, uint64_t id)
{
	memcpy(item, &id, sizeof(id));
	table->items[table->n++] = item;
	return id;
}

static uint64_t
id_of(const void *item)
{
	uint64_t id;

	memcpy(&id, item, sizeof(id));
	return id;
}

/* The place of the first item whose id is not below. */
static int64_t
place_of(const struct pawl_object_table *table, uint64_t id)
{
	int64_t low = 0, high = table->n;

	while (low < high) {
		int64_t middle = low + (high - low) / 2;

		if (id_of(table->items[middle]) < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void *
pawl_object_table_find(const struct pawl_object_table *table, uint64_t id)
{
	int64_t i = place_of(table, id);

	return i < table->n && id_of(table->items[i]) == id ? table->items[i] : NULL;
}

void
pawl_object_table_remove(struct pawl_object_table *table, const void *item)
{
	int64_t i = place_of(table, id_of(item)), after = --table->n - i;
	void **items = table->items;

	if (i < after) {
		memmove(items + 1, items, (size_t)i * sizeof(*items));
		table->items++;
		table->before++;
	} else {
		memmove(items + i, items + i + 1, (size_t)after * sizeof(*items));
	}
}
