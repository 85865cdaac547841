/* A device as the core sees it: its state, its streams and its retire list. */
#ifndef TIDELOCK_CORE_DEVICE_H
#define TIDELOCK_CORE_DEVICE_H

#include <pthread.h>

#include "core/object.h"

enum { TL_OPEN = 0, TL_CLOSED, TL_LOST };

struct tl_device {
  atomic_int references; /* handles on the device, and objects with handles */
  const tl_backend *backend;
  tl_device_impl *impl;
  char id[32];
  tl_device_options options; /* as given */
  tl_sim_options sim;        /* what options.sim points to, where it is given */
  int64_t memory_limit;      /* bytes: options.memory_limit or all there is */
  int64_t total_memory;      /* bytes */
  atomic_int state;          /* TL_OPEN, TL_CLOSED or TL_LOST */
  int64_t owner;             /* the process that opened it */
  volatile int *same_process; /* a page that a fork empties in the child */
  _Atomic(tl_object *) retired;
  atomic_int_least64_t live;        /* bytes held by open buffers */
  atomic_int_least64_t peak;        /* the highest live has been */
  atomic_int_least64_t buffers;     /* open buffers with memory of their own */
  atomic_int_least64_t objects;     /* everything open */
  atomic_int_least64_t allocations; /* buffers ever counted in `buffers` */
  atomic_int_least64_t read_wait;   /* ns that reads and writes have waited */
  atomic_int auto_kernel[TL_MATMUL_TYPE_COUNT]; /* what "auto" is; -1: not
                                                   asked yet */

  pthread_mutex_t lock; /* guards what follows, and finish() */
  tl_error cause;       /* why it is lost; fixed once state says so */
  tl_error cleanup;     /* the last failure while cleaning up */
  int64_t cleanup_failures;
  tl_stream *streams;        /* those whose back-end stream is alive */
  uint64_t gone_launches;    /* made on streams that are gone */
  uint64_t stream_count;     /* streams made so far, for their numbers */
  tl_stream *default_stream; /* made at its first use */
  uint64_t fault_stream;     /* an injected fault of a launch: where, */
  atomic_uint_least64_t fault_position; /* after how many launches; 0: none */
};

/* TL_OK while the device can be used; else why not: closed, lost, forked. */
tl_status tl_device_check(tl_device *device, tl_error *error);
/* Passes a back end's status through; a lost device is marked as lost, and the
 * error names the launches that may be to blame. */
tl_status tl_device_settle(tl_device *device, tl_status status,
                           tl_error *error);
/* Nanoseconds of the device's clock: CLOCK_MONOTONIC where it has none of its
 * own. charged: a script looks at it (backend.h). */
int64_t tl_device_clock(tl_device *device, bool charged);
/* Finishes what has been retired, as far as its work is done. */
void tl_device_drain(tl_device *device);
/* Bytes that may still be allocated: within the limit, and as far as the device
 * can give them. */
int64_t tl_device_free_memory(tl_device *device, int64_t held, int64_t *cached);
/* Keeps a failure that no caller can be told of. The lock is held. */
void tl_device_keep_cleanup_error(tl_device *device, const tl_error *error);

#endif
