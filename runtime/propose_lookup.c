#include "runtime/propose.h"

/* How many of the last tokens stand before `end` too; counts to `most`. */
static int64_t
common_suffix(const uint32_t *tokens, int64_t n, int64_t end, int64_t most)
{
	int64_t length = 0;

	while (length < most && length < end && tokens[end - 1 - length] == tokens[n - 1 - length])
		length++;
	return length;
}

static enum pawl_status
look_up(void *ctx, const uint32_t *tokens, int64_t n, int64_t most, uint32_t *guess,
	int64_t *n_guess, struct pawl_error *err)
{
	const struct pawl_lookup *lookup = ctx;
	int64_t best = lookup->least - 1, follows = 0;

	(void)err;
	for (int64_t end = n - 1; end > 0 && best < lookup->most; end--) {
		int64_t length = common_suffix(tokens, n, end, lookup->most);

		if (length > best) {
			best = length;
			follows = end;
		}
	}
	*n_guess = follows ? most : 0;
	for (int64_t i = 0; i < *n_guess; i++)
		guess[i] = follows + i < n ? tokens[follows + i] : guess[follows + i - n];
	return PAWL_OK;
}

struct pawl_proposer
pawl_lookup_proposer(struct pawl_lookup *lookup)
{
	return (struct pawl_proposer){lookup, look_up};
}
