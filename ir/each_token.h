/*
 * PAWL_EACH_TOKEN marks the functions of the host's work on a token.  A run of a model leaves nothing of
 * their code in the caches: placed together they are few pages and lines to fetch again.
 */
#ifndef PAWL_IR_EACH_TOKEN_H
#define PAWL_IR_EACH_TOKEN_H

#define PAWL_EACH_TOKEN __attribute__((hot))

#endif
