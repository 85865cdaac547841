/* Gates of the host device: the worker waits for a flag. */
#include "host/host.h"

#include <stdlib.h>

static void gate_release(tl_gate_impl *gate) {
  if (atomic_fetch_sub(&gate->references, 1) != 1)
    return;
  pthread_mutex_destroy(&gate->lock);
  pthread_cond_destroy(&gate->changed);
  free(gate);
}

static void gate_run(const host_operation *operation) {
  tl_gate_impl *gate = operation->with.gate;
  int64_t deadline = host_deadline(gate->timeout);
  pthread_mutex_lock(&gate->lock);
  bool in_time = true;
  while (!gate->open && in_time)
    in_time = host_condition_wait(&gate->changed, &gate->lock, deadline);
  gate->timed_out = !gate->open;
  pthread_mutex_unlock(&gate->lock);
  gate_release(gate);
}

tl_status host_gate_create(tl_stream_impl *stream, double timeout,
                           tl_gate_impl **out, tl_error *error) {
  *out = NULL;
  tl_status status = host_stream_prepare(stream, false, error);
  if (status != TL_OK)
    return status;
  tl_gate_impl *gate = tl_allocate(stream->device->options.faults,
                                   "allocate: host gate", sizeof *gate, error);
  if (gate == NULL)
    return TL_OUT_OF_MEMORY;
  atomic_init(&gate->references, 2);
  gate->timeout = timeout;
  pthread_mutex_init(&gate->lock, NULL);
  host_condition_init(&gate->changed);
  host_operation operation = {.run = gate_run, .with.gate = gate};
  host_stream_push(stream, &operation);
  *out = gate;
  return TL_OK;
}

void host_gate_open(tl_gate_impl *gate, bool *opened) {
  pthread_mutex_lock(&gate->lock);
  *opened = !gate->timed_out;
  gate->open = true;
  pthread_cond_signal(&gate->changed);
  pthread_mutex_unlock(&gate->lock);
}

void host_gate_destroy(tl_gate_impl *gate) {
  gate_release(gate);
}
