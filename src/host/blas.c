/* The system's CBLAS, opened at the first use and never closed.
 *
 * A BLAS with threads of its own takes them and its buffers apart when the
 * process exits or forks, while a worker may still be computing with them. So
 * exit and fork are made to wait until no worker is inside the library, and no
 * worker enters again before the fork is done; long products go in panels, so
 * that the wait is short. Both belong to the whole process, and so does this
 * lock: it is the library's one mutable global. */
#define _GNU_SOURCE
#include "host/kernels.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/library.h"

static struct {
  pthread_once_t once;
  pthread_rwlock_t inside; /* read: in the BLAS; write: exiting or forking */
} blas_use = {PTHREAD_ONCE_INIT,
              PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP};

static void blas_leave(void) {
  pthread_rwlock_wrlock(&blas_use.inside);
}

static void blas_return(void) {
  pthread_rwlock_unlock(&blas_use.inside);
}

/* Workers of the parent that wait to enter do not exist in the child. */
static void blas_return_in_child(void) {
  static const pthread_rwlock_t fresh =
      PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
  blas_use.inside = fresh;
}

/* Runs after the BLAS has registered its own handlers: so before them. */
static void blas_use_register(void) {
  atexit(blas_leave);
  pthread_atfork(blas_leave, blas_return, blas_return_in_child);
}

/* ---- opening ------------------------------------------------------------- */

/* The one that the build found comes first. */
static const char *const libraries[] = {
#ifdef TL_CBLAS_LIBRARY
    TL_CBLAS_LIBRARY,
#endif
    "libopenblas.so.0", "libopenblas.so", "libcblas.so.3", "libblas.so.3",
    "libmkl_rt.so.2",   "libmkl_rt.so",   "libblis.so.4",  "libcblas.so",
};

static bool library_open(host_blas *blas, const char *name) {
  void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL)
    return false;
  if (tl_library_symbol(library, "cblas_sgemm", &blas->sgemm) &&
      tl_library_symbol(library, "cblas_dgemm", &blas->dgemm))
    return true;
  dlclose(library);
  return false;
}

static tl_status blas_find(host_blas *blas, tl_error *error) {
  const char *wanted = getenv("TIDELOCK_CBLAS");
  if (wanted != NULL && wanted[0] != '\0') {
    if (library_open(blas, wanted))
      return TL_OK;
    return tl_fail(error, TL_UNSUPPORTED,
                   "host: TIDELOCK_CBLAS=%.200s is not a CBLAS library",
                   wanted);
  }
  char tried[256] = "";
  for (size_t i = 0; i < sizeof libraries / sizeof libraries[0]; i++) {
    if (library_open(blas, libraries[i]))
      return TL_OK;
    size_t used = strlen(tried);
    snprintf(tried + used, sizeof tried - used, "%s%s", i > 0 ? ", " : "",
             libraries[i]);
  }
  return tl_fail(error, TL_UNSUPPORTED,
                 "host: no CBLAS library found (tried %s; "
                 "on Debian: apt install libopenblas0)",
                 tried);
}

void host_blas_begin(host_blas *blas) {
  pthread_mutex_init(&blas->lock, NULL);
}

void host_blas_end(host_blas *blas) {
  pthread_mutex_destroy(&blas->lock);
}

tl_status host_blas_open(host_blas *blas, tl_faults *faults, tl_error *error) {
  if (atomic_load_explicit(&blas->open, memory_order_acquire))
    return TL_OK;
  tl_status status = tl_fault(faults, "host blas", error);
  if (status != TL_OK)
    return status;
  pthread_mutex_lock(&blas->lock);
  if (!atomic_load(&blas->open)) {
    status = blas_find(blas, error);
    if (status == TL_OK) {
      pthread_once(&blas_use.once, blas_use_register);
      atomic_store(&blas->open, true);
    }
  }
  pthread_mutex_unlock(&blas->lock);
  return status;
}

/* ---- gemm ---------------------------------------------------------------- */

enum { ROW_MAJOR = 101, NO_TRANSPOSE = 111, TRANSPOSE = 112 };

/* A product of more multiplications than this, some tenths of a second, goes in
 * panels. A CBLAS works through k in blocks itself, so panels along k, this
 * deep at least, cost next to nothing; panels of rows have b packed again for
 * each, and are used only where k is short. */
static const double panel_products = 2e10;
enum { PANEL_DEPTH = 1024, PANEL_ROWS = 2048 };

/* How much of `size` goes into one panel, when `others` is the product of the
 * other two sizes. */
static int64_t panel_size(int64_t size, double others, int64_t least) {
  double fits = panel_products / others;
  if (fits >= (double)size)
    return size;
  return fits < (double)least ? least : (int64_t)fits / least * least;
}

/* The element at a row and a column of op(matrix). */
static size_t place(const tl_operand *o, int64_t batch, int64_t row,
                    int64_t column) {
  return (size_t)(o->offset + batch * o->batch_stride +
                  (o->transpose ? column * o->ld + row : row * o->ld + column));
}

typedef struct panel {
  int64_t batch, row, rows, first, depth; /* k from first, depth of them */
} panel;

static void panel_run(const host_product *product, panel at) {
  const tl_matmul_problem *p = product->problem;
  size_t a = place(&p->a, at.batch, at.row, at.first);
  size_t b = place(&p->b, at.batch, at.first, 0);
  size_t c = place(&p->c, at.batch, at.row, 0);
  int trans_a = p->a.transpose ? TRANSPOSE : NO_TRANSPOSE;
  int trans_b = p->b.transpose ? TRANSPOSE : NO_TRANSPOSE;
  double beta = at.first == 0 ? p->beta : 1;
  const void *x = product->a, *y = product->b;
  void *z = product->c;
  if (p->type == TL_MATMUL_FLOAT32)
    product->blas->sgemm(ROW_MAJOR, trans_a, trans_b, (int)at.rows, (int)p->n,
                         (int)at.depth, (float)p->alpha, (const float *)x + a,
                         (int)p->a.ld, (const float *)y + b, (int)p->b.ld,
                         (float)beta, (float *)z + c, (int)p->c.ld);
  else
    product->blas->dgemm(ROW_MAJOR, trans_a, trans_b, (int)at.rows, (int)p->n,
                         (int)at.depth, p->alpha, (const double *)x + a,
                         (int)p->a.ld, (const double *)y + b, (int)p->b.ld,
                         beta, (double *)z + c, (int)p->c.ld);
}

static int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}

void host_product_blas(const host_product *product) {
  const tl_matmul_problem *p = product->problem;
  int64_t depth = panel_size(p->k, (double)p->m * (double)p->n, PANEL_DEPTH);
  int64_t rows = p->k <= PANEL_DEPTH
                     ? panel_size(p->m, (double)p->n * (double)p->k, PANEL_ROWS)
                     : p->m;
  for (int64_t batch = 0; batch < p->batch; batch++)
    for (int64_t row = 0; row < p->m; row += rows)
      for (int64_t first = 0; first < p->k; first += depth) {
        panel at = {batch, row, smaller(rows, p->m - row), first,
                    smaller(depth, p->k - first)};
        pthread_rwlock_rdlock(&blas_use.inside);
        panel_run(product, at);
        pthread_rwlock_unlock(&blas_use.inside);
      }
}
