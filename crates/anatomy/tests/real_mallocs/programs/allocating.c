/* Allocates in as many threads as it is asked for, says `ready PID`, and ends with its stdin. */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef EXPORTS_JE_MALLOC
void *je_malloc(size_t size) { return malloc(size); }
#endif

#ifdef HAS_OWN_MALLOC
/* It never frees, and no size is kept: the program alone asks for little. */
static char own[64 << 20];
static size_t used;
void *malloc(size_t size) { return own + __atomic_fetch_add(&used, (size + 31) & ~15ul, __ATOMIC_RELAXED); }
void free(void *memory) { (void)memory; }
void *calloc(size_t number, size_t size) { return malloc(number * size); }
void *realloc(void *memory, size_t size)
{
    char *to = malloc(size);
    for (size_t at = 0; memory && at < size; at++)
        to[at] = ((char *)memory)[at];
    return to;
}
#endif

#ifdef HAS_GO_INFORMATION
__attribute__((section(".go.buildinfo"), used)) static const char go[] =
    "\xff Go buildinf:\x08\x02"
    "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
    "\x08go1.22.3";
#endif

static pthread_barrier_t all;

static void *allocate(void *unused)
{
    void *kept = malloc(5000);
    free(malloc(100));
    pthread_barrier_wait(&all);
    pause();
    return kept;
}

int main(int count, char **arguments)
{
    int threads = count > 1 ? atoi(arguments[1]) : 0;
    pthread_t thread;
    pthread_barrier_init(&all, NULL, (unsigned)threads + 1);
    for (int number = 0; number < threads; number++)
        pthread_create(&thread, NULL, allocate, NULL);
#ifdef TAKES_ADDRESSES
    /* At a fixed address the address of a function is that of the program's own stub. */
    void *(*volatile of_malloc)(size_t) = malloc;
    void (*volatile of_free)(void *) = free;
    of_free(of_malloc(10));
#endif
    free(realloc(calloc(3, 100), 5000));
#ifdef HAS_DLOPEN
    if (count > 2) {
        void *library = dlopen(arguments[2], RTLD_NOW | RTLD_DEEPBIND);
        if (!library)
            fprintf(stderr, "%s\n", dlerror());
    }
#endif
#ifdef MAPS_ITSELF
    /* As Node.js does with its code. */
    mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, open("/proc/self/exe", O_RDONLY), 4096);
#endif
    pthread_barrier_wait(&all);
    printf("ready %d\n", (int)getpid());
    fflush(stdout);
    getchar();
    return 0;
}
