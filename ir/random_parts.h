/* What the files of the random-graph generator (ir/random.h) share. */
#ifndef PAWL_IR_RANDOM_PARTS_H
#define PAWL_IR_RANDOM_PARTS_H

#include "ir/build.h"
#include "ir/random.h"

enum { PAWL_RANDOM_POOL = 128, PAWL_RANDOM_MAX_ELEMS = 4096 };

/* A value and a bound on the magnitude of its elements. */
struct pawl_random_value {
	struct pawl_node *node;
	double bound;
};

struct pawl_random {
	struct pawl_graph *graph;
	uint64_t state;
	unsigned flavours;
	struct pawl_dim tokens;                          /* dims given as PAWL_RANDOM_TOKENS */
	int64_t width;                                   /* of most rows */
	struct pawl_random_value pool[PAWL_RANDOM_POOL]; /* f32 values to go on with */
	int n_pool;
	struct pawl_node *results[PAWL_RANDOM_POOL]; /* wanted as outputs */
	int n_results;
	int n_names;
	struct pawl_node *spare; /* stands in for results after a failure */
};

enum { PAWL_RANDOM_TOKENS = -1 };

/* splitmix64. */
uint64_t pawl_random_next(uint64_t *state);
/* 0 .. n - 1 */
int64_t pawl_random_below(struct pawl_random *r, int64_t n);
bool pawl_random_chance(struct pawl_random *r, int percent);
bool pawl_random_has(const struct pawl_random *r, unsigned flavour);
/* One of n numbers. */
int64_t pawl_random_pick(struct pawl_random *r, const int64_t *list, int n);

struct pawl_type pawl_random_type(
	struct pawl_random *r, enum pawl_dtype dtype, int rank, const int64_t *dims);
/* A new const with a name of its own, made from `stem`. */
struct pawl_node *pawl_random_const(
	struct pawl_random *r, enum pawl_role role, const char *stem, const struct pawl_type *type);
struct pawl_node *pawl_random_dims(struct pawl_random *r, enum pawl_role role, const char *stem,
	enum pawl_dtype dtype, int rank, const int64_t *dims);
/* pawl_build, but never NULL: after a failure r->spare. */
struct pawl_node *pawl_random_op(struct pawl_random *r, enum pawl_op op,
	struct pawl_node *const *inputs, int n_inputs, const struct pawl_attrs *attrs,
	const struct pawl_type *type);
struct pawl_node *pawl_random_op1(struct pawl_random *r, enum pawl_op op, struct pawl_node *x);
struct pawl_node *pawl_random_op2(
	struct pawl_random *r, enum pawl_op op, struct pawl_node *x, struct pawl_node *y);
/* The same for what ir/build.h returns. */
struct pawl_node *pawl_random_some(struct pawl_random *r, struct pawl_node *node);

/* Adds an f32 value to the pool when stored values can be made of it. */
void pawl_random_keep(struct pawl_random *r, struct pawl_node *node, double bound);
void pawl_random_result(struct pawl_random *r, struct pawl_node *node);
/* Any value of the pool. */
struct pawl_random_value pawl_random_any(struct pawl_random *r);
/* An [tokens, width] value: one of the pool or a new const. */
struct pawl_random_value pawl_random_rows(struct pawl_random *r, int64_t width);
/* x, or something of it that stays within the limit. */
struct pawl_random_value pawl_random_tame(
	struct pawl_random *r, struct pawl_random_value x, double limit);
/* x times a weight [n, row length of x]. */
struct pawl_random_value pawl_random_matmul(
	struct pawl_random *r, struct pawl_random_value x, int64_t n, enum pawl_dtype dtype);
/* A weight type whose blocks divide k. */
enum pawl_dtype pawl_random_weight_dtype(struct pawl_random *r, int64_t k);
struct pawl_random_value pawl_random_rms_norm(struct pawl_random *r, struct pawl_random_value x);
/* f32 of x. */
struct pawl_node *pawl_random_f32(struct pawl_random *r, struct pawl_node *x);
/* Largest number of elements a value may have. */
int64_t pawl_random_elems(const struct pawl_random *r, const struct pawl_type *type);

/* Each adds a few nodes. */
void pawl_random_add_compute(struct pawl_random *r);
void pawl_random_add_views(struct pawl_random *r);
void pawl_random_add_state(struct pawl_random *r);
void pawl_random_add_redundant(struct pawl_random *r);
void pawl_random_add_attention(struct pawl_random *r);
void pawl_random_add_block(struct pawl_random *r);
void pawl_random_add_lowered(struct pawl_random *r);

#endif
