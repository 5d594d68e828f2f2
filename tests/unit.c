/*
 * Runs every Check suite, each in a process of its own, as many side by side as there are CPUs (at
 * most MAX_JOBS), and prints what a suite wrote when it ends.  The environment steers it as usual
 * with Check: CK_RUN_SUITE (a name of tests/suites.def), CK_RUN_CASE, CK_FORK=no, CK_VERBOSITY,
 * CK_DEFAULT_TIMEOUT; one suite, or with CK_FORK=no all, run in this process.  Tests find the
 * trees by top_srcdir, top_builddir and PAWL_PLUGIN_PATH, which are those of this build where they
 * are not set.  The last line is "N passed, N failed, N skipped".
 */
#include "runtime/cpu_count.h"
#include "tests/skip.h"
#include "tests/suites.h"

#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct {
	const char *name;
	Suite *(*make)(void);
} suites[] = {
#define PAWL_SUITE(name) {#name, pawl_##name##_suite},
#include "tests/suites.def"
};

enum { N_SUITES = sizeof(suites) / sizeof(suites[0]), MAX_JOBS = 4 };

struct tally {
	int run, failed;
};

struct job {
	pid_t pid;
	FILE *output;
};

static bool
is_suite(const char *name)
{
	for (size_t i = 0; i < N_SUITES; i++) {
		if (!strcmp(suites[i].name, name))
			return true;
	}
	return false;
}

static int
refuse_suite(const char *name)
{
	fprintf(stderr, "CK_RUN_SUITE: '%s' is none of", name);
	for (size_t i = 0; i < N_SUITES; i++)
		fprintf(stderr, " %s", suites[i].name);
	fprintf(stderr, "\n");
	return EXIT_FAILURE;
}

static void
die(const char *what)
{
	perror(what);
	exit(EXIT_FAILURE);
}

static struct tally
run_suites(size_t first, size_t end)
{
	SRunner *runner = srunner_create(NULL);
	struct tally tally;

	for (size_t i = first; i < end; i++)
		srunner_add_suite(runner, suites[i].make());
	srunner_run_all(runner, CK_ENV);
	tally = (struct tally){srunner_ntests_run(runner), srunner_ntests_failed(runner)};
	srunner_free(runner);
	return tally;
}

static void
start(struct job *job, size_t suite, struct tally *tally)
{
	job->output = tmpfile();
	if (!job->output)
		die("tmpfile");
	fflush(NULL);
	job->pid = fork();
	if (job->pid < 0)
		die("fork");
	if (job->pid)
		return;
	if (dup2(fileno(job->output), 1) < 0 || dup2(fileno(job->output), 2) < 0)
		die("dup2");
	*tally = run_suites(suite, suite + 1);
	exit(EXIT_SUCCESS);
}

/* Waits for one of the jobs; the suite that has ended. */
static size_t
await(struct job *jobs, int *status)
{
	pid_t pid = wait(status);
	char bytes[4096];
	size_t suite = 0, n;

	if (pid < 0)
		die("wait");
	while (jobs[suite].pid != pid)
		suite++;
	rewind(jobs[suite].output);
	while ((n = fread(bytes, 1, sizeof(bytes), jobs[suite].output)) > 0)
		fwrite(bytes, 1, n, stdout);
	fclose(jobs[suite].output);
	return suite;
}

static struct tally
run_side_by_side(int n_jobs)
{
	static struct job jobs[N_SUITES];
	struct tally sum = {0}, *tallies = mmap(NULL, N_SUITES * sizeof(*tallies),
					PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	size_t next = 0;

	if (tallies == MAP_FAILED)
		die("mmap");
	for (size_t done = 0; done < N_SUITES; done++) {
		size_t suite;
		int status;

		for (; next < N_SUITES && next < done + (size_t)n_jobs; next++)
			start(&jobs[next], next, &tallies[next]);
		suite = await(jobs, &status);
		sum.run += tallies[suite].run;
		sum.failed += tallies[suite].failed;
		if (status) {
			printf("suite %s: ended with wait status %d\n", suites[suite].name, status);
			sum.run++;
			sum.failed++;
		}
	}
	munmap(tallies, N_SUITES * sizeof(*tallies));
	return sum;
}

static int
count_jobs(const char *only)
{
	const char *fork_mode = getenv("CK_FORK");
	int n = pawl_affinity_cpus();

	if (only || (fork_mode && !strcmp(fork_mode, "no")))
		return 1;
	return n < MAX_JOBS ? n : MAX_JOBS;
}

int
main(void)
{
	const char *only = getenv("CK_RUN_SUITE");
	struct tally tally;
	int skipped, n_jobs = count_jobs(only);

	if (only && !is_suite(only))
		return refuse_suite(only);
	setenv("CK_DEFAULT_TIMEOUT", "120", 0);
	setenv("top_srcdir", PAWL_SOURCE_DIR, 0);
	setenv("top_builddir", PAWL_BUILD_DIR, 0);
	setenv("PAWL_PLUGIN_PATH", PAWL_BUILD_DIR "/plugins/.libs", 0);
	/* Tests have as many threads as they ask for, on however busy a machine. */
	setenv("PAWL_DEBUG", "all-threads", 0);
	/* Tests see the compiler at work, whatever ran before. */
	setenv("PAWL_KERNEL_CACHE", "off", 1);
	setvbuf(stdout, NULL, _IOLBF, 0);
	pawl_skip_init();
	tally = n_jobs > 1 ? run_side_by_side(n_jobs) : run_suites(0, N_SUITES);
	skipped = pawl_skipped();
	printf("%d passed, %d failed, %d skipped\n", tally.run - tally.failed - skipped, tally.failed,
		skipped);
	return tally.run > 0 && tally.failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
