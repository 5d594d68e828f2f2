/*
 * The numbers of docs/arithmetic.md, "Functions": f32 values that every consumer (ir/eval.c,
 * the LLVM emitter, the CUDA emitter) takes from here.
 */
#ifndef PAWL_IR_EVAL_CONSTS_H
#define PAWL_IR_EVAL_CONSTS_H

/* exp is that of EXP_MOST above it, exactly 0 below EXP_LEAST. */
#define PAWL_EXP_MOST 88.0f
#define PAWL_EXP_LEAST (-60.0f)
#define PAWL_EXP_LOG2E 0x1.715476p+0f
/* LN2_HI + LN2_LO = ln 2 to 2^-54; both are subtracted through fma. */
#define PAWL_EXP_LN2_HI 0x1.62e430p-1f
#define PAWL_EXP_LN2_LO (-0x1.05c610p-29f)
/*
 * e^r = 1 + r + r^2 (C2 + C3 r + ... + C6 r^4) on |r| <= ln 2 / 2: minimax in relative error
 * (Remez), rounded to f32.
 */
#define PAWL_EXP_C2 0x1.fffffcp-2f
#define PAWL_EXP_C3 0x1.555492p-3f
#define PAWL_EXP_C4 0x1.5558f2p-5f
#define PAWL_EXP_C5 0x1.123a20p-7f
#define PAWL_EXP_C6 0x1.6a23d0p-10f

/* 0.044715 and sqrt(2 / pi), rounded to f32. */
#define PAWL_GELU_CUBIC 0x1.6e4e26p-5f
#define PAWL_GELU_SLOPE 0x1.988454p-1f

/* Activation quantizers: the largest integers, and the least maximum that is not zeroed. */
#define PAWL_A16_MOST 16256.0f
#define PAWL_A8_MOST 127.0f
#define PAWL_ACT_LEAST 0x1p-100f

/* Attention: positions a chunk; lanes of every reduction of a row. */
#define PAWL_ATTEND_CHUNK 128
#define PAWL_LANES 16

#endif
