/* What loading and saving .npy files share: failures that name the file, and
 * blocks taken piece by piece. */
#ifndef TIDELOCK_CORE_NPY_FILE_H
#define TIDELOCK_CORE_NPY_FILE_H

#include "core/backend.h"

/* Bytes of a buffer that are in host memory at once: a multiple of every
 * element's size, and of a header's. */
enum { TL_NPY_STAGING = 2 << 20 };

typedef struct tl_npy_file {
  const char *path; /* as the caller gave it: failures name it so */
  int descriptor;
  tl_faults *faults; /* the device's; NULL where there is none yet */
  tl_error *error;   /* the caller's */
} tl_npy_file;

/* Where in a block the next piece starts. */
typedef struct tl_npy_cursor {
  size_t plane, row, column; /* column: bytes */
} tl_npy_cursor;

/* Puts the file's name in front of the error's text and returns the status.
 * TL_OK changes nothing. */
tl_status tl_npy_failed(const tl_npy_file *file, tl_status status);
/* TL_IO, with the file's name and what the system says of the error number. */
tl_status tl_npy_system_failed(const tl_npy_file *file, int number);
/* The next piece of the block, in row order, of at most `room` bytes, which is
 * no less than an element; false behind the last one. The block is not empty,
 * and pieces are whole elements where `room` is. */
bool tl_npy_piece(const tl_block *block, tl_npy_cursor *at, size_t room,
                  tl_block *piece);

#endif
