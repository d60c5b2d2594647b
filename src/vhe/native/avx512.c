/* AVX-512: 16 floats per vector. Only a processor that has these instructions may call this. */

#include <math.h>
#include <string.h>
#include "parallel.h"

#if defined __x86_64__ || defined ANY_PROCESSOR
#ifdef ANY_PROCESSOR /* tests: the same code in vectors that the compiler splits */
#elif defined __clang__
#pragma clang attribute push(__attribute__((target("avx512f,avx2,fma"))), apply_to = function)
#else
#pragma GCC target("avx512f,avx2,fma")
#endif

#define LEVEL avx512
#define LANES 16
#include "kernels.h"

#if defined __clang__ && !defined ANY_PROCESSOR
#pragma clang attribute pop
#endif
#endif
