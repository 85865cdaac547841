/* A stand-in for NVML beside the stand-in for the driver (cuda_stub.c): one
 * GPU that is idle, at full clocks, and this process's alone unless something
 * else is asked for. With NVML_STUB_OLD it lacks what is newer than MIG.
 *
 * Environment: NVML_STUB_COMPUTE, NVML_STUB_GRAPHICS and NVML_STUB_MPS, ids of
 * the processes listed, "17,4242" (compute: this process; else none);
 * NVML_STUB_ENTRY, the bytes of an entry of these lists (24); NVML_STUB_MIG, 0
 * or 1 (absent: not supported). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PUBLIC __attribute__((visibility("default")))

typedef struct nvml_device *device;

PUBLIC int nvmlInit_v2(void);
PUBLIC int nvmlDeviceGetHandleByPciBusId_v2(const char *pci_id, device *out);
PUBLIC int nvmlDeviceGetEnforcedPowerLimit(device d, unsigned int *milliwatts);
PUBLIC int nvmlDeviceGetClockInfo(device d, int kind, unsigned int *megahertz);
PUBLIC int nvmlDeviceGetCurrentClocksThrottleReasons(device d,
                                                     unsigned long long *bits);
PUBLIC int nvmlDeviceGetComputeRunningProcesses(device d, unsigned int *count,
                                                void *infos);

enum {
  SUCCESS = 0,
  UNINITIALIZED = 1,
  NOT_SUPPORTED = 3,
  NOT_FOUND = 6,
  INSUFFICIENT_SIZE = 7
};

static char gpu; /* its address stands for the handle */
static int initialized;

int nvmlInit_v2(void) {
  initialized = 1;
  return SUCCESS;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *pci_id, device *out) {
  *out = (device)(void *)&gpu;
  return !initialized                          ? UNINITIALIZED
         : strcmp(pci_id, "0000:00:00.0") == 0 ? SUCCESS
                                               : NOT_FOUND;
}

int nvmlDeviceGetEnforcedPowerLimit(device d, unsigned int *milliwatts) {
  (void)d;
  *milliwatts = 700000;
  return SUCCESS;
}

int nvmlDeviceGetClockInfo(device d, int kind, unsigned int *megahertz) {
  (void)d;
  *megahertz = kind == 1 ? 1980 : 3201;
  return SUCCESS;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(device d,
                                              unsigned long long *bits) {
  (void)d;
  *bits = 1; /* idle */
  return SUCCESS;
}

/* Entries of so many bytes, each with an id and then no byte that is 0. */
static int list(const char *text, size_t entry, unsigned int *count,
                void *infos) {
  unsigned int room = *count, listed = 0;
  char *to = infos, *end;
  for (unsigned long id = strtoul(text, &end, 10); end != text;
       id = strtoul(text, &end, 10)) {
    unsigned int number = (unsigned int)id;
    if (listed < room) {
      memset(to + listed * entry, 0xff, entry);
      memcpy(to + listed * entry, &number, sizeof number);
    }
    listed++;
    text = *end == ',' ? end + 1 : end;
  }
  *count = listed;
  return listed <= room ? SUCCESS : INSUFFICIENT_SIZE;
}

static int compute(size_t entry, unsigned int *count, void *infos) {
  char own[16];
  const char *text = getenv("NVML_STUB_COMPUTE");
  snprintf(own, sizeof own, "%ld", (long)getpid());
  return list(text != NULL ? text : own, entry, count, infos);
}

int nvmlDeviceGetComputeRunningProcesses(device d, unsigned int *count,
                                         void *infos) {
  (void)d;
  return compute(16, count, infos);
}

#ifndef NVML_STUB_OLD
PUBLIC int nvmlDeviceGetComputeRunningProcesses_v3(device d,
                                                   unsigned int *count,
                                                   void *infos);
PUBLIC int nvmlDeviceGetGraphicsRunningProcesses_v2(device d,
                                                    unsigned int *count,
                                                    void *infos);
PUBLIC int nvmlDeviceGetMPSComputeRunningProcesses_v3(device d,
                                                      unsigned int *count,
                                                      void *infos);
PUBLIC int nvmlDeviceGetMigMode(device d, unsigned int *current,
                                unsigned int *pending);

static size_t entry_size(void) {
  const char *text = getenv("NVML_STUB_ENTRY");
  return text != NULL ? (size_t)atoi(text) : 24;
}

static const char *ids(const char *variable) {
  const char *text = getenv(variable);
  return text != NULL ? text : "";
}

int nvmlDeviceGetComputeRunningProcesses_v3(device d, unsigned int *count,
                                            void *infos) {
  (void)d;
  return compute(entry_size(), count, infos);
}

int nvmlDeviceGetGraphicsRunningProcesses_v2(device d, unsigned int *count,
                                             void *infos) {
  (void)d;
  return list(ids("NVML_STUB_GRAPHICS"), entry_size(), count, infos);
}

int nvmlDeviceGetMPSComputeRunningProcesses_v3(device d, unsigned int *count,
                                               void *infos) {
  (void)d;
  return list(ids("NVML_STUB_MPS"), entry_size(), count, infos);
}

int nvmlDeviceGetMigMode(device d, unsigned int *current,
                         unsigned int *pending) {
  (void)d;
  const char *mode = getenv("NVML_STUB_MIG");
  *current = *pending = mode != NULL ? (unsigned int)atoi(mode) : 0;
  return mode != NULL ? SUCCESS : NOT_SUPPORTED;
}
#endif
