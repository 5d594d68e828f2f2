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

enum { MAX_TRIES = 100, MAX_LINKS = 40 };

/* Those of POSIX that end a process and are no fault of its own. */
static const int ending_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGXCPU, SIGXFSZ,
	SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGPOLL};

static struct pawl_output *volatile opened;

static void
remove_temporaries(int number)
{
	for (const struct pawl_output *out = opened; out; out = out->next) {
		const char *temporary = out->temporary;

		if (temporary)
			unlink(temporary);
	}
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

/* Two writers of one file lose or mix what they write, those of a device do not. */
static bool
is_same_place(const struct stat *a, const struct stat *b)
{
	return is_same_file(a, b) && !S_ISCHR(a->st_mode);
}

static bool
stat_output(const struct pawl_output *out, struct stat *found)
{
	return out->place ? !stat(out->place, found) : !fstat(fileno(out->file), found);
}

static enum pawl_status
check_no_output(const struct pawl_output *out, struct pawl_error *err)
{
	struct stat mine, other;
	bool exists = stat_output(out, &mine);

	for (const struct pawl_output *o = out->next; o; o = o->next) {
		bool same = exists ? stat_output(o, &other) && is_same_place(&mine, &other)
				   : o->place && !strcmp(o->place, out->place);

		if (same)
			return pawl_fail(err, PAWL_INVALID_ARGUMENT,
				"%s: %.300s is the same file as %s %.300s", out->option, out->path,
				o->option, o->path);
	}
	return PAWL_OK;
}

/* Another descriptor of an open file, or -1 with errno. */
static int
dup_writable(int fd)
{
	if ((fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY)
		return fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	errno = EBADF;
	return -1;
}

/* That of standard output or error where it is the file, -1: it is not. */
static int
dup_standard(const struct stat *found)
{
	for (int i = STDOUT_FILENO; i <= STDERR_FILENO; i++) {
		struct stat open;
		int fd = !fstat(i, &open) && is_same_file(found, &open) ? dup_writable(i) : -1;

		if (fd >= 0)
			return fd;
	}
	return -1;
}

/* A new file in the folder of `place`.  -1 with errno. */
static int
create_beside(const char *place, mode_t mode, char *volatile *temporary)
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

/* Where a file that is not there will lie, links to it followed (malloc).  NULL with errno. */
static char *
find_place(const char *path)
{
	char at[PATH_MAX], copy[PATH_MAX], folder[PATH_MAX], target[PATH_MAX];
	int n = snprintf(at, sizeof(at), "%s", path);

	for (int i = 0; i < MAX_LINKS && n < PATH_MAX; i++) {
		ssize_t length;

		errno = n ? EISDIR : ENOENT;
		if (!n || at[n - 1] == '/' || !realpath(dirname(strcpy(copy, at)), folder))
			return NULL;
		n = snprintf(copy, sizeof(copy), "%s/%s", folder, basename(at));
		if (n >= PATH_MAX)
			break;
		length = readlink(copy, target, sizeof(target) - 1);
		if (length < 0)
			return errno == ENOENT ? strdup(copy) : NULL;
		target[length] = 0;
		n = snprintf(at, sizeof(at), "%s%s%s", target[0] == '/' ? "" : folder,
			target[0] == '/' ? "" : "/", target);
	}
	errno = n < PATH_MAX ? ELOOP : ENAMETOOLONG;
	return NULL;
}

/* A descriptor to write to, or -1 with errno. */
static int
open_file(struct pawl_output *out, const struct stat *found)
{
	int fd;

	if (!found) {
		out->place = find_place(out->path);
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
	bool is_stream = !strcmp(path, "-");
	struct stat found;
	bool exists = !(is_stream ? fstat(STDOUT_FILENO, &found) : stat(path, &found));
	enum pawl_status status;
	int fd, reason = errno;

	*out = (struct pawl_output){
		.option = option, .path = is_stream ? "standard output" : path};
	if (!exists && reason != ENOENT)
		return fail(out, reason, err);
	if (exists && check_no_input(out, &found, inputs, err))
		return PAWL_INVALID_ARGUMENT;
	out->next = opened;
	opened = out;
	set_handlers(SIG_DFL, remove_temporaries);
	fd = is_stream ? dup_writable(STDOUT_FILENO) : open_file(out, exists ? &found : NULL);
	if (fd >= 0)
		out->file = fdopen(fd, "wb");
	reason = errno;
	if (fd >= 0 && !out->file)
		close(fd);
	status = out->file ? check_no_output(out, err) : fail(out, reason, err);
	if (status)
		pawl_output_release(out);
	return status;
}

enum pawl_status
pawl_output_write(struct pawl_output *out, const void *bytes, size_t n, struct pawl_error *err)
{
	errno = 0;
	return fwrite(bytes, 1, n, out->file) == n ? PAWL_OK : fail(out, errno, err);
}

const char *
pawl_output_stream(const struct pawl_output *out)
{
	struct stat mine, standard;

	for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
		if (stat_output(out, &mine) && !fstat(fd, &standard) &&
			is_same_place(&mine, &standard))
			return fd == STDOUT_FILENO ? "standard output" : "standard error";
	return NULL;
}

enum pawl_status
pawl_output_commit(struct pawl_output *out, struct pawl_error *err)
{
	enum pawl_status status = PAWL_OK;
	FILE *file = out->file;

	out->file = NULL;
	fflush(stdout);
	errno = 0;
	if (fflush(file) || ferror(file) || (out->temporary && fsync(fileno(file))))
		status = fail(out, errno, err);
	if (fclose(file) && !status)
		status = fail(out, errno, err);
	if (!status && out->temporary) {
		if (rename(out->temporary, out->place)) {
			status = fail(out, errno, err);
		} else {
			char *gone = out->temporary;

			out->temporary = NULL;
			free(gone);
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
	for (struct pawl_output *volatile *o = &opened; *o; o = &(*o)->next)
		if (*o == out) {
			*o = out->next;
			break;
		}
	if (!opened)
		set_handlers(remove_temporaries, SIG_DFL);
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
	char *volatile temporary;
	char place[PATH_MAX];
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
