/*
 * check-cuda --nvrtc: says which NVRTC there is; fails without one.
 * check-cuda [--bless] TABLE: compiles every kernel of the cases but the random ones with NVRTC for
 * every architecture, in two processes, and compares what it takes with the table: no stack, no
 * spills, at most the registers and exactly the shared memory of its row.  --bless writes rows for
 * these kernels, whose registers are what room_for_registers allows, or what the table allowed
 * already: blessed by one version of NVRTC after the other it holds for all of them, and without
 * the file it is made anew.
 *
 * The last line is "N passed, N failed, N skipped": kernels times architectures.
 */
#include "tests/cuda/cases.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "codegen/cuda/cuda_emit.h"
#include "plugins/cuda_nvrtc.h"
#include "plugins/cuda_report.h"

enum {
	N_PROCESSES = 2,
	BATCH = 20, /* kernels of a source */
	MOST_KERNELS = 1024,
	SHARED_MOST = 48 << 10
};

static const char *const archs[] = {
	"sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"};

enum { N_ARCHS = sizeof(archs) / sizeof(*archs) };

struct kernel {
	char name[80];
	char *body;
	struct pawl_cuda_resources is[N_ARCHS];
	int registers[N_ARCHS], shared; /* of the table; 0: not there */
};

static struct kernel kernels[MOST_KERNELS];
static int n_kernels;

static void
add_kernels(const struct pawl_cuda_case *c)
{
	int i, j;

	for (i = 0; i < c->cuda.n_kernels; i++) {
		const struct pawl_cuda_kernel *k = &c->cuda.kernels[i];
		char *body = strndup(c->cuda.sources[k->unit].bytes + k->at, k->n);

		for (j = 0; j < n_kernels && strcmp(kernels[j].body, body); j++)
			continue;
		if (j < n_kernels) {
			free(body);
			continue;
		}
		kernels[n_kernels].body = body;
		snprintf(kernels[n_kernels].name, sizeof(kernels[0].name), "%s_%s", c->name,
			k->name);
		n_kernels++;
	}
}

/* A Check test, since making the cases asserts. */
START_TEST(collect)
{
	struct pawl_cuda_case c;
	int i;

	for (i = 0; i < PAWL_CUDA_RANDOM; i++) {
		pawl_cuda_case_open(i, &c);
		add_kernels(&c);
		pawl_cuda_case_close(&c);
	}
}
END_TEST

static bool
collect_all(void)
{
	Suite *suite = suite_create("check-cuda");
	TCase *tcase = tcase_create("collect");
	SRunner *runner;
	int failed;

	tcase_add_test(tcase, collect);
	tcase_set_timeout(tcase, 0);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_set_fork_status(runner, CK_NOFORK);
	/* By name: the environment may ask for other suites. */
	srunner_run(runner, "check-cuda", "collect", CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return !failed;
}

/* Kernels first .. first + BATCH - 1 as one source. */
static void
write_source(struct pawl_cuda_text *out, int first)
{
	int dtype, i;

	pawl_cuda_text_clear(out);
	pawl_cuda_prelude(out);
	for (dtype = 0; dtype < PAWL_N_DTYPES; dtype++) {
		if (pawl_dtype_info((enum pawl_dtype)dtype)->kind == PAWL_KIND_QUANT)
			pawl_cuda_unpacker(out, (enum pawl_dtype)dtype);
	}
	for (i = first; i < n_kernels && i < first + BATCH; i++)
		pawl_cuda_text_print(out, "\nPAWL_KERNEL(%s, %d)\n{\n%s}\n", kernels[i].name,
			PAWL_CUDA_THREADS, kernels[i].body);
}

/* A line for each kernel: number, architecture, resources. */
static int
compile(const struct pawl_nvrtc *nvrtc, const char *source, int arch, int first, FILE *out)
{
	const struct pawl_nvrtc_job job = {
		.source = source, .arch = archs[arch], .deadline_s = 300};
	struct pawl_nvrtc_result result;
	struct pawl_error err;
	enum pawl_status status = pawl_nvrtc_compile(nvrtc, &job, &result, &err);
	int i;

	if (status)
		fprintf(stderr, "check-cuda: %s, kernels from %s on: %s\n%s\n", archs[arch],
			kernels[first].name, err.text, result.log ? result.log : "");
	else if (result.log && strstr(result.log, "warning"))
		fprintf(stderr, "check-cuda: %s\n", result.log);
	for (i = first; !status && i < n_kernels && i < first + BATCH; i++) {
		struct pawl_cuda_resources r;

		pawl_cuda_report_resources(result.log, kernels[i].name, &r);
		fprintf(out, "%d %d %d %d %d %d %d\n", i, arch, r.registers, r.shared_bytes,
			r.stack_bytes, r.spill_store_bytes, r.spill_load_bytes);
	}
	pawl_nvrtc_result_release(&result);
	return status ? 1 : 0;
}

/* Every second source; the exit status says whether all of them compile. */
static void
work(int number, int fd)
{
	FILE *out = fdopen(fd, "w");
	char path[PAWL_NVRTC_PATH];
	struct pawl_cuda_text source;
	struct pawl_nvrtc *nvrtc;
	struct pawl_error err;
	int first, arch, n = 0, failed = 0;

	if (pawl_nvrtc_find(path, &err) || pawl_nvrtc_open(path, &nvrtc, &err)) {
		fprintf(stderr, "check-cuda: %s\n", err.text);
		_exit(EXIT_FAILURE);
	}
	pawl_cuda_text_init(&source);
	for (first = 0; first < n_kernels; first += BATCH) {
		write_source(&source, first);
		for (arch = 0; arch < N_ARCHS; arch++) {
			if (n++ % N_PROCESSES == number)
				failed |= compile(nvrtc, source.bytes, arch, first, out);
		}
	}
	failed |= fclose(out);
	_exit(failed ? EXIT_FAILURE : EXIT_SUCCESS);
}

/* False when a process failed. */
static bool
compile_all(void)
{
	FILE *from[N_PROCESSES];
	pid_t pids[N_PROCESSES];
	bool ok = true;
	int p, i, arch, status;

	for (p = 0; p < N_PROCESSES; p++) {
		int ends[2];

		if (pipe(ends) || (pids[p] = fork()) < 0)
			return false;
		if (!pids[p]) {
			close(ends[0]);
			work(p, ends[1]);
		}
		close(ends[1]);
		from[p] = fdopen(ends[0], "r");
	}
	for (p = 0; p < N_PROCESSES; p++) {
		struct pawl_cuda_resources r;

		while (fscanf(from[p], "%d %d %d %d %d %d %d", &i, &arch, &r.registers,
			       &r.shared_bytes, &r.stack_bytes, &r.spill_store_bytes,
			       &r.spill_load_bytes) == 7)
			kernels[i].is[arch] = r;
		fclose(from[p]);
		ok = waitpid(pids[p], &status, 0) == pids[p] && !status && ok;
	}
	return ok;
}

/*
 * NVRTC's choice depends on where its memory lies: of one source it makes, in one process of some
 * five, a kernel with two registers more or fewer.  Devices hand out a thread's registers by
 * eights, so that within the last eight growth costs nothing.
 */
static int
room_for_registers(int measured)
{
	enum { SLACK = 4, UNIT = 8 };

	return (measured + SLACK + UNIT - 1) / UNIT * UNIT;
}

static void
raise_bounds(void)
{
	int i, a;

	for (i = 0; i < n_kernels; i++) {
		struct kernel *k = &kernels[i];

		for (a = 0; a < N_ARCHS; a++) {
			int room = room_for_registers(k->is[a].registers);

			if (k->registers[a] < room)
				k->registers[a] = room;
		}
		k->shared = k->is->shared_bytes;
	}
}

static bool
write_table(const char *path)
{
	FILE *file = fopen(path, "w");
	int i, a;

	if (!file)
		return false;
	fprintf(file,
		"# What kernels may take: registers by architecture, bytes of shared memory.\n"
		"# Registers are a bound: the most that NVRTC 13.0, 13.2 or 13.5 took and 4 more,\n"
		"# since one version's choice varies by 2 between its processes, rounded up to 8,\n"
		"# the unit in which devices hand them out.  Shared memory is exact; no stack, no\n"
		"# spills.\n"
		"# Written by make bless-cuda; read by make check-cuda.\n#%-39s",
		" kernel");
	for (a = 0; a < N_ARCHS; a++)
		fprintf(file, " %6s", archs[a]);
	fprintf(file, " shared\n");
	for (i = 0; i < n_kernels; i++) {
		fprintf(file, "%-40s", kernels[i].name);
		for (a = 0; a < N_ARCHS; a++)
			fprintf(file, " %6d", kernels[i].registers[a]);
		fprintf(file, " %6d\n", kernels[i].shared);
	}
	return !fclose(file);
}

static bool
read_table(const char *path)
{
	FILE *file = fopen(path, "r");
	char line[256], name[80];
	int i, a, at, n;

	if (!file)
		return false;
	while (fgets(line, sizeof(line), file)) {
		if (*line == '#' || sscanf(line, "%79s%n", name, &at) != 1)
			continue;
		for (i = 0; i < n_kernels && strcmp(kernels[i].name, name); i++)
			continue;
		if (i == n_kernels) {
			fprintf(stderr, "check-cuda: %s has a row and no kernel\n", name);
			continue;
		}
		for (a = 0; a <= N_ARCHS; a++, at += n) {
			n = 0;
			sscanf(line + at, "%d%n",
				a < N_ARCHS ? &kernels[i].registers[a] : &kernels[i].shared, &n);
		}
	}
	fclose(file);
	return true;
}

static bool
is_within(const struct kernel *k, int arch)
{
	const struct pawl_cuda_resources *r = &k->is[arch];
	bool is_lean = r->registers > 0 && !r->stack_bytes && !r->spill_store_bytes &&
		       !r->spill_load_bytes && r->shared_bytes <= SHARED_MOST;

	if (is_lean && r->registers <= k->registers[arch] && r->shared_bytes == k->shared)
		return true;
	fprintf(stderr,
		"check-cuda: %s on %s takes %d registers (%d), %d bytes of shared memory (%d), "
		"%d of stack, spills %d and %d\n",
		k->name, archs[arch], r->registers, k->registers[arch], r->shared_bytes, k->shared,
		r->stack_bytes, r->spill_store_bytes, r->spill_load_bytes);
	return false;
}

static int
show_nvrtc(void)
{
	char path[PAWL_NVRTC_PATH];
	struct pawl_nvrtc *nvrtc;
	struct pawl_error err;
	int major, minor;

	if (pawl_nvrtc_find(path, &err) || pawl_nvrtc_open(path, &nvrtc, &err)) {
		printf("%s\n", err.text);
		return EXIT_FAILURE;
	}
	pawl_nvrtc_version(nvrtc, &major, &minor);
	printf("NVRTC %d.%d, %s\n", major, minor, path);
	pawl_nvrtc_close(nvrtc);
	return EXIT_SUCCESS;
}

int
main(int argc, char **argv)
{
	bool bless = argc == 3 && !strcmp(argv[1], "--bless");
	const char *table = argv[argc - 1];
	int passed = 0, failed = 0, i, a;

	if (argc == 2 && !strcmp(table, "--nvrtc"))
		return show_nvrtc();
	if (argc != (bless ? 3 : 2))
		return EXIT_FAILURE;
	if (!collect_all())
		return EXIT_FAILURE;
	if (!compile_all())
		failed++;
	if (!read_table(table) && !bless)
		fprintf(stderr, "check-cuda: no table %s\n", table);
	if (bless && !failed) {
		raise_bounds();
		failed += !write_table(table);
	}
	for (i = 0; i < n_kernels; i++) {
		for (a = 0; a < N_ARCHS; a++) {
			if (is_within(&kernels[i], a))
				passed++;
			else
				failed++;
		}
	}
	printf("%d kernels, %d architectures\n%d passed, %d failed, 0 skipped\n", n_kernels,
		N_ARCHS, passed, failed);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
