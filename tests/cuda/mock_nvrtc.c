/*
 * NVRTC with no CUDA: what it compiles is C for tests/cuda/kernel_host.h, by the compiler that
 * built the tests, into a shared object that stands for a cubin.  Objects are kept in a folder by
 * what they were made from, since tests are many processes.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))

enum { SUCCESS, ERROR_OUT_OF_MEMORY = 1, ERROR_INVALID_INPUT = 3, ERROR_INVALID_PROGRAM = 4,
	ERROR_INVALID_OPTION = 5, ERROR_COMPILATION = 6 };

struct text {
	char *bytes;
	size_t n;
};

struct _nvrtcProgram {
	char *source;
	char *code;
	size_t n_code;
	char log[2048];
};
typedef struct _nvrtcProgram *nvrtcProgram;

API int nvrtcVersion(int *major, int *minor);
API const char *nvrtcGetErrorString(int result);
API int nvrtcGetNumSupportedArchs(int *n);
API int nvrtcGetSupportedArchs(int *archs);
API int nvrtcCreateProgram(nvrtcProgram *program, const char *source, const char *name,
	int n_headers, const char *const *headers, const char *const *include_names);
API int nvrtcDestroyProgram(nvrtcProgram *program);
API int nvrtcCompileProgram(nvrtcProgram program, int n_options, const char *const *options);
API int nvrtcGetProgramLogSize(nvrtcProgram program, size_t *size);
API int nvrtcGetProgramLog(nvrtcProgram program, char *log);
API int nvrtcGetCUBINSize(nvrtcProgram program, size_t *size);
API int nvrtcGetCUBIN(nvrtcProgram program, char *code);
API int nvrtcGetPTXSize(nvrtcProgram program, size_t *size);
API int nvrtcGetPTX(nvrtcProgram program, char *code);
API int nvrtcSetFlowCallback(nvrtcProgram program, int (*fn)(void *, void *), void *arg);

static const int archs[] = {75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121};

int
nvrtcVersion(int *major, int *minor)
{
	*major = 13;
	*minor = 0;
	return SUCCESS;
}

const char *
nvrtcGetErrorString(int result)
{
	return result == ERROR_COMPILATION ? "NVRTC_ERROR_COMPILATION" : "NVRTC_ERROR";
}

int
nvrtcGetNumSupportedArchs(int *n)
{
	*n = sizeof(archs) / sizeof(*archs);
	return SUCCESS;
}

int
nvrtcGetSupportedArchs(int *out)
{
	memcpy(out, archs, sizeof(archs));
	return SUCCESS;
}

int
nvrtcCreateProgram(nvrtcProgram *program, const char *source, const char *name, int n_headers,
	const char *const *headers, const char *const *include_names)
{
	(void)name;
	(void)headers;
	(void)include_names;
	if (n_headers)
		return ERROR_INVALID_INPUT;
	*program = calloc(1, sizeof(**program));
	if (!*program)
		return ERROR_OUT_OF_MEMORY;
	(*program)->source = strdup(source);
	return (*program)->source ? SUCCESS : ERROR_OUT_OF_MEMORY;
}

int
nvrtcDestroyProgram(nvrtcProgram *program)
{
	free((*program)->source);
	free((*program)->code);
	free(*program);
	*program = NULL;
	return SUCCESS;
}

static uint64_t
hash_text(uint64_t hash, const char *text)
{
	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return hash;
}

static char *
read_file(const char *path, size_t *n)
{
	FILE *file = fopen(path, "rb");
	char *bytes = NULL;
	long size;

	if (!file)
		return NULL;
	if (!fseek(file, 0, SEEK_END) && (size = ftell(file)) >= 0 && !fseek(file, 0, SEEK_SET)) {
		bytes = calloc((size_t)size + 1, 1);
		if (bytes && fread(bytes, 1, (size_t)size, file) != (size_t)size) {
			free(bytes);
			bytes = NULL;
		}
		*n = (size_t)size;
	}
	fclose(file);
	return bytes;
}

/* The kernels of a text, each with the largest index of args[...] up to the next kernel. */
static void
write_table(FILE *file, const char *source)
{
	static const char mark[] = "\nPAWL_KERNEL(";
	const char *at = strstr(source, mark), *next;

	fprintf(file, "\n#include \"tests/cuda/mock.h\"\n"
		"extern char __start_pawl_shared[] __attribute__((weak, visibility(\"hidden\")));\n"
		"extern char __stop_pawl_shared[] __attribute__((weak, visibility(\"hidden\")));\n"
		"void pawl_mock_shared(char **begin, char **end)\n"
		"{ *begin = __start_pawl_shared; *end = __stop_pawl_shared; }\n"
		"const struct pawl_mock_kernel pawl_mock_kernels[] = {\n");
	for (; at; at = next) {
		const char *name = at + sizeof(mark) - 1, *arg;
		int length = (int)strcspn(name, ","), threads = atoi(name + length + 1), n = 0;

		next = strstr(name, mark);
		for (arg = strstr(name, "args["); arg && (!next || arg < next);
			arg = strstr(arg + 1, "args["))
			if (atoi(arg + 5) >= n)
				n = atoi(arg + 5) + 1;
		fprintf(file, "{\"%.*s\", k_%.*s, %d, %d},\n", length, name, length, name,
			threads, n);
	}
	fprintf(file, "{0}};\n");
}

static bool
write_source(const char *path, const char *source)
{
	FILE *file = fopen(path, "w");
	bool ok;

	if (!file)
		return false;
	fprintf(file, "#include \"ir/half.c\"\n#define PAWL_CASE k\n"
		"#include \"tests/cuda/kernel_host.h\"\n%s\n", source);
	write_table(file, source);
	ok = !ferror(file);
	return !fclose(file) && ok;
}

static bool
build(const char *object, const char *source, char *log, size_t n)
{
	char text[1024], made[1024], command[8192], error[1024];
	size_t n_error = 0;
	char *what;
	bool ok;

	snprintf(text, sizeof(text), "%.900s.%d.c", object, (int)getpid());
	snprintf(made, sizeof(made), "%.900s.%d.tmp", object, (int)getpid());
	snprintf(error, sizeof(error), "%.900s.%d.log", object, (int)getpid());
	snprintf(command, sizeof(command),
		"%s -std=gnu11 -O2 -w -g0 -ffp-contract=off -fPIC -shared %s -o %.900s %.900s "
		">%.900s 2>&1",
		PAWL_MOCK_CC, PAWL_MOCK_CPPFLAGS, made, text, error);
	ok = write_source(text, source) && system(command) == 0 && !rename(made, object);
	what = ok ? NULL : read_file(error, &n_error);
	snprintf(log, n, "%s", what ? what : "");
	free(what);
	unlink(error);
	unlink(made);
	if (ok)
		unlink(text);
	return ok;
}

static bool
is_known(const char *option)
{
	const char *number = strstr(option, "sm_");
	size_t i;

	if (!number)
		number = strstr(option, "compute_");
	number = number ? strchr(number, '_') + 1 : "";
	for (i = 0; i < sizeof(archs) / sizeof(*archs); i++)
		if (atoi(number) == archs[i])
			return true;
	return false;
}

int
nvrtcCompileProgram(nvrtcProgram program, int n_options, const char *const *options)
{
	char path[900], *header;
	uint64_t hash = hash_text(UINT64_C(0xcbf29ce484222325), program->source);
	size_t n = 0;
	int i;

	for (i = 0; i < n_options; i++) {
		if (strstr(options[i], "-arch") && !is_known(options[i])) {
			snprintf(program->log, sizeof(program->log),
				"nvrtc: error: invalid value for --gpu-architecture (%s)",
				options[i]);
			return ERROR_INVALID_OPTION;
		}
	}
	header = read_file(PAWL_MOCK_HEADER, &n);
	hash = hash_text(hash, header ? header : "");
	free(header);
	mkdir(PAWL_MOCK_CACHE, 0777);
	snprintf(path, sizeof(path), "%s/%016" PRIx64 ".so", PAWL_MOCK_CACHE, hash);
	program->code = read_file(path, &program->n_code);
	if (!program->code && build(path, program->source, program->log, sizeof(program->log)))
		program->code = read_file(path, &program->n_code);
	return program->code ? SUCCESS : ERROR_COMPILATION;
}

int
nvrtcGetProgramLogSize(nvrtcProgram program, size_t *size)
{
	*size = strlen(program->log) + 1;
	return SUCCESS;
}

int
nvrtcGetProgramLog(nvrtcProgram program, char *log)
{
	strcpy(log, program->log);
	return SUCCESS;
}

int
nvrtcGetCUBINSize(nvrtcProgram program, size_t *size)
{
	*size = program->n_code;
	return program->code ? SUCCESS : ERROR_INVALID_PROGRAM;
}

int
nvrtcGetCUBIN(nvrtcProgram program, char *code)
{
	if (!program->code)
		return ERROR_INVALID_PROGRAM;
	memcpy(code, program->code, program->n_code);
	return SUCCESS;
}

int
nvrtcGetPTXSize(nvrtcProgram program, size_t *size)
{
	return nvrtcGetCUBINSize(program, size);
}

int
nvrtcGetPTX(nvrtcProgram program, char *code)
{
	return nvrtcGetCUBIN(program, code);
}

int
nvrtcSetFlowCallback(nvrtcProgram program, int (*fn)(void *, void *), void *arg)
{
	(void)program;
	(void)fn;
	(void)arg;
	return SUCCESS;
}
