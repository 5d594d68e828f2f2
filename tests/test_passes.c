/*
 * The cases of tests/passes/PASS/CASE.before.pawl: the one pass makes exactly CASE.after.pawl of
 * it, and both compute the same.  A case whose text says "Must not fire" is left as it is.
 * `make bless` writes the .after files anew.
 */
#include "ir/parse.h"
#include "ir/print.h"
#include "passes/lower.h"
#include "passes/plan_memory.h"
#include "passes/run.h"

#include "tests/graph_run.h"
#include "tests/pass_facts.h"
#include "tests/suites.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LEAST_CASES = 5, LEAST_FIRED = 2, MAX_CASES = 64, MAX_PATH = 4096, SEED = 7 };

static struct pawl_error err;

#define OK(call) ck_assert_msg((call) == PAWL_OK, "%s", err.text)

static void
folder_of(const char *pass, char *path, size_t n)
{
	const char *top = getenv("top_srcdir");

	snprintf(path, n, "%s/tests/passes/%s", top, pass);
}

static char *
read_file(const char *path, size_t *n)
{
	FILE *file = fopen(path, "rb");
	char *text = malloc(1 << 16);

	ck_assert_msg(file != NULL, "%s cannot be opened", path);
	ck_assert_ptr_nonnull(text);
	*n = fread(text, 1, (1 << 16) - 1, file);
	text[*n] = 0;
	fclose(file);
	return text;
}

static void
write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "wb");

	ck_assert_msg(file != NULL, "%s cannot be written", path);
	ck_assert_int_ge(fputs(text, file), 0);
	ck_assert_int_eq(fclose(file), 0);
}

/* What an element may move by, for the passes that round; consts are within [-1, 1]. */
static double
bound_of(enum pawl_pass pass)
{
	if (pass == PAWL_PASS_fuse_attention)
		return 1e-5;
	return pass == PAWL_PASS_quantize_activations ? 5e-3 : 0;
}

static void
check_near(const struct pawl_test_results *a, const struct pawl_test_results *b, double bound,
	const char *what)
{
	int64_t j;
	int i;

	ck_assert_int_eq(a->n, b->n);
	for (i = 0; i < a->n; i++) {
		ck_assert_int_eq(a->values[i].n, b->values[i].n);
		for (j = 0; j < a->values[i].n; j++) {
			double x = pawl_test_value_at(&a->values[i], j);
			double y = pawl_test_value_at(&b->values[i], j);

			ck_assert_msg(x == y || fabs(x - y) <= bound, "%s: value %d [%d] is %.9g and %.9g",
				what, i, (int)j, x, y);
		}
	}
}

/* A fused graph also runs as a program. */
static void
check_program(const struct pawl_graph *graph, const struct pawl_test_inputs *inputs,
	const struct pawl_test_results *want, const char *what)
{
	struct pawl_program *program;
	struct pawl_test_results got;

	OK(pawl_lower(graph, &program, &err));
	OK(pawl_plan_memory(program, true, true, &err));
	OK(pawl_check_memory(program, &err));
	got = pawl_test_run_program(program, inputs);
	pawl_test_same_results(want, &got, what);
	pawl_test_results_release(&got);
	pawl_program_free(program);
}

static void
check_meaning(const struct pawl_graph *before, const struct pawl_graph *after, enum pawl_pass pass,
	const char *what)
{
	struct pawl_test_inputs inputs = pawl_test_inputs_of(before, SEED);
	struct pawl_test_results a = pawl_test_run_graph(before, &inputs, PAWL_INTERP_PLANNED);
	struct pawl_test_results b = pawl_test_run_graph(after, &inputs, PAWL_INTERP_PLANNED);

	if (pawl_pass_info(pass)->rounds)
		check_near(&a, &b, bound_of(pass), what);
	else
		pawl_test_same_results(&a, &b, what);
	if (after->stage == PAWL_STAGE_FUSED)
		check_program(after, &inputs, &b, what);
	pawl_test_results_release(&a);
	pawl_test_results_release(&b);
	pawl_test_inputs_release(&inputs);
}

/* True when the pass changed the graph. */
static bool
check_case(enum pawl_pass pass, const char *folder, const char *name)
{
	struct pawl_run_options options = {.bisect = -1, .verify_each = true};
	struct pawl_pass_report report;
	struct pawl_graph *graph, *before;
	char path[MAX_PATH + 160], *text, *printed;
	bool must_not_fire;
	size_t n;

	snprintf(path, sizeof(path), "%.4096s/%.128s.before.pawl", folder, name);
	text = read_file(path, &n);
	must_not_fire = strstr(text, "Must not fire") != NULL;
	OK(pawl_parse(text, n, path, &before, NULL, &err));
	free(text);
	OK(pawl_graph_clone(before, &graph, &err));
	ck_assert_msg(pawl_passes_run(graph, &pass, 1, pawl_test_facts(pass), &options, &report, &err) ==
			PAWL_OK, "%s: %s", path, err.text);
	ck_assert_msg(report.n_changes > 0 || must_not_fire,
		"%s: the pass changes nothing; where that is right, say \"Must not fire\" in a comment", path);
	ck_assert_msg(report.n_changes == 0 || !must_not_fire,
		"%s: the text says \"Must not fire\", but the pass makes %d changes", path,
		report.n_changes);
	printed = pawl_print(graph, NULL);
	ck_assert_ptr_nonnull(printed);
	check_meaning(before, graph, pass, path);
	snprintf(path, sizeof(path), "%.4096s/%.128s.after.pawl", folder, name);
	if (getenv("PAWL_TEST_BLESS"))
		write_file(path, printed);
	ck_assert_msg(access(path, F_OK) == 0,
		"%s is missing; `make bless` writes it.  The pass makes\n%s", path, printed);
	text = read_file(path, &n);
	ck_assert_msg(!strcmp(printed, text),
		"%s differs; where this is right, `make bless` writes it anew.  The pass makes\n%s", path,
		printed);
	free(text);
	free(printed);
	pawl_graph_free(graph);
	pawl_graph_free(before);
	return report.n_changes > 0;
}

static int
by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

static int
list_cases(const char *folder, char (*names)[128])
{
	static const char suffix[] = ".before.pawl";
	DIR *dir = opendir(folder);
	struct dirent *entry;
	int n = 0;

	ck_assert_msg(dir != NULL, "%s cannot be opened: a pass has its cases there", folder);
	while ((entry = readdir(dir))) {
		size_t length = strlen(entry->d_name);

		if (length < sizeof(suffix) ||
			strcmp(entry->d_name + length - (sizeof(suffix) - 1), suffix))
			continue;
		ck_assert_int_lt(n, MAX_CASES);
		snprintf(names[n++], 128, "%.*s", (int)(length - (sizeof(suffix) - 1)), entry->d_name);
	}
	closedir(dir);
	qsort(names, (size_t)n, 128, by_name);
	return n;
}

START_TEST(cases)
{
	enum pawl_pass pass = (enum pawl_pass)_i;
	const char *name = pawl_pass_info(pass)->name;
	char names[MAX_CASES][128], folder[MAX_PATH];
	int i, n, n_fired = 0;

	folder_of(name, folder, sizeof(folder));
	n = list_cases(folder, names);
	for (i = 0; i < n; i++)
		n_fired += check_case(pass, folder, names[i]);
	ck_assert_msg(n >= LEAST_CASES, "%s has %d cases, %d are needed", folder, n, LEAST_CASES);
	ck_assert_msg(n_fired >= LEAST_FIRED, "%s: the pass fires in %d cases, %d are needed", folder,
		n_fired, LEAST_FIRED);
	ck_assert_msg(n_fired < n,
		"%s: no case says \"Must not fire\", which shows what the pass must not touch", folder);
}
END_TEST

Suite *
pawl_passes_suite(void)
{
	Suite *suite = suite_create("passes");
	TCase *tcase = tcase_create("passes");

	tcase_add_loop_test(tcase, cases, 0, PAWL_N_PASSES);
	suite_add_tcase(suite, tcase);
	return suite;
}
