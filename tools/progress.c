#include "tools/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static double
seconds_since(const struct timespec *start)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - start->tv_sec) + 1e-9 * (double)(now.tv_nsec - start->tv_nsec);
}

static void *
show(void *arg)
{
	struct pawl_progress *progress = arg;
	struct timespec start, wake;
	bool shown = false;

	clock_gettime(CLOCK_MONOTONIC, &start);
	wake = start;
	pthread_mutex_lock(&progress->lock);
	while (!progress->ended) {
		wake.tv_sec++;
		while (!progress->ended &&
			pthread_cond_timedwait(&progress->changed, &progress->lock, &wake) == 0)
			continue;
		if (progress->ended)
			break;
		fprintf(stderr, "\r\033[K%s", progress->what);
		if (progress->total)
			fprintf(stderr, ", %" PRId64 " of %" PRId64, progress->done,
				progress->total);
		fprintf(stderr, ", %.0f s", seconds_since(&start));
		fflush(stderr);
		shown = true;
	}
	pthread_mutex_unlock(&progress->lock);
	if (shown)
		fprintf(stderr, "\r\033[K");
	return NULL;
}

void
pawl_progress_start(struct pawl_progress *progress, const char *what)
{
	pthread_condattr_t clock;

	*progress = (struct pawl_progress){.what = what};
	if (!isatty(STDERR_FILENO))
		return;
	pthread_mutex_init(&progress->lock, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&progress->changed, &clock);
	pthread_condattr_destroy(&clock);
	progress->runs = !pthread_create(&progress->thread, NULL, show, progress);
}

void
pawl_progress_stage(struct pawl_progress *progress, const char *what, int64_t done, int64_t total)
{
	if (!progress->runs)
		return;
	pthread_mutex_lock(&progress->lock);
	progress->what = what;
	progress->done = done;
	progress->total = total;
	pthread_mutex_unlock(&progress->lock);
}

void
pawl_progress_end(struct pawl_progress *progress)
{
	if (!progress->runs)
		return;
	pthread_mutex_lock(&progress->lock);
	progress->ended = true;
	pthread_cond_signal(&progress->changed);
	pthread_mutex_unlock(&progress->lock);
	pthread_join(progress->thread, NULL);
	pthread_cond_destroy(&progress->changed);
	pthread_mutex_destroy(&progress->lock);
	progress->runs = false;
}
