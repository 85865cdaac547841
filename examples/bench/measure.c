/* The benchmarks' clock, statistics and output. */
#define _POSIX_C_SOURCE 200809L
#include "measure.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int64_t bench_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void bench_fail(const bench_report *report, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fprintf(stderr, "%s: ", report->program);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
  exit(EXIT_FAILURE);
}

void bench_arguments(bench_report *report, int count, char **arguments) {
  for (int i = 1; i < count; i += 2) {
    const char *name = arguments[i], *value = arguments[i + 1];
    if (value == NULL)
      bench_fail(report, "%s: usage: [--json FILE] [--rounds N]", name);
    if (strcmp(name, "--json") == 0)
      report->json = value;
    else if (strcmp(name, "--rounds") == 0)
      report->rounds = atoi(value);
    else
      bench_fail(report, "%s: usage: [--json FILE] [--rounds N]", name);
  }
  if (report->rounds < 7 || report->rounds > BENCH_MOST_SAMPLES)
    bench_fail(report, "--rounds is %d, wanted 7 to %d", report->rounds,
               BENCH_MOST_SAMPLES);
}

bench_series *bench_add(bench_report *report, const char *name) {
  if (report->series_count == BENCH_MOST_SERIES)
    bench_fail(report, "more than %d series", BENCH_MOST_SERIES);
  bench_series *series = &report->series[report->series_count++];
  series->name = name;
  series->count = 0;
  return series;
}

void bench_sample(bench_series *series, double value) {
  if (series->count < BENCH_MOST_SAMPLES)
    series->samples[series->count++] = value;
}

/* ---- statistics ---------------------------------------------------------- */

static int number_compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double sorted_median(const double *sorted, int count) {
  return (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
}

static double sort_median(double *values, int count) {
  qsort(values, (size_t)count, sizeof *values, number_compare);
  return sorted_median(values, count);
}

/* How many samples at either end lie outside the interval: as many as a fair
 * coin gives with a probability of at most 2.5 % for each side. */
static int samples_outside(int count) {
  double term = pow(0.5, count), below = term;
  int outside = 0;
  while (below <= 0.025) {
    outside++;
    term *= (double)(count - outside + 1) / outside;
    below += term;
  }
  return outside > 0 ? outside - 1 : 0;
}

bench_value bench_median(const bench_series *series) {
  double sorted[BENCH_MOST_SAMPLES];
  int count = series->count, outside = samples_outside(count);
  memcpy(sorted, series->samples, (size_t)count * sizeof *sorted);
  double median = sort_median(sorted, count);
  return (bench_value){median, sorted[outside], sorted[count - 1 - outside]};
}

/* Marsaglia's xorshift64: the same resamples in every run. */
static uint64_t random_next(uint64_t *state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

bench_value bench_ratio(const bench_series *over, const bench_series *under) {
  enum { RESAMPLES = 2000 };
  static double ratios[RESAMPLES];
  double x[BENCH_MOST_SAMPLES], y[BENCH_MOST_SAMPLES];
  int count = over->count;
  uint64_t state = 88172645463325252u;
  for (int i = 0; i < RESAMPLES; i++) {
    for (int j = 0; j < count; j++) {
      uint64_t round = random_next(&state) % (uint64_t)count;
      x[j] = over->samples[round];
      y[j] = under->samples[round];
    }
    ratios[i] = sort_median(x, count) / sort_median(y, count);
  }
  qsort(ratios, RESAMPLES, sizeof *ratios, number_compare);
  return (bench_value){bench_median(over).median / bench_median(under).median,
                       ratios[RESAMPLES / 40],
                       ratios[RESAMPLES - 1 - RESAMPLES / 40]};
}

void bench_want(bench_report *report, const char *name, bench_value value,
                bool below, double wanted) {
  if (report->target_count == BENCH_MOST_SERIES)
    bench_fail(report, "more than %d targets", BENCH_MOST_SERIES);
  bool met = below ? value.median < wanted : value.median >= wanted;
  report->targets[report->target_count++] =
      (bench_target){name, value, wanted, below, met};
}

/* ---- output -------------------------------------------------------------- */

/* Four significant digits, but whole numbers whole. */
static const char *number_text(double value, char *text, size_t room) {
  double size = fabs(value);
  int digits = size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : 3;
  snprintf(text, room, "%.*f", digits, value);
  return text;
}

static void row_print(const char *name, bench_value value) {
  char median[32], low[32], high[32];
  printf("%-46s %10s  %10s .. %-10s", name,
         number_text(value.median, median, sizeof median),
         number_text(value.low, low, sizeof low),
         number_text(value.high, high, sizeof high));
}

static void table_print(const bench_report *report) {
  printf("%-46s %10s  %s\n", report->program, report->unit, "95 % interval");
  for (int i = 0; i < report->series_count; i++) {
    row_print(report->series[i].name, bench_median(&report->series[i]));
    printf(" n=%d\n", report->series[i].count);
  }
  for (int i = 0; i < report->target_count; i++) {
    const bench_target *target = &report->targets[i];
    row_print(target->name, target->value);
    printf(" %s %g: %s\n", target->below ? "below" : "at least", target->wanted,
           target->met ? "PASS" : "MISS");
  }
}

static void json_value(FILE *file, const char *name, bench_value value) {
  fprintf(file,
          "    {\"name\": \"%s\", \"median\": %.9g, \"low\": %.9g, "
          "\"high\": %.9g",
          name, value.median, value.low, value.high);
}

static void json_print(FILE *file, const bench_report *report) {
  fprintf(file, "{\n  \"program\": \"%s\",\n  \"unit\": \"%s\",\n",
          report->program, report->unit);
  fprintf(file, "  \"confidence\": 0.95,\n  \"series\": [\n");
  for (int i = 0; i < report->series_count; i++) {
    const bench_series *series = &report->series[i];
    json_value(file, series->name, bench_median(series));
    for (int j = 0; j < series->count; j++)
      fprintf(file, "%s%.9g", j == 0 ? ", \"samples\": [" : ", ",
              series->samples[j]);
    fprintf(file, "]}%s\n", i + 1 < report->series_count ? "," : "");
  }
  fprintf(file, "  ],\n  \"targets\": [\n");
  for (int i = 0; i < report->target_count; i++) {
    const bench_target *target = &report->targets[i];
    json_value(file, target->name, target->value);
    fprintf(file, ", \"%s\": %g, \"met\": %s}%s\n",
            target->below ? "below" : "at_least", target->wanted,
            target->met ? "true" : "false",
            i + 1 < report->target_count ? "," : "");
  }
  fprintf(file, "  ]\n}\n");
}

void bench_finish(const bench_report *report) {
  table_print(report);
  if (report->json == NULL)
    return;
  FILE *file = fopen(report->json, "w");
  if (file == NULL)
    bench_fail(report, "cannot write %s", report->json);
  json_print(file, report);
  bool failed = ferror(file) != 0;
  if (fclose(file) != 0 || failed)
    bench_fail(report, "cannot write %s", report->json);
}
