#include "tools/commands.h"

#include "models/tokenizer_gguf.h"
#include "tools/input.h"
#include "tools/options.h"

#include <stdio.h>
#include <stdlib.h>

static enum pawl_status
decode_input(const struct pawl_tokenizer *tokenizer, bool control, char **text, size_t *n,
	struct pawl_error *err)
{
	struct pawl_token_list ids;
	enum pawl_status status;
	size_t n_input;
	char *input;

	status = pawl_read_input("-", PAWL_MAX_INPUT_MIB, &input, &n_input, err);
	if (status)
		return status;
	pawl_token_list_init(&ids);
	status = pawl_parse_tokens(input, n_input, "standard input", &ids, err);
	free(input);
	if (!status)
		status = pawl_tokenizer_decode(tokenizer, ids.ids, ids.n, control, text, n, err);
	pawl_token_list_release(&ids);
	return status;
}

int
pawl_cmd_detokenize(int argc, char **argv)
{
	bool control = true;
	const struct pawl_option options[] = {
		{"--no-special", PAWL_OPTION_OFF, &control, NULL, "leave control tokens out", 0, 0},
	};
	const struct pawl_command command = {"detokenize", "MODEL",
		"Reads token ids on standard input, as `pawl tokenize` prints them or separated\n"
		"by blanks, and prints their bytes.",
		options, sizeof(options) / sizeof(options[0]), 1, 2};
	struct pawl_args args;
	struct pawl_tokenizer *tokenizer = NULL;
	struct pawl_gguf *gguf = NULL;
	struct pawl_error err = {0};
	char *text = NULL;
	size_t n = 0;
	int exit_status = pawl_options_parse(&command, argc, argv, &args);

	if (exit_status >= 0)
		return exit_status;
	if (args.operands[1])
		return pawl_usage_error(&command,
			"'%.100s' is one word too many: the ids are read from standard input",
			args.operands[1]);
	if (pawl_gguf_open(args.operands[0], &gguf, &err) ||
		pawl_tokenizer_from_gguf(gguf, &tokenizer, &err) ||
		decode_input(tokenizer, control, &text, &n, &err)) {
		exit_status = pawl_report_error(&command, &err);
	} else {
		fwrite(text, 1, n, stdout);
		exit_status = pawl_finish_output(&command);
	}
	free(text);
	pawl_tokenizer_free(tokenizer);
	pawl_gguf_free(gguf);
	return exit_status;
}
