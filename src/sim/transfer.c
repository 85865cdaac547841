/* What fills and moves memory, and spins: launches without a choice of kernel.
 */
#include "sim/sim.h"

#include <string.h>

tl_status sim_spin(tl_stream_impl *stream, double seconds, tl_error *error) {
  sim_work work;
  memset(&work, 0, sizeof work);
  work.kind = SIM_SPIN;
  return sim_launch(stream, &work, NULL, 0, sim_nanoseconds(seconds), error);
}

tl_status sim_fill(tl_stream_impl *stream, const tl_block *block,
                   const void *element, size_t element_size, tl_error *error) {
  sim_work work;
  memset(&work, 0, sizeof work);
  work.kind = SIM_FILL;
  work.to = *block;
  work.size = element_size;
  memcpy(work.element, element, element_size);
  sim_use use = {.block = *block, .write = true};
  return sim_launch(stream, &work, &use, 1, 0, error);
}

tl_status sim_random(tl_stream_impl *stream, const tl_block *block,
                     tl_dtype dtype, tl_distribution distribution,
                     uint64_t seed, tl_error *error) {
  sim_work work;
  memset(&work, 0, sizeof work);
  work.kind = SIM_RANDOM;
  work.to = *block;
  work.dtype = dtype;
  work.distribution = distribution;
  work.seed = seed;
  sim_use use = {.block = *block, .write = true};
  return sim_launch(stream, &work, &use, 1, 0, error);
}

tl_status sim_copy(tl_stream_impl *stream, const tl_block *to,
                   const tl_block *from, tl_error *error) {
  sim_work work;
  memset(&work, 0, sizeof work);
  work.kind = SIM_COPY;
  work.to = *to;
  work.from = *from;
  sim_use uses[] = {{.block = *from}, {.block = *to, .write = true}};
  return sim_launch(stream, &work, uses, 2, 0, error);
}
