/* What every reference-counted object of a device has in common, and the
 * retire list: objects whose last handle is gone. Putting one there makes no
 * back-end call and waits for nothing, so a finalizer may do it at any time;
 * later allocations, launches and waits drain the list. */
#ifndef TIDELOCK_OBJECT_H
#define TIDELOCK_OBJECT_H

#include <stdatomic.h>

#include "core/backend.h"

typedef struct tl_object tl_object;

struct tl_object {
  atomic_int handles;
  tl_device *device; /* one reference while there are handles */
  tl_object *next;   /* on the retire list */
  /* Frees the object and returns true; or returns false: not yet, its work is
   * not done. When the device is closing (force) it must succeed. Called with
   * the device's lock held. */
  bool (*finish)(tl_object *object, bool force);
};

/* Gives a zeroed object its first handle and counts it on the device. */
void tl_object_begin(tl_object *object, tl_device *device,
                     bool (*finish)(tl_object *, bool));
void tl_object_retain(tl_object *object);
/* Drops a handle: true if it was the last, and the object is to be retired. */
bool tl_object_drop(tl_object *object);
/* Puts it on the retire list, then drops its reference to the device. */
void tl_object_retire(tl_object *object);
/* Both. */
void tl_object_release(tl_object *object);

#endif
