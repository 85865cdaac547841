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

#define expect(condition)                                                      \
  tap_expect((condition), #condition, __FILE__, __LINE__)

static inline void tap_expect_ok(tl_status got, const tl_error *error,
                                 const char *what, const char *file, int line) {
  if (!tap_expect(got == TL_OK, what, file, line))
    tap_note("  %s", error->text);
}

static inline void tap_expect_fails(tl_status got, tl_status wanted,
                                    const char *words, const tl_error *error,
                                    const char *what, const char *file,
                                    int line) {
  bool met = got == wanted && error->code == (int32_t)wanted &&
             memchr(error->text, 0, sizeof error->text) != NULL &&
             strstr(error->text, words) != NULL;
  if (!tap_expect(met, what, file, line))
    tap_note("  came: %s: %.500s; wanted: %s: %s", tl_status_name((int)got),
             got != TL_OK ? error->text : "", tl_status_name((int)wanted),
             words);
}

/* The call succeeds. */
#define expect_ok(call, error)                                                 \
  tap_expect_ok((call), (error), #call, __FILE__, __LINE__)

/* The call fails with this status, says so in the error, which held garbage
 * before, and uses the words. */
#define expect_fails(call, status, words, error)                               \
  do {                                                                         \
    memset((error), 0x5a, sizeof *(error));                                    \
    tl_status tap_got = (call);                                                \
    tap_expect_fails(tap_got, (status), (words), (error), #call, __FILE__,     \
                     __LINE__);                                                \
  } while (0)

/* The device that a test is about: TIDELOCK_TEST_DEVICE, else the host. */
static inline const char *test_device(void) {
  const char *id = getenv("TIDELOCK_TEST_DEVICE");
  return id != NULL ? id : "host";
}

/* A call that the test stands on. */
static inline void must(tl_status status, const tl_error *error) {
  if (status != TL_OK)
    tap_bail(error->text);
}

/* Fills the buffer with one number. */
static inline tl_status fill_with(tl_buffer *buffer, double value,
                                  tl_stream *stream, tl_error *error) {
  tl_layout layout;
  unsigned char element[16];
  tl_buffer_layout(buffer, &layout);
  tl_dtype_pack(layout.dtype, value, element);
  return tl_buffer_fill(buffer, element, stream, error);
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
