/* One function for each command: argv[0] is its name, the result the exit status. */
#ifndef PAWL_TOOLS_COMMANDS_H
#define PAWL_TOOLS_COMMANDS_H

#define PAWL_COMMAND(name, doc) int pawl_cmd_##name(int argc, char **argv);
#include "tools/commands.def"

#endif
