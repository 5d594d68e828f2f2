/* Time for measurements, by a clock that only goes forward. */
#ifndef PAWL_RUNTIME_CLOCK_H
#define PAWL_RUNTIME_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t
pawl_nanoseconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline double
pawl_seconds(void)
{
	return 1e-9 * (double)pawl_nanoseconds();
}

#endif
