/* Host memory, and what moves or fills it. */
#include "host/host.h"

#include <stdlib.h>
#include <string.h>

/* All of its memory is the host's: pinned is only counted otherwise. */
tl_status host_allocate(tl_device_impl *device, size_t nbytes, bool pinned,
                        tl_memory_impl **out, tl_error *error) {
  *out = NULL;
  tl_memory_impl *memory = tl_allocate(
      device->options.faults, "allocate: host memory", sizeof *memory, error);
  if (memory == NULL)
    return TL_OUT_OF_MEMORY;
  if (nbytes > SIZE_MAX - 63 ||
      (memory->bytes = aligned_alloc(64, (nbytes + 63) / 64 * 64)) == NULL) {
    free(memory);
    return tl_fail(error, TL_OUT_OF_MEMORY, "host: the system has no %zu bytes",
                   nbytes);
  }
  atomic_init(&memory->references, 1);
  memory->device = device;
  memory->counted = pinned ? 0 : nbytes;
  host_device_retain(device);
  atomic_fetch_add(&device->held, (int64_t)memory->counted);
  *out = memory;
  return TL_OK;
}

void host_memory_retain(tl_memory_impl *memory) {
  atomic_fetch_add_explicit(&memory->references, 1, memory_order_relaxed);
}

void host_memory_release(tl_memory_impl *memory) {
  if (atomic_fetch_sub(&memory->references, 1) != 1)
    return;
  tl_device_impl *device = memory->device;
  atomic_fetch_sub(&device->held, (int64_t)memory->counted);
  free(memory->bytes);
  free(memory);
  host_device_release(device);
}

/* Queued operations have references of their own: whoever is last frees. */
void host_release(tl_device_impl *device, tl_memory_impl *memory,
                  const tl_place *uses, size_t count) {
  (void)device;
  (void)uses;
  (void)count;
  host_memory_release(memory);
}

/* ---- blocks -------------------------------------------------------------- */

static size_t row_offset(const tl_block *block, size_t plane, size_t row) {
  return block->offset + plane * block->plane_pitch + row * block->pitch;
}

void host_block_write(void *memory, const tl_block *to, const void *from) {
  unsigned char *bytes = memory;
  const unsigned char *next = from;
  for (size_t plane = 0; plane < to->planes; plane++)
    for (size_t row = 0; row < to->rows; row++, next += to->width)
      memcpy(bytes + row_offset(to, plane, row), next, to->width);
}

void host_block_read(const void *memory, const tl_block *from, void *to) {
  const unsigned char *bytes = memory;
  unsigned char *next = to;
  for (size_t plane = 0; plane < from->planes; plane++)
    for (size_t row = 0; row < from->rows; row++, next += from->width)
      memcpy(next, bytes + row_offset(from, plane, row), from->width);
}

void host_block_copy(void *to_memory, const tl_block *to,
                     const void *from_memory, const tl_block *from) {
  unsigned char *target = to_memory;
  const unsigned char *source = from_memory;
  for (size_t plane = 0; plane < to->planes; plane++)
    for (size_t row = 0; row < to->rows; row++)
      memcpy(target + row_offset(to, plane, row),
             source + row_offset(from, plane, row), to->width);
}

/* Doubles the filled part of a row until it is full. */
static void row_fill(unsigned char *row, size_t width, const void *element,
                     size_t element_size) {
  memcpy(row, element, element_size);
  for (size_t filled = element_size; filled < width;) {
    size_t next = filled < width - filled ? filled : width - filled;
    memcpy(row + filled, row, next);
    filled += next;
  }
}

void host_block_fill(void *memory, const tl_block *block, const void *element,
                     size_t element_size) {
  unsigned char *bytes = memory;
  for (size_t plane = 0; plane < block->planes; plane++)
    for (size_t row = 0; row < block->rows; row++)
      row_fill(bytes + row_offset(block, plane, row), block->width, element,
               element_size);
}

/* ---- operations ---------------------------------------------------------- */

tl_status host_write(tl_device_impl *device, const tl_block *to,
                     const void *from, tl_error *error) {
  (void)device;
  (void)error;
  host_block_write(to->memory->bytes, to, from);
  return TL_OK;
}

tl_status host_read(tl_device_impl *device, const tl_block *from, void *to,
                    tl_error *error) {
  (void)device;
  (void)error;
  host_block_read(from->memory->bytes, from, to);
  return TL_OK;
}

static void copy_run(const host_operation *operation) {
  const tl_block *to = &operation->with.copy.to;
  const tl_block *from = &operation->with.copy.from;
  host_block_copy(to->memory->bytes, to, from->memory->bytes, from);
}

tl_status host_copy(tl_stream_impl *stream, const tl_block *to,
                    const tl_block *from, tl_error *error) {
  tl_status status = host_stream_prepare(stream, true, error);
  if (status != TL_OK)
    return status;
  host_operation operation = {.run = copy_run,
                              .launch = true,
                              .slot = true,
                              .keep = {to->memory, from->memory},
                              .with.copy = {.to = *to, .from = *from}};
  host_stream_push(stream, &operation);
  return TL_OK;
}

static void fill_run(const host_operation *operation) {
  const tl_block *block = &operation->with.fill.block;
  host_block_fill(block->memory->bytes, block, operation->with.fill.element,
                  operation->with.fill.element_size);
}

tl_status host_fill(tl_stream_impl *stream, const tl_block *block,
                    const void *element, size_t element_size, tl_error *error) {
  tl_status status = host_stream_prepare(stream, true, error);
  if (status != TL_OK)
    return status;
  host_operation operation = {
      .run = fill_run,
      .launch = true,
      .slot = true,
      .keep = {block->memory},
      .with.fill = {.block = *block, .element_size = element_size}};
  memcpy(operation.with.fill.element, element, element_size);
  host_stream_push(stream, &operation);
  return TL_OK;
}
