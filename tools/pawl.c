#include "tools/commands.h"

#include "ir/build_id.h"
#include "ir/debug.h"
#include "tools/options.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *doc;
} commands[] = {
#define PAWL_COMMAND(name, doc) {#name, pawl_cmd_##name, doc},
#include "tools/commands.def"
};

enum { N_COMMANDS = sizeof(commands) / sizeof(commands[0]) };

static const struct pawl_command self = {.name = NULL};

static void
print_row(const struct pawl_env_info *info)
{
	printf("  %-19s%s\n", info->name, info->doc);
}

static int
print_help(void)
{
	printf("usage: pawl COMMAND [OPTION]... [FILE]\n"
	       "       pawl --version\n\n"
	       "Decodes language models through a held plan: optimized once, rebound for every\n"
	       "token.  Results go to standard output, messages to standard error.  The exit\n"
	       "status is 0, 1 for a failure, 2 for a wrong command line.  As a file, - is\n"
	       "standard input or output; models and sessions have to be files.\n\n");
	for (int i = 0; i < N_COMMANDS; i++)
		printf("  pawl %-12s%s\n", commands[i].name, commands[i].doc);
	printf("\n`pawl COMMAND --help` explains each.\n\nEnvironment:\n\n");
	for (int i = 0; i < PAWL_N_ENVS; i++)
		print_row(pawl_env_info((enum pawl_env)i));
	printf("\nWords of PAWL_DEBUG:\n\n");
	for (int i = 0; i < PAWL_N_DEBUGS; i++)
		print_row(pawl_debug_info((enum pawl_debug)i));
	return pawl_finish_output(&self);
}

/*
 * No file may be opened as what is a standard stream to the rest of the program.  One that was
 * closed stays useless: it is opened the wrong way round.
 */
static bool
fill_standard_streams(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) < 0 &&
			open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
			return false;
	}
	return true;
}

int
main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : NULL;

	if (!fill_standard_streams())
		return PAWL_EXIT_FAILED;
	if (!name)
		return pawl_usage_error(&self, "no command given");
	if (!strcmp(name, "--help"))
		return print_help();
	if (!strcmp(name, "--version")) {
		printf("pawl %s, build %s\n", PACKAGE_VERSION, pawl_build_id);
		return pawl_finish_output(&self);
	}
	for (int i = 0; i < N_COMMANDS; i++) {
		if (!strcmp(name, commands[i].name))
			return commands[i].run(argc - 1, argv + 1);
	}
	return pawl_usage_error(&self, "there is no command '%.100s'", name);
}
