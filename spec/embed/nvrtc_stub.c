/* A stand-in for NVRTC: takes any source that includes philox.h or nothing, and
 * makes an image that the stand-in for the driver does not look at. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct program {
  int compiled;
} program;

#define PUBLIC __attribute__((visibility("default")))

PUBLIC int nvrtcVersion(int *major, int *minor);
PUBLIC const char *nvrtcGetErrorString(int result);
PUBLIC int nvrtcCreateProgram(program **out, const char *source,
                              const char *name, int headers,
                              const char *const *texts,
                              const char *const *names);
PUBLIC int nvrtcDestroyProgram(program **p);
PUBLIC int nvrtcCompileProgram(program *p, int count,
                               const char *const *options);
PUBLIC int nvrtcGetProgramLogSize(program *p, size_t *size);
PUBLIC int nvrtcGetProgramLog(program *p, char *text);
PUBLIC int nvrtcGetPTXSize(program *p, size_t *size);
PUBLIC int nvrtcGetPTX(program *p, char *text);
PUBLIC int nvrtcGetCUBINSize(program *p, size_t *size);
PUBLIC int nvrtcGetCUBIN(program *p, char *image);
PUBLIC int nvrtcGetNumSupportedArchs(int *count);
PUBLIC int nvrtcGetSupportedArchs(int *capabilities);

enum { SUCCESS = 0, INVALID_INPUT = 3, COMPILATION = 6 };
static const char image[] = "an image";

int nvrtcVersion(int *major, int *minor) {
  *major = 13;
  *minor = 0;
  return SUCCESS;
}

const char *nvrtcGetErrorString(int result) {
  return result == COMPILATION ? "NVRTC_ERROR_COMPILATION" : "NVRTC_ERROR";
}

int nvrtcCreateProgram(program **out, const char *source, const char *name,
                       int headers, const char *const *texts,
                       const char *const *names) {
  const char *include = strstr(source, "#include");
  if (strstr(name, ".cu") == NULL || headers != 1 ||
      strstr(texts[0], "PHILOX_FUNCTION") == NULL ||
      (include != NULL && strstr(include, names[0]) == NULL))
    return INVALID_INPUT;
  *out = calloc(1, sizeof **out);
  return SUCCESS;
}

int nvrtcDestroyProgram(program **p) {
  free(*p);
  *p = NULL;
  return SUCCESS;
}

int nvrtcCompileProgram(program *p, int count, const char *const *options) {
  int capability = 0;
  p->compiled =
      count > 0 &&
      sscanf(options[0], "--gpu-architecture=sm_%d", &capability) == 1 &&
      capability == 90;
  return p->compiled ? SUCCESS : COMPILATION;
}

int nvrtcGetProgramLogSize(program *p, size_t *size) {
  (void)p;
  *size = 1;
  return SUCCESS;
}

int nvrtcGetProgramLog(program *p, char *text) {
  (void)p;
  *text = '\0';
  return SUCCESS;
}

int nvrtcGetCUBINSize(program *p, size_t *size) {
  *size = sizeof image;
  return p->compiled ? SUCCESS : COMPILATION;
}

int nvrtcGetCUBIN(program *p, char *to) {
  memcpy(to, image, sizeof image);
  return p->compiled ? SUCCESS : COMPILATION;
}

int nvrtcGetPTXSize(program *p, size_t *size) {
  return nvrtcGetCUBINSize(p, size);
}

int nvrtcGetPTX(program *p, char *text) {
  return nvrtcGetCUBIN(p, text);
}

int nvrtcGetNumSupportedArchs(int *count) {
  *count = 3;
  return SUCCESS;
}

int nvrtcGetSupportedArchs(int *capabilities) {
  capabilities[0] = 75;
  capabilities[1] = 90;
  capabilities[2] = 120;
  return SUCCESS;
}
