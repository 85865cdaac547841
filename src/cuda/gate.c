/* Gates of the CUDA device: a kernel that looks at a flag in pinned memory
 * until the host sets it, or until its own time limit. A wait of the stream for
 * a value would cost less, but has no time limit: a script that dies would
 * leave the device hanging. */
#include "cuda/cuda.h"

#include <stdlib.h>

/* Words of a gate in its page; each gate has a cache line of its own. */
enum { OPENED = 0, TIMED_OUT, ENDED, GATE_WORDS = 16 };

static volatile uint32_t *gate_flags(const cuda_gate_page *page,
                                     uint32_t index) {
  return page->flags + (size_t)index * GATE_WORDS;
}

static cuda_gate_page *page_open(tl_device_impl *device, tl_error *error) {
  cuda_gate_page *page = tl_allocate(
      device->options.faults, "allocate: cuda gates", sizeof *page, error);
  if (page == NULL)
    return NULL;
  size_t nbytes = CUDA_GATES * GATE_WORDS * sizeof *page->flags;
  void *flags = NULL;
  tl_status status =
      CUDA_CALL(&device->driver, error, cuMemHostAlloc, &flags, nbytes,
                CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
  if (status == TL_OK)
    status = CUDA_CALL(&device->driver, error, cuMemHostGetDevicePointer,
                       &page->address, flags, 0);
  if (status != TL_OK) {
    if (flags != NULL)
      device->driver.cuMemFreeHost(flags);
    free(page);
    return NULL;
  }
  page->flags = flags;
  page->next = device->code->gates;
  device->code->gates = page;
  return page;
}

/* At exit, without the lock: a thread may hold it for ever. */
void cuda_gates_open(cuda_code *code) {
  for (cuda_gate_page *page = code->gates; page != NULL; page = page->next)
    for (uint32_t i = 0; i < CUDA_GATES; i++)
      gate_flags(page, i)[OPENED] = 1;
}

/* Gives back the places whose gate is gone and whose kernel has ended. */
static void page_sweep(cuda_gate_page *page) {
  uint64_t dropped = atomic_load(&page->dropped), ended = 0;
  for (uint32_t i = 0; i < CUDA_GATES; i++)
    if ((dropped >> i & 1) != 0 && gate_flags(page, i)[ENDED] != 0)
      ended |= UINT64_C(1) << i;
  page->taken &= ~ended;
  atomic_fetch_and(&page->dropped, ~ended);
}

/* Finds a place for a gate. The lock is held and the context current. */
static tl_status place_take(tl_device_impl *device, tl_gate_impl *gate,
                            tl_error *error) {
  cuda_gate_page *page = device->code->gates;
  for (; page != NULL; page = page->next) {
    page_sweep(page);
    if (page->taken != UINT64_MAX)
      break;
  }
  if (page == NULL)
    page = page_open(device, error);
  if (page == NULL)
    return (tl_status)error->code;
  uint32_t index = 0;
  while ((page->taken >> index & 1) != 0)
    index++;
  page->taken |= UINT64_C(1) << index;
  volatile uint32_t *flags = gate_flags(page, index);
  flags[OPENED] = flags[TIMED_OUT] = flags[ENDED] = 0;
  *gate = (tl_gate_impl){device, page, index};
  return TL_OK;
}

/* Without the lock: another thread may be getting a page, which takes long. */
static void place_drop(tl_gate_impl *gate) {
  atomic_fetch_or(&gate->page->dropped, UINT64_C(1) << gate->index);
}

static tl_status gate_launch(tl_stream_impl *stream, tl_gate_impl *gate,
                             double timeout, tl_error *error) {
  unsigned long long nanoseconds = (unsigned long long)(timeout * 1e9);
  CUdeviceptr flags = gate->page->address +
                      (CUdeviceptr)gate->index * GATE_WORDS * sizeof(uint32_t);
  void *arguments[] = {&flags, &nanoseconds};
  return cuda_launch(stream, CUDA_OTHERS, CUDA_GATE, (cuda_grid){1, 1, 1},
                     (cuda_block){1, 1}, arguments, error);
}

/* Loading a kernel waits for the device: so none of ours is left to be loaded
 * while a gate holds it. cuBLAS loads its own at the first product of a kind.
 */
tl_status cuda_gate_create(tl_stream_impl *stream, double timeout,
                           tl_gate_impl **out, tl_error *error) {
  *out = NULL;
  tl_device_impl *device = stream->device;
  tl_gate_impl *gate = tl_allocate(device->options.faults,
                                   "allocate: cuda gate", sizeof *gate, error);
  if (gate == NULL)
    return TL_OUT_OF_MEMORY;
  cuda_exit_prepare();
  CUcontext before = cuda_enter(device);
  tl_status status = cuda_functions_load(device, error);
  if (status == TL_OK) {
    pthread_mutex_lock(&device->code->gate_lock);
    status = place_take(device, gate, error);
    pthread_mutex_unlock(&device->code->gate_lock);
  }
  cuda_leave(device, before);
  if (status != TL_OK) {
    free(gate);
    return status;
  }
  status = gate_launch(stream, gate, timeout, error);
  if (status != TL_OK) {
    gate_flags(gate->page, gate->index)[ENDED] = 1; /* it never began */
    place_drop(gate);
    free(gate);
    return status;
  }
  *out = gate;
  return TL_OK;
}

void cuda_gate_open(tl_gate_impl *gate, bool *opened) {
  volatile uint32_t *flags = gate_flags(gate->page, gate->index);
  atomic_thread_fence(memory_order_seq_cst);
  flags[OPENED] = 1;
  atomic_thread_fence(memory_order_seq_cst);
  *opened = flags[TIMED_OUT] == 0;
}

void cuda_gate_destroy(tl_gate_impl *gate) {
  place_drop(gate);
  free(gate);
}
