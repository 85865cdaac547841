/* Time: the clock that a device goes by, sleeping by it, and time stamps, which
 * remember where every stream stood. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <time.h>

#include "core/device.h"
#include "core/stream.h"

int64_t tl_device_clock(tl_device *device, bool charged) {
  if (device->backend->clock != NULL)
    return device->backend->clock(device->impl, charged);
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

tl_status tl_device_sleep(tl_device *device, double seconds, tl_error *error) {
  if (!(seconds >= 0) || seconds > 1e6)
    return tl_fail(error, TL_INVALID_ARGUMENT,
                   "sleep: seconds must be 0 to 1e6, got %g", seconds);
  tl_status status = tl_device_check(device, error);
  if (status != TL_OK)
    return status;
  if (device->backend->sleep != NULL) {
    device->backend->sleep(device->impl, seconds);
    return TL_OK;
  }
  int64_t until = tl_device_clock(device, false) + (int64_t)(seconds * 1e9);
  struct timespec end = {.tv_sec = (time_t)(until / 1000000000),
                         .tv_nsec = (long)(until % 1000000000)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) == EINTR)
    continue;
  return TL_OK;
}

static void mark_write(tl_mark *marks, int32_t room, int32_t *count,
                       const tl_mark *mark) {
  if (*count < room)
    marks[*count] = *mark;
  (*count)++;
}

tl_status tl_device_stamp(tl_device *device, int64_t *nanoseconds,
                          tl_mark *marks, int32_t room, int32_t *count,
                          tl_error *error) {
  *nanoseconds = 0;
  *count = 0;
  tl_status status = tl_device_check(device, error);
  if (status != TL_OK)
    return status;
  *nanoseconds = tl_device_clock(device, true);
  pthread_mutex_lock(&device->lock);
  uint64_t gone = device->gone_launches;
  mark_write(marks, room, count, &(tl_mark){0, gone, gone, gone});
  for (tl_stream *s = device->streams; s != NULL; s = s->next) {
    tl_mark mark = {.stream = s->number, .launched = atomic_load(&s->launched)};
    device->backend->stream_completed(s->impl, &mark.completed_least,
                                      &mark.completed_most);
    if (mark.launched < mark.completed_most) /* launched in between */
      mark.launched = mark.completed_most;
    mark_write(marks, room, count, &mark);
  }
  pthread_mutex_unlock(&device->lock);
  return TL_OK;
}

int64_t tl_device_time(tl_device *device) {
  return tl_device_clock(device, true);
}

int64_t tl_device_read_wait(tl_device *device) {
  return atomic_load(&device->read_wait);
}

uint64_t tl_device_launches(tl_device *device) {
  pthread_mutex_lock(&device->lock);
  uint64_t launches = device->gone_launches;
  for (tl_stream *s = device->streams; s != NULL; s = s->next)
    launches += atomic_load(&s->launched);
  pthread_mutex_unlock(&device->lock);
  return launches;
}
