/*
 * order-effects: makes list order an order of execution in which storage is reused in place.
 *
 * A node that writes in place destroys the old value of its input 0, and with it every view of
 * that value.  Each other reader of those values must run before.  A reader that stands behind
 * the destroyer moves up when it does not depend on it; otherwise it reads a safety copy taken
 * before:
 *
 *	%w = write_slice %x, %s {start = [0]} : f32[2]
 *	%r = add %w, %x : f32[2]                       ; the old %x, and it depends on %w
 * becomes
 *	%c = copy %x : f32[2]
 *	%w = write_slice %x, %s {start = [0]} : f32[2]
 *	%r = add %w, %c : f32[2]
 *
 * A write whose own source is a view of what it destroys, and an output that is destroyed later,
 * get a copy as well.  Copies are inserted before the destroyer, so the pass ends: each turns a
 * reader of a destroyed value into a reader of a value that nobody destroys.
 */
#include "ir/build.h"
#include "passes/group.h"
#include "passes/pass.h"

/* Walks back from node; marks what it depends on and stands behind `limit`. */
static bool
depends_on(const struct pawl_node *node, const struct pawl_node *target, unsigned char *seen)
{
	int i;

	if (node == target)
		return true;
	if (seen[node->id])
		return false;
	seen[node->id] = 1;
	for (i = 0; i < node->n_inputs; i++) {
		if (depends_on(node->inputs[i].def, target, seen))
			return true;
	}
	return false;
}

static bool
stands_behind(const struct pawl_node *node, const struct pawl_node *other)
{
	for (node = node->prev; node; node = node->prev) {
		if (node == other)
			return true;
	}
	return false;
}

/* Whether node and all that it needs from behind `before` are free of effects, so may move up. */
static bool
may_hoist(const struct pawl_node *node, const struct pawl_node *before)
{
	int i;

	if (!stands_behind(node, before))
		return true;
	if (pawl_op_has(node->op, PAWL_OPF_INPLACE))
		return false;
	for (i = 0; i < node->n_inputs; i++) {
		const struct pawl_node *storage = pawl_node_storage(node->inputs[i].def);

		/* Values in storage that is written in place are only right at their place. */
		if (pawl_op_has(node->inputs[i].def->op, PAWL_OPF_INPLACE) &&
			stands_behind(node->inputs[i].def, before))
			return false;
		if (storage != node->inputs[i].def && stands_behind(storage, before))
			return false;
		if (!may_hoist(node->inputs[i].def, before))
			return false;
	}
	return true;
}

static void
hoist(struct pawl_graph *graph, struct pawl_node *node, struct pawl_node *before)
{
	int i;

	if (!stands_behind(node, before))
		return;
	for (i = 0; i < node->n_inputs; i++)
		hoist(graph, node->inputs[i].def, before);
	pawl_graph_move(graph, node, before);
}

struct effects {
	struct pawl_pass_ctx *ctx;
	struct pawl_graph *graph;
	struct pawl_node *writer;
};

/* A copy of value taken just before the writer. */
static struct pawl_node *
safety_copy(struct effects *e, struct pawl_node *value)
{
	struct pawl_node *copy;

	e->graph->cursor = e->writer;
	copy = pawl_build_unary(e->graph, PAWL_OP_COPY, value);
	e->graph->cursor = NULL;
	e->ctx->n_changes++;
	return copy;
}

static bool
protect_reader(struct effects *e, struct pawl_node *value, struct pawl_use *use)
{
	struct pawl_node *reader = use->user, *copy;
	unsigned char *seen;

	if (reader != e->writer) {
		if (!stands_behind(reader, e->writer))
			return true;
		seen = pawl_arena_alloc(&e->ctx->scratch, (size_t)e->graph->n_ids, 1);
		if (!seen)
			return false;
		if (!depends_on(reader, e->writer, seen) && may_hoist(reader, e->writer)) {
			hoist(e->graph, reader, e->writer);
			e->ctx->n_changes++;
			return true;
		}
	}
	copy = safety_copy(e, value);
	if (!copy)
		return false;
	pawl_graph_set_input(reader, (int)(use - reader->inputs), copy);
	return true;
}

/* Protects every reader of value and of its views from the writer. */
static bool
protect_value(struct effects *e, struct pawl_node *value)
{
	struct pawl_use *use, *next;
	int32_t i;

	for (use = value->uses; use; use = next) {
		struct pawl_node *user = use->user;

		next = use->next;
		if (user == e->writer && use == &user->inputs[0])
			continue;
		if (pawl_op_has(user->op, PAWL_OPF_VIEW)) {
			/* A view may stand behind the writer; its readers decide. */
			if (stands_behind(user, e->writer) && may_hoist(user, e->writer))
				hoist(e->graph, user, e->writer);
			if (!protect_value(e, user))
				return false;
		} else if (!protect_reader(e, value, use)) {
			return false;
		}
	}
	for (i = 0; value->n_outputs && i < e->graph->n_outputs; i++) {
		struct pawl_node *copy;

		if (e->graph->outputs[i] != value)
			continue;
		copy = safety_copy(e, value);
		if (!copy)
			return false;
		pawl_graph_set_output(e->graph, i, copy);
	}
	return true;
}

enum pawl_status
pawl_pass_order_effects(struct pawl_pass_ctx *ctx, struct pawl_graph *graph, struct pawl_error *err)
{
	struct effects e = {.ctx = ctx, .graph = graph};
	struct pawl_node *node;

	pawl_foreach_node(node, graph) {
		if (!pawl_op_has(node->op, PAWL_OPF_INPLACE))
			continue;
		e.writer = node;
		if (!protect_value(&e, node->inputs[0].def) && graph->error.status == PAWL_OK)
			return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory");
	}
	return PAWL_OK;
}
