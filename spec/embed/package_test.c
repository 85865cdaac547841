/* A program as an embedder has it, built from what is installed alone: a
 * product on the host. Prints one line; 0 when it is right. */
#include <stdio.h>
#include <tidelock.h>

static int fail(const tl_error *error) {
  fprintf(stderr, "%s\n", error->text);
  return 1;
}

int main(void) {
  static const int64_t shape[2] = {2, 2};
  static const float left[4] = {1, 2, 3, 4}, right[4] = {5, 6, 7, 8};
  float product[4] = {0};
  tl_error error;
  tl_device *device;
  tl_buffer *a, *b, *c;
  if (tl_device_open("host", NULL, &device, &error) != TL_OK)
    return fail(&error);
  if (tl_buffer_create(device, TL_FLOAT32, 2, shape, &a, &error) != TL_OK ||
      tl_buffer_create(device, TL_FLOAT32, 2, shape, &b, &error) != TL_OK ||
      tl_buffer_create(device, TL_FLOAT32, 2, shape, &c, &error) != TL_OK ||
      tl_buffer_upload(a, left, sizeof left, &error) != TL_OK ||
      tl_buffer_upload(b, right, sizeof right, &error) != TL_OK ||
      tl_matmul(a, b, c, NULL, &error) != TL_OK ||
      tl_buffer_download(c, product, sizeof product, &error) != TL_OK)
    return fail(&error);
  printf("%s %s: %g %g %g %g\n", tl_version(), tl_device_id(device), product[0],
         product[1], product[2], product[3]);
  tl_buffer_release(a);
  tl_buffer_release(b);
  tl_buffer_release(c);
  tl_device_release(device);
  return 0;
}
