/* The node statement of the text form; the grammar heads ir/parse.c. */
#include "ir/parser.h"

#include "ir/infer.h"
#include "ir/parse.h"
#include "ir/print.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_NODES = 1000000, MAX_INPUTS = 8, MAX_VALUES = 65536 };
#define MAX_DIM (INT64_C(1) << 40)

struct line {
	enum pawl_op op;
	struct pawl_node *inputs[MAX_INPUTS];
	int n_inputs;
	struct pawl_attrs attrs;
	unsigned seen;                         /* bit 1 << enum pawl_attr */
	struct pawl_token lists[PAWL_N_ATTRS]; /* where the list attributes stand */
	int lengths[PAWL_N_ATTRS];             /* and how long they are */
	struct pawl_type type;
	int64_t group;
};

static bool
parse_operands(struct pawl_parser *p, struct line *line)
{
	if (p->token.kind != PAWL_TOKEN_VALUE)
		return true;
	do {
		const struct pawl_name_entry *entry;
		struct pawl_token token;

		if (!pawl_parser_want_kind(p, PAWL_TOKEN_VALUE, "a value", &token))
			return false;
		entry = pawl_parser_find(p, token);
		if (!entry)
			return pawl_parser_fail(p, PAWL_INVALID_TEXT, token.line, token.column,
				"value %%%.*s is not defined", (int)token.n, token.text);
		/* Its own line was reported. */
		if (!entry->node)
			return false;
		if (line->n_inputs == MAX_INPUTS)
			return pawl_parser_fail(p, PAWL_INVALID_TEXT, token.line, token.column,
				"more than %d operands", MAX_INPUTS);
		line->inputs[line->n_inputs++] = entry->node;
	} while (pawl_parser_accept(p, ','));
	return true;
}

static bool
parse_real(struct pawl_parser *p, double *out)
{
	struct pawl_token token = p->token;

	if ((token.kind != PAWL_TOKEN_NUMBER && token.kind != PAWL_TOKEN_WORD) ||
		!pawl_parse_double(token.text, token.n, out))
		return pawl_parser_expected(p, "a number");
	pawl_parser_take(p);
	return true;
}

static bool
parse_list(struct pawl_parser *p, int64_t *out, int *length)
{
	*length = 0;
	if (!pawl_parser_want(p, '['))
		return false;
	do {
		if (*length == PAWL_MAX_RANK)
			return pawl_parser_expected(p, "']' after 5 entries");
		if (!pawl_parser_want_int(p, 0, MAX_DIM, "an entry", &out[(*length)++]))
			return false;
	} while (pawl_parser_accept(p, ','));
	return pawl_parser_want(p, ']');
}

static bool
parse_values(struct pawl_parser *p, struct pawl_attrs *attrs)
{
	double *copy;
	size_t n = 0;

	if (!pawl_parser_want(p, '['))
		return false;
	do {
		if (n == MAX_VALUES)
			return pawl_parser_fail(p, PAWL_INVALID_TEXT, p->token.line,
				p->token.column, "more than %d values", MAX_VALUES);
		if (n == p->cap_values) {
			size_t cap = p->cap_values ? 2 * p->cap_values : 64;
			double *values = realloc(p->values, cap * sizeof(*values));

			if (!values)
				return pawl_parser_no_memory(p);
			p->values = values;
			p->cap_values = cap;
		}
		if (!parse_real(p, &p->values[n++]))
			return false;
	} while (pawl_parser_accept(p, ','));
	copy = pawl_arena_alloc(&p->graph->arena, n, sizeof(*copy));
	if (!copy)
		return pawl_parser_no_memory(p);
	memcpy(copy, p->values, n * sizeof(*copy));
	attrs->values = copy;
	attrs->n_values = (uint32_t)n;
	return pawl_parser_want(p, ']');
}

/* The index of one of the words of a WORD attribute. */
static bool
parse_word(struct pawl_parser *p, enum pawl_attr attr, int *out)
{
	const char *word;
	char words[100] = "one of ";
	size_t n = strlen(words);
	int i;

	for (i = 0; (word = pawl_attr_word(attr, i)); i++) {
		if (p->token.kind == PAWL_TOKEN_WORD && strlen(word) == p->token.n &&
			!memcmp(word, p->token.text, p->token.n)) {
			pawl_parser_take(p);
			*out = i;
			return true;
		}
	}
	for (i = 0; (word = pawl_attr_word(attr, i)) && n < sizeof(words); i++)
		n += (size_t)snprintf(words + n, sizeof(words) - n, "%s%s", i ? ", " : "", word);
	return pawl_parser_expected(p, words);
}

static bool
parse_flag(struct pawl_parser *p, bool *out)
{
	if (p->token.kind == PAWL_TOKEN_WORD && p->token.n == 4 &&
		!memcmp(p->token.text, "true", 4))
		*out = true;
	else if (p->token.kind == PAWL_TOKEN_WORD && p->token.n == 5 &&
		 !memcmp(p->token.text, "false", 5))
		*out = false;
	else
		return pawl_parser_expected(p, "'true' or 'false'");
	pawl_parser_take(p);
	return true;
}

static bool
parse_dtype(struct pawl_parser *p, enum pawl_dtype *out)
{
	if (p->token.kind != PAWL_TOKEN_WORD ||
		!pawl_dtype_from_name(p->token.text, p->token.n, out))
		return pawl_parser_expected(p, "an element type");
	pawl_parser_take(p);
	return true;
}

static bool
parse_attr_value(struct pawl_parser *p, enum pawl_attr attr, struct line *line)
{
	struct pawl_attrs *attrs = &line->attrs;
	int word = 0;

	switch (attr) {
	case PAWL_ATTR_eps:
		return parse_real(p, &attrs->eps);
	case PAWL_ATTR_scale:
		return parse_real(p, &attrs->scale);
	case PAWL_ATTR_softcap:
		return parse_real(p, &attrs->softcap);
	case PAWL_ATTR_axis:
		return pawl_parser_want_int(p, -1, PAWL_MAX_RANK - 1, "an axis", &attrs->axis);
	case PAWL_ATTR_modulus:
		return pawl_parser_want_int(p, 0, MAX_DIM, "a modulus", &attrs->modulus);
	case PAWL_ATTR_block:
		return pawl_parser_want_int(p, 0, MAX_DIM, "a block size", &attrs->block);
	case PAWL_ATTR_window:
		return pawl_parser_want_int(p, 0, MAX_DIM, "a window", &attrs->window);
	case PAWL_ATTR_causal:
		return parse_flag(p, &attrs->causal);
	case PAWL_ATTR_start:
		return parse_list(p, attrs->start, &line->lengths[attr]);
	case PAWL_ATTR_stop:
		return parse_list(p, attrs->stop, &line->lengths[attr]);
	case PAWL_ATTR_perm:
		return parse_list(p, attrs->perm, &line->lengths[attr]);
	case PAWL_ATTR_sym:
		return pawl_parser_want_symbol(p, &attrs->sym);
	case PAWL_ATTR_dtype:
		return parse_dtype(p, &attrs->dtype);
	case PAWL_ATTR_role:
		if (!parse_word(p, attr, &word))
			return false;
		attrs->role = (enum pawl_role)word;
		return true;
	case PAWL_ATTR_fill:
		if (!parse_word(p, attr, &word))
			return false;
		attrs->fill = (enum pawl_fill)word;
		return true;
	case PAWL_ATTR_pairs:
		if (!parse_word(p, attr, &word))
			return false;
		attrs->pairs = (enum pawl_pairs)word;
		return true;
	case PAWL_ATTR_values:
		return parse_values(p, attrs);
	case PAWL_N_ATTRS:
		break;
	}
	return false;
}

static bool
parse_attrs(struct pawl_parser *p, struct line *line)
{
	if (!pawl_parser_accept(p, '{'))
		return true;
	do {
		struct pawl_token name;
		enum pawl_attr attr;

		if (!pawl_parser_want_kind(p, PAWL_TOKEN_WORD, "an attribute", &name))
			return false;
		if (!pawl_attr_from_name(name.text, name.n, &attr) ||
			!pawl_op_has_attr(line->op, attr))
			return pawl_parser_fail(p, PAWL_INVALID_TEXT, name.line, name.column,
				"%s has no attribute '%.*s'", pawl_op_name(line->op), (int)name.n,
				name.text);
		if (line->seen >> attr & 1)
			return pawl_parser_fail(p, PAWL_INVALID_TEXT, name.line, name.column,
				"attribute '%.*s' is given twice", (int)name.n, name.text);
		line->seen |= 1u << attr;
		if (!pawl_parser_want(p, '='))
			return false;
		line->lists[attr] = p->token;
		if (!parse_attr_value(p, attr, line))
			return false;
	} while (pawl_parser_accept(p, ','));
	return pawl_parser_want(p, '}');
}

static bool
parse_dim(struct pawl_parser *p, struct pawl_dim *out)
{
	int64_t n;

	*out = (struct pawl_dim){0, 1, -1};
	if (p->token.kind != PAWL_TOKEN_SYMBOL) {
		if (!pawl_parser_want_int(p, 1, MAX_DIM, "a dim", &n))
			return false;
		if (!pawl_parser_accept(p, '*')) {
			*out = pawl_dim_const(n);
			return true;
		}
		out->factor = n;
	}
	if (!pawl_parser_want_symbol(p, &out->sym))
		return false;
	return !pawl_parser_accept(p, '+') ||
	       pawl_parser_want_int(p, 1, MAX_DIM, "a dim's constant", &out->base);
}

static bool
parse_type(struct pawl_parser *p, struct pawl_type *type)
{
	struct pawl_token token;

	*type = pawl_type_make(PAWL_DTYPE_F32, 0, NULL);
	if (!parse_dtype(p, &type->dtype) || !pawl_parser_want(p, '['))
		return false;
	if (!pawl_parser_at(p, ']')) {
		do {
			if (type->rank == PAWL_MAX_RANK)
				return pawl_parser_expected(p, "']' after 5 dims");
			if (!parse_dim(p, &type->dim[type->rank++]))
				return false;
		} while (pawl_parser_accept(p, ','));
	}
	if (!pawl_parser_want(p, ']'))
		return false;
	if (!pawl_parser_accept(p, '@'))
		return true;
	if (!pawl_parser_want_kind(p, PAWL_TOKEN_WORD, "a layout", &token))
		return false;
	if (!pawl_layout_from_name(token.text, token.n, &type->layout))
		return pawl_parser_fail(p, PAWL_INVALID_TEXT, token.line, token.column,
			"layout '%.*s' is not known", (int)token.n, token.text);
	return true;
}

static bool
check_lists(struct pawl_parser *p, const struct line *line)
{
	int i;

	for (i = 0; i < PAWL_N_ATTRS; i++) {
		if (line->lengths[i] && line->lengths[i] != line->type.rank)
			return pawl_parser_fail(p, PAWL_INVALID_TEXT, line->lists[i].line,
				line->lists[i].column, "'%s' has %d entries for rank %d",
				pawl_attr_info((enum pawl_attr)i)->name, line->lengths[i],
				line->type.rank);
	}
	return true;
}

static bool
parse_line(struct pawl_parser *p, struct line *line)
{
	struct pawl_token op;

	line->attrs = pawl_attrs_default();
	line->group = -1;
	if (!pawl_parser_want(p, '=') || !pawl_parser_want_kind(p, PAWL_TOKEN_WORD, "an op", &op))
		return false;
	if (!pawl_op_from_name(op.text, op.n, &line->op))
		return pawl_parser_fail(p, PAWL_INVALID_TEXT, op.line, op.column,
			"op '%.*s' is not known", (int)op.n, op.text);
	if (!parse_operands(p, line) || !parse_attrs(p, line) || !pawl_parser_want(p, ':') ||
		!parse_type(p, &line->type))
		return false;
	if ((!line->seen && !parse_attrs(p, line)) || !check_lists(p, line))
		return false;
	if (pawl_parser_accept(p, '#') &&
		!pawl_parser_want_int(p, 0, MAX_NODES, "a group", &line->group))
		return false;
	return pawl_parser_want_line_end(p);
}

/* The node of a line, checked; NULL after an error. */
static struct pawl_node *
make_node(struct pawl_parser *p, struct pawl_token name, const struct line *line)
{
	bool is_numbered = *name.text >= '0' && *name.text <= '9';
	struct pawl_type type = line->type;
	struct pawl_error error;
	struct pawl_node *node;

	if (pawl_infer(p->graph, line->op, line->inputs, line->n_inputs, &line->attrs, &type,
		    &error)) {
		pawl_parser_fail(p, error.status, name.line, name.column, "%s", error.text);
		return NULL;
	}
	if (!pawl_type_equal(&type, &line->type)) {
		char inferred[256];

		pawl_print_type(inferred, sizeof(inferred), p->graph, &type);
		pawl_parser_fail(p, PAWL_INVALID_GRAPH, name.line, name.column,
			"%s gives %s, not the type stated", pawl_op_name(line->op), inferred);
		return NULL;
	}
	node = pawl_graph_add(
		p->graph, line->op, NULL, line->inputs, line->n_inputs, &line->attrs, &type);
	if (node && !is_numbered)
		node->name = pawl_arena_strndup(&p->graph->arena, name.text, name.n);
	if (!node || (!is_numbered && !node->name)) {
		pawl_parser_no_memory(p);
		return NULL;
	}
	node->line = name.line;
	node->column = name.column;
	node->group = (int32_t)line->group;
	if (node->group >= p->graph->n_groups)
		p->graph->n_groups = node->group + 1;
	return node;
}

bool
pawl_parse_node(struct pawl_parser *p)
{
	struct pawl_token name;
	struct line line = {0};
	struct pawl_node *node = NULL;

	if (!pawl_parser_want_kind(p, PAWL_TOKEN_VALUE, "a value", &name))
		return false;
	if (pawl_parser_find(p, name))
		return pawl_parser_fail(p, PAWL_INVALID_TEXT, name.line, name.column,
			"value %%%.*s is defined twice", (int)name.n, name.text);
	if (p->graph->n_nodes == MAX_NODES)
		return pawl_parser_fail(p, PAWL_INVALID_TEXT, name.line, name.column,
			"more than %d nodes", MAX_NODES);
	if (parse_line(p, &line)) {
		node = make_node(p, name, &line);
		if (!node)
			return pawl_parser_define(p, name, NULL) && !p->is_dead;
	}
	return pawl_parser_define(p, name, node) && node;
}
