#include "ir/op.h"

#include <math.h>
#include <string.h>

static const struct pawl_op_info op_infos[PAWL_N_OPS] = {
#define LEAF PAWL_OPF_LEAF
#define TYPED PAWL_OPF_TYPED
#define INPLACE PAWL_OPF_INPLACE
#define VIEW PAWL_OPF_VIEW
#define ELEM PAWL_OPF_ELEM
#define COMM PAWL_OPF_COMM
#define ROW PAWL_OPF_ROW
#define REDUCE PAWL_OPF_REDUCE
#define A(name) (1u << PAWL_ATTR_##name)
#define PAWL_OP_ROW(id, name, min, max, infer, flags, attrs, doc)                                  \
	[PAWL_OP_##id] = {name, min, max, flags, attrs, doc},
#include "ir/ops.def"
#undef LEAF
#undef TYPED
#undef INPLACE
#undef VIEW
#undef ELEM
#undef COMM
#undef ROW
#undef REDUCE
#undef A
};

static const struct pawl_attr_info attr_infos[PAWL_N_ATTRS] = {
#define PAWL_ATTR_ROW(name, kind, def) [PAWL_ATTR_##name] = {#name, PAWL_ATTR_##kind, def},
#include "ir/attrs.def"
};

static const char *const role_words[PAWL_N_ROLES] = {"weight", "data", "kv", "literal"};
static const char *const fill_words[PAWL_N_FILLS] = {"none", "zero"};
static const char *const pairs_words[PAWL_N_PAIRS] = {"adjacent", "halves"};

const struct pawl_op_info *
pawl_op_info(enum pawl_op op)
{
	return &op_infos[op];
}

const struct pawl_attr_info *
pawl_attr_info(enum pawl_attr attr)
{
	return &attr_infos[attr];
}

const char *
pawl_op_name(enum pawl_op op)
{
	return op_infos[op].name;
}

bool
pawl_op_from_name(const char *name, size_t n, enum pawl_op *out)
{
	int i;

	for (i = 0; i < PAWL_N_OPS; i++) {
		if (strlen(op_infos[i].name) == n && !memcmp(op_infos[i].name, name, n)) {
			*out = (enum pawl_op)i;
			return true;
		}
	}
	return false;
}

bool
pawl_attr_from_name(const char *name, size_t n, enum pawl_attr *out)
{
	int i;

	for (i = 0; i < PAWL_N_ATTRS; i++) {
		if (strlen(attr_infos[i].name) == n && !memcmp(attr_infos[i].name, name, n)) {
			*out = (enum pawl_attr)i;
			return true;
		}
	}
	return false;
}

const char *
pawl_attr_word(enum pawl_attr attr, int value)
{
	if (value < 0)
		return NULL;
	if (attr == PAWL_ATTR_role)
		return value < PAWL_N_ROLES ? role_words[value] : NULL;
	if (attr == PAWL_ATTR_fill)
		return value < PAWL_N_FILLS ? fill_words[value] : NULL;
	if (attr == PAWL_ATTR_pairs)
		return value < PAWL_N_PAIRS ? pairs_words[value] : NULL;
	return NULL;
}

struct pawl_attrs
pawl_attrs_default(void)
{
	return (struct pawl_attrs){.scale = 1.0, .axis = -1, .causal = true, .sym = -1};
}

static bool
list_is_zero(const int64_t *list, int rank)
{
	int i;

	for (i = 0; i < rank; i++) {
		if (list[i])
			return false;
	}
	return true;
}

bool
pawl_attr_is_default(enum pawl_attr attr, int rank, const struct pawl_attrs *attrs)
{
	switch (attr) {
	case PAWL_ATTR_eps:
		return attrs->eps == 0.0 && !signbit(attrs->eps);
	case PAWL_ATTR_scale:
		return attrs->scale == 1.0;
	case PAWL_ATTR_softcap:
		return attrs->softcap == 0.0 && !signbit(attrs->softcap);
	case PAWL_ATTR_axis:
		return attrs->axis == -1;
	case PAWL_ATTR_modulus:
		return attrs->modulus == 0;
	case PAWL_ATTR_block:
		return attrs->block == 0;
	case PAWL_ATTR_window:
		return attrs->window == 0;
	case PAWL_ATTR_causal:
		return attrs->causal;
	case PAWL_ATTR_start:
		return list_is_zero(attrs->start, rank);
	case PAWL_ATTR_stop:
		return list_is_zero(attrs->stop, rank);
	case PAWL_ATTR_perm:
		return list_is_zero(attrs->perm, rank);
	case PAWL_ATTR_sym:
		return attrs->sym == -1;
	case PAWL_ATTR_dtype:
		return attrs->dtype == PAWL_DTYPE_F32;
	case PAWL_ATTR_role:
		return attrs->role == PAWL_ROLE_WEIGHT;
	case PAWL_ATTR_fill:
		return attrs->fill == PAWL_FILL_NONE;
	case PAWL_ATTR_pairs:
		return attrs->pairs == PAWL_PAIRS_ADJACENT;
	case PAWL_ATTR_values:
		return attrs->n_values == 0;
	case PAWL_N_ATTRS:
		break;
	}
	return true;
}

static bool
same_values(const struct pawl_attrs *a, const struct pawl_attrs *b)
{
	return a->n_values == b->n_values &&
		(a->n_values == 0 || !memcmp(a->values, b->values, a->n_values * sizeof(double)));
}

bool
pawl_attrs_equal(enum pawl_op op, int rank, const struct pawl_attrs *a, const struct pawl_attrs *b)
{
	size_t list = (size_t)rank * sizeof(int64_t);
	unsigned has = op_infos[op].attrs;

#define SAME(name, test)                                                                           \
	if ((has >> PAWL_ATTR_##name & 1) && !(test))                                              \
		return false;
	SAME(eps, !memcmp(&a->eps, &b->eps, sizeof(double)))
	SAME(scale, !memcmp(&a->scale, &b->scale, sizeof(double)))
	SAME(softcap, !memcmp(&a->softcap, &b->softcap, sizeof(double)))
	SAME(axis, a->axis == b->axis)
	SAME(modulus, a->modulus == b->modulus)
	SAME(block, a->block == b->block)
	SAME(window, a->window == b->window)
	SAME(causal, a->causal == b->causal)
	SAME(start, !memcmp(a->start, b->start, list))
	SAME(stop, !memcmp(a->stop, b->stop, list))
	SAME(perm, !memcmp(a->perm, b->perm, list))
	SAME(sym, a->sym == b->sym)
	SAME(dtype, a->dtype == b->dtype)
	SAME(role, a->role == b->role)
	SAME(fill, a->fill == b->fill)
	SAME(pairs, a->pairs == b->pairs)
	SAME(values, same_values(a, b))
#undef SAME
	return true;
}
