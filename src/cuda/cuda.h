/* The CUDA device: streams, events and memory of the driver, in the primary
 * context of its GPU. Every call leaves the caller's current context as it was.
 *
 * Nothing here waits for work but what is meant to: memory is freed, and gates
 * are used again, once the host sees that their last use has run. */
#ifndef TIDELOCK_CUDA_H
#define TIDELOCK_CUDA_H

#include <pthread.h>
#include <stdatomic.h>

#include "cuda/blas.h"
#include "cuda/driver.h"
#include "cuda/module.h"
#include "cuda/nvml.h"

/* What a stream counts, and what its markers say is complete. */
typedef enum cuda_count {
  CUDA_LAUNCHES = 0, /* launches */
  CUDA_SLOTS,        /* launches and timed records */
  CUDA_OTHERS,       /* gates, and waits for events */
  CUDA_COUNTS,
  CUDA_NOTHING = CUDA_COUNTS /* untimed records */
} cuda_count;

typedef struct cuda_counts {
  uint64_t of[CUDA_COUNTS];
} cuda_counts;

/* An untimed event in a stream, and the counts before it. */
typedef struct cuda_marker {
  CUevent event;
  cuda_counts counts;
} cuda_marker;

/* One page of flags in pinned memory, which gates wait for. */
enum { CUDA_GATES = 64 };

typedef struct cuda_gate_page {
  struct cuda_gate_page *next;
  volatile uint32_t *flags; /* 16 words a gate: opened, timed out, ended */
  CUdeviceptr address;      /* of the flags, as kernels see them */
  uint64_t taken;           /* bit for each: a gate has it, or its kernel */
  atomic_uint_least64_t dropped; /* bit for each: its gate is gone */
} cuda_gate_page;

/* What is loaded into a context, for every device that is opened in it. It
 * stays as long as the primary context, until the process ends: to load it
 * again would take a tenth of a second, and unloading waits for work. */
typedef struct cuda_code {
  struct cuda_code *next;
  CUcontext context;
  cuda_modules modules;
  cuda_blas blas;
  cuda_nvml nvml;            /* of the GPU that the context is on */
  pthread_mutex_t gate_lock; /* guards the pages */
  cuda_gate_page *gates;
  pthread_mutex_t spare_lock; /* guards what follows */
  tl_memory_impl *spare;      /* memory to be used again */
  size_t spare_bytes;
} cuda_code;

struct tl_device_impl {
  cuda_driver driver;
  cuda_code *code;
  tl_device_options options;
  int32_t ordinal;
  CUdevice device;
  CUcontext context;
  int64_t total;             /* bytes */
  size_t max_pitch;          /* bytes, of copies by rows */
  int processors;            /* multiprocessors */
  int capability;            /* 90 for 9.0 */
  CUmemoryPool pool;         /* NULL: the device has none */
  CUstream memory_stream;    /* allocates and frees, never waits */
  CUstream transfer_stream;  /* blocking reads and writes */
  atomic_int_least64_t held; /* bytes allocated and not freed */
  pthread_mutex_t lock;      /* guards what follows */
  tl_memory_impl *pending;   /* released, the last uses not seen to end */
  size_t pending_count;
  size_t pending_sweep;    /* so many pending are worth a look */
  uint64_t sweep;          /* looks through pending memory so far */
  tl_stream_impl *orphans; /* destroyed with work in flight */
  tl_device_impl *next;    /* closed with work in flight: device.c's list */
  int64_t owner;           /* the process */
};

enum { CUDA_USES = 4 }; /* most memory is used on few streams */

struct tl_memory_impl {
  CUdeviceptr address;
  void *host;    /* pinned: the same memory */
  size_t nbytes; /* asked for */
  size_t room;   /* bytes allocated */
  tl_memory_impl *next;
  size_t use_count;
  tl_place *uses;          /* of released memory: what it waits for */
  tl_place few[CUDA_USES]; /* room for them */
};

/* A stream. Its markers stand behind every launch at first, and further apart
 * the more launches nobody asks about: so the counts are exact where few are in
 * flight, and cost a long loop next to nothing. */
struct tl_stream_impl {
  tl_device_impl *device;
  CUstream stream;
  CUdeviceptr workspace; /* the BLAS's, made at its first use */
  atomic_int busy;       /* a CUDA_BUSY: who is inside the driver with it */
  atomic_uint_least64_t enqueued[CUDA_COUNTS];
  atomic_uint_least64_t asked; /* launches when somebody last asked */
  uint64_t swept;        /* the device's sweep in which it was last looked at */
  pthread_mutex_t lock;  /* guards what follows */
  cuda_counts completed; /* at least */
  cuda_marker *markers;  /* a ring */
  size_t first, count, room;
  tl_stream_impl *next; /* orphan */
};

struct tl_event_impl {
  tl_device_impl *device;
  CUevent event;
  bool timing;
};

struct tl_gate_impl {
  tl_device_impl *device;
  cuda_gate_page *page;
  uint32_t index;
};

/* device.c */
/* When the process exits, all its gates open, so that it does not wait for
 * them. To be called before there is one. */
void cuda_exit_prepare(void);
/* Makes the device's context current; returns the caller's, for cuda_leave. */
CUcontext cuda_enter(tl_device_impl *device);
void cuda_leave(tl_device_impl *device, CUcontext before);
/* A condition that a thread waits for by asking again. */
typedef tl_status cuda_condition(void *subject, bool *met, tl_error *error);
/* Asks until it is met or the time is up: at once and often in the first
 * millisecond, then at growing intervals, never more than a 64th of the time
 * that has passed. Negative seconds: no limit. The context is current. */
tl_status cuda_wait(tl_device_impl *device, cuda_condition *condition,
                    void *subject, double seconds, bool *met, tl_error *error);

/* memory.c */
tl_status cuda_memory_open(tl_device_impl *device, tl_error *error);
/* Frees everything: nothing is in flight, or the device is lost. */
void cuda_memory_close(tl_device_impl *device);
/* Frees the pending memory whose uses have ended. The lock is held. */
void cuda_memory_sweep(tl_device_impl *device);
tl_status cuda_allocate(tl_device_impl *device, size_t nbytes, bool pinned,
                        tl_memory_impl **memory, tl_error *error);
void cuda_release(tl_device_impl *device, tl_memory_impl *memory,
                  const tl_place *uses, size_t count);
int64_t cuda_held_memory(tl_device_impl *device);
void cuda_memory_info(tl_device_impl *device, int64_t *cached, int64_t *free);
tl_status cuda_trim(tl_device_impl *device, tl_error *error);
/* Bytes of the device for itself, not counted as held. */
tl_status cuda_bytes_allocate(tl_device_impl *device, size_t nbytes,
                              CUdeviceptr *address, tl_error *error);
void cuda_bytes_free(tl_device_impl *device, CUdeviceptr address);

/* transfer.c */
tl_status cuda_write(tl_device_impl *device, const tl_block *to,
                     const void *from, tl_error *error);
tl_status cuda_read(tl_device_impl *device, const tl_block *from, void *to,
                    tl_error *error);
tl_status cuda_fill(tl_stream_impl *stream, const tl_block *block,
                    const void *element, size_t element_size, tl_error *error);
tl_status cuda_random(tl_stream_impl *stream, const tl_block *block,
                      tl_dtype dtype, tl_distribution distribution,
                      uint64_t seed, tl_error *error);
tl_status cuda_copy(tl_stream_impl *stream, const tl_block *to,
                    const tl_block *from, tl_error *error);

/* stream.c */
tl_status cuda_stream_create(tl_device_impl *device, tl_stream_impl **stream,
                             tl_error *error);
void cuda_stream_destroy(tl_stream_impl *stream);
/* Ends a stream whose work is done; before, what is pending must not wait for
 * it any more. The device's lock is held and the context current. */
void cuda_stream_uses_forget(tl_stream_impl *stream);
void cuda_stream_finish(tl_stream_impl *stream);
void cuda_stream_completed(tl_stream_impl *stream, uint64_t *least,
                           uint64_t *most);
tl_status cuda_stream_query(tl_stream_impl *stream, bool *done,
                            tl_error *error);
tl_status cuda_stream_wait(tl_stream_impl *stream, uint64_t launches,
                           double seconds, bool *reached, tl_error *error);
tl_status cuda_stream_reserve(tl_stream_impl *stream, bool slot, double seconds,
                              bool *reached, tl_error *error);
/* Whether so many launches are known to be complete; asks the driver once in a
 * sweep. Where no marker tells, puts one behind all that is enqueued, unless a
 * launch is under way: so ask again. The device's lock is held. */
bool cuda_stream_reached(tl_stream_impl *stream, uint64_t launches);
/* Around every call that enqueues: waits for room where the queue's depth was
 * chosen, makes the context current; counts, marks and restores. Between the
 * two no other thread touches the driver's stream. */
tl_status cuda_stream_begin(tl_stream_impl *stream, cuda_count kind,
                            CUcontext *before, tl_error *error);
tl_status cuda_stream_end(tl_stream_impl *stream, cuda_count kind,
                          CUcontext before, tl_status status);
/* Enqueues a kernel (module.c): between these two. */
tl_status cuda_launch(tl_stream_impl *stream, cuda_count kind,
                      cuda_function function, cuda_grid grid, cuda_block block,
                      void **arguments, tl_error *error);
tl_status cuda_spin(tl_stream_impl *stream, double seconds, tl_error *error);

/* event.c, gate.c */
tl_status cuda_event_create(tl_device_impl *device, bool timing,
                            tl_event_impl **event, tl_error *error);
void cuda_event_destroy(tl_event_impl *event);
tl_status cuda_event_record(tl_event_impl *event, tl_stream_impl *stream,
                            tl_error *error);
tl_status cuda_event_query(tl_event_impl *event, bool *done, tl_error *error);
tl_status cuda_event_wait(tl_event_impl *event, double seconds, bool *reached,
                          tl_error *error);
tl_status cuda_event_elapsed(tl_event_impl *earlier, tl_event_impl *later,
                             double *seconds, tl_error *error);
tl_status cuda_stream_wait_event(tl_stream_impl *stream, tl_event_impl *event,
                                 tl_error *error);
tl_status cuda_gate_create(tl_stream_impl *stream, double timeout,
                           tl_gate_impl **gate, tl_error *error);
void cuda_gate_open(tl_gate_impl *gate, bool *opened);
void cuda_gate_destroy(tl_gate_impl *gate);
/* Opens every gate of the context. */
void cuda_gates_open(cuda_code *code);

/* matmul.c */
enum {
  CUDA_NAIVE,
  CUDA_COALESCED,
  CUDA_TILED,
  CUDA_REGISTER,
  CUDA_BLAS,
  CUDA_KERNELS
};
extern const tl_kernel cuda_kernels[CUDA_KERNELS];
tl_status cuda_matmul(tl_stream_impl *stream, int32_t kernel,
                      const tl_matmul_problem *problem, tl_error *error);
tl_status cuda_prepare(tl_device_impl *device, int32_t kernel, tl_error *error);

/* alpha or beta, in the type of the sums. */
typedef union cuda_factor {
  float single;
  double twice;
  int32_t integer;
} cuda_factor;

cuda_factor cuda_factor_make(tl_matmul_type type, double value);
/* Where the first element of an operand is. */
CUdeviceptr cuda_operand_first(const tl_operand *operand, size_t element_size);

/* blas.c */
tl_status cuda_matmul_blas(tl_stream_impl *stream,
                           const tl_matmul_problem *problem, tl_error *error);

#endif
