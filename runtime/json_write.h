/*
 * Adds members to a cJSON tree that always comes out as the same bytes: members in the order in
 * which they are added, 64-bit integers and hashes as strings (cJSON keeps numbers in doubles),
 * reals by their shortest digits whatever the locale.
 */
#ifndef PAWL_RUNTIME_JSON_WRITE_H
#define PAWL_RUNTIME_JSON_WRITE_H

#include "ir/status.h"

#include <cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Once memory has run out everything is a no-op and the text is refused. */
struct pawl_json {
	cJSON *root;
	bool out_of_memory;
};

/* root is an object. */
void pawl_json_init(struct pawl_json *json);
void pawl_json_release(struct pawl_json *json);
/* malloc'ed text that ends with a newline; compact is one line. */
enum pawl_status pawl_json_text(
	struct pawl_json *json, bool compact, char **out, struct pawl_error *err);

/*
 * name: of a member of the object `parent`, or NULL for the next element of an array.  It is not
 * copied.  The new object or array; NULL when memory has run out, which every function takes.
 */
cJSON *pawl_json_object(struct pawl_json *json, cJSON *parent, const char *name);
cJSON *pawl_json_array(struct pawl_json *json, cJSON *parent, const char *name);
/* text is copied; NULL gives null. */
void pawl_json_string(struct pawl_json *json, cJSON *parent, const char *name, const char *text);
/* n bytes of UTF-8, which may hold zeros; they are copied.  NULL gives null. */
void pawl_json_bytes(struct pawl_json *json, cJSON *parent, const char *name, const char *text,
	size_t n);
/* "-12" */
void pawl_json_int64(struct pawl_json *json, cJSON *parent, const char *name, int64_t value);
/* "0x00f1..." */
void pawl_json_hash(struct pawl_json *json, cJSON *parent, const char *name, uint64_t value);
void pawl_json_number(struct pawl_json *json, cJSON *parent, const char *name, int32_t value);
void pawl_json_bool(struct pawl_json *json, cJSON *parent, const char *name, bool value);
void pawl_json_null(struct pawl_json *json, cJSON *parent, const char *name);
/* A number; "inf", "-inf" or "nan" as a string. */
void pawl_json_real(struct pawl_json *json, cJSON *parent, const char *name, double value);

#endif
