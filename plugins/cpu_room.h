/*
 * Room for the compiler.  LLVM recurses deeply and ends the process when memory runs out; C cannot
 * catch that, so that a little room is asked for before it is called, and a stack of known size is
 * what it runs on.
 */
#ifndef PAWL_PLUGINS_CPU_ROOM_H
#define PAWL_PLUGINS_CPU_ROOM_H

#include <stddef.h>

#include "ir/status.h"

/*
 * Address space to open the compiler (LLVM 19 and its libraries map 190 MB) and to compile a
 * kernel (15 MB were measured).
 */
#define PAWL_COMPILER_BYTES ((size_t)256 << 20)
#define PAWL_COMPILE_BYTES  ((size_t)32 << 20)

/*
 * PAWL_ENVIRONMENT when the process may not map n more bytes (ulimit -v, ulimit -d); nothing stays
 * mapped.
 */
enum pawl_status pawl_cpu_room(size_t n, struct pawl_error *err);

/*
 * Calls fn(arg) on a thread of its own with 8 MiB of stack, signals blocked, and waits for it.
 * PAWL_ENVIRONMENT, without a call, when the system gives no thread.
 */
enum pawl_status pawl_cpu_run_roomy(void (*fn)(void *arg), void *arg, struct pawl_error *err);

#endif
