/*
 * Prompts of turns with marks around them: "<|im_start|>role\ncontent<|im_end|>\n" in the ChatML
 * form,
 * "<start_of_turn>role\ncontent<end_of_turn>\n" in that of Gemma, where the assistant's role is
 * called model, contents lose white space (of ASCII) at both ends, and what a system message says
 * stands before the first content, an empty line between.
 *
 * The marks are put as token ids; roles and contents are encoded with special tokens off, so that
 * nothing written in a message can end it or begin another.  The chat alone decides about BOS: it
 * comes first if the template puts it there, and nobody else should add one.
 *
 * A chat is immutable between init and release and may be shared by threads.
 */
#ifndef PAWL_MODELS_CHAT_H
#define PAWL_MODELS_CHAT_H

#include "models/tokenizer.h"

struct pawl_chat_message {
	const char *role; /* "system", "user", "assistant": lower-case letters and _ */
	struct pawl_text content;
};

enum pawl_chat_form { PAWL_CHAT_CHATML, PAWL_CHAT_GEMMA };

struct pawl_chat {
	const struct pawl_tokenizer *tokenizer;
	enum pawl_chat_form form;
	uint32_t begin, end; /* the marks */
	int32_t bos;        /* -1: the prompt has none */
	char *system;       /* of the template, for chats without a system message; or NULL */
	size_t n_system;
};

/*
 * Takes from the template (tokenizer.chat_template, Jinja) its form by the mark in it, whether BOS
 * comes first, and of ChatML the default system message.  UNSUPPORTED for a template of another
 * form, an empty one, or a vocabulary without the marks.  The tokenizer must outlive the chat; the
 * template need not.
 */
enum pawl_status pawl_chat_init(struct pawl_chat *chat, const struct pawl_tokenizer *tokenizer,
	struct pawl_text template, struct pawl_error *err);
void pawl_chat_release(struct pawl_chat *chat);

/* "ChatML", "Gemma". */
const char *pawl_chat_form_name(enum pawl_chat_form form);

/*
 * Adds the ids of a conversation to list.  generate: the head of the assistant's answer follows.
 * INVALID_ARGUMENT names a message with a bad role, or of role system where the form has none
 * (Gemma: but the first, which another follows), INVALID_TEXT one that is not UTF-8; a failure
 * leaves the list as it was.
 */
enum pawl_status pawl_chat_prompt(const struct pawl_chat *chat,
	const struct pawl_chat_message *messages, size_t n, bool generate,
	struct pawl_token_list *list, struct pawl_error *err);

/*
 * Adds to a conversation, whose ids list holds, what the user says next and the head of the answer.
 * Its last message gets its end first if it has none, as an answer that was cut, or whose end was
 * not kept.  INVALID_ARGUMENT when no message begins or ends in list, INVALID_TEXT when said is not
 * UTF-8; a failure leaves the list as it was.
 */
enum pawl_status pawl_chat_continue(const struct pawl_chat *chat, struct pawl_text said,
	struct pawl_token_list *list, struct pawl_error *err);

#endif
