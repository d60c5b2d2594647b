/* Products with a sparse matrix in compressed rows, and the solution of A z = b (runtime/sparse.py, graph/posterior.py).

   A thread takes rows, or columns of z, of its own, so that no sum depends on how many there are. */

#include <stdlib.h>
#include "vectors.h"

#define BLOCK 13     /* vectors of a row that are summed together: as many as there are registers */
#define CHUNK 64     /* rows that a thread takes */
#define TOGETHER 256 /* rows whose sum is taken on its own: adding a few to many loses digits */

INLINE void rows_times(int vecs, long first, long last, long dim, const int *starts,
                       const int *columns, const float *values, const float *dense, float *out)
{
    for (long row = first; row < last; row++) {
        vec sum[BLOCK] = {{0}};
        for (long e = starts[row]; e < starts[row + 1]; e++) {
            const float *from = dense + columns[e] * dim;
            UNROLL
            for (int v = 0; v < vecs; v++) sum[v] += *at(from + v * LANES) * values[e];
        }
        UNROLL
        for (int v = 0; v < vecs; v++) *at(out + row * dim + v * LANES) = sum[v];
    }
}

/* out (rows, dim) = the sparse matrix times dense (., dim). */
int sparse_product(long threads, long rows, long dim, const int *starts, const int *columns,
                   const float *values, const float *dense, float *out)
{
    long vecs = dim / LANES, step = even(vecs, BLOCK);
#pragma omp parallel for num_threads(threads) schedule(static)
    for (long k = 0; k < (rows + CHUNK - 1) / CHUNK; k++) {
        long first = k * CHUNK, last = first + CHUNK < rows ? first + CHUNK : rows;
        for (long v = 0; v < vecs; v += step) {
            const float *from = dense + v * LANES;
            float *to = out + v * LANES;
#define CASE(V)                                                                 \
    case V:                                                                     \
        rows_times(V, first, last, dim, starts, columns, values, from, to); \
        break;
            switch (vecs - v < step ? vecs - v : step) {
                CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7)
                CASE(8) CASE(9) CASE(10) CASE(11) CASE(12) CASE(13)
            }
#undef CASE
        }
        for (long row = first; row < last; row++)
            for (long q = vecs * LANES; q < dim; q++) {
                float sum = 0;
                for (long e = starts[row]; e < starts[row + 1]; e++)
                    sum += values[e] * dense[columns[e] * dim + q];
                out[row * dim + q] = sum;
            }
    }
    return 1;
}

/* out (width, dim) = the transpose of the sparse matrix (rows, width) times dense (rows, dim). Whether
   there was memory enough. */
int sparse_product_transposed(long threads, long rows, long dim, long width, const int *starts,
                          const int *columns, const float *values, const float *dense, float *out)
{
    long entries = starts[rows];
    int *from = calloc(width + 2, sizeof *from), *row_of = malloc((entries + 1) * sizeof *row_of);
    float *value_of = malloc((entries + 1) * sizeof *value_of);
    int enough = from && row_of && value_of;
    if (enough) { /* from[c + 1] is where the next entry of column c goes, at last where c ends */
        for (long e = 0; e < entries; e++) from[columns[e] + 2]++;
        for (long c = 0; c < width; c++) from[c + 2] += from[c + 1];
        for (long row = 0; row < rows; row++)
            for (long e = starts[row]; e < starts[row + 1]; e++) {
                int to = from[columns[e] + 1]++;
                row_of[to] = row;
                value_of[to] = values[e];
            }
        sparse_product(threads, width, dim, from, row_of, value_of, dense, out);
    }
    free(from);
    free(row_of);
    free(value_of);
    return enough;
}

/* Some columns of a system, (n, WIDE) each. */
typedef struct {
    vec (*z)[2], (*rest)[2], (*direction)[2], (*image)[2];
} Columns;

/* image = the sparse matrix times what. */
INLINE void couple(long n, const int *starts, const int *columns, const float *values,
                   vec (*what)[2], vec (*image)[2])
{
    for (long row = 0; row < n; row++) {
        vec first = {0}, second = {0};
        for (long e = starts[row]; e < starts[row + 1]; e++) {
            first += what[columns[e]][0] * values[e];
            second += what[columns[e]][1] * values[e];
        }
        image[row][0] = first;
        image[row][1] = second;
    }
}

/* By conjugate gradients, A = diag(diagonal) - W. z is b / diagonal before, and rest W z. */
static void descend(long n, const int *starts, const int *columns, const float *values,
                    const float *diagonal, long rounds, Columns s)
{
    vec size[2] = {{0}, {0}}, tiny = (vec){0} + 1e-30f;
    for (long k = 0; k < n; k += TOGETHER) {
        vec some[2] = {{0}, {0}};
        for (long row = k; row < n && row < k + TOGETHER; row++)
            for (int v = 0; v < 2; v++) {
                s.direction[row][v] = s.rest[row][v] / diagonal[row];
                some[v] += s.rest[row][v] * s.direction[row][v];
            }
        for (int v = 0; v < 2; v++) size[v] += some[v];
    }
    while (rounds--) {
        vec curve[2] = {{0}, {0}}, before[2] = {size[0], size[1]}, step[2], turn[2];
        couple(n, starts, columns, values, s.direction, s.image);
        for (long k = 0; k < n; k += TOGETHER) {
            vec some[2] = {{0}, {0}};
            for (long row = k; row < n && row < k + TOGETHER; row++)
                for (int v = 0; v < 2; v++) {
                    s.image[row][v] = s.direction[row][v] * diagonal[row] - s.image[row][v];
                    some[v] += s.direction[row][v] * s.image[row][v];
                }
            for (int v = 0; v < 2; v++) curve[v] += some[v];
        }
        for (int v = 0; v < 2; v++) {
            step[v] = size[v] / larger(curve[v], tiny);
            size[v] = (vec){0};
        }
        for (long k = 0; k < n; k += TOGETHER) {
            vec some[2] = {{0}, {0}};
            for (long row = k; row < n && row < k + TOGETHER; row++)
                for (int v = 0; v < 2; v++) {
                    s.z[row][v] += step[v] * s.direction[row][v];
                    s.rest[row][v] -= step[v] * s.image[row][v];
                    some[v] += s.rest[row][v] * (s.rest[row][v] / diagonal[row]);
                }
            for (int v = 0; v < 2; v++) size[v] += some[v];
        }
        for (int v = 0; v < 2; v++) turn[v] = size[v] / larger(before[v], tiny);
        for (long row = 0; row < n; row++)
            for (int v = 0; v < 2; v++)
                s.direction[row][v] =
                    s.rest[row][v] / diagonal[row] + turn[v] * s.direction[row][v];
    }
}

/* z (n, dim) = A^-1 b, each column on its own. Whether there was memory enough. */
int solve(long threads, long n, long dim, long rounds, const int *starts, const int *columns,
          const float *values, const float *diagonal, const float *b, float *z)
{
    int enough = 1;
#pragma omp parallel num_threads(threads) reduction(&& : enough)
    {
        vec (*room)[2] = aligned_alloc(64, up(4 * (n + 1) * sizeof *room, 64));
        Columns s = {room, room + n, room + 2 * n, room + 3 * n};
        enough = room != NULL;
#pragma omp for schedule(static, 1)
        for (long c = 0; c < dim; c += WIDE) {
            if (!enough) continue;
            long wide = dim - c < WIDE ? dim - c : WIDE;
            for (long row = 0; row < n; row++) {
                float *to = (float *)s.z[row];
                for (long q = 0; q < WIDE; q++)
                    to[q] = q < wide ? b[row * dim + c + q] / diagonal[row] : 0;
            }
            couple(n, starts, columns, values, s.z, s.rest);
            descend(n, starts, columns, values, diagonal, rounds, s);
            for (long row = 0; row < n; row++)
                for (long q = 0; q < wide; q++) z[row * dim + c + q] = ((float *)s.z[row])[q];
        }
        free(room);
    }
    return enough;
}
