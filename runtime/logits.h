/* Which rows of logits a step computes. */
#ifndef PAWL_RUNTIME_LOGITS_H
#define PAWL_RUNTIME_LOGITS_H

enum pawl_logits { PAWL_LOGITS_NONE, PAWL_LOGITS_LAST, PAWL_LOGITS_ALL, PAWL_N_LOGITS };

#endif
