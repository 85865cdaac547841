/* NVML, the driver's management library: clocks, power, throttling, and who
 * else is on the GPU, where it is there. */
#ifndef TIDELOCK_CUDA_NVML_H
#define TIDELOCK_CUDA_NVML_H

#include <pthread.h>

#include "core/backend.h"

/* nvml.h, as far as it is used. 0 is success. */
typedef struct nvml_device *nvml_device;
typedef int nvml_processes(nvml_device device, unsigned int *count,
                           void *infos);

/* One GPU, as NVML knows it. Opened at the first question, and not closed: to
 * open it takes longer than all questions together. */
typedef struct cuda_nvml {
  pthread_mutex_t opening; /* guards what follows until it is opened */
  bool opened;
  nvml_device device; /* NULL: NVML is not there, or does not know the GPU */
  int (*power_limit)(nvml_device device, unsigned int *milliwatts);
  int (*clock)(nvml_device device, int kind, unsigned int *megahertz);
  int (*reasons)(nvml_device device, unsigned long long *bits);
  /* What older versions lack may be NULL, from here on. */
  nvml_processes *compute, *graphics, *mps;
  int (*mig)(nvml_device device, unsigned int *current, unsigned int *pending);
} cuda_nvml;

/* Opens it, once, for the GPU with this PCI id ("0000:01:00.0"). */
void cuda_nvml_open(cuda_nvml *nvml, const char *pci_id);
/* Fills in the power limit, the clocks of this moment, what holds them back and
 * who shares the GPU; what can't be had stays. */
void cuda_nvml_read(const cuda_nvml *nvml, tl_properties *properties);

#endif
