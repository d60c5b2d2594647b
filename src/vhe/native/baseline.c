/* Instructions that every processor of the architecture has: SSE2 on x86-64, NEON on arm64. Also
   what chooses among the instruction sets and sets the threads. */

#include <math.h>
#include <string.h>
#include "parallel.h"

#define LEVEL baseline
#define LANES 4
#include "kernels.h"

Fork fork_threads = NULL;

EXPORT void vhe_use_threads(Fork fork) { fork_threads = fork; }

/* The number that runtime/native.py expects; it changes with the arguments of any kernel. */
EXPORT int vhe_interface(void) { return 1; }

/* The instruction sets of this processor for which there are kernels: 0 baseline, 1 and AVX2 with
   FMA, 2 and AVX-512. */
EXPORT int vhe_level(void)
{
#ifdef ANY_PROCESSOR
    return 2;
#elif defined __x86_64__
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return 0;
    return __builtin_cpu_supports("avx512f") ? 2 : 1;
#else
    return 0;
#endif
}
