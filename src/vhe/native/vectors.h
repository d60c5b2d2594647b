/* Vectors of LANES floats and helpers; included by kernels.h, once per instruction set. */

#define WIDE (2 * LANES)
#define CHUNK 64 /* rows that a thread takes at a time */
#define INLINE static inline __attribute__((always_inline))
#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

typedef float vec __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int32_t lanes __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

INLINE int64_t up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }
INLINE int64_t smaller(int64_t one, int64_t other) { return one < other ? one : other; }
/* Size of equal chunks of `count` items, at most `most` each. */
INLINE int64_t even(int64_t count, int64_t most)
{
    int64_t turns = (count + most - 1) / most;
    return turns ? (count + turns - 1) / turns : 1;
}
INLINE vec *at(const float *p) { return (vec *)p; }
INLINE vec either(lanes which, vec one, vec other)
{
    return (vec)(((lanes)one & which) | ((lanes)other & ~which));
}
INLINE vec larger(vec one, vec other) { return either(one > other, one, other); }
