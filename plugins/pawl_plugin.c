/* The host-facing entry: negotiation and the table. */
#include <pawl/pawl.h>

#include "ir/build_id.h"
#include "plugins/host_api.h"

static const struct pawl_api api = {
	.struct_size = sizeof(struct pawl_api),
	.abi_version = PAWL_ABI_VERSION,
	.build_id = pawl_build_id,
	.status_code = pawl_host_status_code,
	.status_message = pawl_host_status_message,
	.status_free = pawl_host_status_free,
	.context_create = pawl_host_context_create,
	.context_release = pawl_host_context_release,
	.context_describe = pawl_host_context_describe,
	.context_counter = pawl_host_context_counter,
	.graph_from_text = pawl_host_graph_from_text,
	.graph_create = pawl_host_graph_create,
	.graph_symbol = pawl_host_graph_symbol,
	.graph_add = pawl_host_graph_add,
	.graph_output = pawl_host_graph_output,
	.graph_add_all = pawl_host_graph_add_all,
	.graph_to_text = pawl_host_graph_to_text,
	.graph_release = pawl_host_graph_release,
	.plan_compile = pawl_host_plan_compile,
	.plan_regrow = pawl_host_plan_regrow,
	.plan_retain = pawl_host_plan_retain,
	.plan_release = pawl_host_plan_release,
	.plan_binding = pawl_host_plan_binding,
	.plan_find = pawl_host_plan_find,
	.plan_to_json = pawl_host_plan_to_json,
	.plans_forecast = pawl_host_plans_forecast,
	.weights_create = pawl_host_weights_create,
	.weights_add = pawl_host_weights_add,
	.weights_release = pawl_host_weights_release,
	.cache_create = pawl_host_cache_create,
	.cache_release = pawl_host_cache_release,
	.cache_len = pawl_host_cache_len,
	.cache_capacity = pawl_host_cache_capacity,
	.cache_set_len = pawl_host_cache_set_len,
	.cache_memory = pawl_host_cache_memory,
	.cache_reserve = pawl_host_cache_reserve,
	.cache_fork = pawl_host_cache_fork,
	.cache_save = pawl_host_cache_save,
	.cache_restore = pawl_host_cache_restore,
	.session_create = pawl_host_session_create,
	.session_release = pawl_host_session_release,
	.session_bind = pawl_host_session_bind,
	.session_use_cache = pawl_host_session_use_cache,
	.session_set = pawl_host_session_set,
	.session_set_symbol = pawl_host_session_set_symbol,
	.session_run = pawl_host_session_run,
	.session_output = pawl_host_session_output,
	.graph_add_text = pawl_host_graph_add_text,
	.model_create = pawl_host_model_create,
	.model_release = pawl_host_model_release,
	.decoder_create = pawl_host_decoder_create,
	.decoder_release = pawl_host_decoder_release,
	.decoder_append = pawl_host_decoder_append,
	.decoder_verify = pawl_host_decoder_verify,
	.decoder_len = pawl_host_decoder_len,
	.decoder_capacity = pawl_host_decoder_capacity,
	.decoder_set_len = pawl_host_decoder_set_len,
	.decoder_reserve = pawl_host_decoder_reserve,
	.decoder_save = pawl_host_decoder_save,
	.decoder_restore = pawl_host_decoder_restore,
	.pool_create = pawl_host_pool_create,
	.pool_release = pawl_host_pool_release,
	.pool_open = pawl_host_pool_open,
	.pool_close = pawl_host_pool_close,
	.pool_fork = pawl_host_pool_fork,
	.pool_len = pawl_host_pool_len,
	.pool_set_len = pawl_host_pool_set_len,
	.pool_free_blocks = pawl_host_pool_free_blocks,
	.pool_append = pawl_host_pool_append,
	.pool_step = pawl_host_pool_step,
	.pool_evict = pawl_host_pool_evict,
	.pool_restore = pawl_host_pool_restore,
	.pool_keep_prefix = pawl_host_pool_keep_prefix,
	.pool_use_prefix = pawl_host_pool_use_prefix,
	.pool_drop_prefix = pawl_host_pool_drop_prefix,
	.scheduler_create = pawl_host_scheduler_create,
	.scheduler_release = pawl_host_scheduler_release,
	.scheduler_submit = pawl_host_scheduler_submit,
	.scheduler_cancel = pawl_host_scheduler_cancel,
	.scheduler_evict = pawl_host_scheduler_evict,
	.scheduler_restore = pawl_host_scheduler_restore,
	.scheduler_step = pawl_host_scheduler_step,
	.scheduler_has_work = pawl_host_scheduler_has_work,
	.scheduler_report = pawl_host_scheduler_report,
	.scheduler_finished = pawl_host_scheduler_finished,
	.scheduler_forget = pawl_host_scheduler_forget,
	.scheduler_drop_prefixes = pawl_host_scheduler_drop_prefixes,
	.scheduler_counter = pawl_host_scheduler_counter,
	.speculation_create = pawl_host_speculation_create,
	.speculation_of_sequence = pawl_host_speculation_of_sequence,
	.speculation_release = pawl_host_speculation_release,
	.speculation_begin = pawl_host_speculation_begin,
	.speculation_step = pawl_host_speculation_step,
	.speculation_settle = pawl_host_speculation_settle,
	.speculation_counter = pawl_host_speculation_counter,
};

PAWL_API int
pawl_negotiate(uint32_t *version)
{
	if (!version || *version < PAWL_ABI_OLDEST)
		return 0;
	if (*version > PAWL_ABI_VERSION)
		*version = PAWL_ABI_VERSION;
	return 1;
}

PAWL_API const struct pawl_api *
pawl_get_api(uint32_t version)
{
	return version == PAWL_ABI_VERSION ? &api : NULL;
}

PAWL_API const char *
pawl_version(void)
{
	return PACKAGE_VERSION;
}
