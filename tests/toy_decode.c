/*
 * Decodes the toy of examples/toy.h on the graph interpreter, which optimizes nothing, and prints the
 * tokens of both texts as examples/host.c does: what a host must print.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/interp.h"
#include "examples/toy.h"
#include "ir/text_graph.h"

static struct pawl_error err;

static void
must(enum pawl_status status)
{
	if (status != PAWL_OK) {
		fprintf(stderr, "toy-decode: %s\n", err.text);
		exit(1);
	}
}

static struct pawl_text_graph *
make_graph(void)
{
	struct pawl_text_graph *graph;
	char text[512];

	must(pawl_text_graph_new("toy", &graph, &err));
	snprintf(text, sizeof(text), "sym $attended_len : 1..%d", TOY_CAPACITY);
	must(pawl_text_graph_add(graph, "sym", text, &err));
	for (size_t i = 0; i < TOY_N_NODES; i++) {
		const struct toy_node *node = &toy_nodes[i];
		int n = snprintf(text, sizeof(text), "%%%s = %s", node->name, node->op);
		char kv[64];

		for (int j = 0; j < TOY_MAX_INPUTS && node->inputs[j]; j++)
			n += snprintf(text + n, sizeof(text) - (size_t)n, "%s%%%s", j ? ", " : " ",
				node->inputs[j]);
		snprintf(kv, sizeof(kv), "f16[1, 1, %d, %d]", TOY_CAPACITY, TOY_HEAD);
		snprintf(text + n, sizeof(text) - (size_t)n, " %s : %s",
			node->attrs ? node->attrs : "", node->type ? node->type : kv);
		must(pawl_text_graph_add(graph, node->name, text, &err));
	}
	must(pawl_text_graph_add(graph, "output", "output %next", &err));
	return graph;
}

static void
bind(struct pawl_interp *interp, const char *name, void *bytes, size_t n)
{
	if (!bytes)
		exit(1);
	must(pawl_interp_bind(interp, name, bytes, (int64_t)n, &err));
}

static void
decode(struct pawl_interp *interp, uint32_t token)
{
	enum { KV_BYTES = TOY_CAPACITY * TOY_HEAD * 2 };
	float cos_row[TOY_HEAD], sin_row[TOY_HEAD];
	void *k = calloc(1, KV_BYTES), *v = calloc(1, KV_BYTES);
	int64_t position;
	double next;

	bind(interp, "cache.k.0", k, KV_BYTES);
	bind(interp, "cache.v.0", v, KV_BYTES);
	bind(interp, "ids", &token, sizeof(token));
	bind(interp, "cos", cos_row, sizeof(cos_row));
	bind(interp, "sin", sin_row, sizeof(sin_row));
	bind(interp, "offset", &position, sizeof(position));
	for (position = 0; position < TOY_TOKENS; position++) {
		toy_rope(position, cos_row, sin_row);
		must(pawl_interp_set_symbol(interp, "attended_len", position + 1, &err));
		must(pawl_interp_run(interp, &err));
		must(pawl_interp_read(interp, 0, &next, 1, &err));
		token = (uint32_t)next;
		printf("%s%u", position ? " " : "", token);
	}
	putchar('\n');
	free(k);
	free(v);
}

int
main(void)
{
	struct pawl_text_graph *graph = make_graph();
	float *weights[TOY_N_WEIGHTS];
	struct pawl_interp *interp;
	size_t i;

	must(pawl_interp_new(pawl_text_graph_graph(graph), PAWL_INTERP_PLANNED, &interp, &err));
	for (i = 0; i < TOY_N_WEIGHTS; i++) {
		weights[i] = malloc(toy_weights[i].n * sizeof(float));
		if (weights[i])
			toy_fill(i, weights[i]);
		bind(interp, toy_weights[i].name, weights[i], toy_weights[i].n * sizeof(float));
	}
	decode(interp, 1);
	decode(interp, 2);
	pawl_interp_free(interp);
	pawl_text_graph_free(graph);
	for (i = 0; i < TOY_N_WEIGHTS; i++)
		free(weights[i]);
	return 0;
}
