/* The naive and the tiled kernel for one type: included by matmul.c once for
 * each, with REAL, NAIVE_RUN and TILED_RUN defined.
 *
 * Both add the k products of an element in ascending order in REAL, without
 * fused operations: so the two agree bit for bit. */

/* Where the elements of one operand lie, op() applied. */
typedef struct VIEW {
  const REAL *first;
  int64_t row, column; /* elements to the next row, to the next column */
} VIEW;

static VIEW VIEW_OF(const tl_operand *operand, int64_t batch) {
  const REAL *base = (const REAL *)(const void *)operand->memory->bytes;
  return (VIEW){.first = base + operand->offset + batch * operand->batch_stride,
                .row = operand->transpose ? 1 : operand->ld,
                .column = operand->transpose ? operand->ld : 1};
}

static REAL *OUTPUT_OF(const tl_operand *operand, int64_t batch) {
  REAL *base = (REAL *)(void *)operand->memory->bytes;
  return base + operand->offset + batch * operand->batch_stride;
}

static void STORE(const tl_matmul_problem *p, REAL sum, REAL *c) {
  REAL product = (REAL)p->alpha * sum;
  *c = p->beta == 0 ? product : product + (REAL)p->beta * *c;
}

/* k = 0: what is left is c = beta * c, whatever alpha is. */
static void SCALE(const tl_matmul_problem *p, int64_t batch) {
  REAL *c = OUTPUT_OF(&p->c, batch);
  for (int64_t i = 0; i < p->m; i++)
    for (int64_t j = 0; j < p->n; j++) {
      REAL *element = &c[i * p->c.ld + j];
      *element = p->beta == 0 ? (REAL)0 : (REAL)p->beta * *element;
    }
}

/* One element after the other, the row index running first: the order in which
 * question 1's kernel takes them, and as unkind to the cache. */
static void NAIVE_ONE(const tl_matmul_problem *p, int64_t batch) {
  VIEW a = VIEW_OF(&p->a, batch), b = VIEW_OF(&p->b, batch);
  REAL *c = OUTPUT_OF(&p->c, batch);
  for (int64_t j = 0; j < p->n; j++)
    for (int64_t i = 0; i < p->m; i++) {
      const REAL *x = a.first + i * a.row, *y = b.first + j * b.column;
      REAL sum = 0;
      for (int64_t k = 0; k < p->k; k++)
        sum += x[k * a.column] * y[k * b.row];
      STORE(p, sum, &c[i * p->c.ld + j]);
    }
}

static void PACK(VIEW v, int64_t row, int64_t column, int64_t rows,
                 int64_t columns, REAL *tile, int64_t width) {
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++)
      tile[i * width + j] =
          v.first[(row + i) * v.row + (column + j) * v.column];
}

/* One tile of c: tiles of a and b are copied to where they stay in cache, and
 * the innermost loop runs along a row. */
static void TILE(const tl_matmul_problem *p, VIEW a, VIEW b, REAL *c,
                 int64_t row, int64_t column) {
  REAL sums[TILE_ROWS][TILE_COLUMNS] = {{0}};
  REAL x[TILE_ROWS][TILE_DEPTH];
  REAL y[TILE_DEPTH][TILE_COLUMNS];
  int64_t rows = smaller(TILE_ROWS, p->m - row);
  int64_t columns = smaller(TILE_COLUMNS, p->n - column);
  for (int64_t first = 0; first < p->k; first += TILE_DEPTH) {
    int64_t depth = smaller(TILE_DEPTH, p->k - first);
    PACK(a, row, first, rows, depth, &x[0][0], TILE_DEPTH);
    PACK(b, first, column, depth, columns, &y[0][0], TILE_COLUMNS);
    for (int64_t i = 0; i < rows; i++)
      for (int64_t k = 0; k < depth; k++)
        for (int64_t j = 0; j < columns; j++)
          sums[i][j] += x[i][k] * y[k][j];
  }
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++)
      STORE(p, sums[i][j], &c[(row + i) * p->c.ld + column + j]);
}

static void TILED_ONE(const tl_matmul_problem *p, int64_t batch) {
  VIEW a = VIEW_OF(&p->a, batch), b = VIEW_OF(&p->b, batch);
  REAL *c = OUTPUT_OF(&p->c, batch);
  for (int64_t row = 0; row < p->m; row += TILE_ROWS)
    for (int64_t column = 0; column < p->n; column += TILE_COLUMNS)
      TILE(p, a, b, c, row, column);
}

static void NAIVE_RUN(const host_operation *operation) {
  const tl_matmul_problem *p = &operation->with.matmul;
  for (int64_t batch = 0; batch < p->batch; batch++) {
    if (p->k == 0)
      SCALE(p, batch);
    else
      NAIVE_ONE(p, batch);
  }
}

static void TILED_RUN(const host_operation *operation) {
  const tl_matmul_problem *p = &operation->with.matmul;
  for (int64_t batch = 0; batch < p->batch; batch++) {
    if (p->k == 0)
      SCALE(p, batch);
    else
      TILED_ONE(p, batch);
  }
}
