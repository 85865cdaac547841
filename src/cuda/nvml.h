/* NVML, the driver's management library: clocks, power and throttling, where it
 * is there. */
#ifndef TIDELOCK_CUDA_NVML_H
#define TIDELOCK_CUDA_NVML_H

#include "core/backend.h"

/* Fills in the power limit, the clocks of this moment and what holds them back,
 * for the GPU with this PCI id ("0000:01:00.0"); what can't be had stays. */
void cuda_nvml_read(const char *pci_id, tl_properties *properties);

#endif
