#include "ir/decode.h"

#include "ir/half.h"
#include "ir/weight_block.h"

#include <string.h>

/* Elements of every type; a multiple of every block size. */
#define PIECE 256

static void
decode_weights(enum pawl_dtype dtype, const uint8_t *src, int64_t n, double *dst)
{
	const struct pawl_dtype_info *info = pawl_dtype_info(dtype);
	struct pawl_weight_block block;
	int64_t done;
	int g, i;

	for (done = 0; done < n; done += info->block, src += info->block_bytes) {
		pawl_weight_block_unpack(dtype, src, &block);
		for (g = 0; g < block.n_groups; g++) {
			double d = pawl_weight_scale(&block, g);
			double m = pawl_weight_offset(&block, g);

			for (i = g * block.group; i < (g + 1) * block.group; i++)
				dst[done + i] = d * block.q[i] + m;
		}
	}
}

static void
decode_a16(const uint8_t *src, int64_t n, double *dst)
{
	struct pawl_block_a16 block;
	int64_t done;
	int i;

	for (done = 0; done < n; done += 32, src += sizeof(block)) {
		memcpy(&block, src, sizeof(block));
		for (i = 0; i < 32; i++)
			dst[done + i] = (double)block.d * (128 * block.hi[i] + block.lo[i]);
	}
}

static void
decode_a8(const uint8_t *src, int64_t n, double *dst)
{
	struct pawl_block_a8 block;
	int64_t done;
	int i;

	for (done = 0; done < n; done += 32, src += sizeof(block)) {
		memcpy(&block, src, sizeof(block));
		for (i = 0; i < 32; i++)
			dst[done + i] = (double)block.d * block.q[i];
	}
}

/* One element of a plain type in the C type of the same layout. */
#define DECODE_PLAIN(type, value)                                                                  \
	for (i = 0; i < n; i++) {                                                                  \
		type x;                                                                            \
                                                                                                   \
		memcpy(&x, bytes + i * (int64_t)sizeof(x), sizeof(x));                             \
		dst[i] = (value);                                                                  \
	}                                                                                          \
	break

void
pawl_decode_f64(enum pawl_dtype dtype, const void *src, int64_t n, double *dst)
{
	const uint8_t *bytes = src;
	int64_t i;

	switch (dtype) {
	case PAWL_DTYPE_F32:
		DECODE_PLAIN(float, x);
	case PAWL_DTYPE_F16:
		DECODE_PLAIN(uint16_t, pawl_f32_from_f16(x));
	case PAWL_DTYPE_BF16:
		DECODE_PLAIN(uint16_t, pawl_f32_from_bf16(x));
	case PAWL_DTYPE_I8:
		DECODE_PLAIN(int8_t, x);
	case PAWL_DTYPE_I32:
		DECODE_PLAIN(int32_t, x);
	case PAWL_DTYPE_I64:
		DECODE_PLAIN(int64_t, (double)x);
	case PAWL_DTYPE_U32:
		DECODE_PLAIN(uint32_t, x);
	case PAWL_DTYPE_Q4_0:
	case PAWL_DTYPE_Q4_1:
	case PAWL_DTYPE_Q5_0:
	case PAWL_DTYPE_Q5_1:
	case PAWL_DTYPE_Q8_0:
	case PAWL_DTYPE_Q4_K:
	case PAWL_DTYPE_Q5_K:
	case PAWL_DTYPE_Q6_K:
		decode_weights(dtype, bytes, n, dst);
		break;
	case PAWL_DTYPE_A16:
		decode_a16(bytes, n, dst);
		break;
	case PAWL_DTYPE_A8:
		decode_a8(bytes, n, dst);
		break;
	case PAWL_N_DTYPES:
		break;
	}
}

static void
decode_in_pieces(enum pawl_dtype dtype, const uint8_t *src, int64_t n, float *dst)
{
	double piece[PIECE];
	int64_t done, count, i;

	for (done = 0; done < n; done += count) {
		count = n - done < PIECE ? n - done : PIECE;
		pawl_decode_f64(dtype, src + pawl_dtype_bytes(dtype, done), count, piece);
		for (i = 0; i < count; i++)
			dst[done + i] = (float)piece[i];
	}
}

void
pawl_decode_f32(enum pawl_dtype dtype, const void *src, int64_t n, float *dst)
{
	const uint8_t *bytes = src;
	int64_t i;

	switch (dtype) {
	case PAWL_DTYPE_F32:
		memcpy(dst, src, (size_t)n * sizeof(*dst));
		break;
	case PAWL_DTYPE_F16:
		DECODE_PLAIN(uint16_t, pawl_f32_from_f16(x));
	case PAWL_DTYPE_BF16:
		DECODE_PLAIN(uint16_t, pawl_f32_from_bf16(x));
	case PAWL_DTYPE_I64:
		DECODE_PLAIN(int64_t, (float)x);
	case PAWL_DTYPE_I8:
	case PAWL_DTYPE_I32:
	case PAWL_DTYPE_U32:
	case PAWL_DTYPE_Q4_0:
	case PAWL_DTYPE_Q4_1:
	case PAWL_DTYPE_Q5_0:
	case PAWL_DTYPE_Q5_1:
	case PAWL_DTYPE_Q8_0:
	case PAWL_DTYPE_Q4_K:
	case PAWL_DTYPE_Q5_K:
	case PAWL_DTYPE_Q6_K:
	case PAWL_DTYPE_A16:
	case PAWL_DTYPE_A8:
		decode_in_pieces(dtype, bytes, n, dst);
		break;
	case PAWL_N_DTYPES:
		break;
	}
}
