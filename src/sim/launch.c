/* Launches of the device of virtual time: time from the model, values from the
 * host's kernels.
 *
 * A launch that would write what it wrote last, from the same inputs, computes
 * nothing: the bits are there. So a benchmark that repeats one product pays for
 * it once. */
#include "sim/sim.h"

#include <string.h>

/* ---- values -------------------------------------------------------------- */

static void work_compute(tl_device_impl *device, const sim_work *work) {
  unsigned char *to = work->to.memory != NULL ? work->to.memory->bytes : NULL;
  switch (work->kind) {
  case SIM_SPIN:
    break;
  case SIM_FILL:
    host_block_fill(to, &work->to, work->element, work->size);
    break;
  case SIM_RANDOM:
    host_block_random(to, &work->to, work->dtype, work->distribution,
                      work->seed);
    break;
  case SIM_COPY:
    host_block_copy(to, &work->to, work->from.memory->bytes, &work->from);
    break;
  case SIM_MATMUL:
    sim_matmul_compute(device, work);
    break;
  }
}

/* Versions of what the work reads; the output itself, where that is read, has
 * another version by the next time. */
static void inputs_of(const sim_work *work, uint64_t versions[2]) {
  const tl_matmul_problem *p = &work->matmul;
  versions[0] = versions[1] = 0;
  if (work->kind == SIM_COPY)
    versions[0] = work->from.memory->version;
  if (work->kind == SIM_MATMUL && p->k > 0) {
    versions[0] = p->a.memory->version;
    versions[1] = p->b.memory->version;
  }
}

static void values_make(tl_device_impl *device, const sim_work *work,
                        tl_memory_impl *output) {
  if (output == NULL || device->settings.no_values != 0)
    return;
  uint64_t inputs[2];
  inputs_of(work, inputs);
  bool reads_output = work->kind == SIM_MATMUL && work->matmul.beta != 0;
  if (!reads_output && output->made_version == output->version &&
      memcmp(inputs, output->made_of, sizeof inputs) == 0 &&
      memcmp(work, &output->made, sizeof *work) == 0)
    return;
  work_compute(device, work);
  output->version = output->made_version = ++device->versions;
  memcpy(output->made_of, inputs, sizeof inputs);
  memcpy(&output->made, work, sizeof *work);
}

/* ---- the launch ---------------------------------------------------------- */

static tl_status launch_check(tl_stream_impl *stream, const sim_work *work,
                              const sim_use *uses, size_t count,
                              tl_error *error) {
  tl_status status = sim_stream_prepare(stream, error);
  for (size_t i = 0; i < count && status == TL_OK; i++)
    status = sim_race_check(stream, &uses[i], work->name, error);
  return status;
}

static double first_call(tl_device_impl *device, const sim_work *work) {
  if (work->kind != SIM_MATMUL || device->called[work->kernel])
    return 0;
  device->called[work->kernel] = true;
  return device->settings.first_call;
}

static void launch_enqueue(tl_stream_impl *stream, const sim_work *work,
                           const sim_use *uses, size_t count, int64_t length) {
  tl_device_impl *device = stream->device;
  const tl_sim_options *s = &device->settings;
  bool spin = work->kind == SIM_SPIN;
  sim_stream_wait_slots(stream, s->launch_slots);
  device->now = sim_later(device->now, sim_launch_cost(device, work));
  sim_spend(device, first_call(device, work));
  sim_operation operation = {.kind = SIM_LAUNCH,
                             .scaled = !spin,
                             .gap = sim_nanoseconds(s->kernel_gap),
                             .length =
                                 spin ? length : sim_work_time(device, work),
                             .index = device->launches};
  device->launches++;
  for (size_t i = 0; i < count; i++)
    operation.keep[i] = uses[i].block.memory;
  sim_stream_push(stream, &operation, s->launch_slots);
}

/* The work is compared byte by byte, so it comes zeroed: padding included. */
tl_status sim_launch(tl_stream_impl *stream, const sim_work *work,
                     const sim_use *uses, size_t count, int64_t length,
                     tl_error *error) {
  tl_device_impl *device = stream->device;
  pthread_mutex_lock(&device->lock);
  tl_status status = launch_check(stream, work, uses, count, error);
  if (status == TL_OK) {
    launch_enqueue(stream, work, uses, count, length);
    tl_memory_impl *output = NULL;
    for (size_t i = 0; i < count; i++) {
      sim_race_note(stream, &uses[i], work->name);
      if (uses[i].write)
        output = uses[i].block.memory;
    }
    values_make(device, work, output);
  }
  pthread_mutex_unlock(&device->lock);
  return status;
}
