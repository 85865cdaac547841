/* The only callers of a back end. Each checks for an armed fault, empties the
 * outputs, calls the slot, and marks the device where it turns out lost. They
 * are named after the slots of backend.h, where their contracts are. */
#ifndef TIDELOCK_CORE_CALL_H
#define TIDELOCK_CORE_CALL_H

#include "core/device.h"
#include "core/stream.h"

tl_status tl_call_properties(tl_device *device, tl_properties *properties,
                             tl_error *error);
tl_status tl_call_allocate(tl_device *device, size_t nbytes, bool pinned,
                           tl_memory_impl **memory, tl_error *error);
tl_status tl_call_trim(tl_device *device, tl_error *error);
tl_status tl_call_write(tl_device *device, const tl_block *to, const void *from,
                        tl_error *error);
tl_status tl_call_read(tl_device *device, const tl_block *from, void *to,
                       tl_error *error);
tl_status tl_call_stream_create(tl_device *device, tl_stream_impl **stream,
                                tl_error *error);
tl_status tl_call_stream_query(tl_stream *stream, bool *done, tl_error *error);
tl_status tl_call_stream_wait(tl_stream *stream, uint64_t launches,
                              double seconds, bool *reached, tl_error *error);
tl_status tl_call_stream_reserve(tl_stream *stream, bool slot, double seconds,
                                 bool *reached, tl_error *error);
tl_status tl_call_spin(tl_stream *stream, double seconds, tl_error *error);
tl_status tl_call_fill(tl_stream *stream, const tl_block *block,
                       const void *element, size_t element_size,
                       tl_error *error);
tl_status tl_call_random(tl_stream *stream, const tl_block *block,
                         tl_dtype dtype, tl_distribution distribution,
                         uint64_t seed, tl_error *error);
tl_status tl_call_copy(tl_stream *stream, const tl_block *to,
                       const tl_block *from, tl_error *error);
tl_status tl_call_matmul(tl_stream *stream, int32_t kernel,
                         const tl_matmul_problem *problem, tl_error *error);
tl_status tl_call_prepare(tl_device *device, int32_t kernel, tl_error *error);
tl_status tl_call_event_create(tl_device *device, bool timing,
                               tl_event_impl **event, tl_error *error);
tl_status tl_call_event_record(tl_device *device, tl_event_impl *event,
                               tl_stream *stream, tl_error *error);
tl_status tl_call_event_query(tl_device *device, tl_event_impl *event,
                              bool *done, tl_error *error);
tl_status tl_call_event_wait(tl_device *device, tl_event_impl *event,
                             double seconds, bool *reached, tl_error *error);
tl_status tl_call_event_elapsed(tl_device *device, tl_event_impl *earlier,
                                tl_event_impl *later, double *seconds,
                                tl_error *error);
tl_status tl_call_stream_wait_event(tl_stream *stream, tl_event_impl *event,
                                    tl_error *error);
tl_status tl_call_gate_create(tl_stream *stream, double timeout,
                              tl_gate_impl **gate, tl_error *error);

/* Clean-up: an injected failure is kept as the device's clean-up error, and
 * the release happens all the same. The device's lock is held. */
void tl_call_release(tl_device *device, tl_memory_impl *memory,
                     const tl_place *uses, size_t count, size_t nbytes);
void tl_call_stream_destroy(tl_device *device, tl_stream_impl *stream,
                            uint64_t number);
void tl_call_event_destroy(tl_device *device, tl_event_impl *event);
/* The same where the lock is not held. */
void tl_event_drop(tl_device *device, tl_event_impl *event);
void tl_call_gate_destroy(tl_device *device, tl_gate_impl *gate);

#endif
