/* The driver's entry points: included wherever the list is expanded, with these
 * defined: CUDA_FUNCTION(name, version, parameters), and CUDA_OPTIONAL of the
 * same form for what there is a way round. Each is the function that cuda.h
 * meant by this name at this version (11030 is CUDA 11.3): its later versions
 * may take other parameters. Versions: cudaTypedefs.h of the toolkit, which
 * spec/embed/cuda_declarations.c compares this file with. */

CUDA_FUNCTION(cuGetErrorName, 6000, (CUresult, const char **))
CUDA_FUNCTION(cuGetErrorString, 6000, (CUresult, const char **))
CUDA_FUNCTION(cuInit, 2000, (unsigned int))
CUDA_FUNCTION(cuDeviceGetCount, 2000, (int *))
CUDA_FUNCTION(cuDeviceGet, 2000, (CUdevice *, int))
CUDA_FUNCTION(cuDeviceGetName, 2000, (char *, int, CUdevice))
CUDA_FUNCTION(cuDeviceGetAttribute, 2000, (int *, CUdevice_attribute, CUdevice))
CUDA_FUNCTION(cuDeviceTotalMem, 3020, (size_t *, CUdevice))
CUDA_FUNCTION(cuDeviceGetPCIBusId, 4010, (char *, int, CUdevice))

CUDA_FUNCTION(cuDevicePrimaryCtxRetain, 7000, (CUcontext *, CUdevice))
CUDA_FUNCTION(cuCtxGetCurrent, 4000, (CUcontext *))
CUDA_FUNCTION(cuCtxSetCurrent, 4000, (CUcontext))

CUDA_FUNCTION(cuMemGetInfo, 3020, (size_t *, size_t *))
CUDA_FUNCTION(cuMemAlloc, 3020, (CUdeviceptr *, size_t))
CUDA_FUNCTION(cuMemFree, 3020, (CUdeviceptr))
CUDA_FUNCTION(cuMemHostAlloc, 2020, (void **, size_t, unsigned int))
CUDA_FUNCTION(cuMemHostGetDevicePointer, 3020,
              (CUdeviceptr *, void *, unsigned int))
CUDA_FUNCTION(cuMemFreeHost, 2000, (void *))
CUDA_OPTIONAL(cuMemPoolCreate, 11020, (CUmemoryPool *, const CUmemPoolProps *))
CUDA_OPTIONAL(cuMemPoolDestroy, 11020, (CUmemoryPool))
CUDA_OPTIONAL(cuMemPoolSetAttribute, 11020,
              (CUmemoryPool, CUmemPool_attribute, void *))
CUDA_OPTIONAL(cuMemPoolGetAttribute, 11020,
              (CUmemoryPool, CUmemPool_attribute, void *))
CUDA_OPTIONAL(cuMemPoolTrimTo, 11020, (CUmemoryPool, size_t))
CUDA_OPTIONAL(cuMemAllocFromPoolAsync, 11020,
              (CUdeviceptr *, size_t, CUmemoryPool, CUstream))
CUDA_OPTIONAL(cuMemFreeAsync, 11020, (CUdeviceptr, CUstream))

CUDA_FUNCTION(cuMemcpyAsync, 4000, (CUdeviceptr, CUdeviceptr, size_t, CUstream))
CUDA_FUNCTION(cuMemcpy3DAsync, 3020, (const CUDA_MEMCPY3D *, CUstream))

CUDA_FUNCTION(cuStreamCreate, 2000, (CUstream *, unsigned int))
CUDA_FUNCTION(cuStreamDestroy, 4000, (CUstream))
CUDA_FUNCTION(cuStreamQuery, 2000, (CUstream))
CUDA_FUNCTION(cuStreamSynchronize, 2000, (CUstream))
CUDA_FUNCTION(cuStreamWaitEvent, 3020, (CUstream, CUevent, unsigned int))

CUDA_FUNCTION(cuEventCreate, 2000, (CUevent *, unsigned int))
CUDA_FUNCTION(cuEventDestroy, 4000, (CUevent))
CUDA_FUNCTION(cuEventRecord, 2000, (CUevent, CUstream))
CUDA_FUNCTION(cuEventQuery, 2000, (CUevent))
CUDA_FUNCTION(cuEventElapsedTime, 2000, (float *, CUevent, CUevent))

CUDA_FUNCTION(cuModuleLoadData, 2000, (CUmodule *, const void *))
CUDA_FUNCTION(cuModuleGetFunction, 2000, (CUfunction *, CUmodule, const char *))
CUDA_FUNCTION(cuFuncGetAttribute, 2020,
              (int *, CUfunction_attribute, CUfunction))
CUDA_FUNCTION(cuLaunchKernel, 4000,
              (CUfunction, unsigned int, unsigned int, unsigned int,
               unsigned int, unsigned int, unsigned int, unsigned int, CUstream,
               void **, void **))
