/* The host device: real asynchrony on the CPU. Every stream has a worker
 * thread, started at its first use, and a bounded queue between the two.
 *
 * Objects are counted here too, apart from the core's handles: queued work and
 * workers outlive the handles, and free what they were the last to hold. */
#ifndef TIDELOCK_HOST_H
#define TIDELOCK_HOST_H

#include "host/kernels.h"

struct tl_device_impl {
  atomic_int references; /* the core, streams and memory */
  tl_device_options options;
  atomic_int_least64_t held; /* bytes allocated and not freed */
  host_blas blas;
};

struct tl_memory_impl {
  atomic_int references; /* the core, and queued operations */
  tl_device_impl *device;
  size_t counted;       /* bytes that count as held: none where it is pinned */
  unsigned char *bytes; /* 64-byte aligned */
};

/* One record of an event: where in which stream, and when. */
typedef struct host_record {
  atomic_int references; /* the event, and queued operations */
  tl_stream_impl *stream;
  uint64_t place;             /* operations of the stream before it is done */
  atomic_int_least64_t stamp; /* nanoseconds; valid once done, with timing */
} host_record;

struct tl_event_impl {
  tl_device_impl *device;
  bool timing;
  host_record *record; /* the latest; NULL: none */
};

struct tl_gate_impl {
  atomic_int references; /* the core's gate, and the queued operation */
  double timeout;
  pthread_mutex_t lock; /* guards what follows */
  pthread_cond_t changed;
  bool open;
  bool timed_out;
};

/* A thread that waits until a count of a stream has reached a value. */
typedef struct host_waiter host_waiter;

struct host_waiter {
  atomic_uint_least64_t *count;
  uint64_t value;
  host_waiter *next;
};

typedef struct host_operation host_operation;

/* An operation in the queue: what to run, on what, and what it keeps. */
struct host_operation {
  void (*run)(const host_operation *operation);
  bool launch;             /* does work, and is counted */
  bool slot;               /* holds one of the queue's slots until it is done */
  tl_memory_impl *keep[3]; /* may be NULL */
  union {
    double seconds;
    struct {
      tl_block block;
      unsigned char element[16];
      size_t element_size;
    } fill;
    struct {
      tl_block block;
      uint64_t seed;
      tl_dtype dtype;
      tl_distribution distribution;
    } random;
    struct {
      tl_block to, from;
    } copy;
    struct {
      tl_matmul_problem problem;
      host_product_run *run;
      const host_blas *blas;
    } matmul;
    host_record *record; /* one reference */
    tl_gate_impl *gate;  /* one reference */
  } with;
};

/* The queue has one producer, the thread that uses the stream, and one
 * consumer, its worker. Counts only grow; an index is a count modulo size. */
struct tl_stream_impl {
  atomic_int references; /* the core, the worker, records of events */
  tl_device_impl *device;
  bool started;          /* the worker runs; the producer's */
  uint64_t slots_taken;  /* the producer's: operations that hold a slot */
  uint64_t others_taken; /* the producer's: operations that hold none */
  host_operation *queue; /* `size` of them, made with the worker */
  uint64_t size;         /* at most `depth` launches and as many others */
  atomic_uint_least64_t pushed;   /* operations put in */
  atomic_uint_least64_t done;     /* operations that have run */
  atomic_uint_least64_t launches; /* of these, launches */
  atomic_uint_least64_t slots;    /* of these, holders of a slot */
  atomic_uint_least64_t others;   /* of these, the rest */
  atomic_bool sleeping;           /* the worker waits for `wake` */
  atomic_int waiters;             /* threads that wait for `progress` */
  pthread_mutex_t lock;           /* guards what follows */
  host_waiter *waiting;           /* these threads, and what they wait for */
  pthread_cond_t wake;
  pthread_cond_t progress;
  bool closing; /* the worker ends when the queue is empty */
};

/* device.c */
int64_t host_now(void); /* nanoseconds, CLOCK_MONOTONIC */
void host_device_retain(tl_device_impl *device);
void host_device_release(tl_device_impl *device);
/* A condition variable that measures time limits on CLOCK_MONOTONIC. */
void host_condition_init(pthread_cond_t *condition);
/* Waits for a change until the deadline (INT64_MAX: none); false: it is past.
 */
bool host_condition_wait(pthread_cond_t *condition, pthread_mutex_t *lock,
                         int64_t deadline);
/* When a time limit ends; negative: INT64_MAX. */
int64_t host_deadline(double seconds);

/* memory.c */
tl_status host_allocate(tl_device_impl *device, size_t nbytes, bool pinned,
                        tl_memory_impl **memory, tl_error *error);
void host_release(tl_device_impl *device, tl_memory_impl *memory,
                  const tl_place *uses, size_t count);
void host_memory_retain(tl_memory_impl *memory);
void host_memory_release(tl_memory_impl *memory);
tl_status host_write(tl_device_impl *device, const tl_block *to,
                     const void *from, tl_error *error);
tl_status host_read(tl_device_impl *device, const tl_block *from, void *to,
                    tl_error *error);
tl_status host_fill(tl_stream_impl *stream, const tl_block *block,
                    const void *element, size_t element_size, tl_error *error);
tl_status host_copy(tl_stream_impl *stream, const tl_block *to,
                    const tl_block *from, tl_error *error);

/* stream.c */
tl_status host_stream_create(tl_device_impl *device, tl_stream_impl **stream,
                             tl_error *error);
void host_stream_destroy(tl_stream_impl *stream);
void host_stream_retain(tl_stream_impl *stream);
void host_stream_release(tl_stream_impl *stream);
void host_stream_completed(tl_stream_impl *stream, uint64_t *least,
                           uint64_t *most);
tl_status host_stream_query(tl_stream_impl *stream, bool *done,
                            tl_error *error);
tl_status host_stream_wait(tl_stream_impl *stream, uint64_t launches,
                           double seconds, bool *reached, tl_error *error);
/* Waits until so many operations of any kind have run; may_spin: polling, where
 * the device was opened so. Workers never do. */
bool host_stream_wait_place(tl_stream_impl *stream, uint64_t place,
                            int64_t deadline, bool may_spin);
tl_status host_stream_reserve(tl_stream_impl *stream, bool slot, double seconds,
                              bool *reached, tl_error *error);
tl_status host_spin(tl_stream_impl *stream, double seconds, tl_error *error);
/* Makes sure that the worker runs and waits for room for one operation. */
tl_status host_stream_prepare(tl_stream_impl *stream, bool slot,
                              tl_error *error);
/* Puts the operation in the queue; takes over what it refers to and retains
 * what it keeps. Cannot fail after host_stream_prepare. */
void host_stream_push(tl_stream_impl *stream, const host_operation *operation);

/* event.c, gate.c */
tl_status host_event_create(tl_device_impl *device, bool timing,
                            tl_event_impl **event, tl_error *error);
void host_event_destroy(tl_event_impl *event);
tl_status host_event_record(tl_event_impl *event, tl_stream_impl *stream,
                            tl_error *error);
tl_status host_event_query(tl_event_impl *event, bool *done, tl_error *error);
tl_status host_event_wait(tl_event_impl *event, double seconds, bool *reached,
                          tl_error *error);
tl_status host_event_elapsed(tl_event_impl *earlier, tl_event_impl *later,
                             double *seconds, tl_error *error);
tl_status host_stream_wait_event(tl_stream_impl *stream, tl_event_impl *event,
                                 tl_error *error);
tl_status host_gate_create(tl_stream_impl *stream, double timeout,
                           tl_gate_impl **gate, tl_error *error);
void host_gate_open(tl_gate_impl *gate, bool *opened);
void host_gate_destroy(tl_gate_impl *gate);

/* random.c */
tl_status host_random(tl_stream_impl *stream, const tl_block *block,
                      tl_dtype dtype, tl_distribution distribution,
                      uint64_t seed, tl_error *error);

/* matmul.c */
extern const tl_kernel host_kernels[HOST_KERNELS];
tl_status host_matmul(tl_stream_impl *stream, int32_t kernel,
                      const tl_matmul_problem *problem, tl_error *error);
tl_status host_prepare(tl_device_impl *device, int32_t kernel, tl_error *error);

#endif
