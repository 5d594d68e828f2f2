#include "ir/woven_block.h"

#include <string.h>

enum { SCALE = 2 };

void
pawl_woven_block_read(const void *blocks, int lane, void *block)
{
	const char *q = (const char *)blocks + PAWL_WOVEN_SCALES + lane;
	char *to = block;

	memcpy(to, (const char *)blocks + SCALE * lane, SCALE);
	for (int i = 0; i < PAWL_WOVEN_COLUMNS; i++)
		to[SCALE + i] = q[PAWL_WOVEN_LANES * i];
}

void
pawl_woven_block_write(void *blocks, int lane, const void *block)
{
	char *q = (char *)blocks + PAWL_WOVEN_SCALES + lane;
	const char *from = block;

	memcpy((char *)blocks + SCALE * lane, from, SCALE);
	for (int i = 0; i < PAWL_WOVEN_COLUMNS; i++)
		q[PAWL_WOVEN_LANES * i] = from[SCALE + i];
}
