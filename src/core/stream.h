/* A stream: a numbered time-line of launches. */
#ifndef TIDELOCK_CORE_STREAM_H
#define TIDELOCK_CORE_STREAM_H

#include "core/object.h"

enum { TL_LOG_LENGTH = 4, TL_SOURCE_LENGTH = 60 };

typedef struct tl_logged {
  const char *operation;         /* "matmul" */
  const char *kernel;            /* "naive"; may be NULL */
  char source[TL_SOURCE_LENGTH]; /* where the caller stood; may be empty */
  int32_t line;
} tl_logged;

struct tl_stream {
  tl_object object;
  atomic_int references; /* handles together count as one; buffers that
                            remember a use of the stream, one each */
  tl_stream_impl *impl;  /* NULL once the back end's stream is gone */
  tl_stream *next;       /* in the device's list, while impl lives */
  int pins;              /* threads waiting on impl; under the device's lock */
  uint64_t number;       /* from 1, never used again */
  bool own;              /* the device's default stream */
  atomic_uint_least64_t launched; /* launches made so far */
  atomic_flag log_busy;           /* held while the log is read or written */
  tl_logged log[TL_LOG_LENGTH];   /* the last ones, by launch count */
  char source[TL_SOURCE_LENGTH];
  int32_t line;
  const void *caller; /* stands for the source, to its binding; may be NULL */
};

/* The stream that was given, or the device's default one; and that it belongs
 * to this device. No new reference. */
tl_status tl_stream_choose(tl_device *device, tl_stream *given,
                           tl_stream **stream, tl_error *error);
/* Whether the first `launches` launches are surely complete. Any thread; takes
 * the device's lock. */
bool tl_stream_reached(tl_device *device, tl_stream *stream, uint64_t launches);
/* The same with the lock held. */
bool tl_stream_reached_locked(tl_stream *stream, uint64_t launches);
/* Waits for that many launches, or TL_EVERYTHING, on a stream that is known by
 * a handle or remembered. */
tl_status tl_stream_wait(tl_device *device, tl_stream *stream,
                         uint64_t launches, double seconds, bool *reached,
                         tl_error *error);
/* A reference that keeps the struct, not the back end's stream. */
void tl_stream_remember(tl_stream *stream);
void tl_stream_forget(tl_stream *stream);
/* Adds a launch to the log. */
void tl_stream_log(tl_stream *stream, uint64_t position, const char *operation,
                   const char *kernel);
/* Names the last launches of a stream in the text. Any thread. */
void tl_stream_describe_log(tl_stream *stream, char *text, size_t room);

#endif
