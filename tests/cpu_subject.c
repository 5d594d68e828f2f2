#include "tests/cpu_subject.h"

#include "codegen/pack.h"
#include "codegen/ref_step.h"
#include "codegen/tensor.h"
#include "ir/debug.h"
#include "ir/decode.h"
#include "ir/eval.h"
#include "ir/fpenv.h"
#include "ir/parse.h"
#include "ir/random.h"
#include "passes/optimize.h"
#include "runtime/pool.h"
#include "runtime/target_load.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define POISON 0xff
/*
 * Every buffer ends, but for the bytes that fill it up to 64, at a page that cannot be touched;
 * those bytes must stay as they are.
 */
#define FILLING 0x5a
#define PAGE 4096

static struct pawl_error err;

#define OK(call) ck_assert_msg((call) == PAWL_OK, "%s", err.text)

/* A program with memory of its own for everything. */
struct instance {
	struct pawl_program *program;
	char **slots;
	size_t *bytes; /* of each slot */
	void **args;
	char *scratch;
};

const struct pawl_target_api *
pawl_cpu_target(void)
{
	const struct pawl_target_api *api;

	OK(pawl_target_load("cpu", &api, &err));
	return api;
}

void
pawl_cpu_subject_begin(struct pawl_cpu_subject *s, const char *statements, int64_t symbol)
{
	char text[16384];
	int i;

	*s = (struct pawl_cpu_subject){.seed = 1, .max_prologue_rows = 16};
	for (i = 0; i < PAWL_CPU_SYMBOLS; i++)
		s->symbols[i] = symbol;
	ck_assert_int_lt(
		snprintf(text, sizeof(text), "pawl 1\ngraph @t stage values {\n%s}\n", statements),
		(int)sizeof(text));
	OK(pawl_parse(text, strlen(text), "test", &s->graph, NULL, &err));
}

void
pawl_cpu_subject_end(struct pawl_cpu_subject *s)
{
	pawl_graph_free(s->graph);
}

static size_t
filled_up(size_t bytes, size_t unit)
{
	return (bytes + unit - 1) / unit * unit;
}

static char *
make(size_t bytes, int fill)
{
	size_t whole = filled_up(bytes, 64), pages = filled_up(whole, PAGE);
	char *map, *memory;

	map = mmap(NULL, pages + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert(map != MAP_FAILED && !mprotect(map + pages, PAGE, PROT_NONE));
	memory = map + pages - whole;
	memset(memory, fill, bytes);
	memset(memory + bytes, FILLING, whole - bytes);
	return memory;
}

static void
drop(char *memory, size_t bytes, const char *name)
{
	size_t whole = filled_up(bytes, 64), pages = filled_up(whole, PAGE), i;

	for (i = bytes; i < whole; i++)
		ck_assert_msg(
			memory[i] == FILLING, "byte %zu behind %s was written", i - bytes, name);
	munmap(memory + whole - pages, pages + PAGE);
}

/* The type with its symbols replaced. */
static struct pawl_type
resolve(const struct pawl_type *type, const int64_t *symbols)
{
	struct pawl_type out = *type;
	int i;

	for (i = 0; i < type->rank; i++) {
		if (type->dim[i].sym >= 0)
			out.dim[i] =
				pawl_dim_const(type->dim[i].base +
					       type->dim[i].factor * symbols[type->dim[i].sym]);
	}
	return out;
}

/* The bytes of a const of the graph, in rows (or k16); alike for every instance. */
static char *
const_bytes(const struct pawl_cpu_subject *s, const char *name, size_t bytes)
{
	const struct pawl_node *node = pawl_graph_find(s->graph, name);
	char *memory = make(bytes, 0);

	ck_assert_ptr_nonnull(node);
	OK(pawl_random_fill_const(s->graph, node, s->seed, s->symbols, memory, &err));
	if (s->adjust)
		s->adjust(name, memory);
	return memory;
}

/* Takes rows; *bytes is their size first, that of the packed form then. */
static char *
packed(const struct pawl_type *type, char *rows, size_t *bytes)
{
	int64_t n = type->dim[0].base, k = type->dim[1].base;
	size_t row_bytes = *bytes;
	char *memory;

	*bytes = (size_t)pawl_pack_bytes(type->dtype, n, k);
	memory = make(*bytes, POISON);
	pawl_pack_tiles(type->dtype, n, k, rows, memory, 0, (n + 15) / 16);
	drop(rows, row_bytes, "rows");
	return memory;
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

static void
fill_slot(const struct pawl_cpu_subject *s, struct instance *in, int32_t i)
{
	const struct pawl_slot *slot = &in->program->slots[i];

	in->bytes[i] = (size_t)slot->bytes;
	switch (slot->role) {
	case PAWL_SLOT_WEIGHT:
	case PAWL_SLOT_KV:
	case PAWL_SLOT_DATA:
		in->slots[i] = const_bytes(s, slot->name, in->bytes[i]);
		if (slot->type.layout == PAWL_LAYOUT_TILE16)
			in->slots[i] = packed(&slot->type, in->slots[i], &in->bytes[i]);
		break;
	case PAWL_SLOT_LITERAL:
		in->slots[i] = make(in->bytes[i], 0);
		fill_literal(slot, in->slots[i]);
		break;
	case PAWL_SLOT_TEMP:
	case PAWL_SLOT_OUTPUT:
		in->slots[i] = in->scratch + slot->offset;
		break;
	case PAWL_N_SLOT_ROLES:
		break;
	}
}

static bool
owns_memory(const struct pawl_slot *slot)
{
	return slot->role != PAWL_SLOT_TEMP && slot->role != PAWL_SLOT_OUTPUT;
}

static void
init_instance(const struct pawl_cpu_subject *s, struct pawl_program *program, struct instance *in)
{
	int32_t i, j;

	*in = (struct instance){.program = program};
	in->scratch = make((size_t)program->scratch_bytes, POISON);
	in->slots = calloc((size_t)program->n_slots + 1, sizeof(*in->slots));
	in->bytes = calloc((size_t)program->n_slots + 1, sizeof(*in->bytes));
	in->args = calloc((size_t)program->n_args + 1, sizeof(*in->args));
	ck_assert(in->slots && in->bytes && in->args);
	for (i = 0; i < program->n_slots; i++)
		fill_slot(s, in, i);
	for (i = 0; i < program->n_steps; i++) {
		const struct pawl_step *step = &program->steps[i];

		for (j = 0; j < step->n_args; j++)
			in->args[step->first_arg + j] =
				in->slots[step->args[j].slot] + step->args[j].offset;
	}
}

static void
release_instance(struct instance *in)
{
	int32_t i;

	drop(in->scratch, (size_t)in->program->scratch_bytes, "the temporaries");
	for (i = 0; i < in->program->n_slots; i++) {
		if (owns_memory(&in->program->slots[i]))
			drop(in->slots[i], in->bytes[i], in->program->slots[i].name);
	}
	free(in->slots);
	free(in->bytes);
	free(in->args);
}

static void
optimize(const struct pawl_cpu_subject *s, const struct pawl_target_api *api,
	const struct pawl_target *target, struct pawl_program **out)
{
	struct pawl_optimize_options options = {
		.facts = {.max_prologue_rows = s->max_prologue_rows,
			.precision = s->is_a8 ? PAWL_PRECISION_A8 : PAWL_PRECISION_A16},
		.run = {.bisect = -1}};

	if (api && !s->rows_only) {
		options.facts.weight_layout = (enum pawl_layout(*)(
			const void *, const struct pawl_type *))(uintptr_t)api->weight_layout;
		options.facts.target = target;
	}
	OK(pawl_optimize(s->graph, &options, out, NULL, &err));
}

static void
run_reference(const struct pawl_cpu_subject *s, struct instance *in)
{
	int64_t bytes;
	uint32_t saved;
	void *scratch;

	OK(pawl_ref_program_check(in->program, &bytes, &err));
	scratch = make((size_t)bytes, 0);
	saved = pawl_fpenv_enter();
	OK(pawl_ref_program_run(in->program, in->args, s->symbols, scratch, &err));
	pawl_fpenv_leave(saved);
	drop(scratch, (size_t)bytes, "the scratch");
}

static void
run_code(const struct pawl_cpu_subject *s, const struct pawl_target_api *api,
	const struct pawl_code *code, int n_threads, struct instance *in)
{
	struct pawl_pool *pool;
	struct pawl_code_info info;
	void *scratch[8];
	struct pawl_run run = {.args = in->args, .symbols = s->symbols, .thread_scratch = scratch};
	size_t bytes;
	int i;

	api->code_info(code, &info);
	bytes = (size_t)info.thread_scratch_bytes;
	for (i = 0; i < n_threads; i++)
		scratch[i] = make(bytes, POISON);
	OK(pawl_pool_new(n_threads, &pool, &err));
	run.team = pawl_pool_team(pool);
	OK(api->run(code, &run, &err));
	pawl_pool_free(pool);
	for (i = 0; i < n_threads; i++) {
		drop(scratch[i], bytes, "a thread's scratch");
	}
}

static void
compare_slots(const struct pawl_cpu_subject *s, const struct pawl_slot *slot, const char *got,
	const char *want, const char *what)
{
	struct pawl_type type = resolve(&slot->type, s->symbols);
	const struct pawl_dtype_info *info = pawl_dtype_info(type.dtype);
	int64_t n = pawl_type_elems(&type), i;
	float x[256], y[256];

	if (type.layout == PAWL_LAYOUT_K16)
		n = slot->bytes / info->block_bytes * info->block;
	for (i = 0; i < n; i += info->block) {
		const char *a = got + i / info->block * info->block_bytes;
		const char *b = want + i / info->block * info->block_bytes;
		int j;

		/* A block in layout K16 is no block where it lies; all NaNs of a scale are one. */
		if (info->kind == PAWL_KIND_INT || info->kind == PAWL_KIND_QUANT || !memcmp(a, b, (size_t)info->block_bytes)) {
			ck_assert_msg(!memcmp(a, b, (size_t)info->block_bytes),
				"%s: %s[%d] differs", what, slot->name, (int)i);
			continue;
		}
		pawl_decode_f32(type.dtype, a, info->block, x);
		pawl_decode_f32(type.dtype, b, info->block, y);
		for (j = 0; j < info->block; j++)
			ck_assert_msg(pawl_eval_same(x[j], y[j]),
				"%s: %s[%d] is %.9g (%a), not %.9g (%a)", what, slot->name,
				(int)i + j, x[j], x[j], y[j], y[j]);
	}
}

static void
compare(const struct pawl_cpu_subject *s, const struct instance *got, const struct instance *want,
	const char *what)
{
	int32_t i, j;

	for (i = 0; i < want->program->n_outputs; i++) {
		int32_t a = got->program->outputs[i], b = want->program->outputs[i];

		compare_slots(s, &want->program->slots[b], got->slots[a], want->slots[b], what);
	}
	for (i = 0; i < want->program->n_slots; i++) {
		const struct pawl_slot *slot = &want->program->slots[i];

		if (slot->role != PAWL_SLOT_KV)
			continue;
		j = pawl_program_find_slot(got->program, slot->name);
		if (j >= 0)
			compare_slots(s, slot, got->slots[j], want->slots[i], what);
	}
}

bool
pawl_cpu_subject_agrees(struct pawl_cpu_subject *s, const char *variant, struct pawl_error *error)
{
	const struct pawl_target_api *api = pawl_cpu_target();
	const struct pawl_target_options options = {
		.cpu_variant = variant, .dump_dir = pawl_env(PAWL_ENV_DUMP)};
	struct pawl_program *plain, *program;
	struct instance want, got;
	struct pawl_target *target;
	struct pawl_code *code;
	enum pawl_status status;
	char what[64];
	int n_threads;

	OK(api->open(&options, &target, &err));
	optimize(s, NULL, NULL, &plain);
	optimize(s, api, target, &program);
	status = api->compile(target, program, &code, error);
	ck_assert_msg(
		status == PAWL_OK || status == PAWL_UNSUPPORTED, "%s: %s", variant, error->text);
	if (status == PAWL_OK) {
		init_instance(s, plain, &want);
		run_reference(s, &want);
		for (n_threads = 1; n_threads <= 3; n_threads++) {
			init_instance(s, program, &got);
			run_code(s, api, code, n_threads, &got);
			snprintf(what, sizeof(what), "%s, %d threads", variant, n_threads);
			compare(s, &got, &want, what);
			release_instance(&got);
		}
		release_instance(&want);
		api->code_free(code);
	}
	api->close(target);
	pawl_program_free(program);
	pawl_program_free(plain);
	return status == PAWL_OK;
}
