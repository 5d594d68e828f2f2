#include "plugins/cpu_kernels.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/elf_load.h"
#include "codegen/kernel_key.h"
#include "codegen/launch.h"
#include "codegen/module_file.h"
#include "codegen/object_cache.h"
#include "codegen/perf_map.h"
#include "ir/build_id.h"
#include "ir/debug.h"
#include "ir/dump.h"
#include "plugins/cpu_room.h"

#define MODULE_NAME "cpu_compiler.so"

bool
pawl_cpu_kernels_init(struct pawl_cpu_kernels *kernels, const struct pawl_target_options *options)
{
	*kernels = (struct pawl_cpu_kernels){.cache = PAWL_OBJECT_CACHE_NONE};
	pthread_mutex_init(&kernels->lock, NULL);
	pthread_mutex_init(&kernels->opening, NULL);
	pthread_cond_init(&kernels->made, NULL);
	if (options && options->module_dir)
		kernels->module_dir = strdup(options->module_dir);
	if (options && options->dump_dir)
		kernels->dump_dir = strdup(options->dump_dir);
	if (options && options->cache_dir &&
		pawl_object_cache_open(
			&kernels->cache, options->cache_dir, &kernels->cache_error) != PAWL_OK)
		kernels->counters.cache_fault = kernels->cache_error.text;
	if (options && options->cache_dir)
		kernels->counters.cache_dir = kernels->cache_dir = strdup(options->cache_dir);
	return !options || ((!options->module_dir || kernels->module_dir) &&
				   (!options->dump_dir || kernels->dump_dir) &&
				   (!options->cache_dir || kernels->cache_dir));
}

static void
free_kernel(struct pawl_cpu_kernel *kernel)
{
	pawl_code_memory_release(&kernel->memory);
	free(kernel->key);
	free(kernel);
}

void
pawl_cpu_kernels_release(struct pawl_cpu_kernels *kernels)
{
	while (kernels->first) {
		struct pawl_cpu_kernel *next = kernels->first->next;

		free_kernel(kernels->first);
		kernels->first = next;
	}
	pthread_mutex_destroy(&kernels->lock);
	pthread_mutex_destroy(&kernels->opening);
	pthread_cond_destroy(&kernels->made);
	pawl_object_cache_release(&kernels->cache);
	free(kernels->module_dir);
	free(kernels->dump_dir);
	free(kernels->cache_dir);
}

void
pawl_cpu_kernels_counters(const struct pawl_cpu_kernels *kernels, struct pawl_target_counters *out)
{
	pthread_mutex_t *lock = (pthread_mutex_t *)&kernels->lock;

	pthread_mutex_lock(lock);
	*out = kernels->counters;
	pthread_mutex_unlock(lock);
}

/* The path of the compiler module: in module_dir, else in the folder of this module. */
static enum pawl_status
module_path(const struct pawl_cpu_kernels *kernels, char *path, size_t size, struct pawl_error *err)
{
	const char *folder = kernels->module_dir, *end = NULL;
	Dl_info info;
	int n;

	if (!folder) {
		if (!dladdr((void *)(uintptr_t)pawl_cpu_kernels_init, &info) || !info.dli_fname)
			return pawl_fail(
				err, PAWL_ENVIRONMENT, "the folder of this module is not known");
		folder = info.dli_fname;
		end = strrchr(folder, '/');
	}
	n = snprintf(path, size, "%.*s/%s", end ? (int)(end - folder) : (int)strlen(folder), folder,
		MODULE_NAME);
	if (n < 0 || (size_t)n >= size)
		return pawl_fail(err, PAWL_ENVIRONMENT, "the path of %s is too long", MODULE_NAME);
	return PAWL_OK;
}

/* Under the lock `opening`. */
static enum pawl_status
open_compiler(struct pawl_cpu_kernels *kernels, struct pawl_error *err)
{
	const struct pawl_cpu_compiler_api *api;
	pawl_cpu_compiler_query_fn *query;
	enum pawl_status status;
	char path[4096];
	void *module;

	status = module_path(kernels, path, sizeof(path), err);
	if (status == PAWL_OK)
		status = pawl_cpu_room(PAWL_COMPILER_BYTES, err);
	if (status != PAWL_OK)
		return status;
	if (pawl_module_open(path, &module, err))
		return pawl_error_prefix(err, "cannot open the cpu compiler");
	query = (pawl_cpu_compiler_query_fn *)(uintptr_t)dlsym(module, PAWL_CPU_COMPILER_QUERY);
	api = query ? query() : NULL;
	if (!api || api->size < sizeof(*api) || strcmp(api->build_id, pawl_build_id)) {
		dlclose(module);
		return pawl_fail(err, PAWL_ENVIRONMENT, "%s is of another build", path);
	}
	/* Stays open for good: LLVM does not like to be unloaded. */
	kernels->compiler = api;
	return PAWL_OK;
}

static enum pawl_status
load(struct pawl_cpu_kernel *kernel, const struct pawl_kernel_object *object, int n_phases,
	struct pawl_error *err)
{
	static const char *const names[] = {
		PAWL_KERNEL_SCRATCH, PAWL_KERNEL_PHASE_0, PAWL_KERNEL_PHASE_1};
	enum pawl_code_memory_kind kind = PAWL_CODE_MEMORY_PROTECT;
	void *found[1 + PAWL_MAX_PHASES];
	enum pawl_status status;
	int i;

	status = pawl_elf_load(object->bytes, object->size, kind, names, 1 + n_phases, found,
		&kernel->memory, err);
	if (status == PAWL_ENVIRONMENT)
		status = pawl_elf_load(object->bytes, object->size, PAWL_CODE_MEMORY_TWICE, names,
			1 + n_phases, found, &kernel->memory, err);
	if (status != PAWL_OK)
		return status;
	memcpy(&kernel->scratch_bytes, found[0], sizeof(kernel->scratch_bytes));
	for (i = 0; i < n_phases; i++)
		kernel->phases[i] = (pawl_kernel_fn *)(uintptr_t)found[1 + i];
	return PAWL_OK;
}

/* Starts a dump: its key, and in *path the start of the names of the rest, "FOLDER/k07". */
static enum pawl_status
dump_key(const struct pawl_cpu_kernels *kernels, const struct pawl_step *step,
	const struct pawl_cpu_kernel *kernel, char *path, size_t size, struct pawl_error *err)
{
	static atomic_int n_dumped;
	size_t n = strlen(kernel->key) + 256;
	char name[32], *text = malloc(n);
	int number = atomic_fetch_add(&n_dumped, 1);
	enum pawl_status status;

	if (!text)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for a dump");
	snprintf(text, n, "%016" PRIx64 " for %.200s\n%s", kernel->hash,
		step->name ? step->name : "-", kernel->key);
	snprintf(name, sizeof(name), "k%02d.key", number);
	status = pawl_dump_text(kernels->dump_dir, name, text, err);
	free(text);
	snprintf(path, size, "%s/k%02d", kernels->dump_dir, number);
	return status;
}

/* A phase reaches to the next one or to the end of the kernel's memory. */
static enum pawl_status
map_for_perf(const struct pawl_cpu_kernel *kernel, const struct pawl_step *step,
	enum pawl_cpu_variant variant, struct pawl_error *err)
{
	const char *memory_end = kernel->memory.run + kernel->memory.bytes;
	int n_phases = pawl_step_phases(step);
	enum pawl_status status = PAWL_OK;
	char name[384];

	for (int i = 0; i < n_phases && status == PAWL_OK; i++) {
		const char *start = (const char *)(uintptr_t)kernel->phases[i], *end = memory_end;

		for (int j = 0; j < n_phases; j++) {
			const char *other = (const char *)(uintptr_t)kernel->phases[j];

			if (other > start && other < end)
				end = other;
		}
		snprintf(name, sizeof(name), "pawl_%s_%s_%016" PRIx64 "_phase%d for %.200s",
			pawl_template_name(step->template), pawl_cpu_variant_info(variant)->name,
			kernel->hash, i, step->name ? step->name : "-");
		status = pawl_perf_map_add(start, (size_t)(end - start), name, err);
	}
	return status;
}

/* Opens the compiler if need be and finds room for one more thread that compiles. */
static enum pawl_status
begin_compiling(struct pawl_cpu_kernels *kernels, struct pawl_error *err)
{
	enum pawl_status status = PAWL_OK;
	int n;

	pthread_mutex_lock(&kernels->opening);
	if (!kernels->compiler)
		status = open_compiler(kernels, err);
	pthread_mutex_unlock(&kernels->opening);
	pthread_mutex_lock(&kernels->lock);
	n = ++kernels->n_compiling;
	pthread_mutex_unlock(&kernels->lock);
	return status == PAWL_OK ? pawl_cpu_room((size_t)n * PAWL_COMPILE_BYTES, err) : status;
}

static void
end_compiling(struct pawl_cpu_kernels *kernels)
{
	pthread_mutex_lock(&kernels->lock);
	kernels->n_compiling--;
	pthread_mutex_unlock(&kernels->lock);
}

struct compile_call {
	struct pawl_cpu_kernels *kernels;
	const struct pawl_program *program;
	const struct pawl_step *step;
	enum pawl_cpu_variant variant;
	const char *dump; /* NULL: none */
	struct pawl_kernel_object object;
	enum pawl_status status;
	struct pawl_error *err;
};

static void
call_compiler(void *arg)
{
	struct compile_call *c = arg;

	c->status = begin_compiling(c->kernels, c->err);
	if (c->status == PAWL_OK)
		c->status = c->kernels->compiler->compile(
			c->program, c->step, c->variant, c->dump, &c->object, c->err);
	end_compiling(c->kernels);
}

static void
count(struct pawl_cpu_kernels *kernels, uint64_t *counter)
{
	pthread_mutex_lock(&kernels->lock);
	++*counter;
	pthread_mutex_unlock(&kernels->lock);
}

/* The first that an entry could not be written for; the text stays as it is from then on. */
static void
note_fault(struct pawl_cpu_kernels *kernels, const struct pawl_error *fault)
{
	pthread_mutex_lock(&kernels->lock);
	if (!kernels->counters.cache_fault) {
		kernels->cache_error = *fault;
		kernels->counters.cache_fault = kernels->cache_error.text;
	}
	pthread_mutex_unlock(&kernels->lock);
}

/* What decides a kernel's code, beside its key: who wrote it for whom; to be freed. */
static char *
entry_key(enum pawl_cpu_variant variant, const struct pawl_cpu_kernel *kernel)
{
	const struct pawl_cpu_variant_info *info = pawl_cpu_variant_info(variant);
	size_t n = strlen(kernel->key) + strlen(info->features) + 512;
	char *text = malloc(n);

	if (text)
		snprintf(text, n, "pawl %s\nllvm %s\n%s %s\n%s", pawl_build_id, PAWL_LLVM_VERSION,
			info->triple, info->features, kernel->key);
	return text;
}

/* Whether the kernel was found on disk and loaded; what cannot be loaded is a miss. */
static bool
read_kernel(struct pawl_cpu_kernels *kernels, const char *key, int n_phases,
	struct pawl_cpu_kernel *kernel)
{
	struct pawl_kernel_object object;
	struct pawl_error fault;
	enum pawl_status status;

	object.bytes = pawl_object_cache_find(&kernels->cache, key, &object.size);
	if (!object.bytes)
		return false;
	status = load(kernel, &object, n_phases, &fault);
	free(object.bytes);
	return status == PAWL_OK;
}

/* Fills a kernel whose key is set by the compiler, and gives it to the disk as `entry`, NULL: not. */
static enum pawl_status
compile(struct pawl_cpu_kernels *kernels, const struct pawl_program *program,
	const struct pawl_step *step, enum pawl_cpu_variant variant, const char *entry,
	struct pawl_cpu_kernel *kernel, struct pawl_error *err)
{
	struct compile_call call = {kernels, program, step, variant, .err = err};
	enum pawl_status status = PAWL_OK;
	struct pawl_error fault;
	char dump[4096];

	if (kernels->dump_dir) {
		status = dump_key(kernels, step, kernel, dump, sizeof(dump), err);
		call.dump = dump;
	}
	if (status == PAWL_OK)
		status = pawl_cpu_run_roomy(call_compiler, &call, err);
	if (status == PAWL_OK)
		status = call.status;
	if (status != PAWL_OK)
		return status;
	count(kernels, &kernels->counters.kernel_compiles);
	status = load(kernel, &call.object, pawl_step_phases(step), err);
	/* Without room on the disk the next process compiles again: that costs time only. */
	if (status == PAWL_OK && entry &&
		pawl_object_cache_store(&kernels->cache, entry, call.object.bytes, call.object.size,
			&fault) != PAWL_OK)
		note_fault(kernels, &fault);
	kernels->compiler->object_free(&call.object);
	return status;
}

/* Fills a kernel whose key is set; without the lock. */
static enum pawl_status
fill(struct pawl_cpu_kernels *kernels, const struct pawl_program *program,
	const struct pawl_step *step, enum pawl_cpu_variant variant, bool may_compile,
	struct pawl_cpu_kernel *kernel, struct pawl_error *err)
{
	/* Dumps are made by the compiler. */
	bool is_cached = kernels->cache.folder >= 0 && !kernels->dump_dir;
	char *entry = is_cached ? entry_key(variant, kernel) : NULL;
	enum pawl_status status = PAWL_OK;

	if (entry && read_kernel(kernels, entry, pawl_step_phases(step), kernel))
		count(kernels, &kernels->counters.kernels_read);
	else if (may_compile)
		status = compile(kernels, program, step, variant, entry, kernel, err);
	else
		status = PAWL_UNSUPPORTED;
	free(entry);
	if (status == PAWL_OK && pawl_debug(PAWL_DEBUG_PERF))
		status = map_for_perf(kernel, step, variant, err);
	return status;
}

static struct pawl_cpu_kernel *
find(const struct pawl_cpu_kernels *kernels, const char *key, uint64_t hash)
{
	struct pawl_cpu_kernel *kernel;

	for (kernel = kernels->first; kernel; kernel = kernel->next) {
		if (kernel->hash == hash && !strcmp(kernel->key, key))
			return kernel;
	}
	return NULL;
}

/* Under the lock. */
static void
take_out(struct pawl_cpu_kernels *kernels, const struct pawl_cpu_kernel *kernel)
{
	struct pawl_cpu_kernel **at = &kernels->first;

	while (*at != kernel)
		at = &(*at)->next;
	*at = kernel->next;
}

/*
 * Makes the kernel of a key, which there is none of; others that want it wait meanwhile.  Under the
 * lock, which is given back while it is made.  Takes the key.
 */
static enum pawl_status
make(struct pawl_cpu_kernels *kernels, const struct pawl_program *program,
	const struct pawl_step *step, enum pawl_cpu_variant variant, char *key, bool may_compile,
	struct pawl_cpu_kernel **out, struct pawl_error *err)
{
	struct pawl_cpu_kernel *kernel = calloc(1, sizeof(*kernel));
	enum pawl_status status;

	if (!kernel) {
		free(key);
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for a kernel");
	}
	kernel->key = key;
	kernel->hash = pawl_kernel_key_hash(key);
	kernel->next = kernels->first;
	kernels->first = kernel;
	pthread_mutex_unlock(&kernels->lock);
	status = fill(kernels, program, step, variant, may_compile, kernel, err);
	pthread_mutex_lock(&kernels->lock);
	if (status == PAWL_OK) {
		kernels->counters.code_bytes += (int64_t)kernel->memory.bytes;
		kernel->is_made = true;
		*out = kernel;
	} else {
		take_out(kernels, kernel);
		free_kernel(kernel);
	}
	pthread_cond_broadcast(&kernels->made);
	return status;
}

const struct pawl_cpu_kernel *
pawl_cpu_kernels_find(struct pawl_cpu_kernels *kernels, const struct pawl_program *program,
	const struct pawl_step *step, enum pawl_cpu_variant variant, uint64_t *hash)
{
	char *key = pawl_kernel_key(program, step, variant);
	struct pawl_cpu_kernel *kernel;
	struct pawl_error none;

	*hash = 0;
	if (!key)
		return NULL;
	*hash = pawl_kernel_key_hash(key);
	pthread_mutex_lock(&kernels->lock);
	kernel = find(kernels, key, *hash);
	if (kernel)
		free(key);
	else if (make(kernels, program, step, variant, key, false, &kernel, &none) != PAWL_OK)
		kernel = NULL;
	if (kernel && !kernel->is_made)
		kernel = NULL;
	pthread_mutex_unlock(&kernels->lock);
	return kernel;
}

enum pawl_status
pawl_cpu_kernels_get(struct pawl_cpu_kernels *kernels, const struct pawl_program *program,
	const struct pawl_step *step, enum pawl_cpu_variant variant,
	const struct pawl_cpu_kernel **out, struct pawl_error *err)
{
	char *key = pawl_kernel_key(program, step, variant);
	enum pawl_status status = PAWL_OK;
	struct pawl_cpu_kernel *kernel;
	uint64_t hash;

	if (!key)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for a kernel's key");
	hash = pawl_kernel_key_hash(key);
	pthread_mutex_lock(&kernels->lock);
	while ((kernel = find(kernels, key, hash)) && !kernel->is_made)
		pthread_cond_wait(&kernels->made, &kernels->lock);
	if (kernel)
		free(key);
	else
		status = make(kernels, program, step, variant, key, true, &kernel, err);
	pthread_mutex_unlock(&kernels->lock);
	*out = kernel;
	return status;
}
