#include "models/chat.h"

#include "models/utf8.h"

#include <stdlib.h>
#include <string.h>

#define BEGIN "<|im_start|>"
#define END "<|im_end|>"

static const struct form {
	const char *name, *begin, *end, *assistant;
} forms[] = {
	[PAWL_CHAT_CHATML] = {"ChatML", BEGIN, END, "assistant"},
	[PAWL_CHAT_GEMMA] = {"Gemma", "<start_of_turn>", "<end_of_turn>", "model"},
};

enum { N_FORMS = sizeof(forms) / sizeof(forms[0]) };

const char *
pawl_chat_form_name(enum pawl_chat_form form)
{
	return forms[form].name;
}

/* The first occurrence of wanted in text at or after start, or text.n. */
static size_t
find_text(struct pawl_text text, size_t start, const char *wanted)
{
	size_t n = strlen(wanted);

	for (size_t i = start; i + n <= text.n; i++) {
		if (memcmp(text.bytes + i, wanted, n) == 0)
			return i;
	}
	return text.n;
}

static bool
starts_with(struct pawl_text text, size_t start, const char *wanted)
{
	size_t n = strlen(wanted);

	return text.n - start >= n && memcmp(text.bytes + start, wanted, n) == 0;
}

static char
unescape(char c)
{
	switch (c) {
	case 'n':
		return '\n';
	case 't':
		return '\t';
	case 'r':
		return '\r';
	}
	return c;
}

/*
 * Reads the message that begins at start (behind "system\n") up to the end mark into out and
 * returns its length; SIZE_MAX when the template composes it from something else.  quote: of the
 * Jinja string it stands in, or 0 in text outside of Jinja.
 */
static size_t
read_system(struct pawl_text template, size_t start, char quote, char *out)
{
	size_t n = 0;

	for (size_t i = start; i < template.n; i++) {
		char c = template.bytes[i];

		if (starts_with(template, i, END))
			return n;
		if (quote ? c == quote : c == '{')
			break;
		if (quote && c == '\\' && i + 1 < template.n)
			c = unescape(template.bytes[++i]);
		out[n++] = c;
	}
	return SIZE_MAX;
}

/* Where the content begins behind a "<|im_start|>" at mark, if it is of role system; else 0. */
static size_t
system_content(struct pawl_text template, size_t mark)
{
	size_t at = mark + strlen(BEGIN);

	if (!starts_with(template, at, "system"))
		return 0;
	at += strlen("system");
	if (starts_with(template, at, "\n"))
		return at + 1;
	return starts_with(template, at, "\\n") ? at + 2 : 0;
}

static enum pawl_status
find_default_system(struct pawl_chat *chat, struct pawl_text template, struct pawl_error *err)
{
	char *text = malloc(template.n + 1);

	if (!text)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory to read a chat template");
	for (size_t mark = find_text(template, 0, BEGIN); mark < template.n;
		mark = find_text(template, mark + 1, BEGIN)) {
		size_t start = system_content(template, mark);
		bool quoted = mark && strchr("'\"", template.bytes[mark - 1]);
		char quote = quoted ? template.bytes[mark - 1] : '\0';
		size_t n = start ? read_system(template, start, quote, text) : SIZE_MAX;

		if (n != SIZE_MAX) {
			chat->system = text;
			chat->n_system = n;
			return PAWL_OK;
		}
	}
	free(text);
	return PAWL_OK;
}

enum pawl_status
pawl_chat_init(struct pawl_chat *chat, const struct pawl_tokenizer *tokenizer,
	struct pawl_text template, struct pawl_error *err)
{
	int32_t begin, end;
	int i = 0;

	memset(chat, 0, sizeof(*chat));
	if (template.n == 0)
		return pawl_fail(err, PAWL_UNSUPPORTED,
			"the model has no chat template; --raw takes the text as it is");
	while (i < N_FORMS && find_text(template, 0, forms[i].begin) == template.n)
		i++;
	if (i == N_FORMS)
		return pawl_fail(err, PAWL_UNSUPPORTED,
			"tokenizer.chat_template is not of a known form (neither %s nor %s in it); "
			"--raw takes the text as it is",
			forms[0].begin, forms[1].begin);
	chat->form = (enum pawl_chat_form)i;
	chat->tokenizer = tokenizer;
	begin = pawl_tokenizer_find(tokenizer, forms[i].begin, strlen(forms[i].begin));
	end = pawl_tokenizer_find(tokenizer, forms[i].end, strlen(forms[i].end));
	if (begin < 0 || end < 0)
		return pawl_fail(err, PAWL_UNSUPPORTED,
			"tokenizer.chat_template is %s, but %s is not in the vocabulary; --raw "
			"takes the text as it is",
			forms[i].name, begin < 0 ? forms[i].begin : forms[i].end);
	chat->begin = (uint32_t)begin;
	chat->end = (uint32_t)end;
	chat->bos = find_text(template, 0, "bos_token") < template.n ? pawl_tokenizer_bos(tokenizer)
								     : -1;
	return chat->form == PAWL_CHAT_CHATML ? find_default_system(chat, template, err) : PAWL_OK;
}

void
pawl_chat_release(struct pawl_chat *chat)
{
	free(chat->system);
	memset(chat, 0, sizeof(*chat));
}

static size_t
put(char *text, size_t n, struct pawl_text piece)
{
	if (piece.n)
		memcpy(text + n, piece.bytes, piece.n);
	return n + piece.n;
}

/*
 * Role, newline and content are encoded as one text: words may reach over the border, as they do
 * in the text that the template makes.  before: another content, an empty line after it, or of 0
 * bytes.
 */
static enum pawl_status
add_head(const struct pawl_chat *chat, const char *role, struct pawl_text before,
	struct pawl_text content, struct pawl_token_list *list, struct pawl_error *err)
{
	struct pawl_text name = {role, strlen(role)};
	size_t n, most = name.n + 3;
	enum pawl_status status;
	char *text;

	if (__builtin_add_overflow(most, before.n, &most) ||
		__builtin_add_overflow(most, content.n, &most))
		return pawl_fail(err, PAWL_CAPACITY, "a message of %zu bytes", content.n);
	text = malloc(most);
	if (!text)
		return pawl_fail(
			err, PAWL_OUT_OF_MEMORY, "no memory for a message of %zu bytes", most);
	n = put(text, 0, name);
	text[n++] = '\n';
	n = put(text, n, before);
	if (before.n)
		n = put(text, n, (struct pawl_text){"\n\n", 2});
	n = put(text, n, content);
	status = pawl_token_list_add(list, chat->begin, err);
	if (!status)
		status = pawl_tokenizer_encode(chat->tokenizer, text, n, 0, list, err);
	free(text);
	return status;
}

static enum pawl_status
add_newline(const struct pawl_chat *chat, struct pawl_token_list *list, struct pawl_error *err)
{
	return pawl_tokenizer_encode(chat->tokenizer, "\n", 1, 0, list, err);
}

static enum pawl_status
add_end(const struct pawl_chat *chat, struct pawl_token_list *list, struct pawl_error *err)
{
	enum pawl_status status = pawl_token_list_add(list, chat->end, err);

	return status ? status : add_newline(chat, list, err);
}

static enum pawl_status
add_message(const struct pawl_chat *chat, const char *role, struct pawl_text before,
	struct pawl_text content, struct pawl_token_list *list, struct pawl_error *err)
{
	enum pawl_status status = add_head(chat, role, before, content, list, err);

	return status ? status : add_end(chat, list, err);
}

static enum pawl_status
add_answer_head(const struct pawl_chat *chat, struct pawl_token_list *list, struct pawl_error *err)
{
	const struct pawl_text none = {NULL, 0};

	return add_head(chat, forms[chat->form].assistant, none, none, list, err);
}

static bool
is_role(const char *role)
{
	size_t n = strspn(role, "abcdefghijklmnopqrstuvwxyz_");

	return n > 0 && role[n] == 0;
}

static bool
is_system(const struct pawl_chat_message *message)
{
	return !strcmp(message->role, "system");
}

static enum pawl_status
check_messages(const struct pawl_chat *chat, const struct pawl_chat_message *messages, size_t n,
	struct pawl_error *err)
{
	for (size_t i = 0; i < n; i++) {
		struct pawl_text content = messages[i].content;
		size_t n_valid = pawl_utf8_valid_prefix(content.bytes, content.n);

		if (!is_role(messages[i].role))
			return pawl_fail(err, PAWL_INVALID_ARGUMENT,
				"message %zu: a role is made of lower-case letters", i);
		if (chat->form == PAWL_CHAT_GEMMA && is_system(&messages[i]) && (i > 0 || n == 1))
			return pawl_fail(err, PAWL_INVALID_ARGUMENT,
				"message %zu: of role system, which %s has in front of another "
				"only",
				i, forms[chat->form].name);
		if (n_valid < content.n)
			return pawl_fail(err, PAWL_INVALID_TEXT,
				"message %zu is not UTF-8 at byte %zu", i, n_valid);
	}
	return PAWL_OK;
}

static struct pawl_text
trimmed(struct pawl_text text)
{
	static const char space[] = " \t\n\v\f\r";

	while (text.n && memchr(space, text.bytes[0], sizeof(space) - 1)) {
		text.bytes++;
		text.n--;
	}
	while (text.n && memchr(space, text.bytes[text.n - 1], sizeof(space) - 1))
		text.n--;
	return text;
}

static enum pawl_status
add_default_system(
	const struct pawl_chat *chat, struct pawl_token_list *list, struct pawl_error *err)
{
	const struct pawl_text none = {NULL, 0}, text = {chat->system, chat->n_system};

	return add_message(chat, "system", none, text, list, err);
}

static enum pawl_status
add_chatml(const struct pawl_chat *chat, const struct pawl_chat_message *messages, size_t n,
	struct pawl_token_list *list, struct pawl_error *err)
{
	const struct pawl_text none = {NULL, 0};
	enum pawl_status status = PAWL_OK;

	for (size_t i = 0; i < n && !status; i++)
		status = add_message(chat, messages[i].role, none, messages[i].content, list, err);
	return status;
}

static enum pawl_status
add_gemma(const struct pawl_chat *chat, const struct pawl_chat_message *messages, size_t n,
	struct pawl_token_list *list, struct pawl_error *err)
{
	struct pawl_text before = {NULL, 0};
	enum pawl_status status = PAWL_OK;

	for (size_t i = 0; i < n && !status; i++) {
		const char *role = messages[i].role;

		if (is_system(&messages[i])) {
			before = messages[i].content;
			continue;
		}
		if (!strcmp(role, "assistant"))
			role = forms[PAWL_CHAT_GEMMA].assistant;
		status = add_message(chat, role, before, trimmed(messages[i].content), list, err);
		before.n = 0;
	}
	return status;
}

static enum pawl_status
add_messages(const struct pawl_chat *chat, const struct pawl_chat_message *messages, size_t n,
	struct pawl_token_list *list, struct pawl_error *err)
{
	return (chat->form == PAWL_CHAT_GEMMA ? add_gemma : add_chatml)(
		chat, messages, n, list, err);
}

enum pawl_status
pawl_chat_prompt(const struct pawl_chat *chat, const struct pawl_chat_message *messages, size_t n,
	bool generate, struct pawl_token_list *list, struct pawl_error *err)
{
	size_t n_before = list->n;
	enum pawl_status status = check_messages(chat, messages, n, err);

	if (!status && chat->bos >= 0)
		status = pawl_token_list_add(list, chat->bos, err);
	if (!status && chat->system && n && !is_system(&messages[0]))
		status = add_default_system(chat, list, err);
	if (!status)
		status = add_messages(chat, messages, n, list, err);
	if (!status && generate)
		status = add_answer_head(chat, list, err);
	if (status)
		list->n = n_before;
	return status;
}

/* What follows an end already, if anything, stays as it is. */
static enum pawl_status
end_last_message(const struct pawl_chat *chat, struct pawl_token_list *list, struct pawl_error *err)
{
	size_t n = list->n;

	while (n && list->ids[n - 1] != chat->begin && list->ids[n - 1] != chat->end)
		n--;
	if (!n)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"what it continues has no message of %s; --raw takes the text as it is",
			forms[chat->form].name);
	if (list->ids[n - 1] == chat->begin)
		return add_end(chat, list, err);
	return n == list->n ? add_newline(chat, list, err) : PAWL_OK;
}

enum pawl_status
pawl_chat_continue(const struct pawl_chat *chat, struct pawl_text said,
	struct pawl_token_list *list, struct pawl_error *err)
{
	const struct pawl_chat_message message = {"user", said};
	size_t n_before = list->n;
	enum pawl_status status = check_messages(chat, &message, 1, err);

	if (!status)
		status = end_last_message(chat, list, err);
	if (!status)
		status = add_messages(chat, &message, 1, list, err);
	if (!status)
		status = add_answer_head(chat, list, err);
	if (status)
		list->n = n_before;
	return status;
}
