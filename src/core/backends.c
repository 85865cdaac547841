/* The back ends of this build: one line each. */
#include "core/backend.h"

const tl_backend *const tl_backends[] = {
    &tl_host_backend,
};

const int32_t tl_backend_count = sizeof tl_backends / sizeof tl_backends[0];
