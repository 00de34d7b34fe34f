// Programs with threads that use the heap in different ways: `workloads NAME SEED`. Each does a fixed amount of work, prints
// `ready PID`, and waits for the end of stdin with its threads parked.
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t seed;
static pthread_barrier_t finished;
struct worker { int id; uint64_t state; };

static uint64_t next(struct worker *w) {
    uint64_t x = w->state;
    x ^= x << 13; x ^= x >> 7; x ^= x << 17;
    return w->state = x;
}
static size_t below(struct worker *w, size_t n) { return next(w) % n; }
static double unit(struct worker *w) { return (double)(next(w) >> 11) / (double)(1ULL << 53); }
// Each power of two between is as likely as the next one.
static size_t scaled(struct worker *w, double low, double high) { return (size_t)(low * pow(high / low, unit(w))); }
static void *made(size_t bytes) { char *p = malloc(bytes); memset(p, 7, bytes); return p; }
static void rest(struct worker *w, unsigned us_max) { usleep((unsigned)below(w, us_max)); }

// Sizes and number of a thread's objects drift, each thread's in its own rhythm.
static void drift(struct worker *w) {
    enum { SLOTS = 8000, STEPS = 300000 };
    static void *table[64][SLOTS];
    void **own = table[w->id];
    double phase = unit(w) * 6.28, rhythm = 2 + 4 * unit(w), size_phase = unit(w) * 6.28;
    for (int step = 0; step < STEPS; step++) {
        double t = (double)step / STEPS * 6.28 * rhythm;
        size_t wanted = (size_t)(SLOTS * (0.55 + 0.4 * sin(t + phase)));
        size_t slot = below(w, SLOTS);
        free(own[slot]);
        own[slot] = slot < wanted ? made(scaled(w, 24, 300) * (size_t)(1 + 3 * (1 + sin(t / 2 + size_phase)))) : NULL;
        if (step % 2000 == 0) rest(w, 2000);
    }
}

// Threads start one after another; each builds a structure, and frees most of it while the next one builds.
static void stagger(struct worker *w) {
    enum { PIECES = 24000 };
    usleep((unsigned)w->id * 60000);
    void **pieces = calloc(PIECES, sizeof *pieces);
    for (int i = 0; i < PIECES; i++) { pieces[i] = made(scaled(w, 24, 2000)); if (i % 1000 == 0) rest(w, 4000); }
    for (int i = 0; i < PIECES; i++) if (below(w, 10) < 8) { free(pieces[i]); pieces[i] = NULL; }
}

// Half of the threads make messages, the other half free them; the backlog grows and shrinks.
struct queue { pthread_mutex_t lock; void *slots[6000]; int count; } queues[32];
static void handover(struct worker *w) {
    enum { MESSAGES = 60000 };
    struct queue *q = &queues[w->id / 2];
    int taken = 0, is_maker = w->id % 2 == 0;
    for (int i = 0; i < MESSAGES; i++) {
        if (is_maker) {
            void *m = made(scaled(w, 64, 8000));
            for (;;) {
                pthread_mutex_lock(&q->lock);
                int full = q->count == 6000;
                if (!full) q->slots[q->count++] = m;
                pthread_mutex_unlock(&q->lock);
                if (!full) break;
                usleep(1000);
            }
            if (i % 500 == 0) rest(w, 3000);
        } else {
            void *m = NULL;
            while (!m) {
                pthread_mutex_lock(&q->lock);
                if (q->count) m = q->slots[below(w, (size_t)q->count)];
                if (m) for (int j = 0; j < q->count; j++) if (q->slots[j] == m) { q->slots[j] = q->slots[--q->count]; break; }
                pthread_mutex_unlock(&q->lock);
                if (!m) usleep(500);
            }
            free(m);
            if (++taken % 10000 == 0) usleep(100000);
        }
    }
}

// Requests: each allocates up to 3 MiB in pieces and frees them; now and then a piece stays in a cache.
static void burst(struct worker *w) {
    void *cache[300] = {0};
    for (int request = 0; request < 120; request++) {
        size_t bytes = scaled(w, 200e3, 3e6), count = 0;
        void **pieces = malloc(80000 * sizeof *pieces);
        while (bytes > 4000 && count < 80000) { size_t size = scaled(w, 40, 4000); pieces[count++] = made(size); bytes -= size; }
        for (size_t i = count; i > 1; i--) { size_t j = below(w, i); void *p = pieces[j]; pieces[j] = pieces[i - 1]; pieces[i - 1] = p; }
        for (size_t i = 0; i < count; i++) {
            if (below(w, 500) == 0) { size_t at = below(w, 300); free(cache[at]); cache[at] = pieces[i]; } else free(pieces[i]);
        }
        free(pieces);
        rest(w, 8000);
    }
    static void *kept[64][300];
    memcpy(kept[w->id], cache, sizeof cache);
}

// A few buffers of 8 to 120 KiB at a time.
static void buffers(struct worker *w) {
    void *ring[14] = {0};
    for (int i = 0; i < 1500; i++) {
        size_t at = below(w, 14);
        free(ring[at]);
        ring[at] = below(w, 3) ? made(scaled(w, 8192, 122880)) : NULL;
        if (i % 50 == 0) rest(w, 4000);
    }
    static void *kept[64][14];
    memcpy(kept[w->id], ring, sizeof ring);
}

// Trees are built and dropped; the last three stay.
struct node { struct node *left, *right; char *text; };
static struct node *grown(struct worker *w, int depth) {
    struct node *n = made(sizeof *n);
    n->text = made(scaled(w, 16, 200));
    n->left = depth > 0 && below(w, 8) ? grown(w, depth - 1) : NULL;
    n->right = depth > 0 && below(w, 8) ? grown(w, depth - 1) : NULL;
    return n;
}
static void felled(struct node *n) { if (!n) return; felled(n->left); felled(n->right); free(n->text); free(n); }
static void tree(struct worker *w) {
    static struct node *kept[64][3];
    for (int i = 0; i < 60; i++) {
        struct node **at = &kept[w->id][i % 3];
        felled(*at);
        *at = grown(w, 10 + (int)below(w, 7));
        rest(w, 5000);
    }
}

// First in, first out: the length of the log of each thread changes.
static void ring(struct worker *w) {
    static void *logs[64][4096];
    size_t head = 0, tail = 0, wanted = 1000;
    for (int step = 0; step < 60000; step++) {
        if (step % 6000 == 0) wanted = 200 + below(w, 3500);
        logs[w->id][head++ % 4096] = made(scaled(w, 50, 20000));
        while (head - tail > wanted) free(logs[w->id][tail++ % 4096]);
        if (step % 500 == 0) rest(w, 3000);
    }
}

// Threads come and go, six at a time; what they leave is in a common cache.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *common[6000];
static void *visitor(void *of) {
    struct worker w = *(struct worker *)of;
    size_t count = 2000 + below(&w, 12000);
    void **own = malloc(count * sizeof *own);
    for (size_t i = 0; i < count; i++) own[i] = made(scaled(&w, 30, 900));
    for (size_t i = 0; i < count; i++) {
        if (i % 50) { free(own[i]); continue; }
        pthread_mutex_lock(&lock);
        size_t at = below(&w, 6000);
        void *old = common[at]; common[at] = own[i];
        pthread_mutex_unlock(&lock);
        free(old);
    }
    free(own);
    return NULL;
}
static void visits(struct worker *w) {
    for (int i = 0; i < 12; i++) {
        pthread_t id; struct worker one = {w->id, next(w)};
        pthread_create(&id, NULL, visitor, &one);
        pthread_join(id, NULL);
        rest(w, 20000);
    }
}

// Tables grow by doubling and rows are added; some tables are dropped.
static void tables(struct worker *w) {
    static char **kept[64][12];
    static size_t lengths[64][12];
    for (int step = 0; step < 40; step++) {
        int at = (int)below(w, 12);
        for (size_t i = 0; i < lengths[w->id][at]; i++) free(kept[w->id][at][i]);
        free(kept[w->id][at]);
        size_t rows = scaled(w, 100, 20000), room = 8;
        char **table = malloc(room * sizeof *table);
        for (size_t i = 0; i < rows; i++) {
            if (i == room) table = realloc(table, (room *= 2) * sizeof *table);
            table[i] = made(20 + below(w, 180));
        }
        kept[w->id][at] = table; lengths[w->id][at] = rows;
        rest(w, 10000);
    }
}
static const struct workload { const char *name; int threads; void (*run)(struct worker *); } all[] = {
    {"drift", 8, drift}, {"stagger", 12, stagger}, {"handover", 12, handover}, {"burst", 16, burst}, {"buffers", 20, buffers},
    {"tree", 4, tree}, {"ring", 10, ring}, {"visits", 6, visits}, {"tables", 14, tables},
};
static const struct workload *chosen;

static void *thread(void *of) {
    chosen->run(of);
    pthread_barrier_wait(&finished);
    pause();
    return NULL;
}

int main(int count, char **arguments) {
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) if (count == 3 && !strcmp(arguments[1], all[i].name)) chosen = &all[i];
    if (!chosen) return 3;
    seed = strtoull(arguments[2], NULL, 10);
    pthread_barrier_init(&finished, NULL, (unsigned)chosen->threads + 1);
    for (int i = 0; i < 32; i++) pthread_mutex_init(&queues[i].lock, NULL);
    static struct worker workers[64];
    for (int i = 0; i < chosen->threads; i++) {
        pthread_t id;
        workers[i] = (struct worker){i, (seed * 1000 + (uint64_t)i + 1) * 0x9e3779b97f4a7c15ULL};
        pthread_create(&id, NULL, thread, &workers[i]);
    }
    pthread_barrier_wait(&finished);
    printf("ready %d\n", getpid());
    fflush(stdout);
    while (getchar() != EOF) {}
    return 0;
}
