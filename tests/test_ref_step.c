/*
 * The step interpreter against the graph interpreter: a program computes the bits that the
 * graph it was lowered from means, and its kv memory ends alike.
 */
#include "codegen/interp.h"
#include "codegen/pack.h"
#include "codegen/ref_step.h"
#include "ir/fpenv.h"
#include "ir/parse.h"
#include "ir/random.h"
#include "passes/optimize.h"
#include "passes/run.h"

#include "tests/suites.h"
#include "tests/tensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CONSTS = 256, MAX_SYMBOLS = 8 };

/* A graph with memory for its consts, twice for kv: one for each interpreter. */
struct subject {
	struct pawl_graph *graph, *lowered;
	struct pawl_program *program;
	struct pawl_interp *interp;
	int64_t symbols[MAX_SYMBOLS];
	int n;
	struct memory {
		const char *name;
		struct pawl_tensor tensor, of_program;
	} consts[MAX_CONSTS];
	char *memory; /* temporaries and outputs */
	void **args;
};

static struct pawl_error err;

#define OK(call) ck_assert_msg((call) == PAWL_OK, "%s", err.text)

static struct memory *
find(struct subject *s, const char *name)
{
	int i;

	for (i = 0; i < s->n; i++) {
		if (!strcmp(s->consts[i].name, name))
			return &s->consts[i];
	}
	ck_abort_msg("no const %s", name);
	return NULL;
}

static struct pawl_tensor
tensor_of(const struct subject *s, const struct pawl_type *type)
{
	int64_t dims[PAWL_MAX_RANK];
	int i;

	for (i = 0; i < type->rank; i++)
		dims[i] = type->dim[i].sym < 0
				  ? type->dim[i].base
				  : type->dim[i].base +
					    type->dim[i].factor * s->symbols[type->dim[i].sym];
	return type->layout == PAWL_LAYOUT_K16 ? pawl_test_k16(type->dtype, dims)
					       : pawl_test_tensor(type->dtype, type->rank, dims);
}

/* seed 0: floats about 1, integers 0; else as pawl_random_fill_const does. */
static void
make_consts(struct subject *s, uint64_t seed)
{
	const struct pawl_node *node;

	pawl_foreach_node(node, s->graph) {
		struct memory *m = &s->consts[s->n];

		if (node->op != PAWL_OP_CONST || node->attrs.role == PAWL_ROLE_LITERAL)
			continue;
		ck_assert_int_lt(s->n++, MAX_CONSTS);
		m->name = node->name;
		m->tensor = tensor_of(s, &node->type);
		if (seed)
			OK(pawl_random_fill_const(
				s->graph, node, seed, s->symbols, m->tensor.data, &err));
		else if (pawl_dtype_info(node->type.dtype)->kind != PAWL_KIND_INT)
			pawl_test_fill(&m->tensor, 1.0);
		m->of_program = m->tensor;
		if (node->attrs.role == PAWL_ROLE_KV) {
			m->of_program = tensor_of(s, &node->type);
			pawl_tensor_copy(&m->tensor, &m->of_program);
		}
	}
}

static void *
packed(const struct pawl_tensor *w)
{
	int64_t bytes = pawl_pack_bytes(w->dtype, w->dim[0], w->dim[1]);
	struct pawl_tensor memory = pawl_test_tensor(PAWL_DTYPE_I8, 1, &bytes);

	pawl_pack_tiles(w->dtype, w->dim[0], w->dim[1], w->data, memory.data, 0,
		(w->dim[0] + PAWL_TILE_ROWS - 1) / PAWL_TILE_ROWS);
	return memory.data;
}

/* Memory of a slot as the runtime would place it. */
static void *
slot_memory(struct subject *s, const struct pawl_slot *slot)
{
	struct pawl_attrs attrs = pawl_attrs_default();
	struct pawl_tensor literal;

	switch (slot->role) {
	case PAWL_SLOT_WEIGHT:
		if (slot->type.layout == PAWL_LAYOUT_TILE16)
			return packed(&find(s, slot->name)->tensor);
		return find(s, slot->name)->tensor.data;
	case PAWL_SLOT_KV:
	case PAWL_SLOT_DATA:
		return find(s, slot->name)->of_program.data;
	case PAWL_SLOT_LITERAL:
		literal = tensor_of(s, &slot->type);
		attrs.role = PAWL_ROLE_LITERAL;
		attrs.values = slot->values;
		attrs.n_values = slot->n_values;
		pawl_test_call(false, PAWL_OP_CONST, &attrs, NULL, 0, &literal, NULL);
		return literal.data;
	case PAWL_SLOT_TEMP:
	case PAWL_SLOT_OUTPUT:
		return s->memory + slot->offset;
	case PAWL_N_SLOT_ROLES:
		break;
	}
	return NULL;
}

/* Takes s->graph and s->symbols as they are. */
static void
set_up(struct subject *s, uint64_t seed, bool red_zones)
{
	const struct pawl_optimize_options options = {.facts = {.max_prologue_rows = 8},
		.run = {.bisect = -1, .verify_each = true},
		.red_zones = red_zones};
	const enum pawl_pass *passes;
	int n, i, j;

	make_consts(s, seed);
	OK(pawl_graph_clone(s->graph, &s->lowered, &err));
	passes = pawl_pipeline(&n);
	OK(pawl_passes_run(s->lowered, passes, n, &options.facts, &options.run, NULL, &err));
	OK(pawl_interp_new(s->lowered, PAWL_INTERP_PLANNED, &s->interp, &err));
	for (i = 0; i < s->n; i++) {
		if (pawl_graph_find(s->lowered, s->consts[i].name))
			OK(pawl_interp_bind(s->interp, s->consts[i].name, s->consts[i].tensor.data,
				INT64_MAX, &err));
	}
	for (i = 0; i < s->lowered->n_symbols; i++)
		OK(pawl_interp_set_symbol(
			s->interp, s->lowered->symbols[i].name, s->symbols[i], &err));
	OK(pawl_optimize(s->graph, &options, &s->program, NULL, &err));
	s->memory = aligned_alloc(64, ((size_t)s->program->scratch_bytes + 64) / 64 * 64);
	s->args = calloc((size_t)s->program->n_args + 1, sizeof(*s->args));
	ck_assert(s->memory && s->args);
	memset(s->memory, 0xff, (size_t)s->program->scratch_bytes);
	for (i = 0; i < s->program->n_steps; i++) {
		const struct pawl_step *step = &s->program->steps[i];

		for (j = 0; j < step->n_args; j++)
			s->args[step->first_arg + j] =
				(char *)slot_memory(s, &s->program->slots[step->args[j].slot]) +
				step->args[j].offset;
	}
}

static void
begin(struct subject *s, const char *statements, int64_t symbol, bool red_zones)
{
	char text[8192];
	int i;

	*s = (struct subject){0};
	for (i = 0; i < MAX_SYMBOLS; i++)
		s->symbols[i] = symbol;
	ck_assert_int_lt(
		snprintf(text, sizeof(text), "pawl 1\ngraph @t stage values {\n%s}\n", statements),
		(int)sizeof(text));
	OK(pawl_parse(text, strlen(text), "test", &s->graph, NULL, &err));
	set_up(s, 0, red_zones);
}

static void
end(struct subject *s)
{
	pawl_interp_free(s->interp);
	pawl_program_free(s->program);
	pawl_graph_free(s->lowered);
	pawl_graph_free(s->graph);
	free(s->memory);
	free(s->args);
}

static enum pawl_status
run_program(struct subject *s)
{
	enum pawl_status status;
	int64_t bytes;
	uint32_t saved;
	void *scratch;

	OK(pawl_ref_program_check(s->program, &bytes, &err));
	scratch = aligned_alloc(64, ((size_t)bytes + 63) / 64 * 64);
	ck_assert_ptr_nonnull(scratch);
	saved = pawl_fpenv_enter();
	status = pawl_ref_program_run(s->program, s->args, s->symbols, scratch, &err);
	pawl_fpenv_leave(saved);
	free(scratch);
	return status;
}

static void
assert_same(const struct pawl_tensor *got, const struct pawl_tensor *want, const char *name)
{
	int64_t i;

	for (i = 0; i < pawl_tensor_elems(want); i++) {
		double x = pawl_test_get(got, i), y = pawl_test_get(want, i);

		ck_assert_msg(x == y || (x != x && y != y), "%s[%d] is %.9g, not %.9g", name,
			(int)i, x, y);
	}
}

/* Runs both and compares outputs and kv. */
static void
compare(struct subject *s)
{
	int i;

	OK(pawl_interp_run(s->interp, &err));
	OK(run_program(s));
	for (i = 0; i < s->graph->n_outputs; i++) {
		const struct pawl_tensor *want = pawl_interp_output(s->interp, i);
		const struct pawl_type *type = &s->lowered->outputs[i]->type;
		struct pawl_tensor got;
		int64_t bytes;

		OK(pawl_tensor_init(&got, type->dtype, type->layout, false, want->rank, want->dim,
			&bytes, &err));
		got.data = slot_memory(s, &s->program->slots[s->program->outputs[i]]);
		assert_same(&got, want, "output");
	}
	for (i = 0; i < s->n; i++)
		assert_same(&s->consts[i].of_program, &s->consts[i].tensor, s->consts[i].name);
}

static const char block[] =
	"%ids = const {role=data} : u32[3]\n%table = const {role=weight} : q8_0[10,64]\n"
	"%norm = const {role=weight} : f32[64]\n%norm2 = const {role=weight} : f32[64]\n"
	"%wq = const {role=weight} : q4_0[64,64]\n%wk = const {role=weight} : q5_1[32,64]\n"
	"%wv = const {role=weight} : f16[32,64]\n%wo = const {role=weight} : q4_1[64,64]\n"
	"%cos = const {role=data} : f32[3,16]\n%sin = const {role=data} : f32[3,16]\n"
	"%k = const {role=kv} : f16[1,2,160,16]@k16\n%v = const {role=kv} : f16[1,2,160,16]\n"
	"%at = const {role=data} : i64[]\n"
	"%x = gather %table, %ids : f32[3,64]\n"
	"%n = rms_norm %x, %norm {eps=1e-5} : f32[3,64]\n"
	"%q = matmul %n, %wq : f32[3,64]\n%kk = matmul %n, %wk : f32[3,32]\n%vv = matmul %n, %wv : "
	"f32[3,32]\n"
	"%qh = reshape %q : f32[3,4,16]\n%kh = reshape %kk : f32[3,2,16]\n%vh = reshape %vv : "
	"f32[3,2,16]\n"
	"%qr = rope %qh, %cos, %sin {pairs=halves} : f32[3,4,16]\n"
	"%kr = rope %kh, %cos, %sin {pairs=adjacent} : f32[3,2,16]\n"
	"%kc = cast %kr {dtype=f16} : f16[3,2,16]\n%vc = cast %vh {dtype=f16} : f16[3,2,16]\n"
	"%kp = permute %kc {perm=[1,0,2]} : f16[2,3,16]\n%vp = permute %vc {perm=[1,0,2]} : "
	"f16[2,3,16]\n"
	"%ks = reshape %kp : f16[1,2,3,16]\n%vs = reshape %vp : f16[1,2,3,16]\n"
	"%kw = write_slice %k, %ks, %at {axis=2} : f16[1,2,160,16]@k16\n"
	"%vw = write_slice %v, %vs, %at {axis=2} : f16[1,2,160,16]\n"
	"%a = attention %qr, %kw, %vw, %at {scale=0.25} : f32[3,4,16]\n"
	"%ar = reshape %a : f32[3,64]\n%o = matmul %ar, %wo : f32[3,64]\n"
	"%r = add %x, %o : f32[3,64]\n%n2 = rms_norm %r, %norm2 {eps=1e-5} : f32[3,64]\n"
	"%l = matmul %n2, %table : f32[3,10]\n%best = argmax %l : i32[3]\n"
	"output %l\noutput %best\n";

START_TEST(a_decoder_block_is_what_its_graph_says)
{
	static const int64_t starts[] = {0, 13, 126, 157};
	struct subject s;
	int i, red;

	for (red = 0; red < 2; red++) {
		begin(&s, block, 0, red);
		for (i = 0; i < 3; i++)
			pawl_tensor_store_i64(&find(&s, "ids")->tensor, i, 3 * i);
		for (i = 0; i < 4; i++) {
			pawl_tensor_store_i64(&find(&s, "at")->tensor, 0, starts[i]);
			compare(&s);
		}
		end(&s);
	}
}
END_TEST

START_TEST(writes_of_every_kind_end_where_they_should)
{
	struct subject s;
	int i;

	begin(&s,
		"sym $n : 1 .. 4\n"
		"%ring = const {role=kv} : f32[6,2]\n%pool = const {role=kv} : f16[5,2,2]\n%fixed "
		"= const {role=kv} : i32[3,2]\n"
		"%x = const {role=data} : f32[$n,2]\n%y = const {role=data} : f32[$n,2,2]\n%z = "
		"const {role=data} : i32[2,1]\n"
		"%at = const {role=data} : i64[]\n%index = const {role=data} : i64[$n]\n"
		"%neg = neg %x : f32[$n,2]\n"
		"%w = write_slice_rotating %ring, %neg, %at {axis=0,modulus=5} : f32[6,2]\n"
		"%h = cast %y {dtype=f16} : f16[$n,2,2]\n%p = write_rows %pool, %h, %index : "
		"f16[5,2,2]\n"
		"%f = write_slice %fixed, %z {start=[1,1]} : i32[3,2]\n"
		"%c = copy %w : f32[6,2]\noutput %c\noutput %neg\n",
		3, false);
	pawl_tensor_store_i64(&find(&s, "at")->tensor, 0, 1004);
	for (i = 0; i < 3; i++)
		pawl_tensor_store_i64(&find(&s, "index")->tensor, i, (int64_t[]){4, -1, 0}[i]);
	pawl_tensor_store_i64(&find(&s, "z")->tensor, 0, 5);
	compare(&s);
	ck_assert_int_eq(pawl_tensor_load_i64(&find(&s, "fixed")->of_program, 3), 5);
	end(&s);
}
END_TEST

/* Beyond the capacity of the second state: the first, which is written earlier, stays too. */
START_TEST(a_start_beyond_capacity_writes_nothing)
{
	static const struct {
		int64_t at;
		enum pawl_status status;
	} cases[] = {{3, PAWL_CAPACITY}, {-1, PAWL_INVALID_ARGUMENT}, {INT64_MAX, PAWL_CAPACITY},
		{2, PAWL_OK}};
	struct subject s;
	size_t i;

	begin(&s,
		"%a = const {role=kv} : f32[8]\n%b = const {role=kv} : f32[4]\n"
		"%x = const {role=data} : f32[2]\n%at = const {role=data} : i64[]\n"
		"%n = neg %x : f32[2]\n%wa = write_slice %a, %n, %at {axis=0} : f32[8]\n"
		"%s = slice %wa {start=[0],stop=[2]} : f32[2]\n%m = exp %s : f32[2]\n"
		"%wb = write_slice %b, %m, %at {axis=0} : f32[4]\noutput %wb\n",
		0, false);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		pawl_tensor_store_i64(&find(&s, "at")->tensor, 0, cases[i].at);
		if (!cases[i].status) {
			compare(&s);
			continue;
		}
		ck_assert_int_eq(run_program(&s), cases[i].status);
		assert_same(&find(&s, "a")->of_program, &find(&s, "a")->tensor, "a");
		assert_same(&find(&s, "b")->of_program, &find(&s, "b")->tensor, "b");
	}
	end(&s);
}
END_TEST

START_TEST(symbols_are_checked)
{
	struct subject s;

	begin(&s,
		"sym $n : 2 .. 6 % 2\n%x = const {role=data} : f32[$n]\n%y = neg %x : "
		"f32[$n]\noutput %y\n",
		2, false);
	compare(&s);
	s.symbols[0] = 0;
	ck_assert_int_eq(run_program(&s), PAWL_SYMBOL);
	s.symbols[0] = 8;
	ck_assert_int_eq(run_program(&s), PAWL_SYMBOL);
	s.symbols[0] = 3;
	ck_assert_int_eq(run_program(&s), PAWL_SYMBOL);
	end(&s);
}
END_TEST

/* Whatever passes and lowering make of a graph, the program has its bits. */
START_TEST(random_graphs_keep_their_bits)
{
	const struct pawl_random_options options = {
		.flavours =
			_i % 2 ? PAWL_RANDOM_DEFAULT | PAWL_RANDOM_SYMBOLIC : PAWL_RANDOM_DEFAULT};
	uint64_t seed;
	int i;

	for (seed = 1 + 20 * (uint64_t)_i; seed < 21 + 20 * (uint64_t)_i; seed++) {
		struct subject s = {0};

		OK(pawl_random_graph(seed, &options, &s.graph, &err));
		ck_assert_int_le(s.graph->n_symbols, MAX_SYMBOLS);
		for (i = 0; i < s.graph->n_symbols; i++) {
			const struct pawl_symbol *symbol = &s.graph->symbols[i];
			int64_t n = (symbol->max - symbol->min) / symbol->multiple + 1;

			s.symbols[i] = symbol->min + (int64_t)seed % n * symbol->multiple;
		}
		set_up(&s, seed, false);
		compare(&s);
		end(&s);
		pawl_tensors_end();
		pawl_tensors_begin();
	}
}
END_TEST

Suite *
pawl_ref_step_suite(void)
{
	Suite *suite = suite_create("ref_step");
	TCase *tcase = tcase_create("ref_step");

	tcase_add_checked_fixture(tcase, pawl_tensors_begin, pawl_tensors_end);
	tcase_add_test(tcase, a_decoder_block_is_what_its_graph_says);
	tcase_add_test(tcase, writes_of_every_kind_end_where_they_should);
	tcase_add_test(tcase, a_start_beyond_capacity_writes_nothing);
	tcase_add_test(tcase, symbols_are_checked);
	tcase_add_loop_test(tcase, random_graphs_keep_their_bits, 0, 6);
	suite_add_tcase(suite, tcase);
	return suite;
}
