/* Files put into the library as they are, by the assembler's .incbin. The build
 * tells the assembler where: -Wa,-I for the folder that holds kernels/, and for
 * the one with the fat binaries if TL_CUDA_FATBINS says that there are some. */
#include "cuda/embedded.h"

/* A hidden symbol for the file, with a zero byte behind it. */
#define EMBED(symbol, path)                                                    \
  __asm__(".section .rodata\n"                                                 \
          ".balign 64\n"                                                       \
          ".globl " #symbol "\n"                                               \
          ".hidden " #symbol "\n" #symbol ":\n"                                \
          ".incbin \"" path "\"\n"                                             \
          ".byte 0\n"                                                          \
          ".previous\n");                                                      \
  extern const char symbol[]

EMBED(tl_cuda_fill_source, "kernels/fill.cu");
EMBED(tl_cuda_matmul_source, "kernels/matmul.cu");
EMBED(tl_cuda_random_source, "kernels/random.cu");
EMBED(tl_cuda_time_source, "kernels/time.cu");
EMBED(tl_cuda_philox_source, "kernels/philox.h");

const char *const cuda_sources[CUDA_FILE_COUNT] = {
    [CUDA_FILE_FILL] = tl_cuda_fill_source,
    [CUDA_FILE_MATMUL] = tl_cuda_matmul_source,
    [CUDA_FILE_RANDOM] = tl_cuda_random_source,
    [CUDA_FILE_TIME] = tl_cuda_time_source,
};

const char *const cuda_file_names[CUDA_FILE_COUNT] = {
    [CUDA_FILE_FILL] = "fill.cu",
    [CUDA_FILE_MATMUL] = "matmul.cu",
    [CUDA_FILE_RANDOM] = "random.cu",
    [CUDA_FILE_TIME] = "time.cu",
};

const char *const cuda_philox_header = tl_cuda_philox_source;

#ifdef TL_CUDA_FATBINS
EMBED(tl_cuda_fill_fatbin, "fill.fatbin");
EMBED(tl_cuda_matmul_fatbin, "matmul.fatbin");
EMBED(tl_cuda_random_fatbin, "random.fatbin");
EMBED(tl_cuda_time_fatbin, "time.fatbin");

const void *const cuda_fatbins[CUDA_FILE_COUNT] = {
    [CUDA_FILE_FILL] = tl_cuda_fill_fatbin,
    [CUDA_FILE_MATMUL] = tl_cuda_matmul_fatbin,
    [CUDA_FILE_RANDOM] = tl_cuda_random_fatbin,
    [CUDA_FILE_TIME] = tl_cuda_time_fatbin,
};
#else
const void *const cuda_fatbins[CUDA_FILE_COUNT] = {NULL};
#endif
