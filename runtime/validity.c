#include "runtime/validity.h"

#include "ir/each_token.h"

#include <inttypes.h>
#include <stdio.h>

enum kind { KIND_INT, KIND_HASH, KIND_DTYPE, KIND_LAYOUT, KIND_PRECISION };

static const struct field {
	const char *name;
	enum kind kind;
} fields[] = {
#define PAWL_KEY_ROW(id, member, text, sort) [PAWL_KEY_##id] = {text, KIND_##sort},
#include "runtime/plan_key.def"
	[PAWL_KEY_ALLOC_ID] = {"alloc_id", KIND_INT},
	[PAWL_KEY_NONE] = {"none", KIND_INT},
};

PAWL_EACH_TOKEN uint64_t
pawl_plan_key_value(const struct pawl_plan_key *key, enum pawl_key_field field)
{
	switch (field) {
#define PAWL_KEY_ROW(id, member, text, sort)                                                       \
	case PAWL_KEY_##id:                                                                        \
		return (uint64_t)key->member;
#include "runtime/plan_key.def"
	case PAWL_KEY_ALLOC_ID:
	case PAWL_KEY_NONE:
		break;
	}
	return 0;
}

PAWL_EACH_TOKEN struct pawl_verdict
pawl_plan_validity(const struct pawl_plan_key *held, struct pawl_kv_alloc_id held_alloc,
	const struct pawl_plan_key *asked, struct pawl_kv_alloc_id asked_alloc)
{
	for (int i = 0; i < PAWL_KEY_ALLOC_ID; i++) {
		enum pawl_key_field field = (enum pawl_key_field)i;
		uint64_t a = pawl_plan_key_value(held, field),
			 b = pawl_plan_key_value(asked, field);

		if (a != b)
			return (struct pawl_verdict){PAWL_PLAN_STALE, field, a, b};
	}
	if (held_alloc.value != asked_alloc.value)
		return (struct pawl_verdict){PAWL_ALLOCATION_CHANGED, PAWL_KEY_ALLOC_ID,
			held_alloc.value, asked_alloc.value};
	return (struct pawl_verdict){PAWL_VALID, PAWL_KEY_NONE, 0, 0};
}

const char *
pawl_validity_name(enum pawl_validity validity)
{
	switch (validity) {
	case PAWL_VALID:
		return "valid";
	case PAWL_ALLOCATION_CHANGED:
		return "allocation changed";
	case PAWL_PLAN_STALE:
		return "stale";
	}
	return "unknown";
}

const char *
pawl_key_field_name(enum pawl_key_field field)
{
	return fields[field].name;
}

const char *
pawl_precision_name(enum pawl_precision precision)
{
	return precision == PAWL_PRECISION_A8 ? "a8" : "a16";
}

const char *
pawl_key_value_text(enum pawl_key_field field, uint64_t value, char *out, size_t n)
{
	switch (fields[field].kind) {
	case KIND_INT:
		snprintf(out, n, "%" PRId64, (int64_t)value);
		break;
	case KIND_HASH:
		snprintf(out, n, "0x%016" PRIx64, value);
		break;
	case KIND_DTYPE:
		snprintf(out, n, "%s",
			value < PAWL_N_DTYPES ? pawl_dtype_name((enum pawl_dtype)value) : "?");
		break;
	case KIND_LAYOUT:
		snprintf(out, n, "%s",
			value < PAWL_N_LAYOUTS ? pawl_layout_name((enum pawl_layout)value) : "?");
		break;
	case KIND_PRECISION:
		snprintf(out, n, "%s", pawl_precision_name((enum pawl_precision)value));
		break;
	}
	return out;
}

const char *
pawl_verdict_text(const struct pawl_verdict *verdict, char *out, size_t n)
{
	char held[32], asked[32];

	if (verdict->validity == PAWL_VALID)
		snprintf(out, n, "valid");
	else
		snprintf(out, n, "%s: %s is %s, %s is asked for",
			pawl_validity_name(verdict->validity), pawl_key_field_name(verdict->field),
			pawl_key_value_text(verdict->field, verdict->held, held, sizeof(held)),
			pawl_key_value_text(verdict->field, verdict->asked, asked, sizeof(asked)));
	return out;
}
