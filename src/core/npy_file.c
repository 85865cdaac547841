/* What loading and saving .npy files share. */
#include "core/npy_file.h"

#include <stdio.h>
#include <string.h>

tl_status tl_npy_failed(const tl_npy_file *file, tl_status status) {
  if (status == TL_OK || file->error == NULL)
    return status;
  char text[sizeof file->error->text];
  /* A long name is cut at its front, where it says least. */
  size_t length = strlen(file->path), most = 480;
  memcpy(text, file->error->text, sizeof text);
  return tl_fail(file->error, status, "%s%s: %.480s",
                 length > most ? "..." : "",
                 file->path + (length > most ? length - most : 0), text);
}

tl_status tl_npy_system_failed(const tl_npy_file *file, int number) {
  return tl_npy_failed(file,
                       tl_fail(file->error, TL_IO, "%s", strerror(number)));
}

bool tl_npy_piece(const tl_block *block, tl_npy_cursor *at, size_t room,
                  tl_block *piece) {
  if (at->plane == block->planes)
    return false;
  *piece = *block;
  piece->planes = 1;
  piece->offset +=
      at->plane * block->plane_pitch + at->row * block->pitch + at->column;
  if (at->column > 0 || block->width > room) { /* part of a row */
    size_t left = block->width - at->column;
    piece->width = left < room ? left : room;
    piece->rows = 1;
    at->column = (at->column + piece->width) % block->width;
    at->row += at->column == 0;
  } else {
    size_t left = block->rows - at->row;
    piece->rows = left < room / block->width ? left : room / block->width;
    at->row += piece->rows;
  }
  piece->plane_pitch = piece->rows * piece->pitch;
  if (at->row == block->rows) {
    at->row = 0;
    at->plane++;
  }
  return true;
}
