/*
 * The fixture of a suite on snapshots of a decoder's cache.  Included by the one source of a suite,
 * whose own the statics are.
 */
#ifndef PAWL_TESTS_KV_SNAPSHOT_FIXTURE_H
#define PAWL_TESTS_KV_SNAPSHOT_FIXTURE_H

#include "runtime/kv_snapshot.h"

#include <check.h>
#include <stddef.h>
#include <string.h>

#include "tests/decoder_fixture.h"
#include "tests/snapshot_file.h"

enum { N_CACHED = 21, N_TOKENS = 23, HEADER = sizeof(struct pawl_kv_snapshot_header) };

static uint32_t tokens[N_TOKENS];
static struct pawl_snapshot_file file;
static struct pawl_error err;

#define OK(call) ck_assert_msg((call) == PAWL_OK, "%s", err.text)

static inline void
save(const uint32_t *of, int64_t n)
{
	const struct pawl_kv_snapshot_sink to = pawl_snapshot_file_begin(&file);

	OK(pawl_decoder_save(decoder, of, n, &to, &err));
	pawl_snapshot_file_end(&to);
}

/* A decoder with 21 positions, saved. */
static inline void
begin_snapshot(void)
{
	begin_decoder();
	for (int i = 0; i < N_TOKENS; i++)
		tokens[i] = pawl_test_token(1, i);
	pawl_test_prefill(decoder, 1, 0, N_CACHED);
	pawl_snapshot_file_init(&file);
	save(tokens, N_TOKENS);
}

static inline void
end_snapshot(void)
{
	pawl_snapshot_file_release(&file);
	end_decoder();
}

static inline enum pawl_status
try_open(void)
{
	return pawl_snapshot_file_try(&file, &err);
}

static inline enum pawl_status
restore(struct pawl_decoder *to)
{
	struct pawl_kv_snapshot *snapshot;
	enum pawl_status status;

	OK(pawl_kv_snapshot_open(file.path, &snapshot, &err));
	status = pawl_decoder_restore(to, snapshot, &err);
	pawl_kv_snapshot_free(snapshot);
	return status;
}

/* Puts the header, under its checksum, in front of the rest of n bytes. */
static inline void
write_with(struct pawl_kv_snapshot_header header, char *bytes, size_t n)
{
	header.checksum = pawl_kv_checksum(
		0, &header, offsetof(struct pawl_kv_snapshot_header, checksum));
	memcpy(bytes, &header, sizeof(header));
	pawl_snapshot_file_write(&file, bytes, n);
}

#endif
