/* Buffers and views: layouts, blocks, overlaps, life. */
#include "core/buffer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/call.h"
#include "core/device.h"

/* ---- layouts ------------------------------------------------------------- */

tl_status tl_layout_pack(int32_t dtype, int32_t dimensions,
                         const int64_t *shape, tl_layout *layout,
                         tl_error *error) {
  if (tl_dtype_name(dtype) == NULL)
    return tl_fail(error, TL_INVALID_ARGUMENT, "there is no dtype %d",
                   (int)dtype);
  if (dimensions < 1 || dimensions > TL_MAX_DIMENSIONS)
    return tl_fail(error, TL_INVALID_ARGUMENT,
                   "a shape has 1 to %d dimensions, got %d", TL_MAX_DIMENSIONS,
                   (int)dimensions);
  *layout = (tl_layout){.dtype = dtype, .dimensions = dimensions, .size = 1};
  bool empty = false;
  for (int32_t i = 0; i < dimensions; i++) {
    if (shape[i] < 0)
      return tl_fail(error, TL_INVALID_ARGUMENT,
                     "size must be >= 0, got %" PRId64, shape[i]);
    empty = empty || shape[i] == 0;
  }
  int64_t room = INT64_MAX / tl_dtype_size(dtype);
  for (int32_t i = dimensions - 1; i >= 0; i--) {
    layout->shape[i] = shape[i];
    layout->stride[i] = layout->size;
    if (empty)
      continue;
    if (shape[i] > room / layout->size)
      return tl_fail(error, TL_INVALID_ARGUMENT,
                     "size overflows: more than %" PRId64 " bytes", INT64_MAX);
    layout->size *= shape[i];
  }
  if (empty)
    layout->size = 0;
  for (int32_t i = dimensions; i < TL_MAX_DIMENSIONS; i++)
    layout->shape[i] = layout->stride[i] = 1;
  return TL_OK;
}

/* How many elements lie between the first and the last one, both included. */
static int64_t layout_reach(const tl_layout *layout) {
  if (layout->size == 0)
    return 0;
  int64_t reach = 1;
  for (int32_t i = 0; i < layout->dimensions; i++) {
    int64_t steps = layout->shape[i] - 1;
    if (steps > 0 && layout->stride[i] > (INT64_MAX - reach) / steps)
      return INT64_MAX;
    reach += steps * layout->stride[i];
  }
  return reach;
}

size_t tl_layout_nbytes(const tl_layout *layout) {
  return (size_t)(layout->size * tl_dtype_size(layout->dtype));
}

tl_block tl_buffer_block(const tl_buffer *buffer) {
  const tl_layout *l = &buffer->layout;
  size_t element = (size_t)tl_dtype_size(l->dtype);
  int32_t last = l->dimensions - 1;
  tl_block block = {.memory = buffer->memory->impl,
                    .offset = (size_t)l->offset * element,
                    .width = (size_t)l->shape[last] * element,
                    .rows = 1,
                    .planes = 1};
  block.pitch = block.width;
  if (last >= 1) {
    block.rows = (size_t)l->shape[last - 1];
    block.pitch = (size_t)l->stride[last - 1] * element;
  }
  block.plane_pitch = block.rows * block.pitch;
  if (last >= 2) {
    block.planes = (size_t)l->shape[last - 2];
    block.plane_pitch = (size_t)l->stride[last - 2] * element;
  }
  if (block.planes > 1 && block.plane_pitch == block.rows * block.pitch) {
    block.rows *= block.planes;
    block.planes = 1;
    block.plane_pitch = block.rows * block.pitch;
  }
  if (block.rows > 1 && block.pitch == block.width && block.planes == 1) {
    block.width *= block.rows;
    block.rows = 1;
    block.pitch = block.plane_pitch = block.width;
  }
  return block;
}

/* [low, high) and [low + offset, low + offset + length) share a number. */
static bool spans_meet(int64_t length_a, int64_t offset, int64_t length_b) {
  return offset < length_a && offset + length_b > 0;
}

/* Two matrices in rows `stride` apart, b starting `offset` elements after a:
 * a column of b lies under a column of a in the same row or, shifted by one
 * row, across the stride. */
static bool matrices_meet(const int64_t *a, const int64_t *b, int64_t stride,
                          int64_t offset) {
  int64_t row = offset / stride, column = offset % stride;
  if (column < 0) {
    column += stride;
    row--;
  }
  return (spans_meet(a[1], column, b[1]) && spans_meet(a[0], row, b[0])) ||
         (spans_meet(a[1], column - stride, b[1]) &&
          spans_meet(a[0], row + 1, b[0]));
}

bool tl_buffer_overlaps(const tl_buffer *a, const tl_buffer *b) {
  const tl_layout *x = &a->layout, *y = &b->layout;
  if (a->memory != b->memory || x->size == 0 || y->size == 0)
    return false;
  int64_t offset = y->offset - x->offset;
  if (!spans_meet(layout_reach(x), offset, layout_reach(y)))
    return false;
  if (x->dimensions == 2 && y->dimensions == 2 &&
      x->stride[0] == y->stride[0] && x->stride[0] > 0)
    return matrices_meet(x->shape, y->shape, x->stride[0], offset);
  return true;
}

/* ---- life ---------------------------------------------------------------- */

static tl_buffer *buffer_new(tl_device *device, const tl_layout *layout,
                             tl_error *error) {
  tl_buffer *buffer = tl_allocate(device->options.faults, "allocate: handle",
                                  sizeof *buffer, error);
  if (buffer == NULL)
    return NULL;
  atomic_init(&buffer->handles, 1);
  buffer->layout = *layout;
  return buffer;
}

static tl_status buffer_create(tl_device *device, int32_t dtype,
                               int32_t dimensions, const int64_t *shape,
                               bool pinned, tl_buffer **out, tl_error *error) {
  *out = NULL;
  tl_layout layout;
  tl_status status = tl_layout_pack(dtype, dimensions, shape, &layout, error);
  if (status == TL_OK)
    status = tl_device_check(device, error);
  if (status != TL_OK)
    return status;
  tl_buffer *buffer = buffer_new(device, &layout, error);
  if (buffer == NULL)
    return TL_OUT_OF_MEMORY;
  status = tl_memory_create(device, tl_layout_nbytes(&layout), pinned,
                            &buffer->memory, error);
  if (status != TL_OK) {
    free(buffer);
    return status;
  }
  *out = buffer;
  return TL_OK;
}

tl_status tl_buffer_create(tl_device *device, int32_t dtype, int32_t dimensions,
                           const int64_t *shape, tl_buffer **buffer,
                           tl_error *error) {
  return buffer_create(device, dtype, dimensions, shape, false, buffer, error);
}

tl_status tl_pinned_create(tl_device *device, int32_t dtype, int32_t dimensions,
                           const int64_t *shape, tl_buffer **buffer,
                           tl_error *error) {
  return buffer_create(device, dtype, dimensions, shape, true, buffer, error);
}

bool tl_buffer_pinned(const tl_buffer *buffer) {
  return buffer->memory->pinned;
}

/* Puts the caller's strides in, each at least what the inner ones span. */
static tl_status view_strides(tl_layout *layout, const int64_t *strides,
                              tl_error *error) {
  for (int32_t i = layout->dimensions - 2; i >= 0; i--) {
    int64_t inner = layout->shape[i + 1];
    int64_t step = layout->stride[i + 1];
    int64_t least =
        inner > 0 && step > INT64_MAX / inner ? INT64_MAX : inner * step;
    int64_t stride = strides != NULL ? strides[i] : least;
    if (stride < least)
      return tl_fail(error, TL_INVALID_ARGUMENT,
                     "stride %" PRId64 " < %" PRId64
                     ", what dimension %d spans",
                     stride, least, (int)i + 2);
    layout->stride[i] = stride;
  }
  return TL_OK;
}

tl_status tl_buffer_view(tl_buffer *buffer, int64_t offset, int32_t dimensions,
                         const int64_t *shape, const int64_t *strides,
                         tl_buffer **out, tl_error *error) {
  *out = NULL;
  tl_device *device = buffer->memory->object.device;
  tl_layout layout;
  tl_status status = tl_device_check(device, error);
  if (status == TL_OK)
    status =
        tl_layout_pack(buffer->layout.dtype, dimensions, shape, &layout, error);
  if (status == TL_OK)
    status = view_strides(&layout, strides, error);
  if (status != TL_OK)
    return status;
  int64_t room = layout_reach(&buffer->layout);
  if (offset < 0 || offset > room)
    return tl_fail(error, TL_INVALID_ARGUMENT,
                   "offset must be 0 to %" PRId64 ", got %" PRId64, room,
                   offset);
  int64_t reach = layout_reach(&layout);
  if (reach > room - offset)
    return tl_fail(error, TL_INVALID_ARGUMENT,
                   "the view needs %" PRId64 " elements after offset %" PRId64
                   ", the buffer has %" PRId64,
                   reach, offset, room - offset);
  tl_buffer *view = buffer_new(device, &layout, error);
  if (view == NULL)
    return TL_OUT_OF_MEMORY;
  view->layout.offset = buffer->layout.offset + offset;
  view->view = true;
  view->memory = buffer->memory;
  tl_memory_retain(view->memory);
  atomic_fetch_add(&device->objects, 1);
  *out = view;
  return TL_OK;
}

void tl_buffer_retain(tl_buffer *buffer) {
  atomic_fetch_add(&buffer->handles, 1);
}

void tl_buffer_release(tl_buffer *buffer) {
  if (buffer == NULL || atomic_fetch_sub(&buffer->handles, 1) != 1)
    return;
  if (buffer->view)
    atomic_fetch_sub(&buffer->memory->object.device->objects, 1);
  tl_memory_release(buffer->memory);
  free(buffer);
}

void tl_buffer_layout(const tl_buffer *buffer, tl_layout *layout) {
  *layout = buffer->layout;
}

tl_device *tl_buffer_device(const tl_buffer *buffer) {
  return buffer->memory->object.device;
}

int64_t tl_buffer_owned(const tl_buffer *buffer) {
  return buffer->view ? 0 : (int64_t)buffer->memory->nbytes;
}
