/* The element types, and which of them matmul combines. */
#ifndef TIDELOCK_DTYPE_H
#define TIDELOCK_DTYPE_H

#include "core/backend.h"

/* What matmul of a and b into c is, with this compute type (NULL: the one that
 * the dtypes imply). A refusal names all three and what there is otherwise. */
tl_status tl_dtype_check_matmul(int32_t a, int32_t b, int32_t c,
                                const char *compute, tl_matmul_type *type,
                                tl_error *error);
/* The dtype of a product of these two, or -1. */
int32_t tl_dtype_matmul_result(int32_t a, int32_t b);
/* The dtype of the inputs, and the name of what the sums are made in. */
tl_dtype tl_matmul_type_input(tl_matmul_type type);
const char *tl_matmul_type_compute(tl_matmul_type type);
bool tl_matmul_type_is_integer(tl_matmul_type type);

#endif
