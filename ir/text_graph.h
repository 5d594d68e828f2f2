/*
 * A graph that is made statement by statement: each is what a line of the text form is, and is
 * checked when it comes.  Belongs to one thread at a time.
 */
#ifndef PAWL_IR_TEXT_GRAPH_H
#define PAWL_IR_TEXT_GRAPH_H

#include "ir/graph.h"

struct pawl_text_graph;

/* Empty.  PAWL_INVALID_ARGUMENT for what is no name. */
enum pawl_status pawl_text_graph_new(
	const char *name, struct pawl_text_graph **out, struct pawl_error *err);
/* NULL is allowed. */
void pawl_text_graph_free(struct pawl_text_graph *text);

/*
 * One statement, `sym`, a node or `output`; where names it in messages, "WHERE:1:COLUMN: ...".  A
 * statement in error adds nothing, and its name may come again.
 */
enum pawl_status pawl_text_graph_add(struct pawl_text_graph *text, const char *where,
	const char *statement, struct pawl_error *err);

/* As far as it is made; not verified as a whole. */
const struct pawl_graph *pawl_text_graph_graph(const struct pawl_text_graph *text);
/* The same, the caller's from now on; frees the rest. */
struct pawl_graph *pawl_text_graph_take(struct pawl_text_graph *text);

/* "f32[32, 64]" without symbols; where names it in messages. */
enum pawl_status pawl_parse_type(
	const char *where, const char *text, struct pawl_type *out, struct pawl_error *err);

#endif
