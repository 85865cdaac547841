/* A buffer: a layout over memory. */
#ifndef TIDELOCK_CORE_BUFFER_H
#define TIDELOCK_CORE_BUFFER_H

#include "core/memory.h"

struct tl_buffer {
  atomic_int handles;
  bool view;         /* the memory was allocated for another buffer */
  tl_memory *memory; /* one handle */
  tl_layout layout;
};

/* Checks dtype and shape and computes the packed layout, free of overflow. */
tl_status tl_layout_pack(int32_t dtype, int32_t dimensions,
                         const int64_t *shape, tl_layout *layout,
                         tl_error *error);
size_t tl_layout_nbytes(const tl_layout *layout);
/* The bytes that a buffer covers, with neighbouring rows run together. */
tl_block tl_buffer_block(const tl_buffer *buffer);
/* Whether the two share an element; by range where their rows differ. */
bool tl_buffer_overlaps(const tl_buffer *a, const tl_buffer *b);

#endif
