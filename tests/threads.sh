# The suites with threads alone, for a build under ThreadSanitizer: plans that sessions share, caches
# that forks share, the worker pool.
. "$top_srcdir/tests/cli-lib.sh"

unit_suites host_services kv_fork paged_decoder plan_cache pool
finish
