#include "tests/cuda/cases.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/parse.h"
#include "ir/random.h"
#include "passes/optimize.h"
#include "tests/data_file.h"
#include "tests/tiny_gemma.h"
#include "tests/tiny_mla.h"
#include "tests/tiny_model.h"

static struct pawl_error err;

#define OK(call) ck_assert_msg((call) == PAWL_OK, "%s", err.text)

/* Odd sizes on purpose: no row is a whole number of warps, pieces or blocks. */
static const char medley[] =
	"pawl 1\n"
	"graph @medley stage values {\n"
	"sym $T: 1..6\n"
	"%x = const {role=data} : f32[$T, 3, 37]\n"
	"%y = const {role=data} : f32[$T, 3, 37]\n"
	"%g = const {role=weight} : f32[37]\n"
	"%b = const {role=weight} : f32[37]\n"
	"%s = softmax %x : f32[$T, 3, 37]\n"
	"%l = layer_norm %y, %g, %b {eps=0.00001} : f32[$T, 3, 37]\n"
	"%e = gelu_tanh %l : f32[$T, 3, 37]\n"
	"%m = mul %s, %e : f32[$T, 3, 37]\n"
	"%a = argmax %m : i32[$T, 3]\n"
	"%c = const {role=data} : f32[$T, 24]\n"
	"%n = const {role=data} : f32[$T, 24]\n"
	"%r = rope %x, %c, %n {pairs=halves} : f32[$T, 3, 37]\n"
	"%t = tanh %r : f32[$T, 3, 37]\n"
	"%h = cast %t {dtype=bf16} : bf16[$T, 3, 37]\n"
	"%k = const {role=kv} : bf16[9, 3, 37]\n"
	"%i = const {role=data} : i64[$T]\n"
	"%w = write_rows %k, %h, %i : bf16[9, 3, 37]\n"
	"%ring = const {role=kv} : f32[5, 7]\n"
	"%slab = const {role=data} : f32[3, 7]\n"
	"%at = const {role=data} : i64[]\n"
	"%neg = neg %slab : f32[3, 7]\n"
	"%v = write_slice_rotating %ring, %neg, %at {axis=0, modulus=5} : f32[5, 7]\n"
	"%p = const {role=data} : f32[2, 3, 5]\n"
	"%q = const {role=data} : f32[2, 4, 5]\n"
	"%z = batch_matmul %p, %q : f32[2, 3, 4]\n"
	"%table = const {role=weight} : f16[11, 37]\n"
	"%ids = const {role=data} : u32[$T]\n"
	"%row = gather %table, %ids : f32[$T, 37]\n"
	"%half = scale %row {scale=0.3} : f32[$T, 37]\n"
	"%w1 = const {role=weight} : f32[19, 37]\n"
	"%w2 = const {role=weight} : f16[19, 37]\n"
	"%u1 = matmul %half, %w1 : f32[$T, 19]\n"
	"%u2 = matmul %half, %w2 : f32[$T, 19]\n"
	"%si = sigmoid %u1 : f32[$T, 19]\n"
	"%u = mul %si, %u2 : f32[$T, 19]\n"
	"%long = const {role=data} : f32[1, 8200]\n"
	"%w3 = const {role=weight} : f16[3, 8200]\n"
	"%u3 = matmul %long, %w3 : f32[1, 3]\n"
	"%d = const {role=data} : f32[$T, 37]\n"
	"%f = const {role=data} : f32[$T, 37]\n"
	"%n1 = rms_norm %d, %g {eps=0.00001} : f32[$T, 37]\n"
	"%sum = add %f, %n1 : f32[$T, 37]\n"
	"%n2 = rms_norm %sum, %b {eps=0.00001} : f32[$T, 37]\n"
	"output %m\noutput %a\noutput %w\noutput %v\noutput %z\noutput %u\noutput %u3\n"
	"output %sum\noutput %n2\n"
	"}\n";

static const char attentions[] =
	"pawl 1\n"
	"graph @attentions stage values {\n"
	"sym $L: 1..272\n"
	"%q = const {role=data} : f32[2, 6, 20]\n"
	"%k = const {role=kv} : f16[1, 2, 272, 20]@k16\n"
	"%v = const {role=kv} : f32[1, 2, 272, 24]\n"
	"%at = const {role=data} : i64[]\n"
	"%mask = const {role=data} : f32[2, 272]\n"
	"%a = attention %q, %k, %v, %at {scale=0.2, sym=$L} : f32[2, 6, 24]\n"
	"%b = attention %q, %k, %v, %at {scale=0.2, softcap=3, causal=false, sym=$L}"
	" : f32[2, 6, 24]\n"
	"%c = attention %q, %k, %v, %at {scale=0.2, window=140} : f32[2, 6, 24]\n"
	"%d = attention %q, %k, %v, %at, %mask {scale=0.2, window=3, causal=false, sym=$L}"
	" : f32[2, 6, 24]\n"
	"%e = relu %d : f32[2, 6, 24]\n"
	"%places = const {role=data} : i64[2]\n"
	"%blocks = const {role=data} : u32[2, 21]\n"
	"%rows = const {role=data} : f16[1, 2, 2, 20]\n"
	"%to = const {role=data} : i64[2]\n"
	"%k1 = write_rows %k, %rows, %to {axis=2} : f16[1, 2, 272, 20]@k16\n"
	"%f = paged_attention %q, %k1, %v, %places, %blocks {scale=0.2, block=16}"
	" : f32[2, 6, 24]\n"
	"%some = slice %blocks {start=[1, 4], stop=[2, 21]} : u32[1, 17]\n"
	"%g = paged_attention %q, %k1, %v, %places, %some"
	" {scale=0.2, softcap=3, window=50, block=16, sym=$L} : f32[2, 6, 24]\n"
	"%at8 = const {role=data} : i64[]\n"
	"%to8 = const {role=data} : i64[2]\n"
	"%q8 = const {role=data} : f32[2, 6, 64]\n"
	"%kb = const {role=kv} : q8_0[1, 2, 144, 64]@k16\n"
	"%kr = const {role=kv} : q8_0[1, 2, 144, 64]\n"
	"%vb = const {role=kv} : q8_0[1, 2, 144, 32]\n"
	"%x8 = const {role=data} : f32[1, 2, 2, 64]\n"
	"%raw = const {role=data} : q8_0[1, 2, 2, 32]\n"
	"%half = scale %x8 {scale=0.5} : f32[1, 2, 2, 64]\n"
	"%b8 = quantize %half {dtype=q8_0} : q8_0[1, 2, 2, 64]\n"
	"%kb1 = write_rows %kb, %b8, %to8 {axis=2} : q8_0[1, 2, 144, 64]@k16\n"
	"%kr1 = write_slice %kr, %b8, %at8 {axis=2} : q8_0[1, 2, 144, 64]\n"
	"%vb1 = write_rows %vb, %raw, %to8 {axis=2} : q8_0[1, 2, 144, 32]\n"
	"%z8 = alloc : q8_0[1, 1, 16, 32]@k16\n"
	"%zz8 = zero_fill %z8 : q8_0[1, 1, 16, 32]@k16\n"
	"%h = attention %q8, %kb1, %vb1, %at8 {scale=0.2} : f32[2, 6, 32]\n"
	"%i = attention %q8, %kr1, %vb1, %at8 {scale=0.2, window=90} : f32[2, 6, 32]\n"
	"output %a\noutput %b\noutput %c\noutput %e\noutput %f\noutput %g\noutput %k1\n"
	"output %h\noutput %i\noutput %kb1\noutput %kr1\noutput %vb1\noutput %zz8\n"
	"}\n";

static void
free_tiny(void *owner)
{
	pawl_tiny_model_free(owner);
}

static void
free_gemma(void *owner)
{
	pawl_model_free(owner);
}

static void
free_mla(void *owner)
{
	pawl_tiny_mla_free(owner);
}

static void
open_tiny(int number, struct pawl_cuda_case *out)
{
	struct pawl_tiny_options options = pawl_tiny_defaults();
	struct pawl_graph_request request = {.n_tokens = number == PAWL_CUDA_TINY_CHUNK ? 3 : 1,
		.capacity = 192,
		.kv_dtype = number == PAWL_CUDA_TINY_F32     ? PAWL_DTYPE_F32
			    : number == PAWL_CUDA_TINY_CHUNK ? PAWL_DTYPE_BF16
							     : PAWL_DTYPE_F16,
		.logits = PAWL_LOGITS_ALL};
	const struct pawl_model_source *source;

	if (number == PAWL_CUDA_TINY_F16)
		options.dtype = PAWL_DTYPE_F16;
	if (number == PAWL_CUDA_TINY_CHUNK) {
		options.dtype = PAWL_DTYPE_BF16;
		options.k_layout = PAWL_LAYOUT_ROWS;
		options.has_mask = true;
	}
	out->owner = pawl_tiny_model_new(&options);
	out->owner_free = free_tiny;
	source = pawl_tiny_model_source(out->owner);
	OK(source->build(source->ctx, &request, &out->graph, &err));
}

enum family { LLAMA, WIDE, GEMMA, MLA, MLA_PAIRS };

/* WIDE: a llama whose rows are whole blocks of 256. */
static const struct subject {
	const char *name;
	enum family family;
	enum pawl_dtype dtype, kv_dtype;
	bool is_a8;
	int64_t n_tokens, n_sequences, ring;
} families[PAWL_CUDA_N_FAMILIES] = {
	{"llama_q4_0", LLAMA, PAWL_DTYPE_Q4_0, PAWL_DTYPE_F16, false, 1, 0, 0},
	{"llama_q4_1", LLAMA, PAWL_DTYPE_Q4_1, PAWL_DTYPE_F16, false, 1, 0, 0},
	{"llama_q5_0", LLAMA, PAWL_DTYPE_Q5_0, PAWL_DTYPE_F16, false, 1, 0, 0},
	{"llama_q5_1", LLAMA, PAWL_DTYPE_Q5_1, PAWL_DTYPE_F16, false, 1, 0, 0},
	{"llama_q8_0", LLAMA, PAWL_DTYPE_Q8_0, PAWL_DTYPE_F16, false, 1, 0, 0},
	{"wide_q4_k", WIDE, PAWL_DTYPE_Q4_K, PAWL_DTYPE_F16, false, 1, 0, 0},
	{"wide_q5_k", WIDE, PAWL_DTYPE_Q5_K, PAWL_DTYPE_F16, false, 1, 0, 0},
	{"wide_q6_k", WIDE, PAWL_DTYPE_Q6_K, PAWL_DTYPE_F16, false, 1, 0, 0},
	{"llama_a8", LLAMA, PAWL_DTYPE_Q4_0, PAWL_DTYPE_F16, true, 1, 0, 0},
	{"llama_q4_1_a8", LLAMA, PAWL_DTYPE_Q4_1, PAWL_DTYPE_F16, true, 1, 0, 0},
	{"wide_q4_k_a8", WIDE, PAWL_DTYPE_Q4_K, PAWL_DTYPE_F16, true, 1, 0, 0},
	{"wide_q6_k_a8", WIDE, PAWL_DTYPE_Q6_K, PAWL_DTYPE_F16, true, 1, 0, 0},
	{"llama_chunk", LLAMA, PAWL_DTYPE_Q4_1, PAWL_DTYPE_F16, false, 6, 0, 0},
	{"llama_chunk_a8", LLAMA, PAWL_DTYPE_Q8_0, PAWL_DTYPE_F16, true, 3, 0, 0},
	{"llama_q8_0_kv", LLAMA, PAWL_DTYPE_Q8_0, PAWL_DTYPE_Q8_0, false, 1, 0, 0},
	{"llama_paged", LLAMA, PAWL_DTYPE_Q4_0, PAWL_DTYPE_F16, false, 1, 1, 0},
	{"llama_batch", LLAMA, PAWL_DTYPE_Q4_0, PAWL_DTYPE_F16, false, 4, 4, 0},
	{"llama_ring", LLAMA, PAWL_DTYPE_Q4_0, PAWL_DTYPE_F16, false, 1, 0, 144},
	{"gemma", GEMMA, PAWL_DTYPE_Q5_0, PAWL_DTYPE_F16, false, 1, 0, 0},
	{"gemma_f16", GEMMA, PAWL_DTYPE_F16, PAWL_DTYPE_F16, false, 1, 0, 0},
	{"gemma_ring", GEMMA, PAWL_DTYPE_Q8_0, PAWL_DTYPE_F16, false, 2, 0, 144},
	{"mla", MLA, PAWL_DTYPE_Q8_0, PAWL_DTYPE_F16, false, 1, 0, 0},
	{"mla_paged", MLA_PAIRS, PAWL_DTYPE_Q4_1, PAWL_DTYPE_F16, false, 2, 2, 0},
};

static const struct pawl_model_source *
make_family(const struct subject *f, struct pawl_cuda_case *out)
{
	struct pawl_tiny_options options = pawl_tiny_defaults();
	struct pawl_tiny_mla_options mla = pawl_tiny_mla_defaults();
	struct pawl_tiny_gemma_options gemma = {.dtype = f->dtype, .window = 40, .seed = 3};

	if (f->family == GEMMA) {
		out->owner = pawl_tiny_gemma_open(&gemma);
		out->owner_free = free_gemma;
		return pawl_model_source(out->owner);
	}
	if (f->family == MLA || f->family == MLA_PAIRS) {
		mla.dtype = f->dtype;
		out->owner = pawl_tiny_mla_new(&mla);
		out->owner_free = free_mla;
		return f->family == MLA ? pawl_tiny_mla_source(out->owner)
					: pawl_tiny_mla_pairs(out->owner);
	}
	options.dtype = f->dtype;
	if (f->family == WIDE) {
		options.n_layers = 1;
		options.n_embd = 256;
		options.head_dim = 64;
		options.n_ff = 512;
	}
	if (f->kv_dtype == PAWL_DTYPE_Q8_0)
		options.head_dim = 32;
	if (f->ring) {
		options.window = 40;
		options.window_layers = 1;
	}
	out->owner = pawl_tiny_model_new(&options);
	out->owner_free = free_tiny;
	return pawl_tiny_model_source(out->owner);
}

static void
open_family(int number, struct pawl_cuda_case *out)
{
	const struct subject *f = &families[number - PAWL_CUDA_FAMILIES];
	const struct pawl_model_source *source = make_family(f, out);
	struct pawl_graph_request request = {.n_tokens = f->n_tokens,
		.capacity = 192,
		.kv_dtype = f->kv_dtype,
		.logits = PAWL_LOGITS_ALL,
		.n_sequences = f->n_sequences,
		.block_size = f->n_sequences ? 16 : 0,
		.max_blocks = f->n_sequences ? 9 : 0,
		.ring = f->ring};

	snprintf(out->name, sizeof(out->name), "%s", f->name);
	out->is_exact = f->dtype != PAWL_DTYPE_F16;
	OK(source->build(source->ctx, &request, &out->graph, &err));
}

/* Blocks of real models, the matrices of the first in other types too. */
static const struct model {
	const char *name, *file, *from, *to;
	bool is_a8, is_float;
} models[PAWL_CUDA_N_MODELS] = {
	{"smollm2_q4_1", "step-smollm2.pawl", NULL, NULL, false, false},
	{"smollm2_q4_1_a8", "step-smollm2.pawl", NULL, NULL, true, false},
	{"smollm2_q4_0", "step-smollm2.pawl", "q4_1", "q4_0", false, false},
	{"smollm2_q8_0", "step-smollm2.pawl", "q4_1", "q8_0", false, false},
	{"smollm2_f16", "step-smollm2.pawl", "q4_1", " f16", false, true},
	{"gemma3", "step-gemma3.pawl", NULL, NULL, false, false},
};

static void
open_model(int number, struct pawl_cuda_case *out)
{
	const struct model *m = &models[number - PAWL_CUDA_MODELS];
	size_t n;
	char *text = pawl_test_data(m->file, &n), *at;

	for (at = text; m->from && (at = strstr(at, m->from));)
		memcpy(at, m->to, strlen(m->from));
	for (at = text; m->is_float && (at = strstr(at, "q8_0"));)
		memcpy(at, m->to, 4);
	snprintf(out->name, sizeof(out->name), "%s", m->name);
	out->is_exact = !m->is_float;
	OK(pawl_parse(text, n, m->file, &out->graph, NULL, &err));
	free(text);
}

static enum pawl_layout
weight_layout(const void *target, const struct pawl_type *type)
{
	(void)target;
	return pawl_cuda_weight_layout(type);
}

static void
open_random(int number, struct pawl_cuda_case *out)
{
	static const unsigned flavours[] = {PAWL_RANDOM_COMPUTE,
		PAWL_RANDOM_COMPUTE | PAWL_RANDOM_STATE | PAWL_RANDOM_VIEWS, PAWL_RANDOM_ATTENTION,
		PAWL_RANDOM_COMPUTE | PAWL_RANDOM_SYMBOLIC};
	struct pawl_random_options options = {
		.flavours = flavours[number % 4], .n_nodes = number % 3 ? 12 : 24};

	OK(pawl_random_graph((uint64_t)number, &options, &out->graph, &err));
}

static const enum pawl_dtype float_weights[] = {PAWL_DTYPE_F32, PAWL_DTYPE_F16, PAWL_DTYPE_BF16};
static const enum pawl_dtype quantized_weights[] = {PAWL_DTYPE_Q4_0, PAWL_DTYPE_Q4_1,
	PAWL_DTYPE_Q5_0, PAWL_DTYPE_Q5_1, PAWL_DTYPE_Q8_0, PAWL_DTYPE_Q4_K, PAWL_DTYPE_Q5_K,
	PAWL_DTYPE_Q6_K};

enum { N_FLOAT = sizeof(float_weights) / sizeof(*float_weights) };
_Static_assert(N_FLOAT + 2 * sizeof(quantized_weights) / sizeof(*quantized_weights) ==
		       PAWL_CUDA_N_MATMULS, "quantized weights meet two types of activations");

void
pawl_cuda_matmul_types(int number, enum pawl_dtype *weights, enum pawl_dtype *activations)
{
	bool is_float = number < N_FLOAT;

	*weights = is_float ? float_weights[number] : quantized_weights[(number - N_FLOAT) / 2];
	*activations = is_float		       ? PAWL_DTYPE_F32
		       : (number - N_FLOAT) % 2 ? PAWL_DTYPE_A8
						: PAWL_DTYPE_A16;
}

static void
open_matmuls(int number, struct pawl_cuda_case *out)
{
	enum pawl_dtype weights, activations;
	const char *type;
	char text[1024];
	int k, j;

	pawl_cuda_matmul_types(number, &weights, &activations);
	type = pawl_dtype_name(weights);
	/* Floats one by one, and by vectors. */
	k = activations == PAWL_DTYPE_F32 ? 1037 : 768;
	j = activations == PAWL_DTYPE_F32 ? 1040 : 768;
	snprintf(out->name, sizeof(out->name), "matmul_%s_%s", type, pawl_dtype_name(activations));
	snprintf(text, sizeof(text),
		"pawl 1\n"
		"graph @matmuls stage values {\n"
		"%%x = const {role=data} : f32[3, %d]\n"
		"%%w = const {role=weight} : %s[37, %d]\n"
		"%%y = matmul %%x, %%w : f32[3, 37]\n"
		"%%z = const {role=data} : f32[1, %d]\n"
		"%%g = const {role=weight} : f32[%d]\n"
		"%%n = rms_norm %%z, %%g {eps=0.00001} : f32[1, %d]\n"
		"%%v = const {role=weight} : %s[21, %d]\n"
		"%%p = matmul %%n, %%v : f32[1, 21]\n"
		"%%r = const {role=data} : f32[1, 21]\n"
		"%%u = add %%r, %%p : f32[1, 21]\n"
		"output %%y\noutput %%u\n"
		"}\n",
		k, type, k, j, j, j, type, j);
	OK(pawl_parse(text, strlen(text), out->name, &out->graph, NULL, &err));
}

static void
open_graph(int number, struct pawl_cuda_case *out)
{
	static const char *const tiny[] = {"tiny_f32", "tiny_f16", "tiny_chunk"};

	if (number < PAWL_CUDA_TINY_CASES) {
		snprintf(out->name, sizeof(out->name), "%s", tiny[number]);
		open_tiny(number, out);
	} else if (number < PAWL_CUDA_MODELS) {
		open_family(number, out);
	} else if (number < PAWL_CUDA_MEDLEY) {
		open_model(number, out);
	} else if (number == PAWL_CUDA_MEDLEY) {
		snprintf(out->name, sizeof(out->name), "medley");
		OK(pawl_parse(medley, strlen(medley), "medley", &out->graph, NULL, &err));
	} else if (number == PAWL_CUDA_ATTENTIONS) {
		snprintf(out->name, sizeof(out->name), "attentions");
		out->is_exact = true;
		OK(pawl_parse(
			attentions, strlen(attentions), "attentions", &out->graph, NULL, &err));
	} else if (number >= PAWL_CUDA_MATMULS) {
		open_matmuls(number - PAWL_CUDA_MATMULS, out);
	} else {
		snprintf(out->name, sizeof(out->name), "random%d", number - PAWL_CUDA_RANDOM);
		open_random(number - PAWL_CUDA_RANDOM, out);
	}
}

static bool
is_a8(int number)
{
	enum pawl_dtype weights, activations = PAWL_DTYPE_F32;

	if (number >= PAWL_CUDA_MATMULS)
		pawl_cuda_matmul_types(number - PAWL_CUDA_MATMULS, &weights, &activations);
	else if (number >= PAWL_CUDA_MODELS && number < PAWL_CUDA_MEDLEY)
		return models[number - PAWL_CUDA_MODELS].is_a8;
	else if (number >= PAWL_CUDA_FAMILIES && number < PAWL_CUDA_MODELS)
		return families[number - PAWL_CUDA_FAMILIES].is_a8;
	return activations == PAWL_DTYPE_A8;
}

void
pawl_cuda_case_open(int number, struct pawl_cuda_case *out)
{
	bool is_family = number >= PAWL_CUDA_FAMILIES && number < PAWL_CUDA_MEDLEY;
	struct pawl_optimize_options options = {
		.facts = {.max_prologue_rows = number == PAWL_CUDA_TINY_CHUNK ? 0
					       : is_family                    ? 1
									      : 4,
			.weight_layout = weight_layout},
		.run = {.bisect = -1, .verify_each = true},
		.red_zones = true};
	enum pawl_status status;

	memset(out, 0, sizeof(*out));
	open_graph(number, out);
	if (is_a8(number))
		options.facts.precision = PAWL_PRECISION_A8;
	OK(pawl_optimize(out->graph, &options, &out->program, NULL, &err));
	status = pawl_cuda_program_init(&out->cuda, out->program, &out->why);
	ck_assert_msg(status == PAWL_OK || status == PAWL_UNSUPPORTED, "%s", out->why.text);
	out->is_supported = status == PAWL_OK;
	ck_assert_msg(out->is_supported ||
			      (number >= PAWL_CUDA_RANDOM && number < PAWL_CUDA_MATMULS),
		"%s: %s", out->name, out->why.text);
}

void
pawl_cuda_case_close(struct pawl_cuda_case *c)
{
	pawl_cuda_program_release(&c->cuda);
	pawl_program_free(c->program);
	pawl_graph_free(c->graph);
	if (c->owner)
		c->owner_free(c->owner);
}
