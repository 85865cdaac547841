/* The system's CBLAS, opened at the first use and never closed.
 *
 * A BLAS with threads of its own takes its buffers apart when the process
 * exits, while a worker may still be computing in them. So exit is made to
 * wait until no worker is inside the library, and no worker enters again; long
 * products go in panels, so that the wait is short. Exit belongs to the whole
 * process, and so does this lock: it is the library's one mutable global. */
#define _GNU_SOURCE
#include "host/host.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
  pthread_once_t once;
  pthread_rwlock_t inside; /* read: in the BLAS; write, for ever: exiting */
  pid_t process;           /* a forked child has no workers to wait for */
} blas_exit = {PTHREAD_ONCE_INIT,
               PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP, 0};

static void blas_exit_wait(void) {
  if (getpid() == blas_exit.process)
    pthread_rwlock_wrlock(&blas_exit.inside);
}

static void blas_exit_register(void) {
  blas_exit.process = getpid();
  atexit(blas_exit_wait);
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

/* dlsym gives an object pointer; this makes a function of it, as POSIX says. */
static bool symbol_read(void *library, const char *name, void *function) {
  void *symbol = dlsym(library, name);
  memcpy(function, &symbol, sizeof symbol);
  return symbol != NULL;
}

static bool library_open(host_blas *blas, const char *name) {
  void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL)
    return false;
  if (symbol_read(library, "cblas_sgemm", &blas->sgemm) &&
      symbol_read(library, "cblas_dgemm", &blas->dgemm))
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

tl_status host_blas_open(tl_device_impl *device, tl_error *error) {
  if (atomic_load_explicit(&device->blas.open, memory_order_acquire))
    return TL_OK;
  tl_status status = tl_fault(device->options.faults, "host blas", error);
  if (status != TL_OK)
    return status;
  pthread_mutex_lock(&device->lock);
  if (!atomic_load(&device->blas.open)) {
    status = blas_find(&device->blas, error);
    if (status == TL_OK) {
      pthread_once(&blas_exit.once, blas_exit_register);
      atomic_store(&device->blas.open, true);
    }
  }
  pthread_mutex_unlock(&device->lock);
  return status;
}

/* ---- gemm ---------------------------------------------------------------- */

enum { ROW_MAJOR = 101, NO_TRANSPOSE = 111, TRANSPOSE = 112 };

/* About as many multiplications as take a core a tenth of a second, but enough
 * rows that a panel is as fast as the whole. */
enum { PANEL_ROWS = 512 };
static const double panel_products = 2e9;

static int64_t panel_rows(const tl_matmul_problem *p) {
  double rows = panel_products / ((double)p->n * (double)p->k);
  if (rows >= (double)p->m)
    return p->m;
  return rows < PANEL_ROWS ? PANEL_ROWS : (int64_t)rows;
}

static size_t place(const tl_operand *o, int64_t batch, int64_t row) {
  return (size_t)(o->offset + batch * o->batch_stride +
                  row * (o->transpose ? 1 : o->ld));
}

static void panel_run(const host_operation *operation, int64_t batch,
                      int64_t row, int64_t rows) {
  const tl_matmul_problem *p = &operation->with.matmul;
  size_t a = place(&p->a, batch, row), b = place(&p->b, batch, 0);
  size_t c = place(&p->c, batch, row);
  int trans_a = p->a.transpose ? TRANSPOSE : NO_TRANSPOSE;
  int trans_b = p->b.transpose ? TRANSPOSE : NO_TRANSPOSE;
  const void *x = p->a.memory->bytes, *y = p->b.memory->bytes;
  void *z = p->c.memory->bytes;
  if (p->dtype == TL_FLOAT32)
    operation->blas->sgemm(ROW_MAJOR, trans_a, trans_b, (int)rows, (int)p->n,
                           (int)p->k, (float)p->alpha, (const float *)x + a,
                           (int)p->a.ld, (const float *)y + b, (int)p->b.ld,
                           (float)p->beta, (float *)z + c, (int)p->c.ld);
  else
    operation->blas->dgemm(ROW_MAJOR, trans_a, trans_b, (int)rows, (int)p->n,
                           (int)p->k, p->alpha, (const double *)x + a,
                           (int)p->a.ld, (const double *)y + b, (int)p->b.ld,
                           p->beta, (double *)z + c, (int)p->c.ld);
}

void host_matmul_blas(const host_operation *operation) {
  const tl_matmul_problem *p = &operation->with.matmul;
  int64_t most = panel_rows(p);
  for (int64_t batch = 0; batch < p->batch; batch++)
    for (int64_t row = 0; row < p->m; row += most) {
      pthread_rwlock_rdlock(&blas_exit.inside);
      panel_run(operation, batch, row, p->m - row < most ? p->m - row : most);
      pthread_rwlock_unlock(&blas_exit.inside);
    }
}
