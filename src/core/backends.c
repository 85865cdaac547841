/* The back ends of this build, one line each, and the ids of their devices. */
#include "core/backends.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const tl_backend *const tl_backends[] = {
    &tl_cuda_backend,
    &tl_host_backend,
    &tl_sim_backend,
};

const int32_t tl_backend_count = sizeof tl_backends / sizeof tl_backends[0];

static void backends_describe(char *text, size_t room) {
  text[0] = '\0';
  for (int32_t i = 0; i < tl_backend_count; i++) {
    size_t used = strlen(text);
    snprintf(text + used, room - used, "%s%s", i > 0 ? ", " : "",
             tl_backends[i]->name);
  }
}

tl_status tl_id_resolve(const char *id, const tl_backend **backend,
                        int32_t *ordinal, tl_error *error) {
  if (id == NULL)
    return tl_fail(error, TL_INVALID_ARGUMENT, "a device id is missing");
  size_t length = strcspn(id, ":");
  const tl_backend *found = NULL;
  for (int32_t i = 0; i < tl_backend_count && found == NULL; i++)
    if (strlen(tl_backends[i]->name) == length &&
        strncmp(tl_backends[i]->name, id, length) == 0)
      found = tl_backends[i];
  if (found == NULL) {
    char names[128];
    backends_describe(names, sizeof names);
    return tl_fail(error, TL_UNSUPPORTED,
                   "device '%.64s': this build has no back end of that name "
                   "(it has: %s)",
                   id, names);
  }
  int32_t number = 0;
  if (id[length] == ':') {
    const char *digits = id + length + 1;
    size_t count = strspn(digits, "0123456789");
    if (count == 0 || count > 6 || digits[count] != '\0')
      return tl_fail(error, TL_INVALID_ARGUMENT,
                     "device '%.64s': an ordinal from 0 is wanted after the "
                     "colon",
                     id);
    number = (int32_t)strtol(digits, NULL, 10);
  }
  int32_t openable, listed;
  tl_status status = found->enumerate(&openable, &listed, error);
  if (status != TL_OK)
    return status;
  if (number >= openable)
    return tl_fail(error, TL_UNSUPPORTED,
                   "device '%.64s' does not exist (devices %s:0 to %s:%d)", id,
                   found->name, found->name, (int)openable - 1);
  *backend = found;
  *ordinal = number;
  return TL_OK;
}

void tl_id_write(const tl_backend *backend, int32_t ordinal, char *id,
                 size_t room) {
  if (ordinal == 0 && backend->single)
    snprintf(id, room, "%s", backend->name);
  else
    snprintf(id, room, "%s:%d", backend->name, (int)ordinal);
}

tl_status tl_device_list(tl_device_info *list, int32_t room, int32_t *count,
                         tl_error *error) {
  *count = 0;
  for (int32_t i = 0; i < tl_backend_count; i++) {
    const tl_backend *backend = tl_backends[i];
    int32_t openable = 0, listed = 0;
    if (backend->enumerate(&openable, &listed, error) != TL_OK)
      continue; /* tl_device_available says why */
    for (int32_t ordinal = 0; ordinal < listed; ordinal++, (*count)++) {
      if (*count >= room)
        continue;
      tl_device_info *info = &list[*count];
      tl_id_write(backend, ordinal, info->id, sizeof info->id);
      snprintf(info->backend, sizeof info->backend, "%s", backend->name);
      tl_status status =
          backend->describe(ordinal, info->name, sizeof info->name, error);
      if (status != TL_OK)
        return status;
    }
  }
  return TL_OK;
}

bool tl_device_available(const char *id, tl_error *reason) {
  const tl_backend *backend;
  int32_t ordinal;
  return tl_id_resolve(id, &backend, &ordinal, reason) == TL_OK;
}

tl_status tl_device_canonical(const char *id, char *canonical, size_t room,
                              tl_error *error) {
  const tl_backend *backend;
  int32_t ordinal;
  canonical[0] = '\0';
  tl_status status = tl_id_resolve(id, &backend, &ordinal, error);
  if (status == TL_OK)
    tl_id_write(backend, ordinal, canonical, room);
  return status;
}
