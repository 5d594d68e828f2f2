/*
 * emit-aarch64 COMPILER GRAPH FOLDER: plans the graph in two ways and writes, for each step, an
 * AArch64 object kNN.o, and for all of them the table steps.c, whose functions and data have the
 * prefix kNN_; and memory before and after the reference ran the steps here.
 */
#include "codegen/cpu_compiler.h"
#include "codegen/kernel.h"
#include "codegen/launch.h"
#include "codegen/pack.h"
#include "codegen/ref_step.h"
#include "ir/build_id.h"
#include "ir/fpenv.h"
#include "ir/parse.h"
#include "ir/random.h"
#include "passes/optimize.h"
#include "runtime/literal.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEED = 5 };

struct emit {
	const struct pawl_cpu_compiler_api *compiler;
	const struct pawl_graph *graph;
	const char *folder;
	FILE *table;
	int n_kernels, n_programs;
};

/* A program in one piece of memory. */
struct image {
	const struct pawl_program *program;
	const char *name;
	char *memory;
	int64_t n_bytes, *offsets; /* of each slot */
	int64_t symbols[8];
};

static struct pawl_error err;

static void
check(bool is_good, const char *what)
{
	if (is_good)
		return;
	fprintf(stderr, "emit-aarch64: %s: %s\n", what, err.text);
	exit(99);
}

#define OK(call) check((call) == PAWL_OK, #call)

static FILE *
create(const struct emit *e, const char *name)
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", e->folder, name);
	file = fopen(path, "wb");
	check(file != NULL, path);
	return file;
}

static void
write_file(const struct emit *e, const char *name, const void *bytes, size_t n)
{
	FILE *file = create(e, name);

	check(fwrite(bytes, 1, n, file) == n && !fclose(file), name);
}

static enum pawl_layout
packed(const void *target, const struct pawl_type *type)
{
	(void)target;
	(void)type;
	return PAWL_LAYOUT_TILE16;
}

static bool
is_planned(const struct pawl_slot *slot)
{
	return slot->role == PAWL_SLOT_TEMP || slot->role == PAWL_SLOT_OUTPUT;
}

static bool
is_packed(const struct pawl_slot *slot)
{
	return slot->type.layout == PAWL_LAYOUT_TILE16;
}

static int64_t
slot_bytes(const struct pawl_slot *slot)
{
	if (!is_packed(slot))
		return slot->bytes;
	return pawl_pack_bytes(slot->type.dtype, slot->type.dim[0].base, slot->type.dim[1].base);
}

/* A literal may be lowering's own and of no const. */
static void
fill_literal(const struct pawl_slot *slot, void *at)
{
	struct pawl_storage *storage;

	OK(pawl_literal_new(&slot->type, slot->values, slot->n_values, &storage, &err));
	memcpy(at, storage->bytes, (size_t)storage->n_bytes);
	pawl_storage_unref(storage);
}

static void
fill(const struct emit *e, struct image *image, int32_t i)
{
	const struct pawl_slot *slot = &image->program->slots[i];
	const struct pawl_node *node = pawl_graph_find(e->graph, slot->name);
	char *at = image->memory + image->offsets[i], *rows = at;

	if (slot->role == PAWL_SLOT_LITERAL) {
		fill_literal(slot, at);
		return;
	}
	check(node != NULL, "a slot of no const");
	if (is_packed(slot))
		rows = malloc((size_t)slot->bytes);
	check(rows != NULL, "memory");
	OK(pawl_random_fill_const(e->graph, node, SEED, image->symbols, rows, &err));
	if (is_packed(slot)) {
		int64_t n = slot->type.dim[0].base;

		pawl_pack_tiles(
			slot->type.dtype, n, slot->type.dim[1].base, rows, at, 0, (n + 15) / 16);
		free(rows);
	}
}

static void
image_init(const struct emit *e, struct image *image)
{
	const struct pawl_program *program = image->program;

	check(program->n_symbols <= 8, "symbols");
	for (int32_t i = 0; i < program->n_symbols; i++)
		image->symbols[i] = program->symbols[i].max - 10;
	image->offsets = calloc((size_t)program->n_slots, sizeof(*image->offsets));
	check(image->offsets != NULL, "memory");
	image->n_bytes = (program->scratch_bytes + 63) / 64 * 64;
	for (int32_t i = 0; i < program->n_slots; i++) {
		const struct pawl_slot *slot = &program->slots[i];

		if (is_planned(slot)) {
			image->offsets[i] = slot->offset;
			continue;
		}
		image->offsets[i] = image->n_bytes;
		image->n_bytes += (slot_bytes(slot) + 63) / 64 * 64;
	}
	image->memory = aligned_alloc(64, (size_t)image->n_bytes);
	check(image->memory != NULL, "memory");
	memset(image->memory, 0xff, (size_t)image->n_bytes);
	for (int32_t i = 0; i < program->n_slots; i++)
		if (!is_planned(&program->slots[i]))
			fill(e, image, i);
}

static void
run_reference(struct image *image)
{
	const struct pawl_program *program = image->program;
	void **args = calloc((size_t)program->n_args, sizeof(*args)), *scratch;
	int64_t bytes;
	uint32_t saved;

	check(args != NULL, "memory");
	for (int32_t i = 0; i < program->n_steps; i++) {
		const struct pawl_step *step = &program->steps[i];

		for (int32_t j = 0; j < step->n_args; j++)
			args[step->first_arg + j] = image->memory +
						    image->offsets[step->args[j].slot] +
						    step->args[j].offset;
	}
	OK(pawl_ref_program_check(program, &bytes, &err));
	scratch = aligned_alloc(64, ((size_t)bytes + 64) / 64 * 64);
	check(scratch != NULL, "memory");
	saved = pawl_fpenv_enter();
	OK(pawl_ref_program_run(program, args, image->symbols, scratch, &err));
	pawl_fpenv_leave(saved);
	free(scratch);
	free(args);
}

/* Writes the object of a step and what its line of the table refers to. */
static void
emit_kernel(struct emit *e, const struct image *image, const struct pawl_step *step)
{
	struct pawl_kernel_object object;
	char name[32];

	OK(e->compiler->compile(image->program, step, PAWL_CPU_AARCH64, NULL, &object, &err));
	snprintf(name, sizeof(name), "k%02d.o", e->n_kernels);
	write_file(e, name, object.bytes, object.size);
	e->compiler->object_free(&object);
	fprintf(e->table,
		"extern pawl_kernel_fn k%02d_pawl_phase0, k%02d_pawl_phase1;\n"
		"extern const int64_t k%02d_pawl_scratch_bytes;\n"
		"static const int64_t k%02d_args[] = {",
		e->n_kernels, e->n_kernels, e->n_kernels, e->n_kernels);
	for (int32_t i = 0; i < step->n_args; i++)
		fprintf(e->table, "%" PRId64 ", ",
			image->offsets[step->args[i].slot] + step->args[i].offset);
	fprintf(e->table, "};\n");
	e->n_kernels++;
}

static void
emit_line(const struct emit *e, const struct image *image, const struct pawl_step *step, int number)
{
	struct pawl_segments segments;
	int n_phases = pawl_step_phases(step);

	pawl_step_segments(step, &segments);
	fprintf(e->table, "\t{\"%s\", {k%02d_pawl_phase0", step->name, number);
	if (n_phases > 1)
		fprintf(e->table, ", k%02d_pawl_phase1", number);
	fprintf(e->table, "}, &k%02d_pawl_scratch_bytes, {", number);
	for (int i = 0; i < n_phases; i++)
		fprintf(e->table, "%" PRId64 ", ",
			pawl_step_units(step, &segments, i, image->symbols));
	fprintf(e->table, "}, k%02d_args, %d},\n", number, step->n_args);
}

/* Partial results of attention, which the reference does not have. */
static bool
is_partial(const struct pawl_program *program, int32_t slot)
{
	for (int32_t i = 0; i < program->n_steps; i++) {
		const struct pawl_step *step = &program->steps[i];

		if (step->scratch_arg >= 0 && step->args[step->scratch_arg].slot == slot)
			return true;
	}
	return false;
}

static void
emit_table(struct emit *e, const struct image *image)
{
	const struct pawl_program *program = image->program;
	int first = e->n_kernels;

	for (int32_t i = 0; i < program->n_steps; i++)
		emit_kernel(e, image, &program->steps[i]);
	fprintf(e->table, "static const struct pawl_step_run steps%d[] = {\n", e->n_programs);
	for (int32_t i = 0; i < program->n_steps; i++)
		emit_line(e, image, &program->steps[i], first + i);
	fprintf(e->table, "};\nstatic const struct pawl_byte_range results%d[] = {\n",
		e->n_programs);
	for (int32_t i = 0; i < program->n_slots; i++)
		if (!is_partial(program, i))
			fprintf(e->table, "\t{\"%s\", %" PRId64 ", %" PRId64 "},\n",
				program->slots[i].name ? program->slots[i].name : "-",
				image->offsets[i], slot_bytes(&program->slots[i]));
	fprintf(e->table, "};\nstatic const int64_t symbols%d[] = {", e->n_programs);
	for (int32_t i = 0; i < program->n_symbols; i++)
		fprintf(e->table, "%" PRId64 ", ", image->symbols[i]);
	fprintf(e->table, "0};\n");
	e->n_programs++;
}

static void
emit_program(struct emit *e, struct image *image)
{
	char name[64];

	image_init(e, image);
	snprintf(name, sizeof(name), "%s.before", image->name);
	write_file(e, name, image->memory, (size_t)image->n_bytes);
	emit_table(e, image);
	run_reference(image);
	snprintf(name, sizeof(name), "%s.after", image->name);
	write_file(e, name, image->memory, (size_t)image->n_bytes);
}

static struct pawl_graph *
read_graph(const char *path)
{
	struct pawl_graph *graph;
	FILE *file = fopen(path, "rb");
	char text[65536];
	size_t n;

	check(file != NULL, path);
	n = fread(text, 1, sizeof(text), file);
	fclose(file);
	OK(pawl_parse(text, n, path, &graph, NULL, &err));
	return graph;
}

static const struct pawl_cpu_compiler_api *
open_compiler(const char *path)
{
	void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	pawl_cpu_compiler_query_fn *query;

	check(module != NULL, path);
	query = (pawl_cpu_compiler_query_fn *)(uintptr_t)dlsym(module, PAWL_CPU_COMPILER_QUERY);
	check(query && !strcmp(query()->build_id, pawl_build_id), path);
	return query();
}

int
main(int argc, char **argv)
{
	static const char *const names[] = {"packed-a16", "rows-a8"};
	struct image images[2] = {{.name = names[0]}, {.name = names[1]}};
	struct pawl_program *programs[2];
	struct pawl_graph *graph;
	struct emit e = {0};

	check(argc == 4, "usage: emit-aarch64 COMPILER GRAPH FOLDER");
	e.folder = argv[3];
	e.compiler = open_compiler(argv[1]);
	e.graph = graph = read_graph(argv[2]);
	e.table = create(&e, "steps.c");
	fprintf(e.table, "#include \"tests/aarch64/step_table.h\"\n");
	for (int i = 0; i < 2; i++) {
		const struct pawl_optimize_options options = {
			.facts = {.max_prologue_rows = 4,
				.precision = i ? PAWL_PRECISION_A8 : PAWL_PRECISION_A16,
				.weight_layout = i ? NULL : packed},
			.run = {.bisect = -1},
			.no_reuse = true};

		OK(pawl_optimize(graph, &options, &programs[i], NULL, &err));
		images[i].program = programs[i];
		emit_program(&e, &images[i]);
	}
	fprintf(e.table, "const struct pawl_program_run pawl_program_runs[] = {\n");
	for (int i = 0; i < 2; i++) {
		fprintf(e.table,
			"\t{\"%s\", %" PRId64
			", symbols%d, steps%d, sizeof(steps%d) / sizeof(*steps%d),\n"
			"\t\tresults%d, sizeof(results%d) / sizeof(*results%d)},\n",
			images[i].name, images[i].n_bytes, i, i, i, i, i, i, i);
		free(images[i].memory);
		free(images[i].offsets);
		pawl_program_free(programs[i]);
	}
	fprintf(e.table, "};\nconst int pawl_n_program_runs = 2;\n");
	check(!fclose(e.table), "steps.c");
	pawl_graph_free(graph);
	return 0;
}
