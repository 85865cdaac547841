/* Launches: everything that can fail comes before the back end is asked, so
 * that a failure leaves nothing queued. */
#include "core/launch.h"

#include "core/call.h"

enum { LAUNCH_MEMORIES = 3 };

static tl_memory *launch_memory(const tl_launch *launch, int index) {
  return index < 2 ? launch->reads[index] : launch->writes;
}

tl_status tl_launch_begin(tl_launch *launch, tl_error *error) {
  tl_stream *stream = launch->stream;
  tl_device *device = stream->object.device;
  launch->ready = NULL;
  tl_status status = tl_device_check(device, error);
  if (status != TL_OK)
    return status;
  tl_device_drain(device);
  for (int i = 0; i < LAUNCH_MEMORIES && status == TL_OK; i++)
    if (launch_memory(launch, i) != NULL)
      status = tl_memory_expect_use(launch_memory(launch, i), stream, error);
  for (int i = 0; i < LAUNCH_MEMORIES && status == TL_OK; i++)
    if (launch_memory(launch, i) != NULL)
      status = tl_memory_await_ready(launch_memory(launch, i), stream, error);
  if (status == TL_OK && launch->writes != NULL && !launch->writes->written)
    status = tl_call_event_create(device, false, &launch->ready, error);
  if (status == TL_OK && device->backend->stream_describe != NULL)
    device->backend->stream_describe(
        stream->impl, &(tl_origin){.stream = stream->number,
                                   .operation = launch->operation,
                                   .source = stream->source,
                                   .line = stream->line});
  return status;
}

/* The buffer has its first contents: later users on other streams wait for the
 * event. If it can't be recorded, the wait is now. */
static tl_status launch_mark_ready(tl_launch *launch, tl_error *error) {
  tl_stream *stream = launch->stream;
  tl_device *device = stream->object.device;
  tl_memory *memory = launch->writes;
  tl_error unrecorded;
  memory->written = true;
  if (tl_call_event_record(device, launch->ready, stream, &unrecorded) ==
      TL_OK) {
    tl_memory_set_ready(memory, launch->ready, stream->number);
    return TL_OK;
  }
  tl_event_drop(device, launch->ready);
  bool reached;
  return tl_call_stream_wait(stream, TL_EVERYTHING, -1, &reached, error);
}

/* Arms the failure that a test wants of a launch that was accepted. */
static void launch_expect_fault(tl_launch *launch, uint64_t position) {
  tl_stream *stream = launch->stream;
  tl_device *device = stream->object.device;
  tl_error ignored;
  if (tl_fault(device->options.faults, "execute", &ignored) == TL_OK)
    return;
  pthread_mutex_lock(&device->lock);
  device->fault_stream = stream->number;
  atomic_store(&device->fault_position, position);
  pthread_mutex_unlock(&device->lock);
}

tl_status tl_launch_end(tl_launch *launch, tl_status status, tl_error *error) {
  tl_stream *stream = launch->stream;
  tl_device *device = stream->object.device;
  if (status != TL_OK) {
    if (launch->ready != NULL)
      tl_event_drop(device, launch->ready);
    return status;
  }
  uint64_t position = atomic_load(&stream->launched) + 1;
  tl_stream_log(stream, position, launch->operation, launch->kernel);
  for (int i = 0; i < LAUNCH_MEMORIES; i++)
    if (launch_memory(launch, i) != NULL)
      tl_memory_note_use(launch_memory(launch, i), stream, position);
  if (device->options.faults != NULL)
    launch_expect_fault(launch, position);
  if (launch->ready != NULL)
    status = launch_mark_ready(launch, error);
  if (status == TL_OK && device->options.blocking_launches != 0) {
    bool reached;
    status = tl_stream_synchronize(stream, -1, &reached, error);
  }
  return status;
}
