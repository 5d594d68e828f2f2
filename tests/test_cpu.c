/* Kernels of the CPU target against the reference, bit for bit. */
#include "tests/cpu_subject.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "codegen/cpu_variant.h"
#include "ir/eval.h"
#include "ir/random.h"

#include "tests/skip.h"
#include "tests/suites.h"

#ifdef PAWL_HAVE_LLVM

static struct pawl_error err;

static void
agrees(struct pawl_cpu_subject *s, enum pawl_cpu_variant variant)
{
	ck_assert_msg(pawl_cpu_subject_agrees(s, pawl_cpu_variant_info(variant)->name, &err),
		"declined: %s", err.text);
}

/*
 * The best variant, and one of the others that this machine runs: `turn` says which, so that a
 * few turns see them all.
 */
static void
agrees_on_two(struct pawl_cpu_subject *s, int turn)
{
	enum pawl_cpu_variant best = pawl_cpu_best_variant();

	agrees(s, best);
	if (best > PAWL_CPU_BASELINE && best < PAWL_CPU_AARCH64)
		agrees(s, (enum pawl_cpu_variant)(turn % (int)best));
}

static void
check(const char *statements, int turn)
{
	struct pawl_cpu_subject s;

	pawl_cpu_subject_begin(&s, statements, 3);
	agrees_on_two(&s, turn);
	pawl_cpu_subject_end(&s);
}

/* Before the tests fork: LLVM is loaded once for all of them. */
static void
load_compiler(void)
{
	check("%x = const {role=data} : f32[1]\n%y = neg %x : f32[1]\noutput %y\n", 0);
}

START_TEST(elementwise_functions)
{
	check("%x = const {role=data} : f32[3,37]\n%y = const {role=data} : f32[3,37]\n"
	      "%a = add %x, %y : f32[3,37]\n%b = silu %a : f32[3,37]\n%c = gelu_tanh %x : "
	      "f32[3,37]\n"
	      "%d = div %b, %c : f32[3,37]\n%e = max %d, %y : f32[3,37]\n%f = tanh %e : f32[3,37]\n"
	      "%g = sigmoid %y : f32[3,37]\n%h = min %f, %g : f32[3,37]\n%i = abs %h : f32[3,37]\n"
	      "%j = sqrt %i : f32[3,37]\n%k = neg %j : f32[3,37]\n%l = exp %k : f32[3,37]\n"
	      "%m = relu %l : f32[3,37]\n%n = scale %m {scale=0.3} : f32[3,37]\n"
	      "%o = sub %n, %x : f32[3,37]\n%p = mul %o, %y : f32[3,37]\noutput %p\noutput %e\n",
		_i);
}
END_TEST

/* Each op of ir/ops.def that is one by itself. */
START_TEST(every_elementwise_op)
{
	enum pawl_scalar scalar;
	enum pawl_op op;
	char text[512];

	for (op = 0; op < PAWL_N_OPS; op++) {
		if (!pawl_op_scalar(op, &scalar))
			continue;
		snprintf(text, sizeof(text),
			"%%x = const {role=data} : f32[3,37]\n%%y = const {role=data} : f32[3,37]\n"
			"%%z = %s %%x%s : f32[3,37]\n%%o = sub %%z, %%y : f32[3,37]\noutput %%o\n",
			pawl_op_name(op), pawl_op_info(op)->max_inputs == 2 ? ", %y" : "");
		check(text, (int)op);
	}
}
END_TEST

START_TEST(casts_copies_and_strides)
{
	check("%x = const {role=data} : f32[3,5,33]\n%h = const {role=data} : f16[3,5,33]\n"
	      "%b = const {role=data} : bf16[3,5,33]\n%i = const {role=data} : i32[3,5,33]\n"
	      "%a = cast %x {dtype=f16} : f16[3,5,33]\n%c = cast %x {dtype=bf16} : bf16[3,5,33]\n"
	      "%d = cast %h {dtype=f32} : f32[3,5,33]\n%e = cast %b {dtype=f32} : f32[3,5,33]\n"
	      "%f = add %d, %e : f32[3,5,33]\n%p = permute %f {perm=[1,2,0]} : f32[5,33,3]\n"
	      "%q = neg %p : f32[5,33,3]\n%s = slice %x {start=[0,1,7],stop=[3,4,30]} : "
	      "f32[3,3,23]\n"
	      "%t = silu %s : f32[3,3,23]\n%j = copy %i : i32[3,5,33]\n"
	      "%v = slice %x {start=[0,0,4],stop=[3,5,5]} : f32[3,5,1]\n"
	      "%w = broadcast %v : f32[3,5,33]\n%y = mul %w, %x : f32[3,5,33]\n"
	      "output %a\noutput %c\noutput %q\noutput %t\noutput %j\noutput %y\n",
		_i);
}
END_TEST

/* More kinds of steps with symbolic extents than any model has, each with units of its own. */
START_TEST(many_symbolic_steps)
{
	enum { N = 40 };
	char text[N * 128 + 64];
	int used = snprintf(text, sizeof(text), "sym $n : 1 .. 7\n");

	for (int i = 0; i < N; i++)
		used += snprintf(text + used, sizeof(text) - (size_t)used,
			"%%x%d = const {role=data} : f32[$n,%d]\n%%y%d = exp %%x%d : f32[$n,%d]\n", i,
			i + 1, i, i, i + 1);
	for (int i = 0; i < N; i++)
		used += snprintf(
			text + used, sizeof(text) - (size_t)used, "output %%y%d\n", i);
	check(text, 5);
}
END_TEST

START_TEST(ropes)
{
	static const int widths[] = {64, 32, 24, 6};
	char text[2048];
	size_t i;

	for (i = 0; i < sizeof(widths) / sizeof(*widths); i++) {
		snprintf(text, sizeof(text),
			"%%x = const {role=data} : f32[3,2,64]\n%%c = const {role=data} : "
			"f32[3,%d]\n"
			"%%s = const {role=data} : f32[3,%d]\n"
			"%%a = rope %%x, %%c, %%s {pairs=halves} : f32[3,2,64]\n"
			"%%b = rope %%x, %%c, %%s {pairs=adjacent} : f32[3,2,64]\n"
			"%%d = scale %%x {scale=0.5} : f32[3,2,64]\n"
			"%%e = rope %%d, %%c, %%s {pairs=halves} : f32[3,2,64]\n"
			"output %%a\noutput %%b\noutput %%e\n",
			widths[i], widths[i]);
		check(text, (int)i);
	}
}
END_TEST

START_TEST(row_reductions)
{
	static const int lengths[] = {1, 16, 17, 96, 200};
	char text[2048];
	size_t i;
	int n;

	for (i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		n = lengths[i];
		snprintf(text, sizeof(text),
			"%%x = const {role=data} : f32[3,%d]\n%%y = const {role=data} : f32[3,%d]\n"
			"%%w = const {role=weight} : f32[%d]\n%%b = const {role=weight} : f32[%d]\n"
			"%%a = add %%x, %%y : f32[3,%d]\n%%n = rms_norm %%a, %%w {eps=1e-5} : "
			"f32[3,%d]\n"
			"%%l = layer_norm %%n, %%w, %%b {eps=1e-6} : f32[3,%d]\n"
			"%%s = softmax %%l : f32[3,%d]\n%%t = mul %%s, %%y : f32[3,%d]\n"
			"%%m = argmax %%t : i32[3]\n"
			"output %%a\noutput %%l\noutput %%t\noutput %%m\n",
			n, n, n, n, n, n, n, n, n);
		check(text, (int)i);
	}
}
END_TEST

static const char *const weight_types[] = {
	"f32", "f16", "bf16", "q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q4_k", "q5_k", "q6_k"};

enum { N_WEIGHT_TYPES = sizeof(weight_types) / sizeof(*weight_types) };

static void
check_matmul(int rows, const char *type, int n, bool is_a8, bool rows_only, int turn)
{
	struct pawl_cpu_subject s;
	char text[2048];

	snprintf(text, sizeof(text),
		"%%x = const {role=data} : f32[%d,256]\n%%g = const {role=weight} : f32[256]\n"
		"%%w = const {role=weight} : %s[%d,256]\n%%r = const {role=data} : f32[%d,%d]\n"
		"%%b = const {role=weight} : f32[%d]\n"
		"%%h = rms_norm %%x, %%g {eps=1e-5} : f32[%d,256]\n"
		"%%y = matmul %%h, %%w : f32[%d,%d]\n%%bb = broadcast %%b : f32[%d,%d]\n"
		"%%z = add %%y, %%bb : f32[%d,%d]\n%%o = add %%z, %%r : f32[%d,%d]\noutput %%o\n",
		rows, type, n, rows, n, n, rows, rows, n, rows, n, rows, n, rows, n);
	pawl_cpu_subject_begin(&s, text, 1);
	s.is_a8 = is_a8;
	s.rows_only = rows_only;
	agrees_on_two(&s, turn);
	pawl_cpu_subject_end(&s);
}

START_TEST(matmul_of_every_weight_type)
{
	static const struct {
		int rows, n;
	} shapes[] = {{1, 48}, {9, 35}};
	size_t i;

	for (i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
		bool is_a8 = (i + (size_t)_i) % 2;

		check_matmul(shapes[i].rows, weight_types[_i], shapes[i].n, is_a8, false, (int)i);
	}
	check_matmul(3, weight_types[_i], 35, _i % 2, true, _i);
}
END_TEST

START_TEST(matmuls_that_share_their_input)
{
	check("%x = const {role=data} : f32[3,64]\n%g = const {role=weight} : f32[64]\n"
	      "%wq = const {role=weight} : q4_0[64,64]\n%wk = const {role=weight} : q5_1[24,64]\n"
	      "%wv = const {role=weight} : q8_0[24,64]\n%wg = const {role=weight} : q4_1[96,64]\n"
	      "%wu = const {role=weight} : q4_1[96,64]\n%wd = const {role=weight} : q4_1[64,96]\n"
	      "%n = rms_norm %x, %g {eps=1e-5} : f32[3,64]\n"
	      "%q = matmul %n, %wq : f32[3,64]\n%k = matmul %n, %wk : f32[3,24]\n"
	      "%v = matmul %n, %wv : f32[3,24]\n%up = matmul %n, %wu : f32[3,96]\n"
	      "%ga = matmul %n, %wg : f32[3,96]\n%s = silu %ga : f32[3,96]\n%m = mul %s, %up : "
	      "f32[3,96]\n"
	      "%d = matmul %m, %wd : f32[3,64]\n%o = add %d, %x : f32[3,64]\n"
	      "output %q\noutput %k\noutput %v\noutput %o\n",
		2);
}
END_TEST

/* So many columns that threads take them in portions instead of halves (plugins/target_cpu.c). */
START_TEST(matmul_that_is_shared_in_portions)
{
	check("%x = const {role=data} : f32[2,32]\n%w = const {role=weight} : q8_0[16421,32]\n"
	      "%y = matmul %x, %w : f32[2,16421]\noutput %y\n",
		1);
}
END_TEST

START_TEST(gathers_of_every_weight_type)
{
	char text[1024];

	snprintf(text, sizeof(text),
		"%%t = const {role=weight} : %s[10,256]\n%%i = const {role=data} : u32[3]\n"
		"%%x = gather %%t, %%i : f32[3,256]\n%%y = scale %%x {scale=1.7} : "
		"f32[3,256]\noutput %%y\n",
		weight_types[_i]);
	check(text, _i);
}
END_TEST

struct attention {
	int rows, heads, groups, d, width, capacity, offset, length; /* length 0: no symbol */
	const char *k_type, *layout, *attrs;
	bool has_mask;
};

static int64_t attention_offset;

static void
set_offset(const char *name, void *bytes)
{
	if (!strcmp(name, "at"))
		memcpy(bytes, &attention_offset, sizeof(attention_offset));
}

static void
check_attention(const struct attention *a, int turn)
{
	struct pawl_cpu_subject s;
	char text[2048];

	snprintf(text, sizeof(text),
		"sym $n : 1 .. %d\n%%q = const {role=data} : f32[%d,%d,%d]\n"
		"%%c = const {role=data} : f32[%d,%d]\n%%s = const {role=data} : f32[%d,%d]\n"
		"%%k = const {role=kv} : %s[1,%d,%d,%d]%s\n%%v = const {role=kv} : %s[1,%d,%d,%d]\n"
		"%%at = const {role=data} : i64[]\n%%mask = const {role=data} : f32[%d,%d]\n"
		"%%qr = rope %%q, %%c, %%s {pairs=halves} : f32[%d,%d,%d]\n"
		"%%y = attention %%qr, %%k, %%v, %%at%s {%s%s} : f32[%d,%d,%d]\n"
		"%%z = attention %%q, %%k, %%v, %%at%s {%s%s} : f32[%d,%d,%d]\n"
		"%%e = silu %%z : f32[%d,%d,%d]\noutput %%y\noutput %%e\n",
		a->capacity, a->rows, a->heads, a->d, a->rows, a->d, a->rows, a->d, a->k_type,
		a->groups, a->capacity, a->d, a->layout, a->k_type, a->groups, a->capacity,
		a->width, a->rows, a->capacity, a->rows, a->heads, a->d,
		a->has_mask ? ", %mask" : "", a->attrs, a->length ? ",sym=$n" : "", a->rows,
		a->heads, a->width, a->has_mask ? ", %mask" : "", a->attrs,
		a->length ? ",sym=$n" : "", a->rows, a->heads, a->width, a->rows, a->heads,
		a->width);
	pawl_cpu_subject_begin(&s, text, a->length ? a->length : 1);
	attention_offset = a->offset;
	s.adjust = set_offset;
	agrees_on_two(&s, turn);
	pawl_cpu_subject_end(&s);
}

START_TEST(attention)
{
	static const struct attention cases[] = {
		{1, 3, 1, 64, 64, 304, 270, 271, "f16", "@k16", "scale=0.125", false},
		{3, 4, 2, 16, 24, 160, 120, 0, "f16", "@k16", "scale=0.25", false},
		{5, 9, 3, 20, 32, 141, 0, 5, "f32", "", "scale=0.3,softcap=20.0", false},
		{2, 2, 2, 32, 16, 272, 250, 252, "bf16", "@k16", "scale=0.2,window=100", false},
		{4, 8, 1, 16, 40, 260, 200, 230, "f16", "", "scale=0.2,causal=false", true},
		{3, 4, 4, 8, 8, 64, 10, 40, "f32", "@k16", "scale=0.5,window=4", true},
		{1, 12, 1, 16, 16, 144, 128, 129, "f16", "@k16", "scale=0.5", false},
		{1, 3, 1, 64, 64, 304, 270, 271, "q8_0", "@k16", "scale=0.125", false},
		{3, 4, 2, 32, 96, 160, 120, 0, "q8_0", "", "scale=0.25", false},
		{5, 9, 3, 32, 32, 144, 0, 5, "q8_0", "@k16", "scale=0.3,softcap=20.0", false},
		{4, 8, 1, 96, 32, 260, 200, 230, "q8_0", "", "scale=0.2,causal=false", true},
		{2, 2, 2, 128, 64, 272, 250, 252, "q8_0", "@k16", "scale=0.2,window=100", false},
		/* From the last position of a chunk on, into three; and from the first on, into one. */
		{1, 3, 1, 64, 64, 304, 256, 257, "f16", "@k16", "scale=0.125,window=130", false},
		{1, 4, 1, 16, 256, 304, 255, 256, "f16", "", "scale=0.125,window=128", false},
		{9, 4, 2, 16, 24, 640, 500, 509, "f16", "@k16", "scale=0.125,window=258", false},
	};

	check_attention(&cases[_i], _i);
}
END_TEST

enum { N_ATTENTIONS = 15 };

struct paged {
	int rows, sequences, heads, groups, d, width, blocks, block, columns, length;
	const char *k_type, *layout, *attrs;
};

static void
check_paged(const struct paged *a, int turn)
{
	struct pawl_cpu_subject s;
	char text[2048];

	snprintf(text, sizeof(text),
		"sym $n : 1 .. %d\n%%q0 = const {role=data} : f32[%d,%d,%d]\n"
		"%%c = const {role=data} : f32[%d,%d]\n%%s = const {role=data} : f32[%d,%d]\n"
		"%%k0 = const {role=kv} : %s[1,%d,%d,%d]%s\n%%v = const {role=kv} : %s[1,%d,%d,%d]\n"
		"%%at = const {role=data} : i64[%d]\n%%table = const {role=data} : u32[%d,%d]\n"
		"%%new = const {role=data} : %s[1,%d,%d,%d]\n%%to = const {role=data} : i64[%d]\n"
		"%%k = write_rows %%k0, %%new, %%to {axis=2} : %s[1,%d,%d,%d]%s\n"
		"%%q = rope %%q0, %%c, %%s {pairs=halves} : f32[%d,%d,%d]\n"
		"%%y = paged_attention %%q, %%k, %%v, %%at, %%table {block=%d,%s%s} : f32[%d,%d,%d]\n"
		"%%e = silu %%y : f32[%d,%d,%d]\noutput %%y\noutput %%e\noutput %%k\n",
		a->columns * a->block, a->rows, a->heads, a->d, a->rows, a->d, a->rows, a->d,
		a->k_type, a->groups, a->blocks * a->block, a->d, a->layout, a->k_type, a->groups,
		a->blocks * a->block, a->width, a->rows, a->sequences, a->columns, a->k_type,
		a->groups, a->rows, a->d, a->rows, a->k_type, a->groups, a->blocks * a->block,
		a->d, a->layout, a->rows, a->heads, a->d, a->block, a->attrs,
		a->length ? ",sym=$n" : "", a->rows, a->heads, a->width, a->rows, a->heads,
		a->width);
	pawl_cpu_subject_begin(&s, text, a->length ? a->length : 1);
	agrees_on_two(&s, turn);
	pawl_cpu_subject_end(&s);
}

START_TEST(paged_attention)
{
	static const struct paged cases[] = {
		{1, 1, 3, 1, 64, 64, 9, 32, 10, 300, "f16", "@k16", "scale=0.125"},
		{4, 4, 4, 2, 16, 24, 20, 16, 18, 0, "f16", "@k16", "scale=0.25"},
		{6, 3, 9, 3, 20, 32, 3, 112, 3, 330, "f32", "", "scale=0.3,softcap=20.0"},
		{5, 1, 2, 2, 32, 16, 4, 128, 5, 500, "bf16", "@k16", "scale=0.2,window=100"},
		{8, 8, 8, 1, 16, 40, 12, 48, 6, 288, "f16", "", "scale=0.2,window=7"},
		{2, 2, 12, 1, 16, 16, 2, 272, 1, 272, "f32", "@k16", "scale=0.5"},
		{1, 1, 3, 1, 64, 64, 9, 32, 10, 300, "q8_0", "@k16", "scale=0.125"},
		{6, 3, 9, 3, 32, 64, 3, 112, 3, 330, "q8_0", "", "scale=0.3,softcap=20.0"},
		{4, 4, 4, 2, 96, 32, 20, 16, 18, 0, "q8_0", "@k16", "scale=0.25,window=70"},
		{6, 1, 4, 1, 64, 256, 3, 256, 3, 768, "f16", "@k16", "scale=0.25,window=130"},
		{3, 3, 4, 2, 64, 24, 4, 128, 5, 640, "f32", "", "scale=0.25,window=258"},
	};

	check_paged(&cases[_i], _i);
}
END_TEST

enum { N_PAGED = 11 };

/* Values that make a block of NaN, one of zeros, and scales without and beyond an f16. */
static void
set_extremes(const char *name, void *bytes)
{
	static const float extremes[] = {NAN, INFINITY, 0x1p-101f, 3e-8f, 1e-5f, 0x1p23f, 3e38f};
	float *x = bytes;

	if (strcmp(name, "x"))
		return;
	for (int b = 0; b < 7; b++)
		for (int i = 0; i < 32; i++) {
			bool is_all = b > 1 && b < 5;

			if (i == b || is_all)
				x[32 * b + i] = extremes[b] * (is_all ? (float)(i + 1) / 32 : 1.0f);
		}
}

/* Every way into a cache of blocks, rope and norms before it, in both layouts. */
START_TEST(caches_of_blocks)
{
	static const char *const layouts[] = {"", "@k16"};
	const char *k = layouts[_i % 2];
	struct pawl_cpu_subject s;
	char text[4096];

	snprintf(text, sizeof(text),
		"%%x = const {role=data} : f32[3,2,64]\n%%c = const {role=data} : f32[3,64]\n"
		"%%s = const {role=data} : f32[3,64]\n%%w = const {role=data} : f32[64]\n"
		"%%kc = const {role=kv} : q8_0[1,2,48,64]%s\n"
		"%%kd = const {role=kv} : q8_0[1,2,48,64]%s\n"
		"%%ke = const {role=kv} : q8_0[1,2,48,64]%s\n"
		"%%vc = const {role=kv} : q8_0[1,2,48,64]\n"
		"%%at = const {role=data} : i64[]\n%%to = const {role=data} : i64[3]\n"
		"%%raw = const {role=data} : q8_0[1,2,3,32]\n"
		"%%r = rope %%x, %%c, %%s {pairs=adjacent} : f32[3,2,64]\n"
		"%%q = quantize %%r {dtype=q8_0} : q8_0[3,2,64]\n"
		"%%p = permute %%q {perm=[1,0,2]} : q8_0[2,3,64]\n"
		"%%l = reshape %%p : q8_0[1,2,3,64]\n"
		"%%k1 = write_slice %%kc, %%l, %%at {axis=2} : q8_0[1,2,48,64]%s\n"
		"%%n = rms_norm %%x, %%w {eps=1e-5} : f32[3,2,64]\n"
		"%%nq = quantize %%n {dtype=q8_0} : q8_0[3,2,64]\n"
		"%%np = permute %%nq {perm=[1,0,2]} : q8_0[2,3,64]\n"
		"%%nl = reshape %%np : q8_0[1,2,3,64]\n"
		"%%k2 = write_slice_rotating %%kd, %%nl, %%at {axis=2,modulus=48} : "
		"q8_0[1,2,48,64]%s\n"
		"%%v1 = write_rows %%vc, %%nl, %%to {axis=2} : q8_0[1,2,48,64]\n"
		"%%k3 = write_rows %%ke, %%l, %%to {axis=2} : q8_0[1,2,48,64]%s\n"
		"%%k4 = write_slice %%k3, %%raw {start=[0,0,7,32]} : q8_0[1,2,48,64]%s\n"
		"%%z = alloc : q8_0[1,2,16,64]%s\n%%zz = zero_fill %%z : q8_0[1,2,16,64]%s\n"
		"%%y = attention %%x, %%k1, %%v1, %%at {scale=0.2} : f32[3,2,64]\n"
		"output %%k1\noutput %%k2\noutput %%v1\noutput %%k4\noutput %%zz\noutput %%y\n"
		"output %%nq\n",
		k, k, k, k, k, k, k, k, k);
	pawl_cpu_subject_begin(&s, text, 1);
	agrees_on_two(&s, _i);
	s.adjust = set_extremes;
	agrees_on_two(&s, _i);
	pawl_cpu_subject_end(&s);
}
END_TEST

START_TEST(random_graphs)
{
	const struct pawl_random_options options = {
		.flavours =
			_i % 2 ? PAWL_RANDOM_DEFAULT | PAWL_RANDOM_SYMBOLIC : PAWL_RANDOM_DEFAULT};
	struct pawl_cpu_subject s = {.seed = 100 + (uint64_t)_i, .max_prologue_rows = 4};
	int i;

	ck_assert_msg(
		pawl_random_graph(s.seed, &options, &s.graph, &err) == PAWL_OK, "%s", err.text);
	for (i = 0; i < s.graph->n_symbols; i++) {
		const struct pawl_symbol *symbol = &s.graph->symbols[i];

		s.symbols[i] =
			symbol->min + _i % ((symbol->max - symbol->min) / symbol->multiple + 1) *
					      symbol->multiple;
	}
	/* Each seed on one variant. */
	agrees(&s, (enum pawl_cpu_variant)(_i / 2 % ((int)pawl_cpu_best_variant() + 1)));
	pawl_cpu_subject_end(&s);
}
END_TEST

#else

START_TEST(kernels)
{
	pawl_skip("kernels", "built without llvm");
}
END_TEST

#endif

Suite *
pawl_cpu_suite(void)
{
	Suite *suite = suite_create("cpu");
	TCase *tcase = tcase_create("cpu");

	tcase_set_timeout(tcase, 120);
#ifdef PAWL_HAVE_LLVM
	tcase_add_unchecked_fixture(tcase, load_compiler, NULL);
	tcase_add_loop_test(tcase, elementwise_functions, 0, 3);
	tcase_add_test(tcase, every_elementwise_op);
	tcase_add_loop_test(tcase, casts_copies_and_strides, 0, 3);
	tcase_add_loop_test(tcase, caches_of_blocks, 0, 6);
	tcase_add_test(tcase, many_symbolic_steps);
	tcase_add_test(tcase, ropes);
	tcase_add_test(tcase, row_reductions);
	tcase_add_loop_test(tcase, matmul_of_every_weight_type, 0, N_WEIGHT_TYPES);
	tcase_add_test(tcase, matmuls_that_share_their_input);
	tcase_add_test(tcase, matmul_that_is_shared_in_portions);
	tcase_add_loop_test(tcase, gathers_of_every_weight_type, 0, N_WEIGHT_TYPES);
	tcase_add_loop_test(tcase, attention, 0, N_ATTENTIONS);
	tcase_add_loop_test(tcase, paged_attention, 0, N_PAGED);
	tcase_add_loop_test(tcase, random_graphs, 0, 12);
#else
	tcase_add_test(tcase, kernels);
#endif
	suite_add_tcase(suite, tcase);
	return suite;
}
