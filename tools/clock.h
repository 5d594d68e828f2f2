/* Time for measurements. */
#ifndef PAWL_TOOLS_CLOCK_H
#define PAWL_TOOLS_CLOCK_H

#include <time.h>

/* Seconds of a clock that only goes forward. */
static inline double
pawl_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
