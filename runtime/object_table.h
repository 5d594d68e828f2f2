/* Objects found by their identities, which are given to them in ascending order. */
#ifndef PAWL_RUNTIME_OBJECT_TABLE_H
#define PAWL_RUNTIME_OBJECT_TABLE_H

#include "ir/status.h"

#include <stdint.h>

/* Each starts with its id, a uint64_t; ascending.  Those near an end are removed the fastest. */
struct pawl_object_table {
	void **items;
	int64_t n, capacity;
	int64_t before; /* places in front of the items that are free */
};

/* Frees no item. */
void pawl_object_table_release(struct pawl_object_table *table);
/* Room for one more; PAWL_OUT_OF_MEMORY. */
enum pawl_status pawl_object_table_reserve(struct pawl_object_table *table, struct pawl_error *err);
/* After a reserve.  Gives the item that id, which is above all before it, and returns it. */
uint64_t pawl_object_table_add(struct pawl_object_table *table, void *item, uint64_t id);
/* NULL when it is not there. */
void *pawl_object_table_find(const struct pawl_object_table *table, uint64_t id);
/* Does not free the item. */
void pawl_object_table_remove(struct pawl_object_table *table, const void *item);

#endif
