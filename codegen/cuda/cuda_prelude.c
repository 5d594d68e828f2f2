/*
 * What every source text begins with: the layer over the machine, and the functions of
 * docs/arithmetic.md.  No CUDA header is needed, which keeps compiling fast.
 *
 * The layer (everything under __CUDACC__) is all that differs between a GPU and a host.  For a
 * host, whoever includes the text defines the same names before it.
 */
#include "codegen/cuda/cuda_emit.h"

#include <string.h>

#include "ir/eval_consts.h"

#define QUOTE(x) #x
#define TEXT_OF(x) QUOTE(x)
#define CONSTANT(name) "#define " #name " " TEXT_OF(name) "\n"

static const char layer[] =
	"#ifdef __CUDACC__\n"
	"typedef long long i64;\n"
	"typedef unsigned int u32;\n"
	"typedef unsigned short u16;\n"
	"#define PAWL_FN static __device__ __forceinline__\n"
	"#define PAWL_SHARED __shared__\n"
	"/* 768 threads on a multiprocessor: left to itself, ptxas spills to have more. */\n"
	"#define PAWL_KERNEL(name, threads) \\\n"
	"\textern \"C\" __global__ void __launch_bounds__(threads, 768 / threads) \\\n"
	"\tname(void *const *args, const i64 *symbols)\n"
	"#define PAWL_SYNC() __syncthreads()\n"
	"#define PAWL_THREAD ((int)threadIdx.x)\n"
	"#define PAWL_THREADS ((int)blockDim.x)\n"
	"#define PAWL_BLOCK ((i64)blockIdx.x)\n"
	"#define PAWL_BLOCKS ((i64)gridDim.x)\n"
	"PAWL_FN u32 pawl_f32_bits(float x) { return __float_as_uint(x); }\n"
	"PAWL_FN float pawl_f32_from_bits(u32 x) { return __uint_as_float(x); }\n"
	"PAWL_FN float pawl_fma(float x, float y, float z) { return __fmaf_rn(x, y, z); }\n"
	"PAWL_FN float pawl_sqrt(float x) { return __fsqrt_rn(x); }\n"
	"PAWL_FN float pawl_shuffle_xor(float x, int lanes)\n"
	"{\n"
	"\treturn __shfl_xor_sync(0xffffffffu, x, lanes);\n"
	"}\n"
	"PAWL_FN float pawl_f32_from_f16(u16 h)\n"
	"{\n"
	"\tfloat x;\n"
	"\tasm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(x) : \"h\"(h));\n"
	"\treturn x;\n"
	"}\n"
	"PAWL_FN u16 pawl_f16_from_f32(float x)\n"
	"{\n"
	"\tu16 h;\n"
	"\tasm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(h) : \"f\"(x));\n"
	"\treturn h;\n"
	"}\n"
	"PAWL_FN float pawl_f32_from_bf16(u16 b) { return pawl_f32_from_bits((u32)b << 16); }\n"
	"PAWL_FN u16 pawl_bf16_from_f32(float x)\n"
	"{\n"
	"\tconst u32 bits = pawl_f32_bits(x);\n"
	"\tif ((bits & 0x7fffffffu) > 0x7f800000u)\n"
	"\t\treturn (u16)(bits >> 16 | 0x40u);\n"
	"\treturn (u16)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);\n"
	"}\n"
	"/* 16 bytes, aligned to 16. */\n"
	"PAWL_FN void pawl_load16(const void *from, u32 *words)\n"
	"{\n"
	"\tconst uint4 q = *(const uint4 *)from;\n"
	"\twords[0] = q.x;\n"
	"\twords[1] = q.y;\n"
	"\twords[2] = q.z;\n"
	"\twords[3] = q.w;\n"
	"}\n"
	"#endif\n"
	"\n"
	"#define PAWL_WARP 32\n"
	"#define PAWL_LANE (PAWL_THREAD % PAWL_WARP)\n"
	"#define PAWL_ELEMENT (PAWL_BLOCK * PAWL_THREADS + PAWL_THREAD)\n"
	"#define PAWL_ELEMENTS (PAWL_BLOCKS * PAWL_THREADS)\n"
	"#define PAWL_INF pawl_f32_from_bits(0x7f800000u)\n"
	"#define PAWL_NAN pawl_f32_from_bits(0x7fc00000u)\n";

/* Numbers of ir/eval_consts.h, as they are written there. */
static const char constants[] =
	CONSTANT(PAWL_EXP_MOST)
	CONSTANT(PAWL_EXP_LEAST)
	CONSTANT(PAWL_EXP_LOG2E)
	CONSTANT(PAWL_EXP_LN2_HI)
	CONSTANT(PAWL_EXP_LN2_LO)
	CONSTANT(PAWL_EXP_C2)
	CONSTANT(PAWL_EXP_C3)
	CONSTANT(PAWL_EXP_C4)
	CONSTANT(PAWL_EXP_C5)
	CONSTANT(PAWL_EXP_C6)
	CONSTANT(PAWL_GELU_CUBIC)
	CONSTANT(PAWL_GELU_SLOPE)
	CONSTANT(PAWL_ATTEND_CHUNK)
	CONSTANT(PAWL_LANES)
	"\n";

/* ir/scalar.def, apart from the plain operators. */
static const char scalars[] =
	"PAWL_FN float pawl_max(float x, float y) { return x > y ? x : y; }\n"
	"PAWL_FN float pawl_min(float x, float y) { return x < y ? x : y; }\n"
	"PAWL_FN float pawl_neg(float x) { return pawl_f32_from_bits(pawl_f32_bits(x) ^ 0x80000000u); }\n"
	"PAWL_FN float pawl_abs(float x) { return pawl_f32_from_bits(pawl_f32_bits(x) & 0x7fffffffu); }\n"
	"PAWL_FN float pawl_square(float x) { return x * x; }\n"
	"PAWL_FN float pawl_relu(float x) { return 0.0f > x ? 0.0f : x; }\n"
	"PAWL_FN float pawl_rne(float x)\n"
	"{\n"
	"\tconst float a = pawl_abs(x);\n"
	"\tconst u32 whole = pawl_f32_bits(a + 8388608.0f - 8388608.0f);\n"
	"\tif (!(a < 8388608.0f))\n"
	"\t\treturn x;\n"
	"\treturn pawl_f32_from_bits(whole | (pawl_f32_bits(x) & 0x80000000u));\n"
	"}\n"
	"PAWL_FN float pawl_exp(float x)\n"
	"{\n"
	"\tfloat a = PAWL_EXP_MOST < x ? PAWL_EXP_MOST : x, n, r, p;\n"
	"\ta = PAWL_EXP_LEAST > a ? PAWL_EXP_LEAST : a;\n"
	"\tn = pawl_rne(a * PAWL_EXP_LOG2E);\n"
	"\tr = pawl_fma(-n, PAWL_EXP_LN2_HI, a);\n"
	"\tr = pawl_fma(-n, PAWL_EXP_LN2_LO, r);\n"
	"\tp = pawl_fma(PAWL_EXP_C6, r, PAWL_EXP_C5);\n"
	"\tp = pawl_fma(p, r, PAWL_EXP_C4);\n"
	"\tp = pawl_fma(p, r, PAWL_EXP_C3);\n"
	"\tp = pawl_fma(p, r, PAWL_EXP_C2);\n"
	"\tp = pawl_fma(p, r, 1.0f);\n"
	"\tp = pawl_fma(p, r, 1.0f);\n"
	"\tn = n == n ? n : 0.0f;\n"
	"\tp = p * pawl_f32_from_bits((u32)((int)n + 127) << 23);\n"
	"\treturn x < PAWL_EXP_LEAST ? 0.0f : p;\n"
	"}\n"
	"PAWL_FN float pawl_sigmoid(float x) { return 1.0f / (1.0f + pawl_exp(pawl_neg(x))); }\n"
	"PAWL_FN float pawl_silu(float x) { return x / (1.0f + pawl_exp(pawl_neg(x))); }\n"
	"PAWL_FN float pawl_tanh(float x) { return 1.0f - 2.0f / (pawl_exp(x + x) + 1.0f); }\n"
	"PAWL_FN float pawl_gelu_tanh(float x)\n"
	"{\n"
	"\tconst float inner = pawl_fma(PAWL_GELU_CUBIC, x * x * x, x);\n"
	"\treturn 0.5f * x * (1.0f + pawl_tanh(PAWL_GELU_SLOPE * inner));\n"
	"}\n"
	"PAWL_FN float pawl_round_f16(float x) { return pawl_f32_from_f16(pawl_f16_from_f32(x)); }\n"
	"PAWL_FN float pawl_round_bf16(float x) { return pawl_f32_from_bf16(pawl_bf16_from_f32(x)); }\n"
	"\n";

/* Collective functions are to be called by all threads of the block, or of the warp. */
static const char reductions[] =
	"/* Halves of the warp are added, then quarters ...: every lane has the sum. */\n"
	"PAWL_FN float pawl_warp_sum(float x)\n"
	"{\n"
	"\tfor (int lanes = PAWL_WARP / 2; lanes; lanes /= 2)\n"
	"\t\tx = x + pawl_shuffle_xor(x, lanes);\n"
	"\treturn x;\n"
	"}\n"
	"PAWL_FN float pawl_warp_max(float x)\n"
	"{\n"
	"\tfor (int lanes = PAWL_WARP / 2; lanes; lanes /= 2)\n"
	"\t\tx = pawl_max(x, pawl_shuffle_xor(x, lanes));\n"
	"\treturn x;\n"
	"}\n"
	"/* Warps ascending. */\n"
	"PAWL_FN float pawl_block_sum(float x)\n"
	"{\n"
	"\tPAWL_SHARED float parts[32];\n"
	"\tx = pawl_warp_sum(x);\n"
	"\tif (PAWL_LANE == 0)\n"
	"\t\tparts[PAWL_THREAD / PAWL_WARP] = x;\n"
	"\tPAWL_SYNC();\n"
	"\tx = parts[0];\n"
	"\tfor (int i = 1; i < PAWL_THREADS / PAWL_WARP; i++)\n"
	"\t\tx = x + parts[i];\n"
	"\tPAWL_SYNC();\n"
	"\treturn x;\n"
	"}\n"
	"PAWL_FN float pawl_block_max(float x)\n"
	"{\n"
	"\tPAWL_SHARED float parts[32];\n"
	"\tx = pawl_warp_max(x);\n"
	"\tif (PAWL_LANE == 0)\n"
	"\t\tparts[PAWL_THREAD / PAWL_WARP] = x;\n"
	"\tPAWL_SYNC();\n"
	"\tx = parts[0];\n"
	"\tfor (int i = 1; i < PAWL_THREADS / PAWL_WARP; i++)\n"
	"\t\tx = pawl_max(x, parts[i]);\n"
	"\tPAWL_SYNC();\n"
	"\treturn x;\n"
	"}\n"
	"\n"
	"/* 16 bytes of weights, aligned to 16. */\n"
	"PAWL_FN void pawl_load_f32x4(const void *from, float *x)\n"
	"{\n"
	"\tu32 words[4];\n"
	"\tpawl_load16(from, words);\n"
	"\tfor (int i = 0; i < 4; i++)\n"
	"\t\tx[i] = pawl_f32_from_bits(words[i]);\n"
	"}\n"
	"PAWL_FN void pawl_load_f16x8(const void *from, float *x)\n"
	"{\n"
	"\tu32 words[4];\n"
	"\tpawl_load16(from, words);\n"
	"\tfor (int i = 0; i < 8; i++)\n"
	"\t\tx[i] = pawl_f32_from_f16((u16)(words[i / 2] >> (i % 2 * 16)));\n"
	"}\n"
	"PAWL_FN void pawl_load_bf16x8(const void *from, float *x)\n"
	"{\n"
	"\tu32 words[4];\n"
	"\tpawl_load16(from, words);\n"
	"\tfor (int i = 0; i < 8; i++)\n"
	"\t\tx[i] = pawl_f32_from_bf16((u16)(words[i / 2] >> (i % 2 * 16)));\n"
	"}\n"
	"\n";

static const char attention[] =
	"/* The tree 8, 4, 2, 1 over 16 lanes, which it destroys. */\n"
	"PAWL_FN float pawl_lanes_max(float *lanes)\n"
	"{\n"
	"\tfor (int width = PAWL_LANES / 2; width; width /= 2)\n"
	"\t\tfor (int i = 0; i < width; i++)\n"
	"\t\t\tlanes[i] = pawl_max(lanes[i], lanes[i + width]);\n"
	"\treturn lanes[0];\n"
	"}\n"
	"PAWL_FN float pawl_lanes_sum(float *lanes)\n"
	"{\n"
	"\tfor (int width = PAWL_LANES / 2; width; width /= 2)\n"
	"\t\tfor (int i = 0; i < width; i++)\n"
	"\t\t\tlanes[i] = lanes[i] + lanes[i + width];\n"
	"\treturn lanes[0];\n"
	"}\n"
	"PAWL_FN float pawl_attend_shift(float max) { return max == -PAWL_INF ? 0.0f : max; }\n"
	"PAWL_FN float pawl_attend_softcap(float score, float cap)\n"
	"{\n"
	"\treturn cap * pawl_tanh(score / cap);\n"
	"}\n"
	"/*\n"
	" * Scores w[head][position] of a chunk become weights; places low .. high - 1 are visible.\n"
	" * lanes[head][PAWL_LANES] is for work; max and sum get a number a head.  By the whole block,\n"
	" * after and before a barrier.\n"
	" */\n"
	"PAWL_FN void pawl_attend_weights(\n"
	"\tfloat *w, float *lanes, float *max, float *sum, int heads, int low, int high)\n"
	"{\n"
	"\tfor (int j = PAWL_THREAD; j < heads * PAWL_LANES; j += PAWL_THREADS) {\n"
	"\t\tfloat m = -PAWL_INF;\n"
	"\t\tfor (int i = j % PAWL_LANES; i < PAWL_ATTEND_CHUNK; i += PAWL_LANES)\n"
	"\t\t\tif (i >= low && i < high)\n"
	"\t\t\t\tm = pawl_max(m, w[j / PAWL_LANES * PAWL_ATTEND_CHUNK + i]);\n"
	"\t\tlanes[j] = m;\n"
	"\t}\n"
	"\tPAWL_SYNC();\n"
	"\tfor (int j = PAWL_THREAD; j < heads; j += PAWL_THREADS)\n"
	"\t\tmax[j] = pawl_lanes_max(lanes + j * PAWL_LANES);\n"
	"\tPAWL_SYNC();\n"
	"\tfor (int j = PAWL_THREAD; j < heads * PAWL_LANES; j += PAWL_THREADS) {\n"
	"\t\tconst float shift = pawl_attend_shift(max[j / PAWL_LANES]);\n"
	"\t\tfloat l = 0.0f;\n"
	"\t\tfor (int i = j % PAWL_LANES; i < PAWL_ATTEND_CHUNK; i += PAWL_LANES)\n"
	"\t\t\tif (i >= low && i < high) {\n"
	"\t\t\t\tfloat *const p = w + j / PAWL_LANES * PAWL_ATTEND_CHUNK + i;\n"
	"\t\t\t\t*p = pawl_exp(*p - shift);\n"
	"\t\t\t\tl = l + *p;\n"
	"\t\t\t}\n"
	"\t\tlanes[j] = l;\n"
	"\t}\n"
	"\tPAWL_SYNC();\n"
	"\tfor (int j = PAWL_THREAD; j < heads; j += PAWL_THREADS)\n"
	"\t\tsum[j] = pawl_lanes_sum(lanes + j * PAWL_LANES);\n"
	"}\n"
	"/* One value of a row: a total (max, sum, o) and what a later chunk adds to it. */\n"
	"PAWL_FN void pawl_attend_merge(\n"
	"\tfloat *max, float *sum, float *o, float next_max, float next_sum, float next_o)\n"
	"{\n"
	"\tconst float m = pawl_max(*max, next_max), shift = pawl_attend_shift(m);\n"
	"\tconst float a = pawl_exp(*max - shift), b = pawl_exp(next_max - shift);\n"
	"\t*max = m;\n"
	"\t*sum = pawl_fma(next_sum, b, *sum * a);\n"
	"\t*o = pawl_fma(next_o, b, *o * a);\n"
	"}\n";

void
pawl_cuda_prelude(struct pawl_cuda_text *out)
{
	pawl_cuda_text_print(out, "#ifndef PAWL_CUDA_PRELUDE\n#define PAWL_CUDA_PRELUDE\n");
	pawl_cuda_text_append(out, layer, strlen(layer));
	pawl_cuda_text_append(out, constants, strlen(constants));
	pawl_cuda_text_append(out, scalars, strlen(scalars));
	pawl_cuda_text_append(out, reductions, strlen(reductions));
	pawl_cuda_text_append(out, attention, strlen(attention));
	pawl_cuda_text_print(out, "#endif\n");
}
