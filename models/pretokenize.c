#define PCRE2_CODE_UNIT_WIDTH 8

#include "models/pretokenize.h"

#include <pcre2.h>
#include <stdint.h>
#include <stdlib.h>

/*
 * The characters of Unicode's White_Space, for use inside of [].  PCRE2's own \s has U+180E too,
 * which the engines that the models were trained with do not.
 */
#define WS                                                                                         \
	"\\t-\\r \\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}"   \
	"\\x{3000}"
#define LAST_SPACE_TO_WORD "[" WS "]+(?![^" WS "])|[" WS "]+"
#define LINE_ENDS "[" WS "]*[\\r\\n]+"

/* Only these letters fold: no \x{17f} for s, unlike (?i). */
#define SUFFIX "'(?:[sS]|[tT]|[rR][eE]|[vV][eE]|[mM]|[lL][lL]|[dD])"
#define WORD "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+"
#define MARKS " ?[^" WS "\\p{L}\\p{N}]+[\\r\\n]*"

#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define CASED_WORD(suffix)                                                                         \
	"[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+" suffix "|[^\\r\\n\\p{L}\\p{N}]?" UPPER        \
	"+" LOWER "*" suffix
#define MARKS_AND_SLASHES " ?[^" WS "\\p{L}\\p{N}]+[\\r\\n/]*"

#define GPT2                                                                                       \
	"'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^" WS "\\p{L}\\p{N}]+|" LAST_SPACE_TO_WORD
#define LLAMA3 SUFFIX "|" WORD "|\\p{N}{1,3}|" MARKS "|" LINE_ENDS "|" LAST_SPACE_TO_WORD
#define QWEN2 SUFFIX "|" WORD "|\\p{N}|" MARKS "|" LINE_ENDS "|" LAST_SPACE_TO_WORD
#define QWEN35                                                                                     \
	SUFFIX "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^" WS                             \
	       "\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" LINE_ENDS "|" LAST_SPACE_TO_WORD
#define GPT4O                                                                                      \
	CASED_WORD("(?:" SUFFIX ")?")                                                              \
	"|\\p{N}{1,3}|" MARKS_AND_SLASHES "|" LINE_ENDS "|" LAST_SPACE_TO_WORD
#define TEKKEN CASED_WORD("") "|\\p{N}|" MARKS_AND_SLASHES "|" LINE_ENDS "|" LAST_SPACE_TO_WORD
#define DEEPSEEK3_CJK "[\\x{4e00}-\\x{9fa5}\\x{3040}-\\x{30ff}]+"
#define DEEPSEEK3                                                                                  \
	"[!-/:-@\\[-`{-~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|"                   \
	" ?[\\p{P}\\p{S}]+[\\r\\n]*|" LINE_ENDS "|" LAST_SPACE_TO_WORD

enum { MAX_RULES = 3 };
enum { WHOLE_WORDS = 1, ADDS_BOS = 2 };

/*
 * Each rule splits the words left by the rules before it: what it matches are words, and what
 * lies between too.
 */
struct rule_set {
	const char *name;
	unsigned int flags;
	const char *rules[MAX_RULES];
};

static const struct rule_set rule_sets[] = {
	{"gpt-2", 0, {GPT2}},
	{"phi-2", 0, {GPT2}},
	{"mpt", 0, {GPT2}},
	{"olmo", 0, {GPT2}},
	{"jais", 0, {GPT2}},
	{"trillion", 0, {GPT2}},
	{"exaone4", 0, {GPT2}},
	{"granite-docling", 0, {GPT2}},
	{"smollm", 0, {"\\p{N}", GPT2}},
	{"starcoder", 0, {"\\p{N}", GPT2}},
	{"refact", 0, {"\\p{N}", GPT2}},
	{"command-r", 0, {"\\p{N}", GPT2}},
	{"codeshell", 0, {"\\p{N}", GPT2}},
	{"exaone", 0, {"\\p{N}", GPT2}},
	{"minerva-7b", 0, {"\\p{N}", GPT2}},
	{"llama-bpe", WHOLE_WORDS | ADDS_BOS, {LLAMA3}},
	{"llama3", WHOLE_WORDS | ADDS_BOS, {LLAMA3}},
	{"llama-v3", WHOLE_WORDS | ADDS_BOS, {LLAMA3}},
	{"falcon3", WHOLE_WORDS | ADDS_BOS, {LLAMA3}},
	{"lfm2", WHOLE_WORDS | ADDS_BOS, {LLAMA3}},
	{"dbrx", 0, {LLAMA3}},
	{"smaug-bpe", 0, {LLAMA3}},
	{"glm4", 0, {LLAMA3}},
	{"chatglm-bpe", 0, {LLAMA3}},
	{"qwen2", 0, {QWEN2}},
	{"deepseek-r1-qwen", 0, {QWEN2}},
	{"megrez", 0, {QWEN2}},
	{"stablelm2", 0, {QWEN2}},
	{"hunyuan", 0, {QWEN2}},
	{"qwen35", 0, {QWEN35}},
	{"gpt-4o", 0, {GPT4O}},
	{"llama4", 0, {GPT4O}},
	{"tekken", WHOLE_WORDS | ADDS_BOS, {TEKKEN}},
	{"deepseek-v3", 0, {"\\p{N}{1,3}", DEEPSEEK3_CJK, DEEPSEEK3}},
};

struct pawl_pretokenizer {
	const struct rule_set *set;
	pcre2_code *rules[MAX_RULES];
	size_t n_rules;
};

static const struct rule_set *
find_rule_set(struct pawl_text name)
{
	for (size_t i = 0; i < sizeof(rule_sets) / sizeof(rule_sets[0]); i++) {
		if (pawl_text_is(name, rule_sets[i].name))
			return &rule_sets[i];
	}
	return NULL;
}

static enum pawl_status
unknown_name(struct pawl_text name, struct pawl_error *err)
{
	char shown[64];

	pawl_text_show(name, shown, sizeof(shown));
	return pawl_fail(err, PAWL_UNSUPPORTED,
		"tokenizer.ggml.pre is '%s', and no rules of that name are known", shown);
}

static enum pawl_status
compile_rule(struct pawl_pretokenizer *pretokenizer, const char *rule, struct pawl_error *err)
{
	int code;
	PCRE2_SIZE offset;
	pcre2_code *compiled = pcre2_compile(
		(PCRE2_SPTR)rule, PCRE2_ZERO_TERMINATED, PCRE2_UTF, &code, &offset, NULL);

	if (!compiled && code == PCRE2_ERROR_NOMEMORY)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for a pre-tokenizer rule");
	if (!compiled)
		return pawl_fail(err, PAWL_ENVIRONMENT,
			"pcre2 refuses a rule of pre-tokenizer %s at %zu (error %d)",
			pretokenizer->set->name, (size_t)offset, code);
	pretokenizer->rules[pretokenizer->n_rules++] = compiled;
	return PAWL_OK;
}

enum pawl_status
pawl_pretokenizer_new(struct pawl_text name, struct pawl_pretokenizer **out, struct pawl_error *err)
{
	const struct rule_set *set = find_rule_set(name);
	struct pawl_pretokenizer *pretokenizer;

	*out = NULL;
	if (!set)
		return unknown_name(name, err);
	pretokenizer = calloc(1, sizeof(*pretokenizer));
	if (!pretokenizer)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for a pre-tokenizer");
	pretokenizer->set = set;
	for (size_t i = 0; i < MAX_RULES && set->rules[i]; i++) {
		enum pawl_status status = compile_rule(pretokenizer, set->rules[i], err);

		if (status) {
			pawl_pretokenizer_free(pretokenizer);
			return status;
		}
	}
	*out = pretokenizer;
	return PAWL_OK;
}

void
pawl_pretokenizer_free(struct pawl_pretokenizer *pretokenizer)
{
	if (!pretokenizer)
		return;
	for (size_t i = 0; i < pretokenizer->n_rules; i++)
		pcre2_code_free(pretokenizer->rules[i]);
	free(pretokenizer);
}

bool
pawl_pretokenizer_takes_whole_words(const struct pawl_pretokenizer *pretokenizer)
{
	return pretokenizer->set->flags & WHOLE_WORDS;
}

bool
pawl_pretokenizer_adds_bos(const struct pawl_pretokenizer *pretokenizer)
{
	return pretokenizer->set->flags & ADDS_BOS;
}

void
pawl_word_list_init(struct pawl_word_list *list)
{
	list->ends = NULL;
	list->n = 0;
	list->capacity = 0;
}

void
pawl_word_list_release(struct pawl_word_list *list)
{
	free(list->ends);
	pawl_word_list_init(list);
}

static enum pawl_status
add_end(struct pawl_word_list *list, size_t end, struct pawl_error *err)
{
	if (list->n == list->capacity) {
		size_t capacity = list->capacity ? 2 * list->capacity : 64;
		size_t *ends = realloc(list->ends, capacity * sizeof(*ends));

		if (!ends)
			return pawl_fail(
				err, PAWL_OUT_OF_MEMORY, "no memory for %zu words", capacity);
		list->ends = ends;
		list->capacity = capacity;
	}
	list->ends[list->n++] = end;
	return PAWL_OK;
}

struct matcher {
	const struct pawl_pretokenizer *pretokenizer;
	pcre2_match_context *context;
	pcre2_match_data *data;
};

static void
matcher_release(struct matcher *matcher)
{
	pcre2_match_data_free(matcher->data);
	pcre2_match_context_free(matcher->context);
}

static enum pawl_status
matcher_init(struct matcher *matcher, const struct pawl_pretokenizer *pretokenizer, size_t n,
	struct pawl_error *err)
{
	uint64_t steps = 16 * (uint64_t)n + 10000;

	matcher->pretokenizer = pretokenizer;
	matcher->context = pcre2_match_context_create(NULL);
	matcher->data = pcre2_match_data_create(1, NULL);
	if (!matcher->context || !matcher->data) {
		matcher_release(matcher);
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory to split a text into words");
	}
	pcre2_set_match_limit(matcher->context, steps < UINT32_MAX ? (uint32_t)steps : UINT32_MAX);
	pcre2_set_heap_limit(matcher->context, 64 * 1024);
	return PAWL_OK;
}

/* Splits text[start, end) by one rule.  Only that part is shown, so no rule looks beyond it. */
static enum pawl_status
split_word(const struct matcher *matcher, const pcre2_code *rule, const char *text, size_t start,
	size_t end, struct pawl_word_list *out, struct pawl_error *err)
{
	const PCRE2_SIZE *found = pcre2_get_ovector_pointer(matcher->data);
	size_t n = end - start, at = 0;
	enum pawl_status status = PAWL_OK;

	while (at < n && !status) {
		int rc = pcre2_match(rule, (PCRE2_SPTR)(text + start), n, at, PCRE2_NO_UTF_CHECK,
			matcher->data, matcher->context);

		if (rc == PCRE2_ERROR_NOMATCH)
			break;
		if (rc == PCRE2_ERROR_NOMEMORY)
			return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory to match words");
		if (rc < 0)
			return pawl_fail(err, PAWL_CAPACITY,
				"splitting into words takes too much work at byte %zu (pcre2 error "
				"%d)",
				start + at, rc);
		if (found[1] <= at)
			return pawl_fail(err, PAWL_INTERNAL,
				"a rule of pre-tokenizer %s matches nothing",
				matcher->pretokenizer->set->name);
		if (found[0] > at)
			status = add_end(out, start + found[0], err);
		if (!status)
			status = add_end(out, start + found[1], err);
		at = found[1];
	}
	if (at < n && !status)
		status = add_end(out, end, err);
	return status;
}

static enum pawl_status
split_words(const struct matcher *matcher, const pcre2_code *rule, const char *text,
	struct pawl_word_list *words, struct pawl_error *err)
{
	struct pawl_word_list finer;
	enum pawl_status status = PAWL_OK;

	pawl_word_list_init(&finer);
	for (size_t i = 0; i < words->n && !status; i++)
		status = split_word(matcher, rule, text, i ? words->ends[i - 1] : 0, words->ends[i],
			&finer, err);
	if (status) {
		pawl_word_list_release(&finer);
		return status;
	}
	pawl_word_list_release(words);
	*words = finer;
	return PAWL_OK;
}

enum pawl_status
pawl_pretokenizer_split(const struct pawl_pretokenizer *pretokenizer, const char *text, size_t n,
	struct pawl_word_list *words, struct pawl_error *err)
{
	struct matcher matcher;
	enum pawl_status status;

	words->n = 0;
	if (n == 0)
		return PAWL_OK;
	status = matcher_init(&matcher, pretokenizer, n, err);
	if (status)
		return status;
	status = add_end(words, n, err);
	for (size_t i = 0; i < pretokenizer->n_rules && !status; i++)
		status = split_words(&matcher, pretokenizer->rules[i], text, words, err);
	matcher_release(&matcher);
	return status;
}
