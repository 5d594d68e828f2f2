/* A module that is no target, for tests of loading. */

__attribute__((visibility("default"))) int pawl_test_plain(void);

int
pawl_test_plain(void)
{
	return 1;
}
