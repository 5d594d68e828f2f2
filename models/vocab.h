/*
 * What a tokenizer holds; private to models/.  Everything lives in the arena except the
 * pre-tokenizer.
 */
#ifndef PAWL_MODELS_VOCAB_H
#define PAWL_MODELS_VOCAB_H

#include "ir/arena.h"
#include "models/bpe.h"
#include "models/pretokenize.h"
#include "models/sentencepiece.h"
#include "models/special_tokens.h"
#include "models/token_index.h"
#include "models/tokenizer.h"

enum pawl_token_flags {
	PAWL_TOKEN_IS_CONTROL = 1,
	PAWL_TOKEN_IS_EOG = 2,
	PAWL_TOKEN_IS_CUT_ALWAYS = 4, /* user-defined */
	PAWL_TOKEN_IS_BYTE = 8,       /* written "<0x0A>", which is never one word of a text */
};

struct pawl_tokenizer {
	struct pawl_arena arena;
	size_t n_tokens;
	size_t longest_text;            /* bytes of the longest of texts */
	const struct pawl_text *texts;  /* as written in the vocabulary */
	const struct pawl_text *pieces; /* the bytes they stand for */
	unsigned char *flags;           /* enum pawl_token_flags */
	struct pawl_token_index index;
	struct pawl_special_tokens specials;
	bool has_scores;                         /* SentencePiece, else byte-level BPE */
	bool adds_space;                         /* in front of a text, with scores only */
	struct pawl_sentencepiece sentencepiece; /* with scores */
	struct pawl_bpe bpe;                     /* without */
	struct pawl_pretokenizer *pretokenizer;  /* without, else NULL */
	const uint32_t *eog;
	size_t n_eog;
	int32_t bos, eos;
	bool wants_bos;
};

/* Whether vocabularies of this tokenizer.ggml.model merge by scores. */
bool pawl_vocab_has_scores(struct pawl_text model);

/* Reads the merges, the tokens being there. */
enum pawl_status pawl_vocab_make_merges(struct pawl_tokenizer *tokenizer,
	const struct pawl_vocab_source *source, struct pawl_error *err);

/*
 * Whether merging, or taking a word as a whole, may give this token.  User-defined tokens are
 * written in plain characters, not in the alphabet of bytes, so only cutting finds them.
 */
static inline bool
pawl_token_comes_from_words(const struct pawl_tokenizer *tokenizer, int32_t id)
{
	return !(tokenizer->flags[id] & (PAWL_TOKEN_IS_CONTROL | PAWL_TOKEN_IS_CUT_ALWAYS));
}

#endif
