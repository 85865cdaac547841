/* Compiling at run time. */
#include "cuda/nvrtc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/library.h"

typedef struct nvrtc_program nvrtc_program;

/* nvrtc.h, as far as it is used. 0 is success. */
typedef struct nvrtc {
  int (*version)(int *major, int *minor);
  const char *(*error_string)(int result);
  int (*create)(nvrtc_program **program, const char *source, const char *name,
                int headers, const char *const *header_texts,
                const char *const *header_names);
  int (*destroy)(nvrtc_program **program);
  int (*compile)(nvrtc_program *program, int count, const char *const *options);
  int (*log_size)(nvrtc_program *program, size_t *size);
  int (*log)(nvrtc_program *program, char *text);
  int (*ptx_size)(nvrtc_program *program, size_t *size);
  int (*ptx)(nvrtc_program *program, char *text);
  int (*cubin_size)(nvrtc_program *program, size_t *size);
  int (*cubin)(nvrtc_program *program, char *image);
  int (*arch_count)(int *count);
  int (*archs)(int *capabilities);
} nvrtc;

static tl_status nvrtc_open(nvrtc *n, tl_error *error) {
  static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12",
                                      "libnvrtc.so.11.2", "libnvrtc.so", NULL};
  const tl_symbol symbols[] = {{"nvrtcVersion", &n->version},
                               {"nvrtcGetErrorString", &n->error_string},
                               {"nvrtcCreateProgram", &n->create},
                               {"nvrtcDestroyProgram", &n->destroy},
                               {"nvrtcCompileProgram", &n->compile},
                               {"nvrtcGetProgramLogSize", &n->log_size},
                               {"nvrtcGetProgramLog", &n->log},
                               {"nvrtcGetPTXSize", &n->ptx_size},
                               {"nvrtcGetPTX", &n->ptx},
                               {"nvrtcGetCUBINSize", &n->cubin_size},
                               {"nvrtcGetCUBIN", &n->cubin},
                               {"nvrtcGetNumSupportedArchs", &n->arch_count},
                               {"nvrtcGetSupportedArchs", &n->archs}};
  void *library;
  tl_status status =
      tl_library_open("cuda: no NVRTC library", names, &library, error);
  if (status != TL_OK)
    return status;
  return tl_library_read(library, symbols, sizeof symbols / sizeof *symbols,
                         "cuda: the NVRTC library",
                         "CUDA 11.2's or later is needed", error);
}

/* The newest capability that NVRTC knows and the device can run; 0: none. */
static int capability_choose(const nvrtc *n, int capability) {
  int count = 0, best = 0;
  int *known = n->arch_count(&count) == 0 && count > 0
                   ? malloc((size_t)count * sizeof *known)
                   : NULL;
  if (known != NULL && n->archs(known) == 0)
    for (int i = 0; i < count; i++)
      if (known[i] <= capability && known[i] > best)
        best = known[i];
  free(known);
  return best;
}

/* The first lines of the log: the whole of it can be pages. */
static tl_status log_report(const nvrtc *n, nvrtc_program *program,
                            const char *name, int result, tl_error *error) {
  size_t size = 0;
  char *text = NULL;
  if (n->log_size(program, &size) == 0 && size > 1 &&
      (text = malloc(size)) != NULL && n->log(program, text) != 0)
    text[0] = '\0';
  for (char *c = text; c != NULL && *c != '\0'; c++)
    if (*c == '\n')
      *c = ' ';
  tl_fail(error, TL_DRIVER, "cuda: nvrtc: %s: %s: %.400s", name,
          n->error_string(result), text != NULL ? text : "no log");
  free(text);
  return TL_DRIVER;
}

static tl_status image_read(const nvrtc *n, nvrtc_program *program, bool ptx,
                            void **image, tl_error *error) {
  size_t size = 0;
  int result = (ptx ? n->ptx_size : n->cubin_size)(program, &size);
  if (result == 0 && (*image = malloc(size + 1)) == NULL)
    return tl_fail(error, TL_OUT_OF_MEMORY,
                   "cuda: nvrtc: out of host memory (asked %zu bytes)", size);
  if (result == 0)
    result = (ptx ? n->ptx : n->cubin)(program, *image);
  if (result == 0)
    return TL_OK;
  free(*image);
  *image = NULL;
  return tl_fail(error, TL_DRIVER, "cuda: nvrtc: no code came out: %s",
                 n->error_string(result));
}

tl_status cuda_nvrtc_compile(const char *name, const char *source,
                             const char *header_name, const char *header,
                             int capability, void **image, tl_error *error) {
  *image = NULL;
  nvrtc n;
  nvrtc_program *program;
  tl_status status = nvrtc_open(&n, error);
  if (status != TL_OK)
    return status;
  int major = 0, minor = 0;
  n.version(&major, &minor);
  int chosen = capability_choose(&n, capability);
  if (chosen == 0)
    return tl_fail(error, TL_UNSUPPORTED,
                   "cuda: NVRTC %d.%d does not compile for capability %d.%d",
                   major, minor, capability / 10, capability % 10);
  bool ptx = chosen != capability;
  int result = n.create(&program, source, name, 1, &header, &header_name);
  if (result != 0)
    return tl_fail(error, TL_DRIVER, "cuda: nvrtc: nvrtcCreateProgram: %s",
                   n.error_string(result));
  char arch[48];
  snprintf(arch, sizeof arch, "--gpu-architecture=%s_%d",
           ptx ? "compute" : "sm", chosen);
  const char *const options[] = {arch, "--std=c++17"};
  result = n.compile(program, 2, options);
  status = result == 0 ? image_read(&n, program, ptx, image, error)
                       : log_report(&n, program, name, result, error);
  n.destroy(&program);
  return status;
}
