#include "tests/skip.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static atomic_int *count;

void
pawl_skip_init(void)
{
	count = mmap(NULL, sizeof(*count), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (count == MAP_FAILED) {
		perror("mmap");
		exit(EXIT_FAILURE);
	}
}

void
pawl_skip(const char *test, const char *reason)
{
	atomic_fetch_add(count, 1);
	printf("skipped: %s: %s\n", test, reason);
	fflush(stdout);
}

int
pawl_skipped(void)
{
	return atomic_load(count);
}
