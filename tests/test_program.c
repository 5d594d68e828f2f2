/* What programs look like, what their memory checker refuses, what cannot be lowered. */
#include "ir/parse.h"
#include "passes/lower.h"
#include "passes/plan_memory.h"

#include "tests/lower_check.h"
#include "tests/pass_facts.h"
#include "tests/small_llama.h"
#include "tests/suites.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct pawl_error err;

#define OK(call) ck_assert_msg((call) == PAWL_OK, "%s", err.text)

static struct pawl_graph *
parse_at(const char *stage, const char *body)
{
	char text[8192];
	struct pawl_graph *graph;

	snprintf(text, sizeof(text), "pawl 1\ngraph @case stage %s {\n%s}\n", stage, body);
	OK(pawl_parse(text, strlen(text), "case", &graph, NULL, &err));
	return graph;
}

static struct pawl_graph *
parse(const char *body)
{
	return parse_at("values", body);
}

static struct pawl_program *
optimize(const struct pawl_graph *graph, bool packing)
{
	struct pawl_optimize_options options = {
		.facts = packing ? *pawl_test_packing_facts() : *pawl_test_facts(PAWL_PASS_dce),
		.run = {.bisect = -1, .verify_each = true}};
	struct pawl_program *program;

	OK(pawl_optimize(graph, &options, &program, NULL, &err));
	return program;
}

static void
assert_steps(int64_t n_tokens, const char *before, const char *layer, const char *after)
{
	struct pawl_graph *graph = pawl_test_small_llama(n_tokens, 2);
	struct pawl_program *program = optimize(graph, true);
	struct pawl_test_inputs inputs = pawl_test_inputs_of(graph, 1);
	struct pawl_optimize_options options = {.facts = *pawl_test_packing_facts(),
		.run = {.bisect = -1, .verify_each = true}};
	char got[1024] = "", want[1024];
	int32_t i;

	for (i = 0; i < program->n_steps; i++) {
		strcat(got, i ? " " : "");
		strcat(got, pawl_template_name(program->steps[i].template));
	}
	snprintf(want, sizeof(want), "%s %s %s %s", before, layer, layer, after);
	ck_assert_str_eq(got, want);
	pawl_test_check_lowering(graph, &options, &inputs, "small llama");
	pawl_test_inputs_release(&inputs);
	pawl_program_free(program);
	pawl_graph_free(graph);
}

START_TEST(a_block_is_six_steps_at_one_token)
{
	/* norm, quantize, qkv; rope, casts, writes; rope, attention; quantize, o, residual;
	   norm, quantize, gate, up, silu, mul; quantize, down, residual */
	assert_steps(1, "gather", "matmul map attend matmul matmul matmul", "matmul");
}
END_TEST

START_TEST(rows_are_steps_of_their_own_at_eight_tokens)
{
	assert_steps(8, "gather", "rows matmul map attend rows matmul rows matmul rows matmul",
		"rows matmul");
}
END_TEST

START_TEST(a_tied_weight_is_two_slots)
{
	struct pawl_graph *graph = pawl_test_small_llama(1, 1);
	struct pawl_program *program = optimize(graph, true);
	int32_t i, n_rows = 0, n_packed = 0;

	for (i = 0; i < program->n_slots; i++) {
		if (strcmp(program->slots[i].name, "embedding.0"))
			continue;
		n_rows += program->slots[i].type.layout == PAWL_LAYOUT_ROWS;
		n_packed += program->slots[i].type.layout == PAWL_LAYOUT_TILE16;
	}
	ck_assert_int_eq(n_rows, 1);
	ck_assert_int_eq(n_packed, 1);
	pawl_program_free(program);
	pawl_graph_free(graph);
}
END_TEST

START_TEST(room_is_for_the_largest_extents)
{
	struct pawl_graph *graph = parse(
		"  sym $T : 1..6\n"
		"  %q = const {role = data} : f32[$T, 4, 8]\n"
		"  %k = const {role = kv} : f32[1, 2, 256, 8]\n"
		"  %v = const {role = kv} : f32[1, 2, 256, 8]\n"
		"  %o = const {role = data} : i64[]\n"
		"  %y = attention %q, %k, %v, %o : f32[$T, 4, 8]\n"
		"  output %y\n");
	struct pawl_program *program = optimize(graph, false);
	int32_t slot = pawl_program_find_slot(program, "attention partials");

	ck_assert_int_ge(slot, 0);
	ck_assert_int_eq(program->slots[slot].bytes, 6 * 4 * 2 * (8 + 2) * 4);
	ck_assert_int_eq(program->slots[program->outputs[0]].bytes, 6 * 4 * 8 * 4);
	ck_assert_int_eq(program->steps[0].flops, 2 * 6 * 4 * 256 * (8 + 8));
	ck_assert_int_eq(program->steps[0].bytes, 4 * (2 * 6 * 4 * 8 + 2 * 2 * 256 * 8) + 8);
	pawl_program_free(program);
	pawl_graph_free(graph);
}
END_TEST

static bool
is_scratch(const struct pawl_slot *slot)
{
	return slot->role == PAWL_SLOT_TEMP || slot->role == PAWL_SLOT_OUTPUT;
}

static void
assert_refused(const struct pawl_program *program, const char *text)
{
	err.text[0] = 0;
	ck_assert_int_eq(pawl_check_memory(program, &err), PAWL_INTERNAL);
	ck_assert_msg(strstr(err.text, text), "'%s' is not in '%s'", text, err.text);
}

START_TEST(an_overlap_of_any_two_living_slots_is_refused)
{
	struct pawl_graph *graph = pawl_test_small_llama(3, 2);
	struct pawl_program *program = optimize(graph, false);
	int32_t i, j, n = 0;

	OK(pawl_check_memory(program, &err));
	for (i = 0; i < program->n_slots; i++) {
		for (j = 0; j < program->n_slots; j++) {
			struct pawl_slot *a = &program->slots[i], *b = &program->slots[j];
			int64_t offset = a->offset;

			if (i == j || !is_scratch(a) || !is_scratch(b) || a->first_step > b->last_step ||
				b->first_step > a->last_step ||
				b->offset + a->bytes > program->scratch_bytes)
				continue;
			a->offset = b->offset;
			ck_assert_msg(pawl_check_memory(program, &err) == PAWL_INTERNAL,
				"slots %d and %d overlap", i, j);
			a->offset = offset;
			n++;
		}
	}
	ck_assert_int_ge(n, 20);
	OK(pawl_check_memory(program, &err));
	pawl_program_free(program);
	pawl_graph_free(graph);
}
END_TEST

/* Values of 64 bytes: each is made of the one before, z of n as well. */
static struct pawl_program *
four_steps(void)
{
	struct pawl_graph *graph = parse("  %x = const {role = data} : f32[16]\n"
					 "  %a = const : f32[16, 16]\n"
					 "  %n = matmul %x, %a : f32[16]\n"
					 "  %e = matmul %n, %a : f32[16]\n"
					 "  %s = softmax %e : f32[16]\n"
					 "  %y = matmul %s, %a : f32[16]\n"
					 "  %z = add %y, %n : f32[16]\n"
					 "  %u = matmul %z, %a : f32[16]\n"
					 "  output %u\n"
					 "  output %e\n");
	struct pawl_program *program = optimize(graph, false);

	pawl_graph_free(graph);
	ck_assert_int_eq(program->n_steps, 4);
	return program;
}

static struct pawl_slot *
slot_named(struct pawl_program *program, const char *name)
{
	int32_t i = pawl_program_find_slot(program, name);

	ck_assert_int_ge(i, 0);
	return &program->slots[i];
}

START_TEST(each_refusal_says_why)
{
	struct pawl_program *program = four_steps();
	struct pawl_slot *n = slot_named(program, "n"), *e = slot_named(program, "e");
	struct pawl_slot *u = slot_named(program, "u");
	struct pawl_step *steps = program->steps, step;
	int64_t at = e->offset;

	OK(pawl_check_memory(program, &err));
	e->offset = -64;
	assert_refused(program, "lies outside of the scratch memory");
	e->offset = program->scratch_bytes;
	assert_refused(program, "lies outside of the scratch memory");
	e->offset = 32;
	assert_refused(program, "lies outside of the scratch memory");
	e->offset = n->offset;
	assert_refused(program, "uses slot");
	assert_refused(program, "and overwrites part of it as another slot");
	e->offset = at;
	at = u->offset;
	u->offset = e->offset;
	assert_refused(program, "output 1 is never written or overwritten before the end");
	u->offset = at;
	step = steps[0];
	steps[0] = steps[1];
	steps[1] = step;
	assert_refused(program, "which nothing wrote or another slot has overwritten");
	steps[1] = steps[0];
	steps[0] = step;
	program->outputs[0] = pawl_program_find_slot(program, "n");
	program->n_steps = 0;
	assert_refused(program, "output 0 is never written");
	pawl_program_free(program);
}
END_TEST

START_TEST(a_buffer_may_be_read_before_it_is_written)
{
	struct pawl_graph *graph = parse("  %a = alloc : f32[16]\n"
					 "  %b = alloc : f32[16]\n"
					 "  %n = neg %a : f32[16]\n"
					 "  output %n\n"
					 "  output %b\n");
	struct pawl_program *program = optimize(graph, false);

	ck_assert_int_eq(program->n_steps, 1);
	slot_named(program, "b")->is_buffer = false;
	assert_refused(program, "output 1 is never written");
	slot_named(program, "a")->is_buffer = false;
	assert_refused(program, "which nothing wrote");
	pawl_program_free(program);
	pawl_graph_free(graph);
}
END_TEST

static void
assert_declined(const char *body, const char *text)
{
	struct pawl_optimize_options options = {
		.facts = *pawl_test_facts(PAWL_PASS_dce), .run = {.bisect = -1, .verify_each = true}};
	struct pawl_graph *graph = parse(body);
	struct pawl_program *program;

	ck_assert_int_eq(pawl_optimize(graph, &options, &program, NULL, &err), PAWL_UNSUPPORTED);
	ck_assert_msg(strstr(err.text, text), "'%s' is not in '%s'", text, err.text);
	pawl_graph_free(graph);
}

START_TEST(what_cannot_be_copied_is_declined_by_name)
{
	assert_declined("  %k = const {role = kv} : q8_0[2, 32]\n"
			"  %s = const {role = data} : q8_0[1, 32]\n"
			"  %old = slice %k {start = [1, 0], stop = [2, 32]} : q8_0[1, 32]\n"
			"  %w = write_slice %k, %s {start = [1, 0]} : q8_0[2, 32]\n"
			"  %v = write_slice %w, %old : q8_0[2, 32]\n"
			"  output %v\n",
		"%old would have to be copied, which is not done for blocks");
	assert_declined("  sym $T : 1..4\n"
			"  %x = const {role = data} : f32[$T, 2]\n"
			"  %y = permute %x {perm = [1, 0]} : f32[2, $T]\n"
			"  output %y\n",
		"%y would have to be copied, which is not done for a view whose symbolic axis");
	assert_declined("  %w = const : q4_0[16, 32]\n"
			"  %p = pack %w : q4_0[16, 32]@tile16\n"
			"  output %p\n",
		"%p would have to be copied");
}
END_TEST

/* Groups and views that no pass makes, but a text may hold. */
static void
assert_not_lowered(const char *body, const char *text)
{
	struct pawl_graph *graph = parse_at("fused", body);
	struct pawl_program *program;

	ck_assert_int_eq(pawl_lower(graph, &program, &err), PAWL_UNSUPPORTED);
	ck_assert_msg(strstr(err.text, text), "'%s' is not in '%s'", text, err.text);
	pawl_graph_free(graph);
}

START_TEST(texts_that_no_pass_makes_are_declined)
{
	char body[4000];
	size_t n;
	int i;

	assert_not_lowered("  %x = const {role = data} : f32[2, 8]\n"
			   "  %a = const : f32[8, 8]\n"
			   "  %y = matmul %x, %a : f32[2, 8] #0\n"
			   "  %s = softmax %y : f32[2, 8] #0\n"
			   "  output %s\n",
		"no template can execute group #0 (matmul)");
	assert_not_lowered("  %x = const {role = kv} : f32[4]\n"
			   "  %s = const {role = data} : f32[4]\n"
			   "  %n = neg %x : f32[4] #0\n"
			   "  %w = write_slice %x, %s : f32[4] #0\n"
			   "  output %n\n",
		"no template can execute group #0 (neg)");
	assert_not_lowered("  %x = const {role = data} : f32[2, 3]\n"
			   "  %p = permute %x {perm = [1, 0]} : f32[3, 2]\n"
			   "  %r = reshape %p : f32[6]\n"
			   "  %n = neg %r : f32[6] #0\n"
			   "  output %n\n",
		"operand r (reshape) is no window on storage");
	assert_not_lowered("  %x = const {role = data} : f32[2, 3]\n"
			   "  %n = neg %x : f32[2, 3] #0\n"
			   "  %p = permute %n {perm = [1, 0]} : f32[3, 2]\n"
			   "  output %p\n",
		"output 0 is a view");
	n = (size_t)snprintf(body, sizeof(body), "  %%0 = const {role = literal, values = [1]} : f32[1]\n");
	for (i = 1; i <= 25; i++)
		n += (size_t)snprintf(
			body + n, sizeof(body) - n, "  %%%d = neg %%%d : f32[1] #0\n", i, i - 1);
	snprintf(body + n, sizeof(body) - n, "  output %%25\n");
	assert_not_lowered(body, "no template can execute group #0 (neg)");
}
END_TEST

START_TEST(plans_beyond_all_memory_are_declined)
{
	char body[8000] = "";
	size_t n = 0;
	int i;

	assert_declined("  %q = const {role = data} : f32[33554432, 1, 1]\n"
			"  %k = const {role = kv} : f32[1, 1, 1073741824, 1]\n"
			"  %v = const {role = kv} : f32[1, 1, 1073741824, 1]\n"
			"  %o = const {role = data} : i64[]\n"
			"  %y = attention %q, %k, %v, %o : f32[33554432, 1, 1]\n"
			"  output %y\n",
		"its partial results exceed");
	n += (size_t)snprintf(body, sizeof(body), "  %%x = const {role = data} : f32[1099511627776]\n");
	for (i = 1; i <= 70; i++)
		n += (size_t)snprintf(body + n, sizeof(body) - n,
			"  %%y%d = scale %%x {scale = %d} : f32[1099511627776]\n", i, i + 1);
	for (i = 1; i <= 70; i++)
		n += (size_t)snprintf(body + n, sizeof(body) - n, "  output %%y%d\n", i);
	assert_declined(body, "the temporaries of 'case' exceed");
}
END_TEST

Suite *
pawl_program_suite(void)
{
	Suite *suite = suite_create("program");
	TCase *tcase = tcase_create("program");

	tcase_add_test(tcase, a_block_is_six_steps_at_one_token);
	tcase_add_test(tcase, rows_are_steps_of_their_own_at_eight_tokens);
	tcase_add_test(tcase, a_tied_weight_is_two_slots);
	tcase_add_test(tcase, room_is_for_the_largest_extents);
	tcase_add_test(tcase, an_overlap_of_any_two_living_slots_is_refused);
	tcase_add_test(tcase, each_refusal_says_why);
	tcase_add_test(tcase, a_buffer_may_be_read_before_it_is_written);
	tcase_add_test(tcase, what_cannot_be_copied_is_declined_by_name);
	tcase_add_test(tcase, texts_that_no_pass_makes_are_declined);
	tcase_add_test(tcase, plans_beyond_all_memory_are_declined);
	suite_add_tcase(suite, tcase);
	return suite;
}
