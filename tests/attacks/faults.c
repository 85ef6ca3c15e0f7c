/* Make the k-th call on files below a folder fail, or the k-th large allocation.
 *
 * Preloaded into a process (LD_PRELOAD), which arms it by `faults_arm`. Counted are calls that write,
 * sync, rename, link, truncate, reserve, make or read; those on other files are passed on.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static char folder[PATH_MAX];
static volatile long calls, fail_at, least_bytes;
static int reason;
static char failed[64];

/* Fail at call `at` (0: count only); bytes > 0: count allocations of so many instead of calls. */
void faults_arm(const char *below, long at, int error, long bytes)
{
    fail_at = 0;
    strncpy(folder, below, sizeof folder - 1);
    calls = 0;
    reason = error;
    least_bytes = bytes;
    failed[0] = 0;
    fail_at = at;
    if (!at) fail_at = LONG_MAX;
}

/* End counting; how many calls there were. */
long faults_end(void)
{
    long seen = calls;
    fail_at = 0;
    return seen;
}

/* The call that failed, or an empty text. */
const char *faults_failed(void) { return failed; }

static int is_below(const char *path)
{
    size_t n = strlen(folder);
    return path && n && strncmp(path, folder, n) == 0;
}

static int is_due(const char *name)
{
    if (__sync_add_and_fetch(&calls, 1) != fail_at) return 0;
    strncpy(failed, name, sizeof failed - 1);
    errno = reason;
    return 1;
}

static int fails_path(const char *name, const char *path)
{
    return fail_at && !least_bytes && is_below(path) && is_due(name);
}

static int fails_file(const char *name, int file)
{
    char link[64], path[PATH_MAX];
    int saved = errno;
    if (!fail_at || least_bytes) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n < 0) { errno = saved; return 0; }
    path[n] = 0;
    errno = saved;
    return is_below(path) && is_due(name);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int f, const void *b, size_t n) { return fails_file("write", f) ? -1 : REAL(write)(f, b, n); }
ssize_t read(int f, void *b, size_t n) { return fails_file("read", f) ? -1 : REAL(read)(f, b, n); }
size_t fread(void *b, size_t s, size_t n, FILE *f) { return fails_file("fread", fileno(f)) ? 0 : REAL(fread)(b, s, n, f); }
size_t fwrite(const void *b, size_t s, size_t n, FILE *f) { return fails_file("fwrite", fileno(f)) ? 0 : REAL(fwrite)(b, s, n, f); }
int fsync(int f) { return fails_file("fsync", f) ? -1 : REAL(fsync)(f); }
int ftruncate(int f, off_t n) { return fails_file("ftruncate", f) ? -1 : REAL(ftruncate)(f, n); }
int ftruncate64(int f, off64_t n) { return fails_file("ftruncate", f) ? -1 : REAL(ftruncate64)(f, n); }
int posix_fallocate(int f, off_t a, off_t n) { return fails_file("posix_fallocate", f) ? reason : REAL(posix_fallocate)(f, a, n); }
int posix_fallocate64(int f, off64_t a, off64_t n) { return fails_file("posix_fallocate", f) ? reason : REAL(posix_fallocate64)(f, a, n); }
int rename(const char *a, const char *b) { return fails_path("rename", a) ? -1 : REAL(rename)(a, b); }
int link(const char *a, const char *b) { return fails_path("link", a) ? -1 : REAL(link)(a, b); }
int linkat(int x, const char *a, int y, const char *b, int flags) { return fails_path("link", a) ? -1 : REAL(linkat)(x, a, y, b, flags); }
int mkdir(const char *a, mode_t mode) { return fails_path("mkdir", a) ? -1 : REAL(mkdir)(a, mode); }

/* Allocations, by glibc's own names for its functions. */

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);

static int fails_bytes(size_t n)
{
    return fail_at && least_bytes && n >= (size_t)least_bytes && is_due("allocation");
}

void *malloc(size_t n) { return fails_bytes(n) ? NULL : __libc_malloc(n); }
void *calloc(size_t a, size_t b) { return fails_bytes(a * b) ? NULL : __libc_calloc(a, b); }
void *realloc(void *p, size_t n) { return fails_bytes(n) ? NULL : __libc_realloc(p, n); }
