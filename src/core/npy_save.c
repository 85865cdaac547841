/* Buffers into .npy files. A file is written beside the old one and renamed
 * over it when it is finished: a failure leaves what was there. */
#define _GNU_SOURCE
#include "tidelock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/buffer.h"
#include "core/call.h"
#include "core/npy.h"
#include "core/npy_file.h"

static tl_status file_write(const tl_npy_file *file, const void *from,
                            size_t nbytes) {
  const char *next = from;
  tl_status status = tl_fault(file->faults, "file write", file->error);
  if (status != TL_OK)
    return tl_npy_failed(file, status);
  while (nbytes > 0) {
    ssize_t put = write(file->descriptor, next, nbytes);
    if (put < 0 && errno == EINTR)
      continue;
    if (put < 0)
      return tl_npy_system_failed(file, errno);
    next += put;
    nbytes -= (size_t)put;
  }
  return TL_OK;
}

/* Pieces are gathered until the staging is full, however small rows are. */
static tl_status contents_write(const tl_npy_file *file, tl_buffer *buffer,
                                const char *header, char *staging) {
  tl_device *device = tl_buffer_device(buffer);
  tl_block block = tl_buffer_block(buffer), piece;
  size_t element = (size_t)tl_dtype_size(buffer->layout.dtype);
  size_t used = TL_NPY_HEADER_ROOM;
  tl_status status = TL_OK;
  memcpy(staging, header, used);
  tl_npy_cursor at = {.plane = buffer->layout.size == 0 ? block.planes : 0};
  while (status == TL_OK &&
         tl_npy_piece(&block, &at, TL_NPY_STAGING - used, &piece)) {
    size_t nbytes = piece.width * piece.rows;
    status = tl_call_read(device, &piece, staging + used, file->error);
    if (status != TL_OK)
      return status;
    if (tl_npy_machine_swaps())
      tl_npy_swap(staging + used, nbytes / element, element);
    used += nbytes;
    if (used == TL_NPY_STAGING) {
      status = file_write(file, staging, used);
      used = 0;
    }
  }
  return status == TL_OK ? file_write(file, staging, used) : status;
}

/* A file beside `path` that nobody else has; its name is put into `beside`. */
static tl_status beside_open(tl_npy_file *file, const char *path, mode_t mode,
                             char *beside) {
  const char *slash = strrchr(path, '/');
  int folder = slash != NULL ? (int)(slash - path) + 1 : 0;
  if (folder > PATH_MAX - 64)
    return tl_npy_system_failed(file, ENAMETOOLONG);
  for (int attempt = 0; attempt < 100; attempt++) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(beside, PATH_MAX, "%.*s.tidelock-%ld-%09ld-%d.tmp", folder, path,
             (long)getpid(), now.tv_nsec, attempt);
    file->descriptor =
        open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (file->descriptor >= 0)
      return TL_OK;
    if (errno != EEXIST)
      break;
  }
  return tl_npy_system_failed(file, errno);
}

/* A limit on file sizes sends a signal that would end the process before the
 * unfinished file is removed. It comes to the thread that writes: held back
 * here, and taken away, unless somebody held it back already. */
typedef struct size_signal {
  sigset_t before, blocked;
} size_signal;

static void size_signal_block(size_signal *s) {
  sigemptyset(&s->blocked);
  sigaddset(&s->blocked, SIGXFSZ);
  pthread_sigmask(SIG_BLOCK, &s->blocked, &s->before);
}

static void size_signal_restore(const size_signal *s) {
  const struct timespec at_once = {0};
  if (sigismember(&s->before, SIGXFSZ) == 1)
    return;
  while (sigtimedwait(&s->blocked, NULL, &at_once) == SIGXFSZ)
    ;
  pthread_sigmask(SIG_SETMASK, &s->before, NULL);
}

/* Every step that can fail on a full disk is over before the rename. */
static tl_status beside_fill(const tl_npy_file *file, tl_buffer *buffer,
                             const char *header, const struct stat *old) {
  char *staging = tl_allocate(file->faults, "allocate: file staging",
                              TL_NPY_STAGING, file->error);
  if (staging == NULL)
    return TL_OUT_OF_MEMORY;
  size_signal signal_state;
  size_signal_block(&signal_state);
  tl_status status = contents_write(file, buffer, header, staging);
  size_signal_restore(&signal_state);
  free(staging);
  if (status == TL_OK && old != NULL && /* the mask may have cut it */
      fchmod(file->descriptor, old->st_mode & 0777) != 0)
    status = tl_npy_system_failed(file, errno);
  if (status == TL_OK && fsync(file->descriptor) != 0)
    status = tl_npy_system_failed(file, errno);
  return status;
}

static tl_status beside_finish(tl_npy_file *file, tl_buffer *buffer,
                               const char *header, const struct stat *old,
                               const char *beside, const char *target) {
  tl_status status = beside_fill(file, buffer, header, old);
  if (close(file->descriptor) != 0 && status == TL_OK)
    status = tl_npy_system_failed(file, errno);
  if (status == TL_OK && rename(beside, target) != 0)
    status = tl_npy_system_failed(file, errno);
  if (status != TL_OK)
    unlink(beside);
  return status;
}

/* The file that the path names, links followed; *exists: `old` is filled. Only
 * what may be written to, and is an ordinary file, is replaced. */
static tl_status target_find(const tl_npy_file *file, char *target,
                             bool *exists, struct stat *old) {
  const char *path = file->path;
  struct stat link;
  *exists = false;
  if (snprintf(target, PATH_MAX, "%s", path) >= PATH_MAX)
    return tl_npy_system_failed(file, ENAMETOOLONG);
  if (lstat(path, &link) != 0)
    return errno == ENOENT ? TL_OK : tl_npy_system_failed(file, errno);
  if (S_ISLNK(link.st_mode) && realpath(path, target) == NULL)
    return tl_npy_system_failed(file, errno);
  if (stat(target, old) != 0)
    return tl_npy_system_failed(file, errno);
  if (S_ISDIR(old->st_mode))
    return tl_npy_system_failed(file, EISDIR);
  if (!S_ISREG(old->st_mode))
    return tl_npy_failed(file,
                         tl_fail(file->error, TL_IO, "not a regular file"));
  if (access(target, W_OK) != 0)
    return tl_npy_system_failed(file, errno);
  *exists = true;
  return TL_OK;
}

tl_status tl_buffer_save_npy(tl_buffer *buffer, const char *path,
                             tl_error *error) {
  char header[TL_NPY_HEADER_ROOM], target[PATH_MAX], beside[PATH_MAX];
  tl_npy_file file = {.path = path,
                      .faults = tl_buffer_device(buffer)->options.faults,
                      .error = error};
  struct stat old;
  bool exists, reached;
  tl_status status = tl_npy_format(&buffer->layout, header, error);
  if (status != TL_OK)
    return tl_npy_failed(&file, status);
  status = tl_buffer_wait(buffer, -1, &reached, error);
  if (status == TL_OK)
    status = target_find(&file, target, &exists, &old);
  if (status == TL_OK)
    status =
        beside_open(&file, target, exists ? old.st_mode & 0777 : 0666, beside);
  if (status == TL_OK)
    status = beside_finish(&file, buffer, header, exists ? &old : NULL, beside,
                           target);
  return status;
}
