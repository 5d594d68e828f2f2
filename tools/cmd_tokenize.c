#include "tools/commands.h"

#include "models/tokenizer_gguf.h"
#include "tools/input.h"
#include "tools/options.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct tokenize {
	bool special, bos, no_bos;
	const char *model;
	struct pawl_gguf *gguf;
	struct pawl_tokenizer *tokenizer;
	struct pawl_token_list ids;
};

static enum pawl_status
encode_input(struct tokenize *t, struct pawl_error *err)
{
	unsigned int flags = t->special ? PAWL_ENCODE_SPECIAL : 0;
	enum pawl_status status = pawl_gguf_open(t->model, &t->gguf, err);
	size_t n;
	char *text;

	if (!status)
		status = pawl_tokenizer_from_gguf(t->gguf, &t->tokenizer, err);
	if (!status)
		status = pawl_read_input("-", PAWL_MAX_INPUT_MIB, &text, &n, err);
	if (status)
		return status;
	if (t->bos || (!t->no_bos && pawl_tokenizer_wants_bos(t->tokenizer)))
		flags |= PAWL_ENCODE_BOS;
	status = pawl_tokenizer_encode(t->tokenizer, text, n, flags, &t->ids, err);
	if (status)
		pawl_error_prefix(err, "standard input");
	free(text);
	return status;
}

int
pawl_cmd_tokenize(int argc, char **argv)
{
	struct tokenize t = {.special = true};
	const struct pawl_option options[] = {
		{"--no-special", PAWL_OPTION_OFF, &t.special, NULL,
			"control tokens written in the text stay text", 0, 0},
		{"--bos", PAWL_OPTION_ON, &t.bos, NULL, "begin with the BOS token", 0, 0},
		{"--no-bos", PAWL_OPTION_ON, &t.no_bos, NULL,
			"do not (default: as the model wants it)", 0, 0},
	};
	const struct pawl_command command = {"tokenize", "MODEL",
		"Reads text on standard input and prints its token ids as a JSON array.", options,
		sizeof(options) / sizeof(options[0]), 1, 2};
	struct pawl_args args;
	struct pawl_error err = {0};
	int exit_status = pawl_options_parse(&command, argc, argv, &args);

	if (exit_status >= 0)
		return exit_status;
	if (args.operands[1])
		return pawl_usage_error(&command,
			"'%.100s' is one word too many: the text is read from standard input",
			args.operands[1]);
	if (t.bos && t.no_bos)
		return pawl_usage_error(&command, "--bos and --no-bos exclude each other");
	t.model = args.operands[0];
	pawl_token_list_init(&t.ids);
	if (encode_input(&t, &err)) {
		exit_status = pawl_report_error(&command, &err);
	} else {
		printf("[");
		for (size_t i = 0; i < t.ids.n; i++)
			printf("%s%" PRId32, i ? ", " : "", t.ids.ids[i]);
		printf("]\n");
		exit_status = pawl_finish_output(&command);
	}
	pawl_token_list_release(&t.ids);
	pawl_tokenizer_free(t.tokenizer);
	pawl_gguf_free(t.gguf);
	return exit_status;
}
