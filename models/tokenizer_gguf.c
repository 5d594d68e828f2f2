#include "models/tokenizer_gguf.h"

#include "ir/arena.h"
#include "models/vocab.h"

#include <string.h>

#define KEY(name) "tokenizer.ggml." name

static enum pawl_status
get_texts(const struct pawl_gguf *gguf, const char *key, struct pawl_arena *arena,
	const struct pawl_text **out, size_t *n, struct pawl_error *err)
{
	const struct pawl_gguf_string *strings;
	struct pawl_text *texts;
	enum pawl_status status;

	if (!pawl_gguf_find(gguf, key))
		return pawl_gguf_refuse(gguf, key, err, "is missing (wanted array of string)");
	status = pawl_gguf_get_strings(gguf, key, arena, &strings, n, err);
	if (status)
		return status;
	texts = pawl_arena_alloc(arena, *n ? *n : 1, sizeof(*texts));
	if (!texts)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for %zu strings", *n);
	for (size_t i = 0; i < *n; i++)
		texts[i] = (struct pawl_text){strings[i].text, strings[i].n};
	*out = texts;
	return PAWL_OK;
}

static enum pawl_status
get_id(const struct pawl_gguf *gguf, const char *key, int64_t *id, struct pawl_error *err)
{
	uint64_t value;
	enum pawl_status status;

	if (!pawl_gguf_find(gguf, key))
		return PAWL_OK;
	status = pawl_gguf_need_u64(gguf, key, &value, err);
	if (status)
		return status;
	if (value > INT32_MAX)
		return pawl_gguf_refuse(
			gguf, key, err, "%llu is no token id", (unsigned long long)value);
	*id = (int64_t)value;
	return PAWL_OK;
}

static enum pawl_status
get_ids(const struct pawl_gguf *gguf, struct pawl_vocab_source *source, struct pawl_error *err)
{
	const struct {
		const char *key;
		int64_t *id;
	} ids[] = {
		{KEY("bos_token_id"), &source->bos},
		{KEY("eos_token_id"), &source->eos},
		{KEY("eot_token_id"), &source->eot},
		{KEY("unknown_token_id"), &source->unknown},
		{KEY("padding_token_id"), &source->padding},
	};

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		enum pawl_status status = get_id(gguf, ids[i].key, ids[i].id, err);

		if (status)
			return status;
	}
	return PAWL_OK;
}

static enum pawl_status
get_merges(const struct pawl_gguf *gguf, struct pawl_arena *arena,
	struct pawl_vocab_source *source, struct pawl_error *err)
{
	struct pawl_gguf_string pre;
	enum pawl_status status = pawl_gguf_need_string(gguf, KEY("pre"), &pre, err);

	if (status)
		return status;
	source->pre = (struct pawl_text){pre.text, pre.n};
	return get_texts(gguf, KEY("merges"), arena, &source->merges, &source->n_merges, err);
}

static enum pawl_status
get_scores(const struct pawl_gguf *gguf, struct pawl_arena *arena,
	struct pawl_vocab_source *source, struct pawl_error *err)
{
	if (!pawl_gguf_find(gguf, KEY("scores")))
		return pawl_gguf_refuse(
			gguf, KEY("scores"), err, "is missing (wanted array of f32)");
	return pawl_gguf_get_f32s(
		gguf, KEY("scores"), arena, &source->scores, &source->n_scores, err);
}

/* *choice stays when the key is missing. */
static enum pawl_status
get_choice(const struct pawl_gguf *gguf, const char *key, int *choice, struct pawl_error *err)
{
	bool value;
	enum pawl_status status;

	if (!pawl_gguf_find(gguf, key))
		return PAWL_OK;
	status = pawl_gguf_need_bool(gguf, key, &value, err);
	if (!status)
		*choice = value;
	return status;
}

static enum pawl_status
get_vocab(const struct pawl_gguf *gguf, struct pawl_arena *arena, struct pawl_vocab_source *source,
	struct pawl_error *err)
{
	enum pawl_status status;

	status = get_texts(gguf, KEY("tokens"), arena, &source->tokens, &source->n_tokens, err);
	if (!status)
		status = (pawl_vocab_has_scores(source->model) ? get_scores : get_merges)(
			gguf, arena, source, err);
	if (!status)
		status = pawl_gguf_get_i32s(gguf, KEY("token_type"), arena, &source->token_types,
			&source->n_token_types, err);
	if (!status)
		status = get_ids(gguf, source, err);
	if (!status)
		status = get_choice(gguf, KEY("add_bos_token"), &source->add_bos, err);
	if (!status)
		status = get_choice(
			gguf, KEY("add_space_prefix"), &source->add_space_prefix, err);
	return status;
}

/* Puts the file, and where the key that the message begins with has its value, in front. */
static enum pawl_status
locate(const struct pawl_gguf *gguf, struct pawl_error *err)
{
	size_t n = strspn(err->text, "abcdefghijklmnopqrstuvwxyz_.");
	char key[64];
	const struct pawl_gguf_value *value = NULL;

	if (n < sizeof(key)) {
		memcpy(key, err->text, n);
		key[n] = 0;
		value = pawl_gguf_find(gguf, key);
	}
	if (!value)
		return pawl_error_prefix(err, "%s", gguf->name);
	return pawl_error_prefix(
		err, "%s: byte %zu", gguf->name, pawl_gguf_value_offset(gguf, value));
}

enum pawl_status
pawl_tokenizer_from_gguf(
	const struct pawl_gguf *gguf, struct pawl_tokenizer **out, struct pawl_error *err)
{
	struct pawl_error found;
	struct pawl_vocab_source source;
	struct pawl_gguf_string model;
	struct pawl_arena arena;
	enum pawl_status status = pawl_gguf_need_string(gguf, KEY("model"), &model, err);

	*out = NULL;
	if (status)
		return status;
	pawl_vocab_source_init(&source);
	source.model = (struct pawl_text){model.text, model.n};
	pawl_arena_init(&arena);
	if (pawl_tokenizer_knows(source.model))
		status = get_vocab(gguf, &arena, &source, err);
	if (!status) {
		status = pawl_tokenizer_new(&source, out, &found);
		if (status)
			status = pawl_fail(err, locate(gguf, &found), "%s", found.text);
	}
	pawl_arena_release(&arena);
	return status;
}

enum pawl_status
pawl_chat_template_from_gguf(
	const struct pawl_gguf *gguf, struct pawl_text *template, struct pawl_error *err)
{
	struct pawl_gguf_string text;
	enum pawl_status status =
		pawl_gguf_get_string(gguf, "tokenizer.chat_template", NULL, &text, err);

	*template = status ? (struct pawl_text){NULL, 0} : (struct pawl_text){text.text, text.n};
	return status;
}
