/*
 * Progress of long work: one line on stderr that is rewritten in place, shown only when stderr is a
 * terminal and the work has taken more than a second, and wiped out at the end.  The line is
 * written by a thread of its own, so that it moves while one call takes long.
 */
#ifndef PAWL_TOOLS_PROGRESS_H
#define PAWL_TOOLS_PROGRESS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct pawl_progress {
	bool runs;
	bool ended;
	const char *what;
	int64_t done, total;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
};

/* what: "loading the model"; it must outlive the work. */
void pawl_progress_start(struct pawl_progress *progress, const char *what);
/* The next stage; total 0: unknown.  Any stage may be reported as often as wanted. */
void pawl_progress_stage(
	struct pawl_progress *progress, const char *what, int64_t done, int64_t total);
/* Nothing of it is left on the terminal.  A second call is a no-op. */
void pawl_progress_end(struct pawl_progress *progress);

#endif
