/* The JSON of a plan says what the live session holds, in the same bytes every time. */
#include "runtime/plan_json.h"

#include "ir/parse.h"
#include "runtime/plan_text.h"
#include "tests/data_file.h"
#include "tests/decoding.h"
#include "tests/suites.h"

#include <cJSON.h>
#include <stdlib.h>
#include <string.h>

static struct pawl_tiny_model *model;
static struct pawl_decoder *decoder;
static const struct pawl_plan *plan;
static struct pawl_error err;

static char *
json_of(const struct pawl_plan *of)
{
	char *text;

	ck_assert_int_eq(pawl_plan_json(of, &text, &err), PAWL_OK);
	return text;
}

/* A session that has decoded for a while. */
static void
begin(void)
{
	struct pawl_tiny_options tiny = pawl_tiny_defaults();
	struct pawl_decoder_options options = pawl_test_decoder_options();

	tiny.dtype = PAWL_DTYPE_Q8_0;
	model = pawl_tiny_model_new(&tiny);
	decoder = pawl_test_decoder(model, &options);
	pawl_test_prefill(decoder, 1, 0, 20);
	pawl_test_step(decoder, 1, 20);
	ck_assert_int_eq(pawl_decoder_prepare(decoder, 1, PAWL_LOGITS_LAST, &plan, &err), PAWL_OK);
}

static void
end(void)
{
	pawl_decoder_free(decoder);
	pawl_tiny_model_free(model);
}

static const cJSON *
member(const cJSON *object, const char *name)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

	ck_assert_msg(item != NULL, "there is no %s", name);
	return item;
}

static int64_t
int64_of(const cJSON *object, const char *name)
{
	const char *text = cJSON_GetStringValue(member(object, name));

	ck_assert_ptr_nonnull(text);
	return strtoll(text, NULL, 10);
}

static int
int_of(const cJSON *object, const char *name)
{
	ck_assert(cJSON_IsNumber(member(object, name)));
	return member(object, name)->valueint;
}

START_TEST(it_is_the_same_after_more_tokens)
{
	char *before = json_of(plan), *after;

	for (int i = 21; i < 30; i++)
		pawl_test_step(decoder, 1, i);
	after = json_of(plan);
	ck_assert_str_eq(before, after);
	free(before);
	free(after);
}
END_TEST

START_TEST(a_session_that_was_never_run_has_the_same)
{
	struct pawl_decoder_options options = pawl_test_decoder_options();
	struct pawl_decoder *fresh = pawl_test_decoder(model, &options);
	const struct pawl_plan *other;
	char *a = json_of(plan), *b;

	ck_assert_int_eq(pawl_decoder_prepare(fresh, 1, PAWL_LOGITS_LAST, &other, &err), PAWL_OK);
	ck_assert_ptr_ne(other, plan);
	b = json_of(other);
	ck_assert_str_eq(a, b);
	ck_assert_int_eq(pawl_decoder_prepare(fresh, 2, PAWL_LOGITS_LAST, &other, &err), PAWL_OK);
	free(b);
	b = json_of(other);
	ck_assert_str_ne(a, b);
	free(a);
	free(b);
	pawl_decoder_free(fresh);
}
END_TEST

START_TEST(the_key_is_that_of_the_session)
{
	char *text = json_of(plan), value[64];
	cJSON *root = cJSON_Parse(text);
	const cJSON *key = member(root, "key"), *item = key->child;

	for (int i = 0; i < PAWL_KEY_ALLOC_ID; i++, item = item->next) {
		enum pawl_key_field field = (enum pawl_key_field)i;

		ck_assert_ptr_nonnull(item);
		ck_assert_str_eq(item->string, pawl_key_field_name(field));
		pawl_key_value_text(
			field, pawl_plan_key_value(&plan->key, field), value, sizeof(value));
		ck_assert_str_eq(item->valuestring, value);
	}
	ck_assert_ptr_null(item);
	ck_assert_int_eq(int64_of(key, "max_seq_len"), pawl_decoder_capacity(decoder));
	cJSON_Delete(root);
	free(text);
}
END_TEST

/* The sum of their bytes. */
static int64_t
check_steps(const struct pawl_program *program, const cJSON *steps)
{
	const cJSON *step = steps->child;
	int64_t bytes = 0;
	int32_t n_args = 0;

	ck_assert_int_eq(cJSON_GetArraySize(steps), program->n_steps);
	for (int32_t i = 0; i < program->n_steps; i++, step = step->next) {
		const struct pawl_step *held = &program->steps[i];
		const cJSON *op = member(step, "ops")->child, *arg = member(step, "args")->child;

		ck_assert_str_eq(cJSON_GetStringValue(member(step, "template")),
			pawl_template_name(held->template));
		ck_assert_int_eq(int64_of(step, "flops"), held->flops);
		ck_assert_int_eq(int64_of(step, "bytes"), held->bytes);
		ck_assert_int_eq(int_of(step, "first_arg"), n_args);
		bytes += held->bytes;
		for (int32_t j = 0; j < held->n_ops; j++, op = op->next) {
			ck_assert_str_eq(cJSON_GetStringValue(member(op, "op")),
				pawl_op_name(held->ops[j].op));
			ck_assert_int_eq(
				cJSON_GetArraySize(member(op, "inputs")), held->ops[j].n_inputs);
			ck_assert_int_eq(
				cJSON_GetArraySize(member(op, "stores")), held->ops[j].n_outs);
		}
		ck_assert_ptr_null(op);
		for (int32_t j = 0; j < held->n_args; j++, arg = arg->next, n_args++) {
			ck_assert_int_eq(int_of(arg, "slot"), held->args[j].slot);
			ck_assert_int_eq(int64_of(arg, "offset"), held->args[j].offset);
			ck_assert_int_eq(
				cJSON_IsTrue(member(arg, "written")), held->args[j].written);
		}
		ck_assert_ptr_null(arg);
	}
	ck_assert_int_eq(n_args, program->n_args);
	return bytes;
}

START_TEST(the_steps_are_those_of_the_session)
{
	char *text = json_of(plan);
	cJSON *root = cJSON_Parse(text);
	const cJSON *statistics = member(root, "statistics");

	ck_assert_int_gt(plan->program->n_steps, 5);
	ck_assert_int_eq(
		check_steps(plan->program, member(root, "steps")), int64_of(statistics, "bytes"));
	ck_assert_int_eq(int_of(statistics, "steps"), plan->program->n_steps);
	ck_assert_int_eq(int_of(statistics, "args"), plan->program->n_args);
	ck_assert_int_eq(int_of(statistics, "nodes_in"), plan->report.nodes_in);
	cJSON_Delete(root);
	free(text);
}
END_TEST

/* Its arguments lie at offsets; it has a symbol, every kind of write, literals. */
START_TEST(so_are_those_of_graphs_from_text)
{
	static const char *const names[] = {"plan-blocks.pawl", "plan-symbolic.pawl"};
	const struct pawl_plan_options options = {0};
	struct pawl_graph *graph;
	struct pawl_plan *built;
	size_t n;
	int n_offsets = 0;

	for (int i = 0; i < 2; i++) {
		char *text = pawl_test_data(names[i], &n), *json;
		cJSON *root;

		ck_assert_int_eq(pawl_parse(text, n, names[i], &graph, NULL, &err), PAWL_OK);
		ck_assert_int_eq(pawl_plan_build(graph, pawl_test_device(), &options, &built, &err),
			PAWL_OK);
		json = json_of(built);
		root = cJSON_Parse(json);
		check_steps(built->program, member(root, "steps"));
		for (int32_t j = 0; j < built->program->n_args; j++)
			n_offsets += built->points[j].offset > 0;
		cJSON_Delete(root);
		free(json);
		pawl_plan_unref(built);
		pawl_graph_free(graph);
		free(text);
	}
	ck_assert_int_gt(n_offsets, 0);
}
END_TEST

START_TEST(the_slots_and_their_bytes_are_those_of_the_session)
{
	static const char *const names[PAWL_N_SLOT_ROLES] = {"weight_bytes", "kv_bytes",
		"data_bytes", "literal_bytes", "temp_bytes", "output_bytes"};
	const struct pawl_program *program = plan->program;
	int64_t bytes[PAWL_N_SLOT_ROLES] = {0};
	char *text = json_of(plan), dim[64];
	cJSON *root = cJSON_Parse(text);
	const cJSON *slot = member(root, "slots")->child, *memory = member(root, "memory");
	struct pawl_decoder_stats stats;

	for (int32_t i = 0; i < program->n_slots; i++, slot = slot->next) {
		const struct pawl_slot *held = &program->slots[i];
		const cJSON *item = member(slot, "dims")->child;
		bool planned = held->role == PAWL_SLOT_TEMP || held->role == PAWL_SLOT_OUTPUT;

		ck_assert_str_eq(cJSON_GetStringValue(member(slot, "role")),
			pawl_slot_role_name(held->role));
		ck_assert_str_eq(cJSON_GetStringValue(member(slot, "dtype")),
			pawl_dtype_name(held->type.dtype));
		for (int j = 0; j < held->type.rank; j++, item = item->next)
			ck_assert_str_eq(
				item->valuestring, pawl_program_dim_text(program, held->type.dim[j],
							   dim, sizeof(dim)));
		ck_assert_ptr_null(item);
		ck_assert_int_eq(cJSON_IsNull(member(slot, "offset")), !planned);
		if (planned)
			ck_assert_int_eq(int64_of(slot, "offset"), held->offset);
		ck_assert_int_eq(int_of(slot, "first_step"), held->first_step);
		ck_assert_int_eq(int_of(slot, "last_step"), held->last_step);
		ck_assert_int_ge(int64_of(slot, "bytes"), 0);
		bytes[held->role] += int64_of(slot, "bytes");
	}
	ck_assert_ptr_null(slot);
	for (int role = 0; role < PAWL_N_SLOT_ROLES; role++)
		ck_assert_int_eq(int64_of(memory, names[role]), bytes[role]);
	ck_assert_int_eq(int64_of(memory, "scratch_bytes"), program->scratch_bytes);
	pawl_decoder_stats(decoder, &stats);
	ck_assert_int_eq(bytes[PAWL_SLOT_KV], stats.kv_bytes);
	ck_assert_int_gt(bytes[PAWL_SLOT_WEIGHT], 0);
	cJSON_Delete(root);
	free(text);
}
END_TEST

START_TEST(every_argument_outside_of_planned_memory_has_a_bind_point)
{
	const struct pawl_program *program = plan->program;
	char *text = json_of(plan);
	cJSON *root = cJSON_Parse(text);
	const cJSON *point, *arg;
	int n = 0, wanted = 0;

	cJSON_ArrayForEach(point, member(root, "bind_points"))
	{
		cJSON_ArrayForEach(arg, member(point, "args"))
		{
			int32_t at = int_of(arg, "arg"), s = 0;

			while (at >= program->steps[s].first_arg + program->steps[s].n_args)
				s++;
			at -= program->steps[s].first_arg;
			ck_assert_int_eq(program->steps[s].args[at].slot, int_of(point, "slot"));
			ck_assert_int_eq(
				program->steps[s].args[at].offset, int64_of(arg, "offset"));
			n++;
		}
	}
	for (int32_t s = 0; s < program->n_steps; s++) {
		for (int32_t i = 0; i < program->steps[s].n_args; i++)
			wanted += program->slots[program->steps[s].args[i].slot].role !=
				  PAWL_SLOT_TEMP;
	}
	ck_assert_int_eq(n, wanted);
	ck_assert_int_gt(n, 20);
	cJSON_Delete(root);
	free(text);
}
END_TEST

static int allocations_left; /* until one fails */

static void *
allocate(size_t n)
{
	return allocations_left-- ? malloc(n) : NULL;
}

START_TEST(without_memory_there_is_an_error_and_nothing_is_lost)
{
	cJSON_Hooks hooks = {allocate, free};
	enum pawl_status status = PAWL_OUT_OF_MEMORY;
	char *text = NULL;
	int n;

	cJSON_InitHooks(&hooks);
	for (n = 0; status; n += n < 50 ? 1 : 97) {
		ck_assert_int_eq(status, PAWL_OUT_OF_MEMORY);
		ck_assert_ptr_null(text);
		allocations_left = n;
		status = pawl_plan_json(plan, &text, &err);
	}
	cJSON_InitHooks(NULL);
	ck_assert_int_gt(n, 1000);
	free(text);
}
END_TEST

START_TEST(dims_are_written_as_in_the_text_form)
{
	struct pawl_program_symbol symbol = {"T", 1, 8, 1};
	struct pawl_program program = {.symbols = &symbol, .n_symbols = 1};
	struct pawl_type type = pawl_type_make(PAWL_DTYPE_F16, 4, (const int64_t[]){0, 3, 0, 64});
	char out[128];

	ck_assert_str_eq(pawl_program_dim_text(&program, pawl_dim_const(7), out, sizeof(out)), "7");
	type.dim[0] = (struct pawl_dim){0, 1, 0};
	type.dim[2] = (struct pawl_dim){1, 2, 0};
	type.layout = PAWL_LAYOUT_K16;
	ck_assert_str_eq(pawl_program_type_text(&program, &type, out, sizeof(out)),
		"f16[$T, 3, 2*$T+1, 64]@k16");
	type.dim[2] = (struct pawl_dim){0, 2, 0};
	type.layout = PAWL_LAYOUT_ROWS;
	ck_assert_str_eq(
		pawl_program_type_text(&program, &type, out, sizeof(out)), "f16[$T, 3, 2*$T, 64]");
	ck_assert_str_eq(pawl_program_type_text(&program, &type, out, 8), "f16[$T,");
}
END_TEST

Suite *
pawl_plan_json_suite(void)
{
	Suite *suite = suite_create("plan_json");
	TCase *tcase = tcase_create("session");

	tcase_add_checked_fixture(tcase, begin, end);
	tcase_add_test(tcase, it_is_the_same_after_more_tokens);
	tcase_add_test(tcase, a_session_that_was_never_run_has_the_same);
	tcase_add_test(tcase, the_key_is_that_of_the_session);
	tcase_add_test(tcase, the_steps_are_those_of_the_session);
	tcase_add_test(tcase, so_are_those_of_graphs_from_text);
	tcase_add_test(tcase, the_slots_and_their_bytes_are_those_of_the_session);
	tcase_add_test(tcase, every_argument_outside_of_planned_memory_has_a_bind_point);
	tcase_add_test(tcase, without_memory_there_is_an_error_and_nothing_is_lost);
	suite_add_tcase(suite, tcase);
	tcase = tcase_create("text");
	tcase_add_test(tcase, dims_are_written_as_in_the_text_form);
	suite_add_tcase(suite, tcase);
	return suite;
}
