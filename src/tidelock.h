/* tidelock: GPU experiments with honest clocks, as a C library.
 *
 * Everything hangs off a device. Handles are reference counted: what creates
 * one gives you a reference, release() drops it and never waits; work that is
 * queued keeps what it needs. Every call that can fail returns a tl_status and
 * describes the failure in a tl_error of yours; outputs are emptied first.
 *
 * Shapes are row-major. Sizes and strides count elements, offsets too; byte
 * counts say so. Times are seconds, or nanoseconds where the name says so; a
 * negative time limit means none. A device may be shared by threads; one
 * stream, event, gate or buffer (with its views) is used by one thread at a
 * time, and so is the default stream, which NULL stands for.
 *
 * What stands between the two `ffi` marks can be handed to LuaJIT's ffi.cdef
 * as it is. */
#ifndef TIDELOCK_H
#define TIDELOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TL_VERSION "0.1.0"

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

/* ffi: begin */

typedef enum tl_status {
  TL_OK = 0,
  TL_INVALID_ARGUMENT, /* a wrong argument, shape or state; nothing was done */
  TL_OUT_OF_MEMORY,    /* details: asked, live, free, limit, buffers */
  TL_DEVICE_LOST,      /* the device has faulted; every call repeats why */
  TL_TIMED_OUT,        /* a time limit that is the device's own ran out */
  TL_LIMIT,            /* a limit set at open was reached */
  TL_UNSUPPORTED,      /* this device or this build cannot do it */
  TL_DRIVER,           /* a driver, a library or the system failed */
  TL_IO,               /* a file could not be read or written */
  TL_WOULD_BLOCK,      /* it would wait, and waiting is forbidden */
  TL_RACE              /* nothing orders two uses of the same elements */
} tl_status;

typedef struct tl_error {
  int32_t code;    /* a tl_status */
  int32_t buffers; /* out of memory: buffers alive; the rest is in bytes */
  int64_t asked;   /* out of memory: what this call wanted */
  int64_t live;    /* out of memory: held by open buffers */
  int64_t free;    /* out of memory: what may still be allocated */
  int64_t limit;   /* out of memory: the device's limit */
  char text[992];  /* lower case, one line, cause last */
} tl_error;

typedef enum tl_dtype {
  TL_FLOAT32 = 0,
  TL_FLOAT64,
  TL_FLOAT16,  /* IEEE 754 binary16 */
  TL_BFLOAT16, /* the upper half of a float32 */
  TL_INT32,
  TL_INT8,
  TL_DTYPE_COUNT
} tl_dtype;

typedef enum tl_distribution {
  TL_UNIFORM = 0, /* on [0, 1) */
  TL_NORMAL       /* mean 0, variance 1 */
} tl_distribution;

typedef enum tl_wait {
  TL_WAIT_BLOCK = 0, /* a waiting thread sleeps */
  TL_WAIT_SPIN       /* a waiting thread polls: lower latency, one busy core */
} tl_wait;

enum { TL_MAX_DIMENSIONS = 3 };

typedef struct tl_device tl_device; /* one processor with its own streams */
typedef struct tl_buffer tl_buffer; /* an array, or a view of one */
typedef struct tl_stream tl_stream; /* a queue: in order within itself */
typedef struct tl_event tl_event;   /* a point in a stream, with its time */
typedef struct tl_gate tl_gate;     /* holds a stream back until opened */
typedef struct tl_faults tl_faults; /* failures to inject, for tests */

/* What the device of virtual time is made of. In every field 0 stands for the
 * preset, one H200 as measured (src/sim/settings.c), and a negative number for
 * 0. Times are seconds, rates operations or bytes a second. On the host each
 * call takes its cost, and nothing else takes any time. On the device a launch
 * starts when the stream has done what was before it, when its latency has
 * passed since the call returned, and when the events that the stream waits for
 * are done; it then takes kernel_gap and the time of its work: the larger of
 * operations over rate and bytes over bandwidth, after the fixed time of a
 * product by "blas". A spin takes its own length. */
typedef struct tl_sim_options {
  size_t size;               /* sizeof(tl_sim_options) */
  double launch_cost;        /* host: one launch, or a gate */
  double launch_latency;     /* from the call's return to the earliest start */
  double kernel_gap;         /* device: before the work of each launch */
  double event_cost;         /* host: record of an event with timing */
  double event_time;         /* device: the same record; its time is the end */
  double untimed_event_cost; /* host: record of an event without timing */
  double wait_event_cost;    /* host: letting a stream wait for an event */
  double sync_cost;          /* host: any wait, also for what is done */
  double sync_latency;       /* from the end of the work to the waiter's wake */
  double query_cost;         /* host: asking whether something is done */
  double clock_cost;         /* host: reading the clock */
  double allocate_cost;      /* host: allocating memory */
  double first_call;         /* host: more for the first matmul of a kernel */
  double launch_slots;       /* of the queue, by kind of operation */
  double event_slots;
  double untimed_event_slots;
  double wait_event_slots;
  double gate_slots;
  double float32_rate; /* of matmul's kernel "blas", by what a and b are */
  double float64_rate;
  double float16_rate;
  double bfloat16_rate;
  double naive_rate; /* of the other kernels, any type */
  double tiled_rate;
  double memory_bandwidth; /* of the device's memory */
  double host_bandwidth;   /* between host and device */
  double kernel_time;      /* what each launch but a spin works, if not 0 */
  double l2_cache_size;    /* bytes, for whoever asks: there is no cache here */
  double launch_jitter;    /* log-normal: deviation of the logarithm of ... */
  double kernel_jitter;    /* launch costs, and of kernels' times */
  double spike_share;      /* of the launches, which take */
  double spike_time;       /* that much more of the host */
  double drift_per_second; /* kernels' times grow by that share of themselves */
  double drift_per_launch;
  double throttle_after;  /* from then on kernels run at */
  double throttle_factor; /* that share of their speed */
  double throttle_rest;   /* that long without a kernel, and throttle_after
                             counts anew from the next one; 0: it never does */
  double seed;            /* a whole number: of jitter and spikes */
  double
      no_values; /* not 0: nothing is computed, buffers keep what they hold */
  double blas_cost;    /* host: more for each product by kernel "blas" */
  double float32_time; /* device: more for such a product, by its type */
  double float64_time;
  double float16_time;
  double bfloat16_time;
} tl_sim_options;

typedef struct tl_device_options {
  size_t size;               /* sizeof(tl_device_options) */
  int64_t memory_limit;      /* bytes; 0: what the device has */
  int32_t queue_depth;       /* launches a stream holds; 0: 1024 on host and
                                sim, the driver's own number on CUDA */
  int32_t wait;              /* a tl_wait */
  int32_t blocking_launches; /* not 0: each launch waits for its own end */
  tl_faults *faults;         /* kept until the device is gone; may be NULL */
  const tl_sim_options *sim; /* copied; may be NULL; for "sim" only */
} tl_device_options;

typedef struct tl_device_info {
  char id[32];
  char name[128];
  char backend[16];
} tl_device_info;

/* What the device is. A number that it does not have is -1. */
typedef struct tl_properties {
  char name[128];
  int64_t compute_capability_major;
  int64_t compute_capability_minor;
  int64_t max_threads_per_block;
  int64_t max_block_dim[3];
  int64_t max_grid_dim[3];
  int64_t max_shared_memory_per_block; /* bytes */
  int64_t async_engine_count;          /* copies that overlap with kernels */
  int64_t can_map_host_memory;         /* 0 or 1 */
  int64_t multiprocessor_count;
  int64_t warp_size;
  int64_t unified_addressing; /* 0 or 1 */
  int64_t pci_bus_id;
  int64_t pci_device_id;
  int64_t l2_cache_size; /* bytes */
  int64_t clock_rate;    /* Hz, the highest */
  int64_t driver_version;
  int64_t total_memory;      /* bytes */
  int64_t queue_depth;       /* launches a stream holds before one waits */
  int64_t memory_clock_rate; /* Hz, the highest */
  int64_t memory_bus_width;  /* bits */
  int64_t power_limit;       /* W */
  int64_t sm_clock;          /* Hz, at this moment */
  int64_t memory_clock;      /* Hz, at this moment */
  int64_t throttle_reasons;  /* what holds the clocks back at this moment: bits
                                as NVML has them */
  int64_t other_processes;   /* that have the GPU open at this moment */
  int64_t mig;               /* 0 or 1: a slice of a GPU, which others share */
  int64_t mps; /* 0 or 1: kernels of several processes at a time */
} tl_properties;

typedef struct tl_memory_info {
  int64_t live;        /* bytes held by open buffers */
  int64_t peak;        /* the highest that live has been */
  int64_t cached;      /* bytes kept back by the allocator */
  int64_t pending;     /* bytes of closed buffers that queued work still uses */
  int64_t free;        /* bytes that may still be allocated */
  int64_t total;       /* bytes the device has */
  int64_t limit;       /* bytes that buffers may hold */
  int64_t buffers;     /* open buffers with memory of their own */
  int64_t objects;     /* memory of buffers, views, streams, events, gates */
  int64_t allocations; /* buffers with memory of their own, ever made */
} tl_memory_info;

/* One stream's place at the moment of a stamp (tl_device_stamp). Number 0
 * stands for all streams that are gone. */
typedef struct tl_mark {
  uint64_t stream;          /* its number on the device, never used again */
  uint64_t launched;        /* launches made on it so far */
  uint64_t completed_least; /* of these, surely done */
  uint64_t completed_most;  /* of these, perhaps done */
} tl_mark;

typedef struct tl_layout {
  int32_t dtype;                     /* a tl_dtype */
  int32_t dimensions;                /* 1 to 3 */
  int64_t shape[TL_MAX_DIMENSIONS];  /* elements; unused ones are 1 */
  int64_t stride[TL_MAX_DIMENSIONS]; /* elements; the last is 1 */
  int64_t offset;                    /* elements before the first one */
  int64_t size;                      /* elements */
} tl_layout;

typedef struct tl_matmul_options {
  size_t size;         /* sizeof(tl_matmul_options) */
  tl_stream *stream;   /* NULL: the device's default stream */
  const char *kernel;  /* NULL or "auto": "blas" where there is one */
  const char *compute; /* NULL: the type that the dtypes imply */
  int32_t transpose_a; /* not 0: a holds op(a) transposed */
  int32_t transpose_b;
  const double *alpha; /* NULL: 1 */
  const double *beta;  /* NULL: 0 */
} tl_matmul_options;

typedef struct tl_kernel_info {
  char name[16];
  char dtypes[96]; /* "float32 float64" */
  char shapes[96]; /* in words */
  char note[128];  /* how it works, or why it is not available */
  int32_t available;
} tl_kernel_info;

const char *tl_version(void);
const char *tl_status_name(int32_t status); /* "out_of_memory" */

/* ---- dtypes -------------------------------------------------------------- */

const char *tl_dtype_name(int32_t dtype); /* "float32"; NULL: no such type */
int64_t tl_dtype_size(int32_t dtype);     /* bytes */
/* The dtype of that name, or -1. */
int32_t tl_dtype_find(const char *name);
bool tl_dtype_is_integer(int32_t dtype);
/* One number to one element, rounded once to nearest even; overflow is
 * infinity, NaN stays NaN. An integer type takes integers in its range and
 * nothing else: false, and the element is left alone. */
bool tl_dtype_pack(int32_t dtype, double value, void *element);
bool tl_dtype_pack_integer(int32_t dtype, int64_t value, void *element);
/* The number that an element is: exact for every type. */
double tl_dtype_unpack(int32_t dtype, const void *element);

/* ---- devices --------------------------------------------------------------
 * Ids: "cuda:0", a GPU by CUDA's own ordinal from 0 ("cuda" is the first);
 * "host" (the same as "host:0"; up to "host:7" are separate devices on the same
 * processor); "sim", likewise, whose time is virtual and comes from a model:
 * the values are computed on the CPU, the clock is the device's own. There an
 * access to elements that another stream uses without an order between the two,
 * one of them writing, is TL_RACE, naming both. Opening the host starts no
 * thread and loads no library. A GPU's primary context is used, and kept until
 * the process ends; every call leaves the thread's current CUDA context as it
 * was. */

/* Lists the devices present; *count is their number, however small the room. */
tl_status tl_device_list(tl_device_info *list, int32_t room, int32_t *count,
                         tl_error *error);
/* Whether the id names a device that is there; reason says why not. */
bool tl_device_available(const char *id, tl_error *reason);
/* Writes the id as the device itself would give it: "host" for "host:0". */
tl_status tl_device_canonical(const char *id, char *canonical, size_t room,
                              tl_error *error);
/* Each call opens a device of its own; options may be NULL. */
tl_status tl_device_open(const char *id, const tl_device_options *options,
                         tl_device **device, tl_error *error);
void tl_device_retain(tl_device *device);
void tl_device_release(tl_device *device); /* NULL is fine, here and below */
/* Accepts no further calls; queued work still runs. Never waits. */
void tl_device_close(tl_device *device);
/* Whether this process is a child, by fork, of the one that opened the device:
 * then every call on it fails, and releasing it does nothing. */
bool tl_device_forked(const tl_device *device);
const char *tl_device_id(const tl_device *device);
const char *tl_device_backend(const tl_device *device);
/* The options it was opened with, as given: 0 where the default was left. */
void tl_device_opened_with(const tl_device *device, tl_device_options *options);
tl_status tl_device_properties(tl_device *device, tl_properties *properties,
                               tl_error *error);
/* The settings of a simulated device, the preset filled in; false: its time is
 * the machine's own. */
bool tl_device_simulation(tl_device *device, tl_sim_options *settings);
/* The settings by index from 0: name, the place of the number in
 * tl_sim_options, and whether it is a flag; NULL past the last. */
const char *tl_sim_setting(int32_t index, size_t *offset, bool *flag);
/* Whether environment variables change what matmul computes with; the text is
 * filled with them, as they are set: "NVIDIA_TF32_OVERRIDE=1". */
bool tl_device_precision_override(const tl_device *device, char *text,
                                  size_t room);
tl_status tl_device_memory(tl_device *device, tl_memory_info *info,
                           tl_error *error);
/* Frees what closed objects left and what the allocator keeps back. */
tl_status tl_device_trim(tl_device *device, tl_error *error);
/* Whether the device has faulted; cause is filled then. */
bool tl_device_is_lost(tl_device *device, tl_error *cause);
/* Whether a clean-up has failed; failure is filled with the last one then. */
bool tl_device_last_cleanup_error(tl_device *device, tl_error *failure);
int64_t tl_device_cleanup_failures(tl_device *device); /* so far */
/* Waits for all streams; *reached is false when the time limit came first. */
tl_status tl_device_synchronize(tl_device *device, double seconds,
                                bool *reached, tl_error *error);
/* Lets that much time pass on the device's clock, which is the monotonic one
 * where time is not simulated. Does not wait for any work. */
tl_status tl_device_sleep(tl_device *device, double seconds, tl_error *error);
/* Reads the device's clock, then where every stream stands. *count is the
 * number of marks, one more than there are streams, however small the room. */
tl_status tl_device_stamp(tl_device *device, int64_t *nanoseconds,
                          tl_mark *marks, int32_t room, int32_t *count,
                          tl_error *error);
/* The clock that stamps are read from: nanoseconds since some moment. */
int64_t tl_device_time(tl_device *device);
/* Nanoseconds that reads and writes of buffers have waited for launches. */
int64_t tl_device_read_wait(tl_device *device);
/* Launches made so far, on streams that are gone too. */
uint64_t tl_device_launches(tl_device *device);
/* The stream used where none is given: an ordinary one. A new reference. */
tl_status tl_device_default_stream(tl_device *device, tl_stream **stream,
                                   tl_error *error);
/* The matmul kernels by index from 0; false past the last. */
bool tl_device_matmul_kernel(tl_device *device, int32_t index,
                             tl_kernel_info *info);

/* ---- buffers --------------------------------------------------------------
 * The first thing that writes into a buffer, or into a view of it, carries a
 * ready event: the first use on another stream waits for it. Later ordering
 * between streams is the caller's.
 * Reading and writing wait for every use made so far, on every stream. */

/* Contents are undefined. A dimension may be 0. */
tl_status tl_buffer_create(tl_device *device, int32_t dtype, int32_t dimensions,
                           const int64_t *shape, tl_buffer **buffer,
                           tl_error *error);
/* The same in memory of the host that the device copies from and to by itself:
 * what a transfer that does not wait starts from or ends in. It has no part in
 * the device's limit. */
tl_status tl_pinned_create(tl_device *device, int32_t dtype, int32_t dimensions,
                           const int64_t *shape, tl_buffer **buffer,
                           tl_error *error);
bool tl_buffer_pinned(const tl_buffer *buffer);
/* A view shares and keeps the memory. offset: elements skipped, counted from
 * the buffer's own first element; strides: elements between the starts of
 * neighbours in each dimension but the last, or NULL for the smallest. */
tl_status tl_buffer_view(tl_buffer *buffer, int64_t offset, int32_t dimensions,
                         const int64_t *shape, const int64_t *strides,
                         tl_buffer **view, tl_error *error);
void tl_buffer_retain(tl_buffer *buffer);
void tl_buffer_release(tl_buffer *buffer);
void tl_buffer_layout(const tl_buffer *buffer, tl_layout *layout);
tl_device *tl_buffer_device(const tl_buffer *buffer); /* no new reference */
/* Bytes that this buffer keeps allocated itself: 0 for a view. */
int64_t tl_buffer_owned(const tl_buffer *buffer);
/* Waits for every use made so far. */
tl_status tl_buffer_wait(tl_buffer *buffer, double seconds, bool *reached,
                         tl_error *error);
/* Whole contents, packed in row order; nbytes must be size x element size. */
tl_status tl_buffer_upload(tl_buffer *buffer, const void *data, size_t nbytes,
                           tl_error *error);
tl_status tl_buffer_download(tl_buffer *buffer, void *data, size_t nbytes,
                             tl_error *error);
/* One element; index counts from 0, one number for each dimension. */
tl_status tl_buffer_get(tl_buffer *buffer, const int64_t *index, void *element,
                        tl_error *error);
tl_status tl_buffer_set(tl_buffer *buffer, const int64_t *index,
                        const void *element, tl_error *error);
/* Asynchronous: every element becomes this one, which is packed. */
tl_status tl_buffer_fill(tl_buffer *buffer, const void *element,
                         tl_stream *stream, tl_error *error);
/* Asynchronous: random elements, a function of the seed, the distribution, the
 * dtype and an element's number in row order, and of nothing else: the same
 * bits on every device, and a longer buffer starts as a shorter one does. How
 * they are made: kernels/philox.h. */
tl_status tl_buffer_random(tl_buffer *buffer, int32_t distribution,
                           uint64_t seed, tl_stream *stream, tl_error *error);
/* Whether there are such elements: integer types are TL_UNSUPPORTED. */
tl_status tl_random_check(int32_t dtype, int32_t distribution, tl_error *error);
/* Asynchronous: the bytes are taken over before it returns, so the data may go
 * or change at once. Packed in row order, like tl_buffer_upload. */
tl_status tl_buffer_upload_async(tl_buffer *buffer, const void *data,
                                 size_t nbytes, tl_stream *stream,
                                 tl_error *error);
/* Same shape and dtype; the two must not overlap. Asynchronous on one device,
 * from and to pinned memory too; from another device it first waits for every
 * use of the source. The stream belongs to the buffer's device. */
tl_status tl_buffer_copy(tl_buffer *buffer, tl_buffer *source,
                         tl_stream *stream, tl_error *error);

/* ---- .npy files -----------------------------------------------------------
 * NumPy's format, versions 1 to 3: read in both byte orders and both orders of
 * elements, written as version 1, little-endian, in row order. Of the dtypes
 * all but bfloat16 have a .npy type. A scalar, shape (), is read as shape {1}.
 *
 * A path that cannot be used and a file that is no sound .npy file are TL_IO;
 * a sound one of a dtype, a rank or a version that is not supported is
 * TL_UNSUPPORTED. Those name the file, and the reason; failures of the device
 * are reported as by any other call. No more than a few MiB of the data are in
 * host memory at once. */

/* What the file holds: dtype and shape, with the strides of a packed buffer.
 * The header is read and the file's size checked against it: fewer bytes and
 * bytes behind the data are TL_IO. The data is not read. */
tl_status tl_npy_layout(const char *path, tl_layout *layout, tl_error *error);
/* Reads the file into the buffer, or view, which must have the dtype and shape
 * that tl_npy_layout gives, else TL_INVALID_ARGUMENT. Waits for every use made
 * so far. Once reading the data has begun, a failure leaves the contents
 * undefined. */
tl_status tl_buffer_read_npy(tl_buffer *buffer, const char *path,
                             tl_error *error);
/* Makes a buffer of what the file holds; the contents are there when it
 * returns. Nothing is allocated for a file that tl_npy_layout refuses, and a
 * failure leaves nothing behind. */
tl_status tl_buffer_load_npy(tl_device *device, const char *path,
                             tl_buffer **buffer, tl_error *error);
/* Writes the whole contents of the buffer, or view. Waits for every use made so
 * far. The file is written beside the old one, under another name, brought to
 * the disk and renamed over it: it has the old contents or the new ones, and
 * after a failure the old ones, with nothing left beside it. A link is
 * followed, the old file's permissions are kept; what is no regular file, or
 * may not be written to, is TL_IO. bfloat16 is TL_UNSUPPORTED. */
tl_status tl_buffer_save_npy(tl_buffer *buffer, const char *path,
                             tl_error *error);

/* ---- streams --------------------------------------------------------------
 * What enqueues returns at once, except into a full queue, where it waits for
 * a free slot and never fails. A full stream holds up no other. */

tl_status tl_stream_create(tl_device *device, tl_stream **stream,
                           tl_error *error);
void tl_stream_retain(tl_stream *stream);
void tl_stream_release(tl_stream *stream); /* queued work still runs */
tl_device *tl_stream_device(const tl_stream *stream); /* no new reference */
uint64_t tl_stream_number(const tl_stream *stream);
tl_status tl_stream_synchronize(tl_stream *stream, double seconds,
                                bool *reached, tl_error *error);
tl_status tl_stream_done(tl_stream *stream, bool *done, tl_error *error);
/* Launches made and not complete: between *least and *most. */
tl_status tl_stream_inflight(tl_stream *stream, int64_t *least, int64_t *most,
                             tl_error *error);
uint64_t tl_stream_launches(const tl_stream *stream); /* made so far */
/* Waits until one more launch or timed record (slot), or else one more gate or
 * wait for an event, would not wait for its place in the queue. */
tl_status tl_stream_reserve(tl_stream *stream, bool slot, double seconds,
                            bool *reached, tl_error *error);
/* Where in the caller's program the next calls on the stream come from: named
 * when a launch turns out to have failed. source is copied, cut at 59 bytes. */
void tl_stream_locate(tl_stream *stream, const char *source, int32_t line,
                      const void *caller);
/* The same where the caller stands for the same source as the last time: then
 * only the line is taken in. False: it does not, locate it. caller: an address
 * of yours that stands for a source; NULL for none. */
bool tl_stream_relocate(tl_stream *stream, const void *caller, int32_t line);
/* Occupies the stream for that long. */
tl_status tl_stream_spin(tl_stream *stream, double seconds, tl_error *error);
tl_status tl_stream_record(tl_stream *stream, tl_event *event, tl_error *error);
/* Work enqueued from here on waits for the event as it was recorded last. */
tl_status tl_stream_wait_event(tl_stream *stream, tl_event *event,
                               tl_error *error);

/* ---- events and gates ---------------------------------------------------- */

tl_status tl_event_create(tl_device *device, bool timing, tl_event **event,
                          tl_error *error);
void tl_event_retain(tl_event *event);
void tl_event_release(tl_event *event);
tl_device *tl_event_device(const tl_event *event); /* no new reference */
bool tl_event_recorded(const tl_event *event);
bool tl_event_timing(const tl_event *event);
/* An event that was never recorded is TL_INVALID_ARGUMENT, here and below. */
tl_status tl_event_done(tl_event *event, bool *done, tl_error *error);
tl_status tl_event_synchronize(tl_event *event, double seconds, bool *reached,
                               tl_error *error);
/* Seconds from one to the other by the device's clock; both must be done. */
tl_status tl_event_elapsed(tl_event *earlier, tl_event *later, double *seconds,
                           tl_error *error);

/* Work enqueued on the stream from here on waits until the gate is opened, or
 * until the device has waited for `timeout` seconds. Releasing opens it. */
tl_status tl_gate_create(tl_stream *stream, double timeout, tl_gate **gate,
                         tl_error *error);
void tl_gate_retain(tl_gate *gate);
void tl_gate_release(tl_gate *gate);
/* *opened is false when the time limit had run out before. */
tl_status tl_gate_open(tl_gate *gate, bool *opened, tl_error *error);

/* ---- matmul: c = alpha * op(a) * op(b) + beta * c ------------------------
 * a is m x k, b is k x n, c is m x n after op; or all three have the same
 * number of such matrices in front. Asynchronous. The rules are the BLAS's:
 * with beta = 0 c is not read, with alpha = 0 or k = 0 neither a nor b is.
 * c may not overlap a or b. options may be NULL. */
tl_status tl_matmul(tl_buffer *a, tl_buffer *b, tl_buffer *c,
                    const tl_matmul_options *options, tl_error *error);
/* The shape and dtype that c must have; checks everything but c itself. */
tl_status tl_matmul_result(tl_buffer *a, tl_buffer *b,
                           const tl_matmul_options *options, tl_layout *result,
                           tl_error *error);
/* Opens the device's BLAS now, so that no launch has to. */
tl_status tl_matmul_prepare(tl_device *device, const char *kernel,
                            tl_error *error);

/* ---- faults: failures on demand, for tests --------------------------------
 * A site is a back-end call ("matmul") or an allocation ("allocate: stream").
 * May be shared by devices and threads. */

tl_status tl_faults_create(tl_faults **faults, tl_error *error);
void tl_faults_retain(tl_faults *faults);
void tl_faults_release(tl_faults *faults);
/* The nth use of the site from now on fails so, once. The site "execute" is a
 * launch that was accepted and then fails on the device: use TL_DEVICE_LOST. */
void tl_faults_arm(tl_faults *faults, const char *site, int64_t nth,
                   int32_t status);
/* Forgets all counts and what was armed. */
void tl_faults_reset(tl_faults *faults);
/* The sites known so far by index from 0, and how often each was used; NULL
 * past the last. The name stands until a reset. */
const char *tl_faults_site(tl_faults *faults, int32_t index, int64_t *uses);

/* ffi: end */

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#endif
