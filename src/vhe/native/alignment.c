/* Phrase-to-word alignment of pairs of texts, forward and backward; the equations are in
   pair/alignment.py.

   Pairs are processed one at a time, so that intermediate results stay in the cache. */

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "vectors.h"

#define ROWS 6     /* ROWS * 2 sums are held in registers */
#define MOST 16    /* products of a tile */
#define ALIGNED 16 /* rows of M and of the kernels are as long as a multiple of this */

typedef struct {
    long pairs, dim, vocabulary, threads;
    const float *words;  /* (vocabulary, dim) */
    const long *tokens;  /* (positions,) of the first texts of all pairs, then of the second */
    const long *first;   /* (2 pairs,) the first position of each text */
    const long *length;  /* (2 pairs,) up to the last word */
    const long *table;   /* (pairs,) the offset of M of each pair */
    long sides, kernels, width, longest; /* `longest` is a multiple of ALIGNED */
    const float *kernel; /* (sides, kernels, width, longest): U and V, or one for both */
    long tile, products; /* minimal filtering: y = A ((G g) * (B d)) */
    const float *to_outputs, *of_kernels, *of_rows; /* A, G and B */
    float *similarity;   /* M of every pair, (L_i, L_j up to ALIGNED) */
    float *scores, *weights; /* (positions,) tanh of the maximum over kernels, and its softmax */
    int *winner;         /* (positions,) the kernel with the maximum */
    float *texts;        /* (2 pairs, dim) the result */
} Batch;

/* The offset of the kernels of a side (0: first texts, 1: second texts). */
static long kernels_of(const Batch *s, long side)
{
    return side % s->sides * s->kernels * s->width * s->longest;
}

/* ---- products of small matrices ---- */

INLINE void block(int rows, int vecs, long depth, const float *a, long by_row, long by_step,
                  const float *b, long by_depth, float *out, long by_out, int add)
{
    vec sum[ROWS][2];
    UNROLL
    for (int r = 0; r < rows; r++)
        UNROLL
        for (int v = 0; v < vecs; v++)
            sum[r][v] = add ? *at(out + r * by_out + v * LANES) : (vec){0};
    for (long k = 0; k < depth; k++) {
        const float *here = b + k * by_depth, *scale = a + k * by_step;
        vec x[2];
        UNROLL
        for (int v = 0; v < vecs; v++) x[v] = *at(here + v * LANES);
        UNROLL
        for (int r = 0; r < rows; r++)
            UNROLL
            for (int v = 0; v < vecs; v++) sum[r][v] += x[v] * scale[r * by_row];
    }
    UNROLL
    for (int r = 0; r < rows; r++)
        UNROLL
        for (int v = 0; v < vecs; v++) *at(out + r * by_out + v * LANES) = sum[r][v];
}

static void any_block(long rows, long vecs, long depth, const float *a, long by_row, long by_step,
                      const float *b, long by_depth, float *out, long by_out, int add)
{
#define CASE(R, V)                                                                     \
    case 2 * R + V - 1:                                                                \
        block(R, V, depth, a, by_row, by_step, b, by_depth, out, by_out, add); \
        break;
    switch (2 * rows + vecs - 1) {
        CASE(1, 1) CASE(1, 2) CASE(2, 1) CASE(2, 2) CASE(3, 1) CASE(3, 2)
        CASE(4, 1) CASE(4, 2) CASE(5, 1) CASE(5, 2) CASE(6, 1) CASE(6, 2)
    }
#undef CASE
}

/* out (rows, columns) = a (rows, depth) b (depth, columns), or added to it; columns are a multiple
   of LANES. */
static void product(long rows, long columns, long depth, const float *a, long by_row, long by_step,
                    const float *b, long by_depth, float *out, long by_out, int add)
{
    long step = even(rows, ROWS);
    for (long c = 0; c < columns; c += WIDE)
        for (long r = 0; r < rows; r += step)
            any_block(rows - r < step ? rows - r : step, columns - c < WIDE ? 1 : 2, depth,
                      a + r * by_row, by_row, by_step, b + c, by_depth, out + r * by_out + c,
                      by_out, add);
}

static void transpose(const float *m, long by_row, long rows, long columns, float *out, long by_out)
{
    for (long c = 0; c < columns; c++) {
        for (long r = 0; r < rows; r++) out[c * by_out + r] = m[r * by_row + c];
        for (long r = rows; r < up(rows, LANES); r++) out[c * by_out + r] = 0;
    }
}

/* ---- forward ---- */

/* The number of floats that `transformed` gives for one side. */
static long transformed_size(const Batch *s)
{
    return up(s->kernels, WIDE) * s->products * s->longest;
}

/* G g of all kernels: [sides][kernels / WIDE][products][longest][WIDE]. Beyond the last kernel of a
   side the first is repeated, which never wins twice. */
static float *transformed(const Batch *s)
{
    long padded = up(s->kernels, WIDE);
    float *packed = malloc(sizeof(float) * s->sides * transformed_size(s));
    if (!packed) return NULL;
#pragma omp parallel for num_threads(s->threads)
    for (long k = 0; k < s->sides * padded; k++) {
        long side = k / padded, n = k % padded;
        const float *kernel = s->kernel + kernels_of(s, side)
            + (n < s->kernels ? n : 0) * s->width * s->longest;
        for (long p = 0; p < s->products; p++) {
            float *to = packed + side * transformed_size(s)
                + ((n / WIDE) * s->products + p) * s->longest * WIDE + n % WIDE;
            for (long q = 0; q < s->longest; q++) {
                float sum = 0;
                for (long t = 0; t < s->width; t++)
                    sum += s->of_kernels[p * s->width + t] * kernel[t * s->longest + q];
                to[q * WIDE] = sum;
            }
        }
    }
    return packed;
}

INLINE void rows_transformed(const Batch *s, long tile, long products, const float *m, long by_row,
                             long length, long channels, long tiles, float *values)
{
    long half = s->width / 2;
    for (long k = 0; k < tiles; k++)
        for (long q = 0; q < channels; q += LANES) {
            vec row[MOST];
            UNROLL
            for (long r = 0; r < products; r++) {
                long a = k * tile + r - half;
                row[r] = a >= 0 && a < length ? *at(m + a * by_row + q) : (vec){0};
            }
            UNROLL
            for (long p = 0; p < products; p++) {
                vec sum = {0};
                UNROLL
                for (long r = 0; r < products; r++) sum += row[r] * s->of_rows[p * products + r];
                *at(values + (p * tiles + k) * by_row + q) = sum;
            }
        }
}

/* The best so far at each output of some tiles, against the products of WIDE more kernels. */
INLINE void compete(const Batch *s, long tile, long products, long rows, const float *found,
                    int chunk, vec *best, lanes *who)
{
    for (long r = 0; r < rows; r++)
        for (int v = 0; v < 2; v++) {
            vec x[MOST];
            UNROLL
            for (long p = 0; p < products; p++) x[p] = *at(found + (p * ROWS + r) * WIDE + v * LANES);
            UNROLL
            for (long o = 0; o < tile; o++) {
                vec y = {0};
                UNROLL
                for (long p = 0; p < products; p++) y += x[p] * s->to_outputs[o * products + p];
                long n = r * tile + o;
                lanes wins = y > best[n];
                best[n] = either(wins, y, best[n]);
                who[n] = ((2 * chunk + v) & wins) | (who[n] & ~wins);
            }
        }
}

/* max_k of the convolution of M (length, channels) with the kernels, and which k that is. */
static void convolve(const Batch *s, const float *packed, const float *m, long by_row, long length,
                     long channels, float *scratch, float *score, int *winner)
{
    long tile = s->tile, products = s->products, tiles = (length + tile - 1) / tile;
    long chunks = up(s->kernels, WIDE) / WIDE, step = even(tiles, ROWS), usual = tile == 4 && products == 8;
    float *values = scratch, *found = values + products * tiles * by_row;
    vec *best = at(found + products * ROWS * WIDE);
    lanes *who = (lanes *)(best + tiles * tile);
    if (usual)
        rows_transformed(s, 4, 8, m, by_row, length, up(channels, LANES), tiles, values);
    else
        rows_transformed(s, tile, products, m, by_row, length, up(channels, LANES), tiles, values);
    for (long n = 0; n < tiles * tile; n++) {
        best[n] = (vec){0} - INFINITY;
        who[n] = (lanes){0};
    }
    for (long chunk = 0; chunk < chunks; chunk++)
        for (long k = 0; k < tiles; k += step) {
            long rows = tiles - k < step ? tiles - k : step;
            for (long p = 0; p < products; p++)
                any_block(rows, 2, channels, values + (p * tiles + k) * by_row, by_row, 1,
                          packed + (chunk * products + p) * s->longest * WIDE, WIDE,
                          found + p * ROWS * WIDE, WIDE, 0);
            if (usual)
                compete(s, 4, 8, rows, found, chunk, best + k * tile, who + k * tile);
            else
                compete(s, tile, products, rows, found, chunk, best + k * tile, who + k * tile);
        }
    for (long a = 0; a < length; a++) {
        int won = 0;
        float most = -INFINITY;
        for (int lane = 0; lane < LANES; lane++) {
            int kernel = who[a][lane] * LANES + lane;
            if (best[a][lane] > most || (best[a][lane] == most && kernel < won))
                most = best[a][lane], won = kernel;
        }
        score[a] = most;
        winner[a] = won < s->kernels ? won : 0;
    }
}

/* w = softmax(tanh(best)) of the words of a text, and the sum of the words weighted by w. */
static void weigh(const Batch *s, long text)
{
    const long *tokens = s->tokens + s->first[text];
    float *score = s->scores + s->first[text], *weight = s->weights + s->first[text];
    float *out = s->texts + text * s->dim, total = 0;
    for (long a = 0; a < s->length[text]; a++) {
        score[a] = tokens[a] ? tanhf(score[a]) : 0;
        weight[a] = tokens[a] ? expf(score[a]) : 0;
        total += weight[a];
    }
    for (long a = 0; a < s->length[text]; a++) {
        const float *word = s->words + tokens[a] * s->dim;
        float w = weight[a] /= total > 0 ? total : 1;
        for (long c = 0; c < s->dim; c++) out[c] += w * word[c];
    }
}

/* Working memory for one pair of the longest texts. */
static float *room(const Batch *s)
{
    long tiles = s->longest / s->tile + 1, dim = up(s->dim, LANES);
    long floats = 2 * s->longest * dim + 3 * s->longest * s->longest
        + s->products * tiles * s->longest + s->products * ROWS * WIDE
        + 2 * tiles * s->tile * LANES;
    return aligned_alloc(64, up(sizeof(float) * floats, 64));
}

/* Returns 0 if memory ran out. */
int align(const Batch *s)
{
    float *packed = transformed(s);
    int enough = 1;
#pragma omp parallel num_threads(s->threads) reduction(&& : enough)
    {
        float *transposed_words = room(s), *transposed = transposed_words + s->dim * s->longest;
        float *scratch = transposed + s->longest * s->longest;
        enough = packed && transposed_words;
#pragma omp for schedule(dynamic)
        for (long n = 0; n < s->pairs; n++) {
            if (!enough) continue;
            long i = n, j = s->pairs + n, li = s->length[i], lj = s->length[j];
            long by_i = up(li, ALIGNED), by_j = up(lj, ALIGNED);
            float *m = s->similarity + s->table[n];
            const long *ti = s->tokens + s->first[i], *tj = s->tokens + s->first[j];
            float *words_i = scratch;
            for (long a = 0; a < li; a++)
                memcpy(words_i + a * s->dim, s->words + ti[a] * s->dim, sizeof(float) * s->dim);
            for (long b = 0; b < up(lj, LANES); b++) {
                const float *word = s->words + (b < lj ? tj[b] : 0) * s->dim;
                for (long c = 0; c < s->dim; c++) transposed_words[c * by_j + b] = word[c];
            }
            product(li, up(lj, LANES), s->dim, words_i, s->dim, 1, transposed_words, by_j, m, by_j, 0);
            transpose(m, by_j, li, lj, transposed, by_i);
            convolve(s, packed, m, by_j, li, lj, scratch, s->scores + s->first[i],
                     s->winner + s->first[i]);
            convolve(s, packed + (s->sides - 1) * transformed_size(s), transposed, by_i, lj, li,
                     scratch, s->scores + s->first[j], s->winner + s->first[j]);
            weigh(s, i);
            weigh(s, j);
        }
        free(transposed_words);
    }
    free(packed);
    return enough;
}

/* ---- backward ---- */

/* From the gradient of a text: the gradients of its winning kernels (added to to_kernels) and of M
   (added to to_m, which is zero before). */
static void spread(const Batch *s, long text, const float *gradient, const float *m, long by_row,
                   long channels, float *to_m, float *to_kernels)
{
    long length = s->length[text], half = s->width / 2, own = kernels_of(s, text / s->pairs);
    const float *score = s->scores + s->first[text], *weight = s->weights + s->first[text];
    const int *winner = s->winner + s->first[text];
    float to_weight[length + 1], mean = 0;
    for (long a = 0; a < length; a++) {
        const float *word = s->words + s->tokens[s->first[text] + a] * s->dim;
        vec sum = {0};
        float rest = 0;
        long c = 0;
        for (; c + LANES <= s->dim; c += LANES) sum += *at(word + c) * *at(gradient + c);
        for (; c < s->dim; c++) rest += word[c] * gradient[c];
        for (int lane = 0; lane < LANES; lane++) rest += sum[lane];
        to_weight[a] = rest;
        mean += weight[a] * rest;
    }
    for (long a = 0; a < length; a++) {
        float to_best = weight[a] * (to_weight[a] - mean) * (1 - score[a] * score[a]);
        for (long t = 0; t < s->width; t++) {
            long row = a + t - half, place = own + (winner[a] * s->width + t) * s->longest;
            if (row < 0 || row >= length) continue;
            const float *kernel = s->kernel + place, *from = m + row * by_row;
            float *to = to_kernels + place, *into = to_m + row * by_row;
            for (long q = 0; q < channels; q += LANES) {
                *at(to + q) += *at(from + q) * to_best;
                *at(into + q) += *at(kernel + q) * to_best;
            }
        }
    }
}

/* The words of a text, in rows of `dim` floats, and their gradients from the weighted sum. */
static void words_of(const Batch *s, long text, long dim, const float *gradient, float *words,
                     float *to_each)
{
    for (long a = 0; a < s->length[text]; a++) {
        long place = s->first[text] + a;
        const float *word = s->words + s->tokens[place] * s->dim;
        for (long c = 0; c < s->dim; c++) {
            words[a * dim + c] = word[c];
            to_each[a * dim + c] = s->weights[place] * gradient[c];
        }
        for (long c = s->dim; c < dim; c++) words[a * dim + c] = to_each[a * dim + c] = 0;
    }
}

/* The gradients of the words in a thread's pairs: one row for each word that occurs there. */
typedef struct {
    long count;
    int *row;   /* (vocabulary,) the row of a word, or -1 */
    float *sum; /* (count, dim up to ALIGNED) */
} Sums;

static int prepare(const Batch *s, long dim, Sums *own)
{
    long most = 0;
    for (long text = 0; text < 2 * s->pairs; text++) most += s->length[text];
    if (most > s->vocabulary) most = s->vocabulary;
    own->row = malloc(sizeof(int) * s->vocabulary);
    own->sum = malloc(sizeof(float) * most * dim);
    if (own->row) memset(own->row, -1, sizeof(int) * s->vocabulary);
    return own->row && own->sum;
}

static void add(const Batch *s, long text, long dim, const float *to_each, Sums *own)
{
    for (long a = 0; a < s->length[text]; a++) {
        long token = s->tokens[s->first[text] + a];
        if (token == 0) continue;
        const float *from = to_each + a * dim;
        int new = own->row[token] < 0;
        if (new) own->row[token] = own->count++;
        float *sum = own->sum + own->row[token] * dim;
        if (new)
            memcpy(sum, from, sizeof(float) * dim);
        else
            for (long c = 0; c < dim; c += LANES) *at(sum + c) += *at(from + c);
    }
}

/* Which thread takes each pair: the one with the least work so far. The assignment is fixed because
   each thread sums the gradients of its pairs: the result must not depend on timing. */
static int *owners(const Batch *s)
{
    int *owner = malloc(sizeof(int) * s->pairs);
    double *load = calloc(s->threads, sizeof(double));
    for (long n = 0; owner && load && n < s->pairs; n++) {
        int least = 0;
        for (int t = 1; t < s->threads; t++)
            if (load[t] < load[least]) least = t;
        owner[n] = least;
        load[least] += (double)s->length[n] * s->length[s->pairs + n];
    }
    if (!load) free(owner), owner = NULL;
    free(load);
    return owner;
}

/* The gradients of words (vocabulary, dim) and kernels (threads, sides, kernels, width, longest; zero
   before) from that of the texts (2 pairs, dim). Returns 0 if memory ran out. */
int align_back(const Batch *s, const float *gradient, float *to_words, float *to_kernels)
{
    long dim = up(s->dim, ALIGNED);
    Sums *sums = calloc(s->threads, sizeof(Sums));
    int *owner = owners(s), enough = 1;
#pragma omp parallel for num_threads(s->threads) reduction(&& : enough)
    for (long me = 0; me < s->threads; me++) {
        float *words_i = malloc(sizeof(float) * s->longest * (4 * dim + 3 * s->longest));
        float *words_j = words_i + s->longest * dim, *transposed = words_j + s->longest * dim;
        float *to_m = transposed + s->longest * s->longest;
        float *to_transposed = to_m + s->longest * s->longest;
        float *to_i = to_transposed + s->longest * s->longest, *to_j = to_i + s->longest * dim;
        float *mine = to_kernels + me * s->sides * s->kernels * s->width * s->longest;
        enough = sums && owner && words_i && prepare(s, dim, sums + me);
        for (long n = 0; enough && n < s->pairs; n++) {
            if (owner[n] != me) continue;
            long i = n, j = s->pairs + n, li = s->length[i], lj = s->length[j];
            long by_i = up(li, ALIGNED), by_j = up(lj, ALIGNED);
            const float *m = s->similarity + s->table[n];
            const float *of_i = gradient + i * s->dim, *of_j = gradient + j * s->dim;
            transpose(m, by_j, li, lj, transposed, by_i);
            memset(to_m, 0, sizeof(float) * li * by_j);
            memset(to_transposed, 0, sizeof(float) * lj * by_i);
            spread(s, i, of_i, m, by_j, up(lj, LANES), to_m, mine);
            spread(s, j, of_j, transposed, by_i, up(li, LANES), to_transposed, mine);
            for (long a = 0; a < li; a++)
                for (long b = 0; b < lj; b++) to_m[a * by_j + b] += to_transposed[b * by_i + a];
            words_of(s, i, dim, of_i, words_i, to_i);
            words_of(s, j, dim, of_j, words_j, to_j);
            product(li, dim, lj, to_m, by_j, 1, words_j, dim, to_i, dim, 1);
            product(lj, dim, li, to_m, 1, by_j, words_i, dim, to_j, dim, 1);
            add(s, i, dim, to_i, sums + me);
            add(s, j, dim, to_j, sums + me);
        }
        free(words_i);
    }
#pragma omp parallel for num_threads(s->threads)
    for (long token = 0; token < s->vocabulary; token++) {
        float *to = to_words + token * s->dim;
        memset(to, 0, sizeof(float) * s->dim);
        for (long part = 0; enough && part < s->threads; part++) {
            if (sums[part].row[token] < 0) continue;
            const float *sum = sums[part].sum + sums[part].row[token] * dim;
            for (long c = 0; c < s->dim; c++) to[c] += sum[c];
        }
    }
    for (long part = 0; sums && part < s->threads; part++) free(sums[part].row), free(sums[part].sum);
    free(sums);
    free(owner);
    return enough;
}
