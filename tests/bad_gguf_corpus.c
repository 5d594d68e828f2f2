#include "tests/bad_gguf_corpus.h"

#include <stdlib.h>
#include <string.h>

#include "tests/gguf_build.h"

/* Bytes written over a small well-formed file. */
struct patch {
	const char *name;
	size_t at;
	const char *bytes;
	size_t n;
	const char *says;
};

/* The last metadata record of a file that ends with it. */
struct bad_value {
	const char *name;
	const char *bytes;
	size_t n;
	const char *says;
};

/* Up to two records after that of the good tensor "t"; 32 bytes of its data, 256 more follow. */
struct bad_tensor {
	const char *name;
	struct pawl_gguf_build_record records[2];
	const char *says;
};

struct bad_other {
	const char *name;
	void *(*make)(size_t *n_bytes);
	const char *says;
};

#define LITERAL(bytes) (bytes), sizeof(bytes) - 1
#define KEY "\4\0\0\0\0\0\0\0test"
#define ALIGNMENT "\x11\0\0\0\0\0\0\0general.alignment"
#define ONES "\xff\xff\xff\xff\xff\xff\xff\xff"
#define TWO_TO_60 "\0\0\0\0\0\0\0\x10"
#define TWO_TO_61 "\0\0\0\0\0\0\0\x20"
#define TWO_TO_62 "\0\0\0\0\0\0\0\x40"
#define TWO_TO_63 "\0\0\0\0\0\0\0\x80"

static const struct patch patches[] = {
	{"magic-of-ggml", 0, LITERAL("GGML"),
		"byte 0: magic: not a GGUF file: begins with 0x47474d4c"},
	{"magic-in-lower-case", 0, LITERAL("gguf"),
		"byte 0: magic: not a GGUF file: begins with 0x67677566"},
	{"magic-reversed", 0, LITERAL("FUGG"),
		"byte 0: magic: not a GGUF file: begins with 0x46554747"},
	{"magic-zero", 0, LITERAL("\0\0\0\0"),
		"byte 0: magic: not a GGUF file: begins with 0x00000000"},
	{"version-0", 4, LITERAL("\0\0\0\0"), "byte 4: version: 0 is not read (2 and 3 are)"},
	{"version-1", 4, LITERAL("\1\0\0\0"), "byte 4: version: 1 is not read (2 and 3 are)"},
	{"version-4", 4, LITERAL("\4\0\0\0"), "byte 4: version: 4 is not read (2 and 3 are)"},
	{"version-big-endian", 4, LITERAL("\0\0\0\3"),
		"byte 4: version: 50331648 is not read (2 and 3 are); a big-endian file?"},
	{"version-all-ones", 4, LITERAL("\xff\xff\xff\xff"),
		"byte 4: version: 4294967295 is not read (2 and 3 are)"},
	{"tensors-2-to-61", 8, LITERAL(TWO_TO_61),
		"byte 8: tensor count: 2305843009213693952 do not fit in 692 bytes"},
	{"tensors-2-to-63", 8, LITERAL(TWO_TO_63),
		"byte 8: tensor count: 9223372036854775808 do not fit in 692 bytes"},
	{"tensors-all-ones", 8, LITERAL(ONES),
		"byte 8: tensor count: 18446744073709551615 do not fit in 692 bytes"},
	/* SIZE_MAX / 88 - 1: passes a bound made with a small struct */
	{"tensors-wrap-in-a-bigger-struct", 8, LITERAL("\x2d\xba\xe8\xa2\x8b\x2e\xba\x02"),
		"byte 8: tensor count: 196520711012530733 do not fit in 692 bytes"},
	{"tensors-one-too-many", 8, LITERAL("\4\0\0\0\0\0\0\0"),
		"byte 570: tensor 3: name: is empty"},
	{"values-2-to-60", 16, LITERAL(TWO_TO_60),
		"byte 16: metadata count: 1152921504606846976 do not fit in 692 bytes"},
	{"values-2-to-63", 16, LITERAL(TWO_TO_63),
		"byte 16: metadata count: 9223372036854775808 do not fit in 692 bytes"},
	{"values-all-ones", 16, LITERAL(ONES),
		"byte 16: metadata count: 18446744073709551615 do not fit in 692 bytes"},
	{"values-one-too-many", 16, LITERAL("\x11\0\0\0\0\0\0\0"),
		"byte 453: tensor 0: name: is empty"},
	{"values-one-too-few", 16, LITERAL("\x0f\0\0\0\0\0\0\0"),
		"byte 416: tensor 0 (bools): rank: 9 is not 1..4"},
};

static const struct bad_value bad_values[] = {
	{"key-empty", LITERAL("\0\0\0\0\0\0\0\0\4\0\0\0\1\0\0\0"),
		"byte 45: metadata 1: key: is empty"},
	{"key-2-to-62", LITERAL(TWO_TO_62 "test\4\0\0\0\1\0\0\0"),
		"byte 45: metadata 1: key: its length 4611686018427387904 exceeds the 12 bytes "
		"left"},
	{"key-all-ones", LITERAL(ONES "test\4\0\0\0\1\0\0\0"),
		"byte 45: metadata 1: key: its length 18446744073709551615 exceeds the 12 bytes "
		"left"},
	{"key-one-too-long", LITERAL("\x0d\0\0\0\0\0\0\0test\4\0\0\0\1\0\0\0"),
		"byte 45: metadata 1: key: its length 13 exceeds the 12 bytes left"},
	{"key-with-zero", LITERAL("\4\0\0\0\0\0\0\0t\0st\4\0\0\0\1\0\0\0"),
		"byte 54: metadata 1: key: character 0x00 is not printable ASCII"},
	{"key-with-newline", LITERAL("\4\0\0\0\0\0\0\0tes\n\4\0\0\0\1\0\0\0"),
		"byte 56: metadata 1: key: character 0x0a is not printable ASCII"},
	{"key-with-escape", LITERAL("\4\0\0\0\0\0\0\0\33[2J\4\0\0\0\1\0\0\0"),
		"byte 53: metadata 1: key: character 0x1b is not printable ASCII"},
	{"key-not-ascii", LITERAL("\4\0\0\0\0\0\0\0t\xc3\xa9s\4\0\0\0\1\0\0\0"),
		"byte 54: metadata 1: key: character 0xc3 is not printable ASCII"},
	{"key-twice", LITERAL("\5\0\0\0\0\0\0\0first\4\0\0\0\1\0\0\0"),
		"byte 53: metadata 1 (first): key: is the same as that of metadata 0"},
	{"value-type-13", LITERAL(KEY "\x0d\0\0\0\1\0\0\0"),
		"byte 57: metadata 1 (test): value type: there is no type 13"},
	{"value-type-9999", LITERAL(KEY "\x0f\x27\0\0\1\0\0\0"),
		"byte 57: metadata 1 (test): value type: there is no type 9999"},
	{"value-type-all-ones", LITERAL(KEY "\xff\xff\xff\xff\1\0\0\0"),
		"byte 57: metadata 1 (test): value type: there is no type 4294967295"},
	{"value-type-cut", LITERAL(KEY "\4\0"),
		"byte 57: metadata 1 (test): value type: the file ends: 4 bytes needed, 2 left"},
	{"u32-cut", LITERAL(KEY "\4\0\0\0\1\0"),
		"byte 61: metadata 1 (test): value: the file ends: 4 bytes needed, 2 left"},
	{"u64-cut", LITERAL(KEY "\x0a\0\0\0\1\0\0\0\0\0\0"),
		"byte 61: metadata 1 (test): value: the file ends: 8 bytes needed, 7 left"},
	{"f64-missing", LITERAL(KEY "\x0c\0\0\0"),
		"byte 61: metadata 1 (test): value: the file ends: 8 bytes needed, 0 left"},
	{"bool-2", LITERAL(KEY "\7\0\0\0\2"),
		"byte 61: metadata 1 (test): value: bool 0 is 2, neither 0 nor 1"},
	{"bool-255", LITERAL(KEY "\7\0\0\0\xff"),
		"byte 61: metadata 1 (test): value: bool 0 is 255, neither 0 nor 1"},
	{"string-2-to-63", LITERAL(KEY "\x08\0\0\0" TWO_TO_63 "text"),
		"byte 61: metadata 1 (test): value: its length 9223372036854775808 exceeds the 4 "
		"bytes left"},
	{"string-all-ones", LITERAL(KEY "\x08\0\0\0" ONES "text"),
		"byte 61: metadata 1 (test): value: its length 18446744073709551615 exceeds the 4 "
		"bytes left"},
	{"string-4-gigabytes", LITERAL(KEY "\x08\0\0\0\0\0\0\0\1\0\0\0text"),
		"byte 61: metadata 1 (test): value: its length 4294967296 exceeds the 4 bytes "
		"left"},
	{"string-one-too-long", LITERAL(KEY "\x08\0\0\0\5\0\0\0\0\0\0\0text"),
		"byte 61: metadata 1 (test): value: its length 5 exceeds the 4 bytes left"},
	{"string-length-cut", LITERAL(KEY "\x08\0\0\0\5\0\0\0"),
		"byte 61: metadata 1 (test): value: the file ends: 8 bytes needed, 4 left"},
	{"array-of-arrays", LITERAL(KEY "\x09\0\0\0\x09\0\0\0\1\0\0\0\0\0\0\0"),
		"byte 61: metadata 1 (test): element type: arrays of arrays are not read"},
	{"array-type-13", LITERAL(KEY "\x09\0\0\0\x0d\0\0\0\1\0\0\0\0\0\0\0"),
		"byte 61: metadata 1 (test): element type: there is no type 13"},
	{"array-type-all-ones", LITERAL(KEY "\x09\0\0\0\xff\xff\xff\xff\1\0\0\0\0\0\0\0"),
		"byte 61: metadata 1 (test): element type: there is no type 4294967295"},
	{"array-length-cut", LITERAL(KEY "\x09\0\0\0\4\0\0\0\1\0\0\0"),
		"byte 65: metadata 1 (test): array length: the file ends: 8 bytes needed, 4 left"},
	{"array-u8-all-ones", LITERAL(KEY "\x09\0\0\0\0\0\0\0" ONES "1234"),
		"byte 65: metadata 1 (test): array length: 18446744073709551615 elements of type "
		"u8 do not fit in 4 bytes"},
	{"array-u16-wraps", LITERAL(KEY "\x09\0\0\0\2\0\0\0" TWO_TO_63 "1234"),
		"byte 65: metadata 1 (test): array length: 9223372036854775808 elements of type "
		"u16 do not fit in 4 bytes"},
	{"array-f32-wraps", LITERAL(KEY "\x09\0\0\0\6\0\0\0" TWO_TO_62 "1234"),
		"byte 65: metadata 1 (test): array length: 4611686018427387904 elements of type "
		"f32 do not fit in 4 bytes"},
	{"array-f64-wraps", LITERAL(KEY "\x09\0\0\0\x0c\0\0\0" TWO_TO_61 "1234"),
		"byte 65: metadata 1 (test): array length: 2305843009213693952 elements of type "
		"f64 do not fit in 4 bytes"},
	{"array-u32-one-too-many",
		LITERAL(KEY "\x09\0\0\0\4\0\0\0\2\0\0\0\0\0\0\0"
			    "1234"),
		"byte 65: metadata 1 (test): array length: 2 elements of type u32 do not fit in 4 "
		"bytes"},
	{"array-bool-2", LITERAL(KEY "\x09\0\0\0\7\0\0\0\3\0\0\0\0\0\0\0\1\0\2"),
		"byte 75: metadata 1 (test): value: bool 2 is 2, neither 0 nor 1"},
	{"array-strings-2-to-61", LITERAL(KEY "\x09\0\0\0\x08\0\0\0" TWO_TO_61 "\1\0\0\0\0\0\0\0a"),
		"byte 65: metadata 1 (test): array length: 2305843009213693952 elements of type "
		"string do not fit in 9 bytes"},
	{"array-strings-all-ones", LITERAL(KEY "\x09\0\0\0\x08\0\0\0" ONES "\1\0\0\0\0\0\0\0a"),
		"byte 65: metadata 1 (test): array length: 18446744073709551615 elements of type "
		"string do not fit in 9 bytes"},
	{"array-strings-one-too-many",
		LITERAL(KEY "\x09\0\0\0\x08\0\0\0\2\0\0\0\0\0\0\0\7\0\0\0\0\0\0\0abcdefgh"),
		"byte 88: metadata 1 (test): array: the file ends in string 1 of 2"},
	{"array-string-wraps",
		LITERAL(KEY "\x09\0\0\0\x08\0\0\0\2\0\0\0\0\0\0\0"
			    "\1\0\0\0\0\0\0\0a\xf0\xff\xff\xff\xff\xff\xff\xff"),
		"byte 82: metadata 1 (test): array: the length 18446744073709551600 of string 1 "
		"exceeds the 0 bytes left"},
	{"array-string-one-too-long",
		LITERAL(KEY "\x09\0\0\0\x08\0\0\0\2\0\0\0\0\0\0\0"
			    "\1\0\0\0\0\0\0\0a\2\0\0\0\0\0\0\0b"),
		"byte 82: metadata 1 (test): array: the length 2 of string 1 exceeds the 1 bytes "
		"left"},
	{"alignment-0", LITERAL(ALIGNMENT "\4\0\0\0\0\0\0\0"),
		"byte 74: metadata 1 (general.alignment): value: 0 is not a non-zero multiple of 8 "
		"up to 1048576"},
	{"alignment-1", LITERAL(ALIGNMENT "\4\0\0\0\1\0\0\0"),
		"byte 74: metadata 1 (general.alignment): value: 1 is not a non-zero multiple of 8 "
		"up to 1048576"},
	{"alignment-3", LITERAL(ALIGNMENT "\4\0\0\0\3\0\0\0"),
		"byte 74: metadata 1 (general.alignment): value: 3 is not a non-zero multiple of 8 "
		"up to 1048576"},
	{"alignment-12", LITERAL(ALIGNMENT "\4\0\0\0\x0c\0\0\0"),
		"byte 74: metadata 1 (general.alignment): value: 12 is not a non-zero multiple of "
		"8 up to 1048576"},
	{"alignment-1-mebibyte-and-8", LITERAL(ALIGNMENT "\4\0\0\0\x08\0\x10\0"),
		"byte 74: metadata 1 (general.alignment): value: 1048584 is not a non-zero "
		"multiple of 8 up to 1048576"},
	{"alignment-2-to-30", LITERAL(ALIGNMENT "\4\0\0\0\0\0\0\x40"),
		"byte 74: metadata 1 (general.alignment): value: 1073741824 is not a non-zero "
		"multiple of 8 up to 1048576"},
	{"alignment-all-ones", LITERAL(ALIGNMENT "\4\0\0\0\xff\xff\xff\xff"),
		"byte 74: metadata 1 (general.alignment): value: 4294967295 is not a non-zero "
		"multiple of 8 up to 1048576"},
	{"alignment-i32", LITERAL(ALIGNMENT "\5\0\0\0\x20\0\0\0"),
		"byte 74: metadata 1 (general.alignment): value: wanted u32, found i32"},
	{"alignment-u64", LITERAL(ALIGNMENT "\x0a\0\0\0\x20\0\0\0\0\0\0\0"),
		"byte 74: metadata 1 (general.alignment): value: wanted u32, found u64"},
	{"alignment-bool", LITERAL(ALIGNMENT "\7\0\0\0\1"),
		"byte 74: metadata 1 (general.alignment): value: wanted u32, found bool"},
	{"alignment-string",
		LITERAL(ALIGNMENT "\x08\0\0\0\2\0\0\0\0\0\0\0"
				  "32"),
		"byte 74: metadata 1 (general.alignment): value: wanted u32, found string"},
	{"alignment-array", LITERAL(ALIGNMENT "\x09\0\0\0\4\0\0\0\0\0\0\0\0\0\0\0"),
		"byte 86: metadata 1 (general.alignment): value: wanted u32, found array"},
};

enum { F32 = 0, Q4_0 = 2, Q6_K = 14, I8 = 24, I64 = 27 };
#define U .name = "u"

static const struct bad_tensor bad_tensors[] = {
	{"name-empty", {{.name = "", .rank = 1, .n_dims = 1, .dims = {8}}},
		"byte 78: tensor 1: name: is empty"},
	{"name-2-to-62", {{U, .name_length = 1ull << 62, .rank = 1, .n_dims = 1, .dims = {8}}},
		"byte 78: tensor 1: name: its length 4611686018427387904 exceeds the 330 bytes "
		"left"},
	{"name-with-newline", {{.name = "u\nv", .rank = 1, .n_dims = 1, .dims = {8}}},
		"byte 87: tensor 1: name: character 0x0a is not printable ASCII"},
	{"name-twice", {{.name = "t", .rank = 1, .n_dims = 1, .dims = {8}, .offset = 32}},
		"byte 86: tensor 1 (t): name: is the same as that of tensor 0"},
	{"rank-0", {{U, .rank = 0}}, "byte 87: tensor 1 (u): rank: 0 is not 1..4"},
	{"rank-5", {{U, .rank = 5, .n_dims = 5, .dims = {1, 1, 1, 1, 1}}},
		"byte 87: tensor 1 (u): rank: 5 is not 1..4"},
	{"rank-9", {{U, .rank = 9, .n_dims = 8, .dims = {1, 1, 1, 1, 1, 1, 1, 1}}},
		"byte 87: tensor 1 (u): rank: 9 is not 1..4"},
	{"rank-all-ones", {{U, .rank = UINT32_MAX, .n_dims = 1, .dims = {8}}},
		"byte 87: tensor 1 (u): rank: 4294967295 is not 1..4"},
	{"dim-zero", {{U, .rank = 1, .n_dims = 1, .dims = {0}, .offset = 32}},
		"byte 91: tensor 1 (u): dims: dim 0 is 0"},
	{"second-dim-zero", {{U, .rank = 2, .n_dims = 2, .dims = {4, 0}, .offset = 32}},
		"byte 99: tensor 1 (u): dims: dim 1 is 0"},
	{"dim-all-ones", {{U, .rank = 2, .n_dims = 2, .dims = {UINT64_MAX, 2}, .offset = 32}},
		"byte 91: tensor 1 (u): dims: dim 0 is 18446744073709551615"},
	{"dim-2-to-63", {{U, .rank = 1, .n_dims = 1, .dims = {1ull << 63}, .offset = 32}},
		"byte 91: tensor 1 (u): dims: dim 0 is 9223372036854775808"},
	{"dims-wrap-to-a-few",
		{{U, .rank = 2, .n_dims = 2, .dims = {(1ull << 42) + 1, 1152}, .offset = 32}},
		"byte 111: tensor 1 (u): offset: the data of 20266198323171840 bytes ends beyond "
		"the file: 256 are there"},
	{"dims-wrap-to-0",
		{{U, .rank = 2, .n_dims = 2, .dims = {1ull << 32, 1ull << 32}, .offset = 32}},
		"byte 91: tensor 1 (u): dims: their product overflows at dim 1"},
	{"dims-wrap-late",
		{{U, .rank = 4, .n_dims = 4, .dims = {1ull << 20, 1 << 20, 1 << 20, 16},
			.offset = 32}},
		"byte 91: tensor 1 (u): dims: their product overflows at dim 3"},
	{"bytes-wrap-to-0", {{U, .rank = 1, .n_dims = 1, .dims = {1ull << 62}, .offset = 32}},
		"byte 91: tensor 1 (u): dims: the bytes of 4611686018427387904 elements of f32 "
		"overflow"},
	{"bytes-of-i64-wrap",
		{{U, .rank = 1, .n_dims = 1, .dims = {(1ull << 61) + 1}, .type = I64,
			.offset = 32}},
		"byte 91: tensor 1 (u): dims: the bytes of 2305843009213693953 elements of i64 "
		"overflow"},
	{"bytes-of-blocks-huge",
		{{U, .rank = 2, .n_dims = 2, .dims = {32, INT64_MAX / 32}, .type = 7,
			.offset = 32}},
		"byte 111: tensor 1 (u): offset: the data of 6917529027641081832 bytes ends beyond "
		"the file: 256 are there"},
	{"dim-no-multiple-of-32",
		{{U, .rank = 1, .n_dims = 1, .dims = {33}, .type = Q4_0, .offset = 32}},
		"byte 91: tensor 1 (u): dims: dim 0 is 33, not a multiple of the block of 32 that "
		"q4_0 has"},
	{"dim-no-multiple-of-256",
		{{U, .rank = 2, .n_dims = 2, .dims = {128, 2}, .type = Q6_K, .offset = 32}},
		"byte 91: tensor 1 (u): dims: dim 0 is 128, not a multiple of the block of 256 "
		"that q6_k has"},
	{"type-4", {{U, .rank = 1, .n_dims = 1, .dims = {32}, .type = 4, .offset = 32}},
		"byte 99: tensor 1 (u): type: there is no tensor type 4"},
	{"type-31", {{U, .rank = 1, .n_dims = 1, .dims = {32}, .type = 31, .offset = 32}},
		"byte 99: tensor 1 (u): type: there is no tensor type 31"},
	{"type-9999", {{U, .rank = 1, .n_dims = 1, .dims = {32}, .type = 9999, .offset = 32}},
		"byte 99: tensor 1 (u): type: there is no tensor type 9999"},
	{"type-all-ones",
		{{U, .rank = 1, .n_dims = 1, .dims = {32}, .type = UINT32_MAX, .offset = 32}},
		"byte 99: tensor 1 (u): type: there is no tensor type 4294967295"},
	{"type-unknown-and-dims-wrap",
		{{U, .rank = 2, .n_dims = 2, .dims = {1ull << 32, 1ull << 32}, .type = 9999}},
		"byte 107: tensor 1 (u): type: there is no tensor type 9999"},
	{"offset-1", {{U, .rank = 1, .n_dims = 1, .dims = {8}, .offset = 1}},
		"byte 103: tensor 1 (u): offset: 1 is not a multiple of the alignment 32"},
	{"offset-half-the-alignment", {{U, .rank = 1, .n_dims = 1, .dims = {8}, .offset = 48}},
		"byte 103: tensor 1 (u): offset: 48 is not a multiple of the alignment 32"},
	{"offset-at-the-end", {{U, .rank = 1, .n_dims = 1, .dims = {8}, .offset = 288}},
		"byte 103: tensor 1 (u): offset: the data of 32 bytes ends beyond the file: 0 are "
		"there"},
	{"data-past-the-end", {{U, .rank = 1, .n_dims = 1, .dims = {16}, .offset = 256}},
		"byte 103: tensor 1 (u): offset: the data of 64 bytes ends beyond the file: 32 are "
		"there"},
	{"data-one-byte-past-the-end",
		{{U, .rank = 1, .n_dims = 1, .dims = {257}, .type = I8, .offset = 32}},
		"byte 103: tensor 1 (u): offset: the data of 257 bytes ends beyond the file: 256 "
		"are there"},
	{"offset-2-to-63", {{U, .rank = 1, .n_dims = 1, .dims = {8}, .offset = 1ull << 63}},
		"byte 103: tensor 1 (u): offset: the data of 32 bytes ends beyond the file: 0 are "
		"there"},
	{"offset-wraps", {{U, .rank = 1, .n_dims = 1, .dims = {8}, .offset = UINT64_MAX - 31}},
		"byte 103: tensor 1 (u): offset: the data of 32 bytes ends beyond the file: 0 are "
		"there"},
	{"same-data", {{U, .rank = 1, .n_dims = 1, .dims = {8}, .offset = 0}},
		"byte 103: tensor 1 (u): offset: the data overlaps that of tensor 0 by 32 bytes"},
	{"overlap",
		{{U, .rank = 1, .n_dims = 1, .dims = {16}, .offset = 32},
			{.name = "v", .rank = 1, .n_dims = 1, .dims = {8}, .offset = 64}},
		"byte 136: tensor 2 (v): offset: the data overlaps that of tensor 1 by 32 bytes"},
	{"overlap-by-a-byte",
		{{U, .rank = 1, .n_dims = 1, .dims = {33}, .type = I8, .offset = 32},
			{.name = "v", .rank = 1, .n_dims = 1, .dims = {8}, .offset = 64}},
		"byte 136: tensor 2 (v): offset: the data overlaps that of tensor 1 by 1 bytes"},
	{"overlap-in-another-order",
		{{U, .rank = 1, .n_dims = 1, .dims = {8}, .offset = 64}, {.name = "v",
										 .rank = 1,
										 .n_dims = 1,
										 .dims = {40},
										 .type = I8,
										 .offset = 32}},
		"byte 103: tensor 1 (u): offset: the data overlaps that of tensor 2 by 8 bytes"},
	{"gap", {{U, .rank = 1, .n_dims = 1, .dims = {8}, .offset = 64}},
		"byte 103: tensor 1 (u): offset: the data begins at byte 192 of the file, due is "
		"160"},
};

/* A file of one value, to which the maker of a fault adds. */
static struct pawl_gguf_build *
begin(void)
{
	struct pawl_gguf_build *b = pawl_gguf_build_new(3);

	pawl_gguf_build_u32(b, "first", 1);
	return b;
}

static void *
make_empty(size_t *n_bytes)
{
	*n_bytes = 0;
	return calloc(1, 1);
}

static void *
make_other_format(size_t *n_bytes)
{
	static const char text[] = "{\"architectures\": [\"LlamaForCausalLM\"]}\n";

	*n_bytes = sizeof(text) - 1;
	return memcpy(malloc(sizeof(text)), text, sizeof(text));
}

static void *
make_long_key(size_t *n_bytes)
{
	struct pawl_gguf_build *b = begin();
	char key[65537];

	memset(key, 'k', sizeof(key) - 1);
	key[sizeof(key) - 1] = '\0';
	pawl_gguf_build_u32(b, key, 1);
	return pawl_gguf_build_finish(b, n_bytes);
}

static void *
make_distant_duplicate(size_t *n_bytes)
{
	struct pawl_gguf_build *b = begin();
	char key[16] = "k000";
	int i;

	for (i = 0; i < 100; i++) {
		key[1] = (char)('0' + i / 10);
		key[2] = (char)('0' + i % 10);
		pawl_gguf_build_u32(b, key, 1);
	}
	pawl_gguf_build_f32(b, "k500", 1.0f);
	return pawl_gguf_build_finish(b, n_bytes);
}

static void *
make_long_name(size_t *n_bytes)
{
	struct pawl_gguf_build *b = begin();
	char name[257];

	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	pawl_gguf_build_tensor(b, name, PAWL_DTYPE_F32, 1, (int64_t[]){8}, NULL);
	return pawl_gguf_build_finish(b, n_bytes);
}

static void *
make_late_start(size_t *n_bytes)
{
	struct pawl_gguf_build *b = begin();

	pawl_gguf_build_record(
		b, &(struct pawl_gguf_build_record){
			   .name = "t", .rank = 1, .n_dims = 1, .dims = {8}, .offset = 32});
	pawl_gguf_build_data(b, NULL, 64);
	return pawl_gguf_build_finish(b, n_bytes);
}

static void *
make_no_data(size_t *n_bytes)
{
	struct pawl_gguf_build *b = begin();

	pawl_gguf_build_record(b,
		&(struct pawl_gguf_build_record){.name = "t", .rank = 1, .n_dims = 1, .dims = {8}});
	return pawl_gguf_build_finish(b, n_bytes);
}

/* The end of the file falls into the padding before the data section. */
static void *
make_no_padding(size_t *n_bytes)
{
	void *bytes = make_no_data(n_bytes);

	*n_bytes -= 2;
	return bytes;
}

static void *
make_misplaced_alignment(size_t *n_bytes)
{
	struct pawl_gguf_build *b = begin();

	pawl_gguf_build_alignment(b, 1 << 16);
	pawl_gguf_build_tensor(b, "t", PAWL_DTYPE_F32, 1, (int64_t[]){8}, NULL);
	pawl_gguf_build_record(
		b, &(struct pawl_gguf_build_record){
			   .name = "u", .rank = 1, .n_dims = 1, .dims = {8}, .offset = 32});
	return pawl_gguf_build_finish(b, n_bytes);
}

static const struct bad_other others[] = {
	{"empty", make_empty, "byte 0: magic: the file ends: 4 bytes needed, 0 left"},
	{"json", make_other_format, "byte 0: magic: not a GGUF file: begins with 0x7b226172"},
	{"key-of-65536", make_long_key,
		"byte 45: metadata 1: key: its length 65536 exceeds the limit of 65535"},
	{"key-twice-far-apart", make_distant_duplicate,
		"byte 2053: metadata 101 (k500): key: is the same as that of metadata 51"},
	{"name-of-256", make_long_name,
		"byte 45: tensor 0: name: its length 256 exceeds the limit of 255"},
	{"data-starts-late", make_late_start,
		"byte 70: tensor 0 (t): offset: the data begins at byte 128 of the file, due is "
		"96"},
	{"data-missing", make_no_data,
		"byte 70: tensor 0 (t): offset: the data of 32 bytes ends beyond the file: 0 are "
		"there"},
	{"padding-missing", make_no_padding,
		"byte 70: tensor 0 (t): offset: the data of 32 bytes ends beyond the file: 0 are "
		"there"},
	{"offset-ignores-the-alignment", make_misplaced_alignment,
		"byte 136: tensor 1 (u): offset: 32 is not a multiple of the alignment 65536"},
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

void *
pawl_small_gguf(unsigned int version, size_t *n_bytes)
{
	static const char *const words[] = {"", "a", "longer word"};
	struct pawl_gguf_build *b = pawl_gguf_build_new(version);

	pawl_gguf_build_u8(b, "u8", UINT8_MAX);
	pawl_gguf_build_i8(b, "i8", INT8_MIN);
	pawl_gguf_build_u16(b, "u16", UINT16_MAX);
	pawl_gguf_build_i16(b, "i16", INT16_MIN);
	pawl_gguf_build_u32(b, "u32", UINT32_MAX);
	pawl_gguf_build_i32(b, "i32", INT32_MIN);
	pawl_gguf_build_u64(b, "u64", UINT64_MAX);
	pawl_gguf_build_i64(b, "i64", INT64_MIN);
	pawl_gguf_build_f32(b, "f32", 0.1f);
	pawl_gguf_build_f64(b, "f64", 0.1);
	pawl_gguf_build_bool(b, "bool", true);
	pawl_gguf_build_string(b, "string", "a\tb");
	pawl_gguf_build_strings(b, "strings", words, COUNT(words));
	pawl_gguf_build_array(b, "i32s", PAWL_GGUF_I32, (int32_t[]){1, -2, 3}, 3);
	pawl_gguf_build_array(b, "f32s", PAWL_GGUF_F32, (float[]){0.5f, -1.0f}, 2);
	pawl_gguf_build_array(b, "bools", PAWL_GGUF_BOOL, (uint8_t[]){0, 1}, 2);
	pawl_gguf_build_tensor(
		b, "vector", PAWL_DTYPE_F32, 1, (int64_t[]){3}, (float[]){1.0f, 2.0f, 3.0f});
	pawl_gguf_build_tensor(b, "blocks", PAWL_DTYPE_Q4_0, 2, (int64_t[]){64, 2}, NULL);
	pawl_gguf_build_tensor(b, "cube", PAWL_DTYPE_F16, 3, (int64_t[]){2, 3, 1},
		(uint16_t[]){1, 2, 3, 4, 5, 0xffff});
	return pawl_gguf_build_finish(b, n_bytes);
}

size_t
pawl_n_bad_ggufs(void)
{
	return COUNT(patches) + COUNT(bad_values) + COUNT(bad_tensors) + COUNT(others);
}

static void
make_patch(const struct patch *patch, struct pawl_bad_gguf *out)
{
	out->name = patch->name;
	out->says = patch->says;
	out->bytes = pawl_small_gguf(3, &out->n_bytes);
	memcpy((char *)out->bytes + patch->at, patch->bytes, patch->n);
}

static void
make_value(const struct bad_value *value, struct pawl_bad_gguf *out)
{
	struct pawl_gguf_build *b = begin();

	out->name = value->name;
	out->says = value->says;
	pawl_gguf_build_raw_value(b, value->bytes, value->n);
	out->bytes = pawl_gguf_build_finish(b, &out->n_bytes);
}

static void
make_tensor(const struct bad_tensor *tensor, struct pawl_bad_gguf *out)
{
	struct pawl_gguf_build *b = begin();
	size_t i;

	out->name = tensor->name;
	out->says = tensor->says;
	pawl_gguf_build_tensor(b, "t", PAWL_DTYPE_F32, 1, (int64_t[]){8}, NULL);
	for (i = 0; i < COUNT(tensor->records) && tensor->records[i].name; i++)
		pawl_gguf_build_record(b, &tensor->records[i]);
	pawl_gguf_build_data(b, NULL, 256);
	out->bytes = pawl_gguf_build_finish(b, &out->n_bytes);
}

void
pawl_bad_gguf_make(size_t index, struct pawl_bad_gguf *out)
{
	if (index < COUNT(patches)) {
		make_patch(&patches[index], out);
		return;
	}
	index -= COUNT(patches);
	if (index < COUNT(bad_values)) {
		make_value(&bad_values[index], out);
		return;
	}
	index -= COUNT(bad_values);
	if (index < COUNT(bad_tensors)) {
		make_tensor(&bad_tensors[index], out);
		return;
	}
	index -= COUNT(bad_tensors);
	out->name = others[index].name;
	out->says = others[index].says;
	out->bytes = others[index].make(&out->n_bytes);
}
