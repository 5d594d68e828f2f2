/*
 * emit-cuda FILE: writes the kernels of all cases as one C file for tests/cuda/kernel_host.h, with
 * a table of them.  Runs as a Check test, since making the cases asserts.
 */
#include "tests/cuda/cases.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/cuda/cuda_emit.h"

static const char *path;

static void
write_case(FILE *file, const struct pawl_cuda_case *c)
{
	int i;

	fprintf(file,
		"#define PAWL_CASE %s\n#undef PAWL_SHARED_SECTION\n"
		"#define PAWL_SHARED_SECTION \"pawl_shared_%s\"\n"
		"extern char __start_pawl_shared_%s[] __attribute__((weak));\n"
		"extern char __stop_pawl_shared_%s[] __attribute__((weak));\n",
		c->name, c->name, c->name, c->name);
	for (i = 0; i < c->cuda.n_units; i++)
		fputs(c->cuda.sources[i].bytes, file);
	fprintf(file, "#undef PAWL_CASE\n\n");
	fprintf(file, "static const struct pawl_cuda_compiled %s_kernels[] = {\n", c->name);
	for (i = 0; i < c->cuda.n_kernels; i++)
		fprintf(file, "\t{\"%s\", %s_%s},\n", c->cuda.kernels[i].name, c->name,
			c->cuda.kernels[i].name);
	fprintf(file, "};\n\n");
}

/* The body of a kernel with `to`, as long, in place of what is at `at`. */
static void
write_spoiled(FILE *file, const struct pawl_cuda_case *c, int kernel, const char *at,
	const char *to, int number)
{
	const struct pawl_cuda_kernel *k = &c->cuda.kernels[kernel];
	const char *body = c->cuda.sources[k->unit].bytes + k->at;

	fprintf(file, "PAWL_KERNEL(k%d, %d)\n{\n%.*s%s%.*s}\n", number, k->threads,
		(int)(at - body), body, to, (int)(body + k->n - at - (int)strlen(to)),
		at + strlen(to));
}

/* Each barrier but those at the end of a loop, which keep units apart that may not meet here. */
static int
write_all_spoiled(FILE *file, const struct pawl_cuda_case *c, FILE *table)
{
	static const char sync[] = "PAWL_SYNC();", none[] = "           ;", mask[] = " + 1 : v";
	int n = 0, i;

	fprintf(file, "#define PAWL_CASE spoiled\n#undef PAWL_SHARED_SECTION\n"
		      "#define PAWL_SHARED_SECTION \"pawl_shared\"\n");
	for (i = 0; i < c->cuda.n_kernels; i++) {
		const struct pawl_cuda_kernel *k = &c->cuda.kernels[i];
		const char *body = c->cuda.sources[k->unit].bytes + k->at, *at = body;

		while ((at = strstr(at, sync)) && at < body + k->n) {
			if (at[sizeof(sync) + strspn(at + sizeof(sync), "\t")] != '}') {
				write_spoiled(file, c, i, at, none, n);
				fprintf(table, "\t{%d, \"barrier %d\", spoiled_k%d},\n", i, n, n);
				n++;
			}
			at++;
		}
		at = strstr(body, mask);
		if (at && at < body + k->n) {
			write_spoiled(file, c, i, at, " + 0 : v", n);
			fprintf(table, "\t{%d, \"mask\", spoiled_k%d},\n", i, n);
			n++;
		}
	}
	fprintf(file, "#undef PAWL_CASE\n\n");
	return n;
}

static void
write_spoiled_case(FILE *file)
{
	struct pawl_cuda_case c;
	char *rows;
	size_t n_rows;
	FILE *table = open_memstream(&rows, &n_rows);
	int n;

	ck_assert_ptr_nonnull(table);
	pawl_cuda_case_open(PAWL_CUDA_SPOILED, &c);
	n = write_all_spoiled(file, &c, table);
	fclose(table);
	fprintf(file, "const struct pawl_cuda_spoiled pawl_cuda_spoiled[] = {\n%s};\n\n", rows);
	fprintf(file, "const int pawl_cuda_n_spoiled = %d;\n", n);
	free(rows);
	pawl_cuda_case_close(&c);
}

START_TEST(emit)
{
	struct pawl_cuda_case c;
	struct pawl_cuda_text prelude;
	FILE *file = fopen(path, "w");
	int n_supported = 0, i;

	ck_assert_ptr_nonnull(file);
	fprintf(file, "#include \"tests/cuda/kernel_host.h\"\n#include \"tests/cuda/cases.h\"\n\n");
	pawl_cuda_text_init(&prelude);
	pawl_cuda_prelude(&prelude);
	fputs(prelude.bytes, file);
	pawl_cuda_text_release(&prelude);
	for (i = 0; i < PAWL_CUDA_N_CASES; i++) {
		pawl_cuda_case_open(i, &c);
		if (c.is_supported)
			write_case(file, &c);
		pawl_cuda_case_close(&c);
	}
	fprintf(file, "const struct pawl_cuda_kernels pawl_cuda_kernels[] = {\n");
	for (i = 0; i < PAWL_CUDA_N_CASES; i++) {
		pawl_cuda_case_open(i, &c);
		n_supported += c.is_supported;
		if (c.is_supported)
			fprintf(file,
				"\t{\"%s\", %d, %s_kernels, __start_pawl_shared_%s, "
				"__stop_pawl_shared_%s},\n",
				c.name, c.cuda.n_kernels, c.name, c.name, c.name);
		pawl_cuda_case_close(&c);
	}
	fprintf(file, "};\n\nconst int pawl_cuda_n_kernels = %d;\n", n_supported);
	write_spoiled_case(file);
	ck_assert_int_eq(fclose(file), 0);
}
END_TEST

int
main(int argc, char **argv)
{
	Suite *suite = suite_create("emit-cuda");
	TCase *tcase = tcase_create("emit");
	SRunner *runner;
	int failed;

	if (argc != 2)
		return EXIT_FAILURE;
	path = argv[1];
	tcase_add_test(tcase, emit);
	tcase_set_timeout(tcase, 0);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_set_fork_status(runner, CK_NOFORK);
	/* By name: the environment may ask for other suites. */
	srunner_run(runner, "emit-cuda", "emit", CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
