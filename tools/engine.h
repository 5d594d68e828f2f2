/*
 * What the commands that run a model share: options, the model, the device, the decoder.
 */
#ifndef PAWL_TOOLS_ENGINE_H
#define PAWL_TOOLS_ENGINE_H

#include "models/model.h"
#include "runtime/decoder.h"
#include "tools/options.h"

struct pawl_engine_options {
	int target;           /* of PAWL_ENGINE_TARGETS; -1: not given */
	int precision;        /* enum pawl_precision */
	int kv;               /* of PAWL_ENGINE_KV */
	int64_t threads, ctx; /* 0: not given */
	const char *arch;     /* with target cuda: compile for it, and have no device; NULL: the device's */
	const char *code_dir; /* where generated code is written, NULL: nowhere */
};

/* clang-format off */
#define PAWL_ENGINE_DEFAULTS {.target = -1}
#define PAWL_ENGINE_TARGETS "ref|cpu|cuda|auto"
#define PAWL_ENGINE_KV "f16|f32|bf16|q8_0"
#define PAWL_ENGINE_MAX_CTX (INT64_C(1) << 24)

/* Rows of an option table; o is a struct pawl_engine_options. */
#define PAWL_OPTION_TARGET(o) \
	{"--target", PAWL_OPTION_CHOICE, &(o).target, PAWL_ENGINE_TARGETS, \
		"what runs the plan; auto: a GPU where there is one (default: cpu)", 0, 0}
#define PAWL_OPTION_ACTIVATIONS(o) \
	{"--activations", PAWL_OPTION_CHOICE, &(o).precision, "a16|a8", \
		"rounding of activations in front of quantized weights (default: a16)", 0, 0}
#define PAWL_OPTION_KV(o) \
	{"--kv", PAWL_OPTION_CHOICE, &(o).kv, PAWL_ENGINE_KV, "type of the cache (default: f16)", 0, 0}
#define PAWL_OPTION_THREADS(o) \
	{"--threads", PAWL_OPTION_INT, &(o).threads, "N", \
		"threads (default: what affinity and control groups grant)", 1, PAWL_MAX_THREADS}
#define PAWL_OPTION_CTX(o) \
	{"--ctx", PAWL_OPTION_INT, &(o).ctx, "N", \
		"positions that the cache holds (default: what is needed, in steps of 512)", 1, \
		PAWL_ENGINE_MAX_CTX}
/* clang-format on */

struct pawl_engine {
	const struct pawl_command *command;
	struct pawl_engine_options options;
	struct pawl_model *model;
	struct pawl_device *device;
	struct pawl_decoder *decoder;
	bool cache_noted; /* that kernels are not kept */
	bool keeps_all;   /* no rings: every position stays, as what is saved needs it */
	int64_t rollback; /* tokens that may be taken back at once, in rings too */
};

/* command is where notes come from. */
void pawl_engine_init(struct pawl_engine *engine, const struct pawl_command *command,
	const struct pawl_engine_options *options);
void pawl_engine_release(struct pawl_engine *engine);

/* --target as words, "cuda:sm_90" among them: -1, or the exit status after a usage error. */
int pawl_engine_set_target(
	const struct pawl_command *command, struct pawl_engine_options *options, const char *word);

/*
 * The device of --target.  auto: cuda, and with a note cpu where that cannot be.  Without the option:
 * cpu, and with a note ref where there is a module for that only.
 */
enum pawl_status pawl_engine_open_device(struct pawl_engine *engine, struct pawl_error *err);

/*
 * Says so when --threads or PAWL_THREADS asks for more threads than CPUs are granted, and the open
 * device runs on those.
 */
void pawl_engine_note_threads(const struct pawl_engine *engine);

/* The folder in which the open device, which owns the text, keeps compiled kernels; NULL: none. */
const char *pawl_engine_kernel_folder(const struct pawl_engine *engine);

/* "kernels: 2 compiled, 11 read from FOLDER" of the open device; false: there were none, as of ref. */
bool pawl_engine_kernels_text(const struct pawl_engine *engine, char *out, size_t n);

/*
 * Capacity for `need` positions: --ctx, else need rounded up to a multiple of 512, at most what the
 * model was made for.  PAWL_CAPACITY, naming both sizes, when need is more.  A note when --ctx is
 * beyond what the model was made for.
 */
enum pawl_status pawl_engine_capacity(
	struct pawl_engine *engine, int64_t need, int64_t *out, struct pawl_error *err);

enum pawl_dtype pawl_engine_kv_dtype(const struct pawl_engine_options *options);

/* What engine_start makes the decoder with. */
struct pawl_decoder_options pawl_engine_decoder_options(
	const struct pawl_engine *engine, int64_t capacity, int64_t chunk);

/* Opens the device and makes the decoder of the model; chunk 0 is the runtime's choice. */
enum pawl_status pawl_engine_start(
	struct pawl_engine *engine, int64_t capacity, int64_t chunk, struct pawl_error *err);

#endif
