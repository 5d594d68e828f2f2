#include "tools/input.h"

#include "ir/parse.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum pawl_status
read_all(FILE *file, const char *name, int max_mib, char **text, size_t *n, struct pawl_error *err)
{
	size_t most = (size_t)max_mib << 20, room = 1 << 16, used = 0;
	char *bytes = malloc(room + 1);

	while (bytes) {
		char *larger;

		used += fread(bytes + used, 1, room - used, file);
		if (ferror(file)) {
			free(bytes);
			return pawl_fail(
				err, PAWL_ENVIRONMENT, "%.300s: %s", name, strerror(errno));
		}
		if (used > most) {
			free(bytes);
			return pawl_fail(err, PAWL_INVALID_FILE, "%.300s: longer than %d MiB", name,
				max_mib);
		}
		if (used < room)
			break;
		room *= 2;
		larger = realloc(bytes, room + 1);
		if (!larger)
			free(bytes);
		bytes = larger;
	}
	if (!bytes)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "%.300s: no memory to read it", name);
	bytes[used] = 0;
	*text = bytes;
	*n = used;
	return PAWL_OK;
}

const char *
pawl_input_name(const char *path)
{
	return strcmp(path, "-") ? path : "standard input";
}

enum pawl_status
pawl_read_input(const char *path, int max_mib, char **text, size_t *n, struct pawl_error *err)
{
	const char *name = pawl_input_name(path);
	enum pawl_status status;
	FILE *file;

	if (!strcmp(path, "-"))
		return read_all(stdin, name, max_mib, text, n, err);
	file = fopen(path, "rb");
	if (!file)
		return pawl_fail(err, PAWL_ENVIRONMENT, "%.300s: %s", name, strerror(errno));
	status = read_all(file, name, max_mib, text, n, err);
	fclose(file);
	return status;
}

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static size_t
skip_blanks(const char *text, size_t n, size_t i)
{
	while (i < n && is_blank(text[i]))
		i++;
	return i;
}

static size_t
skip_digits(const char *text, size_t n, size_t i)
{
	while (i < n && text[i] >= '0' && text[i] <= '9')
		i++;
	return i;
}

static enum pawl_status
add_token(const char *text, size_t start, size_t end, const char *name,
	struct pawl_token_list *list, struct pawl_error *err)
{
	int64_t id;

	if (start == end)
		return pawl_fail(err, PAWL_INVALID_TEXT, "%.300s: byte %zu: a token id is wanted",
			name, start);
	if (!pawl_parse_int(text + start, end - start, &id) || id > INT32_MAX)
		return pawl_fail(err, PAWL_INVALID_TEXT,
			"%.300s: byte %zu: token id beyond 2147483647", name, start);
	return pawl_token_list_add(list, (uint32_t)id, err);
}

enum pawl_status
pawl_parse_tokens(const char *text, size_t n, const char *name, struct pawl_token_list *list,
	struct pawl_error *err)
{
	size_t i = skip_blanks(text, n, 0);
	bool bracket = i < n && text[i] == '[', after_comma = false;
	enum pawl_status status = PAWL_OK;

	i = skip_blanks(text, n, i + bracket);
	while (!status && i < n && (text[i] != ']' || after_comma)) {
		size_t end = skip_digits(text, n, i);

		status = add_token(text, i, end, name, list, err);
		i = skip_blanks(text, n, end);
		after_comma = i < n && text[i] == ',';
		i = skip_blanks(text, n, i + after_comma);
	}
	if (status)
		return status;
	if (after_comma)
		return pawl_fail(
			err, PAWL_INVALID_TEXT, "%.300s: byte %zu: a token id is wanted", name, n);
	if (bracket && i == n)
		return pawl_fail(
			err, PAWL_INVALID_TEXT, "%.300s: byte %zu: no ] at the end", name, n);
	if (i < n && (!bracket || skip_blanks(text, n, i + 1) < n))
		return pawl_fail(err, PAWL_INVALID_TEXT, "%.300s: byte %zu: text after the list",
			name, i + bracket);
	return PAWL_OK;
}

bool
pawl_is_token_list(const char *word)
{
	return !word[strspn(word, "0123456789, []")];
}

enum pawl_status
pawl_read_tokens(
	const char *word, const char *option, struct pawl_token_list *list, struct pawl_error *err)
{
	enum pawl_status status;
	char *text;
	size_t n;

	if (pawl_is_token_list(word))
		return pawl_parse_tokens(word, strlen(word), option, list, err);
	status = pawl_read_input(word, PAWL_MAX_INPUT_MIB, &text, &n, err);
	if (status == PAWL_ENVIRONMENT && strcmp(word, "-"))
		pawl_error_prefix(err, "%s: not a list of token ids, and as a file", option);
	if (status)
		return status;
	status = pawl_parse_tokens(text, n, pawl_input_name(word), list, err);
	free(text);
	return status;
}
