/*
 * What the compiler of CPU kernels writes, for processors that are not at hand too: an ELF object
 * for the right machine with the kernel's symbols and no undefined one.
 */
#include "codegen/cpu_compiler.h"
#include "codegen/kernel.h"
#include "codegen/target.h"
#include "ir/build_id.h"
#include "ir/parse.h"
#include "passes/optimize.h"

#include "tests/cpu_subject.h"
#include "tests/skip.h"
#include "tests/suites.h"

#include <check.h>
#include <dlfcn.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef PAWL_HAVE_LLVM

static struct pawl_error err;

#define OK(call) ck_assert_msg((call) == PAWL_OK, "%s", err.text)

/* Every template, every kind of weight and of cache. */
static const char model[] =
	"sym $n : 1 .. 160\n"
	"%ids = const {role=data} : u32[3]\n%table = const {role=weight} : q6_k[10,256]\n"
	"%norm = const {role=weight} : f32[256]\n%wq = const {role=weight} : q4_0[64,256]\n"
	"%wk = const {role=weight} : q5_1[32,256]\n%wv = const {role=weight} : f16[32,256]\n"
	"%wo = const {role=weight} : q4_k[256,256]\n%w5 = const {role=weight} : q8_0[250,64]\n"
	"%cos = const {role=data} : f32[3,16]\n%sin = const {role=data} : f32[3,16]\n"
	"%k = const {role=kv} : f16[1,2,160,16]@k16\n%v = const {role=kv} : bf16[1,2,160,16]\n"
	"%at = const {role=data} : i64[]\n"
	"%x = gather %table, %ids : f32[3,256]\n%n = rms_norm %x, %norm {eps=1e-5} : f32[3,256]\n"
	"%q = matmul %n, %wq : f32[3,64]\n%kk = matmul %n, %wk : f32[3,32]\n"
	"%vv = matmul %n, %wv : f32[3,32]\n"
	"%qh = reshape %q : f32[3,4,16]\n%kh = reshape %kk : f32[3,2,16]\n"
	"%vh = reshape %vv : f32[3,2,16]\n"
	"%qr = rope %qh, %cos, %sin {pairs=halves} : f32[3,4,16]\n"
	"%kr = rope %kh, %cos, %sin {pairs=adjacent} : f32[3,2,16]\n"
	"%kc = cast %kr {dtype=f16} : f16[3,2,16]\n%vc = cast %vh {dtype=bf16} : bf16[3,2,16]\n"
	"%kp = permute %kc {perm=[1,0,2]} : f16[2,3,16]\n"
	"%vp = permute %vc {perm=[1,0,2]} : bf16[2,3,16]\n"
	"%ks = reshape %kp : f16[1,2,3,16]\n%vs = reshape %vp : bf16[1,2,3,16]\n"
	"%kw = write_slice %k, %ks, %at {axis=2} : f16[1,2,160,16]@k16\n"
	"%vw = write_slice %v, %vs, %at {axis=2} : bf16[1,2,160,16]\n"
	"%a = attention %qr, %kw, %vw, %at {scale=0.25,softcap=30.0,sym=$n} : f32[3,4,16]\n"
	"%ar = reshape %a : f32[3,64]\n%o = matmul %ar, %w5 : f32[3,250]\n"
	"%g = gelu_tanh %o : f32[3,250]\n%s = softmax %g : f32[3,250]\n"
	"%m = matmul %x, %wo : f32[3,256]\n%b = reshape %m : f32[3,16,16]\n"
	"%z = batch_matmul %b, %b : f32[3,16,16]\n"
	"%best = argmax %s : i32[3]\noutput %best\noutput %z\n";

/* The compiler lies beside the target. */
static const struct pawl_cpu_compiler_api *
open_compiler(void)
{
	pawl_cpu_compiler_query_fn *query;
	char path[4096];
	Dl_info info;
	void *module;

	ck_assert(dladdr(pawl_cpu_target(), &info));
	snprintf(path, sizeof(path), "%.*s/cpu_compiler.so",
		(int)(strrchr(info.dli_fname, '/') - info.dli_fname), info.dli_fname);
	module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	ck_assert_msg(module != NULL, "%s", dlerror());
	query = (pawl_cpu_compiler_query_fn *)(uintptr_t)dlsym(module, PAWL_CPU_COMPILER_QUERY);
	ck_assert(query != NULL);
	return query();
}

static enum pawl_layout
packed(const void *target, const struct pawl_type *type)
{
	(void)target;
	(void)type;
	return PAWL_LAYOUT_TILE16;
}

static struct pawl_program *
make_program(bool is_packed)
{
	struct pawl_optimize_options options = {
		.facts = {.max_prologue_rows = 4, .weight_layout = is_packed ? packed : NULL},
		.run = {.bisect = -1}};
	struct pawl_program *program;
	struct pawl_graph *graph;
	char text[8192];

	snprintf(text, sizeof(text), "pawl 1\ngraph @t stage values {\n%s}\n", model);
	OK(pawl_parse(text, strlen(text), "test", &graph, NULL, &err));
	OK(pawl_optimize(graph, &options, &program, NULL, &err));
	pawl_graph_free(graph);
	return program;
}

static void
check_object(const struct pawl_kernel_object *object, int machine, int n_phases)
{
	const Elf64_Ehdr *header = object->bytes;
	const char *bytes = object->bytes;
	const Elf64_Shdr *sections = (const Elf64_Shdr *)(bytes + header->e_shoff);
	int i, j, found = 0;

	ck_assert(!memcmp(header->e_ident, ELFMAG, SELFMAG));
	ck_assert_int_eq(header->e_machine, machine);
	for (i = 0; i < header->e_shnum; i++) {
		const Elf64_Sym *symbols = (const Elf64_Sym *)(bytes + sections[i].sh_offset);
		const char *strings = bytes + sections[sections[i].sh_link].sh_offset;

		if (sections[i].sh_type != SHT_SYMTAB)
			continue;
		for (j = 1; j < (int)(sections[i].sh_size / sizeof(*symbols)); j++) {
			const char *name = strings + symbols[j].st_name;

			ck_assert_msg(
				symbols[j].st_shndx != SHN_UNDEF, "undefined symbol %s", name);
			found += !strcmp(name, PAWL_KERNEL_PHASE_0) ||
				 !strcmp(name, PAWL_KERNEL_PHASE_1) ||
				 !strcmp(name, PAWL_KERNEL_SCRATCH);
		}
	}
	ck_assert_int_eq(found, 1 + n_phases);
}

START_TEST(objects_stand_alone)
{
	const struct pawl_cpu_compiler_api *compiler = open_compiler();
	enum pawl_cpu_variant variant = (enum pawl_cpu_variant)_i;
	struct pawl_kernel_object object;
	struct pawl_program *program;
	bool seen[PAWL_N_TEMPLATES] = {false};
	int is_packed, i;

	ck_assert_str_eq(compiler->build_id, pawl_build_id);
	for (is_packed = 0; is_packed < 2; is_packed++) {
		program = make_program(is_packed);
		for (i = 0; i < program->n_steps; i++) {
			const struct pawl_step *step = &program->steps[i];
			bool is_attend = step->template == PAWL_TEMPLATE_ATTEND;

			OK(compiler->compile(program, step, variant, NULL, &object, &err));
			check_object(&object, variant == PAWL_CPU_AARCH64 ? EM_AARCH64 : EM_X86_64,
				is_attend ? 2 : 1);
			compiler->object_free(&object);
			seen[step->template] = true;
		}
		pawl_program_free(program);
	}
	for (i = 0; i < PAWL_N_TEMPLATES; i++)
		ck_assert_msg(seen[i], "no step of template %d", i);
}
END_TEST

#else

START_TEST(objects)
{
	pawl_skip("objects", "built without llvm");
}
END_TEST

#endif

Suite *
pawl_cpu_objects_suite(void)
{
	Suite *suite = suite_create("cpu_objects");
	TCase *tcase = tcase_create("cpu_objects");

	tcase_set_timeout(tcase, 60);
#ifdef PAWL_HAVE_LLVM
	tcase_add_loop_test(tcase, objects_stand_alone, 0, PAWL_N_CPU_VARIANTS);
#else
	tcase_add_test(tcase, objects);
#endif
	suite_add_tcase(suite, tcase);
	return suite;
}
