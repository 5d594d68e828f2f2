/* The slots of a program: everything that owns storage in the graph. */
#ifndef PAWL_PASSES_LOWER_SLOTS_H
#define PAWL_PASSES_LOWER_SLOTS_H

#include "ir/graph.h"
#include "passes/step.h"

/*
 * Fills program->slots (with room for one more slot per node) and program->outputs; slot_of, one
 * entry per node id, becomes the slot that its value lies in (its own, or that of what it views or
 * writes to), else -1.
 */
enum pawl_status pawl_lower_slots(const struct pawl_graph *graph, struct pawl_program *program,
	int32_t *slot_of, struct pawl_error *err);

/* Index of a new slot of the given type; there must be room. */
int32_t pawl_lower_add_slot(const struct pawl_graph *graph, struct pawl_program *program,
	enum pawl_slot_role role, const char *name, const struct pawl_type *type);

/*
 * The literal that holds `pitch`, the elements of a plane of that type (i64); -1 when memory is exhausted.
 */
int32_t pawl_lower_pitch_slot(const struct pawl_graph *graph, struct pawl_program *program,
	const struct pawl_type *type, int64_t pitch);

/* The slots, which lie elsewhere so far, as part of the program. */
enum pawl_status pawl_lower_keep_slots(struct pawl_program *program, struct pawl_error *err);

#endif
