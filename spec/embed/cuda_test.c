/* The CUDA device beside other users of the driver in one process: the caller's
 * current context, and a device that really faults. Needs a GPU, or the stub
 * (cuda_stub.c) in the place of the driver. */
#define _DEFAULT_SOURCE
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda/driver_types.h"
#include "tap.h"

/* The driver as another library of the process would use it. */
static struct {
  CUresult (*get)(const char *, void *, int, unsigned long long);
  CUresult (*current)(CUcontext *);
  CUresult (*set)(CUcontext);
  CUresult (*retain)(CUcontext *, CUdevice);
  CUresult (*load)(CUmodule *, const void *);
  CUresult (*function)(CUfunction *, CUmodule, const char *);
  CUresult (*launch)(CUfunction, unsigned int, unsigned int, unsigned int,
                     unsigned int, unsigned int, unsigned int, unsigned int,
                     CUstream, void **, void **);
} driver;

static bool driver_open(void) {
  tl_error reason;
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == NULL || !tl_device_available("cuda", &reason))
    return false;
  void *symbol = dlsym(library, "cuGetProcAddress");
  memcpy(&driver.get, &symbol, sizeof symbol);
  return driver.get("cuCtxGetCurrent", &driver.current, 4000, 0) == 0 &&
         driver.get("cuCtxSetCurrent", &driver.set, 4000, 0) == 0 &&
         driver.get("cuDevicePrimaryCtxRetain", &driver.retain, 7000, 0) == 0 &&
         driver.get("cuModuleLoadData", &driver.load, 2000, 0) == 0 &&
         driver.get("cuModuleGetFunction", &driver.function, 2000, 0) == 0 &&
         driver.get("cuLaunchKernel", &driver.launch, 4000, 0) == 0;
}

static CUcontext current(void) {
  CUcontext context = NULL;
  driver.current(&context);
  return context;
}

/* Everything that calls the driver, once. */
static void use_everything(CUcontext wanted) {
  tl_error error;
  tl_device *device;
  tl_stream *stream;
  tl_event *first, *last;
  tl_buffer *buffer, *copy, *pinned;
  tl_memory_info memory;
  tl_properties properties;
  tl_kernel_info kernel;
  bool done;
  double seconds;
  int64_t shape[] = {3, 5}, index[] = {2, 4};
  float numbers[15] = {0}, element = 7;
#define STEP(call)                                                             \
  do {                                                                         \
    expect_ok(call, &error);                                                   \
    expect(current() == wanted);                                               \
  } while (0)
  STEP(tl_device_open("cuda:0", NULL, &device, &error));
  STEP(tl_stream_create(device, &stream, &error));
  STEP(tl_event_create(device, true, &first, &error));
  STEP(tl_event_create(device, true, &last, &error));
  STEP(tl_buffer_create(device, TL_FLOAT32, 2, shape, &buffer, &error));
  STEP(tl_buffer_create(device, TL_FLOAT32, 2, shape, &copy, &error));
  STEP(tl_pinned_create(device, TL_FLOAT32, 2, shape, &pinned, &error));
  STEP(tl_stream_record(stream, first, &error));
  STEP(tl_buffer_fill(buffer, &element, stream, &error));
  STEP(tl_buffer_copy(copy, buffer, stream, &error));
  STEP(tl_buffer_copy(pinned, copy, stream, &error));
  STEP(tl_stream_spin(stream, 0, &error));
  STEP(tl_stream_record(stream, last, &error));
  STEP(tl_stream_wait_event(stream, last, &error));
  STEP(tl_stream_synchronize(stream, -1, &done, &error));
  STEP(tl_event_elapsed(first, last, &seconds, &error));
  STEP(tl_buffer_get(pinned, index, &element, &error));
  expect(element == 7);
  STEP(tl_buffer_upload(buffer, numbers, sizeof numbers, &error));
  STEP(tl_buffer_get(buffer, index, &element, &error));
  expect(element == 0);
  STEP(tl_device_memory(device, &memory, &error));
  STEP(tl_device_properties(device, &properties, &error));
  for (int32_t i = 0; tl_device_matmul_kernel(device, i, &kernel); i++)
    expect(current() == wanted);
  tl_buffer_release(buffer);
  tl_buffer_release(copy);
  tl_buffer_release(pinned);
  tl_event_release(first);
  tl_event_release(last);
  tl_stream_release(stream);
  STEP(tl_device_trim(device, &error));
  tl_device_release(device);
  expect(current() == wanted);
#undef STEP
}

static void keeps_context(void) {
  CUcontext context;
  if (!driver_open()) {
    tap_skip("no CUDA device");
    return;
  }
  driver.set(NULL);
  use_everything(NULL);
  expect(driver.retain(&context, 0) == CUDA_SUCCESS);
  driver.set(context);
  use_everything(context);
  driver.set(NULL);
}

/* A kernel that writes where there is no memory. */
static const char bad_kernel[] = ".version 6.4\n"
                                 ".target sm_70\n"
                                 ".address_size 64\n"
                                 ".visible .entry bad()\n"
                                 "{\n"
                                 "  .reg .u64 %place;\n"
                                 "  .reg .u32 %value;\n"
                                 "  mov.u64 %place, 64;\n"
                                 "  mov.u32 %value, 1;\n"
                                 "  st.global.u32 [%place], %value;\n"
                                 "  ret;\n"
                                 "}\n";

/* In a child: a lost device can't be had back in the same process. */
static void lose_device(void) {
  tl_error error, cause;
  tl_device *device, *host;
  tl_buffer *buffer, *other;
  CUmodule module;
  CUfunction bad;
  bool done;
  int64_t shape[] = {4}, index[] = {1};
  float element = 3;
  setenv("CUDA_STUB_FAIL", "cuStreamQuery:700", 1); /* where it is the stub */
  must(tl_device_open("cuda:0", NULL, &device, &error), &error);
  must(tl_buffer_create(device, TL_FLOAT32, 1, shape, &buffer, &error), &error);
  must(tl_buffer_fill(buffer, &element, NULL, &error), &error);
  CUcontext context;
  driver.retain(&context, 0);
  driver.set(context);
  if (driver.load(&module, bad_kernel) != CUDA_SUCCESS ||
      driver.function(&bad, module, "bad") != CUDA_SUCCESS ||
      driver.launch(bad, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL) != CUDA_SUCCESS)
    tap_bail("the bad kernel was not launched");
  driver.set(NULL);
  tl_status status = TL_OK; /* a fault may show a few calls later */
  for (int i = 0; i < 100 && status == TL_OK; i++) {
    usleep(10000);
    status = tl_buffer_get(buffer, index, &element, &error);
    if (status == TL_OK)
      status = tl_device_synchronize(device, 5, &done, &error);
  }
  expect(status == TL_DEVICE_LOST);
  expect(strstr(error.text, "CUDA_ERROR_ILLEGAL_ADDRESS") != NULL);
  expect(strstr(error.text, "cuda:0 is lost") != NULL);
  expect(strstr(error.text, "fill") != NULL); /* the last launch */
  expect(tl_device_is_lost(device, &cause));
  expect_fails(tl_buffer_fill(buffer, &element, NULL, &error), TL_DEVICE_LOST,
               cause.text, &error);
  expect_fails(tl_buffer_get(buffer, index, &element, &error), TL_DEVICE_LOST,
               cause.text, &error);
  expect_fails(tl_buffer_create(device, TL_FLOAT32, 1, shape, &other, &error),
               TL_DEVICE_LOST, cause.text, &error);
  tl_buffer_release(buffer);
  tl_device_release(device);
  must(tl_device_open("host", NULL, &host, &error), &error);
  element = 3;
  expect_ok(tl_buffer_create(host, TL_FLOAT32, 1, shape, &buffer, &error),
            &error);
  expect_ok(tl_buffer_fill(buffer, &element, NULL, &error), &error);
  expect_ok(tl_buffer_get(buffer, index, &element, &error), &error);
  expect(element == 3);
  tl_buffer_release(buffer);
  tl_device_release(host);
}

static const char *program;

static void repeats_cause(void) {
  if (driver.get == NULL) {
    tap_skip("no CUDA device");
    return;
  }
  pid_t child = fork();
  if (child == 0) {
    execl(program, program, "lose", (char *)NULL);
    _exit(127);
  }
  int status = -1;
  waitpid(child, &status, 0);
  expect(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(int count, char **arguments) {
  program = arguments[0];
  if (count > 1) {
    driver_open();
    lose_device();
    return tap.unmet > 0;
  }
  test("leaves the caller's current context as it was, none and its own",
       keeps_context);
  test(
      "repeats the root cause of a real illegal access, the host at work (E01)",
      repeats_cause);
  return tap_end();
}
