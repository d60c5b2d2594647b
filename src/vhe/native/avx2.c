/* AVX2 and FMA: 8 floats per vector. Only a processor that has these instructions may call this. */

#include <math.h>
#include <string.h>
#include "parallel.h"

#if defined __x86_64__ || defined ANY_PROCESSOR
#ifdef ANY_PROCESSOR /* tests: the same code in vectors that the compiler splits */
#elif defined __clang__
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC target("avx2,fma")
#endif

#define LEVEL avx2
#define LANES 8
#include "kernels.h"

#if defined __clang__ && !defined ANY_PROCESSOR
#pragma clang attribute pop
#endif
#endif
