#include "tools/request_file.h"

#include "models/utf8.h"
#include "tools/input.h"

#include <cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* 2^53 - 1: a larger whole number in JSON may have been rounded when it was read. */
#define MOST_WHOLE 9007199254740991.0

static enum pawl_status
read_whole(const cJSON *item, double min, double max, int64_t *out, struct pawl_error *err)
{
	double value = item->valuedouble;

	if (!cJSON_IsNumber(item) || value != floor(value))
		return pawl_fail(err, PAWL_INVALID_FILE, "%s is not a whole number", item->string);
	if (value < min || value > max)
		return pawl_fail(err, PAWL_INVALID_FILE, "%s is %.16g, not in %.0f .. %.0f",
			item->string, value, min, max);
	*out = (int64_t)value;
	return PAWL_OK;
}

static enum pawl_status
read_text(const cJSON *item, size_t most, char **out, struct pawl_error *err)
{
	if (!cJSON_IsString(item))
		return pawl_fail(err, PAWL_INVALID_FILE, "%s is not a text", item->string);
	if (!*item->valuestring)
		return pawl_fail(err, PAWL_INVALID_FILE, "%s is empty", item->string);
	if (strlen(item->valuestring) > most)
		return pawl_fail(err, PAWL_INVALID_FILE, "%s has %zu bytes, %zu are possible",
			item->string, strlen(item->valuestring), most);
	*out = strdup(item->valuestring);
	return *out ? PAWL_OK : pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for a text");
}

static enum pawl_status
read_prompt(const cJSON *item, struct pawl_file_request *r, struct pawl_error *err)
{
	return read_text(item, PAWL_MAX_REQUEST_LINE, &r->prompt, err);
}

static enum pawl_status
read_n(const cJSON *item, struct pawl_file_request *r, struct pawl_error *err)
{
	return read_whole(item, 1, 1 << 24, &r->n, err);
}

static enum pawl_status
read_arrival(const cJSON *item, struct pawl_file_request *r, struct pawl_error *err)
{
	return read_whole(item, 0, PAWL_MAX_ARRIVAL, &r->arrival, err);
}

static enum pawl_status
read_temp(const cJSON *item, struct pawl_file_request *r, struct pawl_error *err)
{
	if (!cJSON_IsNumber(item))
		return pawl_fail(err, PAWL_INVALID_FILE, "temp is not a number");
	r->temp = item->valuedouble;
	if (r->temp >= -100 && r->temp <= 100)
		return PAWL_OK;
	return pawl_fail(err, PAWL_INVALID_FILE, "temp is %.16g, not in -100 .. 100", r->temp);
}

static enum pawl_status
read_seed(const cJSON *item, struct pawl_file_request *r, struct pawl_error *err)
{
	int64_t seed = 0;
	enum pawl_status status = read_whole(item, 0, MOST_WHOLE, &seed, err);

	if (!status)
		r->seed = (uint64_t)seed;
	return status;
}

static enum pawl_status
read_priority(const cJSON *item, struct pawl_file_request *r, struct pawl_error *err)
{
	static const char *const names[] = {"low", "normal", "high", "critical"};

	for (int i = 0; i < 4 && cJSON_IsString(item); i++)
		if (!strcmp(item->valuestring, names[i])) {
			r->priority = (enum pawl_priority)i;
			return PAWL_OK;
		}
	return pawl_fail(err, PAWL_INVALID_FILE, "priority is none of low, normal, high, critical");
}

/*
 * What moves the cursor of a terminal, ends a line or turns the direction of text: C0, DEL and C1, and
 * what Unicode has of Zl, Zp and Bidi_Control.
 */
static bool
is_control(uint32_t code)
{
	return code < ' ' || (code >= 0x7f && code < 0xa0) || code == 0x61c || code == 0x200e ||
	       code == 0x200f || (code >= 0x2028 && code <= 0x202e) ||
	       (code >= 0x2066 && code <= 0x2069);
}

/* A name is a field of a line in reports. */
static enum pawl_status
check_name(const char *name, struct pawl_error *err)
{
	const char *end = name + strlen(name);
	uint32_t code;
	int n;

	for (const char *at = name; at < end; at += n) {
		n = pawl_utf8_next(at, (size_t)(end - at), &code);
		if (n <= 0)
			return pawl_fail(err, PAWL_INVALID_FILE, "id is not UTF-8");
		if (is_control(code))
			return pawl_fail(err, PAWL_INVALID_FILE,
				"id holds the control character U+%04" PRIX32, code);
	}
	return PAWL_OK;
}

static enum pawl_status
read_id(const cJSON *item, struct pawl_file_request *r, struct pawl_error *err)
{
	enum pawl_status status = read_text(item, PAWL_MAX_REQUEST_NAME, &r->name, err);

	return status ? status : check_name(r->name, err);
}

static const struct field {
	const char *name;
	bool is_needed;
	enum pawl_status (*read)(
		const cJSON *item, struct pawl_file_request *r, struct pawl_error *err);
} fields[] = {
	{"prompt", true, read_prompt},
	{"n", true, read_n},
	{"arrival", false, read_arrival},
	{"temp", false, read_temp},
	{"seed", false, read_seed},
	{"priority", false, read_priority},
	{"id", false, read_id},
};

enum { N_FIELDS = sizeof(fields) / sizeof(fields[0]) };

static enum pawl_status
read_fields(const cJSON *root, struct pawl_file_request *r, struct pawl_error *err)
{
	bool seen[N_FIELDS] = {false};
	const cJSON *item;

	if (!cJSON_IsObject(root))
		return pawl_fail(err, PAWL_INVALID_FILE, "not an object");
	cJSON_ArrayForEach(item, root)
	{
		enum pawl_status status;
		int i = 0;

		while (i < N_FIELDS && strcmp(item->string, fields[i].name))
			i++;
		if (i == N_FIELDS)
			return pawl_fail(
				err, PAWL_INVALID_FILE, "there is no field '%.100s'", item->string);
		if (seen[i])
			return pawl_fail(err, PAWL_INVALID_FILE, "%s is there twice", item->string);
		seen[i] = true;
		status = fields[i].read(item, r, err);
		if (status)
			return status;
	}
	for (int i = 0; i < N_FIELDS; i++)
		if (fields[i].is_needed && !seen[i])
			return pawl_fail(err, PAWL_INVALID_FILE, "%s is missing", fields[i].name);
	return PAWL_OK;
}

/* A zero in a text would silently end it there. */
static enum pawl_status
refuse_zeros(const char *line, size_t n, struct pawl_error *err)
{
	const char *zero = memchr(line, 0, n);

	for (const char *at = line; !zero && (at = strchr(at, '\\')) && at[1]; at += 2)
		if (!strncmp(at + 1, "u0000", 5))
			zero = at;
	if (!zero)
		return PAWL_OK;
	return pawl_fail(err, PAWL_INVALID_FILE, "a zero character at byte %td", zero - line);
}

/* line: n bytes and a zero. */
static enum pawl_status
read_line(const char *line, size_t n, struct pawl_file_request *r, struct pawl_error *err)
{
	const char *end = line;
	enum pawl_status status;
	cJSON *root;

	if (n > PAWL_MAX_REQUEST_LINE)
		return pawl_fail(err, PAWL_INVALID_FILE, "%zu bytes, a line may have %d", n,
			PAWL_MAX_REQUEST_LINE);
	status = refuse_zeros(line, n, err);
	if (status)
		return status;
	root = cJSON_ParseWithOpts(line, &end, true);
	if (!root)
		return pawl_fail(err, PAWL_INVALID_FILE, "no JSON at byte %td", end - line);
	status = read_fields(root, r, err);
	cJSON_Delete(root);
	return status;
}

static enum pawl_status
name_by_line(struct pawl_file_request *r, struct pawl_error *err)
{
	char name[32];

	snprintf(name, sizeof(name), "line %d", r->line);
	r->name = strdup(name);
	return r->name ? PAWL_OK : pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for a name");
}

static enum pawl_status
add_line(struct pawl_request_file *file, int number, const char *line, size_t n,
	struct pawl_error *err)
{
	struct pawl_file_request *r = &file->requests[file->n];
	enum pawl_status status;

	if (file->n == PAWL_MAX_REQUESTS)
		return pawl_fail(
			err, PAWL_INVALID_FILE, "more than %d requests", PAWL_MAX_REQUESTS);
	*r = (struct pawl_file_request){
		.line = number, .seed = 1, .priority = PAWL_PRIORITY_NORMAL};
	file->n++;
	status = read_line(line, n, r, err);
	return status || r->name ? status : name_by_line(r, err);
}

static enum pawl_status
read_lines(char *text, size_t n, struct pawl_request_file *file, struct pawl_error *err)
{
	char *end = text + n, *next;
	int number = 1;

	for (char *line = text; line < end; line = next, number++) {
		char *stop = memchr(line, '\n', (size_t)(end - line));
		enum pawl_status status;

		if (!stop)
			stop = end;
		*stop = 0;
		next = stop + 1;
		if (line + strspn(line, " \t\r") == stop)
			continue;
		status = add_line(file, number, line, (size_t)(stop - line), err);
		if (status)
			return pawl_error_prefix(err, "%.300s:%d", file->name, number);
	}
	if (!file->n)
		return pawl_fail(err, PAWL_INVALID_FILE, "%.300s: no requests", file->name);
	return PAWL_OK;
}

static int
by_arrival(const void *a, const void *b)
{
	const struct pawl_file_request *x = a, *y = b;

	if (x->arrival != y->arrival)
		return x->arrival < y->arrival ? -1 : 1;
	return x->line < y->line ? -1 : 1;
}

static int
by_name(const void *a, const void *b)
{
	const struct pawl_file_request *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	if (order)
		return order;
	return x->line < y->line ? -1 : 1;
}

/* Of the first line that has a name of another before it.  Sorts the requests by name. */
static enum pawl_status
refuse_twins(struct pawl_request_file *file, struct pawl_error *err)
{
	const struct pawl_file_request *twin = NULL;

	qsort(file->requests, file->n, sizeof(*file->requests), by_name);
	for (size_t i = 1; i < file->n; i++) {
		const struct pawl_file_request *r = &file->requests[i];

		if (!strcmp(r->name, r[-1].name) && (!twin || r->line < twin->line))
			twin = r;
	}
	if (!twin)
		return PAWL_OK;
	return pawl_fail(err, PAWL_INVALID_FILE, "%.300s:%d: the id '%s' is that of line %d too",
		file->name, twin->line, twin->name, twin[-1].line);
}

enum pawl_status
pawl_request_file_read(const char *path, struct pawl_request_file *out, struct pawl_error *err)
{
	struct pawl_error reason = {0};
	char *text;
	size_t n;
	enum pawl_status status = pawl_read_input(path, PAWL_MAX_INPUT_MIB, &text, &n, err);

	if (status)
		return status;
	*out = (struct pawl_request_file){
		.name = pawl_input_name(path),
		.requests = malloc((PAWL_MAX_REQUESTS + 1) * sizeof(*out->requests)),
	};
	if (out->requests)
		status = read_lines(text, n, out, &reason);
	else
		status = pawl_fail(&reason, PAWL_OUT_OF_MEMORY, "no memory for requests");
	free(text);
	if (!status)
		status = refuse_twins(out, &reason);
	if (status) {
		pawl_request_file_release(out);
		return pawl_fail(err, status, "%s", reason.text);
	}
	qsort(out->requests, out->n, sizeof(*out->requests), by_arrival);
	return PAWL_OK;
}

void
pawl_request_file_release(struct pawl_request_file *file)
{
	for (size_t i = 0; i < file->n; i++) {
		free(file->requests[i].name);
		free(file->requests[i].prompt);
	}
	free(file->requests);
	*file = (struct pawl_request_file){0};
}
