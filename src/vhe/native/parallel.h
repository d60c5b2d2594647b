/* Threads: those of torch's OpenMP runtime, without linking to it.

   runtime/native.py passes the address of its GOMP_parallel to vhe_use_threads. Where there is
   none, the calling thread does all the work. No result depends on which thread takes a task. */

#include <stdint.h>
#include <stdlib.h>

#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#define HIDDEN
#else
#define EXPORT __attribute__((visibility("default")))
#define HIDDEN __attribute__((visibility("hidden")))
#endif

enum { DONE, OUT_OF_MEMORY, INVALID }; /* what a kernel returns */

typedef void (*Fork)(void (*body)(void *), void *data, unsigned threads, unsigned flags);
extern HIDDEN Fork fork_threads;

/* The next number of a counter that several threads share. */
static inline int64_t next(int64_t *counter)
{
    return __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

typedef struct {
    void (*task)(void *, int64_t);
    void *data;
    int64_t count, taken;
} Team;

static void member(void *given)
{
    Team *team = given;
    for (int64_t k; (k = next(&team->taken)) < team->count;) team->task(team->data, k);
}

/* task(data, k) for k = 0 ... count - 1, in any order, on at most `threads` threads. */
static void run(int64_t threads, int64_t count, void (*task)(void *, int64_t), void *data)
{
    Team team = {task, data, count, 0};
    if (threads > count) threads = count;
    if (threads > 1 && fork_threads)
        fork_threads(member, &team, (unsigned)threads, 0);
    else
        member(&team);
}

/* Memory that starts at a cache line. */
typedef struct {
    void *block;
    float *start; /* NULL if there was not enough */
} Room;

static Room room_for(int64_t floats)
{
    void *block = malloc(sizeof(float) * floats + 64);
    return (Room){block, block ? (float *)(((uintptr_t)block + 63) / 64 * 64) : NULL};
}

/* Whether a * b == count, for sizes that may be wrong. */
static inline int is_size(int64_t count, int64_t a, int64_t b)
{
    int64_t size;
    return a >= 0 && b >= 0 && !__builtin_mul_overflow(a, b, &size) && size == count;
}
