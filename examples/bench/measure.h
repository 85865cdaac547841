/* What the benchmarks share: the clock, medians with their intervals, the
 * table on stdout and the raw numbers in a JSON file. */
#ifndef TIDELOCK_BENCH_MEASURE_H
#define TIDELOCK_BENCH_MEASURE_H

#include <stdbool.h>
#include <stdint.h>

enum { BENCH_MOST_SAMPLES = 1000, BENCH_MOST_SERIES = 32 };

/* A median or a ratio of two, and where it lies with 95 % confidence. */
typedef struct bench_value {
  double median, low, high;
} bench_value;

/* One figure: a sample from every round. */
typedef struct bench_series {
  const char *name;
  double samples[BENCH_MOST_SAMPLES];
  int count;
} bench_series;

typedef struct bench_target {
  const char *name;
  bench_value value;
  double wanted;
  bool below; /* wanted is a bound from above, not from below */
  bool met;   /* by the median */
} bench_target;

/* Everything that one program has measured. Zero it, but for what is named. */
typedef struct bench_report {
  const char *program; /* its name, for messages and the file */
  const char *unit;    /* of all series */
  const char *json;    /* the file to write; NULL: none */
  int rounds;          /* set by the caller, then by --rounds */
  bench_series series[BENCH_MOST_SERIES];
  int series_count;
  bench_target targets[BENCH_MOST_SERIES];
  int target_count;
} bench_report;

int64_t bench_now(void); /* nanoseconds of a monotonic clock */
/* Prints "program: message" to stderr and exits with status 1. */
_Noreturn void bench_fail(const bench_report *report, const char *format, ...);
/* Reads --json FILE and --rounds N; anything else is an error. */
void bench_arguments(bench_report *report, int count, char **arguments);
/* A new series. The name is kept, not copied. */
bench_series *bench_add(bench_report *report, const char *name);
void bench_sample(bench_series *series, double value);

/* The median and its order-statistic interval: no assumption but that the
 * samples are independent. */
bench_value bench_median(const bench_series *series);
/* The ratio of two medians; its interval by resampling whole rounds, so that
 * what disturbed both alike cancels. Both have equally many samples. */
bench_value bench_ratio(const bench_series *over, const bench_series *under);
/* Notes a target; it is met when the median is. */
void bench_want(bench_report *report, const char *name, bench_value value,
                bool below, double wanted);
/* Prints the table, writes the file. */
void bench_finish(const bench_report *report);

#endif
