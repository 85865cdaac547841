// Kernels that do nothing but take time, and a gate.
//
// Both look at %globaltimer, the GPU's own clock in nanoseconds: it runs at the
// same rate whatever the clocks of the multiprocessors do. One thread each; no
// bytes and no flops.

__device__ static unsigned long long now() {
  unsigned long long t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
}

// Busy for at least so long. Grid 1, block 1.
extern "C" __global__ void spin(unsigned long long nanoseconds) {
  unsigned long long began = now();
  while (now() - began < nanoseconds)
    continue;
}

// Holds its stream until the host has set state[0], or for so long at most:
// then it sets state[1]. At its end it sets state[2]. The words are the host's
// memory, mapped. Grid 1, block 1.
extern "C" __global__ void gate(volatile unsigned int *state,
                                unsigned long long nanoseconds) {
  unsigned long long began = now();
  bool open = state[0] != 0;
  while (!open && now() - began < nanoseconds)
    open = state[0] != 0;
  if (!open)
    state[1] = 1;
  __threadfence_system();
  state[2] = 1;
}
