/* Threads that allocate and free each other's blocks, with sizes that drift: gcc -O2 -pthread churn.c -o churn.
 * N operations in THREADS threads; it announces to memtide and holds at its end. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SLOTS = 40000, BATCH = 500 };
static _Atomic(char *) slots[SLOTS];
static atomic_long done;
static long operations = 20000000, threads = 16;
static int memtide = -1;

static uint32_t chance(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state >> 16;
}

static void announce(const char *text, long number) {
    char line[64];
    int length = number < 0 ? snprintf(line, sizeof line, "%s\n", text) : snprintf(line, sizeof line, "%s %ld\n", text, number);
    if (memtide >= 0 && write(memtide, line, length) < 0) memtide = -1;
}

static void *work(void *number) {
    uint64_t state = 0x9e3779b97f4a7c15ull * ((intptr_t)number + 1);
    long batches = operations / threads / BATCH;
    for (long batch = 0; batch < batches; batch++) {
        uint32_t drift = 400 * batch / batches;
        for (int i = 0; i < BATCH; i++) {
            uint32_t slot = chance(&state) % SLOTS, kind = chance(&state) % 100;
            size_t size = kind < 70   ? 16 + chance(&state) % (240 + drift)
                          : kind < 97 ? 256 + chance(&state) % 4096
                                      : 4096 + chance(&state) % 32768;
            char *block = kind % 10 == 9 ? 0 : memset(malloc(size), 1, size);
            free(atomic_exchange(&slots[slot], block));
        }
        long all = atomic_fetch_add(&done, BATCH) + BATCH;
        if (all == operations / 5 / BATCH * BATCH) announce("phase steady", -1);
        if (all % (operations / 100 / BATCH * BATCH) == 0) announce("ops", all);
    }
    return 0;
}

int main(void) {
    if (getenv("N")) operations = atol(getenv("N"));
    if (getenv("THREADS")) threads = atol(getenv("THREADS"));
    if (getenv("MEMTIDE_FD")) memtide = atoi(getenv("MEMTIDE_FD"));
    pthread_t all[256];
    for (long i = 0; i < threads; i++) pthread_create(&all[i], 0, work, (void *)i);
    for (long i = 0; i < threads; i++) pthread_join(all[i], 0);
    announce("ops", done);
    announce("hold", -1);
    char go;
    return memtide >= 0 && read(memtide, &go, 1) < 0;
}
