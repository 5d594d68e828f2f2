/*
 * Opening a module: dlopen, but of a file that has been looked at.  The loader maps what the
 * headers say, and a file that ends before would kill the process at the first touch; a fifo
 * would make it wait.
 */
#ifndef PAWL_CODEGEN_MODULE_FILE_H
#define PAWL_CODEGEN_MODULE_FILE_H

#include "ir/status.h"

/*
 * *handle is that of dlopen, all symbols bound, none offered to others.  PAWL_ENVIRONMENT, naming the
 * path: no regular file, no ELF file of this machine's word size, one whose headers, segments or
 * section table leave it, or what dlopen has to say.  What the segments hold is trusted.
 */
enum pawl_status pawl_module_open(const char *path, void **handle, struct pawl_error *err);

#endif
