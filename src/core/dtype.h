/* The element types, and which of them matmul combines. */
#ifndef TIDELOCK_DTYPE_H
#define TIDELOCK_DTYPE_H

#include "tidelock.h"

/* Whether matmul accepts a, b, c with this compute type (NULL: the one that
 * the dtypes imply). Names all three and what there is otherwise. */
tl_status tl_dtype_check_matmul(int32_t a, int32_t b, int32_t c,
                                const char *compute, tl_error *error);
/* The dtype of a product of these two, or -1. */
int32_t tl_dtype_matmul_result(int32_t a, int32_t b);

#endif
