/* The settings of the model, and the preset: one NVIDIA H200 with CUDA 13.0, as
 * measured by the programs of examples/peers (README, Results), where nothing
 * else is said. */
#include <math.h>

#include "sim/sim.h"

typedef struct setting {
  const char *name;
  size_t offset;
  double preset;
  double most; /* the least is 0 */
  enum { REAL, WHOLE, FLAG } kind;
} setting;

#define SETTING(field) #field, offsetof(tl_sim_options, field)

static const setting settings_list[] = {
    {SETTING(launch_cost), 3.1e-6, 1e3, REAL},
    /* Latency and wake-up are known as a sum: a launch and a wait for it take
     * 8.0 to 8.9 us, less launch, gap and the cost of a wait; halved. */
    {SETTING(launch_latency), 2e-6, 1e3, REAL},
    /* Twenty 2 us spins behind a gate take 3.35 us each. */
    {SETTING(kernel_gap), 1.3e-6, 1e3, REAL},
    {SETTING(event_cost), 1.2e-6, 1e3, REAL},
    /* Two events back to back behind a gate are 1.28 us apart. */
    {SETTING(event_time), 1.28e-6, 1e3, REAL},
    {SETTING(untimed_event_cost), 0.161e-6, 1e3, REAL},
    {SETTING(wait_event_cost), 0.161e-6, 1e3, REAL}, /* taken as a record */
    {SETTING(sync_cost), 0.355e-6, 1e3, REAL},
    {SETTING(sync_latency), 2e-6, 1e3, REAL},
    {SETTING(query_cost), 0.208e-6, 1e3, REAL},
    /* clock_gettime without a system call, on processors of these years. */
    {SETTING(clock_cost), 25e-9, 1e3, REAL},
    {SETTING(allocate_cost), 0.71e-6, 1e3, REAL},
    {SETTING(first_call), 0, 1e6, REAL},
    /* 1021 launches go behind a gate into a queue of 1024. */
    {SETTING(launch_slots), 1, 1 << 20, WHOLE},
    {SETTING(event_slots), 1, 1 << 20, WHOLE},
    {SETTING(untimed_event_slots), 0, 1 << 20, WHOLE},
    {SETTING(wait_event_slots), 0, 1 << 20, WHOLE},
    {SETTING(gate_slots), 3, 1 << 20, WHOLE},
    /* cuBLAS at n = 4096, within 5 %: less for the narrow floats, which are
     * slower at 8192 and 10000 (examples/peers/results). */
    {SETTING(float32_rate), 51.5e12, 1e30, REAL},
    {SETTING(float64_rate), 56e12, 1e30, REAL},
    {SETTING(float16_rate), 776e12, 1e30, REAL},
    {SETTING(bfloat16_rate), 800e12, 1e30, REAL},
    {SETTING(naive_rate), 0.5e12, 1e30, REAL},  /* float64, question 1's */
    {SETTING(tiled_rate), 10.9e12, 1e30, REAL}, /* float32, kernels/matmul.cu */
    {SETTING(memory_bandwidth), 4.8e12, 1e30, REAL}, /* NVIDIA's data sheet */
    {SETTING(host_bandwidth), 50e9, 1e30,
     REAL}, /* PCIe 5.0 x16, less framing */
    {SETTING(kernel_time), 0, 1e6, REAL},
    {SETTING(l2_cache_size), 50 << 20, 1e15, WHOLE}, /* NVIDIA's data sheet */
    {SETTING(launch_jitter), 0, 10, REAL},
    {SETTING(kernel_jitter), 0, 10, REAL},
    {SETTING(spike_share), 0, 1, REAL},
    {SETTING(spike_time), 0, 1e6, REAL},
    {SETTING(drift_per_second), 0, 1e6, REAL},
    {SETTING(drift_per_launch), 0, 1e6, REAL},
    {SETTING(throttle_after), 0, 1e9, REAL},
    {SETTING(throttle_factor), 1, 1, REAL},
    {SETTING(throttle_rest), 0, 1e6, REAL},
    {SETTING(seed), 0, 0x1p53, WHOLE},
    {SETTING(no_values), 0, 1, FLAG},
    /* What policy enqueue shows of a product at n = 512, 21.1 us, less what it
     * shows of a spin, 7.1 us (examples/results). The peers' launches by cuBLAS
     * take 7 to 14 us more than a spin at n = 32, 256 and 1024. */
    {SETTING(blas_cost), 14e-6, 1e3, REAL},
    /* What a product takes beyond kernel_gap and operations over rate: float32
     * by policy batch at n = 512, 15.5 us (examples/results); the others at
     * n = 1000, 41.3, 7.7 and 8.6 us (examples/peers/results). */
    {SETTING(float32_time), 9e-6, 1e6, REAL},
    {SETTING(float64_time), 4.3e-6, 1e6, REAL},
    {SETTING(float16_time), 3.8e-6, 1e6, REAL},
    {SETTING(bfloat16_time), 4.8e-6, 1e6, REAL},
};

enum { SETTINGS = sizeof settings_list / sizeof settings_list[0] };

const char *tl_sim_setting(int32_t index, size_t *offset, bool *flag) {
  *offset = 0;
  *flag = false;
  if (index < 0 || index >= SETTINGS)
    return NULL;
  *offset = settings_list[index].offset;
  *flag = settings_list[index].kind == FLAG;
  return settings_list[index].name;
}

/* Rates divide: 0 of them is none. */
static bool is_rate(const setting *s) {
  return s->most == 1e30 ||
         s->offset == offsetof(tl_sim_options, throttle_factor);
}

static tl_status setting_read(const setting *s, double given, double *value,
                              tl_error *error) {
  *value = given == 0 ? s->preset : given < 0 ? 0 : given;
  const char *wanted = s->kind == WHOLE ? "a whole number" : "a number";
  if (is_rate(s) && *value == 0)
    return tl_fail(error, TL_INVALID_ARGUMENT,
                   "sim: %s must be above 0, got %g", s->name, *value);
  if (!(*value <= s->most) || (s->kind == WHOLE && floor(*value) != *value))
    return tl_fail(error, TL_INVALID_ARGUMENT,
                   "sim: %s must be %s of 0 to %g, got %g", s->name, wanted,
                   s->most, *value);
  return TL_OK;
}

tl_status sim_settings_read(const tl_sim_options *given,
                            tl_sim_options *settings, tl_error *error) {
  static const tl_sim_options none = {.size = sizeof none};
  const char *from = (const char *)(given != NULL ? given : &none);
  *settings = none;
  for (int32_t i = 0; i < SETTINGS; i++) {
    const setting *s = &settings_list[i];
    tl_status status =
        setting_read(s, *(const double *)(const void *)(from + s->offset),
                     (double *)(void *)((char *)settings + s->offset), error);
    if (status != TL_OK)
      return status;
  }
  return TL_OK;
}
