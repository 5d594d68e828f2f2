#include "tests/cuda/memory.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/pack.h"
#include "codegen/tensor.h"
#include "ir/random.h"

enum { POISON = 0xff, ALIGNMENT = 64 };

static struct pawl_error err;

#define OK(call) ck_assert_msg((call) == PAWL_OK, "%s", err.text)

static bool
is_in_scratch(const struct pawl_slot *slot)
{
	return slot->role == PAWL_SLOT_TEMP || slot->role == PAWL_SLOT_OUTPUT;
}

/* With at least a byte that belongs to nobody. */
static int64_t
padded(int64_t bytes)
{
	return (bytes / ALIGNMENT + 1) * ALIGNMENT;
}

static char *
make(int64_t bytes)
{
	size_t n = (size_t)padded(bytes);
	char *memory = aligned_alloc(ALIGNMENT, n);

	ck_assert_ptr_nonnull(memory);
	memset(memory, POISON, n);
	return memory;
}

static void
check_padding(const char *memory, int64_t bytes, const char *name)
{
	int64_t i;

	for (i = bytes; i < padded(bytes); i++)
		ck_assert_msg((unsigned char)memory[i] == POISON,
			"byte %d of %s, beyond its end, was written", (int)i, name);
}

static void
fill_literal(const struct pawl_slot *slot, char *memory)
{
	int64_t n = pawl_type_elems(&slot->type), bytes, i;
	struct pawl_tensor t;

	OK(pawl_tensor_init(&t, slot->type.dtype, PAWL_LAYOUT_ROWS, false, 1, &n, &bytes, &err));
	t.data = memory;
	for (i = 0; i < n; i++) {
		double value = slot->values[slot->n_values > 1 ? i : 0];

		if (pawl_dtype_is_float(t.dtype))
			pawl_tensor_store_f64(&t, 0, i, 1, &value);
		else
			pawl_tensor_store_i64(&t, i, (int64_t)value);
	}
}

static bool
is_packed(const struct pawl_slot *slot)
{
	return slot->type.layout == PAWL_LAYOUT_TILE16;
}

static int64_t
bytes_of(const struct pawl_slot *slot)
{
	const struct pawl_dim *dim = slot->type.dim;

	return is_packed(slot) ? pawl_pack_bytes(slot->type.dtype, dim[0].base, dim[1].base)
			       : slot->bytes;
}

/* Weights are made in rows, as graphs have them. */
static void
fill_packed(const struct pawl_slot *slot, const struct pawl_graph *graph,
	const struct pawl_node *node, uint64_t seed, const int64_t *symbols, char *memory)
{
	int64_t n = slot->type.dim[0].base;
	char *rows = make(slot->bytes);

	OK(pawl_random_fill_const(graph, node, seed, symbols, rows, &err));
	pawl_pack_tiles(slot->type.dtype, n, slot->type.dim[1].base, rows, memory, 0,
		(n + PAWL_TILE_ROWS - 1) / PAWL_TILE_ROWS);
	free(rows);
}

static void
allocate(struct pawl_cuda_memory *m, const struct pawl_program *program)
{
	int32_t i, j;

	m->program = program;
	m->scratch = make(program->scratch_bytes);
	m->slots = calloc((size_t)program->n_slots + 1, sizeof(*m->slots));
	m->args = calloc((size_t)program->n_args + 1, sizeof(*m->args));
	ck_assert(m->slots && m->args);
	for (i = 0; i < program->n_slots; i++) {
		const struct pawl_slot *slot = &program->slots[i];

		m->slots[i] = is_in_scratch(slot) ? m->scratch + slot->offset : make(bytes_of(slot));
	}
	for (i = 0; i < program->n_steps; i++) {
		const struct pawl_step *step = &program->steps[i];

		for (j = 0; j < step->n_args; j++)
			m->args[step->first_arg + j] =
				m->slots[step->args[j].slot] + step->args[j].offset;
	}
}

void
pawl_cuda_memory_init(struct pawl_cuda_memory *m, const struct pawl_graph *graph,
	const struct pawl_program *program, uint64_t seed, const int64_t *symbols)
{
	int32_t i;

	allocate(m, program);
	for (i = 0; i < program->n_slots; i++) {
		const struct pawl_slot *slot = &program->slots[i];
		const struct pawl_node *node;

		if (is_in_scratch(slot))
			continue;
		if (slot->role == PAWL_SLOT_LITERAL) {
			fill_literal(slot, m->slots[i]);
			continue;
		}
		node = pawl_graph_find(graph, slot->name);
		ck_assert_ptr_nonnull(node);
		if (is_packed(slot))
			fill_packed(slot, graph, node, seed, symbols, m->slots[i]);
		else
			OK(pawl_random_fill_const(graph, node, seed, symbols, m->slots[i], &err));
	}
}

void
pawl_cuda_memory_copy(struct pawl_cuda_memory *m, const struct pawl_cuda_memory *from)
{
	int32_t i;

	allocate(m, from->program);
	for (i = 0; i < from->program->n_slots; i++) {
		const struct pawl_slot *slot = &from->program->slots[i];

		if (!is_in_scratch(slot))
			memcpy(m->slots[i], from->slots[i], (size_t)bytes_of(slot));
	}
}

static void
check_gaps(const struct pawl_cuda_memory *m)
{
	int64_t n = m->program->scratch_bytes, i;
	char *is_used = calloc((size_t)n + 1, 1);
	int32_t s;

	ck_assert_ptr_nonnull(is_used);
	for (s = 0; s < m->program->n_slots; s++) {
		const struct pawl_slot *slot = &m->program->slots[s];

		if (is_in_scratch(slot))
			memset(is_used + slot->offset, 1, (size_t)slot->bytes);
	}
	for (i = 0; i < n; i++)
		ck_assert_msg(is_used[i] || (unsigned char)m->scratch[i] == POISON,
			"byte %d of scratch, which is no slot's, was written", (int)i);
	free(is_used);
}

void
pawl_cuda_memory_release(struct pawl_cuda_memory *m)
{
	int32_t i;

	check_gaps(m);
	check_padding(m->scratch, m->program->scratch_bytes, "scratch");
	for (i = 0; i < m->program->n_slots; i++) {
		const struct pawl_slot *slot = &m->program->slots[i];

		if (is_in_scratch(slot))
			continue;
		check_padding(m->slots[i], bytes_of(slot), slot->name);
		free(m->slots[i]);
	}
	free(m->slots);
	free(m->args);
	free(m->scratch);
}

void *
pawl_cuda_memory_find(const struct pawl_cuda_memory *m, const char *slot)
{
	int32_t i = pawl_program_find_slot(m->program, slot);

	ck_assert_msg(i >= 0, "no slot %s", slot);
	return m->slots[i];
}
