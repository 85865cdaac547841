/* What a device must supply: one const table of functions per back end.
 *
 * Only src/core calls it, through the wrappers of call.h, which hold the
 * policy once. So a back end may assert, and need not check:
 *   - arguments are in range, sizes do not overflow, nothing has zero size;
 *   - dtypes, shapes, strides and overlaps are legal, kernels are its own;
 *   - one stream, event or gate is used by one thread at a time, except for
 *     what is marked [any thread];
 *   - a stream lives until its work is done, unless the device is closing.
 * In turn: a slot that can fail returns a status, describes the failure, and
 * leaves nothing behind; a slot that releases returns nothing and never waits.
 *
 * A launch is one operation that does work: matmul, fill, random, copy, spin.
 * Each stream counts its launches from 1; a place in it is such a count. */
#ifndef TIDELOCK_BACKEND_H
#define TIDELOCK_BACKEND_H

#include "tidelock.h"

/* A back end defines these as it likes; to the core they are opaque. */
typedef struct tl_device_impl tl_device_impl;
typedef struct tl_memory_impl tl_memory_impl;
typedef struct tl_stream_impl tl_stream_impl;
typedef struct tl_event_impl tl_event_impl;
typedef struct tl_gate_impl tl_gate_impl;

/* The place behind everything enqueued so far, event records and gates too. */
#define TL_EVERYTHING UINT64_MAX

/* How far a stream has to come: so many of its launches. */
typedef struct tl_place {
  tl_stream_impl *stream;
  uint64_t launches;
} tl_place;

/* A block of memory: planes of rows of `width` bytes. */
typedef struct tl_block {
  tl_memory_impl *memory;
  size_t offset; /* bytes before the first row */
  size_t width;  /* bytes of a row */
  size_t rows;
  size_t pitch; /* bytes from row to row */
  size_t planes;
  size_t plane_pitch; /* bytes from plane to plane */
} tl_block;

/* One matrix, or `batch` of them: as stored, before op(). */
typedef struct tl_operand {
  tl_memory_impl *memory;
  int64_t offset; /* elements before the first one */
  int64_t ld;     /* elements from row to row */
  int64_t batch_stride;
  bool transpose;
} tl_operand;

/* The types that matmul combines: one for each row of the table in dtype.c,
 * which says what a, b and c are and what the sums are made in. */
typedef enum tl_matmul_type {
  TL_MATMUL_FLOAT32 = 0,
  TL_MATMUL_TF32, /* float32, inputs rounded to tf32 */
  TL_MATMUL_FLOAT64,
  TL_MATMUL_FLOAT16, /* sums in float32, c float16 */
  TL_MATMUL_FLOAT16_FLOAT32,
  TL_MATMUL_BFLOAT16, /* sums in float32, c bfloat16 */
  TL_MATMUL_BFLOAT16_FLOAT32,
  TL_MATMUL_INT32,      /* wraps */
  TL_MATMUL_INT8_INT32, /* wraps */
  TL_MATMUL_TYPE_COUNT
} tl_matmul_type;

/* c = alpha * op(a) * op(b) + beta * c, in row order. k = 0 means c = beta * c
 * without a look at a and b; beta = 0 means that c is not read. */
typedef struct tl_matmul_problem {
  tl_operand a, b, c;
  int64_t m, n, k, batch; /* all but k at least 1 */
  double alpha, beta;     /* integers where the sums are */
  tl_matmul_type type;    /* of a, b, c and the sums */
} tl_matmul_problem;

/* What a launch is and where it comes from, in the caller's terms. */
typedef struct tl_origin {
  uint64_t stream;       /* its number on the device */
  const char *operation; /* "matmul"; a constant */
  const char *source;    /* may be empty */
  int32_t line;
} tl_origin;

typedef struct tl_kernel {
  const char *name;
  const char *shapes; /* in words */
  const char *note;   /* how it works */
  uint32_t types;     /* bit 1 << tl_matmul_type for each it accepts */
} tl_kernel;

typedef struct tl_backend {
  const char *name;            /* the id before the colon */
  bool single;                 /* ordinal 0 goes by the bare name */
  bool simulated;              /* takes options.sim; the others refuse it */
  int32_t default_queue_depth; /* launches a stream holds where nothing is said;
                                  0: the device's own queue, whatever it is */

  /* ---- devices ---- */

  /* How many ordinals can be opened, and how many of them tl_device_list
   * shows. Why there are none is a failure. */
  tl_status (*enumerate)(int32_t *openable, int32_t *listed, tl_error *error);
  /* Writes the name of the processor. */
  tl_status (*describe)(int32_t ordinal, char *name, size_t room,
                        tl_error *error);
  /* Options are whole: no field is 0 that has a default, but for a queue_depth
   * that is the device's own. */
  tl_status (*open)(int32_t ordinal, const tl_device_options *options,
                    tl_device_impl **device, tl_error *error);
  /* Work that is still queued runs on and may outlive this call, which may come
   * from a finalizer: what would wait is left to whoever comes last. */
  void (*close)(tl_device_impl *device);
  tl_status (*properties)(tl_device_impl *device, tl_properties *properties,
                          tl_error *error);

  /* may be NULL: nothing is simulated. The settings in use, no field of them
   * left to a default. */
  void (*simulation)(tl_device_impl *device, tl_sim_options *settings);
  /* ---- time: all NULL where it is the machine's own ---- */
  /* Nanoseconds of the clock that the device's events and time limits go by; it
   * never runs backwards. `charged`: a script looks, which takes its time, so
   * that no loop of looks is endless [any thread]. */
  int64_t (*clock)(tl_device_impl *device, bool charged);
  /* Lets time pass, and nothing else. */
  void (*sleep)(tl_device_impl *device, double seconds);
  /* A script asks how far the stream is: that takes its time too, and what it
   * learns is done is ordered before what it does next. */
  void (*stream_poll)(tl_stream_impl *stream);

  /* may be NULL: there are none. Environment variables that change what matmul
   * computes with, as they are set: "NVIDIA_TF32_OVERRIDE=1"; empty: none. */
  void (*precision_override)(char *text, size_t room);

  /* ---- memory ---- */

  /* Bytes the device has, when it was opened without a limit. */
  int64_t (*total_memory)(tl_device_impl *device);
  /* Bytes allocated and not freed, those that queued work keeps included
   * [any thread]. */
  int64_t (*held_memory)(tl_device_impl *device);
  /* may be NULL: there is no cache, and nobody else to take memory. Bytes that
   * the allocator keeps back, and bytes that the device could still give. */
  void (*memory_info)(tl_device_impl *device, int64_t *cached, int64_t *free);
  /* pinned: memory of the host that the device copies from and to by itself;
   * held_memory does not count it. */
  tl_status (*allocate)(tl_device_impl *device, size_t nbytes, bool pinned,
                        tl_memory_impl **memory, tl_error *error);
  /* Frees once these streams have come to these places: there are the last uses
   * of the memory. Never waits, not for a slot either; any thread may call it
   * while others launch on the streams. */
  void (*release)(tl_device_impl *device, tl_memory_impl *memory,
                  const tl_place *uses, size_t count);
  /* may be NULL: there is no cache. Gives kept memory back. */
  tl_status (*trim)(tl_device_impl *device, tl_error *error);
  /* Packed bytes in and out, at once; nobody else uses the memory now. */
  tl_status (*write)(tl_device_impl *device, const tl_block *to,
                     const void *from, tl_error *error);
  tl_status (*read)(tl_device_impl *device, const tl_block *from, void *to,
                    tl_error *error);

  /* ---- streams ---- */

  tl_status (*stream_create)(tl_device_impl *device, tl_stream_impl **stream,
                             tl_error *error);
  void (*stream_destroy)(tl_stream_impl *stream);
  /* How many launches are complete, at least and at most [any thread]. Once
   * stream_query says that all is done, both are all launches. */
  void (*stream_completed)(tl_stream_impl *stream, uint64_t *least,
                           uint64_t *most);
  /* Whether all that was enqueued has run, event records and gates too. */
  tl_status (*stream_query)(tl_stream_impl *stream, bool *done,
                            tl_error *error);
  /* Waits until that many launches, or TL_EVERYTHING, are complete. A negative
   * time limit means none [any thread]. */
  tl_status (*stream_wait)(tl_stream_impl *stream, uint64_t launches,
                           double seconds, bool *reached, tl_error *error);
  /* may be NULL: nothing is known. Waits until a launch or timed record (slot),
   * or anything else, would not wait for its place in the queue. */
  tl_status (*stream_reserve)(tl_stream_impl *stream, bool slot, double seconds,
                              bool *reached, tl_error *error);

  /* ---- launches: each waits for a free slot, and returns once enqueued ----
   */

  /* may be NULL: nobody asks. What the stream's next launch is. */
  void (*stream_describe)(tl_stream_impl *stream, const tl_origin *origin);

  tl_status (*spin)(tl_stream_impl *stream, double seconds, tl_error *error);
  /* Every element of the block becomes this one. */
  tl_status (*fill)(tl_stream_impl *stream, const tl_block *block,
                    const void *element, size_t element_size, tl_error *error);
  /* Elements of a float dtype as kernels/philox.h defines them, numbered from 0
   * through the block's planes, rows and columns. */
  tl_status (*random)(tl_stream_impl *stream, const tl_block *block,
                      tl_dtype dtype, tl_distribution distribution,
                      uint64_t seed, tl_error *error);
  /* Blocks of the same shape that do not overlap. */
  tl_status (*copy)(tl_stream_impl *stream, const tl_block *to,
                    const tl_block *from, tl_error *error);
  /* The kernel is an index into `kernels`. */
  tl_status (*matmul)(tl_stream_impl *stream, int32_t kernel,
                      const tl_matmul_problem *problem, tl_error *error);
  const tl_kernel *kernels;
  int32_t kernel_count;
  /* Makes a kernel ready; a failure says why it is not to be had. */
  tl_status (*prepare)(tl_device_impl *device, int32_t kernel, tl_error *error);

  /* ---- events and gates ---- */

  tl_status (*event_create)(tl_device_impl *device, bool timing,
                            tl_event_impl **event, tl_error *error);
  void (*event_destroy)(tl_event_impl *event);
  tl_status (*event_record)(tl_event_impl *event, tl_stream_impl *stream,
                            tl_error *error);
  /* The event has been recorded, here and below. */
  tl_status (*event_query)(tl_event_impl *event, bool *done, tl_error *error);
  tl_status (*event_wait)(tl_event_impl *event, double seconds, bool *reached,
                          tl_error *error);
  /* Both were made with timing and are done. */
  tl_status (*event_elapsed)(tl_event_impl *earlier, tl_event_impl *later,
                             double *seconds, tl_error *error);
  /* Later re-records of the event do not change this wait. */
  tl_status (*stream_wait_event)(tl_stream_impl *stream, tl_event_impl *event,
                                 tl_error *error);
  tl_status (*gate_create)(tl_stream_impl *stream, double timeout,
                           tl_gate_impl **gate, tl_error *error);
  /* Idempotent; *opened is false when the time limit had run out. */
  void (*gate_open)(tl_gate_impl *gate, bool *opened);
  void (*gate_destroy)(tl_gate_impl *gate);
} tl_backend;

/* The back ends of this build, in the order in which they are preferred. */
extern const tl_backend *const tl_backends[];
extern const int32_t tl_backend_count;
extern const tl_backend tl_host_backend;
extern const tl_backend tl_sim_backend;
extern const tl_backend tl_cuda_backend;

/* ---- what the core lends a back end ---------------------------------------
 */

/* Fills the error and returns its code: `return tl_fail(error, ...)`. */
tl_status tl_fail(tl_error *error, tl_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* TL_OK, or the failure that a test has armed for this use of the site. */
tl_status tl_fault(tl_faults *faults, const char *site, tl_error *error);
/* Whether all sizes and strides fit the int in which a BLAS counts; else
 * TL_UNSUPPORTED, naming the first that does not. */
tl_status tl_matmul_check_blas(const tl_matmul_problem *problem,
                               tl_error *error);
/* Bytes of an element of a and b, and of c. */
size_t tl_matmul_input_size(tl_matmul_type type);
size_t tl_matmul_output_size(tl_matmul_type type);
/* Zeroed memory, to be freed with free(); NULL with the error filled. The
 * site is "allocate: " and what it is for. faults may be NULL. */
void *tl_allocate(tl_faults *faults, const char *site, size_t nbytes,
                  tl_error *error);

#endif
