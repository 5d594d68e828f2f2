#include "passes/observe.h"

#include "ir/debug.h"
#include "ir/dump.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/verify.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum pawl_status
pawl_run_options_from_env(struct pawl_run_options *out, struct pawl_error *err)
{
	struct pawl_error wrong;

	*out = (struct pawl_run_options){
		.skip = pawl_env(PAWL_ENV_SKIP),
		.bisect = -1,
		.verify_each = pawl_debug(PAWL_DEBUG_VERIFY),
		.roundtrip_each = pawl_debug(PAWL_DEBUG_ROUNDTRIP),
		.dump_folder = pawl_env(PAWL_ENV_DUMP),
	};
	pawl_env_int(PAWL_ENV_BISECT, &out->bisect);
	if (pawl_passes_check_skip(out->skip, &wrong) != PAWL_OK)
		return pawl_fail(err, wrong.status, "PAWL_SKIP: %.900s", wrong.text);
	return pawl_debug_check(err);
}

int
pawl_observe_next_dump(void)
{
	static atomic_int n;

	return atomic_fetch_add(&n, 1) + 1;
}

enum pawl_status
pawl_observe_dump(const struct pawl_graph *graph, const char *folder, int dump, int pass_at,
	const char *pass, struct pawl_error *err)
{
	char stem[64] = "input", name[96];
	char *text = pawl_print(graph, NULL);
	enum pawl_status status;

	if (!text)
		return pawl_fail(
			err, PAWL_OUT_OF_MEMORY, "no memory to print graph '%.64s'", graph->name);
	if (pass_at >= 0)
		snprintf(stem, sizeof(stem), "%02d-%s", pass_at, pass);
	if (dump == 1)
		snprintf(name, sizeof(name), "%s.pawl", stem);
	else
		snprintf(name, sizeof(name), "%s.%d.pawl", stem, dump);
	status = pawl_dump_text(folder, name, text, err);
	free(text);
	return status;
}

static enum pawl_status
compare(const struct pawl_graph *graph, const char *text, const struct pawl_graph *read,
	struct pawl_error *err)
{
	char *again = pawl_print(read, NULL);
	enum pawl_status status = PAWL_OK;
	int line = 1;
	size_t i = 0;

	if (!again)
		return pawl_fail(
			err, PAWL_OUT_OF_MEMORY, "no memory to print graph '%.64s'", read->name);
	for (; text[i] && text[i] == again[i]; i++)
		line += text[i] == '\n';
	if (text[i] || again[i])
		status = pawl_fail(err, PAWL_INTERNAL,
			"line %d of the text prints otherwise when read back", line);
	else if (pawl_graph_hash(graph) != pawl_graph_hash(read))
		status = pawl_fail(err, PAWL_INTERNAL,
			"hash 0x%016" PRIx64 " is 0x%016" PRIx64 " when its text is read back",
			pawl_graph_hash(graph), pawl_graph_hash(read));
	free(again);
	return status;
}

static enum pawl_status
read_back(const struct pawl_graph *graph, struct pawl_error *err)
{
	char *text = pawl_print(graph, NULL);
	struct pawl_error wrong;
	struct pawl_graph *read;
	enum pawl_status status;

	if (!text)
		return pawl_fail(
			err, PAWL_OUT_OF_MEMORY, "no memory to print graph '%.64s'", graph->name);
	status = pawl_parse(text, strlen(text), "its text", &read, NULL, &wrong);
	if (status == PAWL_OK) {
		status = compare(graph, text, read, err);
		pawl_graph_free(read);
	} else {
		status = pawl_fail(err, status == PAWL_OUT_OF_MEMORY ? status : PAWL_INTERNAL,
			"%.900s", wrong.text);
	}
	free(text);
	return status;
}

enum pawl_status
pawl_observe_check(const struct pawl_graph *graph, const struct pawl_run_options *options,
	struct pawl_error *err)
{
	struct pawl_error wrong;

	if (options->verify_each && pawl_verify(graph, NULL, &wrong) != PAWL_OK)
		return pawl_fail(err, PAWL_INTERNAL, "%.900s", wrong.text);
	return options->roundtrip_each ? read_back(graph, err) : PAWL_OK;
}
