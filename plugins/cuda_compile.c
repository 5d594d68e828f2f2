#include "plugins/cuda_compile.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "codegen/kernel_key.h"
#include "codegen/object_cache.h"
#include "ir/build_id.h"
#include "plugins/cuda_nvrtc.h"
#include "plugins/cuda_report.h"

/* Far beyond what any program takes; a compiler that hangs is stopped. */
static const double DEADLINE_S = 120;

/*
 * An object as it is kept: this, the resources of the kernels in the order of the source, the code.
 */
struct object {
	uint32_t ptx_arch /* 0: a cubin */, n_kernels, nvrtc_major, nvrtc_minor;
	struct pawl_cuda_resources resources[];
};

/* What was compiled or read in this process: a cache that grows needs the same code again. */
struct unit {
	struct unit *next;
	char *key;
	struct object *object;
	size_t n_object;
};

struct pawl_cuda_compiler {
	char arch[32];
	char *dump_dir, *cache_dir;
	struct pawl_object_cache cache;
	struct pawl_error cache_error;
	pthread_mutex_t lock; /* of what follows */
	struct pawl_nvrtc *nvrtc;
	struct unit *units;
	struct pawl_target_counters counters;
	char arch_fault[128];
	int n_dumps;
};

enum pawl_status
pawl_cuda_compiler_new(const struct pawl_target_options *options, const char *arch,
	struct pawl_cuda_compiler **out, struct pawl_error *err)
{
	struct pawl_cuda_compiler *c = calloc(1, sizeof(*c));

	if (!c)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for a compiler");
	c->cache = PAWL_OBJECT_CACHE_NONE;
	pthread_mutex_init(&c->lock, NULL);
	snprintf(c->arch, sizeof(c->arch), "%s", arch);
	if (options && options->cache_dir)
		c->counters.cache_dir = c->cache_dir = strdup(options->cache_dir);
	if (options && options->dump_dir)
		c->dump_dir = strdup(options->dump_dir);
	if (options && ((options->cache_dir && !c->cache_dir) ||
			       (options->dump_dir && !c->dump_dir))) {
		pawl_cuda_compiler_free(c);
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for a compiler");
	}
	if (options && options->cache_dir &&
		pawl_object_cache_open(&c->cache, options->cache_dir, &c->cache_error))
		c->counters.cache_fault = c->cache_error.text;
	*out = c;
	return PAWL_OK;
}

static void
free_unit(struct unit *unit)
{
	if (!unit)
		return;
	free(unit->key);
	free(unit->object);
	free(unit);
}

void
pawl_cuda_compiler_free(struct pawl_cuda_compiler *c)
{
	if (!c)
		return;
	while (c->units) {
		struct unit *next = c->units->next;

		free_unit(c->units);
		c->units = next;
	}
	pawl_nvrtc_close(c->nvrtc);
	pawl_object_cache_release(&c->cache);
	pthread_mutex_destroy(&c->lock);
	free(c->dump_dir);
	free(c->cache_dir);
	free(c);
}

void
pawl_cuda_compiler_counters(struct pawl_cuda_compiler *c, struct pawl_target_counters *out)
{
	pthread_mutex_lock(&c->lock);
	*out = c->counters;
	pthread_mutex_unlock(&c->lock);
}

/* A program's unit on its way to code; each may be compiled by a thread of its own. */
struct task {
	const struct pawl_cuda_compiler *compiler;
	const struct pawl_cuda_program *cuda;
	int32_t unit;
	struct unit *found; /* the compiler's */
	struct unit *made;  /* not yet */
	struct pawl_error error;
};

static int32_t
count_kernels(const struct task *task)
{
	int32_t n = 0, i;

	for (i = 0; i < task->cuda->n_kernels; i++)
		n += task->cuda->kernels[i].unit == task->unit;
	return n;
}

/* Whether it is one of that many kernels, whose code is there. */
static bool
is_object_of(const struct object *object, size_t n, int32_t n_kernels)
{
	size_t head = sizeof(*object) + (size_t)n_kernels * sizeof(object->resources[0]);

	return n > head && object->n_kernels == (uint32_t)n_kernels && object->ptx_arch < 1000 &&
	       (!object->ptx_arch || !((const char *)object)[n - 1]);
}

/*
 * Everything that decides the code.  The compiler is known by its file, since to ask it for its
 * version takes longer than all else that is done with kernels that are there already.
 */
static char *
make_key(const struct pawl_cuda_compiler *c, const char *nvrtc, const char *source)
{
	struct stat info = {.st_size = 0};
	size_t n = strlen(source) + PAWL_NVRTC_PATH + 512;
	char *key = malloc(n);

	if (*nvrtc)
		(void)stat(nvrtc, &info);
	if (key)
		snprintf(key, n, "pawl %s\nnvrtc %s %lld %lld\n%s -arch=%s\n%s", pawl_build_id,
			nvrtc, (long long)info.st_size, (long long)info.st_mtime,
			pawl_nvrtc_options, c->arch, source);
	return key;
}

static enum pawl_status
no_memory(struct pawl_error *err)
{
	return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for kernels");
}

/* Names the step of a kernel that does not compile, and what the compiler says of it. */
static void
blame(const struct task *task, const char *log, struct pawl_error *err)
{
	struct pawl_error why = *err;
	const char *line;
	size_t n;
	int32_t kernel;

	pawl_cuda_report_complaint(task->cuda, task->unit, log, &line, &n, &kernel);
	if (!n)
		return;
	pawl_fail(err, why.status, "%s: %s: %.*s",
		kernel < 0 ? "kernels" : task->cuda->kernels[kernel].name, why.text,
		(int)(n < 600 ? n : 600), line);
}

static enum pawl_status
keep(struct task *task, const struct pawl_nvrtc_result *result, struct pawl_error *err)
{
	int32_t n_kernels = count_kernels(task), i, j = 0;
	size_t head =
		sizeof(struct object) + (size_t)n_kernels * sizeof(struct pawl_cuda_resources);
	struct object *object = malloc(head + result->n_code + 1);
	int major, minor;

	if (!object)
		return no_memory(err);
	pawl_nvrtc_version(task->compiler->nvrtc, &major, &minor);
	object->nvrtc_major = (uint32_t)major;
	object->nvrtc_minor = (uint32_t)minor;
	object->ptx_arch = (uint32_t)result->ptx_arch;
	object->n_kernels = (uint32_t)n_kernels;
	for (i = 0; i < task->cuda->n_kernels; i++) {
		if (task->cuda->kernels[i].unit == task->unit)
			pawl_cuda_report_resources(result->log ? result->log : "",
				task->cuda->kernels[i].name, &object->resources[j++]);
	}
	memcpy((char *)object + head, result->code, result->n_code);
	task->made->object = object;
	task->made->n_object = head + result->n_code;
	return PAWL_OK;
}

/* A thread's work. */
static void *
compile_unit(void *arg)
{
	struct task *task = arg;
	const struct pawl_nvrtc_job job = {.source = task->cuda->sources[task->unit].bytes,
		.arch = task->compiler->arch,
		.deadline_s = DEADLINE_S};
	struct pawl_nvrtc_result result;

	if (pawl_nvrtc_compile(task->compiler->nvrtc, &job, &result, &task->error))
		blame(task, result.log, &task->error);
	else
		keep(task, &result, &task->error);
	pawl_nvrtc_result_release(&result);
	return NULL;
}

static struct unit *
find_unit(struct pawl_cuda_compiler *c, const char *key)
{
	struct unit *unit = c->units;

	while (unit && strcmp(unit->key, key))
		unit = unit->next;
	return unit;
}

/* That an object is not what the architecture asks for. */
static void
note_arch(struct pawl_cuda_compiler *c, const struct object *object)
{
	if (!object->ptx_arch)
		return;
	snprintf(c->arch_fault, sizeof(c->arch_fault),
		"NVRTC %d.%d does not know %s: PTX for sm_%d", (int)object->nvrtc_major,
		(int)object->nvrtc_minor, c->arch, (int)object->ptx_arch);
	c->counters.arch_fault = c->arch_fault;
}

static void
add_unit(struct pawl_cuda_compiler *c, struct task *task)
{
	task->found = task->made;
	task->made->next = c->units;
	c->units = task->made;
	task->made = NULL;
	c->counters.code_bytes += (int64_t)task->found->n_object;
	note_arch(c, task->found->object);
}

/* From this process or the disk; else task->made is left without an object. */
static enum pawl_status
look_up(struct pawl_cuda_compiler *c, const char *nvrtc, struct task *task, struct pawl_error *err)
{
	char *key = make_key(c, nvrtc, task->cuda->sources[task->unit].bytes);
	struct unit *unit;

	if (!key)
		return no_memory(err);
	task->found = find_unit(c, key);
	if (task->found) {
		free(key);
		return PAWL_OK;
	}
	unit = task->made = calloc(1, sizeof(*unit));
	if (!unit) {
		free(key);
		return no_memory(err);
	}
	unit->key = key;
	unit->object = pawl_object_cache_find(&c->cache, key, &unit->n_object);
	if (!unit->object)
		return PAWL_OK;
	if (is_object_of(unit->object, unit->n_object, count_kernels(task))) {
		add_unit(c, task);
		c->counters.kernels_read += (uint64_t)count_kernels(task);
	} else {
		free(unit->object);
		unit->object = NULL;
	}
	return PAWL_OK;
}

/* Without room on the disk the next process compiles again: that costs time only. */
static void
store(struct pawl_cuda_compiler *c, const struct unit *unit)
{
	struct pawl_error fault;

	if (pawl_object_cache_store(&c->cache, unit->key, unit->object, unit->n_object, &fault) ==
			PAWL_OK ||
		c->counters.cache_fault)
		return;
	c->cache_error = fault;
	c->counters.cache_fault = c->cache_error.text;
}

/* Those that were not found, all at once. */
static enum pawl_status
compile_missing(struct pawl_cuda_compiler *c, const char *nvrtc, struct task *tasks, int32_t n,
	struct pawl_error *err)
{
	pthread_t threads[PAWL_CUDA_UNITS];
	bool is_thread[PAWL_CUDA_UNITS] = {false};
	enum pawl_status status = PAWL_OK;
	int32_t i, n_missing = 0;

	for (i = 0; i < n; i++)
		n_missing += !tasks[i].found;
	if (!n_missing)
		return PAWL_OK;
	if (!c->nvrtc) {
		char path[PAWL_NVRTC_PATH];

		/* Once more, for its words when there is none. */
		status = *nvrtc ? PAWL_OK : pawl_nvrtc_find(path, err);
		if (!status)
			status = pawl_nvrtc_open(*nvrtc ? nvrtc : path, &c->nvrtc, err);
		if (status)
			return status;
	}
	for (i = 1; i < n; i++) {
		if (!tasks[i].found)
			is_thread[i] = !pthread_create(&threads[i], NULL, compile_unit, &tasks[i]);
	}
	for (i = 0; i < n; i++) {
		if (!tasks[i].found && !is_thread[i])
			compile_unit(&tasks[i]);
	}
	for (i = 1; i < n; i++) {
		if (is_thread[i])
			pthread_join(threads[i], NULL);
	}
	for (i = 0; i < n && !status; i++) {
		if (tasks[i].found)
			continue;
		if (tasks[i].error.status) {
			status = pawl_fail(err, tasks[i].error.status, "%s", tasks[i].error.text);
			break;
		}
		c->counters.kernel_compiles += (uint64_t)count_kernels(&tasks[i]);
		store(c, tasks[i].made);
		add_unit(c, &tasks[i]);
	}
	return status;
}

/* Copies what the units hold, since the image may outlive the compiler. */
static enum pawl_status
fill_image(struct pawl_cuda_image *out, const struct task *tasks, struct pawl_error *err)
{
	int32_t i, j;

	out->resources = calloc((size_t)out->cuda.n_kernels + 1, sizeof(*out->resources));
	if (!out->resources)
		return no_memory(err);
	for (i = 0; i < out->cuda.n_units; i++) {
		const struct unit *unit = tasks[i].found;
		const struct pawl_cuda_resources *r = unit->object->resources;
		struct pawl_cuda_binary *binary = &out->binaries[i];
		size_t head = (size_t)((const char *)(r + unit->object->n_kernels) -
				       (const char *)unit->object);

		out->nvrtc_major = (int)unit->object->nvrtc_major;
		out->nvrtc_minor = (int)unit->object->nvrtc_minor;
		binary->is_ptx = unit->object->ptx_arch != 0;
		binary->n_bytes = unit->n_object - head;
		binary->bytes = malloc(binary->n_bytes);
		if (!binary->bytes)
			return no_memory(err);
		memcpy(binary->bytes, (const char *)unit->object + head, binary->n_bytes);
		out->n_bytes += (int64_t)binary->n_bytes;
		out->hash = out->hash * UINT64_C(0x100000001b3) ^ pawl_kernel_key_hash(unit->key);
		for (j = 0; j < out->cuda.n_kernels; j++) {
			if (out->cuda.kernels[j].unit == i)
				out->resources[j] = *r++;
		}
	}
	return PAWL_OK;
}

static enum pawl_status
find_or_compile(struct pawl_cuda_compiler *c, struct pawl_cuda_image *out, struct pawl_error *err)
{
	struct task tasks[PAWL_CUDA_UNITS] = {{.unit = 0}};
	char nvrtc[PAWL_NVRTC_PATH] = "";
	struct pawl_error none;
	enum pawl_status status = PAWL_OK;
	int32_t i, n = out->cuda.n_units;

	if (pawl_nvrtc_find(nvrtc, &none))
		nvrtc[0] = '\0';
	for (i = 0; i < n && !status; i++) {
		tasks[i] = (struct task){.compiler = c, .cuda = &out->cuda, .unit = i};
		status = look_up(c, nvrtc, &tasks[i], err);
	}
	if (!status)
		status = compile_missing(c, nvrtc, tasks, n, err);
	if (!status)
		status = fill_image(out, tasks, err);
	for (i = 0; i < n; i++)
		free_unit(tasks[i].made);
	return status;
}

/* Later programs of a compiler have a number, as graphs that are dumped. */
static enum pawl_status
dump(const struct pawl_cuda_compiler *c, const struct pawl_program *program, int number,
	const struct pawl_cuda_image *image, struct pawl_error *err)
{
	const char *name = program->name ? program->name : "program";
	char file[160];

	if (number > 1)
		snprintf(file, sizeof(file), "%.128s.%d", name, number);
	else
		snprintf(file, sizeof(file), "%.128s", name);
	return pawl_cuda_report_dump(c->dump_dir, file, c->arch, image, err);
}

enum pawl_status
pawl_cuda_compile(struct pawl_cuda_compiler *c, const struct pawl_program *program,
	struct pawl_cuda_image *out, struct pawl_error *err)
{
	enum pawl_status status;
	int number;

	*out = (struct pawl_cuda_image){.n_bytes = 0};
	status = pawl_cuda_program_init(&out->cuda, program, err);
	if (status)
		return status;
	pthread_mutex_lock(&c->lock);
	status = find_or_compile(c, out, err);
	number = ++c->n_dumps;
	pthread_mutex_unlock(&c->lock);
	if (!status && c->dump_dir)
		status = dump(c, program, number, out, err);
	if (status)
		pawl_cuda_image_release(out);
	return status;
}

void
pawl_cuda_image_release(struct pawl_cuda_image *image)
{
	int i;

	pawl_cuda_program_release(&image->cuda);
	for (i = 0; i < PAWL_CUDA_UNITS; i++)
		free(image->binaries[i].bytes);
	free(image->resources);
	*image = (struct pawl_cuda_image){.n_bytes = 0};
}
