/*
 * Decodes the toy of examples/toy.h on the graph interpreter, which optimizes nothing, and prints the
 * tokens as examples/host does: what the host must print.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/interp.h"
#include "examples/toy.h"
#include "ir/parse.h"

static struct pawl_error err;

static void
must(enum pawl_status status)
{
	if (status != PAWL_OK) {
		fprintf(stderr, "toy-decode: %s\n", err.text);
		exit(1);
	}
}

static void
bind(struct pawl_interp *interp, const char *name, void *bytes, size_t n)
{
	if (!bytes)
		exit(1);
	must(pawl_interp_bind(interp, name, bytes, (int64_t)n, &err));
}

int
main(void)
{
	float cos_row[TOY_HEAD], sin_row[TOY_HEAD], *weights[TOY_N_WEIGHTS];
	void *k = calloc(1, TOY_KV_BYTES), *v = calloc(1, TOY_KV_BYTES);
	struct pawl_interp *interp;
	struct pawl_graph *graph;
	uint32_t token = 1;
	int64_t position;
	double next;
	size_t i;

	must(pawl_parse(toy_graph, strlen(toy_graph), "toy", &graph, NULL, &err));
	must(pawl_interp_new(graph, PAWL_INTERP_PLANNED, &interp, &err));
	for (i = 0; i < TOY_N_WEIGHTS; i++) {
		weights[i] = malloc(toy_weights[i].n * sizeof(float));
		if (weights[i])
			toy_fill(i, weights[i]);
		bind(interp, toy_weights[i].name, weights[i], toy_weights[i].n * sizeof(float));
	}
	bind(interp, "k_cache", k, TOY_KV_BYTES);
	bind(interp, "v_cache", v, TOY_KV_BYTES);
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
	pawl_interp_free(interp);
	pawl_graph_free(graph);
	for (i = 0; i < TOY_N_WEIGHTS; i++)
		free(weights[i]);
	free(k);
	free(v);
	return 0;
}
