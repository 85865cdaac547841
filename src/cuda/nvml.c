/* Asking NVML. */
#include "cuda/nvml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/library.h"

enum { CLOCK_SM = 1, CLOCK_MEMORY = 2 };
enum { NOT_SUPPORTED = 3 };

/* ---- opening ------------------------------------------------------------- */

/* A list of processes has had three versions. */
static void list_open(void *library, const char *name, nvml_processes **list) {
  static const char *const versions[] = {"_v3", "_v2", ""};
  char symbol[64];
  for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
    snprintf(symbol, sizeof symbol, "%s%s", name, versions[i]);
    if (tl_library_symbol(library, symbol, list))
      return;
  }
}

static void nvml_open(cuda_nvml *n, const char *pci_id) {
  static const char *const names[] = {"libnvidia-ml.so.1", NULL};
  int (*init)(void);
  int (*find)(const char *, nvml_device *);
  void *library;
  tl_error ignored;
  const tl_symbol symbols[] = {
      {"nvmlInit_v2", &init},
      {"nvmlDeviceGetHandleByPciBusId_v2", &find},
      {"nvmlDeviceGetEnforcedPowerLimit", &n->power_limit},
      {"nvmlDeviceGetClockInfo", &n->clock},
      {"nvmlDeviceGetCurrentClocksThrottleReasons", &n->reasons}};
  if (tl_library_open("cuda: no NVML library", names, &library, &ignored) !=
          TL_OK ||
      tl_library_read(library, symbols, sizeof symbols / sizeof *symbols,
                      "cuda: the NVML library", "it is too old",
                      &ignored) != TL_OK)
    return;
  list_open(library, "nvmlDeviceGetComputeRunningProcesses", &n->compute);
  list_open(library, "nvmlDeviceGetGraphicsRunningProcesses", &n->graphics);
  list_open(library, "nvmlDeviceGetMPSComputeRunningProcesses", &n->mps);
  tl_library_symbol(library, "nvmlDeviceGetMigMode", &n->mig);
  if (init() != 0 || find(pci_id, &n->device) != 0)
    n->device = NULL;
}

void cuda_nvml_open(cuda_nvml *nvml, const char *pci_id) {
  pthread_mutex_lock(&nvml->opening);
  if (!nvml->opened)
    nvml_open(nvml, pci_id);
  nvml->opened = true;
  pthread_mutex_unlock(&nvml->opening);
}

/* ---- who shares the GPU -------------------------------------------------- */

enum { LISTED = 128, LARGEST = 32, UNWRITTEN = 0xa5 };

typedef struct process_set {
  unsigned int ids[3 * LISTED];
  size_t count;
} process_set;

/* True: it was not among them. */
static bool set_add(process_set *set, unsigned int id) {
  for (size_t i = 0; i < set->count; i++)
    if (set->ids[i] == id)
      return false;
  set->ids[set->count++] = id;
  return true;
}

/* How many of a list were not in the set, which then has them; -1: there is no
 * such list. An entry begins with the id and has 16, 24 or 32 bytes; the
 * function's version does not tell which (XuehaiPan/nvitop #79, #89 and #226:
 * _v3 had each of them), so what was written does. */
static int list_read(nvml_processes *list, nvml_device device,
                     process_set *set) {
  unsigned char infos[LISTED * LARGEST];
  unsigned int count = LISTED, id;
  int added = 0;
  memset(infos, UNWRITTEN, sizeof infos);
  if (list == NULL || list(device, &count, infos) != 0 || count > LISTED)
    return -1;
  size_t written = sizeof infos;
  while (written > 0 && infos[written - 1] == UNWRITTEN)
    written--;
  size_t size = count > 0 ? (written / count + 7) / 8 * 8 : 0;
  for (size_t i = 0; i < count && size >= sizeof id; i++) {
    memcpy(&id, infos + i * size, sizeof id);
    added += set_add(set, id);
  }
  return added;
}

/* Without a list of clients: the pipe of a control daemon, where the caller
 * says that there is one. The variable alone is also set to keep MPS off. */
static bool mps_pipe(void) {
  const char *folder = getenv("CUDA_MPS_PIPE_DIRECTORY");
  char path[512];
  if (folder == NULL || folder[0] == '\0')
    return false;
  int length = snprintf(path, sizeof path, "%s/control", folder);
  return length < (int)sizeof path && access(path, F_OK) == 0;
}

/* The driver lists processes by the ids of the host, whatever namespace asks
 * (NVIDIA/nvidia-docker #1483): in a container our own id is not among them, or
 * is another process's. So none is looked for. As the device is open, one of
 * those listed is ours; where none is listed the list is withheld, and it is
 * not known who else is there. The server of MPS is nobody else either. */
static void sharing_read(const cuda_nvml *n, tl_properties *p) {
  process_set set = {.count = 0};
  unsigned int current, pending;
  int clients = list_read(n->mps, n->device, &set);
  int compute = list_read(n->compute, n->device, &set);
  bool server = clients > 0 && compute > 0;
  list_read(n->graphics, n->device, &set);
  if (clients > 0 || compute > 0)
    p->other_processes = (int64_t)set.count - 1 - server;
  if (clients >= 0)
    p->mps = clients > 0;
  int result =
      n->mig != NULL ? n->mig(n->device, &current, &pending) : NOT_SUPPORTED;
  if (result == 0)
    p->mig = current == 1;
  else if (n->mig != NULL && result == NOT_SUPPORTED)
    p->mig = 0;
}

/* ---- all of it ----------------------------------------------------------- */

void cuda_nvml_read(const cuda_nvml *n, tl_properties *properties) {
  unsigned int value;
  unsigned long long bits;
  if (n->device != NULL) {
    if (n->power_limit(n->device, &value) == 0)
      properties->power_limit = (int64_t)value / 1000;
    if (n->clock(n->device, CLOCK_SM, &value) == 0)
      properties->sm_clock = (int64_t)value * 1000000;
    if (n->clock(n->device, CLOCK_MEMORY, &value) == 0)
      properties->memory_clock = (int64_t)value * 1000000;
    if (n->reasons(n->device, &bits) == 0)
      properties->throttle_reasons = (int64_t)bits;
    sharing_read(n, properties);
  }
  if (properties->mps < 0 && mps_pipe())
    properties->mps = 1;
}
