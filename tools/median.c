#include "tools/median.h"

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
