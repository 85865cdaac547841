/* Data in and out of buffers, and fill and copy on the device. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/buffer.h"
#include "core/call.h"
#include "core/launch.h"

/* ---- reading and writing ------------------------------------------------- */

tl_status tl_buffer_wait(tl_buffer *buffer, double seconds, bool *reached,
                         tl_error *error) {
  tl_device *device = tl_buffer_device(buffer);
  *reached = false;
  tl_status status = tl_device_check(device, error);
  if (status != TL_OK)
    return status;
  bool waits = buffer->memory->use_count > 0 && seconds != 0;
  int64_t began = waits ? tl_device_clock(device, false) : 0;
  status = tl_memory_wait(buffer->memory, seconds, reached, error);
  if (waits)
    atomic_fetch_add(&device->read_wait,
                     tl_device_clock(device, false) - began);
  return status;
}

static tl_status transfer_begin(tl_buffer *buffer, size_t wanted, size_t nbytes,
                                tl_error *error) {
  if (nbytes != wanted)
    return tl_fail(error, TL_INVALID_ARGUMENT,
                   "%zu bytes were given, the buffer holds %zu", nbytes,
                   wanted);
  bool reached;
  return tl_buffer_wait(buffer, -1, &reached, error);
}

static tl_status block_write(tl_buffer *buffer, const tl_block *block,
                             const void *data, tl_error *error) {
  tl_status status =
      tl_call_write(tl_buffer_device(buffer), block, data, error);
  if (status == TL_OK)
    buffer->memory->written = true;
  return status;
}

tl_status tl_buffer_upload(tl_buffer *buffer, const void *data, size_t nbytes,
                           tl_error *error) {
  tl_status status =
      transfer_begin(buffer, tl_layout_nbytes(&buffer->layout), nbytes, error);
  if (status != TL_OK || nbytes == 0)
    return status;
  tl_block block = tl_buffer_block(buffer);
  return block_write(buffer, &block, data, error);
}

tl_status tl_buffer_download(tl_buffer *buffer, void *data, size_t nbytes,
                             tl_error *error) {
  tl_status status =
      transfer_begin(buffer, tl_layout_nbytes(&buffer->layout), nbytes, error);
  if (status != TL_OK || nbytes == 0)
    return status;
  tl_block block = tl_buffer_block(buffer);
  return tl_call_read(tl_buffer_device(buffer), &block, data, error);
}

/* The block of one element. */
static tl_status element_block(tl_buffer *buffer, const int64_t *index,
                               tl_block *block, tl_error *error) {
  const tl_layout *l = &buffer->layout;
  int64_t place = l->offset;
  for (int32_t i = 0; i < l->dimensions; i++) {
    if (index[i] < 0 || index[i] >= l->shape[i])
      return tl_fail(error, TL_INVALID_ARGUMENT,
                     "index %d must be 0 to %" PRId64 ", got %" PRId64,
                     (int)i + 1, l->shape[i] - 1, index[i]);
    place += index[i] * l->stride[i];
  }
  size_t element = (size_t)tl_dtype_size(l->dtype);
  *block = (tl_block){.memory = buffer->memory->impl,
                      .offset = (size_t)place * element,
                      .width = element,
                      .rows = 1,
                      .pitch = element,
                      .planes = 1,
                      .plane_pitch = element};
  bool reached;
  return tl_buffer_wait(buffer, -1, &reached, error);
}

tl_status tl_buffer_get(tl_buffer *buffer, const int64_t *index, void *element,
                        tl_error *error) {
  tl_block block;
  tl_status status = element_block(buffer, index, &block, error);
  if (status == TL_OK)
    status = tl_call_read(tl_buffer_device(buffer), &block, element, error);
  return status;
}

tl_status tl_buffer_set(tl_buffer *buffer, const int64_t *index,
                        const void *element, tl_error *error) {
  tl_block block;
  tl_status status = element_block(buffer, index, &block, error);
  if (status == TL_OK)
    status = block_write(buffer, &block, element, error);
  return status;
}

/* ---- fill and copy ------------------------------------------------------- */

tl_status tl_buffer_fill(tl_buffer *buffer, const void *element,
                         tl_stream *stream, tl_error *error) {
  tl_device *device = tl_buffer_device(buffer);
  tl_launch launch = {.operation = "fill", .writes = buffer->memory};
  tl_status status = tl_device_check(device, error);
  if (status == TL_OK)
    status = tl_stream_choose(device, stream, &launch.stream, error);
  if (status != TL_OK || buffer->layout.size == 0)
    return status;
  status = tl_launch_begin(&launch, error);
  if (status != TL_OK)
    return status;
  tl_block block = tl_buffer_block(buffer);
  status = tl_call_fill(launch.stream, &block, element,
                        (size_t)tl_dtype_size(buffer->layout.dtype), error);
  return tl_launch_end(&launch, status, error);
}

static tl_status copy_check(const tl_buffer *to, const tl_buffer *from,
                            tl_error *error) {
  const tl_layout *x = &to->layout, *y = &from->layout;
  if (x->dtype != y->dtype)
    return tl_fail(error, TL_INVALID_ARGUMENT,
                   "copy: the source is %s, the buffer %s",
                   tl_dtype_name(y->dtype), tl_dtype_name(x->dtype));
  if (x->dimensions != y->dimensions ||
      memcmp(x->shape, y->shape, sizeof x->shape) != 0)
    return tl_fail(error, TL_INVALID_ARGUMENT,
                   "copy: the source has another shape than the buffer "
                   "(%" PRId64 " and %" PRId64 " elements)",
                   y->size, x->size);
  if (tl_buffer_overlaps(to, from))
    return tl_fail(error, TL_INVALID_ARGUMENT,
                   "copy: the buffer overlaps its source");
  return TL_OK;
}

/* The block in rows even where they are contiguous: the two then agree. */
static void blocks_align(tl_block *a, tl_block *b, const tl_layout *layout) {
  if (a->width == b->width && a->rows == b->rows)
    return;
  size_t element = (size_t)tl_dtype_size(layout->dtype);
  int32_t last = layout->dimensions - 1;
  size_t width = (size_t)layout->shape[last] * element;
  size_t rows = (size_t)layout->shape[last - 1];
  size_t planes = last >= 2 ? (size_t)layout->shape[last - 2] : 1;
  tl_block *both[] = {a, b};
  for (int i = 0; i < 2; i++) {
    tl_block *block = both[i];
    if (block->rows == 1 && block->planes == 1) { /* all contiguous */
      block->pitch = width;
      block->plane_pitch = width * rows;
    } else if (block->planes == 1) { /* the planes follow each other */
      block->plane_pitch = block->pitch * rows;
    }
    block->width = width;
    block->rows = rows;
    block->planes = planes;
  }
}

/* The two are checked and on one device. */
static tl_status copy_enqueue(tl_buffer *buffer, tl_buffer *source,
                              tl_stream *stream, tl_error *error) {
  tl_launch launch = {.stream = stream,
                      .operation = "copy",
                      .reads = {source->memory},
                      .writes = buffer->memory};
  tl_status status = tl_launch_begin(&launch, error);
  if (status != TL_OK)
    return status;
  tl_block to = tl_buffer_block(buffer), from = tl_buffer_block(source);
  blocks_align(&to, &from, &buffer->layout);
  status = tl_call_copy(launch.stream, &to, &from, error);
  return tl_launch_end(&launch, status, error);
}

/* The data goes to pinned memory that lives until it has been copied. */
static tl_status upload_staged(tl_buffer *buffer, const void *data,
                               size_t nbytes, tl_stream *stream,
                               tl_error *error) {
  const tl_layout *l = &buffer->layout;
  tl_buffer *staging;
  tl_status status = tl_pinned_create(tl_buffer_device(buffer), l->dtype,
                                      l->dimensions, l->shape, &staging, error);
  if (status == TL_OK)
    status = tl_buffer_upload(staging, data, nbytes, error);
  if (status == TL_OK)
    status = copy_enqueue(buffer, staging, stream, error);
  tl_buffer_release(staging);
  return status;
}

tl_status tl_buffer_upload_async(tl_buffer *buffer, const void *data,
                                 size_t nbytes, tl_stream *stream,
                                 tl_error *error) {
  tl_device *device = tl_buffer_device(buffer);
  size_t wanted = tl_layout_nbytes(&buffer->layout);
  tl_status status = tl_device_check(device, error);
  if (status == TL_OK && nbytes != wanted)
    status =
        tl_fail(error, TL_INVALID_ARGUMENT,
                "%zu bytes were given, the buffer holds %zu", nbytes, wanted);
  if (status == TL_OK)
    status = tl_stream_choose(device, stream, &stream, error);
  if (status != TL_OK || wanted == 0)
    return status;
  return upload_staged(buffer, data, nbytes, stream, error);
}

/* Between two devices: by way of the host. */
static tl_status copy_across(tl_buffer *buffer, tl_buffer *source,
                             tl_stream *stream, tl_error *error) {
  size_t nbytes = tl_layout_nbytes(&buffer->layout);
  void *bytes = tl_allocate(tl_buffer_device(buffer)->options.faults,
                            "allocate: copy", nbytes, error);
  if (bytes == NULL)
    return TL_OUT_OF_MEMORY;
  tl_status status = tl_buffer_download(source, bytes, nbytes, error);
  if (status == TL_OK)
    status = upload_staged(buffer, bytes, nbytes, stream, error);
  free(bytes);
  return status;
}

tl_status tl_buffer_copy(tl_buffer *buffer, tl_buffer *source,
                         tl_stream *stream, tl_error *error) {
  tl_device *device = tl_buffer_device(buffer);
  tl_status status = tl_device_check(device, error);
  if (status == TL_OK)
    status = tl_device_check(tl_buffer_device(source), error);
  if (status == TL_OK)
    status = copy_check(buffer, source, error);
  if (status == TL_OK)
    status = tl_stream_choose(device, stream, &stream, error);
  if (status != TL_OK || buffer->layout.size == 0)
    return status;
  return tl_buffer_device(source) == device
             ? copy_enqueue(buffer, source, stream, error)
             : copy_across(buffer, source, stream, error);
}
