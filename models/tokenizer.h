/*
 * Text to token ids and back, by byte-level BPE or a SentencePiece vocabulary with scores.  Ids are
 * uint32_t as everywhere, int32_t only where -1 says that there is none.
 *
 * A tokenizer is made from a vocabulary in memory (models/tokenizer_gguf.h takes it from a GGUF
 * file), copies what it keeps, is immutable from then on and may be shared by threads.
 */
#ifndef PAWL_MODELS_TOKENIZER_H
#define PAWL_MODELS_TOKENIZER_H

#include "ir/status.h"
#include "models/text.h"
#include "models/token_list.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* As numbered in tokenizer.ggml.token_type. */
enum pawl_token_type {
	PAWL_TOKEN_UNDEFINED = 0, /* treated as normal, as is PAWL_TOKEN_UNUSED */
	PAWL_TOKEN_NORMAL = 1,
	PAWL_TOKEN_UNKNOWN = 2, /* treated as control */
	PAWL_TOKEN_CONTROL = 3,
	PAWL_TOKEN_USER_DEFINED = 4,
	PAWL_TOKEN_UNUSED = 5,
	PAWL_TOKEN_BYTE = 6,
};

/* A vocabulary as a file holds it, nothing of it checked.  Errors call its parts by GGUF keys. */
struct pawl_vocab_source {
	/* tokenizer.ggml.model: "gpt2" is byte-level BPE, "llama" SentencePiece with scores. */
	struct pawl_text model;
	struct pawl_text pre; /* tokenizer.ggml.pre, of byte-level BPE */
	const struct pawl_text *tokens;
	size_t n_tokens;
	const int32_t *token_types; /* NULL: all are normal */
	size_t n_token_types;
	const struct pawl_text *merges; /* "left right", best first; of byte-level BPE */
	size_t n_merges;
	const float *scores; /* n_scores = n_tokens; of SentencePiece */
	size_t n_scores;
	int64_t bos, eos, eot, unknown, padding; /* token ids; -1: not given */
	int add_bos, add_space_prefix;           /* 0, 1, or -1: not given */
};

/* Sets everything to absent. */
void pawl_vocab_source_init(struct pawl_vocab_source *source);

/* Whether vocabularies of this tokenizer.ggml.model are understood. */
bool pawl_tokenizer_knows(struct pawl_text model);

struct pawl_tokenizer;

/*
 * INVALID_FILE for a vocabulary that contradicts itself, UNSUPPORTED for a model or pre-tokenizer
 * not known here and for scores without tokens of all bytes.  *out is NULL on failure.  The source
 * may go afterwards.
 */
enum pawl_status pawl_tokenizer_new(const struct pawl_vocab_source *source,
	struct pawl_tokenizer **out, struct pawl_error *err);
void pawl_tokenizer_free(struct pawl_tokenizer *tokenizer);

enum pawl_encode_flags {
	PAWL_ENCODE_SPECIAL = 1, /* control tokens written in the text become those tokens */
	PAWL_ENCODE_BOS = 2,     /* BOS comes first; INVALID_ARGUMENT if the model has none */
};

/*
 * Adds the ids of n bytes of text to list; a failure leaves the list as it was.  flags: of
 * enum pawl_encode_flags.
 *
 * Without PAWL_ENCODE_SPECIAL no text, whoever wrote it, becomes a control token.  User-defined
 * tokens are cut out either way.  INVALID_TEXT with the byte position for text that is not UTF-8.
 * A byte that the vocabulary has no token for is dropped (SmolLM2 lacks 21, all of them control
 * characters or no part of UTF-8).
 */
enum pawl_status pawl_tokenizer_encode(const struct pawl_tokenizer *tokenizer, const char *text,
	size_t n, unsigned int flags, struct pawl_token_list *list, struct pawl_error *err);

/*
 * The bytes that a token stands for (of a control token: its text), which need not be whole
 * characters.  False for an id outside of the vocabulary.  The bytes live as long as the tokenizer
 * and are not ended by a zero.
 */
bool pawl_tokenizer_piece(
	const struct pawl_tokenizer *tokenizer, uint32_t id, struct pawl_text *piece);

/*
 * Joins the pieces of n ids into *text (malloc, the caller frees), *n_text bytes and a zero after
 * them; a space that encoding puts in front of a text is taken away again.  INVALID_ARGUMENT, naming
 * the index, for an id outside of the vocabulary; *text is NULL then.  control: whether control
 * tokens are printed.
 */
enum pawl_status pawl_tokenizer_decode(const struct pawl_tokenizer *tokenizer, const uint32_t *ids,
	size_t n, bool control, char **text, size_t *n_text, struct pawl_error *err);

size_t pawl_tokenizer_n_vocab(const struct pawl_tokenizer *tokenizer);

/* The token whose text in the vocabulary is this, or -1. */
int32_t pawl_tokenizer_find(const struct pawl_tokenizer *tokenizer, const char *text, size_t n);

/* False for ids outside of the vocabulary. */
bool pawl_tokenizer_is_control(const struct pawl_tokenizer *tokenizer, uint32_t id);

/*
 * Whether the token ends a generation: eos, eot, and every token with one of the texts that
 * models use for that.
 */
bool pawl_tokenizer_is_eog(const struct pawl_tokenizer *tokenizer, uint32_t id);

/* All of them, ascending; they live as long as the tokenizer. */
const uint32_t *pawl_tokenizer_eog(const struct pawl_tokenizer *tokenizer, size_t *n);

/* -1 where the vocabulary has none. */
int32_t pawl_tokenizer_bos(const struct pawl_tokenizer *tokenizer);
int32_t pawl_tokenizer_eos(const struct pawl_tokenizer *tokenizer);

/* Whether the model wants BOS in front of plain text.  Encoding adds it only when asked to. */
bool pawl_tokenizer_wants_bos(const struct pawl_tokenizer *tokenizer);

#endif
