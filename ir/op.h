/*
 * Operations and attributes: enums and tables derived from ir/ops.def and ir/attrs.def.
 */
#ifndef PAWL_IR_OP_H
#define PAWL_IR_OP_H

#include "ir/type.h"

enum pawl_op {
#define PAWL_OP_ROW(id, name, min, max, infer, flags, attrs, doc) PAWL_OP_##id,
#include "ir/ops.def"
	PAWL_N_OPS
};

enum pawl_op_flag {
	PAWL_OPF_LEAF = 1 << 0,
	PAWL_OPF_TYPED = 1 << 1,
	PAWL_OPF_INPLACE = 1 << 2,
	PAWL_OPF_VIEW = 1 << 3,
	PAWL_OPF_ELEM = 1 << 4,
	PAWL_OPF_COMM = 1 << 5,
	PAWL_OPF_ROW = 1 << 6,
	PAWL_OPF_REDUCE = 1 << 7
};

enum pawl_attr {
#define PAWL_ATTR_ROW(name, kind, def) PAWL_ATTR_##name,
#include "ir/attrs.def"
	PAWL_N_ATTRS
};

enum pawl_attr_kind {
	PAWL_ATTR_REAL,
	PAWL_ATTR_INT,
	PAWL_ATTR_FLAG,
	PAWL_ATTR_LIST,
	PAWL_ATTR_SYMBOL,
	PAWL_ATTR_WORD,
	PAWL_ATTR_DTYPE,
	PAWL_ATTR_VALUES
};

/* What a const is for; decides how a held plan binds it. */
enum pawl_role {
	PAWL_ROLE_WEIGHT,  /* baked: identity is part of the validity key */
	PAWL_ROLE_DATA,    /* same shape, new bytes each token */
	PAWL_ROLE_KV,      /* state that writes go to and that outlives a run */
	PAWL_ROLE_LITERAL, /* numbers in the graph itself (attribute values) */
	PAWL_N_ROLES
};

enum pawl_fill { PAWL_FILL_NONE, PAWL_FILL_ZERO, PAWL_N_FILLS };

/* Which elements rope turns together: (2i, 2i + 1) or (i, i + width / 2). */
enum pawl_pairs { PAWL_PAIRS_ADJACENT, PAWL_PAIRS_HALVES, PAWL_N_PAIRS };

/* All attributes of a node; ops.def says which ones an op has, the rest stay at default. */
struct pawl_attrs {
	double eps, scale, softcap;
	int64_t axis, modulus, window, block;
	bool causal;
	int64_t start[PAWL_MAX_RANK], stop[PAWL_MAX_RANK], perm[PAWL_MAX_RANK];
	int32_t sym;
	enum pawl_dtype dtype;
	enum pawl_role role;
	enum pawl_fill fill;
	enum pawl_pairs pairs;
	const double *values; /* n_values numbers in the graph's arena, or NULL */
	uint32_t n_values;    /* 1 (a splat) or the number of elements */
};

struct pawl_op_info {
	const char *name;
	int min_inputs, max_inputs;
	unsigned flags; /* enum pawl_op_flag */
	unsigned attrs; /* bit 1 << enum pawl_attr */
	const char *doc;
};

struct pawl_attr_info {
	const char *name;
	enum pawl_attr_kind kind;
	double def;
};

const struct pawl_op_info *pawl_op_info(enum pawl_op op);
const struct pawl_attr_info *pawl_attr_info(enum pawl_attr attr);
const char *pawl_op_name(enum pawl_op op);
bool pawl_op_from_name(const char *name, size_t n, enum pawl_op *out);
bool pawl_attr_from_name(const char *name, size_t n, enum pawl_attr *out);

/* Value `value` of a WORD attribute as text; NULL when there is no such value. */
const char *pawl_attr_word(enum pawl_attr attr, int value);

static inline bool
pawl_op_has(enum pawl_op op, unsigned flags)
{
	return (pawl_op_info(op)->flags & flags) != 0;
}

static inline bool
pawl_op_has_attr(enum pawl_op op, enum pawl_attr attr)
{
	return (pawl_op_info(op)->attrs >> attr & 1) != 0;
}

static inline bool
pawl_op_attends(enum pawl_op op)
{
	return op == PAWL_OP_ATTENTION || op == PAWL_OP_PAGED_ATTENTION;
}

/* The axis along which a write_rows with these attributes writes. */
static inline int
pawl_write_rows_axis(const struct pawl_attrs *attrs)
{
	return attrs->axis < 0 ? 0 : (int)attrs->axis;
}

/* Attributes at their defaults. */
struct pawl_attrs pawl_attrs_default(void);
/* Whether one attribute is at its default; a list compares `rank` entries. */
bool pawl_attr_is_default(enum pawl_attr attr, int rank, const struct pawl_attrs *attrs);

/* Whether the attributes that op has are equal; lists compare `rank` entries. */
bool pawl_attrs_equal(enum pawl_op op, int rank, const struct pawl_attrs *a, const struct pawl_attrs *b);

#endif
