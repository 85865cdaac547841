// Question 1 in CUDA C: many launches of the naive product, each timed.
//   question1 [n] [launches]
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <time.h>
#include <vector>

enum { BLOCK = 16, PROBES = 5 };

// The row index from x, as in the question.
__global__ void naive(const double *a, const double *b, double *c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= n || j >= n)
    return;
  double sum = 0;
  for (int k = 0; k < n; k++)
    sum += a[(size_t)i * n + k] * b[(size_t)k * n + j];
  c[(size_t)i * n + j] = sum;
}

static double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

static void check(cudaError_t error) {
  if (error != cudaSuccess) {
    fprintf(stderr, "%s\n", cudaGetErrorString(error));
    exit(EXIT_FAILURE);
  }
}

static void say(const char *measure, int n,
                const std::vector<double> &samples) {
  std::vector<double> sorted = samples;
  std::sort(sorted.begin(), sorted.end());
  printf("{\"program\": \"c\", \"measure\": \"%s\", \"n\": %d, "
         "\"dtype\": \"float64\", \"value\": %.9g, \"unit\": \"s\", "
         "\"samples\": [",
         measure, n, sorted[sorted.size() / 2]);
  for (size_t i = 0; i < samples.size(); i++)
    printf("%s%.9g", i > 0 ? ", " : "", samples[i]);
  puts("]}");
}

static double *matrix_new(int n, double value) {
  std::vector<double> values((size_t)n * n, value);
  double *matrix;
  check(cudaMalloc(&matrix, values.size() * sizeof value));
  check(cudaMemcpy(matrix, values.data(), values.size() * sizeof value,
                   cudaMemcpyHostToDevice));
  return matrix;
}

int main(int count, char **arguments) {
  int n = count > 1 ? atoi(arguments[1]) : 2000;
  int launches = count > 2 ? atoi(arguments[2]) : 2000;
  double *a = matrix_new(n, 2), *b = matrix_new(n, 3), *c = matrix_new(n, 0);
  cudaStream_t stream;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  dim3 block(BLOCK, BLOCK),
      grid((n + BLOCK - 1) / BLOCK, (n + BLOCK - 1) / BLOCK);

  std::vector<double> kernel;
  for (int i = 0; i <= PROBES; i++) { // the first loads the kernel
    double start = now();
    naive<<<grid, block, 0, stream>>>(a, b, c, n);
    check(cudaStreamSynchronize(stream));
    if (i > 0)
      kernel.push_back(now() - start);
  }

  std::vector<double> costs(launches);
  double start = now(), before = start;
  for (double &cost : costs) {
    naive<<<grid, block, 0, stream>>>(a, b, c, n);
    double after = now();
    cost = after - before;
    before = after;
  }
  double launching = now() - start;
  check(cudaStreamSynchronize(stream));
  double total = now() - start;

  double element;
  check(cudaMemcpy(&element, c + (size_t)n * n - 1, sizeof element,
                   cudaMemcpyDeviceToHost));
  if (element != 6.0 * n) {
    fprintf(stderr, "the product is wrong: %g\n", element);
    return EXIT_FAILURE;
  }
  say("kernel", n, kernel);
  say("launch", n, costs);
  say("launching", n, {launching});
  say("total", n, {total});
  return EXIT_SUCCESS;
}
