#include "plugins/ggml/ggml_host.h"

#include <dlfcn.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The newest last; a version beyond it is unknown. */
static const struct pawl_ggml_layout layouts[] = {
	{
		.until_minor = 10,
		.api = 2,
		.n_buffer_fns = 9,
		.memset_tensor = 3,
		.set_tensor = 4,
		.get_tensor = 5,
		.clear = 7,
		.buft_alignment = 2,
		.buft_is_host = 5,
		.n_buft_fns = 6,
		.graph_compute = 10,
		.n_stream_fns = 14,
	},
	{
		.until_minor = 26,
		.api = 2,
		.has_uid = true,
		.n_buffer_fns = 11,
		.memset_tensor = 3,
		.set_tensor = 4,
		.get_tensor = 5,
		.clear = 9,
		.buft_alignment = 2,
		.buft_is_host = 5,
		.n_buft_fns = 6,
		.graph_compute = 12,
		.n_stream_fns = 16,
	},
	{
		.until_minor = 27,
		.api = 3,
		.has_uid = true,
		.n_buffer_fns = 11,
		.memset_tensor = 3,
		.set_tensor = 4,
		.get_tensor = 5,
		.clear = 9,
		.buft_alignment = 3,
		.buft_is_host = 7,
		.n_buft_fns = 8,
		.graph_compute = 12,
		.n_stream_fns = 16,
	},
};

/* ggml_version is there from 0.9.1 on. */
enum { OLDEST_MINOR = 9 };

static const char *const op_names[] = {
#define PAWL_GGML_OP_ROW(id, name) [PAWL_GGML_OP_##id] = name,
#include "plugins/ggml/ggml_ops.def"
};

static const char *const unary_names[PAWL_GGML_UNARY_OTHER] = {
	[PAWL_GGML_UNARY_TANH] = "TANH",
	[PAWL_GGML_UNARY_RELU] = "RELU",
	[PAWL_GGML_UNARY_SIGMOID] = "SIGMOID",
	[PAWL_GGML_UNARY_GELU] = "GELU",
	[PAWL_GGML_UNARY_SILU] = "SILU",
};

static const char *const glu_names[PAWL_GGML_GLU_OTHER] = {
	[PAWL_GGML_GLU_GEGLU] = "GEGLU",
	[PAWL_GGML_GLU_SWIGLU] = "SWIGLU",
};

/* Names are gathered first: nothing may be opened while the list of objects is walked. */
struct objects {
	char **names;
	size_t n, room;
};

static int
collect(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct objects *objects = arg;
	char **grown, *name;

	(void)size;
	if (objects->n == objects->room) {
		grown = realloc(objects->names, (objects->room * 2 + 16) * sizeof(*grown));
		if (!grown)
			return 1;
		objects->names = grown;
		objects->room = objects->room * 2 + 16;
	}
	name = strdup(info->dlpi_name ? info->dlpi_name : "");
	if (!name)
		return 1;
	objects->names[objects->n++] = name;
	return 0;
}

/* Whether or not the object shows its symbols to others, it does to who asks it. */
static void *
find_in(const char *object, const char *symbol)
{
	void *handle = dlopen(object, RTLD_NOW | RTLD_NOLOAD), *found = NULL;

	if (handle) {
		found = dlsym(handle, symbol);
		dlclose(handle);
	}
	return found;
}

void *
pawl_ggml_find_mapped(void *code, const char *symbol)
{
	struct objects objects = {NULL, 0, 0};
	void *found = NULL;
	Dl_info near;
	size_t i;

	if (code && dladdr(code, &near) && near.dli_fname)
		found = find_in(near.dli_fname, symbol);
	if (found)
		return found;
	dl_iterate_phdr(collect, &objects);
	for (i = 0; i < objects.n; i++) {
		const char *name = objects.names[i];

		if (!found)
			found = find_in(*name ? name : NULL, symbol);
		free(objects.names[i]);
	}
	free(objects.names);
	return found;
}

const struct pawl_ggml_layout *
pawl_ggml_layout_of(const char *version)
{
	size_t i;
	long minor;
	char *end;

	if (strncmp(version, "0.", 2) || version[2] < '0' || version[2] > '9')
		return NULL;
	minor = strtol(version + 2, &end, 10);
	if (*end != '.' || minor < OLDEST_MINOR)
		return NULL;
	for (i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
		if (minor < layouts[i].until_minor)
			return &layouts[i];
	}
	return NULL;
}

static int
index_of(const char *const *names, int n, const char *name)
{
	int i;

	for (i = 0; i < n && strcmp(names[i], name); i++)
		;
	return i;
}

/* The host tells no number of ops; GLU is the last in every version that is known. */
static bool
map_ops(struct pawl_ggml_host *host)
{
	const char *name = "";
	int i;

	for (i = 0; i < 256 && strcmp(name, "GLU"); i++) {
		name = host->op_name(i);
		if (!name)
			return false;
		host->op[i] = (uint8_t)index_of(op_names, PAWL_GGML_OP_OTHER, name);
	}
	host->n_ops = i;
	return i < 256;
}

/* Tables of which only the first few names are of interest: those looked for come early. */
static void
map_names(uint8_t *map, int room, const char *(*name_of)(int), int known, const char *const *names)
{
	int i, found = 0;

	memset(map, known, (size_t)room);
	for (i = 0; i < 12 && i < room && found < known; i++) {
		const char *name = name_of(i);

		if (!name)
			return;
		map[i] = (uint8_t)index_of(names, known, name);
		found += map[i] < known;
	}
}

enum pawl_status
pawl_ggml_host_bind(
	struct pawl_ggml_host *host, pawl_ggml_finder *find, void *arg, struct pawl_error *err)
{
	const char *(*version)(void), *(*unary_name)(int), *(*glu_name)(int);
	size_t (*tensor_overhead)(void);
	const struct {
		const char *name;
		void *to;
	} wanted[] = {
		{"ggml_version", &version},
		{"ggml_op_name", &host->op_name},
		{"ggml_unary_op_name", &unary_name},
		{"ggml_glu_op_name", &glu_name},
		{"ggml_tensor_overhead", &tensor_overhead},
		{"ggml_backend_buffer_init", &host->buffer_init},
		{"ggml_backend_dev_by_type", &host->device_by_type},
		{"ggml_backend_dev_init", &host->device_init},
		{"ggml_backend_graph_compute", &host->graph_compute},
		{"ggml_backend_free", &host->stream_free},
		{"ggml_backend_dev_backend_reg", &host->device_registry},
		{"ggml_backend_reg_get_proc_address", &host->registry_proc},
	};
	void *symbol;
	size_t i;

	memset(host, 0, sizeof(*host));
	symbol = find(arg, "ggml_log_internal");
	memcpy(&host->log, &symbol, sizeof(symbol));
	for (i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		symbol = find(arg, wanted[i].name);
		if (!symbol)
			return pawl_fail(err, PAWL_ENVIRONMENT,
				"nothing in this process shows the symbol %s", wanted[i].name);
		memcpy(wanted[i].to, &symbol, sizeof(symbol));
	}
	snprintf(host->version, sizeof(host->version), "%s", version());
	host->layout = pawl_ggml_layout_of(host->version);
	if (!host->layout)
		return pawl_fail(err, PAWL_ENVIRONMENT,
			"ggml %s is none of the versions known here, 0.9 to 0.%d", host->version,
			layouts[sizeof(layouts) / sizeof(layouts[0]) - 1].until_minor - 1);
	/* An object's header of 32 bytes comes before the tensor. */
	if (tensor_overhead() != sizeof(struct pawl_ggml_tensor) + 32)
		return pawl_fail(err, PAWL_ENVIRONMENT,
			"a tensor of ggml %s takes %zu bytes, not %zu", host->version,
			tensor_overhead(), sizeof(struct pawl_ggml_tensor) + 32);
	if (!map_ops(host))
		return pawl_fail(
			err, PAWL_ENVIRONMENT, "the ops of ggml %s have no end", host->version);
	map_names(host->unary, 64, unary_name, PAWL_GGML_UNARY_OTHER, unary_names);
	map_names(host->glu, 16, glu_name, PAWL_GGML_GLU_OTHER, glu_names);
	return PAWL_OK;
}

enum pawl_ggml_op
pawl_ggml_op_of(const struct pawl_ggml_host *host, const struct pawl_ggml_tensor *t)
{
	return t->op >= 0 && t->op < host->n_ops ? (enum pawl_ggml_op)host->op[t->op]
						 : PAWL_GGML_OP_OTHER;
}

const char *
pawl_ggml_op_text(const struct pawl_ggml_host *host, const struct pawl_ggml_tensor *t)
{
	return t->op >= 0 && t->op < host->n_ops ? host->op_name(t->op) : "?";
}

void
pawl_ggml_log(const struct pawl_ggml_host *host, enum pawl_ggml_level level, const char *format, ...)
{
	char text[1200];
	va_list args;

	if (!host->log)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	host->log((int)level, "pawl: %s\n", text);
}

/* buffer type, context, size and usage follow the functions. */
static const char *
behind_functions(const struct pawl_ggml_host *host, const struct pawl_ggml_buffer *buffer)
{
	return (const char *)buffer +
	       sizeof(pawl_ggml_fn) * (size_t)host->layout->n_buffer_fns;
}

enum pawl_ggml_usage
pawl_ggml_buffer_usage(const struct pawl_ggml_host *host, const struct pawl_ggml_buffer *buffer)
{
	int32_t usage;

	memcpy(&usage, behind_functions(host, buffer) + 3 * sizeof(void *), sizeof(usage));
	return usage == PAWL_GGML_WEIGHTS ? PAWL_GGML_WEIGHTS : PAWL_GGML_ANY;
}

bool
pawl_ggml_is_reachable(const struct pawl_ggml_host *host, const struct pawl_ggml_tensor *t)
{
	const char *type;
	bool (*is_host)(const void *type) = NULL;

	if (!t->data)
		return false;
	if (!t->buffer)
		return true;
	memcpy(&type, behind_functions(host, t->buffer), sizeof(type));
	memcpy(&is_host, type + sizeof(pawl_ggml_fn) * (size_t)host->layout->buft_is_host,
		sizeof(is_host));
	return is_host && is_host(type);
}
