#include "tools/bench_steps.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum pawl_status
pawl_step_times_start(
	struct pawl_step_times *times, struct pawl_decoder *decoder, struct pawl_error *err)
{
	enum pawl_status status;

	*times = (struct pawl_step_times){.plan = NULL};
	status = pawl_decoder_prepare(decoder, 1, PAWL_LOGITS_LAST, &times->plan, err);
	if (status)
		return status;
	times->ns = calloc((size_t)times->plan->program->n_steps + 1, sizeof(*times->ns));
	times->groups = calloc((size_t)times->plan->program->n_steps + 1, sizeof(*times->groups));
	if (!times->ns || !times->groups)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for the times of %" PRId32
			" steps", times->plan->program->n_steps);
	return pawl_decoder_time_steps(decoder, times->ns, err);
}

static bool
share_kernel(const struct pawl_plan *plan, int32_t a, int32_t b)
{
	const struct pawl_target_api *api = plan->device->api;

	return api->kernel_hash &&
	       api->kernel_hash(plan->code, a) == api->kernel_hash(plan->code, b);
}

static struct pawl_step_group *
group_of(struct pawl_step_times *times, int32_t step)
{
	for (int32_t i = 0; i < times->n_groups; i++) {
		if (share_kernel(times->plan, times->groups[i].first, step))
			return &times->groups[i];
	}
	times->groups[times->n_groups] = (struct pawl_step_group){.first = step};
	return &times->groups[times->n_groups++];
}

/* Matrices as they are packed; the vectors of norms and a row of a table are as good as nothing. */
static int64_t
weight_bytes(const struct pawl_plan *plan, const struct pawl_step *step)
{
	int64_t bytes = 0;

	for (int32_t i = 0; i < step->n_args && step->template == PAWL_TEMPLATE_MATMUL; i++) {
		int32_t slot = step->args[i].slot;

		if (plan->program->slots[slot].role == PAWL_SLOT_WEIGHT &&
			plan->types[slot].rank == 2)
			bytes += pawl_storage_bytes(&plan->types[slot]);
	}
	return bytes;
}

static int
longer(const void *a, const void *b)
{
	const struct pawl_step_group *left = a, *right = b;

	return left->us > right->us ? -1 : left->us < right->us;
}

enum pawl_status
pawl_step_times_stop(struct pawl_step_times *times, struct pawl_decoder *decoder, int64_t n_tokens,
	struct pawl_error *err)
{
	const struct pawl_program *program = times->plan->program;

	for (int32_t i = 0; i < program->n_steps; i++) {
		struct pawl_step_group *group = group_of(times, i);

		group->n++;
		group->us += 1e-3 * (double)times->ns[i] / (double)n_tokens;
		group->bytes += weight_bytes(times->plan, &program->steps[i]);
	}
	qsort(times->groups, (size_t)times->n_groups, sizeof(*times->groups), longer);
	return pawl_decoder_time_steps(decoder, NULL, err);
}

void
pawl_step_times_release(struct pawl_step_times *times)
{
	free(times->ns);
	free(times->groups);
	*times = (struct pawl_step_times){.plan = NULL};
}

/* "rms_norm quantize matmul" */
static const char *
body_text(const struct pawl_step *step, char *out, size_t size)
{
	size_t n = 0;

	*out = '\0';
	for (int32_t i = 0; i < step->n_ops && n < size; i++)
		n += (size_t)snprintf(out + n, size - n, "%s%s", i ? " " : "",
			pawl_op_name(step->ops[i].op));
	return out;
}

void
pawl_step_times_print(const struct pawl_step_times *times)
{
	double all = 0;

	for (int32_t i = 0; i < times->n_groups; i++)
		all += times->groups[i].us;
	printf("\n   us/token  share  steps  us/step  weights MB   GB/s  template  body; the first one\n");
	for (int32_t i = 0; i < times->n_groups; i++) {
		const struct pawl_step_group *group = &times->groups[i];
		const struct pawl_step *step = &times->plan->program->steps[group->first];
		char body[512];

		printf("%11.1f%6.1f%%%7" PRId32 "%9.2f", group->us, 100 * group->us / all, group->n,
			group->us / group->n);
		if (group->bytes)
			printf("%12.2f%7.1f", 1e-6 * (double)group->bytes,
				1e-3 * (double)group->bytes / group->us);
		else
			printf("%12s%7s", "-", "-");
		printf("  %-8s  %s; %s\n", pawl_template_name(step->template),
			body_text(step, body, sizeof(body)), step->name ? step->name : "-");
	}
	printf("\n");
}

void
pawl_step_times_add(const struct pawl_step_times *times, struct pawl_json *json, cJSON *row)
{
	cJSON *array = pawl_json_array(json, row, "steps");

	for (int32_t i = 0; i < times->n_groups; i++) {
		const struct pawl_step_group *group = &times->groups[i];
		const struct pawl_step *step = &times->plan->program->steps[group->first];
		cJSON *object = pawl_json_object(json, array, NULL);
		char body[512];

		pawl_json_string(json, object, "template", pawl_template_name(step->template));
		pawl_json_string(json, object, "body", body_text(step, body, sizeof(body)));
		pawl_json_string(json, object, "first", step->name ? step->name : "");
		pawl_json_real(json, object, "n", group->n);
		pawl_json_real(json, object, "us", group->us);
		pawl_json_real(json, object, "weight_bytes", (double)group->bytes);
	}
}
