/*
 * The two functions that a host looks for, the registration and its one device: a CPU that shares
 * the host's memory, which steps aside where the host has a graphics card.
 */
#include <string.h>
#include <unistd.h>

#include "ir/debug.h"
#include "ir/dump.h"
#include "passes/observe.h"
#include "plugins/ggml/ggml_buffer.h"
#include "plugins/ggml/ggml_counters.h"
#include "plugins/ggml/ggml_stream.h"
#include "runtime/cpu_count.h"
#include "runtime/device.h"

#define EXPORT __attribute__((visibility("default")))

enum { INTEGRATED = 2 }; /* of the host's kinds of devices */

static struct pawl_ggml_host host;
static struct pawl_ggml_device device;
static struct pawl_ggml_registry registry;
static struct pawl_device *target;

static const char *
device_name(struct pawl_ggml_device *d)
{
	(void)d;
	return "PAWL0";
}

static const char *
device_description(struct pawl_ggml_device *d)
{
	(void)d;
	return "Pawl, held plans on this CPU";
}

static void
device_memory(struct pawl_ggml_device *d, size_t *available, size_t *total)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	long n_available = sysconf(_SC_AVPHYS_PAGES), n = sysconf(_SC_PHYS_PAGES);

	(void)d;
	*available = n_available > 0 ? (size_t)n_available * page : 0;
	*total = n > 0 ? (size_t)n * page : 0;
}

static int
device_type(struct pawl_ggml_device *d)
{
	(void)d;
	return INTEGRATED;
}

static void
device_properties(struct pawl_ggml_device *d, struct pawl_ggml_properties *out)
{
	memset(out, 0, sizeof(*out));
	out->name = device_name(d);
	out->description = device_description(d);
	device_memory(d, &out->memory_free, &out->memory_total);
	out->type = INTEGRATED;
	out->caps[2] = true; /* buffers from host pointers */
	out->caps[4] = true; /* mapped files; hosts before it have padding there */
}

static struct pawl_ggml_buft *
device_buft(struct pawl_ggml_device *d)
{
	(void)d;
	return pawl_ggml_buft();
}

static struct pawl_ggml_buffer *
device_buffer_of(struct pawl_ggml_device *d, void *bytes, size_t n_bytes, size_t most)
{
	(void)d;
	(void)most;
	return pawl_ggml_buffer_of(bytes, n_bytes);
}

static bool
device_supports(struct pawl_ggml_device *d, const struct pawl_ggml_tensor *op)
{
	struct pawl_error err;

	(void)d;
	if (pawl_ggml_supports(&host, op, &err))
		return true;
	pawl_ggml_count_declined(pawl_ggml_op_text(&host, op));
	pawl_ggml_log(&host, PAWL_GGML_DEBUG, "%s", err.text);
	return false;
}

static bool
device_supports_buft(struct pawl_ggml_device *d, const struct pawl_ggml_buft *buft)
{
	(void)d;
	return buft == pawl_ggml_buft();
}

static const char *
registry_name(struct pawl_ggml_registry *r)
{
	(void)r;
	return "Pawl";
}

static size_t
registry_count(struct pawl_ggml_registry *r)
{
	(void)r;
	return 1;
}

static struct pawl_ggml_device *
registry_device(struct pawl_ggml_registry *r, size_t i)
{
	(void)r;
	(void)i;
	return &device;
}

static void *
registry_function(struct pawl_ggml_registry *r, const char *name)
{
	static const struct {
		const char *name;
		pawl_ggml_fn fn;
	} functions[] = {
		{"ggml_backend_set_n_threads", (pawl_ggml_fn)pawl_ggml_stream_set_threads},
		{"ggml_backend_set_abort_callback", (pawl_ggml_fn)pawl_ggml_stream_set_stop},
		{"pawl_ggml_counters", (pawl_ggml_fn)pawl_ggml_counters_text},
	};
	void *found = NULL;
	size_t i;

	(void)r;
	for (i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		if (!strcmp(functions[i].name, name))
			memcpy(&found, &functions[i].fn, sizeof(found));
	return found;
}

static void
fill_tables(void)
{
	const pawl_ggml_fn of_device[] = {
		(pawl_ggml_fn)device_name,
		(pawl_ggml_fn)device_description,
		(pawl_ggml_fn)device_memory,
		(pawl_ggml_fn)device_type,
		(pawl_ggml_fn)device_properties,
		(pawl_ggml_fn)pawl_ggml_stream_new,
		(pawl_ggml_fn)device_buft,
		NULL, /* a host buffer type */
		(pawl_ggml_fn)device_buffer_of,
		(pawl_ggml_fn)device_supports,
		(pawl_ggml_fn)device_supports_buft,
	};
	const pawl_ggml_fn of_registry[] = {
		(pawl_ggml_fn)registry_name,
		(pawl_ggml_fn)registry_count,
		(pawl_ggml_fn)registry_device,
		(pawl_ggml_fn)registry_function,
	};

	memcpy(device.fn, of_device, sizeof(of_device));
	device.registry = &registry;
	memcpy(registry.fn, of_registry, sizeof(of_registry));
	registry.api = host.layout->api;
}

/* What would otherwise be found out by each plan, and leave every graph to the host. */
static enum pawl_status
check_environment(struct pawl_error *err)
{
	const char *dump = pawl_env(PAWL_ENV_DUMP);
	struct pawl_run_options options;
	enum pawl_status status = pawl_run_options_from_env(&options, err);
	int n_threads;

	if (!status && dump)
		status = pawl_dump_check(dump, err);
	return status ? status : pawl_default_threads(NULL, 0, &n_threads, err);
}

/* code: of the host. */
static enum pawl_status
start(void *code, struct pawl_error *err)
{
	enum pawl_status status = pawl_ggml_host_bind(&host, pawl_ggml_find_mapped, code, err);

	if (!status)
		status = check_environment(err);
	if (!status)
		status = pawl_device_open("cpu", NULL, &target, err);
	if (status)
		return status;
	fill_tables();
	pawl_ggml_buft_init(&host, &device);
	pawl_ggml_streams_init(&host, target);
	return PAWL_OK;
}

/* The host asks whether this may run here; what stands against it is said by the other. */
EXPORT int ggml_backend_score(void);
EXPORT struct pawl_ggml_registry *ggml_backend_init(void);

int
ggml_backend_score(void)
{
	return 1;
}

/* Another ggml has buffers and tables of its own, and maybe another layout of them. */
static struct pawl_ggml_registry *
start_again(void *code)
{
	struct pawl_ggml_host other;
	struct pawl_error err;

	if (pawl_ggml_host_bind(&other, pawl_ggml_find_mapped, code, &err) ||
		other.buffer_init == host.buffer_init)
		return &registry;
	pawl_ggml_log(&other, PAWL_GGML_ERROR,
		"not used: another ggml of this process, %s, has it already", host.version);
	return NULL;
}

/* Called once for each time that the host looks for backends, by one thread. */
struct pawl_ggml_registry *
ggml_backend_init(void)
{
	void *code = __builtin_return_address(0);
	struct pawl_error err;

	if (registry.api)
		return start_again(code);
	if (start(code, &err)) {
		pawl_ggml_log(&host, PAWL_GGML_ERROR, "not used: %s", err.text);
		return NULL;
	}
	return &registry;
}
