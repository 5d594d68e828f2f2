/*
 * The text of CUDA kernels: what it must hold, what has no kernel.  What the kernels
 * compute is tests/cuda/test_kernels.c's business, and that NVRTC takes them that of check-cuda.
 */
#include "tests/suites.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/cuda/cuda_emit.h"
#include "ir/parse.h"
#include "passes/optimize.h"
#include "tests/cuda/cases.h"

static struct pawl_error err;

#define OK(call) ck_assert_msg((call) == PAWL_OK, "%s", err.text)

static enum pawl_layout
weight_layout(const void *target, const struct pawl_type *type)
{
	(void)target;
	return pawl_cuda_weight_layout(type);
}

static struct pawl_program *
optimize(const char *statements)
{
	struct pawl_optimize_options options = {
		.facts = {.max_prologue_rows = 4, .weight_layout = weight_layout},
		.run = {.bisect = -1}};
	struct pawl_program *program;
	struct pawl_graph *graph;
	char text[2048];

	snprintf(text, sizeof(text), "pawl 1\ngraph @t stage values {\n%s}\n", statements);
	OK(pawl_parse(text, strlen(text), "test", &graph, NULL, &err));
	OK(pawl_optimize(graph, &options, &program, NULL, &err));
	pawl_graph_free(graph);
	return program;
}

START_TEST(the_prelude_has_every_scalar_primitive)
{
	struct pawl_cuda_text text;
	char needle[64];
	int i;

	pawl_cuda_text_init(&text);
	pawl_cuda_prelude(&text);
	ck_assert(!text.failed);
	for (i = 0; i < PAWL_N_SCALARS; i++) {
		const char *name = pawl_scalar_info((enum pawl_scalar)i)->name;

		if (i == PAWL_SCALAR_ADD || i == PAWL_SCALAR_SUB || i == PAWL_SCALAR_MUL ||
			i == PAWL_SCALAR_DIV)
			continue;
		snprintf(needle, sizeof(needle), "PAWL_FN float pawl_%s(float x", name);
		ck_assert_msg(strstr(text.bytes, needle) != NULL, "no %s", needle);
	}
	pawl_cuda_text_release(&text);
}
END_TEST

START_TEST(the_same_program_gives_the_same_text)
{
	struct pawl_cuda_case a, b;

	pawl_cuda_case_open(PAWL_CUDA_TINY_F32, &a);
	pawl_cuda_case_open(PAWL_CUDA_TINY_F32, &b);
	for (int i = 0; i < PAWL_CUDA_UNITS; i++)
		ck_assert_str_eq(a.cuda.sources[i].bytes, b.cuda.sources[i].bytes);
	pawl_cuda_case_close(&a);
	pawl_cuda_case_close(&b);
}
END_TEST

/* Layers have other weights, not other kernels. */
START_TEST(layers_share_kernels)
{
	struct pawl_cuda_case c;

	pawl_cuda_case_open(PAWL_CUDA_TINY_F32, &c);
	ck_assert_int_eq(c.program->n_steps, c.cuda.n_launches);
	ck_assert_int_eq(c.cuda.n_kernels, 8);
	ck_assert_int_eq(c.cuda.n_launches, 14);
	pawl_cuda_case_close(&c);
}
END_TEST

START_TEST(launches_are_constants_of_the_program)
{
	struct pawl_program *program = optimize(
		"sym $T: 1..600\n"
		"%x = const {role=data} : f32[$T, 8]\n%y = sigmoid %x : f32[$T, 8]\noutput %y\n");
	struct pawl_cuda_program cuda;

	OK(pawl_cuda_program_init(&cuda, program, &err));
	ck_assert_int_eq(cuda.n_launches, 1);
	ck_assert_int_eq(cuda.launches[0].blocks, (600 * 8 + 255) / 256);
	ck_assert_ptr_nonnull(strstr(cuda.sources[0].bytes, "s0 * 8"));
	ck_assert_ptr_nonnull(strstr(cuda.sources[0].bytes, "pawl_sigmoid(v"));
	pawl_cuda_program_release(&cuda);
	pawl_program_free(program);
}
END_TEST

/* Elements beyond 2^31 are counted in 64 bits, and only there. */
START_TEST(indices_are_as_wide_as_their_storage)
{
	struct pawl_program *program = optimize(
		"%t = const {role=weight} : f16[70000, 40000]\n%i = const {role=data} : u32[1]\n"
		"%y = gather %t, %i : f32[1, 40000]\n%z = exp %y : f32[1, 40000]\noutput %z\n");
	struct pawl_cuda_program cuda;

	OK(pawl_cuda_program_init(&cuda, program, &err));
	ck_assert_ptr_nonnull(strstr(cuda.sources[0].bytes, "const i64 v0 = 0;"));
	pawl_cuda_program_release(&cuda);
	pawl_program_free(program);
	program = optimize(
		"%x = const {role=data} : f32[1, 40000]\n%z = exp %x : f32[1, 40000]\noutput %z\n");
	OK(pawl_cuda_program_init(&cuda, program, &err));
	ck_assert_ptr_null(strstr(cuda.sources[0].bytes, "const i64 v0 = 0;"));
	ck_assert_ptr_nonnull(strstr(cuda.sources[0].bytes, "const int v0 = 0;"));
	pawl_cuda_program_release(&cuda);
	pawl_program_free(program);
}
END_TEST

/* Steps of a few numbers in a row: one launch, of one block. */
START_TEST(small_steps_share_a_launch)
{
	struct pawl_cuda_case c;
	int i;

	pawl_cuda_case_open(PAWL_CUDA_MEDLEY - 1, &c);
	ck_assert_str_eq(c.name, "gemma3");
	ck_assert_int_eq(c.program->n_steps, 21);
	/* Eight a block, the gather and the head. */
	ck_assert_int_eq(c.cuda.n_launches, 17);
	for (i = 0; i < c.cuda.n_launches; i++)
		ck_assert(c.cuda.launches[i].n_steps == 1 ||
			(c.cuda.launches[i].n_steps == 3 && c.cuda.launches[i].blocks == 1));
	pawl_cuda_case_close(&c);
}
END_TEST

static void
check_refused(const char *statements, const char *why)
{
	struct pawl_program *program = optimize(statements);
	struct pawl_cuda_program cuda;

	ck_assert_int_eq(pawl_cuda_program_init(&cuda, program, &err), PAWL_UNSUPPORTED);
	ck_assert_str_eq(err.text, why);
	ck_assert_ptr_null(cuda.sources[0].bytes);
	ck_assert_int_eq(pawl_cuda_program_init(&cuda, program, NULL), PAWL_UNSUPPORTED);
	pawl_program_free(program);
}

START_TEST(what_has_no_kernel_is_named)
{
	check_refused("%x = const {role=data} : f32[1, 12832]\n"
		      "%w.q = const {role=weight} : q4_0[8, 12832]\n"
		      "%y = matmul %x, %w.q : f32[1, 8]\noutput %y\n",
		"step w.q: matmul: rows of more than 12800 columns");
}
END_TEST

/* Names of files end up in comments. */
START_TEST(a_name_cannot_end_a_comment)
{
	struct pawl_program *program =
		optimize("%x = const {role=data} : f32[4]\n%y = exp %x : f32[4]\noutput %y\n");
	struct pawl_cuda_program cuda;

	program->steps[0].name = "a*/b\n\"";
	OK(pawl_cuda_program_init(&cuda, program, &err));
	ck_assert_ptr_nonnull(strstr(cuda.sources[0].bytes, "step 0 a??b??"));
	pawl_cuda_program_release(&cuda);
	pawl_program_free(program);
}
END_TEST

Suite *
pawl_cuda_text_suite(void)
{
	Suite *suite = suite_create("cuda_text");
	TCase *tcase = tcase_create("text");

	tcase_add_test(tcase, the_prelude_has_every_scalar_primitive);
	tcase_add_test(tcase, the_same_program_gives_the_same_text);
	tcase_add_test(tcase, layers_share_kernels);
	tcase_add_test(tcase, launches_are_constants_of_the_program);
	tcase_add_test(tcase, indices_are_as_wide_as_their_storage);
	tcase_add_test(tcase, small_steps_share_a_launch);
	tcase_add_test(tcase, what_has_no_kernel_is_named);
	tcase_add_test(tcase, a_name_cannot_end_a_comment);
	suite_add_tcase(suite, tcase);
	return suite;
}
