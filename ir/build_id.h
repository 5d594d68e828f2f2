/*
 * The version and a checksum over the sources.  Modules share private structures with whoever
 * opens them, so one whose build id differs is refused.
 */
#ifndef PAWL_IR_BUILD_ID_H
#define PAWL_IR_BUILD_ID_H

extern const char pawl_build_id[];

#endif
