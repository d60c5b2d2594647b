/* Products with a sparse matrix in compressed rows, and the solution of A z = b (runtime/sparse.py,
   graph/posterior.py).

   A thread takes rows, or columns of z, of its own, so that no sum depends on how many there are.
*/

#define BLOCK 13     /* vectors of a row that are summed together: as many as there are registers */
#define TOGETHER 256 /* rows whose sum is taken on its own: adding a few to many loses digits */

typedef struct {
    int64_t rows, width;    /* the matrix is (rows, width) */
    const int64_t *offsets; /* (rows + 1,) of the entries of each row */
    const int32_t *columns; /* of each entry */
    const float *values;
} Matrix;

/* Whether all offsets and columns are inside the arrays. */
static int is_matrix(const Matrix *m, int64_t offsets, int64_t columns, int64_t values)
{
    if (m->rows < 0 || m->rows > INT32_MAX || m->width < 0 || m->width > INT32_MAX) return 0;
    if (offsets != m->rows + 1 || columns != values) return 0;
    if (m->offsets[0] != 0 || m->offsets[m->rows] != columns) return 0;
    int wrong = 0;
    for (int64_t row = 0; row < m->rows; row++) wrong |= m->offsets[row] > m->offsets[row + 1];
    for (int64_t e = 0; e < columns; e++)
        wrong |= (uint32_t)m->columns[e] >= (uint32_t)m->width;
    return !wrong;
}

typedef struct {
    const Matrix *matrix;
    int64_t dim;
    const float *dense;
    float *out;
} Product;

INLINE void rows_times(int vecs, int64_t first, int64_t last, const Product *p, int64_t from_column)
{
    const Matrix *m = p->matrix;
    for (int64_t row = first; row < last; row++) {
        vec sum[BLOCK] = {{0}};
        for (int64_t e = m->offsets[row]; e < m->offsets[row + 1]; e++) {
            const float *from = p->dense + m->columns[e] * p->dim + from_column;
            UNROLL
            for (int v = 0; v < vecs; v++) sum[v] += *at(from + v * LANES) * m->values[e];
        }
        float *to = p->out + row * p->dim + from_column;
        UNROLL
        for (int v = 0; v < vecs; v++) *at(to + v * LANES) = sum[v];
    }
}

static void rows_of_product(void *given, int64_t chunk)
{
    const Product *p = given;
    const Matrix *m = p->matrix;
    int64_t first = chunk * CHUNK, last = smaller(first + CHUNK, m->rows);
    int64_t vecs = p->dim / LANES, step = even(vecs, BLOCK);
    for (int64_t v = 0; v < vecs; v += step) {
#define CASE(V)                                         \
    case V:                                             \
        rows_times(V, first, last, p, v * LANES); \
        break;
        switch (smaller(vecs - v, step)) {
            CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7)
            CASE(8) CASE(9) CASE(10) CASE(11) CASE(12) CASE(13)
        }
#undef CASE
    }
    for (int64_t row = first; row < last; row++)
        for (int64_t q = vecs * LANES; q < p->dim; q++) {
            float sum = 0;
            for (int64_t e = m->offsets[row]; e < m->offsets[row + 1]; e++)
                sum += m->values[e] * p->dense[m->columns[e] * p->dim + q];
            p->out[row * p->dim + q] = sum;
        }
}

static void multiply(int64_t threads, Product product)
{
    run(threads, (product.matrix->rows + CHUNK - 1) / CHUNK, rows_of_product, &product);
}

/* out (rows, dim) = the sparse matrix times dense (width, dim). */
KERNEL(sparse_product)(int64_t threads, int64_t rows, int64_t dim,
                       const int64_t *offsets, int64_t offsets_count,
                       const int32_t *columns, int64_t columns_count,
                       const float *values, int64_t values_count,
                       const float *dense, int64_t dense_count, float *out, int64_t out_count)
{
    Matrix m = {rows, dim > 0 ? dense_count / dim : 0, offsets, columns, values};
    if (!is_size(out_count, rows, dim) || !is_size(dense_count, m.width, dim)) return INVALID;
    if (out_count == 0) return DONE;
    if (!is_matrix(&m, offsets_count, columns_count, values_count)) return INVALID;
    multiply(threads, (Product){&m, dim, dense, out});
    return DONE;
}

/* out (width, dim) = the transpose of the sparse matrix (rows, width) times dense (rows, dim). */
KERNEL(sparse_product_transposed)(int64_t threads, int64_t rows, int64_t dim, int64_t width,
                                  const int64_t *offsets, int64_t offsets_count,
                                  const int32_t *columns, int64_t columns_count,
                                  const float *values, int64_t values_count, const float *dense,
                                  int64_t dense_count, float *out, int64_t out_count)
{
    Matrix m = {rows, width, offsets, columns, values};
    if (!is_size(out_count, width, dim) || !is_size(dense_count, rows, dim)) return INVALID;
    if (!is_matrix(&m, offsets_count, columns_count, values_count)) return INVALID;
    int64_t *from = calloc(width + 2, sizeof *from);
    int32_t *row_of = malloc((columns_count + 1) * sizeof *row_of);
    float *value_of = malloc((columns_count + 1) * sizeof *value_of);
    int enough = from && row_of && value_of;
    if (enough) { /* from[c + 1] is where the next entry of column c goes, at last where c ends */
        for (int64_t e = 0; e < columns_count; e++) from[columns[e] + 2]++;
        for (int64_t c = 0; c < width; c++) from[c + 2] += from[c + 1];
        for (int64_t row = 0; row < rows; row++)
            for (int64_t e = offsets[row]; e < offsets[row + 1]; e++) {
                int64_t to = from[columns[e] + 1]++;
                row_of[to] = (int32_t)row;
                value_of[to] = values[e];
            }
        Matrix transposed = {width, rows, from, row_of, value_of};
        multiply(threads, (Product){&transposed, dim, dense, out});
    }
    free(from);
    free(row_of);
    free(value_of);
    return enough ? DONE : OUT_OF_MEMORY;
}

/* ---- conjugate gradients ---- */

typedef struct {
    Matrix matrix;
    int64_t dim, iterations;
    const float *diagonal, *b;
    float *z;
    int64_t taken; /* blocks of columns that threads have taken */
    int failed;
} System;

/* WIDE columns of a system, (n, WIDE) each. */
typedef struct {
    vec (*z)[2], (*residual)[2], (*direction)[2], (*image)[2];
} Columns;

/* image = the sparse matrix times what. */
INLINE void couple(const Matrix *m, vec (*what)[2], vec (*image)[2])
{
    for (int64_t row = 0; row < m->rows; row++) {
        vec first = {0}, second = {0};
        for (int64_t e = m->offsets[row]; e < m->offsets[row + 1]; e++) {
            first += what[m->columns[e]][0] * m->values[e];
            second += what[m->columns[e]][1] * m->values[e];
        }
        image[row][0] = first;
        image[row][1] = second;
    }
}

/* A = diag(diagonal) - W. z is b / diagonal before, and residual W z. */
static void descend(const System *s, Columns c)
{
    int64_t n = s->matrix.rows;
    const float *diagonal = s->diagonal;
    vec size[2] = {{0}, {0}}, tiny = (vec){0} + 1e-30f;
    for (int64_t k = 0; k < n; k += TOGETHER) {
        vec some[2] = {{0}, {0}};
        for (int64_t row = k; row < n && row < k + TOGETHER; row++)
            for (int v = 0; v < 2; v++) {
                c.direction[row][v] = c.residual[row][v] / diagonal[row];
                some[v] += c.residual[row][v] * c.direction[row][v];
            }
        for (int v = 0; v < 2; v++) size[v] += some[v];
    }
    for (int64_t iteration = 0; iteration < s->iterations; iteration++) {
        vec curve[2] = {{0}, {0}}, before[2] = {size[0], size[1]}, step[2], turn[2];
        couple(&s->matrix, c.direction, c.image);
        for (int64_t k = 0; k < n; k += TOGETHER) {
            vec some[2] = {{0}, {0}};
            for (int64_t row = k; row < n && row < k + TOGETHER; row++)
                for (int v = 0; v < 2; v++) {
                    c.image[row][v] = c.direction[row][v] * diagonal[row] - c.image[row][v];
                    some[v] += c.direction[row][v] * c.image[row][v];
                }
            for (int v = 0; v < 2; v++) curve[v] += some[v];
        }
        for (int v = 0; v < 2; v++) {
            step[v] = size[v] / larger(curve[v], tiny);
            size[v] = (vec){0};
        }
        for (int64_t k = 0; k < n; k += TOGETHER) {
            vec some[2] = {{0}, {0}};
            for (int64_t row = k; row < n && row < k + TOGETHER; row++)
                for (int v = 0; v < 2; v++) {
                    c.z[row][v] += step[v] * c.direction[row][v];
                    c.residual[row][v] -= step[v] * c.image[row][v];
                    some[v] += c.residual[row][v] * (c.residual[row][v] / diagonal[row]);
                }
            for (int v = 0; v < 2; v++) size[v] += some[v];
        }
        for (int v = 0; v < 2; v++) turn[v] = size[v] / larger(before[v], tiny);
        for (int64_t row = 0; row < n; row++)
            for (int v = 0; v < 2; v++)
                c.direction[row][v] =
                    c.residual[row][v] / diagonal[row] + turn[v] * c.direction[row][v];
    }
}

/* One thread: solve for blocks of columns until none is left. */
static void solve_columns(void *given, int64_t thread)
{
    (void)thread;
    System *s = given;
    int64_t n = s->matrix.rows, dim = s->dim;
    Room room = room_for(4 * n * WIDE);
    if (!room.start) {
        __atomic_store_n(&s->failed, 1, __ATOMIC_RELAXED);
        return;
    }
    vec (*start)[2] = (vec (*)[2])room.start;
    Columns c = {start, start + n, start + 2 * n, start + 3 * n};
    for (int64_t first; (first = next(&s->taken) * WIDE) < dim;) {
        int64_t wide = smaller(dim - first, WIDE);
        for (int64_t row = 0; row < n; row++) {
            float *to = (float *)c.z[row];
            for (int64_t q = 0; q < WIDE; q++)
                to[q] = q < wide ? s->b[row * dim + first + q] / s->diagonal[row] : 0;
        }
        couple(&s->matrix, c.z, c.residual);
        descend(s, c);
        for (int64_t row = 0; row < n; row++)
            for (int64_t q = 0; q < wide; q++)
                s->z[row * dim + first + q] = ((float *)c.z[row])[q];
    }
    free(room.block);
}

/* z (n, dim) = A^-1 b, each column on its own. */
KERNEL(solve)(int64_t threads, int64_t n, int64_t dim, int64_t iterations,
              const int64_t *offsets, int64_t offsets_count,
              const int32_t *columns, int64_t columns_count,
              const float *values, int64_t values_count,
              const float *diagonal, int64_t diagonal_count,
              const float *b, int64_t b_count, float *z, int64_t z_count)
{
    System s = {{n, n, offsets, columns, values}, dim, iterations, diagonal, b, z, 0, 0};
    if (threads < 1 || !is_size(z_count, n, dim)) return INVALID;
    if (b_count != z_count || diagonal_count != n) return INVALID;
    if (!is_matrix(&s.matrix, offsets_count, columns_count, values_count)) return INVALID;
    run(threads, smaller(threads, (dim + WIDE - 1) / WIDE), solve_columns, &s);
    return s.failed ? OUT_OF_MEMORY : DONE;
}
