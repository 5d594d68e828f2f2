/* What NVRTC's log says of kernels, in our terms. */
#ifndef PAWL_PLUGINS_CUDA_REPORT_H
#define PAWL_PLUGINS_CUDA_REPORT_H

#include "plugins/cuda_compile.h"

/* Resources of a kernel from the report of the assembler; all -1 where the log has none of it. */
void pawl_cuda_report_resources(
	const char *log, const char *kernel, struct pawl_cuda_resources *out);

/*
 * The first complaint of a log about a source: a line of it, without its end, in *line and *n (0:
 * there is none), and the kernel in which the line is or that it names, -1: none.
 */
void pawl_cuda_report_complaint(const struct pawl_cuda_program *cuda, int32_t unit, const char *log,
	const char **line, size_t *n, int32_t *kernel);

/*
 * Writes sources, code and a table of resources to a folder that is made if need be; files are
 * named after the program.  PAWL_ENVIRONMENT when one cannot be written.
 */
enum pawl_status pawl_cuda_report_dump(const char *folder, const char *name, const char *arch,
	const struct pawl_cuda_image *image, struct pawl_error *err);

/*
 * The table, to be freed: a line a kernel with what it takes, bytes but for registers, "-" where
 * unknown, in how many launches it runs, and the blocks of the last of them.
 */
char *pawl_cuda_report_table(const struct pawl_cuda_image *image);

#endif
