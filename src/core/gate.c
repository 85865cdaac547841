/* Gates: a stream held back until its host says go. */
#include <stdlib.h>

#include "core/call.h"

struct tl_gate {
  tl_object object;
  tl_gate_impl *impl;
};

static bool gate_finish(tl_object *object, bool force) {
  (void)force;
  tl_gate *gate = (tl_gate *)object;
  tl_call_gate_destroy(object->device, gate->impl);
  free(gate);
  return true;
}

tl_status tl_gate_create(tl_stream *stream, double timeout, tl_gate **out,
                         tl_error *error) {
  *out = NULL;
  tl_device *device = stream->object.device;
  if (!(timeout >= 0) || timeout > 1e6)
    return tl_fail(error, TL_INVALID_ARGUMENT,
                   "gate: timeout must be 0 to 1e6 seconds, got %g", timeout);
  tl_status status = tl_device_check(device, error);
  if (status != TL_OK)
    return status;
  tl_gate *gate = tl_allocate(device->options.faults, "allocate: gate",
                              sizeof *gate, error);
  if (gate == NULL)
    return TL_OUT_OF_MEMORY;
  status = tl_call_gate_create(stream, timeout, &gate->impl, error);
  if (status != TL_OK) {
    free(gate);
    return status;
  }
  tl_object_begin(&gate->object, device, gate_finish);
  *out = gate;
  return TL_OK;
}

void tl_gate_retain(tl_gate *gate) {
  tl_object_retain(&gate->object);
}

/* Opens, so that dropping a gate never leaves a stream hanging: that is a flag
 * in memory, not a driver call. */
void tl_gate_release(tl_gate *gate) {
  bool opened;
  if (gate == NULL || !tl_object_drop(&gate->object))
    return;
  tl_device *device = gate->object.device;
  if (!tl_device_forked(device))
    device->backend->gate_open(gate->impl, &opened);
  tl_object_retire(&gate->object);
}

tl_status tl_gate_open(tl_gate *gate, bool *opened, tl_error *error) {
  *opened = false;
  tl_status status = tl_device_check(gate->object.device, error);
  if (status == TL_OK)
    gate->object.device->backend->gate_open(gate->impl, opened);
  return status;
}
