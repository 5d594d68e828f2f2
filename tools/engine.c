#include "tools/engine.h"

#include "runtime/cpu_count.h"
#include "tools/plan_print.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { CTX_STEP = 512 };

enum { REF, CPU, CUDA, AUTO, N_TARGETS };

static const char *const targets[N_TARGETS] = {"ref", "cpu", "cuda", "auto"};
static const enum pawl_dtype kv_types[] = {
	PAWL_DTYPE_F16, PAWL_DTYPE_F32, PAWL_DTYPE_BF16, PAWL_DTYPE_Q8_0};

void
pawl_engine_init(struct pawl_engine *engine, const struct pawl_command *command,
	const struct pawl_engine_options *options)
{
	*engine = (struct pawl_engine){.command = command, .options = *options};
}

/* Once, that kernels are not kept. */
static void
note_kernel_cache(struct pawl_engine *engine)
{
	struct pawl_target_counters counters;

	if (!engine->device || engine->cache_noted)
		return;
	pawl_device_counters(engine->device, &counters);
	engine->cache_noted = counters.cache_fault;
	if (counters.cache_fault)
		pawl_note(engine->command, "%s; kernels are compiled at every start",
			counters.cache_fault);
}

void
pawl_engine_release(struct pawl_engine *engine)
{
	note_kernel_cache(engine);
	pawl_decoder_free(engine->decoder);
	pawl_device_unref(engine->device);
	pawl_model_free(engine->model);
	*engine = (struct pawl_engine){0};
}

/* cuda:sm_90, cuda:sm_120, cuda:sm_90a: two or three digits, and a letter for what only it has. */
static bool
is_arch(const char *word)
{
	static const char prefix[] = "cuda:sm_", digits[] = "0123456789";
	const char *at = word + sizeof(prefix) - 1;
	size_t n;

	if (strncmp(word, prefix, sizeof(prefix) - 1) || *at == '0')
		return false;
	n = strspn(at, digits);
	at += n;
	at += *at == 'a' || *at == 'f';
	return (n == 2 || n == 3) && !*at;
}

int
pawl_engine_set_target(
	const struct pawl_command *command, struct pawl_engine_options *options, const char *word)
{
	for (int i = 0; i < N_TARGETS; i++) {
		if (!strcmp(word, targets[i])) {
			options->target = i;
			return -1;
		}
	}
	if (is_arch(word)) {
		options->target = CUDA;
		options->arch = strchr(word, ':') + 1;
		return -1;
	}
	return pawl_usage_error(command, "--target: '%.100s' is none of %s|cuda:sm_NN", word,
		PAWL_ENGINE_TARGETS);
}

/* A GPU that is there but fails is not passed over in silence either: the note says what it said. */
static enum pawl_status
open_target(struct pawl_engine *engine, int target, struct pawl_error *err)
{
	const struct pawl_target_options options = {
		.arch = engine->options.arch, .dump_dir = engine->options.code_dir};

	return pawl_device_open(targets[target], &options, &engine->device, err);
}

static enum pawl_status
open_best(struct pawl_engine *engine, struct pawl_error *err)
{
	struct pawl_error reason;

	if (!open_target(engine, CUDA, &reason)) {
		pawl_note(engine->command, "target cuda");
		return PAWL_OK;
	}
	pawl_note(engine->command, "target cpu, since %s", reason.text);
	return open_target(engine, CPU, err);
}

/* ref in place of cpu.  Where that is not to be had either, why cpu is not says it all. */
static enum pawl_status
open_ref(struct pawl_engine *engine, const struct pawl_error *no_cpu, struct pawl_error *err)
{
	struct pawl_error ignored;

	if (open_target(engine, REF, &ignored))
		return pawl_fail(err, no_cpu->status, "%s", no_cpu->text);
	pawl_note(engine->command, "%s; going on with target ref, which is slow", no_cpu->text);
	return PAWL_OK;
}

enum pawl_status
pawl_engine_open_device(struct pawl_engine *engine, struct pawl_error *err)
{
	struct pawl_error reason = {0};
	enum pawl_status status;

	if (engine->device)
		return PAWL_OK;
	status = engine->options.target == AUTO ? open_best(engine, &reason)
		 : open_target(engine,
			   engine->options.target >= 0 ? engine->options.target : CPU, &reason);
	/* ref has no code to write. */
	if (status == PAWL_ENVIRONMENT && engine->options.target < 0 && !engine->options.code_dir)
		return open_ref(engine, &reason, err);
	if (status)
		return pawl_fail(err, status, "%s", reason.text);
	note_kernel_cache(engine);
	return PAWL_OK;
}

void
pawl_engine_note_threads(const struct pawl_engine *engine)
{
	int n = (int)engine->options.threads, granted;
	char reason[96];

	if (engine->device->api->memory || (!n && pawl_default_threads(NULL, 0, &n, NULL)))
		return;
	granted = pawl_granted_cpus(reason, sizeof(reason));
	if (n > granted)
		pawl_note(engine->command,
			"%d threads share the %d CPU%s that %s granted (%s), and wait for each other",
			n, granted, granted == 1 ? "" : "s", granted == 1 ? "is" : "are", reason);
}

const char *
pawl_engine_kernel_folder(const struct pawl_engine *engine)
{
	struct pawl_target_counters counters;

	pawl_device_counters(engine->device, &counters);
	return counters.cache_fault ? NULL : counters.cache_dir;
}

bool
pawl_engine_kernels_text(const struct pawl_engine *engine, char *out, size_t n)
{
	const char *folder = pawl_engine_kernel_folder(engine);
	struct pawl_target_counters counters;

	pawl_device_counters(engine->device, &counters);
	if (!counters.kernel_compiles && !counters.kernels_read)
		return false;
	snprintf(out, n, "kernels: %" PRIu64 " compiled, %" PRIu64 " read%s%.300s",
		counters.kernel_compiles, counters.kernels_read,
		folder ? " from " : ", none kept", folder ? folder : "");
	return true;
}

enum pawl_status
pawl_engine_capacity(struct pawl_engine *engine, int64_t need, int64_t *out, struct pawl_error *err)
{
	int64_t made_for = pawl_model_info(engine->model)->n_ctx;
	int64_t capacity = engine->options.ctx;

	if (!capacity) {
		capacity = (need + CTX_STEP - 1) / CTX_STEP * CTX_STEP;
		if (capacity > made_for)
			capacity = made_for;
	} else if (capacity > made_for) {
		pawl_note(engine->command,
			"--ctx %" PRId64 " is beyond the %" PRId64
			" positions the model was made for",
			capacity, made_for);
	}
	if (need > capacity)
		return pawl_fail(err, PAWL_CAPACITY,
			"%" PRId64 " positions are needed, the context holds %" PRId64 "%s", need,
			capacity, engine->options.ctx ? "" : " (--ctx sets it)");
	*out = capacity;
	return PAWL_OK;
}

static void
print_times(void *arg, const struct pawl_plan *plan)
{
	pawl_plan_print_times(arg, plan);
}

enum pawl_dtype
pawl_engine_kv_dtype(const struct pawl_engine_options *options)
{
	return kv_types[options->kv];
}

struct pawl_decoder_options
pawl_engine_decoder_options(const struct pawl_engine *engine, int64_t capacity, int64_t chunk)
{
	return (struct pawl_decoder_options){
		.capacity = capacity,
		.kv_dtype = pawl_engine_kv_dtype(&engine->options),
		.precision = (enum pawl_precision)engine->options.precision,
		.n_threads = (int)engine->options.threads,
		.prefill_chunk = chunk,
		.rings = !engine->keeps_all,
		.ring_rollback = engine->rollback,
		.built = print_times,
		.arg = (void *)(uintptr_t)engine->command,
	};
}

enum pawl_status
pawl_engine_start(
	struct pawl_engine *engine, int64_t capacity, int64_t chunk, struct pawl_error *err)
{
	const struct pawl_decoder_options options =
		pawl_engine_decoder_options(engine, capacity, chunk);
	enum pawl_status status = pawl_engine_open_device(engine, err);

	return status ? status
		      : pawl_decoder_new(pawl_model_source(engine->model), engine->device, &options,
				&engine->decoder, err);
}
