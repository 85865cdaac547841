/* A library of cuBLAS's name with nothing in it that tidelock looks for. */
__attribute__((visibility("default"))) int cublas_broken(void);

int cublas_broken(void) {
  return 0;
}
