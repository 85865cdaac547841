/* Copies, fills and random numbers on the CUDA device. */
#include "cuda/cuda.h"

#include <string.h>

/* ---- copies of blocks ---------------------------------------------------- */

/* One side of a copy: a block of device memory, or packed bytes of the host. */
typedef struct side {
  CUmemorytype type;
  CUdeviceptr address;
  size_t pitch, plane_pitch;
} side;

static side side_of(const tl_block *block) {
  return (side){.type = CU_MEMORYTYPE_UNIFIED,
                .address = block->memory->address + block->offset,
                .pitch = block->pitch,
                .plane_pitch = block->plane_pitch};
}

static side side_of_host(const void *bytes, const tl_block *shape) {
  return (side){.type = CU_MEMORYTYPE_HOST,
                .address = (CUdeviceptr)(uintptr_t)bytes,
                .pitch = shape->width,
                .plane_pitch = shape->width * shape->rows};
}

static size_t plane_rows(const side *s, size_t rows, size_t planes) {
  return planes > 1 ? s->plane_pitch / s->pitch : rows;
}

static CUDA_MEMCPY3D copy_describe(const side *to, const side *from,
                                   size_t width, size_t rows, size_t planes) {
  CUDA_MEMCPY3D copy = {.srcMemoryType = from->type,
                        .srcPitch = from->pitch,
                        .srcHeight = plane_rows(from, rows, planes),
                        .dstMemoryType = to->type,
                        .dstPitch = to->pitch,
                        .dstHeight = plane_rows(to, rows, planes),
                        .WidthInBytes = width,
                        .Height = rows,
                        .Depth = planes};
  if (from->type == CU_MEMORYTYPE_HOST)
    copy.srcHost = (const void *)(uintptr_t)from->address;
  else
    copy.srcDevice = from->address;
  if (to->type == CU_MEMORYTYPE_HOST)
    copy.dstHost = (void *)(uintptr_t)to->address;
  else
    copy.dstDevice = to->address;
  return copy;
}

/* The driver's copies take planes that are whole rows apart. */
static bool planes_fit(const side *s, size_t rows) {
  return s->plane_pitch % s->pitch == 0 && s->plane_pitch / s->pitch >= rows;
}

/* One copy where the driver has one for it, else one for each plane or, where
 * rows lie too far apart for it, for each row. */
static tl_status block_copy(tl_device_impl *device, CUstream stream, side to,
                            side from, const tl_block *shape, tl_error *error) {
  const cuda_driver *driver = &device->driver;
  size_t width = shape->width, rows = shape->rows, planes = shape->planes;
  if (rows == 1) { /* its pitch says nothing: let the planes be rows */
    to.pitch = to.plane_pitch;
    from.pitch = from.plane_pitch;
    rows = planes;
    planes = 1;
  }
  bool by_row = to.pitch > device->max_pitch || from.pitch > device->max_pitch;
  if (rows * planes == 1)
    return CUDA_CALL(driver, error, cuMemcpyAsync, to.address, from.address,
                     width, stream);
  if (!by_row &&
      (planes == 1 || (planes_fit(&to, rows) && planes_fit(&from, rows)))) {
    CUDA_MEMCPY3D copy = copy_describe(&to, &from, width, rows, planes);
    return CUDA_CALL(driver, error, cuMemcpy3DAsync, &copy, stream);
  }
  tl_block part = *shape;
  size_t parts = planes > 1 ? planes : rows;
  size_t to_step = planes > 1 ? to.plane_pitch : to.pitch;
  size_t from_step = planes > 1 ? from.plane_pitch : from.pitch;
  part.planes = 1;
  part.rows = planes > 1 ? rows : 1;
  tl_status status = TL_OK;
  for (size_t i = 0; i < parts && status == TL_OK; i++) {
    status = block_copy(device, stream, to, from, &part, error);
    to.address += to_step;
    from.address += from_step;
  }
  return status;
}

static tl_status transfer(tl_device_impl *device, side to, side from,
                          const tl_block *shape, tl_error *error) {
  CUcontext before = cuda_enter(device);
  tl_status status =
      block_copy(device, device->transfer_stream, to, from, shape, error);
  if (status == TL_OK)
    status = CUDA_CALL(&device->driver, error, cuStreamSynchronize,
                       device->transfer_stream);
  cuda_leave(device, before);
  return status;
}

/* Where pinned memory is read or written, the host does it itself. */
static void pinned_move(const tl_block *block, unsigned char *packed,
                        bool write) {
  unsigned char *base = (unsigned char *)block->memory->host + block->offset;
  for (size_t plane = 0; plane < block->planes; plane++)
    for (size_t row = 0; row < block->rows; row++, packed += block->width) {
      unsigned char *at =
          base + plane * block->plane_pitch + row * block->pitch;
      memcpy(write ? at : packed, write ? packed : at, block->width);
    }
}

tl_status cuda_write(tl_device_impl *device, const tl_block *to,
                     const void *from, tl_error *error) {
  if (to->memory->host == NULL)
    return transfer(device, side_of(to), side_of_host(from, to), to, error);
  pinned_move(to, (unsigned char *)(uintptr_t)from, true);
  return TL_OK;
}

tl_status cuda_read(tl_device_impl *device, const tl_block *from, void *to,
                    tl_error *error) {
  if (from->memory->host == NULL)
    return transfer(device, side_of_host(to, from), side_of(from), from, error);
  pinned_move(from, to, false);
  return TL_OK;
}

tl_status cuda_copy(tl_stream_impl *stream, const tl_block *to,
                    const tl_block *from, tl_error *error) {
  CUcontext before;
  tl_status status = cuda_stream_begin(stream, CUDA_LAUNCHES, &before, error);
  if (status != TL_OK)
    return status;
  status = block_copy(stream->device, stream->stream, side_of(to),
                      side_of(from), to, error);
  return cuda_stream_end(stream, CUDA_LAUNCHES, before, status);
}

/* ---- kernels over a block ------------------------------------------------ */

enum { BLOCK_THREADS = 256, WAVES = 16 };

/* Launches a kernel that strides over the elements of a block, then its own
 * last argument. */
static tl_status block_launch(tl_stream_impl *stream, cuda_function function,
                              const tl_block *block, size_t element_size,
                              unsigned long long last, tl_error *error) {
  unsigned long long width = block->width / element_size;
  unsigned long long rows = block->rows, planes = block->planes;
  unsigned long long pitch = block->pitch, plane_pitch = block->plane_pitch;
  CUdeviceptr first = block->memory->address + block->offset;
  void *arguments[] = {&width, &rows,        &planes, &first,
                       &pitch, &plane_pitch, &last};
  unsigned long long elements = width * rows * planes;
  unsigned long long blocks = (elements + BLOCK_THREADS - 1) / BLOCK_THREADS;
  unsigned long long most =
      (unsigned long long)stream->device->processors * WAVES;
  cuda_grid grid = {(unsigned int)(blocks < most ? blocks : most), 1, 1};
  return cuda_launch(stream, CUDA_LAUNCHES, function, grid,
                     (cuda_block){BLOCK_THREADS, 1}, arguments, error);
}

tl_status cuda_fill(tl_stream_impl *stream, const tl_block *block,
                    const void *element, size_t element_size, tl_error *error) {
  unsigned long long value = 0;
  memcpy(&value, element, element_size); /* the low bytes: little-endian */
  cuda_function function = element_size == 1   ? CUDA_FILL_1
                           : element_size == 2 ? CUDA_FILL_2
                           : element_size == 4 ? CUDA_FILL_4
                                               : CUDA_FILL_8;
  return block_launch(stream, function, block, element_size, value, error);
}

tl_status cuda_random(tl_stream_impl *stream, const tl_block *block,
                      tl_dtype dtype, tl_distribution distribution,
                      uint64_t seed, tl_error *error) {
  static const struct {
    cuda_function function[TL_NORMAL + 1]; /* by distribution */
    size_t element_size;
  } makers[TL_DTYPE_COUNT] = {
      [TL_FLOAT32] = {{CUDA_UNIFORM_FLOAT32, CUDA_NORMAL_FLOAT32}, 4},
      [TL_FLOAT64] = {{CUDA_UNIFORM_FLOAT64, CUDA_NORMAL_FLOAT64}, 8},
      [TL_FLOAT16] = {{CUDA_UNIFORM_FLOAT16, CUDA_NORMAL_FLOAT16}, 2},
      [TL_BFLOAT16] = {{CUDA_UNIFORM_BFLOAT16, CUDA_NORMAL_BFLOAT16}, 2},
  };
  return block_launch(stream, makers[dtype].function[distribution], block,
                      makers[dtype].element_size, seed, error);
}
