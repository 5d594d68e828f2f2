/*
 * order-effects: makes list order an order of execution in which storage is reused in place.
 *
 * A node that writes in place destroys the old value of its input 0, and with it every view of
 * that value.  Each other reader of those values must run before.  A reader that stands behind
 * the destroyer moves up, with what it needs, when nothing of that is a write; otherwise it reads a
 * safety copy taken before:
 *
 *	%w = write_slice %x, %s {start = [0]} : f32[2]
 *	%r = add %w, %x : f32[2]                       ; the old %x, and it depends on %w
 * becomes
 *	%c = copy %x : f32[2]
 *	%w = write_slice %x, %s {start = [0]} : f32[2]
 *	%r = add %w, %c : f32[2]
 *
 * A write whose own source is a view of what it destroys, and an output that is destroyed later,
 * get a copy as well.
 */
#include "passes/copy.h"
#include "passes/pass.h"
#include "passes/view.h"

struct effects {
	struct pawl_pass_ctx *ctx;
	struct pawl_graph *graph;
	struct pawl_node *writer;
	struct pawl_error *err;
	int32_t n_ids;         /* before the pass; later ids are copies, which stand before their writer */
	unsigned char *done;   /* by id: stands before the writer */
	unsigned char *needed; /* by id: scratch of move_up */
};

static bool
stands_behind(const struct effects *e, const struct pawl_node *node)
{
	return node->id < e->n_ids && !e->done[node->id];
}

/* Moves reader and what it needs from behind the writer to before it; false when a write is among it. */
static bool
move_up(struct effects *e, struct pawl_node *reader)
{
	struct pawl_node *node, *next, *end = reader->next;
	bool can_move = true;
	int i;

	e->needed[reader->id] = 1;
	for (node = reader; node != e->writer; node = node->prev) {
		if (!e->needed[node->id])
			continue;
		can_move = can_move && !pawl_op_has(node->op, PAWL_OPF_INPLACE);
		for (i = 0; i < node->n_inputs; i++) {
			if (stands_behind(e, node->inputs[i].def))
				e->needed[node->inputs[i].def->id] = 1;
		}
	}
	can_move = can_move && !e->needed[e->writer->id];
	for (node = e->writer; node != end; node = next) {
		next = node->next;
		if (e->needed[node->id] && can_move) {
			pawl_graph_move(e->graph, node, e->writer);
			e->done[node->id] = 1;
		}
		e->needed[node->id] = 0;
	}
	e->ctx->n_changes += can_move;
	return can_move;
}

/*
 * A copy of value taken just before the writer; one serves all readers.  A copy that the graph has
 * already will do: it needs nothing but value, so it can move up itself.
 */
static struct pawl_node *
safety_copy(struct effects *e, struct pawl_node *value)
{
	struct pawl_use *use;

	pawl_foreach_use(use, value) {
		if (use->user->op == PAWL_OP_COPY)
			return use->user;
	}
	return pawl_copy_before(e->graph, value, e->writer, e->err);
}

static bool
protect_outputs(struct effects *e, struct pawl_node *value)
{
	struct pawl_node *copy;
	int32_t i;

	for (i = 0; value->n_outputs && i < e->graph->n_outputs; i++) {
		if (e->graph->outputs[i] != value)
			continue;
		copy = safety_copy(e, value);
		if (!copy)
			return false;
		pawl_graph_set_output(e->graph, i, copy);
		e->ctx->n_changes++;
	}
	return true;
}

/* False when a copy could not be made. */
static bool
protect_use(struct effects *e, struct pawl_use *use)
{
	struct pawl_node *user = use->user, *copy;

	if (use == &e->writer->inputs[0])
		return true;
	if (pawl_op_has(user->op, PAWL_OPF_VIEW)) {
		if (stands_behind(e, user))
			move_up(e, user);
		return protect_outputs(e, user);
	}
	if (user != e->writer && (!stands_behind(e, user) || move_up(e, user)))
		return true;
	copy = safety_copy(e, use->def);
	if (!copy)
		return false;
	pawl_graph_set_input(user, (int)(use - user->inputs), copy);
	e->ctx->n_changes++;
	return true;
}

/* Protects every reader of what the writer destroys, and of its views. */
static bool
protect_readers(struct effects *e)
{
	struct pawl_node *value = e->writer->inputs[0].def;
	struct pawl_use *use, *next;

	for (use = value->uses; use; use = next) {
		next = pawl_use_through(use, value);
		if (!protect_use(e, use))
			return false;
	}
	return protect_outputs(e, value);
}

enum pawl_status
pawl_pass_order_effects(struct pawl_pass_ctx *ctx, struct pawl_graph *graph, struct pawl_error *err)
{
	struct effects e = {.ctx = ctx, .graph = graph, .err = err, .n_ids = graph->n_ids};
	struct pawl_node *node;

	e.done = pawl_arena_alloc(&ctx->scratch, (size_t)graph->n_ids + 1, 1);
	e.needed = pawl_arena_alloc(&ctx->scratch, (size_t)graph->n_ids + 1, 1);
	if (!e.done || !e.needed)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory");
	pawl_foreach_node(node, graph) {
		if (pawl_op_has(node->op, PAWL_OPF_INPLACE)) {
			e.writer = node;
			if (!protect_readers(&e))
				return err->status;
		}
		e.done[node->id] = 1;
	}
	return PAWL_OK;
}
