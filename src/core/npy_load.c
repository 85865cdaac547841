/* Buffers from .npy files. The header and the file's size are checked before
 * anything else; then the data passes through a staging piece of fixed size,
 * however large the file, in row order or, from column order, in tiles. */
#define _GNU_SOURCE
#include "tidelock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/buffer.h"
#include "core/call.h"
#include "core/npy.h"
#include "core/npy_file.h"

/* Columns of a tile, at first: rows get longer reads so. */
enum { COLUMNS = 256 };

/* ---- reading --------------------------------------------------------------
 */

static tl_status file_read(const tl_npy_file *file, void *to, size_t nbytes,
                           uint64_t offset) {
  char *next = to;
  tl_status status = tl_fault(file->faults, "file read", file->error);
  if (status != TL_OK)
    return tl_npy_failed(file, status);
  while (nbytes > 0) {
    ssize_t got = pread(file->descriptor, next, nbytes, (off_t)offset);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return tl_npy_system_failed(file, errno);
    if (got == 0)
      return tl_npy_failed(
          file,
          tl_fail(file->error, TL_IO, "it became shorter while it was read"));
    next += got;
    nbytes -= (size_t)got;
    offset += (uint64_t)got;
  }
  return TL_OK;
}

static tl_status size_check(const tl_npy_file *file,
                            const tl_npy_header *header, uint64_t size) {
  uint64_t wanted =
      header->data + (uint64_t)header->layout.size *
                         (uint64_t)tl_dtype_size(header->layout.dtype);
  if (size < wanted)
    return tl_npy_failed(file, tl_fail(file->error, TL_IO,
                                       "truncated: %" PRIu64
                                       " bytes wanted, the file has %" PRIu64,
                                       wanted, size));
  if (size > wanted)
    return tl_npy_failed(file, tl_fail(file->error, TL_IO,
                                       "bytes behind the data: %" PRIu64
                                       " bytes wanted, the file has %" PRIu64,
                                       wanted, size));
  return TL_OK;
}

/* Reads the header, and no more, and checks the file's size against it. */
static tl_status header_read(const tl_npy_file *file, tl_npy_header *header) {
  char bytes[TL_NPY_PREAMBLE + TL_NPY_HEADER];
  struct stat about;
  if (fstat(file->descriptor, &about) != 0)
    return tl_npy_system_failed(file, errno);
  if (S_ISDIR(about.st_mode))
    return tl_npy_system_failed(file, EISDIR);
  if (!S_ISREG(about.st_mode))
    return tl_npy_failed(file,
                         tl_fail(file->error, TL_IO, "not a regular file"));
  uint64_t size = (uint64_t)about.st_size;
  size_t have = size < TL_NPY_PREAMBLE ? (size_t)size : TL_NPY_PREAMBLE, data;
  tl_status status = file_read(file, bytes, have, 0);
  if (status != TL_OK)
    return status;
  status = tl_npy_measure(bytes, have, &data, file->error);
  if (status != TL_OK)
    return tl_npy_failed(file, status);
  if (data > have && size > have) {
    size_t more = (size < data ? (size_t)size : data) - have;
    status = file_read(file, bytes + have, more, have);
    if (status != TL_OK)
      return status;
    have += more;
  }
  status = tl_npy_parse(bytes, have, header, file->error);
  return status == TL_OK ? size_check(file, header, size)
                         : tl_npy_failed(file, status);
}

/* What is no regular file must not make the opening wait. */
static tl_status file_open(tl_npy_file *file, const char *path,
                           tl_faults *faults, tl_npy_header *header,
                           tl_error *error) {
  *file = (tl_npy_file){.path = path, .faults = faults, .error = error};
  file->descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file->descriptor < 0)
    return tl_npy_system_failed(file, errno);
  tl_status status = header_read(file, header);
  if (status != TL_OK)
    close(file->descriptor);
  return status;
}

static tl_status piece_write(tl_buffer *buffer, const tl_block *piece,
                             const void *data, tl_error *error) {
  tl_status status =
      tl_call_write(tl_buffer_device(buffer), piece, data, error);
  if (status == TL_OK)
    buffer->memory->written = true;
  return status;
}

static tl_status rows_read(const tl_npy_file *file, const tl_npy_header *header,
                           tl_buffer *buffer, char *staging) {
  tl_block block = tl_buffer_block(buffer), piece;
  size_t element = (size_t)tl_dtype_size(header->layout.dtype);
  uint64_t offset = header->data;
  for (tl_npy_cursor at = {0};
       tl_npy_piece(&block, &at, TL_NPY_STAGING, &piece);) {
    size_t nbytes = piece.width * piece.rows;
    tl_status status = file_read(file, staging, nbytes, offset);
    if (status != TL_OK)
      return status;
    if (header->swapped)
      tl_npy_swap(staging, nbytes / element, element);
    status = piece_write(buffer, &piece, staging, file->error);
    if (status != TL_OK)
      return status;
    offset += nbytes;
  }
  return TL_OK;
}

/* ---- column order ---------------------------------------------------------
 * A matrix is taken as i x 1 x k, so that one rule serves two dimensions and
 * three: the file is [k][j][i], the buffer [i][j][k]. */

typedef struct columns {
  const tl_npy_file *file;
  const tl_npy_header *header;
  size_t element;
  size_t shape[3]; /* i, j, k */
  size_t tile[3];  /* the largest part of it that is converted at once */
} columns;

static size_t least(size_t a, size_t b) {
  return a < b ? a : b;
}

/* Whole runs of i and j where they fit: those are single reads. */
static void tile_choose(columns *c) {
  size_t room = TL_NPY_STAGING / c->element;
  c->tile[2] = least(c->shape[2], COLUMNS);
  c->tile[0] = least(c->shape[0], room / c->tile[2]);
  c->tile[1] = 1;
  if (c->tile[0] == c->shape[0])
    c->tile[1] = least(c->shape[1], room / (c->tile[0] * c->tile[2]));
  if (c->tile[0] == c->shape[0] && c->tile[1] == c->shape[1])
    c->tile[2] = least(c->shape[2], room / (c->tile[0] * c->tile[1]));
}

/* Reads `size` elements at `at`, packed in the file's order. */
static tl_status tile_read(const columns *c, const size_t at[3],
                           const size_t size[3], char *staging) {
  size_t run = size[0], runs_j = size[1], runs_k = size[2];
  if (run == c->shape[0]) {
    run *= runs_j;
    runs_j = 1;
    if (size[1] == c->shape[1]) {
      run *= runs_k;
      runs_k = 1;
    }
  }
  for (size_t k = 0; k < runs_k; k++)
    for (size_t j = 0; j < runs_j; j++, staging += run * c->element) {
      uint64_t place =
          ((at[2] + k) * c->shape[1] + at[1] + j) * c->shape[0] + at[0];
      tl_status status = file_read(c->file, staging, run * c->element,
                                   c->header->data + place * c->element);
      if (status != TL_OK)
        return status;
    }
  return TL_OK;
}

/* The part of the buffer that a tile goes to. */
static tl_block tile_block(const columns *c, const tl_buffer *buffer,
                           const size_t at[3], const size_t size[3]) {
  const tl_layout *l = &buffer->layout;
  int32_t last = l->dimensions - 1;
  size_t pitch_i = (size_t)l->stride[0] * c->element;
  size_t pitch_j = last == 2 ? (size_t)l->stride[1] * c->element : 0;
  bool planes = size[1] > 1;
  return (tl_block){.memory = buffer->memory->impl,
                    .offset = ((size_t)l->offset + at[2]) * c->element +
                              at[0] * pitch_i + at[1] * pitch_j,
                    .width = size[2] * c->element,
                    .rows = planes ? size[1] : size[0],
                    .pitch = planes ? pitch_j : pitch_i,
                    .planes = planes ? size[0] : 1,
                    .plane_pitch = planes ? pitch_i : size[0] * pitch_i};
}

static tl_status tile_convert(const columns *c, tl_buffer *buffer,
                              const size_t at[3], char *staging) {
  size_t size[3];
  for (int d = 0; d < 3; d++)
    size[d] = least(c->tile[d], c->shape[d] - at[d]);
  tl_status status = tile_read(c, at, size, staging);
  if (status != TL_OK)
    return status;
  if (c->header->swapped)
    tl_npy_swap(staging, size[0] * size[1] * size[2], c->element);
  tl_npy_reorder(staging + TL_NPY_STAGING, staging, size[0], size[1], size[2],
                 c->element);
  tl_block block = tile_block(c, buffer, at, size);
  return piece_write(buffer, &block, staging + TL_NPY_STAGING, c->file->error);
}

static tl_status columns_read(const tl_npy_file *file,
                              const tl_npy_header *header, tl_buffer *buffer,
                              char *staging) {
  const tl_layout *l = &header->layout;
  columns c = {.file = file,
               .header = header,
               .element = (size_t)tl_dtype_size(l->dtype),
               .shape = {(size_t)l->shape[0],
                         l->dimensions == 3 ? (size_t)l->shape[1] : 1,
                         (size_t)l->shape[l->dimensions - 1]}};
  size_t at[3];
  tile_choose(&c);
  for (at[2] = 0; at[2] < c.shape[2]; at[2] += c.tile[2])
    for (at[1] = 0; at[1] < c.shape[1]; at[1] += c.tile[1])
      for (at[0] = 0; at[0] < c.shape[0]; at[0] += c.tile[0]) {
        tl_status status = tile_convert(&c, buffer, at, staging);
        if (status != TL_OK)
          return status;
      }
  return TL_OK;
}

/* ---- loading --------------------------------------------------------------
 */

tl_status tl_npy_layout(const char *path, tl_layout *layout, tl_error *error) {
  tl_npy_file file;
  tl_npy_header header;
  *layout = (tl_layout){0};
  tl_status status = file_open(&file, path, NULL, &header, error);
  if (status != TL_OK)
    return status;
  close(file.descriptor);
  *layout = header.layout;
  return TL_OK;
}

static tl_status layout_check(const tl_npy_file *file, const tl_layout *found,
                              const tl_layout *wanted) {
  if (found->dtype != wanted->dtype)
    return tl_npy_failed(file, tl_fail(file->error, TL_INVALID_ARGUMENT,
                                       "the file holds %s, the buffer %s",
                                       tl_dtype_name(found->dtype),
                                       tl_dtype_name(wanted->dtype)));
  if (found->dimensions != wanted->dimensions ||
      memcmp(found->shape, wanted->shape, sizeof found->shape) != 0)
    return tl_npy_failed(file,
                         tl_fail(file->error, TL_INVALID_ARGUMENT,
                                 "the file has another shape than the buffer "
                                 "(%" PRId64 " and %" PRId64 " elements)",
                                 found->size, wanted->size));
  return TL_OK;
}

static tl_status data_read(const tl_npy_file *file, const tl_npy_header *header,
                           tl_buffer *buffer) {
  if (header->layout.size == 0)
    return TL_OK;
  char *staging = tl_allocate(
      tl_buffer_device(buffer)->options.faults, "allocate: file staging",
      header->column_order ? 2 * TL_NPY_STAGING : TL_NPY_STAGING, file->error);
  if (staging == NULL)
    return TL_OUT_OF_MEMORY;
  tl_status status = header->column_order
                         ? columns_read(file, header, buffer, staging)
                         : rows_read(file, header, buffer, staging);
  free(staging);
  return status;
}

tl_status tl_buffer_read_npy(tl_buffer *buffer, const char *path,
                             tl_error *error) {
  tl_npy_file file;
  tl_npy_header header;
  bool reached;
  tl_status status = tl_buffer_wait(buffer, -1, &reached, error);
  if (status == TL_OK)
    status = file_open(&file, path, tl_buffer_device(buffer)->options.faults,
                       &header, error);
  if (status != TL_OK)
    return status;
  status = layout_check(&file, &header.layout, &buffer->layout);
  if (status == TL_OK)
    status = data_read(&file, &header, buffer);
  close(file.descriptor);
  return status;
}

tl_status tl_buffer_load_npy(tl_device *device, const char *path,
                             tl_buffer **out, tl_error *error) {
  tl_npy_file file;
  tl_npy_header header;
  tl_buffer *buffer;
  *out = NULL;
  tl_status status = tl_device_check(device, error);
  if (status == TL_OK)
    status = file_open(&file, path, device->options.faults, &header, error);
  if (status != TL_OK)
    return status;
  status =
      tl_buffer_create(device, header.layout.dtype, header.layout.dimensions,
                       header.layout.shape, &buffer, error);
  if (status == TL_OK)
    status = data_read(&file, &header, buffer);
  close(file.descriptor);
  if (status == TL_OK)
    *out = buffer;
  else
    tl_buffer_release(buffer);
  return status;
}
