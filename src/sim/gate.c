/* Gates of the device of virtual time: an operation whose end is not known
 * until the gate is opened, or its time has run out. */
#include "sim/sim.h"

#include <stdlib.h>

void sim_gate_release(tl_gate_impl *gate) {
  if (--gate->references == 0)
    free(gate);
}

tl_status sim_gate_create(tl_stream_impl *stream, double timeout,
                          tl_gate_impl **out, tl_error *error) {
  *out = NULL;
  tl_device_impl *device = stream->device;
  double slots = device->settings.gate_slots;
  tl_gate_impl *gate = tl_allocate(device->options.faults, "allocate: sim gate",
                                   sizeof *gate, error);
  if (gate == NULL)
    return TL_OUT_OF_MEMORY;
  *gate = (tl_gate_impl){
      .references = 2, .device = device, .timeout = sim_nanoseconds(timeout)};
  pthread_mutex_lock(&device->lock);
  tl_status status = sim_stream_prepare(stream, error);
  if (status == TL_OK) {
    sim_stream_wait_slots(stream, slots);
    sim_spend(device, device->settings.launch_cost);
    sim_stream_push(stream, &(sim_operation){.kind = SIM_GATE, .gate = gate},
                    slots);
  }
  pthread_mutex_unlock(&device->lock);
  if (status == TL_OK)
    *out = gate;
  else
    free(gate);
  return status;
}

void sim_gate_open(tl_gate_impl *gate, bool *opened) {
  tl_device_impl *device = gate->device;
  pthread_mutex_lock(&device->lock);
  sim_settle(device); /* its time may have run out by now */
  *opened = !gate->timed_out;
  if (!gate->open) {
    gate->open = true;
    gate->opened = device->now;
    device->unsettled = true;
  }
  pthread_mutex_unlock(&device->lock);
}

void sim_gate_destroy(tl_gate_impl *gate) {
  tl_device_impl *device = gate->device;
  pthread_mutex_lock(&device->lock);
  sim_gate_release(gate);
  pthread_mutex_unlock(&device->lock);
}
