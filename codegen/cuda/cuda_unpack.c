/* What takes a row of a block of packed weights (codegen/pack.h) apart: a function for each type. */
#include "codegen/cuda/cuda_emit.h"

#include <inttypes.h>

#include "codegen/pack.h"

/* q[v] = the four integers of columns 4 v .., which are not negative but for q8_0 and q6_k. */
static void
print_integers(struct pawl_cuda_text *out, const struct pawl_pack_format *f)
{
	if (f->planes == 8) {
		pawl_cuda_text_print(out,
			"\tfor (int v = 0; v < 8; v++)\n"
			"\t\tq[v] = pawl_load4(block + %d + 64 * v + 4 * r) ^ 0x80808080u;\n",
			f->plane_at);
		return;
	}
	pawl_cuda_text_print(out,
		"\tfor (int v = 0; v < 4; v++) {\n"
		"\t\tconst u32 word = pawl_load4(block + %d + 64 * v + 4 * r);\n"
		"\t\tq[v] = word & 0x0f0f0f0fu;\n"
		"\t\tq[v + 4] = word >> 4 & 0x0f0f0f0fu;\n"
		"\t}\n",
		f->plane_at);
	/* Four bits in a row become the fifth bits of four bytes. */
	if (f->planes == 5)
		pawl_cuda_text_print(out,
			"\tfor (int v = 0; v < 8; v++) {\n"
			"\t\tconst u32 word = pawl_load4(block + %d + 8 * v + r / 8 * 4);\n"
			"\t\tconst u32 bits = (word >> r %% 8 * 4 & 15u) * 0x00204081u;\n"
			"\t\tq[v] |= (bits & 0x01010101u) << 4;\n"
			"\t}\n",
			f->high_at);
	/* 0x80 keeps a byte from borrowing of the next. */
	if (f->planes == 6)
		pawl_cuda_text_print(out,
			"\tfor (int h = 0; h < 2; h++) {\n"
			"\t\tconst u32 word = pawl_load4(block + %d + 64 * h + 4 * r);\n"
			"\t\tfor (int i = 0; i < 4; i++) {\n"
			"\t\t\tconst u32 bits = q[4 * h + i] | (word >> 2 * i & 0x03030303u) << 4;\n"
			"\t\t\tq[4 * h + i] = ((bits | 0x80808080u) - 0x20202020u) ^ 0x80808080u;\n"
			"\t\t}\n"
			"\t}\n",
			f->high_at);
}

static void
print_scales(struct pawl_cuda_text *out, const struct pawl_pack_format *f)
{
	if (f->group == 1) {
		pawl_cuda_text_print(
			out, "\td[0] = pawl_half_of(block + %d + 2 * r);\n", f->scale_at);
		if (f->has_offset)
			pawl_cuda_text_print(
				out, "\td[1] = pawl_half_of(block + %d + 2 * r);\n", f->offset_at);
		return;
	}
	pawl_cuda_text_print(out,
		"\tconst unsigned char *const bytes = header + %d + b %% %d * %d;\n"
		"\td[0] = pawl_half_of(header + 2 * r) * (float)(signed char)bytes[r];\n",
		PAWL_PACK_BYTES_AT, f->group, PAWL_PACK_BYTES);
	if (f->n_scales == 2)
		pawl_cuda_text_print(out,
			"\td[1] = pawl_half_of(header + 2 * r) * (float)(signed char)bytes[%d + r];\n",
			PAWL_TILE_ROWS);
	if (f->has_offset)
		pawl_cuda_text_print(out,
			"\td[1] = pawl_neg(pawl_half_of(header + %d + 2 * r) * (float)bytes[%d + r]);\n",
			PAWL_PACK_LEAST_AT, PAWL_TILE_ROWS);
}

void
pawl_cuda_unpacker(struct pawl_cuda_text *out, enum pawl_dtype dtype)
{
	const char *name = pawl_dtype_name(dtype);
	struct pawl_pack_format f;
	int64_t group_bytes;

	if (!pawl_pack_format(dtype, &f))
		return;
	group_bytes = f.header_bytes + (int64_t)f.group * f.block_bytes;
	pawl_cuda_text_print(out,
		"#ifndef PAWL_UNPACKS_%s\n#define PAWL_UNPACKS_%s\n"
		"/*\n * Row r of block b of a tile of %s (codegen/pack.h): 32 integers, four in a word;\n"
		" * d: scale%s.\n */\n"
		"PAWL_FN void pawl_unpack_%s(const unsigned char *tile, int b, int r, u32 *q, float *d)\n"
		"{\n",
		name, name, name,
		f.n_scales == 2 ? "s of columns 0-15 and 16-31"
		: f.has_offset  ? " and offset"
				: "",
		name);
	if (f.group == 1)
		pawl_cuda_text_print(out,
			"\tconst unsigned char *const block = tile + (i64)b * %d;\n", f.block_bytes);
	else
		pawl_cuda_text_print(out,
			"\tconst unsigned char *const header = tile + (i64)(b / %d) * %" PRId64 ";\n"
			"\tconst unsigned char *const block = header + %d + b %% %d * %d;\n",
			f.group, group_bytes, f.header_bytes, f.group, f.block_bytes);
	print_integers(out, &f);
	print_scales(out, &f);
	pawl_cuda_text_print(out, "}\n#endif\n");
}
