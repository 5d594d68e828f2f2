#include "tools/commands.h"

#include "ir/print.h"
#include "models/chat.h"
#include "models/model_config.h"
#include "models/tokenizer_gguf.h"
#include "tools/options.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { SHOWN = 200, UNUSED_SHOWN = 8, COLUMN = 14 };

struct info {
	bool all;
	struct pawl_gguf *gguf;
	const struct pawl_model_family *family;
	struct pawl_model_config config;
	struct pawl_tokenizer *tokenizer; /* NULL: none that is understood */
	struct pawl_chat chat;
	struct pawl_text template;
	/* PAWL_OK: understood; PAWL_UNSUPPORTED: the text says why not. */
	struct pawl_error config_error, tokenizer_error, chat_error;
};

/* Declining is a fact to be shown, not a failure. */
static enum pawl_status
unless_declined(enum pawl_status status, const struct pawl_error *reason, struct pawl_error *err)
{
	if (status == PAWL_OK || status == PAWL_UNSUPPORTED)
		return PAWL_OK;
	return pawl_fail(err, status, "%s", reason->text);
}

static enum pawl_status
look(struct info *info, const char *path, struct pawl_error *err)
{
	enum pawl_status status = pawl_gguf_open(path, &info->gguf, err);

	if (!status)
		status = unless_declined(
			pawl_model_config_read(
				info->gguf, &info->family, &info->config, &info->config_error),
			&info->config_error, err);
	if (status || !pawl_gguf_find(info->gguf, "tokenizer.ggml.model"))
		return status;
	status = unless_declined(
		pawl_tokenizer_from_gguf(info->gguf, &info->tokenizer, &info->tokenizer_error),
		&info->tokenizer_error, err);
	if (status || !info->tokenizer)
		return status;
	status = pawl_chat_template_from_gguf(info->gguf, &info->template, err);
	if (!status)
		status = unless_declined(pawl_chat_init(&info->chat, info->tokenizer,
						 info->template, &info->chat_error),
			&info->chat_error, err);
	return status;
}

static void
label(const char *text)
{
	printf("%-*s", COLUMN, text);
}

static void
print_value(const struct info *info, const char *text, const char *key)
{
	const struct pawl_gguf_value *value = pawl_gguf_find(info->gguf, key);
	char shown[SHOWN];

	if (!value)
		return;
	pawl_gguf_format_value(value, shown, sizeof(shown));
	label(text);
	printf("%s\n", shown);
}

static void
print_real(const char *before, double value)
{
	char text[32];

	pawl_print_double(text, sizeof(text), value);
	printf("%s%s", before, text);
}

static void
print_windows(const struct pawl_model_config *c)
{
	int64_t n = 0;

	for (int64_t i = 0; i < c->n_layers; i++)
		n += pawl_layer_set_has(&c->window_layers, i);
	label("window");
	if (!c->window) {
		printf("none\n");
		return;
	}
	printf("%" PRId64 " tokens in %" PRId64 " of %" PRId64 " layers", c->window, n,
		c->n_layers);
	if (c->window_rope_base != 0.0)
		print_real(", rope base ", c->window_rope_base);
	printf("\n");
}

static void
print_config(const struct info *info)
{
	const struct pawl_model_config *c = &info->config;

	if (info->config_error.status) {
		label("runs");
		printf("no: %s\n", info->config_error.text);
		return;
	}
	label("runs");
	printf("yes\n");
	label("shape");
	printf("%" PRId64 " layers of %" PRId64 ", %" PRId64 " heads (%" PRId64
	       " for keys) of %" PRId64 ", feed-forward %" PRId64 "\n",
		c->n_layers, c->n_embd, c->n_heads, c->n_kv_heads, c->head_dim, c->n_ff);
	label("context");
	printf("%" PRId64 " tokens\n", c->n_ctx);
	label("rope");
	printf("%" PRId64 " of %" PRId64 " elements", c->n_rot, c->head_dim);
	print_real(", base ", c->rope_base);
	print_real(", scale ", c->rope_scale);
	printf("%s\n", c->rope_factors ? ", frequency factors from the file" : "");
	print_windows(c);
	label("norm");
	print_real("rms, eps ", c->eps);
	printf("\n");
	label("head");
	printf("%s\n", c->has_head ? "output.weight" : "tied to token_embd.weight");
}

static void
print_token(const struct info *info, uint32_t id)
{
	struct pawl_text piece;
	char shown[SHOWN];

	if (!pawl_tokenizer_piece(info->tokenizer, id, &piece)) {
		printf("none");
		return;
	}
	pawl_text_show(piece, shown, sizeof(shown));
	printf("%" PRIu32 " %s", id, shown);
}

static void
print_tokenizer(const struct info *info)
{
	size_t n;
	const uint32_t *eog;

	print_value(info, "tokenizer", "tokenizer.ggml.model");
	print_value(info, "splits as", "tokenizer.ggml.pre");
	if (!info->tokenizer) {
		label("text");
		printf("no: %s\n", info->tokenizer_error.status ? info->tokenizer_error.text
								: "the file has no tokenizer");
		return;
	}
	label("vocabulary");
	printf("%zu tokens\n", pawl_tokenizer_n_vocab(info->tokenizer));
	label("begins with");
	print_token(info, pawl_tokenizer_bos(info->tokenizer));
	printf("%s\n", pawl_tokenizer_wants_bos(info->tokenizer) ? "" : ", not put by itself");
	label("ends at");
	eog = pawl_tokenizer_eog(info->tokenizer, &n);
	for (size_t i = 0; i < n; i++) {
		printf("%s", i ? ", " : "");
		print_token(info, eog[i]);
	}
	printf("%s\n", n ? "" : "none");
	label("template");
	if (info->chat_error.status)
		printf("none in use: %s\n", info->chat_error.text);
	else
		printf("%s, from tokenizer.chat_template%s%s\n",
			pawl_chat_form_name(info->chat.form),
			info->chat.system ? ", default system message" : "",
			info->chat.bos >= 0 ? ", BOS first" : "");
}

static void
print_dtypes(const struct info *info)
{
	const struct pawl_gguf *gguf = info->gguf;

	for (int dtype = 0; dtype < PAWL_N_DTYPES; dtype++) {
		int64_t elements = 0;
		size_t n = 0, bytes = 0;

		for (size_t i = 0; i < gguf->n_tensors; i++) {
			if ((int)gguf->tensors[i].dtype != dtype)
				continue;
			n++;
			bytes += gguf->tensors[i].n_bytes;
			elements += gguf->tensors[i].n_elements;
		}
		if (!n)
			continue;
		label("tensors");
		printf("%zu of %s, %" PRId64 " elements, %zu bytes\n", n,
			pawl_dtype_name((enum pawl_dtype)dtype), elements, bytes);
	}
}

static void
print_unused(const struct info *info)
{
	const struct pawl_gguf *gguf = info->gguf;
	size_t n = 0;

	if (info->config_error.status)
		return;
	for (size_t i = 0; i < gguf->n_tensors; i++) {
		const struct pawl_gguf_tensor *tensor = &gguf->tensors[i];

		if (tensor->used)
			continue;
		if (n++ < UNUSED_SHOWN) {
			label("unused");
			printf("%.*s\n", (int)tensor->name.n, tensor->name.text);
		}
	}
	if (n > UNUSED_SHOWN) {
		label("unused");
		printf("%zu more\n", n - UNUSED_SHOWN);
	}
}

static void
print_all(const struct info *info)
{
	const struct pawl_gguf *gguf = info->gguf;
	char shown[SHOWN];

	printf("\n");
	for (size_t i = 0; i < gguf->n_values; i++) {
		const struct pawl_gguf_value *value = &gguf->values[i];

		pawl_gguf_format_value(value, shown, sizeof(shown));
		printf("%.*s = %s\n", (int)value->key.n, value->key.text, shown);
	}
	printf("\n");
	for (size_t i = 0; i < gguf->n_tensors; i++) {
		const struct pawl_gguf_tensor *tensor = &gguf->tensors[i];

		printf("%.*s: %s[", (int)tensor->name.n, tensor->name.text,
			pawl_dtype_name(tensor->dtype));
		for (int j = tensor->rank - 1; j >= 0; j--)
			printf("%" PRId64 "%s", tensor->dims[j], j ? ", " : "]\n");
	}
}

int
pawl_cmd_info(int argc, char **argv)
{
	struct info info = {0};
	const struct pawl_option options[] = {
		{"--all", PAWL_OPTION_ON, &info.all, NULL, "every metadata value and tensor too", 0,
			0},
	};
	const struct pawl_command command = {"info", "MODEL",
		"Shows what a GGUF file holds and what Pawl makes of it.", options,
		sizeof(options) / sizeof(options[0]), 1, 1};
	struct pawl_args args;
	struct pawl_error err = {0};
	int exit_status = pawl_options_parse(&command, argc, argv, &args);

	if (exit_status >= 0)
		return exit_status;
	if (look(&info, args.operands[0], &err)) {
		exit_status = pawl_report_error(&command, &err);
	} else {
		label("file");
		printf("GGUF version %" PRIu32 ", %zu bytes\n", info.gguf->version,
			info.gguf->n_bytes);
		print_value(&info, "name", "general.name");
		print_value(&info, "architecture", "general.architecture");
		print_config(&info);
		print_tokenizer(&info);
		print_dtypes(&info);
		print_unused(&info);
		if (info.all)
			print_all(&info);
		exit_status = pawl_finish_output(&command);
	}
	pawl_chat_release(&info.chat);
	pawl_tokenizer_free(info.tokenizer);
	pawl_gguf_free(info.gguf);
	return exit_status;
}
