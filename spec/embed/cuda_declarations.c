/* What src/cuda declares of the driver, against the toolkit's own headers: that
 * it compiles is the test. Built where cuda.h and cudaTypedefs.h are installed,
 * with TIDELOCK_OURS once and without it once; cuda_declarations_test.c
 * compares the sizes and places that both see. */
#include <stddef.h>

#ifdef TIDELOCK_OURS
#include "cuda/driver_types.h"
#define SIZES cuda_declarations_ours
#else
#include <cuda.h>
#include <cudaTypedefs.h>
#define SIZES cuda_declarations_theirs

/* The version that was asked for takes exactly these parameters. */
#define CUDA_OPTIONAL(name, version, parameters)                               \
  _Static_assert(__builtin_types_compatible_p(PFN_##name##_v##version,         \
                                              CUresult(*) parameters),         \
                 #name);
#define CUDA_FUNCTION CUDA_OPTIONAL
#include "cuda/driver_functions.h"
#endif

extern const size_t SIZES[];

#define AT(type, field) offsetof(type, field)
const size_t SIZES[] = {
    sizeof(CUdevice),
    sizeof(CUdeviceptr),
    sizeof(CUresult),
    sizeof(CUDA_MEMCPY3D),
    AT(CUDA_MEMCPY3D, srcMemoryType),
    AT(CUDA_MEMCPY3D, srcHost),
    AT(CUDA_MEMCPY3D, srcDevice),
    AT(CUDA_MEMCPY3D, srcPitch),
    AT(CUDA_MEMCPY3D, srcHeight),
    AT(CUDA_MEMCPY3D, dstMemoryType),
    AT(CUDA_MEMCPY3D, dstHost),
    AT(CUDA_MEMCPY3D, dstDevice),
    AT(CUDA_MEMCPY3D, dstPitch),
    AT(CUDA_MEMCPY3D, WidthInBytes),
    AT(CUDA_MEMCPY3D, Depth),
    sizeof(CUmemPoolProps),
    AT(CUmemPoolProps, location),
    AT(CUmemPoolProps, maxSize),
    CUDA_ERROR_OUT_OF_MEMORY,
    CUDA_ERROR_DEINITIALIZED,
    CUDA_ERROR_NO_DEVICE,
    CUDA_ERROR_ECC_UNCORRECTABLE,
    CUDA_ERROR_NVLINK_UNCORRECTABLE,
    CUDA_ERROR_CONTAINED,
    CUDA_ERROR_NOT_READY,
    CUDA_ERROR_ILLEGAL_ADDRESS,
    CUDA_ERROR_LAUNCH_TIMEOUT,
    CUDA_ERROR_CONTEXT_IS_DESTROYED,
    CUDA_ERROR_ASSERT,
    CUDA_ERROR_HARDWARE_STACK_ERROR,
    CUDA_ERROR_LAUNCH_FAILED,
    CUDA_ERROR_NOT_SUPPORTED,
    CUDA_ERROR_UNKNOWN,
    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
    CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X,
    CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z,
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK,
    CU_DEVICE_ATTRIBUTE_WARP_SIZE,
    CU_DEVICE_ATTRIBUTE_MAX_PITCH,
    CU_DEVICE_ATTRIBUTE_CLOCK_RATE,
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
    CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY,
    CU_DEVICE_ATTRIBUTE_PCI_BUS_ID,
    CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID,
    CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE,
    CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH,
    CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE,
    CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT,
    CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
    CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED,
    CU_FUNC_ATTRIBUTE_NUM_REGS,
    CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES,
    CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
    CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT,
    CU_MEMPOOL_ATTR_USED_MEM_CURRENT,
    CU_STREAM_NON_BLOCKING,
    CU_EVENT_DISABLE_TIMING,
    CU_MEMHOSTALLOC_PORTABLE,
    CU_MEMHOSTALLOC_DEVICEMAP,
    CU_MEMORYTYPE_HOST,
    CU_MEMORYTYPE_UNIFIED,
    CU_MEM_ALLOCATION_TYPE_PINNED,
    CU_MEM_HANDLE_TYPE_NONE,
    CU_MEM_LOCATION_TYPE_DEVICE,
    (size_t)-1, /* the end */
};
