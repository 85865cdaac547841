/* Device memory under one buffer and its views, and who has used it. */
#ifndef TIDELOCK_CORE_MEMORY_H
#define TIDELOCK_CORE_MEMORY_H

#include "core/object.h"

typedef struct tl_use {
  tl_stream *stream; /* remembered */
  uint64_t position; /* the last launch on it that used the memory */
  bool awaited;      /* the stream waits for the first contents, or made them */
} tl_use;

typedef struct tl_memory {
  tl_object object;
  atomic_int holders;   /* the buffer and its views; together one handle */
  tl_memory_impl *impl; /* NULL when there are no bytes */
  size_t nbytes;
  bool pinned;           /* the host's: no part of the limit */
  bool written;          /* something has been put in */
  tl_event_impl *ready;  /* behind the first contents, while not yet done */
  uint64_t ready_stream; /* the number of the stream that writes them */
  tl_use *uses;          /* unfinished uses, at most one for each stream */
  size_t use_count;
  size_t use_room;
  tl_place *places; /* room for the back end's side of the uses */
} tl_memory;

/* Counts the bytes as live; recovers memory once before it fails. */
tl_status tl_memory_create(tl_device *device, size_t nbytes, bool pinned,
                           tl_memory **memory, tl_error *error);
void tl_memory_retain(tl_memory *memory);
/* The last one retires the memory. */
void tl_memory_release(tl_memory *memory);
/* Makes room for a use by this stream, so that noting it cannot fail. */
tl_status tl_memory_expect_use(tl_memory *memory, tl_stream *stream,
                               tl_error *error);
void tl_memory_note_use(tl_memory *memory, tl_stream *stream,
                        uint64_t position);
/* The first contents are behind this event, on that stream. */
void tl_memory_set_ready(tl_memory *memory, tl_event_impl *ready,
                         uint64_t stream);
/* Lets the stream wait, at its first use, for the first contents, where another
 * one writes them.
 */
tl_status tl_memory_await_ready(tl_memory *memory, tl_stream *stream,
                                tl_error *error);
/* Waits for every use made so far. */
tl_status tl_memory_wait(tl_memory *memory, double seconds, bool *reached,
                         tl_error *error);

#endif
