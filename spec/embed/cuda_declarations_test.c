/* src/cuda's types and numbers are those of the toolkit that is installed; its
 * functions were compared when cuda_declarations.c compiled. */
#include "tap.h"

extern const size_t cuda_declarations_ours[], cuda_declarations_theirs[];

static void same_sizes(void) {
  size_t count = 0;
  for (; cuda_declarations_ours[count] != (size_t)-1; count++)
    if (!expect(cuda_declarations_ours[count] ==
                cuda_declarations_theirs[count]))
      tap_note("  entry %zu: ours %zu, theirs %zu", count,
               cuda_declarations_ours[count], cuda_declarations_theirs[count]);
  expect(cuda_declarations_theirs[count] == (size_t)-1);
  expect(count > 60);
}

int main(void) {
  test("declares the driver as the toolkit does", same_sizes);
  return tap_end();
}
