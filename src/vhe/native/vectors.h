/* Vector types of the target machine (runtime/native.py chooses it by compiler flags). */

#if defined __AVX512F__
#define LANES 16
#elif defined __AVX__
#define LANES 8
#else
#define LANES 4
#endif
#define WIDE (2 * LANES)
#define INLINE static inline __attribute__((always_inline))
#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

typedef float vec __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int lanes __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

INLINE long up(long n, long to) { return (n + to - 1) / to * to; }
/* Size of equal chunks of `count` items, at most `most` each. */
INLINE long even(long count, long most)
{
    long turns = (count + most - 1) / most;
    return turns ? (count + turns - 1) / turns : 1;
}
INLINE vec *at(const float *p) { return (vec *)p; }
INLINE vec either(lanes which, vec one, vec other)
{
    return (vec)(((lanes)one & which) | ((lanes)other & ~which));
}
INLINE vec larger(vec one, vec other) { return either(one > other, one, other); }
