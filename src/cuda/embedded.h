/* The text of kernels/, and its machine code where the build made some: put
 * into the library by the assembler (embedded.c). */
#ifndef TIDELOCK_CUDA_EMBEDDED_H
#define TIDELOCK_CUDA_EMBEDDED_H

#include "cuda/module.h"

/* The source, ending in '\0'. */
extern const char *const cuda_sources[CUDA_FILE_COUNT];
extern const char *const cuda_file_names[CUDA_FILE_COUNT]; /* "fill.cu" */
extern const char *const cuda_philox_header; /* that random.cu includes */
/* Fat binaries; NULL: made without nvcc. */
extern const void *const cuda_fatbins[CUDA_FILE_COUNT];

#endif
