/* Threads by default: what affinity, quotas of control groups and the environment allow. */
#include "runtime/cpu_count.h"

#include "ir/debug.h"
#include "tests/suites.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A made-up tree of control groups. */
static char root[64];

static void
write_file(const char *path, const char *text)
{
	char full[256];
	FILE *file;

	snprintf(full, sizeof(full), "%s/%s", root, path);
	for (char *slash = full + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(full, 0700);
		*slash = '/';
	}
	file = fopen(full, "w");
	ck_assert_ptr_nonnull(file);
	fputs(text, file);
	fclose(file);
}

static bool
quota(double *cpus)
{
	char self[128], mount[128];

	snprintf(self, sizeof(self), "%s/self", root);
	snprintf(mount, sizeof(mount), "%s/mount", root);
	return pawl_cgroup_cpus(self, mount, cpus);
}

static void
make_root(void)
{
	strcpy(root, "cgroupXXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(root));
}

static void
remove_root(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", root);
	ck_assert_int_eq(system(command), 0);
}

START_TEST(cgroup_v2_takes_the_tightest_level)
{
	double cpus = 0;

	write_file("self", "0::/a/b/c\n");
	ck_assert(!quota(&cpus));
	write_file("mount/a/b/c/cpu.max", "max 100000\n");
	ck_assert(!quota(&cpus));
	write_file("mount/a/b/cpu.max", "350000 100000\n");
	write_file("mount/a/cpu.max", "800000 100000\n");
	ck_assert(quota(&cpus));
	ck_assert_double_eq(cpus, 3.5);
	write_file("mount/cpu.max", "50000 100000\n");
	ck_assert(quota(&cpus));
	ck_assert_double_eq(cpus, 0.5);
}
END_TEST

START_TEST(cgroup_v1)
{
	double cpus = 0;

	write_file("self", "5:memory:/x\n4:cpu,cpuacct:/docker/1\n1:name=systemd:/\n");
	write_file("mount/cpu/docker/1/cpu.cfs_quota_us", "-1\n");
	write_file("mount/cpu/docker/1/cpu.cfs_period_us", "100000\n");
	ck_assert(!quota(&cpus));
	write_file("mount/cpu/docker/cpu.cfs_quota_us", "250000\n");
	write_file("mount/cpu/docker/cpu.cfs_period_us", "100000\n");
	ck_assert(quota(&cpus));
	ck_assert_double_eq(cpus, 2.5);
}
END_TEST

START_TEST(cgroup_nonsense_is_no_quota)
{
	double cpus = 0;

	ck_assert(!quota(&cpus));
	write_file("self", "nonsense\n0::\n0\n::::\n");
	write_file("mount/cpu.max", "x y\n");
	ck_assert(!quota(&cpus));
	write_file("mount/cpu.max", "100 0\n");
	ck_assert(!quota(&cpus));
}
END_TEST

static int
default_threads(char *reason, size_t n)
{
	struct pawl_error failed = {0};
	int threads = 0;

	ck_assert_msg(!pawl_default_threads(reason, n, &threads, &failed), "%s", failed.text);
	return threads;
}

START_TEST(default_threads_say_why)
{
	char reason[160], expected[160];
	cpu_set_t one;
	int n;

	unsetenv("PAWL_THREADS");
	n = default_threads(reason, sizeof(reason));
	ck_assert_int_ge(n, 1);
	ck_assert_int_le(n, pawl_affinity_cpus());
	snprintf(expected, sizeof(expected), "%d thread%s: affinity %d, ", n, n == 1 ? "" : "s",
		pawl_affinity_cpus());
	ck_assert_int_eq(strncmp(reason, expected, strlen(expected)), 0);
	ck_assert_int_eq(pawl_granted_cpus(NULL, 0), n);
	setenv("PAWL_THREADS", "7", 1);
	ck_assert_int_eq(default_threads(reason, sizeof(reason)), 7);
	ck_assert_str_eq(reason, "7 threads: PAWL_THREADS");
	ck_assert_int_eq(pawl_granted_cpus(reason, sizeof(reason)), n);
	snprintf(expected, sizeof(expected), "affinity %d, ", pawl_affinity_cpus());
	ck_assert_int_eq(strncmp(reason, expected, strlen(expected)), 0);
	setenv("PAWL_THREADS", "", 1);
	ck_assert_int_eq(default_threads(NULL, 0), n);
	unsetenv("PAWL_THREADS");
	CPU_ZERO(&one);
	CPU_SET((size_t)sched_getcpu(), &one);
	if (sched_setaffinity(0, sizeof(one), &one) == 0) {
		ck_assert_int_eq(default_threads(reason, sizeof(reason)), 1);
		ck_assert_int_eq(strncmp(reason, "1 thread: affinity 1, ", 22), 0);
	}
}
END_TEST

START_TEST(a_thread_count_that_is_none_is_refused)
{
	static const char *const bad[] = {
		"0", "-1", "2x", "x", "1.5", "1025", "99999999999999999999", " "};
	struct pawl_error failed = {0};
	char text[96];
	int threads;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		setenv("PAWL_THREADS", bad[i], 1);
		ck_assert_int_eq(pawl_default_threads(NULL, 0, &threads, &failed),
			PAWL_INVALID_ARGUMENT);
		snprintf(text, sizeof(text), "PAWL_THREADS: '%s' is no whole number of 1 to 1024",
			bad[i]);
		ck_assert_str_eq(failed.text, text);
	}
	setenv("PAWL_THREADS", "1024", 1);
	ck_assert_int_eq(default_threads(NULL, 0), 1024);
	unsetenv("PAWL_THREADS");
}
END_TEST

START_TEST(environment)
{
	int64_t value = 9;

	setenv("PAWL_DEBUG", "verify,time", 1);
	ck_assert(pawl_env_lists(PAWL_ENV_DEBUG, "verify"));
	ck_assert(pawl_env_lists(PAWL_ENV_DEBUG, "time"));
	ck_assert(!pawl_env_lists(PAWL_ENV_DEBUG, "tim"));
	ck_assert(!pawl_env_lists(PAWL_ENV_DEBUG, "roundtrip"));
	unsetenv("PAWL_DEBUG");
	ck_assert(!pawl_env_lists(PAWL_ENV_DEBUG, "verify"));
	setenv("PAWL_BISECT", "", 1);
	ck_assert_ptr_null(pawl_env(PAWL_ENV_BISECT));
	ck_assert(!pawl_env_int(PAWL_ENV_BISECT, &value));
	setenv("PAWL_BISECT", "99999999999999999999", 1);
	ck_assert(!pawl_env_int(PAWL_ENV_BISECT, &value));
	ck_assert_int_eq(value, 9);
	setenv("PAWL_BISECT", "12", 1);
	ck_assert(pawl_env_int(PAWL_ENV_BISECT, &value));
	ck_assert_int_eq(value, 12);
}
END_TEST

Suite *
pawl_cpu_count_suite(void)
{
	Suite *suite = suite_create("cpu_count");
	TCase *tcase = tcase_create("cpu_count");

	tcase_add_checked_fixture(tcase, make_root, remove_root);
	tcase_add_test(tcase, cgroup_v2_takes_the_tightest_level);
	tcase_add_test(tcase, cgroup_v1);
	tcase_add_test(tcase, cgroup_nonsense_is_no_quota);
	tcase_add_test(tcase, default_threads_say_why);
	tcase_add_test(tcase, a_thread_count_that_is_none_is_refused);
	tcase_add_test(tcase, environment);
	suite_add_tcase(suite, tcase);
	return suite;
}
