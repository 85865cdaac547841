/* The kernels: included wherever the list is expanded, with
 * CUDA_KERNEL(id, file, name) defined. */

CUDA_KERNEL(CUDA_FILL_1, CUDA_FILE_FILL, "fill_1")
CUDA_KERNEL(CUDA_FILL_2, CUDA_FILE_FILL, "fill_2")
CUDA_KERNEL(CUDA_FILL_4, CUDA_FILE_FILL, "fill_4")
CUDA_KERNEL(CUDA_FILL_8, CUDA_FILE_FILL, "fill_8")

CUDA_KERNEL(CUDA_UNIFORM_FLOAT32, CUDA_FILE_RANDOM, "random_uniform_float32")
CUDA_KERNEL(CUDA_UNIFORM_FLOAT64, CUDA_FILE_RANDOM, "random_uniform_float64")
CUDA_KERNEL(CUDA_UNIFORM_FLOAT16, CUDA_FILE_RANDOM, "random_uniform_float16")
CUDA_KERNEL(CUDA_UNIFORM_BFLOAT16, CUDA_FILE_RANDOM, "random_uniform_bfloat16")
CUDA_KERNEL(CUDA_NORMAL_FLOAT32, CUDA_FILE_RANDOM, "random_normal_float32")
CUDA_KERNEL(CUDA_NORMAL_FLOAT64, CUDA_FILE_RANDOM, "random_normal_float64")
CUDA_KERNEL(CUDA_NORMAL_FLOAT16, CUDA_FILE_RANDOM, "random_normal_float16")
CUDA_KERNEL(CUDA_NORMAL_BFLOAT16, CUDA_FILE_RANDOM, "random_normal_bfloat16")

CUDA_KERNEL(CUDA_SPIN, CUDA_FILE_TIME, "spin")
CUDA_KERNEL(CUDA_GATE, CUDA_FILE_TIME, "gate")

/* By kernel, in the order of tl_matmul_type without tf32: matmul.c counts. */
#define CUDA_MATMUL(id, name)                                                  \
  CUDA_KERNEL(id##_FLOAT32, CUDA_FILE_MATMUL, "matmul_" name "_float32")       \
  CUDA_KERNEL(id##_FLOAT64, CUDA_FILE_MATMUL, "matmul_" name "_float64")
#define CUDA_MATMUL_ALL(id, name)                                              \
  CUDA_MATMUL(id, name)                                                        \
  CUDA_KERNEL(id##_FLOAT16, CUDA_FILE_MATMUL, "matmul_" name "_float16")       \
  CUDA_KERNEL(id##_FLOAT16_FLOAT32, CUDA_FILE_MATMUL,                          \
              "matmul_" name "_float16_float32")                               \
  CUDA_KERNEL(id##_BFLOAT16, CUDA_FILE_MATMUL, "matmul_" name "_bfloat16")     \
  CUDA_KERNEL(id##_BFLOAT16_FLOAT32, CUDA_FILE_MATMUL,                         \
              "matmul_" name "_bfloat16_float32")                              \
  CUDA_KERNEL(id##_INT32, CUDA_FILE_MATMUL, "matmul_" name "_int32")           \
  CUDA_KERNEL(id##_INT8_INT32, CUDA_FILE_MATMUL, "matmul_" name "_int8_int32")

CUDA_MATMUL_ALL(CUDA_MATMUL_NAIVE, "naive")
CUDA_MATMUL(CUDA_MATMUL_COALESCED, "coalesced")
CUDA_MATMUL_ALL(CUDA_MATMUL_TILED, "tiled")
CUDA_MATMUL(CUDA_MATMUL_REGISTER, "register")
#undef CUDA_MATMUL
#undef CUDA_MATMUL_ALL
