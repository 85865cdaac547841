/* Handles of a device's objects, and the way onto the retire list. */
#include "core/object.h"

#include "core/device.h"

void tl_object_begin(tl_object *object, tl_device *device,
                     bool (*finish)(tl_object *, bool)) {
  atomic_init(&object->handles, 1);
  object->device = device;
  object->finish = finish;
  tl_device_retain(device);
  atomic_fetch_add(&device->objects, 1);
}

void tl_object_retain(tl_object *object) {
  atomic_fetch_add_explicit(&object->handles, 1, memory_order_relaxed);
}

bool tl_object_drop(tl_object *object) {
  return atomic_fetch_sub_explicit(&object->handles, 1, memory_order_acq_rel) ==
         1;
}

void tl_object_retire(tl_object *object) {
  tl_device *device = object->device;
  atomic_fetch_sub(&device->objects, 1);
  tl_object *head =
      atomic_load_explicit(&device->retired, memory_order_relaxed);
  do {
    object->next = head;
  } while (!atomic_compare_exchange_weak_explicit(&device->retired, &head,
                                                  object, memory_order_release,
                                                  memory_order_relaxed));
  tl_device_release(device);
}

void tl_object_release(tl_object *object) {
  if (tl_object_drop(object))
    tl_object_retire(object);
}
