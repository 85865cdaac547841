/* NVRTC, CUDA's compiler at run time: opened when first needed. */
#ifndef TIDELOCK_CUDA_NVRTC_H
#define TIDELOCK_CUDA_NVRTC_H

#include "core/backend.h"

/* Compiles a source that may include one header, for a capability (90 for 9.0):
 * to machine code, or to PTX of the newest capability that this NVRTC knows
 * where it does not know the device's. *image is the caller's to free. */
tl_status cuda_nvrtc_compile(const char *name, const char *source,
                             const char *header_name, const char *header,
                             int capability, void **image, tl_error *error);

#endif
