#include "tools/median.h"

#include <stdio.h>
#include <stdlib.h>

static int
compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double
pawl_median(double *values, int n, double *spread)
{
	double middle;

	qsort(values, (size_t)n, sizeof(*values), compare);
	middle = (values[(n - 1) / 2] + values[n / 2]) / 2;
	*spread = (values[n - 1] - values[0]) / middle;
	return middle;
}

const char *
pawl_spread_text(double spread, int64_t n, int digits, char out[PAWL_SPREAD_BYTES])
{
	if (n < 2)
		return "-";
	snprintf(out, PAWL_SPREAD_BYTES, "%.*f%%", digits, 50 * spread);
	return out;
}
