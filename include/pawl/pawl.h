/*
 * Pawl for hosts that link it: cc host.c -lpawl.  The same table as for hosts that open the module,
 * see pawl/plugin.h.
 */
#ifndef PAWL_H
#define PAWL_H

#include <pawl/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

/* "0.1.0"; for the life of the process. */
PAWL_API const char *pawl_version(void);

#ifdef __cplusplus
}
#endif

#endif
