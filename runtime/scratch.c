#include "runtime/scratch.h"

static enum pawl_status
reserve(struct pawl_block *block, int64_t n, struct pawl_error *err)
{
	struct pawl_block grown;
	enum pawl_status status;

	if (block->bytes && n <= (int64_t)block->n_bytes)
		return PAWL_OK;
	status = pawl_block_init(&grown, n, err);
	if (status)
		return status;
	pawl_block_release(block);
	*block = grown;
	return PAWL_OK;
}

enum pawl_status
pawl_scratch_reserve(
	struct pawl_scratch *scratch, int64_t n_common, int64_t n_threads, struct pawl_error *err)
{
	enum pawl_status status = reserve(&scratch->common, n_common, err);

	return status ? status : reserve(&scratch->threads, n_threads, err);
}

void
pawl_scratch_release(struct pawl_scratch *scratch)
{
	pawl_block_release(&scratch->common);
	pawl_block_release(&scratch->threads);
}
