/* Tests as TAP: a test is a sentence and a function. What it expected and did
 * not find is written out above its line. For one thread of the program; the
 * others hand their findings over. */
#ifndef TIDELOCK_SPEC_TAP_H
#define TIDELOCK_SPEC_TAP_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tidelock.h"

static struct {
  int count;        /* tests so far */
  int failed;       /* of these, not ok */
  int unmet;        /* expectations that the running test did not meet */
  const char *skip; /* why the running test could not be made; else NULL */
} tap;

/* A line that explains, for the reader. */
__attribute__((format(printf, 1, 2))) static inline void
tap_note(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  printf("# ");
  vprintf(format, arguments);
  printf("\n");
  va_end(arguments);
}

/* Nothing further can be said: what the tests stand on is not there. */
static inline void tap_bail(const char *why) {
  printf("Bail out! %s\n", why);
  exit(1);
}

static inline bool tap_expect(bool met, const char *what, const char *file,
                              int line) {
  const char *slash = strrchr(file, '/');
  if (!met) {
    tap_note("%s:%d: not so: %s", slash != NULL ? slash + 1 : file, line, what);
    tap.unmet++;
  }
  return met;
}

#define expect(condition) tap_expect((condition), #condition, __FILE__, __LINE__)

/* The call succeeds. */
#define expect_ok(call, error)                                                 \
  do {                                                                         \
    if (!tap_expect((call) == TL_OK, #call " == TL_OK", __FILE__, __LINE__))   \
      tap_note("  %s", (error)->text);                                         \
  } while (0)

/* The call fails with this status, says so in the error, and uses the words. */
#define expect_fails(call, status, words, error)                               \
  do {                                                                         \
    memset((error), 0x5a, sizeof *(error));                                    \
    tl_status tap_got = (call);                                                \
    bool tap_met = tap_got == (status) && (error)->code == (status) &&         \
                   memchr((error)->text, 0, sizeof(error)->text) != NULL &&    \
                   strstr((error)->text, (words)) != NULL;                     \
    if (!tap_expect(tap_met, #call " fails: " words, __FILE__, __LINE__))      \
      tap_note("  %s: %.200s", tl_status_name(tap_got),                        \
               tap_got != TL_OK ? (error)->text : "");                         \
  } while (0)

/* A call that the test stands on. */
static inline void must(tl_status status, const tl_error *error) {
  if (status != TL_OK)
    tap_bail(error->text);
}

/* The running test cannot be made here. */
static inline void tap_skip(const char *why) {
  tap.skip = why;
}

static inline void test(const char *sentence, void (*body)(void)) {
  tap.unmet = 0;
  tap.skip = NULL;
  body();
  tap.count++;
  tap.failed += tap.unmet > 0;
  printf("%sok %d - %s%s%s\n", tap.unmet > 0 ? "not " : "", tap.count, sentence,
         tap.skip != NULL ? " # SKIP " : "", tap.skip != NULL ? tap.skip : "");
  fflush(stdout);
}

/* What main returns. */
static inline int tap_end(void) {
  printf("1..%d\n", tap.count);
  fflush(stdout);
  return tap.failed == 0 ? 0 : 1;
}

#endif
