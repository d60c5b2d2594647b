/* Phrase-to-word alignment of pairs of texts, forward and backward; the equations are in
   pair/alignment.py.

   Pairs are processed one at a time, so that intermediate results stay in the cache. */

#define ROWS 6     /* ROWS * 2 sums are held in registers */
#define MOST 16    /* products of a tile */
#define ALIGNED 16 /* rows of M and of the kernels have a multiple of this many floats */

typedef struct {
    int64_t pairs, dim, vocabulary, threads, positions, area;
    const float *words;    /* (vocabulary, dim) */
    const int64_t *tokens; /* (positions,) of the first texts of all pairs, then of the second */
    const int64_t *first;  /* (2 pairs,) the first position of each text */
    const int64_t *length; /* (2 pairs,) up to the last word */
    const int64_t *table;  /* (pairs,) the offset of M of each pair */
    int64_t sides, kernels, width, longest; /* `longest` is a multiple of ALIGNED */
    const float *kernel;   /* (sides, kernels, width, longest): U and V, or one for both */
    int64_t tile, products; /* minimal filtering: y = A ((G g) * (B d)) */
    const float *to_outputs, *of_kernels, *of_rows; /* A, G and B */
    float *similarity;     /* (area,) M of every pair, (L_i, L_j up to ALIGNED) */
    float *scores, *weights; /* (positions,) tanh of the maximum over kernels, and its softmax */
    int32_t *winner;       /* (positions,) the kernel with the maximum */
    float *texts;          /* (2 pairs, dim) the result */
} Batch;

/* Whether every text, token and M is inside its array. */
static int is_batch(const Batch *s)
{
    if (s->pairs < 0 || s->dim < 0 || s->vocabulary < 0 || s->vocabulary > INT32_MAX) return 0;
    if (s->threads < 1 || s->sides < 1 || s->sides > 2 || s->kernels < 1 || s->width < 1) return 0;
    if (s->kernels > INT32_MAX - WIDE || s->longest < 0 || s->longest % ALIGNED) return 0;
    if (s->tile < 1 || s->products > MOST || s->products != s->tile + s->width - 1) return 0;
    for (int64_t text = 0; text < 2 * s->pairs; text++) {
        int64_t first = s->first[text], length = s->length[text];
        if (first < 0 || length < 0 || length > s->longest) return 0;
        if (first > s->positions - length) return 0;
    }
    for (int64_t n = 0; n < s->pairs; n++) {
        int64_t size = s->length[n] * up(s->length[s->pairs + n], ALIGNED);
        if (s->table[n] < 0 || s->table[n] > s->area - size) return 0;
    }
    int wrong = 0;
    for (int64_t k = 0; k < s->positions; k++)
        wrong |= (uint64_t)s->tokens[k] >= (uint64_t)s->vocabulary;
    return !wrong;
}

/* The offset of the kernels of a side (0: first texts, 1: second texts). */
static int64_t kernels_of(const Batch *s, int64_t side)
{
    return side % s->sides * s->kernels * s->width * s->longest;
}

/* ---- products of small matrices ---- */

INLINE void block(int rows, int vecs, int64_t depth, const float *a, int64_t by_row,
                  int64_t by_step, const float *b, int64_t by_depth, float *out, int64_t by_out,
                  int add)
{
    vec sum[ROWS][2];
    UNROLL
    for (int r = 0; r < rows; r++)
        UNROLL
        for (int v = 0; v < vecs; v++)
            sum[r][v] = add ? *at(out + r * by_out + v * LANES) : (vec){0};
    for (int64_t k = 0; k < depth; k++) {
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

static void any_block(int64_t rows, int64_t vecs, int64_t depth, const float *a, int64_t by_row,
                      int64_t by_step, const float *b, int64_t by_depth, float *out,
                      int64_t by_out, int add)
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
static void product(int64_t rows, int64_t columns, int64_t depth, const float *a, int64_t by_row,
                    int64_t by_step, const float *b, int64_t by_depth, float *out, int64_t by_out,
                    int add)
{
    int64_t step = even(rows, ROWS);
    for (int64_t c = 0; c < columns; c += WIDE)
        for (int64_t r = 0; r < rows; r += step)
            any_block(rows - r < step ? rows - r : step, columns - c < WIDE ? 1 : 2, depth,
                      a + r * by_row, by_row, by_step, b + c, by_depth, out + r * by_out + c,
                      by_out, add);
}

static void transpose(const float *m, int64_t by_row, int64_t rows, int64_t columns, float *out,
                      int64_t by_out)
{
    for (int64_t c = 0; c < columns; c++) {
        for (int64_t r = 0; r < rows; r++) out[c * by_out + r] = m[r * by_row + c];
        for (int64_t r = rows; r < up(rows, LANES); r++) out[c * by_out + r] = 0;
    }
}

/* ---- forward ---- */

/* The number of floats of the transformed kernels of one side. */
static int64_t transformed_size(const Batch *s)
{
    return up(s->kernels, WIDE) * s->products * s->longest;
}

/* G g of all kernels: [sides][kernels / WIDE][products][longest][WIDE]. Beyond the last kernel of a
   side the first is repeated, which never wins twice. */
typedef struct {
    const Batch *batch;
    float *packed;
} Transformed;

static void transform(void *given, int64_t k)
{
    const Transformed *t = given;
    const Batch *s = t->batch;
    int64_t padded = up(s->kernels, WIDE), side = k / padded, n = k % padded;
    const float *kernel = s->kernel + kernels_of(s, side)
        + (n < s->kernels ? n : 0) * s->width * s->longest;
    for (int64_t p = 0; p < s->products; p++) {
        float *to = t->packed + side * transformed_size(s)
            + ((n / WIDE) * s->products + p) * s->longest * WIDE + n % WIDE;
        for (int64_t q = 0; q < s->longest; q++) {
            float sum = 0;
            for (int64_t w = 0; w < s->width; w++)
                sum += s->of_kernels[p * s->width + w] * kernel[w * s->longest + q];
            to[q * WIDE] = sum;
        }
    }
}

INLINE void rows_transformed(const Batch *s, int64_t tile, int64_t products, const float *m,
                             int64_t by_row, int64_t length, int64_t channels, int64_t tiles,
                             float *values)
{
    int64_t half = s->width / 2;
    for (int64_t k = 0; k < tiles; k++)
        for (int64_t q = 0; q < channels; q += LANES) {
            vec row[MOST];
            UNROLL
            for (int64_t r = 0; r < products; r++) {
                int64_t a = k * tile + r - half;
                row[r] = a >= 0 && a < length ? *at(m + a * by_row + q) : (vec){0};
            }
            UNROLL
            for (int64_t p = 0; p < products; p++) {
                vec sum = {0};
                UNROLL
                for (int64_t r = 0; r < products; r++) sum += row[r] * s->of_rows[p * products + r];
                *at(values + (p * tiles + k) * by_row + q) = sum;
            }
        }
}

/* The best so far at each output of some tiles, against the products of WIDE more kernels. */
INLINE void compete(const Batch *s, int64_t tile, int64_t products, int64_t rows,
                    const float *found, int chunk, vec *best, lanes *who)
{
    for (int64_t r = 0; r < rows; r++)
        for (int v = 0; v < 2; v++) {
            vec x[MOST];
            UNROLL
            for (int64_t p = 0; p < products; p++)
                x[p] = *at(found + (p * ROWS + r) * WIDE + v * LANES);
            UNROLL
            for (int64_t o = 0; o < tile; o++) {
                vec y = {0};
                UNROLL
                for (int64_t p = 0; p < products; p++) y += x[p] * s->to_outputs[o * products + p];
                int64_t n = r * tile + o;
                lanes wins = y > best[n];
                best[n] = either(wins, y, best[n]);
                who[n] = ((2 * chunk + v) & wins) | (who[n] & ~wins);
            }
        }
}

/* max_k of the convolution of M (length, channels) with the kernels, and which k that is. */
static void convolve(const Batch *s, const float *packed, const float *m, int64_t by_row,
                     int64_t length, int64_t channels, float *scratch, float *score,
                     int32_t *winner)
{
    int64_t tile = s->tile, products = s->products, tiles = (length + tile - 1) / tile;
    int64_t chunks = up(s->kernels, WIDE) / WIDE, step = even(tiles, ROWS);
    int usual = tile == 4 && products == 8;
    float *values = scratch, *found = values + products * tiles * by_row;
    vec *best = at(found + products * ROWS * WIDE);
    lanes *who = (lanes *)(best + tiles * tile);
    if (usual)
        rows_transformed(s, 4, 8, m, by_row, length, up(channels, LANES), tiles, values);
    else
        rows_transformed(s, tile, products, m, by_row, length, up(channels, LANES), tiles, values);
    for (int64_t n = 0; n < tiles * tile; n++) {
        best[n] = (vec){0} - INFINITY;
        who[n] = (lanes){0};
    }
    for (int64_t chunk = 0; chunk < chunks; chunk++)
        for (int64_t k = 0; k < tiles; k += step) {
            int64_t rows = tiles - k < step ? tiles - k : step;
            for (int64_t p = 0; p < products; p++)
                any_block(rows, 2, channels, values + (p * tiles + k) * by_row, by_row, 1,
                          packed + (chunk * products + p) * s->longest * WIDE, WIDE,
                          found + p * ROWS * WIDE, WIDE, 0);
            if (usual)
                compete(s, 4, 8, rows, found, chunk, best + k * tile, who + k * tile);
            else
                compete(s, tile, products, rows, found, chunk, best + k * tile, who + k * tile);
        }
    for (int64_t a = 0; a < length; a++) {
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
static void weigh(const Batch *s, int64_t text)
{
    const int64_t *tokens = s->tokens + s->first[text];
    float *score = s->scores + s->first[text], *weight = s->weights + s->first[text];
    float *out = s->texts + text * s->dim, total = 0;
    for (int64_t a = 0; a < s->length[text]; a++) {
        score[a] = tokens[a] ? tanhf(score[a]) : 0;
        weight[a] = tokens[a] ? expf(score[a]) : 0;
        total += weight[a];
    }
    for (int64_t a = 0; a < s->length[text]; a++) {
        const float *word = s->words + tokens[a] * s->dim;
        float w = weight[a] /= total > 0 ? total : 1;
        for (int64_t c = 0; c < s->dim; c++) out[c] += w * word[c];
    }
}

typedef struct {
    const Batch *batch;
    const float *packed;
    int64_t taken; /* pairs that threads have taken */
    int failed;
} Forward;

/* One thread: align pairs until none is left. */
static void align_pairs(void *given, int64_t thread)
{
    (void)thread;
    Forward *f = given;
    const Batch *s = f->batch;
    int64_t tiles = s->longest / s->tile + 1, dim = s->dim, longest = s->longest;
    int64_t convolution =
        s->products * (tiles * longest + ROWS * WIDE) + 2 * tiles * s->tile * LANES;
    Room room = room_for(longest * (2 * dim + longest) + convolution);
    if (!room.start) {
        __atomic_store_n(&f->failed, 1, __ATOMIC_RELAXED);
        return;
    }
    float *words_i = room.start, *transposed_words = words_i + longest * dim;
    float *transposed = transposed_words + longest * dim, *scratch = transposed + longest * longest;
    for (int64_t n; (n = next(&f->taken)) < s->pairs;) {
        int64_t i = n, j = s->pairs + n, li = s->length[i], lj = s->length[j];
        int64_t by_i = up(li, ALIGNED), by_j = up(lj, ALIGNED);
        float *m = s->similarity + s->table[n];
        const int64_t *ti = s->tokens + s->first[i], *tj = s->tokens + s->first[j];
        for (int64_t a = 0; a < li; a++)
            memcpy(words_i + a * dim, s->words + ti[a] * dim, sizeof(float) * dim);
        for (int64_t b = 0; b < up(lj, LANES); b++) {
            const float *word = s->words + (b < lj ? tj[b] : 0) * dim;
            for (int64_t c = 0; c < dim; c++) transposed_words[c * by_j + b] = word[c];
        }
        product(li, up(lj, LANES), dim, words_i, dim, 1, transposed_words, by_j, m, by_j, 0);
        transpose(m, by_j, li, lj, transposed, by_i);
        convolve(s, f->packed, m, by_j, li, lj, scratch, s->scores + s->first[i],
                 s->winner + s->first[i]);
        convolve(s, f->packed + (s->sides - 1) * transformed_size(s), transposed, by_i, lj, li,
                 scratch, s->scores + s->first[j], s->winner + s->first[j]);
        weigh(s, i);
        weigh(s, j);
    }
    free(room.block);
}

KERNEL(align)(const Batch *s)
{
    if (!is_batch(s)) return INVALID;
    Room packed = room_for(s->sides * transformed_size(s));
    if (!packed.start) return OUT_OF_MEMORY;
    Transformed t = {s, packed.start};
    run(s->threads, s->sides * up(s->kernels, WIDE), transform, &t);
    Forward f = {s, packed.start, 0, 0};
    run(s->threads, smaller(s->threads, s->pairs), align_pairs, &f);
    free(packed.block);
    return f.failed ? OUT_OF_MEMORY : DONE;
}

/* ---- backward ---- */

/* From the gradient of a text: the gradients of its winning kernels (added to to_kernels) and of M
   (added to to_m, which is zero before). `to_weight` is room for one float per word. */
static void spread(const Batch *s, int64_t text, const float *gradient, const float *m,
                   int64_t by_row, int64_t channels, float *to_weight, float *to_m,
                   float *to_kernels)
{
    int64_t length = s->length[text], half = s->width / 2, own = kernels_of(s, text / s->pairs);
    const float *score = s->scores + s->first[text], *weight = s->weights + s->first[text];
    const int32_t *winner = s->winner + s->first[text];
    float mean = 0;
    for (int64_t a = 0; a < length; a++) {
        const float *word = s->words + s->tokens[s->first[text] + a] * s->dim;
        vec sum = {0};
        float rest = 0;
        int64_t c = 0;
        for (; c + LANES <= s->dim; c += LANES) sum += *at(word + c) * *at(gradient + c);
        for (; c < s->dim; c++) rest += word[c] * gradient[c];
        for (int lane = 0; lane < LANES; lane++) rest += sum[lane];
        to_weight[a] = rest;
        mean += weight[a] * rest;
    }
    for (int64_t a = 0; a < length; a++) {
        float to_best = weight[a] * (to_weight[a] - mean) * (1 - score[a] * score[a]);
        for (int64_t t = 0; t < s->width; t++) {
            int64_t row = a + t - half, place = own + (winner[a] * s->width + t) * s->longest;
            if (row < 0 || row >= length) continue;
            const float *kernel = s->kernel + place, *from = m + row * by_row;
            float *to = to_kernels + place, *into = to_m + row * by_row;
            for (int64_t q = 0; q < channels; q += LANES) {
                *at(to + q) += *at(from + q) * to_best;
                *at(into + q) += *at(kernel + q) * to_best;
            }
        }
    }
}

/* The words of a text, in rows of `dim` floats, and their gradients from the weighted sum. */
static void words_of(const Batch *s, int64_t text, int64_t dim, const float *gradient, float *words,
                     float *to_each)
{
    for (int64_t a = 0; a < s->length[text]; a++) {
        int64_t place = s->first[text] + a;
        const float *word = s->words + s->tokens[place] * s->dim;
        for (int64_t c = 0; c < s->dim; c++) {
            words[a * dim + c] = word[c];
            to_each[a * dim + c] = s->weights[place] * gradient[c];
        }
        for (int64_t c = s->dim; c < dim; c++) words[a * dim + c] = to_each[a * dim + c] = 0;
    }
}

/* The gradients of the words in a thread's pairs: one row for each word that occurs there. */
typedef struct {
    int64_t count;
    int32_t *row; /* (vocabulary,) the row of a word, or -1 */
    float *sum;   /* (count, dim up to ALIGNED) */
} Sums;

static int prepare(const Batch *s, int64_t dim, Sums *own)
{
    int64_t most = 0;
    for (int64_t text = 0; text < 2 * s->pairs; text++) most += s->length[text];
    if (most > s->vocabulary) most = s->vocabulary;
    own->row = malloc(sizeof(int32_t) * s->vocabulary + 1);
    own->sum = malloc(sizeof(float) * most * dim + 1);
    if (own->row) memset(own->row, -1, sizeof(int32_t) * s->vocabulary);
    return own->row && own->sum;
}

static void add(const Batch *s, int64_t text, int64_t dim, const float *to_each, Sums *own)
{
    for (int64_t a = 0; a < s->length[text]; a++) {
        int64_t token = s->tokens[s->first[text] + a];
        if (token == 0) continue;
        const float *from = to_each + a * dim;
        int new = own->row[token] < 0;
        if (new) own->row[token] = (int32_t)own->count++;
        float *sum = own->sum + own->row[token] * dim;
        if (new)
            memcpy(sum, from, sizeof(float) * dim);
        else
            for (int64_t c = 0; c < dim; c += LANES) *at(sum + c) += *at(from + c);
    }
}

/* Which part of the work each pair belongs to: the smallest so far. The assignment is fixed because
   each part sums the gradients of its pairs: the result depends neither on timing nor on the number
   of threads. */
enum { PARTS = 4 };

static int64_t *parts_of(const Batch *s)
{
    int64_t *part = malloc(sizeof *part * s->pairs + 1);
    double load[PARTS] = {0};
    for (int64_t n = 0; part && n < s->pairs; n++) {
        int64_t least = 0;
        for (int64_t k = 1; k < PARTS; k++)
            if (load[k] < load[least]) least = k;
        part[n] = least;
        load[least] += (double)s->length[n] * s->length[s->pairs + n];
    }
    return part;
}

typedef struct {
    const Batch *batch;
    const float *gradient;
    float *to_words, *to_kernels, *more; /* kernels: those of the first part, and of the others */
    const int64_t *part; /* (pairs,) */
    Sums sums[PARTS];
    int failed;
} Backward;

/* The gradients from the pairs of one part. */
static void back_part(void *given, int64_t me)
{
    Backward *w = given;
    const Batch *s = w->batch;
    int64_t dim = up(s->dim, ALIGNED), longest = s->longest;
    Room room = room_for(longest * (4 * dim + 3 * longest + 1));
    if (!room.start || !prepare(s, dim, w->sums + me)) {
        __atomic_store_n(&w->failed, 1, __ATOMIC_RELAXED);
        free(room.block);
        return;
    }
    float *words_i = room.start, *words_j = words_i + longest * dim;
    float *to_i = words_j + longest * dim, *to_j = to_i + longest * dim;
    float *transposed = to_j + longest * dim, *to_m = transposed + longest * longest;
    float *to_transposed = to_m + longest * longest, *to_weight = to_transposed + longest * longest;
    int64_t size = s->sides * s->kernels * s->width * longest;
    float *to_kernels = me ? w->more + (me - 1) * size : w->to_kernels;
    for (int64_t n = 0; n < s->pairs; n++) {
        if (w->part[n] != me) continue;
        int64_t i = n, j = s->pairs + n, li = s->length[i], lj = s->length[j];
        int64_t by_i = up(li, ALIGNED), by_j = up(lj, ALIGNED);
        const float *m = s->similarity + s->table[n];
        const float *of_i = w->gradient + i * s->dim, *of_j = w->gradient + j * s->dim;
        transpose(m, by_j, li, lj, transposed, by_i);
        memset(to_m, 0, sizeof(float) * li * by_j);
        memset(to_transposed, 0, sizeof(float) * lj * by_i);
        spread(s, i, of_i, m, by_j, up(lj, LANES), to_weight, to_m, to_kernels);
        spread(s, j, of_j, transposed, by_i, up(li, LANES), to_weight, to_transposed, to_kernels);
        for (int64_t a = 0; a < li; a++)
            for (int64_t b = 0; b < lj; b++) to_m[a * by_j + b] += to_transposed[b * by_i + a];
        words_of(s, i, dim, of_i, words_i, to_i);
        words_of(s, j, dim, of_j, words_j, to_j);
        product(li, dim, lj, to_m, by_j, 1, words_j, dim, to_i, dim, 1);
        product(lj, dim, li, to_m, 1, by_j, words_i, dim, to_j, dim, 1);
        add(s, i, dim, to_i, w->sums + me);
        add(s, j, dim, to_j, w->sums + me);
    }
    free(room.block);
}

/* The gradients of some words, summed over the parts. */
static void sum_parts(void *given, int64_t chunk)
{
    const Backward *w = given;
    const Batch *s = w->batch;
    int64_t dim = up(s->dim, ALIGNED), last = smaller((chunk + 1) * CHUNK, s->vocabulary);
    for (int64_t token = chunk * CHUNK; token < last; token++) {
        float *to = w->to_words + token * s->dim;
        memset(to, 0, sizeof(float) * s->dim);
        for (int64_t part = 0; part < PARTS; part++) {
            if (w->sums[part].row[token] < 0) continue;
            const float *sum = w->sums[part].sum + w->sums[part].row[token] * dim;
            for (int64_t c = 0; c < s->dim; c++) to[c] += sum[c];
        }
    }
}

/* The gradients of words (vocabulary, dim) and kernels (threads, sides, kernels, width, longest;
   zero before; the first has the sum) from that of the texts (2 pairs, dim). */
KERNEL(align_back)(const Batch *s, const float *gradient, int64_t gradient_count, float *to_words,
                   int64_t to_words_count, float *to_kernels, int64_t to_kernels_count)
{
    if (!is_batch(s) || !is_size(gradient_count, 2 * s->pairs, s->dim)) return INVALID;
    if (!is_size(to_words_count, s->vocabulary, s->dim)) return INVALID;
    int64_t size = s->sides * s->kernels * s->width * s->longest;
    if (!is_size(to_kernels_count, s->threads, size)) return INVALID;
    for (int64_t text = 0; text < 2 * s->pairs; text++)
        for (int64_t a = s->first[text]; a < s->first[text] + s->length[text]; a++)
            if (s->winner[a] < 0 || s->winner[a] >= s->kernels) return INVALID;
    float *more = calloc((PARTS - 1) * size, sizeof *more);
    Backward w = {s, gradient, to_words, to_kernels, more, parts_of(s), {{0}}, 0};
    int enough = w.part && more;
    if (enough) {
        run(s->threads, PARTS, back_part, &w);
        enough = !w.failed;
    }
    if (enough) {
        run(s->threads, (s->vocabulary + CHUNK - 1) / CHUNK, sum_parts, &w);
        for (int64_t part = 1; part < PARTS; part++)
            for (int64_t k = 0; k < size; k++) to_kernels[k] += more[(part - 1) * size + k];
    }
    for (int64_t part = 0; part < PARTS; part++) free(w.sums[part].row), free(w.sums[part].sum);
    free(more);
    free((void *)w.part);
    return enough ? DONE : OUT_OF_MEMORY;
}
