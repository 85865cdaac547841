/* The model's numbers: what each call and each launch takes.
 *
 * Random numbers are functions of the seed, of what they are for and of the
 * launch's number, so that turning one kind of noise on changes no other. */
#include <math.h>

#include "sim/sim.h"

int64_t sim_nanoseconds(double seconds) {
  return seconds < 9e9 ? llround(seconds * 1e9) : INT64_MAX;
}

int64_t sim_later(int64_t time, int64_t by) {
  return by < INT64_MAX - time ? time + by : INT64_MAX;
}

/* ---- noise --------------------------------------------------------------- */

enum { FOR_LAUNCH = 1, FOR_SPIKE = 3, FOR_KERNEL = 5 };

/* SplitMix64 (Steele, Lea, Flood, 2014) of one counter. */
static uint64_t mixed(uint64_t x) {
  x += UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
  return x ^ (x >> 31);
}

/* Uniform on (0, 1). */
static double uniform(const tl_device_impl *device, uint64_t purpose) {
  uint64_t bits =
      mixed(mixed(mixed((uint64_t)device->settings.seed) + purpose) +
            device->launches);
  return ((double)(bits >> 11) + 0.5) * 0x1p-53;
}

/* Box and Muller, 1958. */
static double normal(const tl_device_impl *device, uint64_t purpose) {
  double radius = sqrt(-2 * log(uniform(device, purpose)));
  return radius * cos(6.283185307179586 * uniform(device, purpose + 1));
}

/* Log-normal with median 1. */
static double jitter(const tl_device_impl *device, uint64_t purpose,
                     double deviation) {
  return deviation == 0 ? 1 : exp(deviation * normal(device, purpose));
}

int64_t sim_launch_cost(const tl_device_impl *device, const sim_work *work) {
  const tl_sim_options *s = &device->settings;
  bool blas = work->kind == SIM_MATMUL && work->kernel == HOST_BLAS;
  double cost = s->launch_cost + (blas ? s->blas_cost : 0);
  cost *= jitter(device, FOR_LAUNCH, s->launch_jitter);
  if (s->spike_share > 0 && uniform(device, FOR_SPIKE) < s->spike_share)
    cost += s->spike_time;
  return sim_nanoseconds(cost);
}

/* ---- work ---------------------------------------------------------------- */

static double block_bytes(const tl_block *block) {
  return (double)block->width * (double)block->rows * (double)block->planes;
}

/* A product takes the time, and operations over the rate. */
typedef struct speed {
  double time, rate;
} speed;

static speed matmul_speed(const tl_sim_options *s, const sim_work *work) {
  if (work->kernel == HOST_NAIVE)
    return (speed){0, s->naive_rate};
  if (work->kernel != HOST_BLAS)
    return (speed){0, s->tiled_rate};
  switch (work->matmul.type) {
  case TL_MATMUL_FLOAT64:
    return (speed){s->float64_time, s->float64_rate};
  case TL_MATMUL_FLOAT16:
  case TL_MATMUL_FLOAT16_FLOAT32:
    return (speed){s->float16_time, s->float16_rate};
  case TL_MATMUL_BFLOAT16:
  case TL_MATMUL_BFLOAT16_FLOAT32:
    return (speed){s->bfloat16_time, s->bfloat16_rate};
  default:
    return (speed){s->float32_time, s->float32_rate};
  }
}

/* Each operand moves once, c twice where it is read. */
static double matmul_time(const tl_sim_options *s, const sim_work *work) {
  const tl_matmul_problem *p = &work->matmul;
  double m = (double)p->m, n = (double)p->n, k = (double)p->k;
  double batch = (double)p->batch;
  double input = (double)tl_matmul_input_size(p->type);
  double output = (double)tl_matmul_output_size(p->type);
  double bytes = batch * ((m * k + k * n) * input +
                          m * n * output * (p->beta != 0 ? 2 : 1));
  speed by = matmul_speed(s, work);
  double computing = 2 * m * n * k * batch / by.rate;
  return by.time + fmax(computing, bytes / s->memory_bandwidth);
}

static double transfer_time(const tl_sim_options *s, const sim_work *work) {
  double bytes = block_bytes(&work->to);
  if (work->kind != SIM_COPY)
    return bytes /
           (work->to.memory->pinned ? s->host_bandwidth : s->memory_bandwidth);
  if (work->to.memory->pinned || work->from.memory->pinned)
    return bytes / s->host_bandwidth;
  return 2 * bytes / s->memory_bandwidth; /* read and written */
}

int64_t sim_work_time(const tl_device_impl *device, const sim_work *work) {
  const tl_sim_options *s = &device->settings;
  double seconds = s->kernel_time > 0         ? s->kernel_time
                   : work->kind == SIM_MATMUL ? matmul_time(s, work)
                                              : transfer_time(s, work);
  return sim_nanoseconds(seconds *
                         jitter(device, FOR_KERNEL, s->kernel_jitter));
}

/* ---- what changes the device's speed ------------------------------------- */

/* Since when it works without a rest, if it does at that time. */
static int64_t working_since(const tl_device_impl *device, int64_t time) {
  int64_t rest = sim_nanoseconds(device->settings.throttle_rest);
  return rest > 0 && time - device->working_until >= rest
             ? time
             : device->working_since;
}

bool sim_throttled(const tl_device_impl *device, int64_t start) {
  const tl_sim_options *s = &device->settings;
  return s->throttle_factor < 1 && start - working_since(device, start) >=
                                       sim_nanoseconds(s->throttle_after);
}

int64_t sim_scaled(tl_device_impl *device, int64_t length, uint64_t index,
                   int64_t start) {
  const tl_sim_options *s = &device->settings;
  double scale = 1;
  scale += s->drift_per_second * (double)start * 1e-9;
  scale += s->drift_per_launch * (double)index;
  if (sim_throttled(device, start))
    scale /= s->throttle_factor;
  if (scale != 1)
    length = sim_nanoseconds((double)length * scale * 1e-9);
  device->working_since = working_since(device, start);
  int64_t end = sim_later(start, length);
  if (end > device->working_until)
    device->working_until = end;
  return length;
}
