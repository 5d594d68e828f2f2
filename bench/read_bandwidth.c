/*
 * read_bandwidth THREADS MEGABYTES: GB/s that so many threads together read of so much memory,
 * again and again as the weights of a model are read: the most that decoding with as many threads
 * could use.  Reads in a few ways and prints the best of their medians.  The megabytes are the
 * model's, as caches may keep a part.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { MAX_THREADS = 256, ROUNDS = 9, LINE = 64, HUGE_PAGE = 2 << 20 };
enum { MAX_MEGABYTES = 1 << 16 };

typedef uint64_t vec __attribute__((vector_size(16)));

/* How a thread reads its part. */
struct way {
	int n_streams;
	int ahead; /* bytes from a load to what is prefetched with it */
};

static const struct way ways[] = {{1, 2048}, {4, 1024}, {4, 2048}, {4, 4096}, {8, 2048}};

enum { N_WAYS = sizeof(ways) / sizeof(ways[0]) };

struct reader {
	const char *part;
	size_t n_bytes;
	int cpu;
	uint64_t sum;
};

/* Rounds that were begun, and parts that were read in all of them. */
static _Alignas(LINE) _Atomic int begun;
static _Alignas(LINE) _Atomic int n_read;

static uint64_t
read_part(const char *part, size_t n_bytes, struct way way)
{
	vec a = {0}, b = {0}, c = {0}, d = {0};
	size_t n = n_bytes / (size_t)way.n_streams / LINE * LINE;

	for (size_t i = 0; i < n; i += LINE) {
		for (int s = 0; s < way.n_streams; s++) {
			const vec *at = (const void *)(part + (size_t)s * n + i);

			__builtin_prefetch((const char *)at + way.ahead);
			a ^= at[0];
			b ^= at[1];
			c ^= at[2];
			d ^= at[3];
		}
	}
	a ^= b ^ c ^ d;
	return a[0] ^ a[1];
}

static void
stay_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void
read_round(struct reader *reader, int round)
{
	reader->sum ^= read_part(reader->part, reader->n_bytes, ways[round / ROUNDS]);
	atomic_fetch_add(&n_read, 1);
}

static void *
read_rounds(void *arg)
{
	struct reader *reader = arg;

	stay_on(reader->cpu);
	for (int round = 0; round < N_WAYS * ROUNDS; round++) {
		while (atomic_load(&begun) <= round)
			;
		read_round(reader, round);
	}
	return NULL;
}

static double
seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int
compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The caller is the first reader. */
static double
best_of_ways(struct reader *readers, int n)
{
	double times[ROUNDS], best = 0, n_bytes = (double)readers->n_bytes * n;

	stay_on(readers->cpu);
	for (int round = 0; round < N_WAYS * ROUNDS; round++) {
		double begin = seconds();

		atomic_store(&begun, round + 1);
		read_round(readers, round);
		while (atomic_load(&n_read) < n * (round + 1))
			;
		times[round % ROUNDS] = seconds() - begin;
		if (round % ROUNDS < ROUNDS - 1)
			continue;
		qsort(times, ROUNDS, sizeof(times[0]), compare);
		if (n_bytes / times[ROUNDS / 2] > best)
			best = n_bytes / times[ROUNDS / 2];
	}
	return best;
}

/* CPUs that this process may use, one each; false when there are fewer. */
static bool
spread(struct reader *readers, int n)
{
	cpu_set_t set;
	int found = 0;

	if (sched_getaffinity(0, sizeof(set), &set))
		return false;
	for (int cpu = 0; cpu < CPU_SETSIZE && found < n; cpu++) {
		if (CPU_ISSET(cpu, &set))
			readers[found++].cpu = cpu;
	}
	return found == n;
}

static char *
make_memory(size_t n_bytes)
{
	size_t n_mapped = n_bytes + 2 * HUGE_PAGE;
	char *memory = mmap(
		NULL, n_mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return NULL;
	memory += HUGE_PAGE - (uintptr_t)memory % HUGE_PAGE;
	madvise(memory, n_bytes, MADV_HUGEPAGE);
	return memset(memory, 1, n_bytes);
}

/* The whole number that text is, 0: none from 1 to most. */
static int
count_of(const char *text, int most)
{
	char *end;
	long n = strtol(text, &end, 10);

	return end == text || *end || n < 1 || n > most ? 0 : (int)n;
}

int
main(int argc, char **argv)
{
	static struct reader readers[MAX_THREADS];
	static pthread_t threads[MAX_THREADS];
	int n = argc == 3 ? count_of(argv[1], MAX_THREADS) : 0;
	int megabytes = argc == 3 ? count_of(argv[2], MAX_MEGABYTES) : 0;
	size_t n_bytes = (size_t)megabytes << 20;
	char *memory;

	if (!n || megabytes < n) {
		fprintf(stderr,
			"usage: read_bandwidth THREADS MEGABYTES (1 to %d; as many to %d)\n",
			MAX_THREADS, MAX_MEGABYTES);
		return 2;
	}
	memory = make_memory(n_bytes);
	if (!memory || !spread(readers, n)) {
		fprintf(stderr, "read_bandwidth: no %s\n", memory ? "CPU for each thread" : "memory");
		return 1;
	}
	for (int i = 0; i < n; i++) {
		readers[i].n_bytes = n_bytes / (size_t)n / 4096 * 4096;
		readers[i].part = memory + (size_t)i * readers[i].n_bytes;
		if (i && pthread_create(&threads[i], NULL, read_rounds, &readers[i])) {
			fprintf(stderr, "read_bandwidth: no thread\n");
			return 1;
		}
	}
	printf("%.2f\n", 1e-9 * best_of_ways(readers, n));
	for (int i = 1; i < n; i++)
		pthread_join(threads[i], NULL);
	if (fflush(stdout)) {
		fprintf(stderr, "read_bandwidth: standard output cannot be written\n");
		return 1;
	}
	/* The sums are used, so that nothing of the reading can be left out. */
	return readers->sum == 1 ? 3 : 0;
}
