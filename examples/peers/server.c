/* Plain C's side of the comparisons that alternate between programs. Each line
 * on stdin is a question, answered by one line of JSON on stdout:
 *   throughput DTYPE N PRODUCTS   TFLOP/s of so many products by cuBLAS
 *   launch spin|naive|blas N      ns of the host for each call
 * Usage: server kernels.fatbin */
#define _POSIX_C_SOURCE 200809L
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plain.h"

/* The same in every server: calls in a batch, batches timed behind an untimed
 * one, and how long the stream is held back for each product that is queued
 * before the first can start, so that enqueueing is not measured. */
enum { CALLS = 200, BATCHES = 5, HOLD_NS = 50000 };

typedef struct server {
  plain plain;
  CUfunction spin, naive;
  CUevent first, last;
  /* The matrices of the last question, kept for the next of the same shape. */
  const plain_type *type;
  int n;
  CUdeviceptr a, b, c;
} server;

static void matrices_make(server *s, const plain_type *type, int n) {
  plain *p = &s->plain;
  if (s->type == type && s->n == n)
    return;
  if (s->type != NULL) {
    PLAIN_CHECK(p->cu.cuMemFree(s->a));
    PLAIN_CHECK(p->cu.cuMemFree(s->b));
    PLAIN_CHECK(p->cu.cuMemFree(s->c));
  }
  s->type = type;
  s->n = n;
  s->a = plain_uniform(p, type, n, 1);
  s->b = plain_uniform(p, type, n, 2);
  s->c = plain_uniform(p, type, n, 3);
  plain_synchronize(p);
}

static void throughput(server *s, const char *dtype, int n, int products) {
  plain *p = &s->plain;
  const plain_type *type = plain_type_find(dtype);
  float milliseconds;
  if (type == NULL)
    plain_fail("no type %s", dtype);
  matrices_make(s, type, n);
  plain_spin(p, s->spin, (unsigned long long)products * HOLD_NS);
  PLAIN_CHECK(p->cu.cuEventRecord(s->first, p->stream));
  for (int i = 0; i < products; i++)
    plain_gemm(p, type, n, s->a, s->b, s->c);
  PLAIN_CHECK(p->cu.cuEventRecord(s->last, p->stream));
  PLAIN_CHECK(p->cu.cuEventSynchronize(s->last));
  PLAIN_CHECK(p->cu.cuEventElapsedTime(&milliseconds, s->first, s->last));
  double rate = 2e-9 * n * n * n * products / (double)milliseconds;
  plain_say("c", "throughput", n, dtype, "TFLOP/s", &rate, 1);
}

static void calls_make(server *s, char what) {
  plain *p = &s->plain;
  for (int i = 0; i < CALLS; i++)
    switch (what) {
    case 's':
      plain_spin(p, s->spin, 0);
      break;
    case 'n':
      plain_naive(p, s->naive, s->n, s->a, s->b, s->c);
      break;
    default:
      plain_gemm(p, s->type, s->n, s->a, s->b, s->c);
    }
}

static void launch(server *s, const char *what, int n) {
  double samples[BATCHES];
  matrices_make(s, &plain_float32, n);
  for (int i = -1; i < BATCHES; i++) {
    int64_t start = plain_now();
    calls_make(s, what[0]);
    int64_t end = plain_now();
    plain_synchronize(&s->plain);
    if (i >= 0)
      samples[i] = (double)(end - start) / CALLS;
  }
  plain_say("c", what, n, "float32", "ns", samples, BATCHES);
}

int main(int count, char **arguments) {
  static server s;
  plain *p = &s.plain;
  char line[256], word[32];
  int n, products, version;
  if (count != 2)
    plain_fail("usage: server kernels.fatbin");
  plain_open_driver(p);
  plain_open_context(p);
  plain_open_blas(p);
  plain_create_handle(p);
  plain_load_kernels(p, arguments[1]);
  s.spin = plain_kernel(p, "spin");
  s.naive = plain_kernel(p, "naive");
  PLAIN_CHECK(p->cu.cuEventCreate(&s.first, CU_EVENT_DEFAULT));
  PLAIN_CHECK(p->cu.cuEventCreate(&s.last, CU_EVENT_DEFAULT));
  PLAIN_CHECK(p->blas.cublasGetVersion(p->handle, &version));
  printf("{\"program\": \"c\", \"measure\": \"version\", "
         "\"value\": \"cuBLAS %d\"}\n",
         version);
  fflush(stdout);
  while (fgets(line, sizeof line, stdin) != NULL)
    if (sscanf(line, "throughput %31s %d %d", word, &n, &products) == 3)
      throughput(&s, word, n, products);
    else if (sscanf(line, "launch %31s %d", word, &n) == 2)
      launch(&s, word, n);
    else
      plain_fail("not understood: %s", line);
  return EXIT_SUCCESS;
}
