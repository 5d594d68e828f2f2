#include "tools/output.h"

#include "passes/observe.h"
#include "tools/input.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_TRIES = 100 };

static const int ending_signals[] = {
	SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGXCPU, SIGXFSZ};

/* What a signal removes. */
static const char *volatile pending;

static void
remove_pending(int number)
{
	if (pending)
		unlink(pending);
	raise(number);
}

/* A signal that is ignored stays so. */
static void
set_handlers(void (*from)(int), void (*to)(int))
{
	struct sigaction action;

	for (size_t i = 0; i < sizeof(ending_signals) / sizeof(ending_signals[0]); i++) {
		if (sigaction(ending_signals[i], NULL, &action) || action.sa_handler != from)
			continue;
		action = (struct sigaction){.sa_handler = to};
		action.sa_flags = to == SIG_DFL ? 0 : (int)SA_RESETHAND;
		sigaction(ending_signals[i], &action, NULL);
	}
}

static enum pawl_status
fail(const struct pawl_output *out, int reason, struct pawl_error *err)
{
	return pawl_fail(err, PAWL_ENVIRONMENT, "%s: %.300s: %s", out->option, out->path,
		strerror(reason));
}

static bool
is_same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static enum pawl_status
check_no_input(const struct pawl_output *out, const struct stat *found,
	const struct pawl_inputs *inputs, struct pawl_error *err)
{
	for (int i = 0; i < PAWL_MAX_INPUT_FILES && S_ISREG(found->st_mode); i++) {
		const char *path = inputs->paths[i];
		struct stat input;

		if (!path || (strcmp(path, "-") ? stat(path, &input) : fstat(STDIN_FILENO, &input)))
			continue;
		if (is_same_file(found, &input))
			return pawl_fail(err, PAWL_INVALID_ARGUMENT,
				"%s: %.300s is the same file as the input %.300s", out->option,
				out->path, pawl_input_name(path));
	}
	return PAWL_OK;
}

/* -1, or another descriptor of standard output or error where that is the file. */
static int
dup_standard(const struct stat *found)
{
	for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++) {
		struct stat open;

		if (!fstat(fd, &open) && is_same_file(found, &open) &&
			(fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY)
			return fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	}
	return -1;
}

/* A new file in the folder of `place`.  -1 with errno. */
static int
create_beside(const char *place, mode_t mode, char **temporary)
{
	char copy[PATH_MAX], name[PATH_MAX + 64];
	const char *folder;
	int fd = -1;

	if (snprintf(copy, sizeof(copy), "%s", place) >= (int)sizeof(copy)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	folder = dirname(copy);
	for (int i = 0; i < MAX_TRIES && fd < 0; i++) {
		snprintf(name, sizeof(name), "%s/.pawl-%ld-%d", folder, (long)getpid(), i);
		fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
		if (fd < 0 && errno != EEXIST)
			return -1;
	}
	*temporary = fd < 0 ? NULL : strdup(name);
	if (fd >= 0 && !*temporary) {
		unlink(name);
		close(fd);
		errno = ENOMEM;
		return -1;
	}
	return fd;
}

/* A descriptor to write to, or -1 with errno. */
static int
open_file(struct pawl_output *out, const struct stat *found)
{
	size_t n = strlen(out->path);
	int fd;

	if (!found) {
		if (n && out->path[n - 1] == '/') {
			errno = EISDIR;
			return -1;
		}
		out->place = strdup(out->path);
		return out->place ? create_beside(out->place, 0666, &out->temporary) : -1;
	}
	fd = dup_standard(found);
	if (fd >= 0)
		return fd;
	if (!S_ISREG(found->st_mode))
		return open(out->path, O_WRONLY | O_CLOEXEC);
	if (access(out->path, W_OK))
		return -1;
	out->place = realpath(out->path, NULL);
	fd = out->place ? create_beside(out->place, 0600, &out->temporary) : -1;
	if (fd >= 0)
		fchmod(fd, found->st_mode & 0777);
	return fd;
}

enum pawl_status
pawl_output_open(struct pawl_output *out, const char *option, const char *path,
	const struct pawl_inputs *inputs, struct pawl_error *err)
{
	struct stat found;
	bool exists = !stat(path, &found);
	int fd, reason = errno;

	*out = (struct pawl_output){.option = option, .path = path};
	if (!exists && reason != ENOENT)
		return fail(out, reason, err);
	if (exists && check_no_input(out, &found, inputs, err))
		return PAWL_INVALID_ARGUMENT;
	fd = open_file(out, exists ? &found : NULL);
	if (fd >= 0)
		out->file = fdopen(fd, "wb");
	reason = errno;
	if (fd >= 0 && !out->file)
		close(fd);
	if (!out->file) {
		enum pawl_status status = fail(out, reason, err);

		pawl_output_release(out);
		return status;
	}
	if (out->temporary) {
		pending = out->temporary;
		set_handlers(SIG_DFL, remove_pending);
	}
	return PAWL_OK;
}

enum pawl_status
pawl_output_write(struct pawl_output *out, const void *bytes, size_t n, struct pawl_error *err)
{
	errno = 0;
	return fwrite(bytes, 1, n, out->file) == n ? PAWL_OK : fail(out, errno, err);
}

enum pawl_status
pawl_output_commit(struct pawl_output *out, struct pawl_error *err)
{
	enum pawl_status status = PAWL_OK;
	FILE *file = out->file;

	out->file = NULL;
	fflush(stdout);
	errno = 0;
	if (fflush(file) || ferror(file))
		status = fail(out, errno, err);
	if (fclose(file) && !status)
		status = fail(out, errno, err);
	if (!status && out->temporary) {
		if (rename(out->temporary, out->place)) {
			status = fail(out, errno, err);
		} else {
			pending = NULL;
			free(out->temporary);
			out->temporary = NULL;
		}
	}
	pawl_output_release(out);
	return status;
}

void
pawl_output_release(struct pawl_output *out)
{
	if (out->file)
		fclose(out->file);
	if (out->temporary)
		unlink(out->temporary);
	pending = NULL;
	set_handlers(remove_pending, SIG_DFL);
	free(out->temporary);
	free(out->place);
	*out = (struct pawl_output){0};
}

static bool
is_dump_name(const char *path)
{
	size_t n = strlen(path);

	return n >= 5 && !strcmp(path + n - 5, ".pawl");
}

static enum pawl_status
check_no_input_in(const char *folder, const struct pawl_inputs *inputs, struct pawl_error *err)
{
	enum pawl_status status = PAWL_OK;
	struct stat dumps, holds;

	for (int i = 0; i < PAWL_MAX_INPUT_FILES && !status; i++) {
		const char *path = inputs->paths[i];
		char *real = path ? realpath(path, NULL) : NULL;

		if (real && is_dump_name(real) && !stat(folder, &dumps) &&
			!stat(dirname(real), &holds) && is_same_file(&dumps, &holds))
			status = pawl_fail(err, PAWL_INVALID_ARGUMENT,
				"PAWL_DUMP: %.300s holds the input file %.300s, which a dump "
				"could overwrite",
				folder, path);
		free(real);
	}
	return status;
}

static enum pawl_status
check_dump(const char *folder, const struct pawl_inputs *inputs, struct pawl_error *err)
{
	enum pawl_status status = check_no_input_in(folder, inputs, err);
	char *temporary, place[PATH_MAX];
	int fd;

	if (status)
		return status;
	if (snprintf(place, sizeof(place), "%s/-", folder) >= (int)sizeof(place))
		return pawl_fail(err, PAWL_ENVIRONMENT, "PAWL_DUMP: %.300s...: %s", folder,
			strerror(ENAMETOOLONG));
	fd = mkdir(folder, 0777) && errno != EEXIST ? -1 : create_beside(place, 0600, &temporary);
	if (fd < 0)
		return pawl_fail(
			err, PAWL_ENVIRONMENT, "PAWL_DUMP: %.300s: %s", folder, strerror(errno));
	close(fd);
	unlink(temporary);
	free(temporary);
	return PAWL_OK;
}

enum pawl_status
pawl_check_environment(const struct pawl_inputs *inputs, struct pawl_error *err)
{
	struct pawl_run_options options;
	enum pawl_status status = pawl_run_options_from_env(&options, err);

	return status || !options.dump_folder ? status
					      : check_dump(options.dump_folder, inputs, err);
}
