/*
 * Requests of a file through a scheduler over a model, as a host would serve them.  Time is counted
 * in scheduler steps, which are the same in every run; what a step took is measured beside.
 */
#ifndef PAWL_TOOLS_SIMULATION_H
#define PAWL_TOOLS_SIMULATION_H

#include "models/token_list.h"
#include "runtime/scheduler.h"
#include "tools/engine.h"
#include "tools/request_file.h"
#include "tools/sampler.h"

struct pawl_simulation_options {
	int64_t n_blocks;   /* 0: for n_at_once of the longest requests, or for all */
	int64_t n_at_once;
	int64_t block_size; /* a multiple of 16 */
	int64_t chunk;      /* 0: the runtime's choice */
	struct pawl_scheduler_options scheduler; /* max_prefixes: at most the blocks there are */
	bool ignore_end;
	int64_t every; /* steps between two looks; 0: none */
	/* Called after each `every` steps. */
	void (*look)(void *arg, const struct pawl_scheduler_stats *stats);
	void *arg;
};

struct pawl_simulated {
	const struct pawl_file_request *request;
	struct pawl_token_list prompt;
	struct pawl_sampler *sampler; /* with a temperature, from its first to its last token */
	int64_t n_drawn;
	struct pawl_simulation *simulation;
	uint64_t id;               /* 0: refused */
	struct pawl_error refusal; /* why */
};

struct pawl_simulation {
	struct pawl_simulation_options options;
	struct pawl_engine *engine;
	int64_t n_blocks; /* of the pool */
	struct pawl_paged_decoder *decoder;
	struct pawl_scheduler *scheduler;
	struct pawl_simulated *requests; /* in the order of arrival */
	size_t n_requests;
	/* seconds[i]: since the start at the end of step i; [0] is 0. */
	double *seconds;
	int64_t n_seconds, room_seconds;
};

/*
 * Tokenizes the prompts and makes decoder and scheduler.  The engine, whose model must be open, and
 * the file must outlive it; release is due also after a failure.
 */
enum pawl_status pawl_simulation_init(struct pawl_simulation *simulation,
	struct pawl_engine *engine, const struct pawl_request_file *file,
	const struct pawl_simulation_options *options, struct pawl_error *err);
void pawl_simulation_release(struct pawl_simulation *simulation);

enum pawl_status pawl_simulation_run(struct pawl_simulation *simulation, struct pawl_error *err);

/* Requests that were refused or ended with an error, once it ran. */
int64_t pawl_simulation_failures(const struct pawl_simulation *simulation);

#endif
