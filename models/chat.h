/*
 * Prompts in the ChatML form: "<|im_start|>role\ncontent<|im_end|>\n" a message.
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

struct pawl_chat {
	const struct pawl_tokenizer *tokenizer;
	int32_t begin, end; /* <|im_start|>, <|im_end|> */
	int32_t bos;        /* -1: the prompt has none */
	char *system;       /* of the template, for chats without a system message; or NULL */
	size_t n_system;
};

/*
 * Takes from the template (tokenizer.chat_template, Jinja) what differs between ChatML models:
 * the default system message and whether BOS comes first.  UNSUPPORTED for a template of another
 * form, an empty one, or a vocabulary without the marks.  The tokenizer must outlive the chat; the
 * template need not.
 */
enum pawl_status pawl_chat_init(struct pawl_chat *chat, const struct pawl_tokenizer *tokenizer,
	struct pawl_text template, struct pawl_error *err);
void pawl_chat_release(struct pawl_chat *chat);

/*
 * Adds the ids of a conversation to list.  generate: the head of the assistant's answer follows.
 * INVALID_ARGUMENT names a message with a bad role, INVALID_TEXT one that is not UTF-8; a failure
 * leaves the list as it was.
 */
enum pawl_status pawl_chat_prompt(const struct pawl_chat *chat,
	const struct pawl_chat_message *messages, size_t n, bool generate,
	struct pawl_token_list *list, struct pawl_error *err);

#endif
