#include "plugins/cuda_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/dump.h"

/* The number in front of `what`, between from and end; -1: there is none. */
static int32_t
number_before(const char *from, const char *end, const char *what)
{
	const char *at = strstr(from, what), *digit;

	if (!at || at >= end)
		return -1;
	for (digit = at; digit > from && digit[-1] >= '0' && digit[-1] <= '9'; digit--)
		continue;
	return digit < at ? (int32_t)strtol(digit, NULL, 10) : -1;
}

void
pawl_cuda_report_resources(const char *log, const char *kernel, struct pawl_cuda_resources *out)
{
	static const char heading[] = "Compiling entry function '";
	const char *from = log, *end;
	size_t n = strlen(kernel);

	*out = (struct pawl_cuda_resources){-1, -1, -1, -1, -1};
	while (from && (from = strstr(from, heading))) {
		from += sizeof(heading) - 1;
		if (!strncmp(from, kernel, n) && from[n] == '\'')
			break;
	}
	if (!from)
		return;
	end = strstr(from, heading);
	end = end ? end : from + strlen(from);
	out->registers = number_before(from, end, " registers");
	out->stack_bytes = number_before(from, end, " bytes stack frame");
	out->spill_store_bytes = number_before(from, end, " bytes spill stores");
	out->spill_load_bytes = number_before(from, end, " bytes spill loads");
	out->shared_bytes = number_before(from, end, " bytes smem");
	/* None is not mentioned. */
	if (out->registers >= 0 && out->shared_bytes < 0)
		out->shared_bytes = 0;
}

/* The kernel that holds a line of its source, counted from 1. */
static int32_t
kernel_at(const struct pawl_cuda_program *cuda, int32_t unit, long number)
{
	const char *source = cuda->sources[unit].bytes, *at = source;
	int32_t i;

	while (at && --number > 0)
		at = (at = strchr(at, '\n')) ? at + 1 : NULL;
	for (i = 0; at && i < cuda->n_kernels; i++) {
		const struct pawl_cuda_kernel *kernel = &cuda->kernels[i];

		if (kernel->unit == unit && (size_t)(at - source) >= kernel->at &&
			(size_t)(at - source) < kernel->at + kernel->n)
			return i;
	}
	return -1;
}

static int32_t
kernel_named(const struct pawl_cuda_program *cuda, int32_t unit, const char *line, size_t n)
{
	int32_t i, best = -1;

	for (i = 0; i < cuda->n_kernels; i++) {
		const struct pawl_cuda_kernel *kernel = &cuda->kernels[i];
		const char *at = strstr(line, kernel->name);

		if (kernel->unit == unit && at && at < line + n &&
			(best < 0 || strlen(kernel->name) > strlen(cuda->kernels[best].name)))
			best = i;
	}
	return best;
}

void
pawl_cuda_report_complaint(const struct pawl_cuda_program *cuda, int32_t unit, const char *log,
	const char **line, size_t *n, int32_t *kernel)
{
	const char *at = log ? strstr(log, "error") : NULL, *number;

	*line = log;
	*n = 0;
	*kernel = -1;
	if (!at)
		return;
	while (at > log && at[-1] != '\n')
		at--;
	*line = at;
	*n = strcspn(at, "\n");
	number = memchr(at, '(', *n);
	if (number)
		*kernel = kernel_at(cuda, unit, strtol(number + 1, NULL, 10));
	if (*kernel < 0)
		*kernel = kernel_named(cuda, unit, at, *n);
}

/* A column; "-": unknown, as of PTX. */
static void
print_column(struct pawl_cuda_text *text, int width, int32_t n)
{
	if (n < 0)
		pawl_cuda_text_print(text, " %*s", width, "-");
	else
		pawl_cuda_text_print(text, " %*" PRId32, width, n);
}

char *
pawl_cuda_report_table(const struct pawl_cuda_image *image)
{
	const struct pawl_cuda_program *cuda = &image->cuda;
	struct pawl_cuda_text text;
	int32_t i, j;

	pawl_cuda_text_init(&text);
	pawl_cuda_text_print(&text, "%-24s %9s %7s %6s %12s %11s  %8s %7s\n", "kernel",
		"registers", "shared", "stack", "spill stores", "spill loads", "launches",
		"blocks");
	for (i = 0; i < cuda->n_kernels; i++) {
		const struct pawl_cuda_resources *r = &image->resources[i];
		int32_t n_launches = 0, blocks = 0;

		for (j = 0; j < cuda->n_launches; j++) {
			if (cuda->launches[j].kernel != i)
				continue;
			n_launches++;
			blocks = cuda->launches[j].blocks;
		}
		pawl_cuda_text_print(&text, "%-24s", cuda->kernels[i].name);
		print_column(&text, 9, r->registers);
		print_column(&text, 7, r->shared_bytes);
		print_column(&text, 6, r->stack_bytes);
		print_column(&text, 12, r->spill_store_bytes);
		print_column(&text, 11, r->spill_load_bytes);
		pawl_cuda_text_print(
			&text, "  %8" PRId32 " %7" PRId32 "\n", n_launches, blocks);
	}
	if (text.failed)
		pawl_cuda_text_release(&text);
	return text.bytes;
}

enum pawl_status
pawl_cuda_report_dump(const char *folder, const char *name, const char *arch,
	const struct pawl_cuda_image *image, struct pawl_error *err)
{
	char file[256], *table;
	enum pawl_status status = PAWL_OK;
	int32_t i;

	for (i = 0; i < image->cuda.n_units && !status; i++) {
		const struct pawl_cuda_text *source = &image->cuda.sources[i];
		const struct pawl_cuda_binary *code = &image->binaries[i];

		snprintf(file, sizeof(file), "%.200s-%d.cu", name, (int)i);
		status = pawl_dump_text(folder, file, source->bytes, err);
		if (status)
			break;
		snprintf(file, sizeof(file), "%.200s-%d.%.32s.%s", name, (int)i, arch,
			code->is_ptx ? "ptx" : "cubin");
		status = pawl_dump_bytes(folder, file, code->bytes,
			code->is_ptx ? code->n_bytes - 1 : code->n_bytes, err);
	}
	if (status)
		return status;
	table = pawl_cuda_report_table(image);
	if (!table)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for a table");
	snprintf(file, sizeof(file), "%.200s.%.32s.txt", name, arch);
	status = pawl_dump_text(folder, file, table, err);
	free(table);
	return status;
}
