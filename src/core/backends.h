/* The back ends of this build, and the ids of their devices. */
#ifndef TIDELOCK_CORE_BACKENDS_H
#define TIDELOCK_CORE_BACKENDS_H

#include "core/backend.h"

/* Finds the back end and the ordinal that an id names: "host", "host:0". */
tl_status tl_id_resolve(const char *id, const tl_backend **backend,
                        int32_t *ordinal, tl_error *error);
/* "host" for ordinal 0 of a back end that goes by its name, else "cuda:1". */
void tl_id_write(const tl_backend *backend, int32_t ordinal, char *id,
                 size_t room);

#endif
