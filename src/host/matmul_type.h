/* The naive and the tiled kernel for one type: included by matmul.c once for
 * each, with these defined: NAME(x), a name of its own; INPUT, the elements of
 * a and b, and LOAD(element), the number that one is; SUM, what the sums are
 * made in; OUTPUT, the elements of c, with FETCH(element) and KEEP(sum).
 *
 * Both kernels add the k products of an element in ascending order, without
 * fused operations: so the two agree bit for bit. */

/* Where the elements of one operand lie, op() applied. */
typedef struct NAME(view) {
  const INPUT *first;
  int64_t row, column; /* elements to the next row, to the next column */
} NAME(view);

static NAME(view) NAME(view_of)(const tl_operand *operand, const void *memory,
                                int64_t batch) {
  const INPUT *base = memory;
  return (NAME(view)){.first = base + operand->offset +
                               batch * operand->batch_stride,
                      .row = operand->transpose ? 1 : operand->ld,
                      .column = operand->transpose ? operand->ld : 1};
}

static OUTPUT *NAME(output_of)(const host_product *product, int64_t batch) {
  const tl_operand *c = &product->problem->c;
  return (OUTPUT *)product->c + c->offset + batch * c->batch_stride;
}

static void NAME(store)(const tl_matmul_problem *p, SUM sum, OUTPUT *c) {
  SUM product = (SUM)p->alpha * sum;
  if (p->beta != 0)
    product += (SUM)p->beta * FETCH(*c);
  *c = KEEP(product);
}

/* k = 0: what is left is c = beta * c, whatever alpha is. */
static void NAME(scale)(const host_product *product, int64_t batch) {
  const tl_matmul_problem *p = product->problem;
  OUTPUT *c = NAME(output_of)(product, batch);
  for (int64_t i = 0; i < p->m; i++)
    for (int64_t j = 0; j < p->n; j++) {
      OUTPUT *element = &c[i * p->c.ld + j];
      SUM value = 0;
      if (p->beta != 0)
        value = (SUM)p->beta * FETCH(*element);
      *element = KEEP(value);
    }
}

/* One element after the other, the row index running first: the order in which
 * question 1's kernel takes them, and as unkind to the cache. */
static void NAME(naive)(const host_product *product, int64_t batch) {
  const tl_matmul_problem *p = product->problem;
  NAME(view) a = NAME(view_of)(&p->a, product->a, batch);
  NAME(view) b = NAME(view_of)(&p->b, product->b, batch);
  OUTPUT *c = NAME(output_of)(product, batch);
  for (int64_t j = 0; j < p->n; j++)
    for (int64_t i = 0; i < p->m; i++) {
      const INPUT *x = a.first + i * a.row, *y = b.first + j * b.column;
      SUM sum = 0;
      for (int64_t k = 0; k < p->k; k++)
        sum += LOAD(x[k * a.column]) * LOAD(y[k * b.row]);
      NAME(store)(p, sum, &c[i * p->c.ld + j]);
    }
}

static void NAME(pack)(NAME(view) v, int64_t row, int64_t column, int64_t rows,
                       int64_t columns, SUM *tile, int64_t width) {
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++)
      tile[i * width + j] =
          LOAD(v.first[(row + i) * v.row + (column + j) * v.column]);
}

/* One tile of c: tiles of a and b are copied to where they stay in cache, and
 * the innermost loop runs along a row. */
static void NAME(tile)(const tl_matmul_problem *p, NAME(view) a, NAME(view) b,
                       OUTPUT *c, int64_t row, int64_t column) {
  SUM sums[TILE_ROWS][TILE_COLUMNS] = {{0}};
  SUM x[TILE_ROWS][TILE_DEPTH];
  SUM y[TILE_DEPTH][TILE_COLUMNS];
  int64_t rows = smaller(TILE_ROWS, p->m - row);
  int64_t columns = smaller(TILE_COLUMNS, p->n - column);
  for (int64_t first = 0; first < p->k; first += TILE_DEPTH) {
    int64_t depth = smaller(TILE_DEPTH, p->k - first);
    NAME(pack)(a, row, first, rows, depth, &x[0][0], TILE_DEPTH);
    NAME(pack)(b, first, column, depth, columns, &y[0][0], TILE_COLUMNS);
    for (int64_t i = 0; i < rows; i++)
      for (int64_t k = 0; k < depth; k++)
        for (int64_t j = 0; j < columns; j++)
          sums[i][j] += x[i][k] * y[k][j];
  }
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++)
      NAME(store)(p, sums[i][j], &c[(row + i) * p->c.ld + column + j]);
}

static void NAME(tiled)(const host_product *product, int64_t batch) {
  const tl_matmul_problem *p = product->problem;
  NAME(view) a = NAME(view_of)(&p->a, product->a, batch);
  NAME(view) b = NAME(view_of)(&p->b, product->b, batch);
  OUTPUT *c = NAME(output_of)(product, batch);
  for (int64_t row = 0; row < p->m; row += TILE_ROWS)
    for (int64_t column = 0; column < p->n; column += TILE_COLUMNS)
      NAME(tile)(p, a, b, c, row, column);
}

static void NAME(naive_run)(const host_product *product) {
  for (int64_t batch = 0; batch < product->problem->batch; batch++) {
    if (product->problem->k == 0)
      NAME(scale)(product, batch);
    else
      NAME(naive)(product, batch);
  }
}

static void NAME(tiled_run)(const host_product *product) {
  for (int64_t batch = 0; batch < product->problem->batch; batch++) {
    if (product->problem->k == 0)
      NAME(scale)(product, batch);
    else
      NAME(tiled)(product, batch);
  }
}

#undef NAME
#undef INPUT
#undef LOAD
#undef SUM
#undef OUTPUT
#undef FETCH
#undef KEEP
