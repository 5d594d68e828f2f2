#include "runtime/cpu_count.h"

#include "ir/debug.h"
#include "runtime/pool.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CPUS = 1 << 16, PATH_BYTES = 4096, REASON_BYTES = 96 };

int
pawl_affinity_cpus(void)
{
	for (int n = 1024; n <= MAX_CPUS; n *= 2) {
		size_t bytes = CPU_ALLOC_SIZE(n);
		cpu_set_t *set = CPU_ALLOC(n);
		int count = 0;

		if (!set)
			return 1;
		if (!sched_getaffinity(0, bytes, set))
			count = CPU_COUNT_S(bytes, set);
		CPU_FREE(set);
		if (count > 0)
			return count;
		if (errno != EINVAL)
			return 1;
	}
	return 1;
}

/* The first line of a small file without its newline; false when it cannot be read. */
static bool
read_line(const char *folder, const char *name, char *out, size_t n)
{
	char path[PATH_BYTES + 64];
	FILE *file;
	bool ok;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", folder, name) >= sizeof(path))
		return false;
	file = fopen(path, "re");
	if (!file)
		return false;
	ok = fgets(out, (int)n, file) != NULL;
	fclose(file);
	if (ok)
		out[strcspn(out, "\n")] = '\0';
	return ok;
}

/* "QUOTA PERIOD" in microseconds; "max" or a negative quota is none. */
static bool
parse_quota(const char *quota, const char *period, double *cpus)
{
	char *end;
	long long q = strtoll(quota, &end, 10), p;

	if (end == quota || q <= 0)
		return false;
	p = strtoll(period, &end, 10);
	if (end == period || p <= 0)
		return false;
	*cpus = (double)q / (double)p;
	return true;
}

static bool
group_quota(const char *folder, bool is_v2, double *cpus)
{
	char quota[64], period[64], *space;

	if (!is_v2)
		return read_line(folder, "cpu.cfs_quota_us", quota, sizeof(quota)) &&
		       read_line(folder, "cpu.cfs_period_us", period, sizeof(period)) &&
		       parse_quota(quota, period, cpus);
	if (!read_line(folder, "cpu.max", quota, sizeof(quota)))
		return false;
	space = strchr(quota, ' ');
	return space && parse_quota(quota, space + 1, cpus);
}

/* Lowers *cpus to the tightest quota of the group and all groups above it. */
static void
walk_up(const char *mount, const char *controller, const char *group, double *cpus)
{
	char folder[PATH_BYTES];
	int root = snprintf(folder, sizeof(folder), "%s%s", mount, controller);
	int length =
		root < 0 ? -1 : snprintf(folder + root, sizeof(folder) - (size_t)root, "%s", group);

	if (length < 0 || (size_t)(root + length) >= sizeof(folder))
		return;
	for (;;) {
		double quota;
		char *slash;

		if (group_quota(folder, !*controller, &quota) && quota < *cpus)
			*cpus = quota;
		slash = strrchr(folder + root, '/');
		if (!slash)
			return;
		*slash = '\0';
	}
}

/* Whether `word` is one of the comma-separated words. */
static bool
lists(const char *words, const char *word)
{
	size_t n = strlen(word);

	for (const char *at = words; *at;) {
		size_t length = strcspn(at, ",");

		if (length == n && !memcmp(at, word, n))
			return true;
		at += length + (at[length] == ',');
	}
	return false;
}

bool
pawl_cgroup_cpus(const char *self, const char *mount, double *cpus)
{
	char line[PATH_BYTES];
	double least = MAX_CPUS;
	FILE *file = fopen(self, "re");

	if (!file)
		return false;
	/* A line is "id:controllers:/group"; no controllers means v2. */
	while (fgets(line, sizeof(line), file)) {
		char *controllers = strchr(line, ':'), *group;

		line[strcspn(line, "\n")] = '\0';
		if (!controllers || !(group = strchr(controllers + 1, ':')))
			continue;
		*group++ = '\0';
		controllers++;
		if (!*controllers) {
			walk_up(mount, "", group, &least);
		} else if (lists(controllers, "cpu")) {
			walk_up(mount, "/cpu", group, &least);
			walk_up(mount, "/cpu,cpuacct", group, &least);
		}
	}
	fclose(file);
	if (least >= MAX_CPUS)
		return false;
	*cpus = least;
	return true;
}

int
pawl_granted_cpus(char *reason, size_t n)
{
	int affinity = pawl_affinity_cpus();
	double quota;

	if (!reason)
		n = 0;
	if (!pawl_cgroup_cpus("/proc/self/cgroup", "/sys/fs/cgroup", &quota)) {
		snprintf(reason, n, "affinity %d, no cgroup quota", affinity);
		return affinity;
	}
	snprintf(reason, n, "affinity %d, cgroup quota %d.%02d cpus", affinity, (int)quota,
		(int)(quota * 100) % 100);
	return quota >= affinity ? affinity : quota < 1 ? 1 : (int)quota;
}

enum pawl_status
pawl_default_threads(char *reason, size_t n, int *threads, struct pawl_error *err)
{
	const char *wanted = pawl_env(PAWL_ENV_THREADS);
	char why[REASON_BYTES];
	int64_t value;

	*threads = pawl_granted_cpus(why, sizeof(why));
	if (wanted) {
		if (!pawl_env_int(PAWL_ENV_THREADS, &value) || value < 1 ||
			value > PAWL_MAX_THREADS)
			return pawl_fail(err, PAWL_INVALID_ARGUMENT,
				"PAWL_THREADS: '%.64s' is no whole number of 1 to %d", wanted,
				PAWL_MAX_THREADS);
		*threads = (int)value;
		snprintf(why, sizeof(why), "%s", pawl_env_info(PAWL_ENV_THREADS)->name);
	}
	snprintf(reason, reason ? n : 0, "%d thread%s: %s", *threads, *threads == 1 ? "" : "s", why);
	return PAWL_OK;
}
