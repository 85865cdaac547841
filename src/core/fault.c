/* Fault injection: counts the uses of every site and fails the one that a test
 * has armed. A site is known by its name; the first use registers it. */
#include "core/backend.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { FAULT_SITES = 96 };

typedef struct fault_site {
  char name[40];
  int64_t uses;
  int64_t fail_at; /* the use that fails; 0: none */
  tl_status status;
} fault_site;

struct tl_faults {
  atomic_int references;
  pthread_mutex_t lock; /* guards what follows */
  int32_t count;
  fault_site sites[FAULT_SITES];
};

tl_status tl_faults_create(tl_faults **faults, tl_error *error) {
  *faults = tl_allocate(NULL, "allocate: faults", sizeof **faults, error);
  if (*faults == NULL)
    return TL_OUT_OF_MEMORY;
  atomic_init(&(*faults)->references, 1);
  pthread_mutex_init(&(*faults)->lock, NULL);
  return TL_OK;
}

void tl_faults_retain(tl_faults *faults) {
  atomic_fetch_add(&faults->references, 1);
}

void tl_faults_release(tl_faults *faults) {
  if (faults == NULL || atomic_fetch_sub(&faults->references, 1) != 1)
    return;
  pthread_mutex_destroy(&faults->lock);
  free(faults);
}

/* The site of that name, registered if it is new; NULL: there are too many. */
static fault_site *site_find(tl_faults *faults, const char *given) {
  char name[sizeof faults->sites[0].name] = ""; /* it may point into a site */
  strncpy(name, given, sizeof name - 1);
  for (int32_t i = 0; i < faults->count; i++)
    if (strcmp(faults->sites[i].name, name) == 0)
      return &faults->sites[i];
  if (faults->count == FAULT_SITES)
    return NULL;
  fault_site *site = &faults->sites[faults->count++];
  *site = (fault_site){.uses = 0};
  memcpy(site->name, name, sizeof name);
  return site;
}

void tl_faults_arm(tl_faults *faults, const char *name, int64_t nth,
                   int32_t status) {
  pthread_mutex_lock(&faults->lock);
  fault_site *site = site_find(faults, name);
  if (site != NULL) {
    site->fail_at = site->uses + nth;
    site->status = (tl_status)status;
  }
  pthread_mutex_unlock(&faults->lock);
}

void tl_faults_reset(tl_faults *faults) {
  pthread_mutex_lock(&faults->lock);
  faults->count = 0;
  pthread_mutex_unlock(&faults->lock);
}

const char *tl_faults_site(tl_faults *faults, int32_t index, int64_t *uses) {
  const char *name = NULL;
  *uses = 0;
  pthread_mutex_lock(&faults->lock);
  if (index >= 0 && index < faults->count) {
    name = faults->sites[index].name;
    *uses = faults->sites[index].uses;
  }
  pthread_mutex_unlock(&faults->lock);
  return name;
}

tl_status tl_fault(tl_faults *faults, const char *name, tl_error *error) {
  if (faults == NULL)
    return TL_OK;
  tl_status status = TL_OK;
  int64_t use = 0;
  pthread_mutex_lock(&faults->lock);
  fault_site *site = site_find(faults, name);
  if (site != NULL && (use = ++site->uses) == site->fail_at)
    status = site->status;
  pthread_mutex_unlock(&faults->lock);
  if (status == TL_OK)
    return TL_OK;
  return tl_fail(error, status, "%s: injected failure of use %lld", name,
                 (long long)use);
}

void *tl_allocate(tl_faults *faults, const char *site, size_t nbytes,
                  tl_error *error) {
  if (tl_fault(faults, site, error) != TL_OK)
    return NULL;
  void *memory = calloc(1, nbytes);
  if (memory == NULL)
    tl_fail(error, TL_OUT_OF_MEMORY, "%s: out of host memory (asked %zu bytes)",
            site, nbytes);
  return memory;
}
