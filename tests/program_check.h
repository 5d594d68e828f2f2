/* What must hold of every program, and all of it as text. */
#ifndef PAWL_TESTS_PROGRAM_CHECK_H
#define PAWL_TESTS_PROGRAM_CHECK_H

#include "passes/step.h"

/*
 * Asserts, from the program alone, that each step's body can be executed as its template says: by
 * units in any order, on several threads.
 */
void pawl_test_check_program(const struct pawl_program *program, const char *what);

/* Every field of a program, malloc'ed. */
char *pawl_test_dump_program(const struct pawl_program *program);

#endif
