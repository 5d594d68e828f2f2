/*
 * Programs compute what the graphs that they are made of mean: the cases of tests/lower and random
 * graphs, under every choice of passes and of memory plan.
 */
#include "ir/parse.h"
#include "ir/random.h"

#include "tests/lower_check.h"
#include "tests/pass_facts.h"
#include "tests/suites.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_SEEDS = 200, N_FILLS = 3, LEAST_CASES = 18, MAX_PATH = 4096 };

static struct pawl_error err;

#define OK(call) ck_assert_msg((call) == PAWL_OK, "%s", err.text)

static struct pawl_optimize_options
options_of(bool packing, bool spread)
{
	return (struct pawl_optimize_options){
		.facts = packing ? *pawl_test_packing_facts() : *pawl_test_facts(PAWL_PASS_dce),
		.run = {.bisect = -1, .verify_each = true},
		.no_reuse = spread,
		.red_zones = spread,
	};
}

/* All passes, packed or not, dense or spread; and none that is optional. */
static void
check_ways(const struct pawl_graph *graph, const struct pawl_test_inputs *inputs, const char *name)
{
	struct pawl_optimize_options options;
	char what[256];
	int i;

	for (i = 0; i < 4; i++) {
		options = options_of(i & 1, i & 2);
		snprintf(what, sizeof(what), "%.128s, way %d", name, i);
		pawl_test_check_lowering(graph, &options, inputs, what);
		options.run.bisect = 0;
		snprintf(what, sizeof(what), "%.128s, way %d without passes", name, i);
		pawl_test_check_lowering(graph, &options, inputs, what);
	}
}

static void
check_all_but_one(const struct pawl_graph *graph, const struct pawl_test_inputs *inputs, const char *name)
{
	struct pawl_optimize_options options;
	char what[256];
	int i;

	for (i = 0; i < PAWL_N_PASSES; i++) {
		const struct pawl_pass_info *info = pawl_pass_info((enum pawl_pass)i);

		if (info->required)
			continue;
		options = options_of(false, true);
		options.run.skip = info->name;
		snprintf(what, sizeof(what), "%.128s without %s", name, info->name);
		pawl_test_check_lowering(graph, &options, inputs, what);
	}
}

static struct pawl_graph *
parse(const char *path)
{
	static char text[1 << 15];
	struct pawl_graph *graph;
	FILE *file = fopen(path, "rb");
	size_t n;

	ck_assert_msg(file != NULL, "%s cannot be opened", path);
	n = fread(text, 1, sizeof(text), file);
	fclose(file);
	OK(pawl_parse(text, n, path, &graph, NULL, &err));
	return graph;
}

static void
check_file(const char *folder, const char *name)
{
	char path[MAX_PATH + 300];
	struct pawl_graph *graph;
	uint64_t seed;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	graph = parse(path);
	for (seed = 0; seed < N_FILLS; seed++) {
		struct pawl_test_inputs inputs = pawl_test_inputs_of(graph, seed);

		check_ways(graph, &inputs, name);
		if (seed == 0)
			check_all_but_one(graph, &inputs, name);
		pawl_test_inputs_release(&inputs);
	}
	pawl_graph_free(graph);
}

START_TEST(cases)
{
	const char *top = getenv("top_srcdir");
	char folder[MAX_PATH];
	struct dirent *entry;
	DIR *dir;
	int n = 0;

	snprintf(folder, sizeof(folder), "%s/tests/lower", top);
	dir = opendir(folder);
	ck_assert_msg(dir != NULL, "%s cannot be opened", folder);
	while ((entry = readdir(dir))) {
		if (!strstr(entry->d_name, ".pawl"))
			continue;
		check_file(folder, entry->d_name);
		n++;
	}
	closedir(dir);
	ck_assert_int_ge(n, LEAST_CASES);
}
END_TEST

START_TEST(random_graphs)
{
	const char *text = getenv("PAWL_TEST_RANDOM");
	uint64_t seed, n = text ? strtoull(text, NULL, 10) : N_SEEDS;

	for (seed = 0; seed < n; seed++) {
		struct pawl_random_options random = {
			.flavours = PAWL_RANDOM_DEFAULT | (seed % 3 ? 0 : PAWL_RANDOM_SYMBOLIC)};
		struct pawl_optimize_options options = options_of(seed & 1, seed & 2);
		struct pawl_test_inputs inputs;
		struct pawl_graph *graph;
		char what[64];

		/* Every fourth with a part of the passes. */
		if (seed % 4 == 3)
			options.run.bisect = (int64_t)(seed / 4 % 16);
		snprintf(what, sizeof(what), "seed %llu", (unsigned long long)seed);
		OK(pawl_random_graph(seed, &random, &graph, &err));
		inputs = pawl_test_inputs_of(graph, seed);
		pawl_test_check_lowering(graph, &options, &inputs, what);
		pawl_test_inputs_release(&inputs);
		pawl_graph_free(graph);
	}
}
END_TEST

Suite *
pawl_lower_suite(void)
{
	Suite *suite = suite_create("lower");
	TCase *tcase = tcase_create("lower");

	if (getenv("PAWL_TEST_RANDOM"))
		tcase_set_timeout(tcase, 0);
	tcase_add_test(tcase, cases);
	tcase_add_test(tcase, random_graphs);
	suite_add_tcase(suite, tcase);
	return suite;
}
