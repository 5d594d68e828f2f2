/*
 * Blocks of q8_0 in layout K16: the blocks of the same 32 columns of 16 positions lie together,
 *
 *	struct { f16 scale[16]; i8 q[32][16]; }
 *
 * so that a lane is a position, as for the plain types.  A block outside is { f16 scale; i8 q[32]; }.
 * No address needs to be aligned.
 */
#ifndef PAWL_IR_WOVEN_BLOCK_H
#define PAWL_IR_WOVEN_BLOCK_H

enum {
	PAWL_WOVEN_LANES = 16,
	PAWL_WOVEN_COLUMNS = 32,
	PAWL_WOVEN_SCALES = 2 * PAWL_WOVEN_LANES, /* bytes before q */
	PAWL_WOVEN_BYTES = PAWL_WOVEN_SCALES + PAWL_WOVEN_COLUMNS * PAWL_WOVEN_LANES
};

/* Lane `lane` of the 16 blocks at `blocks`. */
void pawl_woven_block_read(const void *blocks, int lane, void *block);
void pawl_woven_block_write(void *blocks, int lane, const void *block);

#endif
