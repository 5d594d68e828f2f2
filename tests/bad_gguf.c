/*
 * bad-gguf DIR: writes the malformed GGUF files into DIR, each named after its fault, and prints
 * "NAME<tab>MESSAGE" for each; the message is what the reader says after "FILE: ".
 */
#include "tests/bad_gguf_corpus.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool
write_file(const char *folder, const char *name, const void *bytes, size_t n_bytes)
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s.gguf", folder, name);
	file = fopen(path, "wb");
	if (!file || fwrite(bytes, 1, n_bytes, file) != n_bytes || fclose(file)) {
		fprintf(stderr, "bad-gguf: %s: %s\n", path, strerror(errno));
		return false;
	}
	return true;
}

int
main(int argc, char **argv)
{
	struct pawl_bad_gguf bad;
	char name[32];
	size_t i, n;
	void *small;
	bool ok = true;

	if (argc != 2) {
		fprintf(stderr, "usage: bad-gguf DIR\n");
		return 2;
	}
	for (i = 0; ok && i < pawl_n_bad_ggufs(); i++) {
		pawl_bad_gguf_make(i, &bad);
		ok = write_file(argv[1], bad.name, bad.bytes, bad.n_bytes);
		free(bad.bytes);
		printf("%s\t%s\n", bad.name, bad.says);
	}
	small = pawl_small_gguf(3, &n);
	for (i = 1; ok && i < n; i += 32) {
		snprintf(name, sizeof(name), "cut-at-%zu", i);
		ok = write_file(argv[1], name, small, i);
		printf("%s\tbyte\n", name);
	}
	free(small);
	return ok ? 0 : 1;
}
