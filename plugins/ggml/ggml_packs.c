#include "plugins/ggml/ggml_packs.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/weights.h"

struct pack {
	const char *rows;
	int64_t n_bytes; /* of the rows */
	struct pawl_storage *packed;
	struct pack *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pack *packs;
static struct pawl_region region; /* of what is packed; released when nothing is */
static int64_t packed_bytes;
static _Atomic uint64_t epoch = 1;

/* Pages that are wholly within the matrix; those of a file come back when they are read. */
static void
drop_pages(const char *rows, int64_t n_bytes)
{
#ifdef MADV_PAGEOUT
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t first = ((uintptr_t)rows + page - 1) / page * page;
	uintptr_t end = ((uintptr_t)rows + (uintptr_t)n_bytes) / page * page;

	if (first < end)
		madvise((void *)first, end - first, MADV_PAGEOUT);
#else
	(void)rows;
	(void)n_bytes;
#endif
}

static enum pawl_status
add(const void *rows, const struct pawl_type *type, struct pawl_team *team, struct pack **out,
	struct pawl_error *err)
{
	struct pawl_type plain = *type;
	struct pawl_storage *source;
	struct pack *pack;
	enum pawl_status status;

	plain.layout = PAWL_LAYOUT_ROWS;
	status = pawl_storage_wrap(&plain, PAWL_LOCATION_HOST, (void *)(uintptr_t)rows,
		pawl_storage_bytes(&plain), NULL, NULL, &source, err);
	if (status)
		return status;
	pack = pawl_memory_zalloc(1, sizeof(*pack));
	status = pack ? pawl_storage_pack(source, type, team, &region, &pack->packed, err)
		      : pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for a packed weight");
	if (status) {
		pawl_memory_free(pack);
	} else {
		pack->rows = rows;
		pack->n_bytes = pawl_storage_bytes(&plain);
		packed_bytes += pack->packed->n_bytes;
		pack->next = packs;
		packs = pack;
		*out = pack;
	}
	pawl_storage_unref(source);
	return status;
}

enum pawl_status
pawl_ggml_packs_get(const void *rows, const struct pawl_type *type, struct pawl_team *team,
	bool may_drop, struct pawl_storage **out, struct pawl_error *err)
{
	enum pawl_status status = PAWL_OK;
	struct pack *pack;

	pthread_mutex_lock(&lock);
	for (pack = packs; pack; pack = pack->next)
		if (pack->rows == rows && pawl_type_equal(&pack->packed->type, type))
			break;
	if (!pack) {
		status = add(rows, type, team, &pack, err);
		if (!status && may_drop)
			drop_pages(pack->rows, pack->n_bytes);
	}
	if (!status)
		*out = pawl_storage_ref(pack->packed);
	pthread_mutex_unlock(&lock);
	return status;
}

void
pawl_ggml_packs_forget(const void *bytes, size_t n_bytes)
{
	const char *first = bytes, *end = first + n_bytes;
	struct pack **at, *pack;
	bool any = false;

	pthread_mutex_lock(&lock);
	for (at = &packs; *at;) {
		pack = *at;
		if (pack->rows >= end || pack->rows + pack->n_bytes <= first) {
			at = &pack->next;
			continue;
		}
		*at = pack->next;
		packed_bytes -= pack->packed->n_bytes;
		pawl_storage_unref(pack->packed);
		pawl_memory_free(pack);
		any = true;
	}
	if (any)
		atomic_fetch_add(&epoch, 1);
	if (!packs)
		pawl_region_release(&region);
	pthread_mutex_unlock(&lock);
}

uint64_t
pawl_ggml_packs_epoch(void)
{
	return atomic_load(&epoch);
}

int64_t
pawl_ggml_packs_bytes(void)
{
	int64_t n;

	pthread_mutex_lock(&lock);
	n = packed_bytes;
	pthread_mutex_unlock(&lock);
	return n;
}
