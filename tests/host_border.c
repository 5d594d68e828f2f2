/*
 * A host that watches its border: what would print, exit, abort or raise a signal from inside the
 * plugin is trapped, since modules find these functions here first; standard output and error are
 * files that must stay empty.  With that it loads, runs and unloads the plugin again and again, and
 * makes it fail in every way a host can.
 *
 *	host-border PATH/pawl_plugin.so TARGET ROUNDS
 *
 * An LLVM that is in the process already (preloaded) is used before and after.  Result in the
 * status; what went wrong is said on descriptor 3.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <pawl/plugin.h>

#include "examples/toy.h"

static void
say(const char *text, const char *more)
{
	char line[512];
	int n = snprintf(line, sizeof(line), "host-border: %s%s\n", text, more);

	syscall(SYS_write, 3, line, (size_t)n);
}

static _Noreturn void
fail(const char *text, const char *more)
{
	say(text, more);
	syscall(SYS_exit_group, 1);
	__builtin_unreachable();
}

static void
expect(int is_so, const char *text)
{
	if (!is_so)
		fail(text, "");
}

#define TRAP(declaration, name)                                                                    \
	declaration;                                                                               \
	declaration                                                                                \
	{                                                                                          \
		fail("the plugin calls ", name);                                                   \
	}

#pragma GCC visibility push(default)
TRAP(void exit(int status), "exit")
TRAP(void _exit(int status), "_exit")
TRAP(void _Exit(int status), "_Exit")
TRAP(void quick_exit(int status), "quick_exit")
TRAP(void abort(void), "abort")
TRAP(int raise(int number), "raise")
TRAP(void __assert_fail(const char *text, const char *file, unsigned line, const char *function),
	"__assert_fail")
TRAP(int printf(const char *format, ...), "printf")
TRAP(int __printf_chk(int flag, const char *format, ...), "__printf_chk")
TRAP(int puts(const char *text), "puts")
TRAP(int putchar(int c), "putchar")
TRAP(void perror(const char *text), "perror")
TRAP(int atexit(void (*fn)(void)), "atexit")
TRAP(void __cxa_throw(void *thrown, void *type, void (*destroy)(void *)), "__cxa_throw")
TRAP(int _Unwind_RaiseException(void *exception), "_Unwind_RaiseException")
#pragma GCC visibility pop

static const struct pawl_api *api;
static int n_refused;

static void
must(struct pawl_host_status *status)
{
	if (status)
		fail("a call failed: ", api->status_message(status));
}

static void
refused(struct pawl_host_status *status, const char *what)
{
	if (!status)
		fail("not refused: ", what);
	n_refused++;
	api->status_free(status);
}

static void
make_graph(struct pawl_host_context *context, struct pawl_host_graph **graph)
{
	must(api->graph_create(context, "toy", graph));
	must(api->graph_symbol(*graph, "attended_len", 1, TOY_CAPACITY, 1));
	for (size_t i = 0; i < TOY_N_NODES; i++) {
		const struct toy_node *node = &toy_nodes[i];
		int64_t n = 0;

		while (n < TOY_MAX_INPUTS && node->inputs[n])
			n++;
		must(api->graph_add(*graph, node->name, node->op, node->inputs, n, node->attrs,
			node->type ? node->type : "f16[1, 1, 32, 16]"));
	}
	must(api->graph_output(*graph, "next"));
}

static float weights_memory[TOY_N_WEIGHTS][TOY_VOCAB * TOY_WIDTH];

static void
run(struct pawl_host_session *session, struct pawl_host_plan *plan, int64_t position,
	uint32_t token)
{
	float cos_row[TOY_HEAD], sin_row[TOY_HEAD];

	toy_rope(position, cos_row, sin_row);
	must(api->session_set(session, api->plan_find(plan, PAWL_BINDING_DATA, "ids"), &token, 4));
	must(api->session_set(
		session, api->plan_find(plan, PAWL_BINDING_DATA, "cos"), cos_row, sizeof(cos_row)));
	must(api->session_set(
		session, api->plan_find(plan, PAWL_BINDING_DATA, "sin"), sin_row, sizeof(sin_row)));
	must(api->session_set(
		session, api->plan_find(plan, PAWL_BINDING_DATA, "offset"), &position, 8));
	must(api->session_set_symbol(
		session, api->plan_find(plan, PAWL_BINDING_SYMBOL, "attended_len"), position + 1));
}

static int
no_more(void *user, const void *bytes, size_t n)
{
	(void)user;
	(void)bytes;
	(void)n;
	return 1;
}

/* Whatever a host may do wrong. */
static void
misbehave(struct pawl_host_context *context, struct pawl_host_plan *plan,
	struct pawl_host_session *session, struct pawl_host_cache *cache)
{
	static const char *const texts[] = {"", "pawl 2\n", "pawl 1\ngraph @g stage values {\n",
		"pawl 1\ngraph @g stage values {\n%x = sqrt %y : f32[4]\n}\n",
		"pawl 1\ngraph @g stage values {\n%x = const : f32[99999999999999999999]\n}\n"};
	struct pawl_context_options options = {.struct_size = sizeof(options), .target = "nowhere"};
	struct pawl_host_context *none;
	struct pawl_host_graph *graph;
	const void *out;
	size_t n;

	refused(api->context_create(NULL, &options, &none), "no target");
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		refused(api->graph_from_text(context, texts[i], strlen(texts[i]), &graph),
			texts[i]);
	refused(api->graph_create(context, "a b", &graph), "no name");
	refused(api->plan_to_json(plan, no_more, NULL), "a sink that refuses");
	refused(api->context_describe(context, no_more, NULL), "a sink that refuses");
	refused(api->session_run(NULL, 0), "no session");
	refused(api->session_run(session, TOY_CAPACITY + 1), "too many positions");
	run(session, plan, 0, 9999);
	refused(api->session_run(session, 1), "a token out of range");
	refused(api->session_output(session, 0, &out, &n), "no output");
	refused(api->cache_reserve(cache, INT64_MAX), "absurd");
	refused(api->cache_set_len(cache, -1, NULL), "negative");
	refused(api->cache_restore(cache, 0, "PAWLKV", 6, NULL, 0, NULL), "no snapshot");
}

static unsigned long long n_kernels;

static void
count_kernels(struct pawl_host_context *context)
{
	struct pawl_counter counter = {.struct_size = sizeof(counter)};

	for (int64_t i = 0; api->context_counter(context, i, &counter); i++)
		if (!strcmp(counter.name, "kernels.compiled"))
			n_kernels += counter.value;
}

/* Loads, decodes a few tokens, lets it fail, unloads. */
static void
round_of(const char *path, const char *target)
{
	struct pawl_context_options options = {
		.struct_size = sizeof(options), .target = target, .n_threads = 2};
	const struct pawl_api *(*get_api)(uint32_t version);
	struct pawl_host_context *context;
	struct pawl_host_graph *graph;
	struct pawl_host_plan *plan;
	struct pawl_host_weights *weights;
	struct pawl_host_session *session;
	struct pawl_host_cache *cache;
	void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	expect(module != NULL, "the plugin does not load");
	*(void **)&get_api = dlsym(module, "pawl_get_api");
	api = get_api(PAWL_ABI_VERSION);
	must(api->context_create(NULL, &options, &context));
	make_graph(context, &graph);
	must(api->plan_compile(graph, &plan));
	must(api->weights_create(context, NULL, &weights));
	for (size_t i = 0; i < TOY_N_WEIGHTS; i++) {
		toy_fill(i, weights_memory[i]);
		must(api->weights_add(weights, toy_weights[i].name, toy_weights[i].type,
			weights_memory[i], toy_weights[i].n * sizeof(float)));
	}
	must(api->session_create(plan, weights, &session));
	must(api->cache_create(plan, NULL, &cache));
	must(api->session_use_cache(session, cache, NULL));
	misbehave(context, plan, session, cache);
	for (int64_t i = 0; i < 3; i++) {
		run(session, plan, i, 1);
		must(api->session_run(session, 1));
	}
	count_kernels(context);
	api->context_release(context);
	api->graph_release(graph);
	api->plan_release(plan);
	api->weights_release(weights);
	api->cache_release(cache);
	api->session_release(session);
	expect(!dlclose(module), "the plugin cannot be closed");
}

static int
count_entries(const char *path)
{
	DIR *dir = opendir(path);
	int n = 0;

	expect(dir != NULL, "no /proc");
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* KiB of this process in memory. */
static long
resident(void)
{
	char text[64] = "";
	int fd = open("/proc/self/statm", O_RDONLY);
	char *end;

	expect(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0, "no statm");
	close(fd);
	strtol(text, &end, 10);
	return strtol(end, NULL, 10) * (sysconf(_SC_PAGESIZE) / 1024);
}

/* Another LLVM that is here already: reads, verifies and writes a function. */
static int
use_llvm(void)
{
	static const char text[] = "define i32 @theirs() {\n  ret i32 42\n}\n";
	void *(*context_create)(void), *(*buffer)(const char *, size_t, const char *);
	int (*parse)(void *, void *, void **, char **), (*verify)(void *, int, char **);
	void (*dispose_message)(char *), (*dispose_module)(void *), (*dispose_context)(void *);
	char *(*print)(void *), *message = NULL;
	void *context, *module = NULL;

	*(void **)&context_create = dlsym(RTLD_DEFAULT, "LLVMContextCreate");
	if (!context_create)
		return 0;
	*(void **)&buffer = dlsym(RTLD_DEFAULT, "LLVMCreateMemoryBufferWithMemoryRangeCopy");
	*(void **)&parse = dlsym(RTLD_DEFAULT, "LLVMParseIRInContext");
	*(void **)&verify = dlsym(RTLD_DEFAULT, "LLVMVerifyModule");
	*(void **)&print = dlsym(RTLD_DEFAULT, "LLVMPrintModuleToString");
	*(void **)&dispose_message = dlsym(RTLD_DEFAULT, "LLVMDisposeMessage");
	*(void **)&dispose_module = dlsym(RTLD_DEFAULT, "LLVMDisposeModule");
	*(void **)&dispose_context = dlsym(RTLD_DEFAULT, "LLVMContextDispose");
	expect(buffer && parse && verify && print && dispose_message && dispose_module &&
			dispose_context,
		"the host's LLVM is no whole one");
	context = context_create();
	expect(!parse(context, buffer(text, strlen(text), "theirs"), &module, &message),
		"the host's LLVM reads nothing");
	expect(!verify(module, 2, &message), "the host's LLVM verifies nothing");
	dispose_message(message);
	message = print(module);
	expect(strstr(message, "ret i32 42") != NULL, "the host's LLVM writes nothing");
	dispose_message(message);
	dispose_module(module);
	dispose_context(context);
	return 1;
}

/* What is done at a signal stays the host's to decide. */
static void
expect_default_signals(void)
{
	for (int i = 1; i < SIGSYS; i++) {
		struct sigaction now;

		expect(i == SIGKILL || i == SIGSTOP ||
				(!sigaction(i, NULL, &now) && now.sa_handler == SIG_DFL),
			"a signal is handled");
	}
}

static int
open_empty(const char *name)
{
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	expect(fd >= 0, "no file for the output");
	unlink(name);
	return fd;
}

int
main(int argc, char **argv)
{
	int rounds = argc == 4 ? (int)strtol(argv[3], NULL, 10) : 0, out, n_fds = 0, n_threads = 0;
	char name[64], summary[160];
	struct stat info;
	long before = 0;
	int has_llvm;

	if (rounds < 1)
		return 2;
	for (int i = 1; i < SIGSYS; i++)
		signal(i, SIG_DFL);
	snprintf(name, sizeof(name), "host-border-%d.out", (int)getpid());
	out = open_empty(name);
	dup2(out, 1);
	dup2(out, 2);
	has_llvm = use_llvm();
	for (int i = 0; i < rounds; i++) {
		round_of(argv[1], argv[2]);
		if (i && i != rounds / 4)
			continue;
		n_fds = count_entries("/proc/self/fd");
		n_threads = count_entries("/proc/self/task");
		before = resident();
	}
	expect(count_entries("/proc/self/fd") == n_fds, "descriptors are left open");
	expect(count_entries("/proc/self/task") == n_threads, "threads are left");
	expect(use_llvm() == has_llvm, "the host's LLVM is gone");
	expect_default_signals();
	fflush(NULL);
	expect(!fstat(out, &info) && !info.st_size, "something was printed");
	snprintf(summary, sizeof(summary),
		"%d rounds, %d refusals, %llu kernels compiled, %ld KiB more, LLVM of its own: %s",
		rounds, n_refused, n_kernels, resident() - before, has_llvm ? "yes" : "no");
	say(summary, "");
	/* A round leaves nothing; what the first ones fill for good is counted before. */
	expect(rounds < 40 || resident() - before < 2048, "memory grows");
	syscall(SYS_exit_group, 0);
}
