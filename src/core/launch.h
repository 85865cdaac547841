/* What every launch does before and after the back end's part. */
#ifndef TIDELOCK_CORE_LAUNCH_H
#define TIDELOCK_CORE_LAUNCH_H

#include "core/memory.h"

typedef struct tl_launch {
  tl_stream *stream;
  const char *operation; /* for the log of launches */
  const char *kernel;    /* may be NULL */
  tl_memory *reads[2];   /* may be NULL */
  tl_memory *writes;     /* may be NULL */
  tl_event_impl *ready;  /* made for first contents */
} tl_launch;

/* Checks the device and prepares the buffers. Fill in all but
 * `ready` first. After a failure nothing is queued and end is not called. */
tl_status tl_launch_begin(tl_launch *launch, tl_error *error);
/* Takes the back end's status: counts and logs the launch, or undoes begin. */
tl_status tl_launch_end(tl_launch *launch, tl_status status, tl_error *error);

#endif
