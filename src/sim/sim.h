/* The device of virtual time: a discrete-event model of a GPU's queues.
 *
 * One host clock for the device, and for each stream the operations that have
 * not ended. Every call takes its cost on the host clock; when an operation
 * starts and ends is computed as soon as it can be known, which is at once but
 * behind a gate that is still closed. Nothing runs by itself: time passes when
 * a call takes some, and a wait moves the clock to the end of what it waits
 * for. Values are computed when a launch is enqueued, by the host's kernels:
 * what comes first in the script comes first in every order that events allow.
 *
 * Times are nanoseconds since the device was opened. All state is guarded by
 * the device's lock, which functions below expect to be held unless they are
 * slots of the back end. */
#ifndef TIDELOCK_SIM_H
#define TIDELOCK_SIM_H

#include <pthread.h>

#include "host/kernels.h"

enum { SIM_SOURCE = 60 };

/* The kernels: the host's, and how fast each is. */
enum { SIM_KERNELS = HOST_KERNELS };

/* ---- order: who is known to be done before whom (race.c) ----------------- */

/* A stream as what others are ordered behind; lives on in what remembers it. */
typedef struct sim_timeline {
  int references;
  uint64_t known; /* so many launches of it are done, as the host knows: all
                     that is enqueued from now on comes after them */
} sim_timeline;

/* What an operation comes after on other streams; never changed once made. */
typedef struct sim_order {
  int references;
  size_t count;
  struct sim_after {
    sim_timeline *timeline; /* one reference */
    uint64_t launches;
  } after[];
} sim_order;

/* One use of elements that later ones must be ordered behind. */
typedef struct sim_access {
  tl_block block;
  bool write;
  sim_timeline *timeline; /* one reference */
  uint64_t launch;        /* its number on the stream */
  sim_order *order;       /* one reference; NULL: nothing on other streams */
  const char *kernel;     /* NULL: the operation has none */
  tl_origin origin;       /* without its source, which is: */
  char source[SIM_SOURCE];
} sim_access;

/* ---- objects ------------------------------------------------------------- */

/* The work of a launch: all that the contents of the output depend on. */
typedef struct sim_work {
  enum { SIM_SPIN, SIM_FILL, SIM_RANDOM, SIM_COPY, SIM_MATMUL } kind;
  int32_t kernel;    /* matmul */
  const char *name;  /* of the kernel; may be NULL */
  tl_block to, from; /* all but matmul */
  size_t size;       /* fill: bytes of the element */
  unsigned char element[16];
  uint64_t seed; /* random, and below */
  tl_dtype dtype;
  tl_distribution distribution;
  tl_matmul_problem matmul;
} sim_work;

struct tl_memory_impl {
  int references; /* the core, and operations that have not ended */
  tl_device_impl *device;
  size_t counted;       /* bytes that count as held: none where it is pinned */
  bool pinned;          /* the host's */
  void *block;          /* what was allocated */
  unsigned char *bytes; /* in it, 64-byte aligned */
  uint64_t version;     /* another one, on all the device, after each write */
  sim_work made;        /* the launch that wrote last, so that it need not be */
  uint64_t made_of[2];  /* computed again: versions of what it read, */
  uint64_t made_version; /* and of what it wrote; 0: none */
  sim_access *accesses;
  size_t access_count, access_room;
};

typedef struct sim_record {
  int references;         /* the event, and operations */
  bool known;             /* when it ends is known */
  int64_t time;           /* the end */
  sim_timeline *timeline; /* where in which stream it is */
  uint64_t launches;
  sim_order *order;
} sim_record;

struct tl_event_impl {
  tl_device_impl *device;
  bool timing;
  sim_record *record; /* the latest; NULL: none */
};

struct tl_gate_impl {
  int references; /* the core's gate, and the operation */
  tl_device_impl *device;
  int64_t timeout;
  int64_t opened; /* when; valid once open */
  bool open, timed_out;
};

typedef struct sim_operation {
  enum { SIM_LAUNCH, SIM_RECORD, SIM_WAIT, SIM_GATE } kind;
  bool scaled;             /* drift and throttling apply */
  int64_t ready;           /* not before: the call and the launch latency */
  int64_t gap;             /* before the work */
  int64_t length;          /* of the work */
  int64_t end;             /* once it is known; a gate's time-out before */
  uint64_t index;          /* which launch of the device it is */
  uint64_t slots;          /* taken on the stream so far, this one included */
  uint64_t launches;       /* the same */
  tl_memory_impl *keep[3]; /* may be NULL */
  sim_record *record;      /* SIM_RECORD, SIM_WAIT */
  tl_gate_impl *gate;      /* SIM_GATE */
} sim_operation;

/* Operations are numbered from 1; number i is at (i - 1) % room. */
struct tl_stream_impl {
  tl_device_impl *device;
  tl_stream_impl *next; /* on the device */
  sim_operation *queue;
  uint64_t room;
  uint64_t pushed;  /* operations so far */
  uint64_t settled; /* of these, those whose end is known */
  uint64_t ended;   /* of these, those that have ended */
  uint64_t slots_taken, slots_free;
  uint64_t launches, launches_ended;
  int64_t free; /* the end of the last settled operation */
  sim_timeline *timeline;
  sim_order *order; /* may be NULL */
  tl_origin origin; /* of the next launch */
  char source[SIM_SOURCE];
};

struct tl_device_impl {
  tl_device_options options;
  tl_sim_options settings; /* whole: no preset left to fill in */
  host_blas blas;
  pthread_mutex_t lock; /* guards what follows */
  int64_t now;          /* the host clock */
  bool unsettled;       /* something may be known since the last settling */
  int64_t settled_at;
  tl_stream_impl *streams;
  int64_t held;          /* bytes */
  uint64_t launches;     /* so far, on all streams */
  uint64_t versions;     /* of memory, given out so far */
  int64_t working_since; /* without a rest; launches that can be scaled */
  int64_t working_until;
  bool called[SIM_KERNELS];
};

/* ---- settings.c ---------------------------------------------------------- */

/* Fills in the preset; refuses what is no setting, naming it. given may be
 * NULL. */
tl_status sim_settings_read(const tl_sim_options *given,
                            tl_sim_options *settings, tl_error *error);

/* ---- model.c: what takes how long ---------------------------------------- */

int64_t sim_nanoseconds(double seconds);
/* The sum, or the largest time there is. */
int64_t sim_later(int64_t time, int64_t by);
/* Host time of the work as the device's next launch, spikes and jitter
 * included. */
int64_t sim_launch_cost(const tl_device_impl *device, const sim_work *work);
/* Time of the work on the device, jitter included, drift not. */
int64_t sim_work_time(const tl_device_impl *device, const sim_work *work);
/* What drift and throttling make of it, for a launch that starts then; notes
 * that the device works until its end. */
int64_t sim_scaled(tl_device_impl *device, int64_t length, uint64_t index,
                   int64_t start);
/* Whether work that starts then is held back. */
bool sim_throttled(const tl_device_impl *device, int64_t start);

/* ---- clock.c: time ------------------------------------------------------- */

/* A call takes that long. */
void sim_spend(tl_device_impl *device, double seconds);
/* Finds what is known and what has ended by now. */
void sim_settle(tl_device_impl *device);
/* The same for one stream, as far as it does not depend on others. */
void sim_settle_stream(tl_stream_impl *stream);
/* When a time limit ends; negative: the largest time. */
int64_t sim_deadline(const tl_device_impl *device, double seconds);
/* Moves the clock on until the stream's operation of that number has ended, or
 * to the deadline. */
bool sim_reach(tl_stream_impl *stream, uint64_t number, int64_t deadline);
/* The same for a record. */
bool sim_reach_record(tl_device_impl *device, const sim_record *record,
                      int64_t deadline);
/* What a wait costs its caller, that began then and ended so. */
void sim_charge_wait(tl_device_impl *device, int64_t began, int64_t deadline,
                     bool reached);

/* ---- stream.c ------------------------------------------------------------ */

tl_status sim_stream_create(tl_device_impl *device, tl_stream_impl **stream,
                            tl_error *error);
void sim_stream_destroy(tl_stream_impl *stream);
void sim_stream_completed(tl_stream_impl *stream, uint64_t *least,
                          uint64_t *most);
void sim_stream_poll(tl_stream_impl *stream);
tl_status sim_stream_query(tl_stream_impl *stream, bool *done, tl_error *error);
tl_status sim_stream_wait(tl_stream_impl *stream, uint64_t launches,
                          double seconds, bool *reached, tl_error *error);
tl_status sim_stream_reserve(tl_stream_impl *stream, bool slot, double seconds,
                             bool *reached, tl_error *error);
void sim_stream_describe(tl_stream_impl *stream, const tl_origin *origin);
/* Makes room in the queue for one operation that takes so many slots. The
 * clock moves on where it has to wait for them. */
tl_status sim_stream_prepare(tl_stream_impl *stream, tl_error *error);
void sim_stream_wait_slots(tl_stream_impl *stream, double slots);
/* Puts an operation in the queue: `ready` and the counts are filled in here.
 * Takes over what it refers to and retains what it keeps. */
void sim_stream_push(tl_stream_impl *stream, const sim_operation *operation,
                     double slots);
/* Lets go of what an operation refers to, once it has ended. */
void sim_operation_end(sim_operation *operation);

/* ---- event.c, gate.c ----------------------------------------------------- */

tl_status sim_event_create(tl_device_impl *device, bool timing,
                           tl_event_impl **event, tl_error *error);
void sim_event_destroy(tl_event_impl *event);
tl_status sim_event_record(tl_event_impl *event, tl_stream_impl *stream,
                           tl_error *error);
tl_status sim_event_query(tl_event_impl *event, bool *done, tl_error *error);
tl_status sim_event_wait(tl_event_impl *event, double seconds, bool *reached,
                         tl_error *error);
tl_status sim_event_elapsed(tl_event_impl *earlier, tl_event_impl *later,
                            double *seconds, tl_error *error);
tl_status sim_stream_wait_event(tl_stream_impl *stream, tl_event_impl *event,
                                tl_error *error);
void sim_record_release(sim_record *record);
tl_status sim_gate_create(tl_stream_impl *stream, double timeout,
                          tl_gate_impl **gate, tl_error *error);
void sim_gate_open(tl_gate_impl *gate, bool *opened);
void sim_gate_destroy(tl_gate_impl *gate);
void sim_gate_release(tl_gate_impl *gate);

/* ---- memory.c, transfer.c, matmul.c, launch.c ---------------------------- */

tl_status sim_allocate(tl_device_impl *device, size_t nbytes, bool pinned,
                       tl_memory_impl **memory, tl_error *error);
void sim_release(tl_device_impl *device, tl_memory_impl *memory,
                 const tl_place *uses, size_t count);
void sim_memory_release(tl_memory_impl *memory);
tl_status sim_write(tl_device_impl *device, const tl_block *to,
                    const void *from, tl_error *error);
tl_status sim_read(tl_device_impl *device, const tl_block *from, void *to,
                   tl_error *error);
tl_status sim_spin(tl_stream_impl *stream, double seconds, tl_error *error);
tl_status sim_fill(tl_stream_impl *stream, const tl_block *block,
                   const void *element, size_t element_size, tl_error *error);
tl_status sim_random(tl_stream_impl *stream, const tl_block *block,
                     tl_dtype dtype, tl_distribution distribution,
                     uint64_t seed, tl_error *error);
tl_status sim_copy(tl_stream_impl *stream, const tl_block *to,
                   const tl_block *from, tl_error *error);
extern const tl_kernel sim_kernels[SIM_KERNELS];
tl_status sim_matmul(tl_stream_impl *stream, int32_t kernel,
                     const tl_matmul_problem *problem, tl_error *error);
tl_status sim_prepare(tl_device_impl *device, int32_t kernel, tl_error *error);

/* The elements that a launch uses: at most two blocks read, one written. */
typedef struct sim_use {
  tl_block block;
  bool write;
} sim_use;

/* Checks the launch for races, waits for its slots, enqueues it and computes
 * its values. A failure leaves nothing queued. The lock is not held. */
tl_status sim_launch(tl_stream_impl *stream, const sim_work *work,
                     const sim_use *uses, size_t count, int64_t length,
                     tl_error *error);
/* Computes a matmul (matmul.c). */
void sim_matmul_compute(tl_device_impl *device, const sim_work *work);

/* ---- race.c -------------------------------------------------------------- */

sim_timeline *sim_timeline_retain(sim_timeline *timeline);
void sim_timeline_release(sim_timeline *timeline);
sim_order *
sim_order_retain(sim_order *order); /* NULL is fine, here and below */
void sim_order_release(sim_order *order);
/* Lets the stream come after the record, too. */
tl_status sim_order_behind(tl_stream_impl *stream, const sim_record *record,
                           tl_error *error);
/* The host has learned that so much is done, and what it came after. */
void sim_order_learn(sim_timeline *timeline, uint64_t launches,
                     const sim_order *order);
/* TL_RACE where nothing orders the stream's next launch behind an earlier use
 * of the same elements; makes room to note it. */
tl_status sim_race_check(tl_stream_impl *stream, const sim_use *use,
                         const char *kernel, tl_error *error);
void sim_race_note(tl_stream_impl *stream, const sim_use *use,
                   const char *kernel);
/* The host has waited for all uses of the memory. */
void sim_race_settle(tl_memory_impl *memory);
void sim_access_release(sim_access *access);

#endif
