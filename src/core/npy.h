/* The .npy format, versions 1 to 3, without files: headers read and written,
 * elements turned to this machine's bytes and to row order. After "NEP 1: A
 * Simple File Format for NumPy Arrays" and numpy.lib.format. All of it is pure:
 * no memory is allocated, nothing is kept, any bytes may be given. */
#ifndef TIDELOCK_CORE_NPY_H
#define TIDELOCK_CORE_NPY_H

#include "core/backend.h"

enum {
  TL_NPY_PREAMBLE = 12,    /* bytes: magic, version, header length */
  TL_NPY_HEADER = 10000,   /* longest header that is read; NumPy's limit too */
  TL_NPY_HEADER_ROOM = 128 /* bytes of every header that is written */
};

typedef struct tl_npy_header {
  tl_layout layout;  /* packed, in row order whatever the file's order is; a
                        scalar, shape (), has shape {1} */
  size_t data;       /* bytes of the file before the first element */
  bool column_order; /* the first index runs fastest; never for one dimension */
  bool swapped;      /* elements have the other byte order than this machine */
} tl_npy_header;

/* Bytes before the data, told by the first `n` bytes of a file; those are
 * TL_NPY_PREAMBLE, or all there are. Refuses what is no .npy file of versions 1
 * to 3, and headers longer than TL_NPY_HEADER. */
tl_status tl_npy_measure(const void *bytes, size_t n, size_t *data,
                         tl_error *error);
/* Reads the header at the start of `n` bytes. The dict must be what NumPy
 * writes, give or take spaces, quotes, and the order of its three keys;
 * anything else is TL_IO, and what is a legal array of a type or rank that
 * there is no buffer for is TL_UNSUPPORTED. Messages do not name the file. */
tl_status tl_npy_parse(const void *bytes, size_t n, tl_npy_header *header,
                       tl_error *error);
/* Writes the header, magic included, of a little-endian file in row order:
 * version 1, TL_NPY_HEADER_ROOM bytes. TL_UNSUPPORTED for bfloat16. */
tl_status tl_npy_format(const tl_layout *layout, char *header, tl_error *error);
/* Whether this machine's elements must be swapped to be little-endian. */
bool tl_npy_machine_swaps(void);
/* Reverses the bytes of each of `count` elements of 1, 2, 4 or 8 bytes. */
void tl_npy_swap(void *elements, size_t count, size_t element);
/* From [k][j][i] to [i][j][k]: column order to row order for i x j x k elements
 * of 1, 2, 4 or 8 bytes. The two do not overlap. */
void tl_npy_reorder(void *to, const void *from, size_t i, size_t j, size_t k,
                    size_t element);

#endif
