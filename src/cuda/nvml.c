/* Asking NVML. */
#include "cuda/nvml.h"

#include "core/library.h"

typedef struct nvml_device *nvml_device;

/* nvml.h, as far as it is used. 0 is success. */
typedef struct nvml {
  int (*init)(void);
  int (*shutdown)(void);
  int (*find)(const char *pci_id, nvml_device *device);
  int (*power_limit)(nvml_device device, unsigned int *milliwatts);
  int (*clock)(nvml_device device, int kind, unsigned int *megahertz);
  int (*reasons)(nvml_device device, unsigned long long *bits);
} nvml;

enum { CLOCK_SM = 1, CLOCK_MEMORY = 2 };

static bool nvml_open(nvml *n) {
  static const char *const names[] = {"libnvidia-ml.so.1", NULL};
  void *library;
  tl_error ignored;
  const tl_symbol symbols[] = {
      {"nvmlInit_v2", &n->init},
      {"nvmlShutdown", &n->shutdown},
      {"nvmlDeviceGetHandleByPciBusId_v2", &n->find},
      {"nvmlDeviceGetEnforcedPowerLimit", &n->power_limit},
      {"nvmlDeviceGetClockInfo", &n->clock},
      {"nvmlDeviceGetCurrentClocksThrottleReasons", &n->reasons}};
  return tl_library_open("cuda: no NVML library", names, &library, &ignored) ==
             TL_OK &&
         tl_library_read(library, symbols, sizeof symbols / sizeof *symbols,
                         "cuda: the NVML library", "it is too old",
                         &ignored) == TL_OK;
}

void cuda_nvml_read(const char *pci_id, tl_properties *properties) {
  nvml n;
  nvml_device device;
  unsigned int value;
  unsigned long long bits;
  if (!nvml_open(&n) || n.init() != 0)
    return;
  if (n.find(pci_id, &device) == 0) {
    if (n.power_limit(device, &value) == 0)
      properties->power_limit = (int64_t)value / 1000;
    if (n.clock(device, CLOCK_SM, &value) == 0)
      properties->sm_clock = (int64_t)value * 1000000;
    if (n.clock(device, CLOCK_MEMORY, &value) == 0)
      properties->memory_clock = (int64_t)value * 1000000;
    if (n.reasons(device, &bits) == 0)
      properties->throttle_reasons = (int64_t)bits;
  }
  n.shutdown();
}
