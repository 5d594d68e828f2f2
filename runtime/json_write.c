#include "runtime/json_write.h"

#include "ir/print.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
pawl_json_init(struct pawl_json *json)
{
	json->root = cJSON_CreateObject();
	json->out_of_memory = !json->root;
}

void
pawl_json_release(struct pawl_json *json)
{
	cJSON_Delete(json->root);
	json->root = NULL;
}

enum pawl_status
pawl_json_text(struct pawl_json *json, bool compact, char **out, struct pawl_error *err)
{
	char *text = json->out_of_memory ? NULL
		     : compact           ? cJSON_PrintUnformatted(json->root)
					 : cJSON_Print(json->root);
	size_t n = text ? strlen(text) : 0;

	*out = text ? malloc(n + 2) : NULL;
	if (*out) {
		memcpy(*out, text, n);
		memcpy(*out + n, "\n", 2);
	}
	cJSON_free(text);
	return *out ? PAWL_OK : pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for JSON");
}

static cJSON *
add(struct pawl_json *json, cJSON *parent, const char *name, cJSON *item)
{
	bool ok = item && parent && !json->out_of_memory;

	if (ok)
		ok = name ? cJSON_AddItemToObjectCS(parent, name, item)
			  : cJSON_AddItemToArray(parent, item);
	if (ok)
		return item;
	cJSON_Delete(item);
	json->out_of_memory = true;
	return NULL;
}

cJSON *
pawl_json_object(struct pawl_json *json, cJSON *parent, const char *name)
{
	return add(json, parent, name, cJSON_CreateObject());
}

cJSON *
pawl_json_array(struct pawl_json *json, cJSON *parent, const char *name)
{
	return add(json, parent, name, cJSON_CreateArray());
}

void
pawl_json_string(struct pawl_json *json, cJSON *parent, const char *name, const char *text)
{
	add(json, parent, name, text ? cJSON_CreateString(text) : cJSON_CreateNull());
}

/* As a JSON string, of up to 6 n + 2 bytes and a zero. */
static void
quote(const char *text, size_t n, char *out)
{
	static const char special[] = "\"\\\b\f\n\r\t", names[] = "\"\\bfnrt";

	*out++ = '"';
	for (size_t i = 0; i < n; i++) {
		const char *at = text[i] ? strchr(special, text[i]) : NULL;

		if (at)
			out += sprintf(out, "\\%c", names[at - special]);
		else if ((unsigned char)text[i] < ' ')
			out += sprintf(out, "\\u%04x", (unsigned int)text[i]);
		else
			*out++ = text[i];
	}
	memcpy(out, "\"", 2);
}

void
pawl_json_bytes(struct pawl_json *json, cJSON *parent, const char *name, const char *text, size_t n)
{
	char *quoted = text && n <= (SIZE_MAX - 3) / 6 ? malloc(6 * n + 3) : NULL;

	if (quoted)
		quote(text, n, quoted);
	add(json, parent, name,
		quoted  ? cJSON_CreateRaw(quoted)
		: text ? NULL
		       : cJSON_CreateNull());
	free(quoted);
}

void
pawl_json_int64(struct pawl_json *json, cJSON *parent, const char *name, int64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, value);
	pawl_json_string(json, parent, name, text);
}

void
pawl_json_hash(struct pawl_json *json, cJSON *parent, const char *name, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%016" PRIx64, value);
	pawl_json_string(json, parent, name, text);
}

void
pawl_json_number(struct pawl_json *json, cJSON *parent, const char *name, int32_t value)
{
	add(json, parent, name, cJSON_CreateNumber(value));
}

void
pawl_json_bool(struct pawl_json *json, cJSON *parent, const char *name, bool value)
{
	add(json, parent, name, cJSON_CreateBool(value));
}

void
pawl_json_null(struct pawl_json *json, cJSON *parent, const char *name)
{
	pawl_json_string(json, parent, name, NULL);
}

void
pawl_json_real(struct pawl_json *json, cJSON *parent, const char *name, double value)
{
	char text[40];

	pawl_print_double(text, sizeof(text), value);
	add(json, parent, name, isfinite(value) ? cJSON_CreateRaw(text) : cJSON_CreateString(text));
}
