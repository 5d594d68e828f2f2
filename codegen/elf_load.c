#include "codegen/elf_load.h"

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* More sections than a kernel has, so that sizes stay far from overflowing. */
#define MAX_SECTIONS 256
#define MAX_CODE_BYTES ((uint64_t)1 << 30)

struct loader {
	const char *object;
	size_t size;
	Elf64_Ehdr header;
	Elf64_Shdr sections[MAX_SECTIONS];
	uint64_t place[MAX_SECTIONS]; /* offset of an allocated section in memory */
	bool is_placed[MAX_SECTIONS];
	const Elf64_Shdr *symbols; /* the symbol table, NULL: none */
	struct pawl_code_memory *memory;
	struct pawl_error *err;
};

#define REFUSE(l, ...) pawl_fail((l)->err, PAWL_INTERNAL, "object: " __VA_ARGS__)

static bool
holds(const struct loader *l, uint64_t offset, uint64_t bytes)
{
	return offset <= l->size && bytes <= l->size - offset;
}

static enum pawl_status
read_sections(struct loader *l)
{
	const Elf64_Ehdr *h = &l->header;
	int i;

	if (!holds(l, 0, sizeof(*h)))
		return REFUSE(l, "%zu bytes are too short", l->size);
	memcpy(&l->header, l->object, sizeof(*h));
	if (memcmp(h->e_ident, ELFMAG, SELFMAG) || h->e_ident[EI_CLASS] != ELFCLASS64 ||
		h->e_ident[EI_DATA] != ELFDATA2LSB || h->e_type != ET_REL)
		return REFUSE(l, "no relocatable 64-bit little-endian elf");
	if (h->e_machine != EM_X86_64)
		return REFUSE(l, "machine %d is not x86-64", h->e_machine);
	if (h->e_shentsize != sizeof(Elf64_Shdr) || h->e_shnum > MAX_SECTIONS ||
		!holds(l, h->e_shoff, (uint64_t)h->e_shnum * sizeof(Elf64_Shdr)))
		return REFUSE(l, "section table of %d entries at %llu", h->e_shnum,
			(unsigned long long)h->e_shoff);
	memcpy(l->sections, l->object + h->e_shoff, h->e_shnum * sizeof(Elf64_Shdr));
	for (i = 0; i < h->e_shnum; i++) {
		const Elf64_Shdr *s = &l->sections[i];

		if (s->sh_type != SHT_NOBITS && !holds(l, s->sh_offset, s->sh_size))
			return REFUSE(l, "section %d leaves the file", i);
		if (s->sh_type == SHT_SYMTAB)
			l->symbols = s;
	}
	if (l->symbols &&
		(l->symbols->sh_link >= h->e_shnum || l->symbols->sh_entsize != sizeof(Elf64_Sym)))
		return REFUSE(l, "bad symbol table");
	return PAWL_OK;
}

/* Lays the allocated sections out; *bytes is their total. */
static enum pawl_status
place_sections(struct loader *l, uint64_t *bytes)
{
	uint64_t at = 0;
	int i;

	for (i = 0; i < l->header.e_shnum; i++) {
		const Elf64_Shdr *s = &l->sections[i];
		uint64_t align = s->sh_addralign ? s->sh_addralign : 1;

		if (!(s->sh_flags & SHF_ALLOC) || s->sh_size == 0)
			continue;
		if (s->sh_type != SHT_PROGBITS || s->sh_flags & (SHF_WRITE | SHF_TLS))
			return REFUSE(l, "section %d of type %u, flags %llx", i, s->sh_type,
				(unsigned long long)s->sh_flags);
		if (align & (align - 1) || align > 4096 || s->sh_size > MAX_CODE_BYTES)
			return REFUSE(l, "section %d of %llu bytes aligned to %llu", i,
				(unsigned long long)s->sh_size, (unsigned long long)align);
		at = (at + align - 1) & ~(align - 1);
		l->place[i] = at;
		l->is_placed[i] = true;
		at += s->sh_size;
	}
	if (at == 0 || at > MAX_CODE_BYTES)
		return REFUSE(l, "%llu bytes of code", (unsigned long long)at);
	*bytes = at;
	return PAWL_OK;
}

static const char *
symbol_name(const struct loader *l, const Elf64_Sym *symbol)
{
	const Elf64_Shdr *strings = &l->sections[l->symbols->sh_link];
	const char *name = l->object + strings->sh_offset + symbol->st_name;

	if (strings->sh_type != SHT_STRTAB || symbol->st_name >= strings->sh_size ||
		!memchr(name, '\0', strings->sh_size - symbol->st_name))
		return "?";
	return name;
}

static enum pawl_status
read_symbol(const struct loader *l, uint64_t index, Elf64_Sym *out)
{
	if (!l->symbols || index >= l->symbols->sh_size / sizeof(*out))
		return REFUSE(l, "symbol %llu does not exist", (unsigned long long)index);
	memcpy(out, l->object + l->symbols->sh_offset + index * sizeof(*out), sizeof(*out));
	return PAWL_OK;
}

/* Offset of a symbol in memory. */
static enum pawl_status
resolve(const struct loader *l, const Elf64_Sym *symbol, uint64_t *offset)
{
	if (symbol->st_shndx == SHN_UNDEF)
		return REFUSE(l, "undefined symbol %s", symbol_name(l, symbol));
	if (symbol->st_shndx >= l->header.e_shnum || !l->is_placed[symbol->st_shndx] ||
		symbol->st_value > l->sections[symbol->st_shndx].sh_size)
		return REFUSE(l, "symbol %s lies in no loaded section", symbol_name(l, symbol));
	*offset = l->place[symbol->st_shndx] + symbol->st_value;
	return PAWL_OK;
}

static enum pawl_status
apply(struct loader *l, const Elf64_Rela *rela, int target)
{
	uint64_t type = ELF64_R_TYPE(rela->r_info);
	uint64_t width = type == R_X86_64_64 ? 8 : 4;
	uint64_t symbol_at, at, value;
	enum pawl_status status;
	int32_t narrow;
	Elf64_Sym symbol;

	if (type != R_X86_64_PC32 && type != R_X86_64_PLT32 && type != R_X86_64_64)
		return REFUSE(l, "relocation of type %llu", (unsigned long long)type);
	if (rela->r_offset > l->sections[target].sh_size ||
		width > l->sections[target].sh_size - rela->r_offset)
		return REFUSE(l, "relocation at %llu leaves section %d",
			(unsigned long long)rela->r_offset, target);
	status = read_symbol(l, ELF64_R_SYM(rela->r_info), &symbol);
	if (status == PAWL_OK)
		status = resolve(l, &symbol, &symbol_at);
	if (status != PAWL_OK)
		return status;
	at = l->place[target] + rela->r_offset;
	if (type == R_X86_64_64) {
		value = (uint64_t)(uintptr_t)l->memory->run + symbol_at + (uint64_t)rela->r_addend;
		memcpy(l->memory->write + at, &value, sizeof(value));
		return PAWL_OK;
	}
	value = symbol_at + (uint64_t)rela->r_addend - at;
	narrow = (int32_t)value;
	if ((int64_t)value != narrow)
		return REFUSE(l, "relocation at %llu reaches too far",
			(unsigned long long)rela->r_offset);
	memcpy(l->memory->write + at, &narrow, sizeof(narrow));
	return PAWL_OK;
}

static enum pawl_status
relocate(struct loader *l)
{
	enum pawl_status status;
	Elf64_Rela rela;
	uint64_t j;
	int i;

	for (i = 0; i < l->header.e_shnum; i++) {
		const Elf64_Shdr *s = &l->sections[i];

		if (s->sh_info >= l->header.e_shnum || !l->is_placed[s->sh_info])
			continue;
		if (s->sh_type == SHT_REL)
			return REFUSE(l, "section %d has relocations without addends", i);
		if (s->sh_type != SHT_RELA)
			continue;
		for (j = 0; j < s->sh_size / sizeof(rela); j++) {
			memcpy(&rela, l->object + s->sh_offset + j * sizeof(rela), sizeof(rela));
			status = apply(l, &rela, (int)s->sh_info);
			if (status != PAWL_OK)
				return status;
		}
	}
	return PAWL_OK;
}

static enum pawl_status
find_functions(const struct loader *l, const char *const *names, int n_names, void **functions)
{
	uint64_t n = l->symbols ? l->symbols->sh_size / sizeof(Elf64_Sym) : 0;
	enum pawl_status status;
	Elf64_Sym symbol;
	uint64_t j, offset;
	int i;

	memset(functions, 0, (size_t)n_names * sizeof(*functions));
	for (j = 1; j < n; j++) {
		status = read_symbol(l, j, &symbol);
		if (status == PAWL_OK && symbol.st_shndx == SHN_UNDEF)
			status = resolve(l, &symbol, &offset);
		if (status != PAWL_OK)
			return status;
		if (ELF64_ST_BIND(symbol.st_info) != STB_GLOBAL)
			continue;
		for (i = 0; i < n_names; i++) {
			if (strcmp(symbol_name(l, &symbol), names[i]))
				continue;
			status = resolve(l, &symbol, &offset);
			if (status != PAWL_OK)
				return status;
			functions[i] = l->memory->run + offset;
		}
	}
	for (i = 0; i < n_names; i++) {
		if (!functions[i])
			return REFUSE(l, "no function %s", names[i]);
	}
	return PAWL_OK;
}

static enum pawl_status
load(struct loader *l, enum pawl_code_memory_kind kind, const char *const *names, int n_names,
	void **functions)
{
	enum pawl_status status = read_sections(l);
	uint64_t bytes = 0;
	int i;

	if (status == PAWL_OK)
		status = place_sections(l, &bytes);
	if (status == PAWL_OK)
		status = pawl_code_memory_init(l->memory, kind, (size_t)bytes, l->err);
	if (status != PAWL_OK)
		return status;
	for (i = 0; i < l->header.e_shnum; i++) {
		if (l->is_placed[i])
			memcpy(l->memory->write + l->place[i], l->object + l->sections[i].sh_offset,
				(size_t)l->sections[i].sh_size);
	}
	status = relocate(l);
	if (status == PAWL_OK)
		status = find_functions(l, names, n_names, functions);
	if (status == PAWL_OK)
		status = pawl_code_memory_seal(l->memory, l->err);
	if (status != PAWL_OK)
		pawl_code_memory_release(l->memory);
	return status;
}

enum pawl_status
pawl_elf_load(const void *object, size_t size, enum pawl_code_memory_kind kind,
	const char *const *names, int n_names, void **functions, struct pawl_code_memory *memory,
	struct pawl_error *err)
{
	struct loader *l = calloc(1, sizeof(*l));
	enum pawl_status status;

	*memory = (struct pawl_code_memory){.kind = kind};
	if (!l)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "out of memory for a loader");
	l->object = object;
	l->size = size;
	l->memory = memory;
	l->err = err;
	status = load(l, kind, names, n_names, functions);
	free(l);
	return status;
}
