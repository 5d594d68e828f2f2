/*
 * Step graphs that a host builds for a driver and that are not what was asked for: each is refused
 * before anything is run, and the right one is taken after it.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/decoding.h"
#include "tests/driven_fixture.h"
#include "tests/suites.h"

enum { N_VOCAB = PAWL_DRIVEN_VOCAB };

static struct pawl_host_decoder *decoder;
static struct pawl_host_pool *pool;
static uint64_t sequence;

static void
make_drivers(void)
{
	const struct pawl_pool_settings blocks = {.struct_size = sizeof(blocks),
		.n_blocks = 12,
		.block_size = 16,
		.max_blocks = 4,
		.prefill_chunk = 8};

	decoder = pawl_driven_decoder(&d, 8);
	PAWL_HOST_OK(api->pool_create(d.model, &blocks, &pool));
	PAWL_HOST_OK(api->pool_open(pool, &sequence));
}

static void
release_drivers(void)
{
	api->decoder_release(decoder);
	api->pool_release(pool);
}

static void
begin(void)
{
	begin_driven();
	make_drivers();
}

static void
end(void)
{
	release_drivers();
	end_driven();
}

/* Which step is asked for: the graph of each has its logits in %58. */
enum step { ONE, VERIFY, PROMPT, POOLED, BATCH };

static struct pawl_host_status *
run(enum step step, const float **logits)
{
	const uint32_t *tokens = pawl_driven_tokens(1, 0, 9);

	switch (step) {
	case ONE:
		return api->decoder_append(decoder, tokens, 1, logits);
	case VERIFY:
		return api->decoder_verify(decoder, tokens, 3, 3, logits);
	case PROMPT:
		return api->decoder_append(decoder, tokens, 9, logits);
	case POOLED:
		return api->pool_append(pool, sequence, tokens, 1, logits);
	case BATCH:
		break;
	}
	return api->pool_step(pool, &sequence, tokens, 1, logits);
}

static int64_t
len_of(enum step step)
{
	return step < POOLED ? api->decoder_len(decoder) : api->pool_len(pool, sequence);
}

static int64_t
n_of(enum step step)
{
	return step == VERIFY ? 3 : step == PROMPT ? 9 : 1;
}

/* The step is refused with that text, and nothing has come of it. */
static void
refused(enum step step, const char *text)
{
	const float *logits = NULL;
	uint64_t n_runs = pawl_test_host_counter(d.context, "runs");

	d.n_exchanged = 0;
	pawl_test_host_refused(run(step, &logits), PAWL_CODE_INVALID_GRAPH, text);
	ck_assert(!d.from || d.n_exchanged);
	ck_assert_ptr_null(logits);
	ck_assert_int_eq(len_of(step), 0);
	ck_assert_int_eq(api->pool_free_blocks(pool), 12);
	/* A prompt may fail at its last token, which is a step of another kind. */
	if (step != PROMPT)
		ck_assert_uint_eq(pawl_test_host_counter(d.context, "runs"), n_runs);
}

static void
kept(enum step step)
{
	int64_t n = n_of(step);
	const float *logits = NULL;

	d.n_exchanged = 0;
	PAWL_HOST_OK(run(step, &logits));
	ck_assert(!d.from || d.n_exchanged);
	pawl_driven_expect(&d, logits + (step == VERIFY ? 2 * N_VOCAB : 0), 1, n);
	if (step < POOLED)
		PAWL_HOST_OK(api->decoder_set_len(decoder, 0, NULL));
	else
		PAWL_HOST_OK(api->pool_set_len(pool, sequence, 0));
}

/* What is exchanged in the graph of a step, and what is said then. */
struct edit {
	enum step step;
	const char *from, *to, *says;
};

static void
each_is_refused(const struct edit *edits, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		d.from = edits[i].from;
		d.to = edits[i].to;
		for (int again = 0; again < 2; again++)
			refused(edits[i].step, edits[i].says);
		d.from = NULL;
		kept(edits[i].step);
		release_drivers();
		make_drivers();
	}
}

#define EACH_IS_REFUSED(edits) each_is_refused(edits, sizeof(edits) / sizeof((edits)[0]))

START_TEST(output_0_is_the_logits)
{
	static const struct edit edits[] = {
		{ONE, "  output %58\n", "  output %57\n",
			"output 0 is f32[1, 64], asked for is f32[1, 40]"},
		{ONE, "  output %58\n", "", "output 0 is f16[1, 2, 64, 16]@k16, asked for is f32"},
		{ONE, "  output %", "; output %",
			"the graph has no output, asked for is f32[1, 40]"},
		{ONE, "  output %58\n",
			"  %half = cast %58 {dtype = f16} : f16[1, 40]\n  output %half\n",
			"output 0 is f16[1, 40], asked for is f32[1, 40]"},
		{ONE, "  output %58\n", "  %row = reshape %58 : f32[40]\n  output %row\n",
			"output 0 is f32[40], asked for is f32[1, 40]"},
		{VERIFY, "  output %58\n",
			"  %last = slice %58 {start = [2, 0], stop = [3, 40]} : f32[1, 40]\n"
			"  output %last\n",
			"output 0 is f32[1, 40], asked for is f32[3, 40]"},
		{POOLED, "  output %58\n", "  output %57\n",
			"output 0 is f32[1, 64], asked for is f32[1, 40]"},
		{BATCH, "  output %58\n", "  output %0\n",
			"output 0 is f32[1, 64], asked for is f32[1, 40]"},
	};

	EACH_IS_REFUSED(edits);
}
END_TEST

START_TEST(caches_are_those_asked_for)
{
	static const struct edit edits[] = {
		{ONE, "f16[1, 2, 64, 16]@k16", "f16[1, 2, 64, 16]",
			"cache.k.0 is f16[1, 2, 64, 16], asked for is f16[1, 2, 64, 16]@k16"},
		{ONE, "f16[1, 2, 64, 16]", "f16[1, 2, 80, 16]",
			"cache.k.0 is f16[1, 2, 80, 16]@k16, asked for is f16[1, 2, 64, 16]@k16"},
		{ONE, "cache.k.0", "cache.k.2", "kv const cache.k.2 is not"},
		{ONE, "write_slice %cache.v.1, %44, %offset {axis = 2}", "reshape %cache.v.1",
			"nothing is written to cache.v.1"},
		{PROMPT, "write_slice %cache.v.1, %44, %offset {axis = 2}", "reshape %cache.v.1",
			"nothing is written to cache.v.1"},
		{POOLED, "write_rows %cache.v.1, %44, %write_index {axis = 2}",
			"reshape %cache.v.1", "nothing is written to cache.v.1"},
		{ONE, "cache.v.1", "cache.w.1", "kv const cache.w.1 is not"},
		{POOLED, "f16[1, 2, 192, 16]", "f16[1, 2, 208, 16]",
			"cache.k.0 is f16[1, 2, 208, 16]@k16, asked for is f16[1, 2, 192, 16]@k16"},
	};

	EACH_IS_REFUSED(edits);
}
END_TEST

/* One more data const, which is an output, so that it stays. */
#define MORE(name, type)                                                                           \
	"  output %13\n",                                                                          \
		"  %" name " = const {role = data} : " type "\n  output %13\n  output %" name "\n"

START_TEST(data_is_what_a_driver_has)
{
	static const struct edit edits[] = {
		{ONE, "%token_ids", "%tokens", "data const tokens is nothing"},
		{ONE, MORE("mask", "f32[1, 8]"),
			"data const mask is f32[1, 8], a step like this has f32[1, 64]"},
		{ONE, MORE("mask", "f32[8, 8]"),
			"data const mask is f32[8, 8], a step like this has f32[1, 64]"},
		{ONE, MORE("mask", "i32[1, 64]"), "data const mask is i32[1, 64]"},
		{ONE, MORE("positions", "i64[2]"),
			"data const positions is i64[2], a step like this has i64[1]"},
		{ONE, MORE("write_index", "i64[1]"),
			"data const write_index is not of a step over one sequence in order"},
		{ONE, MORE("block_table", "u32[1, 4]"), "data const block_table is not of a step"},
		{ONE, "%rope_cos, %rope_sin", "%rope_cos, %rope_cos",
			"the graph reads rope_cos and not rope_sin"},
		{ONE, "%rope_cos, %rope_sin", "%rope_sin, %rope_sin",
			"the graph reads rope_sin and not rope_cos"},
		{POOLED, MORE("offset", "i64[]"),
			"data const offset is not of a step over blocks"},
		{POOLED, MORE("mask", "f32[1, 192]"), "data const mask is not of a step over"},
		{POOLED, "u32[1, 4]", "u32[1, 5]",
			"data const block_table is u32[1, 5], a step like this has u32[1, 4]"},
	};

	EACH_IS_REFUSED(edits);
}
END_TEST

START_TEST(rope_turns_what_the_model_says)
{
	static const struct edit edits[] = {
		{ONE, "f32[1, 16]", "f32[1, 8]",
			"rope_cos has rows of 8 elements, the model says 16"},
		{PROMPT, "f32[8, 16]", "f32[8, 8]",
			"rope_cos has rows of 8 elements, the model says 16"},
		{POOLED, "f32[1, 16]", "f32[1, 8]",
			"rope_cos has rows of 8 elements, the model says 16"},
		{ONE, MORE("window_cos", "f32[1, 16]"),
			"the graph has the table window_cos, the model no function for it"},
		{ONE, "%rope_cos, %rope_sin", "%rope_cos, %rope_sin {pairs = halves}",
			"a rope by rope_cos turns halves, the model says adjacent elements"},
	};

	EACH_IS_REFUSED(edits);
}
END_TEST

START_TEST(symbols_reach_as_far_as_the_cache)
{
	static const struct edit edits[] = {
		{ONE, "$attended_len : 1..64", "$attended_len : 1..63",
			"symbol $attended_len is a multiple of 1 from 1 to 63, it may be anything "
			"from 1 to 64"},
		{ONE, "$attended_len : 1..64", "$attended_len : 2..64", "from 2 to 64"},
		{ONE, "$attended_len : 1..64", "$attended_len : 0..64 % 2", "multiple of 2"},
		{ONE, "sym $att", "sym $other : 1..2\n  sym $att", "symbol $other is none"},
		{ONE, "sym $att", "sym $cached_len : 1..63\n  sym $att", "symbol $cached_len"},
		{PROMPT, "$attended_len : 8..64", "$attended_len : 9..64", "from 8 to 64"},
		{POOLED, "$attended_len : 1..64", "$attended_len : 1..48", "from 1 to 48"},
		{POOLED, "sym $att", "sym $cached_len : 0..63\n  sym $att",
			"symbol $cached_len is none"},
	};

	EACH_IS_REFUSED(edits);
}
END_TEST

/* What is said otherwise than in the host's own graphs, and is as good. */
START_TEST(what_may_differ_is_kept)
{
	static const struct edit edits[] = {
		{ONE, "", "", ""},
		{ONE, "%token_ids = const {role = data} : u32[1]",
			"%token_ids = const {role = data} : i32[1]", ""},
		{ONE, "sym $att", "sym $cached_len : 0..63\n  sym $att", ""},
		{ONE, MORE("positions", "i64[1]"), ""},
		{ONE, MORE("mask", "f16[1, 1, 1, 64]"), ""},
		{PROMPT, "$attended_len : 8..64", "$attended_len : 1..64", ""},
		{PROMPT, "  output %13\n  output %17\n  output %41\n  output %45\n", "", ""},
		{VERIFY, "$attended_len : 3..64", "$attended_len : 1..64", ""},
		{PROMPT, "", "", ""},
		{POOLED, "", "", ""},
		{BATCH, "", "", ""},
	};

	for (size_t i = 0; i < sizeof(edits) / sizeof(edits[0]); i++) {
		d.from = *edits[i].from ? edits[i].from : NULL;
		d.to = edits[i].to;
		kept(edits[i].step);
		d.from = NULL;
		release_drivers();
		make_drivers();
	}
}
END_TEST

/* Another model of the same graphs. */
static void
remodel(const struct pawl_model_options *options)
{
	release_drivers();
	api->model_release(d.model);
	PAWL_HOST_OK(api->model_create(d.context, d.lender.weights, options, &d.model));
	make_drivers();
}

START_TEST(options_are_those_of_the_graphs)
{
	enum { N = 9 };
	static const char *const says[N] = {
		"output 0 is f32[1, 40], asked for is f32[1, 39]",
		"output 0 is f32[1, 40], asked for is f32[1, 1000000]",
		"rope_cos has rows of 16 elements, the model says 4096",
		"rope_cos has rows of 16 elements, the model says 2",
		"a rope by rope_cos turns adjacent elements, the model says halves",
		"the graph has the table rope_cos, the model no function for it",
		"kv const cache.k.1 is not",
		"the graph has no kv const cache.k.2",
		"cache.k.0 is f16[1, 2, 64, 16]@k16, asked for is f16[1, 1, 64, 16]@k16",
	};
	struct pawl_model_options options[N];

	d.is_stranger = 1;
	for (int i = 0; i < N; i++)
		options[i] = pawl_driven_options(&d);
	options[0].n_vocab = N_VOCAB - 1;
	options[1].n_vocab = 1000000;
	options[2].rope_width = 4096;
	options[3].rope_width = 2;
	options[4].rope_halves = 1;
	options[5].rope_width = 0;
	options[5].rope = NULL;
	options[6].n_layers = 1;
	options[7].n_layers = 3;
	options[8].n_kv_heads = 1;
	for (int i = 0; i < N; i++) {
		remodel(&options[i]);
		refused(ONE, says[i]);
		/* Caches of blocks are of another size. */
		refused(POOLED, i == 8 ? "cache.k.0 is f16[1, 2, 192, 16]@k16" : says[i]);
		/* Prompts have no logits before the last token. */
		refused(PROMPT, says[i]);
	}
}
END_TEST

START_TEST(a_scheduler_loses_nothing_to_a_wrong_graph)
{
	const struct pawl_scheduler_settings settings = {
		.struct_size = sizeof(settings), .max_batch = 2};
	const uint32_t prompt[2] = {*pawl_driven_tokens(1, 0, 1), *pawl_driven_tokens(2, 0, 1)};
	struct pawl_request_report report = {.struct_size = sizeof(report)};
	struct pawl_host_scheduler *scheduler;
	uint64_t ids[2];

	PAWL_HOST_OK(api->pool_close(pool, sequence));
	PAWL_HOST_OK(api->scheduler_create(pool, &settings, &scheduler));
	for (int i = 0; i < 2; i++) {
		const struct pawl_request_settings request = {.struct_size = sizeof(request),
			.prompt = &prompt[i],
			.n_prompt = 1,
			.max_new = 4};

		PAWL_HOST_OK(api->scheduler_submit(scheduler, &request, &ids[i]));
	}
	/* The logits of the first of the two only. */
	d.from = "  output %58\n";
	d.to = "  %one = slice %58 {start = [0, 0], stop = [1, 40]} : f32[1, 40]\n  output %one\n";
	for (int i = 0; i < 2; i++)
		pawl_test_host_refused(api->scheduler_step(scheduler), PAWL_CODE_INVALID_GRAPH,
			"output 0 is f32[1, 40], asked for is f32[2, 40]");
	d.from = NULL;
	while (api->scheduler_has_work(scheduler))
		PAWL_HOST_OK(api->scheduler_step(scheduler));
	for (int i = 0; i < 2; i++) {
		struct pawl_decoder_options plain = pawl_test_decoder_options();
		float *wanted = pawl_test_fresh(d.tiny, &plain, (unsigned)i + 1, 1);

		PAWL_HOST_OK(api->scheduler_report(scheduler, ids[i], &report));
		ck_assert_int_eq(report.n_new, 4);
		ck_assert_uint_eq(report.tokens[0], pawl_driven_likeliest(wanted));
		free(wanted);
	}
	api->scheduler_release(scheduler);
	PAWL_HOST_OK(api->pool_open(pool, &sequence));
}
END_TEST

/* Rings are as large as the window that the model says; none may see more than they hold. */
START_TEST(windows_are_those_of_rings)
{
	static const int64_t layers[] = {0, 2};
	static const struct {
		int64_t window, n_layers;
		const char *says; /* NULL: kept */
	} cases[] = {
		{19, 2, "attention sees a window of 20 in the ring cache.k.0, which is for 19"},
		{20, 1, "cache.k.2 is f16[1, 2, 128, 16]@k16, asked for is f16[1, 2, 512, 16]@k16"},
		{20, 2, NULL},
		{24, 2, NULL},
	};
	const struct pawl_decoder_settings settings = {.struct_size = sizeof(settings),
		.capacity = 512,
		.prefill_chunk = 8,
		.rings = 1,
		.ring_rollback = 4};
	struct pawl_tiny_options tiny = pawl_tiny_defaults();

	api = pawl_test_host_api();
	tiny.n_layers = 3;
	tiny.window = 20;
	tiny.window_layers = 5;
	pawl_driven_init(&d, "ref", 1, NULL, &tiny);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pawl_model_options options = pawl_driven_options(&d);
		const float *logits = NULL;

		options.window = cases[i].window;
		options.window_layers = layers;
		options.n_window_layers = cases[i].n_layers;
		PAWL_HOST_OK(api->model_create(d.context, d.lender.weights, &options, &d.model));
		PAWL_HOST_OK(api->decoder_create(d.model, &settings, &decoder));
		if (cases[i].says) {
			pawl_test_host_refused(run(ONE, &logits), PAWL_CODE_INVALID_GRAPH,
				cases[i].says);
			ck_assert_int_eq(api->decoder_len(decoder), 0);
		} else {
			PAWL_HOST_OK(run(ONE, &logits));
			pawl_driven_expect(&d, logits, 1, 1);
		}
		api->decoder_release(decoder);
		api->model_release(d.model);
	}
	d.model = NULL;
	pawl_driven_end(&d);
}
END_TEST

Suite *
pawl_host_steps_suite(void)
{
	Suite *suite = suite_create("host_steps");
	TCase *tcase = tcase_create("host_steps"), *bare = tcase_create("bare");

	tcase_add_checked_fixture(tcase, begin, end);
	tcase_add_test(tcase, output_0_is_the_logits);
	tcase_add_test(tcase, caches_are_those_asked_for);
	tcase_add_test(tcase, data_is_what_a_driver_has);
	tcase_add_test(tcase, rope_turns_what_the_model_says);
	tcase_add_test(tcase, symbols_reach_as_far_as_the_cache);
	tcase_add_test(tcase, what_may_differ_is_kept);
	tcase_add_test(tcase, options_are_those_of_the_graphs);
	tcase_add_test(tcase, a_scheduler_loses_nothing_to_a_wrong_graph);
	suite_add_tcase(suite, tcase);
	tcase_add_test(bare, windows_are_those_of_rings);
	suite_add_tcase(suite, bare);
	return suite;
}
