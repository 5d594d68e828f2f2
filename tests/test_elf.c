/*
 * The object loader on an object written by hand: a constant, a function that reads it through
 * PC32, one that returns its address through an absolute relocation.
 */
#include "codegen/elf_load.h"

#include "tests/suites.h"

#include <check.h>
#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT = 1, RODATA, RELA, SYMTAB, STRTAB, N_SECTIONS };

/* Symbols: none, the constant (local), the two functions. */
enum { VALUE = 1, READ, ADDRESS, N_SYMBOLS };

static const char strings[] = "\0read_value\0value_address\0elsewhere";

struct object {
	Elf64_Ehdr header;
	unsigned char text[32];
	uint64_t rodata[2];
	Elf64_Rela rela[2];
	Elf64_Sym symbols[N_SYMBOLS];
	char strings[sizeof(strings)];
	Elf64_Shdr sections[N_SECTIONS];
};

static struct pawl_error err;
static struct pawl_code_memory memory;
static void *found[2];
static const char *const names[] = {"read_value", "value_address"};

static void
set_section(struct object *o, int i, Elf64_Word type, Elf64_Xword flags, size_t offset, size_t size)
{
	o->sections[i].sh_type = type;
	o->sections[i].sh_flags = flags;
	o->sections[i].sh_offset = offset;
	o->sections[i].sh_size = size;
	o->sections[i].sh_addralign = 16;
}

static struct object *
make_object(void)
{
	/* mov rax, [rip + 0]; ret; then movabs rax, 0; ret at 16. */
	static const unsigned char text[32] = {
		0x48, 0x8b, 0x05, 0, 0, 0, 0, 0xc3, [16] = 0x48, 0xb8, [26] = 0xc3};
	struct object *o = calloc(1, sizeof(*o));

	ck_assert_ptr_nonnull(o);
	memcpy(o->header.e_ident, ELFMAG, SELFMAG);
	o->header.e_ident[EI_CLASS] = ELFCLASS64;
	o->header.e_ident[EI_DATA] = ELFDATA2LSB;
	o->header.e_type = ET_REL;
	o->header.e_machine = EM_X86_64;
	o->header.e_shoff = offsetof(struct object, sections);
	o->header.e_shentsize = sizeof(Elf64_Shdr);
	o->header.e_shnum = N_SECTIONS;
	memcpy(o->text, text, sizeof(text));
	o->rodata[1] = 0x123456789abcdef0;
	memcpy(o->strings, strings, sizeof(strings));
	set_section(o, TEXT, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, offsetof(struct object, text),
		sizeof(o->text));
	set_section(o, RODATA, SHT_PROGBITS, SHF_ALLOC, offsetof(struct object, rodata),
		sizeof(o->rodata));
	set_section(o, RELA, SHT_RELA, 0, offsetof(struct object, rela), sizeof(o->rela));
	set_section(o, SYMTAB, SHT_SYMTAB, 0, offsetof(struct object, symbols), sizeof(o->symbols));
	set_section(o, STRTAB, SHT_STRTAB, 0, offsetof(struct object, strings), sizeof(o->strings));
	o->sections[RELA].sh_info = TEXT;
	o->sections[RELA].sh_link = SYMTAB;
	o->sections[SYMTAB].sh_link = STRTAB;
	o->sections[SYMTAB].sh_entsize = sizeof(Elf64_Sym);
	o->rela[0] = (Elf64_Rela){3, ELF64_R_INFO(VALUE, R_X86_64_PC32), 8 - 4};
	o->rela[1] = (Elf64_Rela){18, ELF64_R_INFO(VALUE, R_X86_64_64), 8};
	o->symbols[VALUE] = (Elf64_Sym){.st_shndx = RODATA};
	o->symbols[READ] = (Elf64_Sym){
		.st_name = 1, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), .st_shndx = TEXT};
	o->symbols[ADDRESS] = (Elf64_Sym){.st_name = 12,
		.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
		.st_shndx = TEXT,
		.st_value = 16};
	return o;
}

static enum pawl_status
load(const void *object, size_t size)
{
	return pawl_elf_load(
		object, size, PAWL_CODE_MEMORY_PROTECT, names, 2, found, &memory, &err);
}

#if defined(__x86_64__)

START_TEST(loaded_code_runs)
{
	struct object *o = make_object();
	enum pawl_code_memory_kind kind = _i ? PAWL_CODE_MEMORY_TWICE : PAWL_CODE_MEMORY_PROTECT;
	uint64_t (*read)(void);
	uint64_t *(*address)(void);

	ck_assert_msg(pawl_elf_load(o, sizeof(*o), kind, names, 2, found, &memory, &err) == PAWL_OK,
		"%s", err.text);
	free(o);
	read = (uint64_t(*)(void))(uintptr_t)found[0];
	address = (uint64_t * (*)(void))(uintptr_t)found[1];
	ck_assert_uint_eq(read(), 0x123456789abcdef0);
	ck_assert_uint_eq(*address(), 0x123456789abcdef0);
	ck_assert_ptr_null(memory.write);
	pawl_code_memory_release(&memory);
}
END_TEST

#endif

/* Each spoils a good object in one place. */
static void
spoil_machine(struct object *o)
{
	o->header.e_machine = EM_AARCH64;
}

static void
spoil_symbol(struct object *o)
{
	o->symbols[VALUE].st_shndx = SHN_UNDEF;
	o->symbols[VALUE].st_name = 26;
}

static void
spoil_relocation(struct object *o)
{
	o->rela[0].r_info = ELF64_R_INFO(VALUE, R_X86_64_GOTPCREL);
}

static void
spoil_place(struct object *o)
{
	o->rela[1].r_offset = sizeof(o->text) - 7;
}

static void
spoil_name(struct object *o)
{
	o->strings[1] = 'x';
}

static void
spoil_data(struct object *o)
{
	o->sections[RODATA].sh_flags |= SHF_WRITE;
}

static void
spoil_reach(struct object *o)
{
	o->rela[0].r_addend = INT64_C(1) << 40;
}

static const struct {
	void (*spoil)(struct object *o);
	const char *text;
} spoiled[] = {
	{spoil_machine, "object: machine 183 is not x86-64"},
	{spoil_symbol, "object: undefined symbol elsewhere"},
	{spoil_relocation, "object: relocation of type 9"},
	{spoil_place, "object: relocation at 25 leaves section 1"},
	{spoil_name, "object: no function read_value"},
	{spoil_data, "object: section 2 of type 1, flags 3"},
	{spoil_reach, "object: relocation at 3 reaches too far"},
};

START_TEST(spoiled_objects_are_refused)
{
	struct object *o = make_object();

	spoiled[_i].spoil(o);
	ck_assert_int_eq(load(o, sizeof(*o)), PAWL_INTERNAL);
	ck_assert_str_eq(err.text, spoiled[_i].text);
	ck_assert_ptr_null(memory.run);
	free(o);
}
END_TEST

/* Any prefix, and any byte changed: refused or loaded, nothing else. */
START_TEST(damage_is_survived)
{
	struct object *o = make_object();
	unsigned char *bytes = malloc(sizeof(*o));
	size_t i;

	ck_assert_ptr_nonnull(bytes);
	for (i = 0; i < sizeof(*o); i++) {
		unsigned char *prefix = malloc(i + 1);

		ck_assert_ptr_nonnull(prefix);
		memcpy(prefix, o, i);
		ck_assert_int_eq(load(prefix, i), PAWL_INTERNAL);
		free(prefix);
		memcpy(bytes, o, sizeof(*o));
		bytes[i] ^= (unsigned char)(0x81 + 2 * i);
		if (load(bytes, sizeof(*o)) == PAWL_OK)
			pawl_code_memory_release(&memory);
	}
	free(bytes);
	free(o);
}
END_TEST

Suite *
pawl_elf_suite(void)
{
	Suite *suite = suite_create("elf");
	TCase *tcase = tcase_create("elf");

#if defined(__x86_64__)
	tcase_add_loop_test(tcase, loaded_code_runs, 0, 2);
#endif
	tcase_add_loop_test(
		tcase, spoiled_objects_are_refused, 0, sizeof(spoiled) / sizeof(spoiled[0]));
	tcase_add_test(tcase, damage_is_survived);
	suite_add_tcase(suite, tcase);
	return suite;
}
