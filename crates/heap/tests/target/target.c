/* A program with a malloc heap of known content, on which a reader of heaps from outside is proven.
 *
 * Usage: target THREADS SHAPE MIB SEED [OPTIONS]; README.md has shapes, options and the protocol on stdin.
 *
 * Thread 0 is the main thread and fills the main arena; each other thread fills the arena that its first malloc attaches.
 * Commands are served by one more thread, which never calls malloc or free: it would attach an arena and a tcache of its own.
 * For the same reason nothing here lets libc allocate behind its back: tables of pointers are mappings, stdout has a static
 * buffer, joins and corruption run in thread 0. Same arguments, same sequence of calls per arena. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

enum { MAX_THREADS = 256, MAX_MIX = 600 * 1024 };

/* glibc's mallinfo2 is newer than some glibc that this must compile on, and musl has none of the three. */
struct mallinfo2_fields {
    size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
};
extern struct mallinfo2_fields libc_mallinfo2(void) __asm__("mallinfo2") __attribute__((weak));
extern int libc_malloc_info(int, FILE *) __asm__("malloc_info") __attribute__((weak));
extern int libc_malloc_trim(size_t) __asm__("malloc_trim") __attribute__((weak));

enum shape { FULL, FRAG, TINY, MIX, BIG, FAST };
static const char *const shape_names[] = {"full", "frag", "tiny", "mix", "big", "fast"};
enum job { NO_JOB, BUILD, FREE_SHARE, CROSS_FREE, EXIT_THREAD, JOIN_EXITED, CHURN, CORRUPT };

/* The counters are written by one thread at a time and may be read meanwhile, by the serving thread or from outside: `live` is first. */
struct worker {
    _Alignas(64) atomic_size_t live;
    atomic_size_t chunks, mmapped, mmapped_bytes, ops;
    void **table; /* live chunks, dense */
    size_t capacity;
    uint64_t random;
    enum job job;
    int exited;
    pthread_t thread;
};
static struct worker workers[MAX_THREADS];

static int n_workers, cross_free, exit_threads, foreign_brk, foreign_sbrk;
static int is_glibc_malloc; /* otherwise chunk headers mean nothing */
static enum shape shape;
static size_t page_bytes;
static size_t budget_bytes; /* of each thread */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t posted = PTHREAD_COND_INITIALIZER, finished = PTHREAD_COND_INITIALIZER;
static atomic_int stopping;
static int churning, churn_mixed;
static double churn_ops_per_us; /* of each thread; 0 is flat out */
static int64_t churn_start_us, churn_end_us;
static const char *corrupt_kind, *corrupt_result;

static void die(const char *what) {
    fprintf(stderr, "error: %s: %s\n", what, strerror(errno));
    _exit(3);
}

static int64_t now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static uint64_t next_random(struct worker *w) { /* xorshift64* */
    w->random ^= w->random >> 12;
    w->random ^= w->random << 25;
    w->random ^= w->random >> 27;
    return w->random * 0x2545F4914F6CDD1DULL >> 16;
}

static size_t between(struct worker *w, size_t low, size_t high) { return low + next_random(w) % (high - low + 1); }

/* Each power of two is as likely as the next one. */
static size_t mixed_size(struct worker *w, size_t high) {
    int bits = 0;
    while ((size_t)32 << bits <= high) bits++;
    size_t low = (size_t)16 << next_random(w) % (bits + 1);
    size_t size = between(w, low, 2 * low - 1);
    return size <= high ? size : high;
}

static size_t header(const void *chunk) { return ((const size_t *)chunk)[-1]; }
/* Whole pages, as mallinfo's hblkhd: size and padding before the chunk, since glibc 2.43 without the header's 16 bytes. */
static size_t mapping_bytes(const void *chunk) {
    size_t padding = ((const size_t *)chunk)[-2] & ~(size_t)15, size = header(chunk) & ~(size_t)7;
    return (padding + size + page_bytes - 1) & ~(page_bytes - 1);
}

static int is_mmapped(const void *chunk) { return is_glibc_malloc && (header(chunk) & 2); }

static void add(atomic_size_t *counter, size_t value) {
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + value, memory_order_relaxed);
}

static void count(struct worker *w, void *chunk, size_t sign) {
    add(&w->chunks, sign);
    if (is_mmapped(chunk)) {
        add(&w->live, sign * mapping_bytes(chunk));
        add(&w->mmapped, sign);
        add(&w->mmapped_bytes, sign * mapping_bytes(chunk));
    } else {
        add(&w->live, sign * (malloc_usable_size(chunk) + 8));
    }
}

/* What real chunks begin with, and what a reader may take for list links: zeroes, pointers to chunks and to data, text. Of large
 * chunks some pages stay untouched. */
static void touch(struct worker *w, void *chunk, size_t size) {
    size_t n = atomic_load_explicit(&w->chunks, memory_order_relaxed);
    uint64_t kind = next_random(w);
    size_t touched = size > 4 * page_bytes && kind % 2 ? size / 2 : size;
    memset(chunk, kind % 5 == 0 ? 0 : 'a' + (int)(kind % 26), touched);
    if (kind % 5 == 1 && n > 0) ((void **)chunk)[0] = w->table[next_random(w) % n];
    if (kind % 5 == 2 && n > 0) ((void **)chunk)[0] = (char *)w->table[next_random(w) % n] - 16;
    if (kind % 5 == 3) ((size_t *)chunk)[0] = kind % 4096;
}

static void *allocate(struct worker *w, size_t size) {
    size_t n = atomic_load_explicit(&w->chunks, memory_order_relaxed);
    if (n == w->capacity) return NULL;
    void *chunk = malloc(size);
    if (!chunk) die("malloc");
    touch(w, chunk, size);
    w->table[n] = chunk;
    count(w, chunk, 1);
    return chunk;
}

static void free_one(struct worker *w, size_t index) {
    void *chunk = w->table[index];
    count(w, chunk, (size_t)-1);
    w->table[index] = w->table[atomic_load_explicit(&w->chunks, memory_order_relaxed)];
    free(chunk);
}

static void free_random(struct worker *w, struct worker *random_of, size_t how_many) {
    while (how_many-- > 0 && w->chunks > 0) free_one(w, next_random(random_of) % w->chunks);
}

static size_t shape_size(struct worker *w) {
    switch (shape) {
    case FULL: return mixed_size(w, 8192);
    case FRAG: return between(w, 16, 168);
    case TINY: return between(w, 16, 56);
    case MIX: return mixed_size(w, MAX_MIX);
    case BIG: return between(w, 160 * 1024, 4096 * 1024);
    case FAST: return between(w, 16, 104);
    }
    return 16;
}

/* The main arena cannot grow by brk any more and goes on in mappings. */
static void take_break(void) {
    enum { BYTES = 3 * 4096 };
    void *at = sbrk(BYTES);
    if (at == (void *)-1) die("sbrk");
    memset(at, 0x5a, BYTES);
}

static void block_brk(void) {
    char *at = (char *)(((uintptr_t)sbrk(0) + page_bytes - 1) & ~(page_bytes - 1));
    void *got = mmap(at, page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (got != at) die("cannot map in front of brk");
}

static void build(struct worker *w) {
    size_t half = budget_bytes / 2;
    int is_main = w == workers;
    while (w->live < budget_bytes) {
        if (is_main && half && w->live >= half) {
            half = 0;
            if (foreign_brk) block_brk();
            if (foreign_sbrk) take_break();
        }
        if (!allocate(w, shape_size(w))) break;
    }
}

/* After all threads have built: freeing a mmapped chunk raises the threshold from which malloc maps. */
static void free_share(struct worker *w) {
    static const int percent[] = {[FULL] = 0, [FRAG] = 50, [TINY] = 25, [MIX] = 50, [BIG] = 25, [FAST] = 50};
    free_random(w, w, w->chunks * percent[shape] / 100);
}

/* Frees chunks of the next thread's arena: they lie in this thread's tcache, the rest in that arena's bins. */
static void free_of_next(struct worker *w) {
    struct worker *next = &workers[(w - workers + 1) % n_workers];
    free_random(next, w, next->chunks / 50);
}

static void churn_op(struct worker *w, size_t keep_bytes) {
    size_t slack = keep_bytes / 50 + MAX_MIX;
    int grows = w->live + slack < keep_bytes || (w->live < keep_bytes + slack && next_random(w) % 2);
    if (w->chunks == 0 || (grows && w->chunks < w->capacity)) {
        allocate(w, churn_mixed ? mixed_size(w, MAX_MIX) : between(w, 16, 168));
    } else {
        free_one(w, next_random(w) % w->chunks);
    }
    add(&w->ops, 1);
}

static void churn(struct worker *w) {
    size_t keep_bytes = w->live;
    struct timespec pause = {0, 1000000};
    while (!stopping) {
        size_t due = 64;
        if (churn_ops_per_us > 0) {
            size_t total = (size_t)((double)(now_us() - churn_start_us) * churn_ops_per_us);
            due = total > w->ops ? total - w->ops : 0;
        }
        for (size_t i = 0; i < due && !(i % 64 == 63 && stopping); i++) churn_op(w, keep_bytes);
        if (churn_ops_per_us > 0) nanosleep(&pause, NULL);
    }
}

/* A free chunk in the main arena's unsorted bin between two live ones. New unsorted chunks are inserted behind the bin's head,
 * so its bk is that head, 16 bytes before the arena's bins. Too large for tcache, fastbins and small bins. */
static char *free_between_live(char **live) {
    enum { N = 64, SIZE = 1496, CHUNK = 1504 };
    char *chunks[N];
    for (int i = 0; i < N; i++) chunks[i] = malloc(SIZE);
    for (int i = 1; i + 1 < N; i++) {
        if (chunks[i] - chunks[i - 1] != CHUNK || chunks[i + 1] - chunks[i] != CHUNK) continue;
        *live = chunks[i + 1];
        free(chunks[i]);
        return chunks[i];
    }
    return NULL;
}

static size_t *words(void *at) { return at; }

/* Links of thread caches and fast bins are XORed with their own address since glibc 2.32; `known` is a link to `to`. */
static size_t link_like(void *known, void *to, void *from, void *target) {
    return *words(known) == (size_t)to ? (size_t)target : (size_t)from >> 12 ^ (size_t)target;
}

/* The two chunks that were freed last link to each other; `before` others go elsewhere first. */
static int loop_of_two(size_t size, int before, size_t header_bytes) {
    enum { MOST = 16 };
    char *chunks[MOST];
    int n = before + 2;
    for (int i = 0; i < n; i++) chunks[i] = malloc(size);
    for (int i = 0; i < n; i++) free(chunks[i]);
    char *a = chunks[n - 2], *b = chunks[n - 1];
    size_t link = link_like(b, a - header_bytes, a, b - header_bytes);
    *words(a) = link;
    return 1;
}

/* The heap before the last one of the second thread's arena is itself. */
static int loop_of_heaps(void) {
    if (n_workers < 2) return 0;
    size_t alignment = (size_t)64 << 20;
    size_t *heap = words((void *)((size_t)workers[1].table[0] & ~(alignment - 1)));
    size_t *bins = words((void *)(heap[0] + 112)), *last = words((void *)(bins[-2] & ~(alignment - 1)));
    if (last[0] != heap[0]) return 0;
    last[1] = (size_t)last;
    return 1;
}

/* Arenas that no thread made: each has a heap of 64 MiB of which two pages were touched, a terabyte in all. Their second chunk
 * has no valid size and their top is before it, so that a reader looks for the next chunk to the end. */
static int forge_arenas(char *main_bins) {
    enum { ARENAS = 16000, HEADER = 48, BINS = 112, FIRST = 2256, NEXT = 2048, SYSTEM = 2072 };
    const size_t heap_bytes = (size_t)64 << 20;
    char *space = mmap(NULL, (ARENAS + 1) * heap_bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (space == MAP_FAILED || madvise(space, (ARENAS + 1) * heap_bytes, MADV_NOHUGEPAGE)) return 0;
    char *heap = (char *)(((size_t)space + heap_bytes - 1) & ~(heap_bytes - 1)), *state = main_bins - BINS;
    for (int i = 0; i < ARENAS; i++, heap += heap_bytes) {
        char *bins = heap + HEADER + BINS;
        size_t header[] = {(size_t)heap + HEADER, 0, heap_bytes, heap_bytes, page_bytes};
        memcpy(heap, header, sizeof header);
        *words(bins - 16) = (size_t)heap + 16; /* top */
        *words(heap + FIRST + 8) = heap_bytes / 2 | 5;
        *words(heap + FIRST + heap_bytes / 2 + 8) = 7;
        for (int bin = 0; bin < 127; bin++) words(bins)[bin * 2] = words(bins)[bin * 2 + 1] = (size_t)bins + bin * 16 - 16;
        *words(bins + NEXT) = (size_t)state;
        words(bins + NEXT)[2] = 1;
        *words(bins + SYSTEM) = heap_bytes;
        state = heap + HEADER;
    }
    *words(main_bins + NEXT) = (size_t)state;
    return 1;
}

/* Pages among live chunks of the second thread go away and come back, with their content only in the end, until `stop`. */
static int remap(void) {
    enum { BYTES = 1 << 20 };
    if (n_workers < 2 || workers[1].chunks < 4) return 0;
    char *at = (char *)((size_t)workers[1].table[workers[1].chunks / 2] & ~((size_t)BYTES - 1));
    if (((size_t)at & (((size_t)64 << 20) - 1)) == 0) at += BYTES;
    char *aside = mmap(NULL, BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (aside == MAP_FAILED) return 0;
    while (!stopping) {
        if (mremap(at, BYTES, BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, aside) == MAP_FAILED) return 0;
        for (int i = 0; i < 3; i++) {
            int access = i == 1 ? PROT_NONE : PROT_READ | PROT_WRITE;
            if (mmap(at, BYTES, access, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != at) return 0;
            if (i == 2) memset(at, 0xa5, BYTES);
        }
        if (mremap(aside, BYTES, BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, at) == MAP_FAILED) return 0;
    }
    return 1;
}

static int corrupt_arena(void) {
    char *live, *chunk = free_between_live(&live);
    if (!chunk) return 0;
    char *bins = ((char **)chunk)[1] + 16;
    if (!strcmp(corrupt_kind, "loop")) {
        ((char **)chunk)[0] = ((char **)chunk)[1] = chunk - 16;
    } else if (!strcmp(corrupt_kind, "size")) {
        ((size_t *)live)[-1] = (size_t)1 << 63 | 1;
    } else if (!strcmp(corrupt_kind, "top")) {
        *(char **)(bins - 16) += (size_t)1 << 40;
    } else if (!strcmp(corrupt_kind, "ring")) {
        /* An arena with its own address in every field: the ring never closes at main_arena, wherever this version has it. */
        char *forged = mmap(NULL, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (forged == MAP_FAILED) return 0;
        for (size_t i = 0; i < page_bytes / sizeof(char *); i++) ((char **)forged)[i] = forged;
        *(char **)(bins + 2048) = forged;
    } else if (!strcmp(corrupt_kind, "arenas")) {
        return forge_arenas(bins);
    } else {
        return 0;
    }
    return 1;
}

static const char *corrupt(void) {
    int done = 0;
    if (!is_glibc_malloc) return "unsupported";
    if (!strcmp(corrupt_kind, "cache")) done = loop_of_two(1000, 0, 0);
    else if (!strcmp(corrupt_kind, "fast")) done = loop_of_two(56, 7, 16);
    else if (!strcmp(corrupt_kind, "heaps")) done = loop_of_heaps();
    else if (!strcmp(corrupt_kind, "remap")) done = remap();
    else done = corrupt_arena();
    return done ? corrupt_kind : "unsupported";
}

static void join_exited(void) {
    for (int i = 1; i < n_workers; i++)
        if (workers[i].exited) pthread_join(workers[i].thread, NULL);
}

/* Parked on a condition variable between jobs, so that its tcache stays. */
static void *work(void *argument) {
    struct worker *w = argument;
    for (;;) {
        pthread_mutex_lock(&lock);
        while (w->job == NO_JOB) pthread_cond_wait(&posted, &lock);
        enum job job = w->job;
        pthread_mutex_unlock(&lock);
        switch (job) {
        case BUILD: build(w); break;
        case FREE_SHARE: free_share(w); break;
        case CROSS_FREE: free_of_next(w); break;
        case JOIN_EXITED: join_exited(); break;
        case CHURN: churn(w); break;
        case CORRUPT: corrupt_result = corrupt(); break;
        case EXIT_THREAD: case NO_JOB: break;
        }
        pthread_mutex_lock(&lock);
        w->job = NO_JOB;
        w->exited = job == EXIT_THREAD;
        pthread_cond_broadcast(&finished);
        pthread_mutex_unlock(&lock);
        if (job == EXIT_THREAD) return NULL;
    }
}

static void post(struct worker *w, enum job job) {
    pthread_mutex_lock(&lock);
    if (!w->exited) w->job = job;
    pthread_cond_broadcast(&posted);
    pthread_mutex_unlock(&lock);
}

static void await(struct worker *w) {
    pthread_mutex_lock(&lock);
    while (w->job != NO_JOB) pthread_cond_wait(&finished, &lock);
    pthread_mutex_unlock(&lock);
}

static void run(struct worker *w, enum job job) {
    post(w, job);
    await(w);
}

/* One after the other: the order of arenas and the calls in shared ones are the same each time. */
static void run_in_turn(enum job job) {
    for (int i = 0; i < n_workers; i++) run(&workers[i], job);
}

static void print_live(const char *word) {
    size_t live = 0, chunks = 0, mmapped = 0, mmapped_bytes = 0;
    for (int i = 0; i < n_workers; i++) {
        live += workers[i].live;
        chunks += workers[i].chunks;
        mmapped += workers[i].mmapped;
        mmapped_bytes += workers[i].mmapped_bytes;
    }
    printf("%s live=%zu chunks=%zu mmapped=%zu mmapped_bytes=%zu", word, live, chunks, mmapped, mmapped_bytes);
}

static void print_ops(const char *word) {
    size_t ops = 0;
    for (int i = 0; i < n_workers; i++) ops += workers[i].ops;
    int64_t elapsed_us = (churning ? now_us() : churn_end_us) - churn_start_us;
    printf("%s ops=%zu seconds=%lld.%06lld", word, ops, (long long)(elapsed_us / 1000000), (long long)(elapsed_us % 1000000));
}

static size_t read_file(const char *path, char *into, size_t size) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = file < 0 ? -1 : read(file, into, size - 1);
    if (file >= 0) close(file);
    into[got > 0 ? got : 0] = 0;
    return got > 0 ? (size_t)got : 0;
}

/* statm's figure may be off by a batch of pages for each CPU; smaps_rollup counts the page table. */
static void print_rss(const char *when) {
    static char text[4096];
    size_t pages = 0;
    if (read_file("/proc/self/statm", text, sizeof text)) sscanf(text, "%*u %zu", &pages);
    printf(" rss_%s=%zu", when, pages * page_bytes);
    read_file("/proc/self/smaps_rollup", text, sizeof text);
    const char *at = strstr(text, "\nAnonymous:");
    printf(" anon_%s=%zu", when, at ? (size_t)strtoull(at + 11, NULL, 10) * 1024 : 0);
}

static void serve_info(void) {
    if (libc_mallinfo2) {
        struct mallinfo2_fields m = libc_mallinfo2();
        printf("mallinfo2 arena=%zu ordblks=%zu smblks=%zu hblks=%zu hblkhd=%zu uordblks=%zu fordblks=%zu fsmblks=%zu keepcost=%zu\n",
               m.arena, m.ordblks, m.smblks, m.hblks, m.hblkhd, m.uordblks, m.fordblks, m.fsmblks, m.keepcost);
    } else {
        printf("mallinfo2 absent\n");
    }
    printf("malloc_info begin\n");
    if (libc_malloc_info) libc_malloc_info(0, stdout);
    printf("malloc_info end\n");
}

static void serve_trim(void) {
    printf("trim");
    print_rss("before");
    int returned = libc_malloc_trim ? libc_malloc_trim(0) : 0;
    print_rss("after");
    printf(" returned=%d\n", returned);
}

static void serve_churn(const char *sizes, const char *rate) {
    if (churning || !sizes || !rate) {
        printf("error churn SMALL|MIX RATE, once until stop\n");
        return;
    }
    int running = 0;
    for (int i = 0; i < n_workers; i++) {
        running += !workers[i].exited;
        workers[i].ops = 0;
    }
    churn_mixed = !strcmp(sizes, "MIX");
    churn_ops_per_us = strtod(rate, NULL) / 1e6 / running;
    stopping = 0;
    churning = 1;
    churn_start_us = now_us();
    for (int i = 0; i < n_workers; i++) post(&workers[i], CHURN);
    printf("churning\n");
}

static void serve_stop(void) {
    stopping = 1;
    for (int i = 0; i < n_workers; i++) await(&workers[i]);
    if (churning) churn_end_us = now_us();
    churning = 0;
    print_live("stopped");
    print_ops("");
    printf("\n");
}

static void serve_corrupt(const char *kind) {
    static char kept[16];
    if (churning || !kind) {
        printf("error corrupt loop|size|top|ring|arenas|cache|fast|heaps|remap, not while churning\n");
        return;
    }
    snprintf(kept, sizeof kept, "%s", kind);
    corrupt_kind = kept;
    stopping = 0;
    post(&workers[0], CORRUPT);
    if (strcmp(kept, "remap")) {
        await(&workers[0]);
        printf("corrupted %s\n", corrupt_result);
    } else {
        printf("corrupted remap\n");
    }
}

static void serve_line(char *line) {
    char *rest = NULL, *command = strtok_r(line, " \r", &rest);
    char *first = command ? strtok_r(NULL, " \r", &rest) : NULL, *second = first ? strtok_r(NULL, " \r", &rest) : NULL;
    if (!command) return;
    if (!strcmp(command, "info")) serve_info();
    else if (!strcmp(command, "trim")) serve_trim();
    else if (!strcmp(command, "live")) print_live("live"), printf("\n");
    else if (!strcmp(command, "churn")) serve_churn(first, second);
    else if (!strcmp(command, "stop")) serve_stop();
    else if (!strcmp(command, "ops")) print_ops("ops"), printf("\n");
    else if (!strcmp(command, "corrupt")) serve_corrupt(first);
    else if (!strcmp(command, "exit")) _exit(0);
    else printf("error unknown command\n");
    fflush(stdout);
}

/* Ends the process at the end of stdin, so that no target outlives its test. */
static void *serve(void *unused) {
    (void)unused;
    run_in_turn(BUILD);
    run_in_turn(FREE_SHARE);
    if (cross_free) run_in_turn(CROSS_FREE);
    for (int i = 1; exit_threads && i < n_workers; i += 2) run(&workers[i], EXIT_THREAD);
    if (exit_threads) run(&workers[0], JOIN_EXITED);
    static char ready[32], input[4096];
    snprintf(ready, sizeof ready, "ready %d", (int)getpid());
    print_live(ready);
    printf(" counters=%zu stride=%zu threads=%d\n", (size_t)workers, sizeof *workers, n_workers);
    fflush(stdout);
    size_t n = 0;
    for (;;) {
        ssize_t got = read(0, input + n, sizeof input - 1 - n);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) _exit(0);
        n += (size_t)got;
        input[n] = 0;
        char *line = input, *end;
        for (; (end = strchr(line, '\n')); line = end + 1) {
            *end = 0;
            serve_line(line);
        }
        n -= (size_t)(line - input);
        memmove(input, line, n);
        if (n == sizeof input - 1) _exit(3);
    }
}

/* By the header of a chunk: another allocator may be preloaded, or libc is musl. Of two chunks the higher one has memory before it. */
static int finds_glibc_malloc(void) {
    void *a = malloc(24), *b = malloc(24);
    void *higher = a > b ? a : b;
    int found = (header(higher) & ~(size_t)7) == 32 && malloc_usable_size(higher) == 24;
    free(a);
    free(b);
    return found;
}

static void usage(void) {
    static const char text[] = "usage: target THREADS full|frag|tiny|mix|big|fast MIB SEED [--exit-threads] [--cross-free] "
                               "[--foreign-brk] [--foreign-sbrk]\n";
    if (write(2, text, sizeof text - 1) < 0) _exit(4);
    _exit(3);
}

static void parse(int n_arguments, char **arguments) {
    if (n_arguments < 5) usage();
    n_workers = atoi(arguments[1]);
    int found = 0;
    for (int i = 0; i <= FAST; i++)
        if (!strcmp(arguments[2], shape_names[i])) shape = (enum shape)i, found = 1;
    if (!found || n_workers < 1 || n_workers > MAX_THREADS) usage();
    budget_bytes = (size_t)strtoull(arguments[3], NULL, 10) * 1024 * 1024 / (size_t)n_workers;
    for (int i = 5; i < n_arguments; i++) {
        if (!strcmp(arguments[i], "--exit-threads")) exit_threads = 1;
        else if (!strcmp(arguments[i], "--cross-free")) cross_free = 1;
        else if (!strcmp(arguments[i], "--foreign-brk")) foreign_brk = 1;
        else if (!strcmp(arguments[i], "--foreign-sbrk")) foreign_sbrk = 1;
        else usage();
    }
    uint64_t seed = strtoull(arguments[4], NULL, 10);
    for (int i = 0; i < n_workers; i++) {
        struct worker *w = &workers[i];
        w->random = (seed + 1) * 0x9E3779B97F4A7C15ULL ^ (uint64_t)(i + 1) * 0xD1B54A32D192ED03ULL;
        w->capacity = budget_bytes / 32 + budget_bytes / 64 + 4096; /* room for churn's slack in the smallest chunks */
        w->table = mmap(NULL, w->capacity * sizeof(void *), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (w->table == MAP_FAILED) die("mmap");
    }
}

int main(int n_arguments, char **arguments) {
    static char output[1 << 16];
    setvbuf(stdout, output, _IOFBF, sizeof output);
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); /* under Yama a test's tool is a sibling, not a parent */
    page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    parse(n_arguments, arguments);
    is_glibc_malloc = finds_glibc_malloc();
    for (int i = 1; i < n_workers; i++)
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i])) die("pthread_create");
    pthread_t server;
    if (pthread_create(&server, NULL, serve, NULL)) die("pthread_create");
    work(&workers[0]);
    return 0;
}
