/* Random contents: what can be had, and the launch. The numbers themselves are
 * the back end's, after kernels/philox.h. */
#include "core/buffer.h"
#include "core/call.h"
#include "core/launch.h"

/* By distribution, under the names that scripts know. */
static const struct {
  const char *operation;
  const char *what;
} distributions[] = {
    [TL_UNIFORM] = {"rand", "numbers of [0, 1)"},
    [TL_NORMAL] = {"randn", "normally distributed numbers"},
};

tl_status tl_random_check(int32_t dtype, int32_t distribution,
                          tl_error *error) {
  if (distribution != TL_UNIFORM && distribution != TL_NORMAL)
    return tl_fail(error, TL_INVALID_ARGUMENT, "there is no distribution %d",
                   (int)distribution);
  if (tl_dtype_name(dtype) == NULL)
    return tl_fail(error, TL_INVALID_ARGUMENT, "there is no dtype %d",
                   (int)dtype);
  if (tl_dtype_is_integer(dtype))
    return tl_fail(error, TL_UNSUPPORTED, "%s: %s does not hold %s",
                   distributions[distribution].operation, tl_dtype_name(dtype),
                   distributions[distribution].what);
  return TL_OK;
}

tl_status tl_buffer_random(tl_buffer *buffer, int32_t distribution,
                           uint64_t seed, tl_stream *stream, tl_error *error) {
  tl_device *device = tl_buffer_device(buffer);
  int32_t dtype = buffer->layout.dtype;
  tl_status status = tl_device_check(device, error);
  if (status == TL_OK)
    status = tl_random_check(dtype, distribution, error);
  if (status != TL_OK)
    return status;
  tl_launch launch = {.operation = distributions[distribution].operation,
                      .writes = buffer->memory};
  status = tl_stream_choose(device, stream, &launch.stream, error);
  if (status != TL_OK || buffer->layout.size == 0)
    return status;
  status = tl_launch_begin(&launch, error);
  if (status != TL_OK)
    return status;
  tl_block block = tl_buffer_block(buffer);
  status = tl_call_random(launch.stream, &block, (tl_dtype)dtype,
                          (tl_distribution)distribution, seed, error);
  return tl_launch_end(&launch, status, error);
}
