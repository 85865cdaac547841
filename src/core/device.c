/* Devices: opening, state, the retire list, waiting for everything. */
#define _GNU_SOURCE
#include "core/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/backends.h"
#include "core/call.h"

/* ---- open and close ------------------------------------------------------ */

enum { PAGE = 4096 };

/* A page that reads 0 in a child of fork: one load tells the two apart. */
static tl_status fork_page_open(tl_device *device, tl_error *error) {
  void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED)
    return tl_fail(error, TL_OUT_OF_MEMORY,
                   "out of host memory (asked a page)");
  device->same_process = page;
#ifdef MADV_WIPEONFORK
  *device->same_process = madvise(page, PAGE, MADV_WIPEONFORK) == 0;
#endif
  device->owner = (int64_t)getpid();
  return TL_OK;
}

static tl_status options_read(const tl_device_options *given,
                              tl_device_options *options, tl_error *error) {
  *options = (tl_device_options){0};
  if (given != NULL)
    memcpy(options, given,
           given->size < sizeof *options ? given->size : sizeof *options);
  options->size = sizeof *options;
  if (given != NULL && given->size < sizeof given->size)
    return tl_fail(error, TL_INVALID_ARGUMENT,
                   "the size of the device options is %zu: set it to "
                   "sizeof(tl_device_options)",
                   given->size);
  if (options->wait != TL_WAIT_BLOCK && options->wait != TL_WAIT_SPIN)
    return tl_fail(error, TL_INVALID_ARGUMENT,
                   "wait must be TL_WAIT_BLOCK or TL_WAIT_SPIN, got %d",
                   (int)options->wait);
  if (options->memory_limit < 0)
    return tl_fail(error, TL_INVALID_ARGUMENT,
                   "memory_limit must be at least 0 bytes, got %lld",
                   (long long)options->memory_limit);
  if (options->queue_depth < 0 || options->queue_depth > 1 << 20)
    return tl_fail(error, TL_INVALID_ARGUMENT,
                   "queue_depth must be 1 to 1048576 launches, got %d",
                   (int)options->queue_depth);
  return TL_OK;
}

/* Takes a copy of the simulation's settings, since the caller's may go. */
static tl_status sim_read(tl_device *device, tl_error *error) {
  const tl_sim_options *given = device->options.sim;
  if (given == NULL)
    return TL_OK;
  if (!device->backend->simulated)
    return tl_fail(error, TL_INVALID_ARGUMENT,
                   "device '%s' is not simulated: option 'sim' is not for it",
                   device->id);
  if (given->size < sizeof given->size)
    return tl_fail(error, TL_INVALID_ARGUMENT,
                   "the size of the sim options is %zu: set it to "
                   "sizeof(tl_sim_options)",
                   given->size);
  memcpy(&device->sim, given,
         given->size < sizeof device->sim ? given->size : sizeof device->sim);
  device->sim.size = sizeof device->sim;
  device->options.sim = &device->sim;
  return TL_OK;
}

tl_status tl_device_open(const char *id, const tl_device_options *given,
                         tl_device **out, tl_error *error) {
  *out = NULL;
  const tl_backend *backend;
  int32_t ordinal;
  tl_device_options options;
  tl_status status = tl_id_resolve(id, &backend, &ordinal, error);
  if (status == TL_OK)
    status = options_read(given, &options, error);
  if (status != TL_OK)
    return status;
  tl_device *device =
      tl_allocate(options.faults, "allocate: device", sizeof *device, error);
  if (device == NULL)
    return TL_OUT_OF_MEMORY;
  atomic_init(&device->references, 1);
  for (int i = 0; i < TL_MATMUL_TYPE_COUNT; i++)
    atomic_init(&device->auto_kernel[i], -1);
  device->backend = backend;
  device->options = options;
  tl_id_write(backend, ordinal, device->id, sizeof device->id);
  status = sim_read(device, error);
  if (status == TL_OK)
    status = fork_page_open(device, error);
  if (status != TL_OK)
    goto fail;
  options.sim = device->options.sim;
  if (options.queue_depth == 0)
    options.queue_depth = backend->default_queue_depth;
  status = tl_fault(options.faults, "open", error);
  if (status == TL_OK)
    status = backend->open(ordinal, &options, &device->impl, error);
  if (status != TL_OK)
    goto fail;
  device->total_memory = backend->total_memory(device->impl);
  device->memory_limit =
      options.memory_limit > 0 ? options.memory_limit : device->total_memory;
  pthread_mutex_init(&device->lock, NULL);
  if (options.faults != NULL)
    tl_faults_retain(options.faults);
  *out = device;
  return TL_OK;
fail:
  if (device->same_process != NULL)
    munmap((void *)device->same_process, PAGE);
  free(device);
  return status;
}

bool tl_device_forked(const tl_device *device) {
  return *device->same_process == 0 && (int64_t)getpid() != device->owner;
}

void tl_device_retain(tl_device *device) {
  atomic_fetch_add_explicit(&device->references, 1, memory_order_relaxed);
}

static void retired_finish(tl_device *device, bool force);

/* The last reference is gone: nobody else knows the device. Queued work keeps
 * what it needs on the back end's side, so none of this waits. */
static void device_destroy(tl_device *device) {
  tl_stream *own = device->default_stream;
  pthread_mutex_lock(&device->lock);
  retired_finish(device, false);
  retired_finish(device, true);
  if (own != NULL)
    own->object.finish(&own->object, true);
  pthread_mutex_unlock(&device->lock);
  device->backend->close(device->impl);
  tl_faults_release(device->options.faults);
  munmap((void *)device->same_process, PAGE);
  pthread_mutex_destroy(&device->lock);
  free(device);
}

void tl_device_release(tl_device *device) {
  if (device == NULL || atomic_fetch_sub_explicit(&device->references, 1,
                                                  memory_order_acq_rel) != 1)
    return;
  if (tl_device_forked(device))
    return; /* its threads and its driver are the parent's */
  device_destroy(device);
}

void tl_device_close(tl_device *device) {
  int open = TL_OPEN;
  atomic_compare_exchange_strong(&device->state, &open, TL_CLOSED);
}

const char *tl_device_id(const tl_device *device) {
  return device->id;
}

const char *tl_device_backend(const tl_device *device) {
  return device->backend->name;
}

/* ---- state --------------------------------------------------------------- */

/* Marks the device as lost, once, and says in the error what may be to blame:
 * the last launches on the stream of that number, or on every stream if 0. */
static void device_lose(tl_device *device, uint64_t number, tl_error *error) {
  pthread_mutex_lock(&device->lock);
  if (atomic_load(&device->state) != TL_LOST) {
    char launches[480] = "";
    for (tl_stream *s = device->streams; s != NULL; s = s->next) {
      size_t used = strlen(launches);
      if (atomic_load(&s->launched) > 0 && (number == 0 || s->number == number))
        tl_stream_describe_log(s, launches + used, sizeof launches - used);
    }
    tl_fail(&device->cause, TL_DEVICE_LOST, "%s is lost: %.400s%s%s",
            device->id, error->text,
            launches[0] != '\0' ? "; last launches:" : "", launches);
    atomic_store(&device->state, TL_LOST);
  }
  *error = device->cause;
  pthread_mutex_unlock(&device->lock);
}

tl_status tl_device_settle(tl_device *device, tl_status status,
                           tl_error *error) {
  if (status == TL_DEVICE_LOST)
    device_lose(device, 0, error);
  return status;
}

/* An injected fault of a launch shows once the device has got that far. */
static void fault_surface(tl_device *device, tl_error *error) {
  pthread_mutex_lock(&device->lock);
  bool due = true; /* the stream may be gone by now, its work done */
  for (tl_stream *s = device->streams; s != NULL; s = s->next)
    if (s->number == device->fault_stream)
      due = tl_stream_reached_locked(s, device->fault_position);
  pthread_mutex_unlock(&device->lock);
  if (!due)
    return;
  tl_fail(error, TL_DEVICE_LOST,
          "an earlier asynchronous operation failed (injected)");
  device_lose(device, device->fault_stream, error);
}

tl_status tl_device_check(tl_device *device, tl_error *error) {
  if (tl_device_forked(device))
    return tl_fail(error, TL_INVALID_ARGUMENT,
                   "%s was opened in process %lld, this is process %lld: open "
                   "it after fork",
                   device->id, (long long)device->owner, (long long)getpid());
  if (device->options.faults != NULL && device->fault_position != 0)
    fault_surface(device, error);
  switch (atomic_load_explicit(&device->state, memory_order_acquire)) {
  case TL_CLOSED:
    return tl_fail(error, TL_INVALID_ARGUMENT, "device %s is closed",
                   device->id);
  case TL_LOST:
    *error = device->cause;
    return TL_DEVICE_LOST;
  default:
    return TL_OK;
  }
}

bool tl_device_is_lost(tl_device *device, tl_error *cause) {
  return tl_device_check(device, cause) == TL_DEVICE_LOST;
}

void tl_device_keep_cleanup_error(tl_device *device, const tl_error *error) {
  device->cleanup = *error;
  device->cleanup_failures++;
}

int64_t tl_device_cleanup_failures(tl_device *device) {
  if (tl_device_forked(device))
    return 0;
  pthread_mutex_lock(&device->lock);
  int64_t failures = device->cleanup_failures;
  pthread_mutex_unlock(&device->lock);
  return failures;
}

bool tl_device_last_cleanup_error(tl_device *device, tl_error *failure) {
  failure->code = TL_OK;
  if (tl_device_forked(device))
    return false;
  pthread_mutex_lock(&device->lock);
  *failure = device->cleanup;
  pthread_mutex_unlock(&device->lock);
  return failure->code != TL_OK;
}

/* ---- the retire list ----------------------------------------------------- */

/* Finishes what can be finished; the rest goes back. The lock is held. */
static void retired_finish(tl_device *device, bool force) {
  tl_object *object =
      atomic_exchange_explicit(&device->retired, NULL, memory_order_acquire);
  while (object != NULL) {
    tl_object *next = object->next;
    if (!object->finish(object, force)) {
      tl_object *head = atomic_load(&device->retired);
      do {
        object->next = head;
      } while (!atomic_compare_exchange_weak(&device->retired, &head, object));
    }
    object = next;
  }
}

void tl_device_drain(tl_device *device) {
  if (atomic_load_explicit(&device->retired, memory_order_relaxed) == NULL)
    return;
  pthread_mutex_lock(&device->lock);
  retired_finish(device, false);
  pthread_mutex_unlock(&device->lock);
}

void tl_device_opened_with(const tl_device *device,
                           tl_device_options *options) {
  *options = device->options;
}

/* ---- questions ----------------------------------------------------------- */

tl_status tl_device_properties(tl_device *device, tl_properties *properties,
                               tl_error *error) {
  tl_status status = tl_device_check(device, error);
  if (status == TL_OK)
    status = tl_call_properties(device, properties, error);
  return status;
}

bool tl_device_simulation(tl_device *device, tl_sim_options *settings) {
  *settings = (tl_sim_options){.size = sizeof *settings};
  if (device->backend->simulation == NULL)
    return false;
  device->backend->simulation(device->impl, settings);
  return true;
}

bool tl_device_precision_override(const tl_device *device, char *text,
                                  size_t room) {
  text[0] = '\0';
  if (device->backend->precision_override != NULL)
    device->backend->precision_override(text, room);
  return text[0] != '\0';
}

int64_t tl_device_free_memory(tl_device *device, int64_t held,
                              int64_t *cached) {
  int64_t within = device->memory_limit - held, given = INT64_MAX;
  *cached = 0;
  if (device->backend->memory_info != NULL)
    device->backend->memory_info(device->impl, cached, &given);
  within = within > 0 ? within : 0;
  return given < within ? given : within;
}

tl_status tl_device_memory(tl_device *device, tl_memory_info *info,
                           tl_error *error) {
  *info = (tl_memory_info){0};
  tl_status status = tl_device_check(device, error);
  if (status != TL_OK)
    return status;
  tl_device_drain(device);
  (void)tl_device_clock(device, true); /* a loop may wait for `pending` to go */
  int64_t held = device->backend->held_memory(device->impl);
  info->live = atomic_load(&device->live);
  info->peak = atomic_load(&device->peak);
  if (info->peak < info->live) /* another thread is about to note it */
    info->peak = info->live;
  info->pending = held > info->live ? held - info->live : 0;
  info->limit = device->memory_limit;
  info->total = device->total_memory;
  info->free = tl_device_free_memory(device, held, &info->cached);
  info->buffers = atomic_load(&device->buffers);
  info->objects = atomic_load(&device->objects);
  info->allocations = atomic_load(&device->allocations);
  return TL_OK;
}

tl_status tl_device_trim(tl_device *device, tl_error *error) {
  tl_status status = tl_device_check(device, error);
  if (status != TL_OK)
    return status;
  tl_device_drain(device);
  return tl_call_trim(device, error);
}

/* ---- waiting ----------------------------------------------------------------
 */

/* The first stream with a number above this one, remembered; NULL: none. */
static tl_stream *stream_above(tl_device *device, uint64_t number) {
  tl_stream *found = NULL;
  pthread_mutex_lock(&device->lock);
  for (tl_stream *s = device->streams; s != NULL; s = s->next)
    if (s->number > number && (found == NULL || s->number < found->number))
      found = s;
  if (found != NULL)
    tl_stream_remember(found);
  pthread_mutex_unlock(&device->lock);
  return found;
}

tl_status tl_device_synchronize(tl_device *device, double seconds,
                                bool *reached, tl_error *error) {
  *reached = false;
  tl_status status = tl_device_check(device, error);
  if (status != TL_OK)
    return status;
  int64_t began = tl_device_clock(device, false);
  bool all = true;
  tl_stream *stream = stream_above(device, 0);
  while (stream != NULL) {
    uint64_t number = stream->number;
    double left =
        seconds - (double)(tl_device_clock(device, false) - began) * 1e-9;
    status =
        tl_stream_wait(device, stream, TL_EVERYTHING,
                       seconds < 0 ? -1 : (left > 0 ? left : 0), &all, error);
    tl_stream_forget(stream);
    stream = status == TL_OK && all ? stream_above(device, number) : NULL;
  }
  if (status == TL_OK)
    status = tl_device_check(device, error); /* a fault may have surfaced */
  tl_device_drain(device);
  *reached = status == TL_OK && all;
  return status;
}

/* ---- default stream ------------------------------------------------------ */

tl_status tl_device_default_stream(tl_device *device, tl_stream **stream,
                                   tl_error *error) {
  *stream = NULL;
  tl_status status = tl_device_check(device, error);
  if (status == TL_OK)
    status = tl_stream_choose(device, NULL, stream, error);
  if (status == TL_OK)
    tl_stream_retain(*stream);
  return status;
}
