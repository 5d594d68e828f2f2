#include "passes/run.h"

static const enum pawl_pass pipeline[] = {
	/* What the graph says, said once and simply. */
	PAWL_PASS_canonicalize,
	PAWL_PASS_fold,
	PAWL_PASS_cse,
	PAWL_PASS_dce,

	/* What it means: whole attentions, whole writes, rounded activations, weight layouts. */
	PAWL_PASS_fuse_attention,
	PAWL_PASS_quantize_activations,
	PAWL_PASS_choose_layouts,
	PAWL_PASS_cse,
	PAWL_PASS_merge_writes,
	PAWL_PASS_materialize_views,
	PAWL_PASS_dce,

	/* In what order it may run. */
	PAWL_PASS_order_effects,

	/* What runs together. */
	PAWL_PASS_form_groups,
	PAWL_PASS_pack_matmuls,
	PAWL_PASS_fuse_epilogue,
	PAWL_PASS_fuse_norm,
	PAWL_PASS_fuse_prologue,
	PAWL_PASS_fuse_write,
	PAWL_PASS_fuse_query,
	PAWL_PASS_fuse_argmax,
};

_Static_assert(sizeof(pipeline) / sizeof(pipeline[0]) <= PAWL_MAX_PASSES, "a list holds PAWL_MAX_PASSES");

const enum pawl_pass *
pawl_pipeline(int *n_passes)
{
	*n_passes = sizeof(pipeline) / sizeof(pipeline[0]);
	return pipeline;
}
