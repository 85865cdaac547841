/* Events of the CUDA device. */
#include "cuda/cuda.h"

#include <stdlib.h>

tl_status cuda_event_create(tl_device_impl *device, bool timing,
                            tl_event_impl **out, tl_error *error) {
  *out = NULL;
  tl_event_impl *event = tl_allocate(
      device->options.faults, "allocate: cuda event", sizeof *event, error);
  if (event == NULL)
    return TL_OUT_OF_MEMORY;
  CUcontext before = cuda_enter(device);
  tl_status status =
      CUDA_CALL(&device->driver, error, cuEventCreate, &event->event,
                timing ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING);
  cuda_leave(device, before);
  if (status != TL_OK) {
    free(event);
    return status;
  }
  event->device = device;
  event->timing = timing;
  *out = event;
  return TL_OK;
}

void cuda_event_destroy(tl_event_impl *event) {
  CUcontext before = cuda_enter(event->device);
  event->device->driver.cuEventDestroy(event->event);
  cuda_leave(event->device, before);
  free(event);
}

tl_status cuda_event_record(tl_event_impl *event, tl_stream_impl *stream,
                            tl_error *error) {
  CUcontext before;
  cuda_count kind = event->timing ? CUDA_SLOTS : CUDA_NOTHING;
  tl_status status = cuda_stream_begin(stream, kind, &before, error);
  if (status != TL_OK)
    return status;
  status = CUDA_CALL(&stream->device->driver, error, cuEventRecord,
                     event->event, stream->stream);
  return cuda_stream_end(stream, kind, before, status);
}

static tl_status event_condition(void *subject, bool *met, tl_error *error) {
  const tl_event_impl *event = subject;
  CUresult result = event->device->driver.cuEventQuery(event->event);
  *met = result == CUDA_SUCCESS;
  if (result == CUDA_ERROR_NOT_READY)
    return TL_OK;
  return cuda_status(&event->device->driver, "cuEventQuery", result, error);
}

tl_status cuda_event_query(tl_event_impl *event, bool *done, tl_error *error) {
  CUcontext before = cuda_enter(event->device);
  tl_status status = event_condition(event, done, error);
  cuda_leave(event->device, before);
  return status;
}

tl_status cuda_event_wait(tl_event_impl *event, double seconds, bool *reached,
                          tl_error *error) {
  CUcontext before = cuda_enter(event->device);
  tl_status status =
      cuda_wait(event->device, event_condition, event, seconds, reached, error);
  cuda_leave(event->device, before);
  return status;
}

/* The device's own clock, in steps of about half a microsecond or less. */
tl_status cuda_event_elapsed(tl_event_impl *earlier, tl_event_impl *later,
                             double *seconds, tl_error *error) {
  float milliseconds = 0;
  CUcontext before = cuda_enter(earlier->device);
  tl_status status =
      CUDA_CALL(&earlier->device->driver, error, cuEventElapsedTime,
                &milliseconds, earlier->event, later->event);
  cuda_leave(earlier->device, before);
  *seconds = (double)milliseconds * 1e-3;
  return status;
}

tl_status cuda_stream_wait_event(tl_stream_impl *stream, tl_event_impl *event,
                                 tl_error *error) {
  CUcontext before;
  tl_status status = cuda_stream_begin(stream, CUDA_OTHERS, &before, error);
  if (status != TL_OK)
    return status;
  status = CUDA_CALL(&stream->device->driver, error, cuStreamWaitEvent,
                     stream->stream, event->event, 0);
  return cuda_stream_end(stream, CUDA_OTHERS, before, status);
}
