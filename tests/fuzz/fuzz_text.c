#include "ir/parse.h"
#include "ir/print.h"
#include "ir/verify.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct pawl_graph *
parse(const char *text, size_t n)
{
	struct pawl_error err = {0};
	struct pawl_graph *graph = NULL;
	char *all = NULL;

	if (pawl_parse(text, n, "fuzz", &graph, &all, &err)) {
		if (strncmp(err.text, "fuzz:", 5) != 0 || !all || strchr(err.text, '\n'))
			abort();
	} else if (all) {
		abort();
	}
	free(all);
	return graph;
}

/* What parses is valid, and what is printed of it is a fixed point of the same meaning. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pawl_graph *graph = parse((const char *)data, size), *again;
	char *text, *text_again;

	if (!graph)
		return 0;
	if (pawl_verify(graph, NULL, NULL))
		abort();
	text = pawl_print(graph, NULL);
	again = parse(text, strlen(text));
	if (!again || pawl_graph_hash(again) != pawl_graph_hash(graph))
		abort();
	text_again = pawl_print(again, NULL);
	if (strcmp(text, text_again) != 0)
		abort();
	free(text);
	free(text_again);
	pawl_graph_free(graph);
	pawl_graph_free(again);
	return 0;
}
