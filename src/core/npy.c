/* The .npy format: a strict reader of headers, their writer, and the
 * conversions of elements. Files are left to npy_load.c and
 * npy_save.c. */
#include "core/npy.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/buffer.h"

static const char magic[] = "\x93NUMPY";

bool tl_npy_machine_swaps(void) {
  const uint16_t one = 1;
  return *(const unsigned char *)&one == 0;
}

/* ---- dtypes ---------------------------------------------------------------
 */

/* What follows the byte order. */
static const struct {
  const char *code;
  int32_t dtype;
} dtypes[] = {
    {"f4", TL_FLOAT32}, {"f8", TL_FLOAT64}, {"f2", TL_FLOAT16},
    {"i4", TL_INT32},   {"i1", TL_INT8},
};

/* Those that NumPy has and we have not; one letter stands for any size. */
static const struct {
  const char *code, *name;
} foreign[] = {
    {"b1", "bool"},
    {"?", "bool"},
    {"i2", "int16"},
    {"i8", "int64"},
    {"u1", "uint8"},
    {"u2", "uint16"},
    {"u4", "uint32"},
    {"u8", "uint64"},
    {"f12", "longdouble"},
    {"f16", "longdouble"},
    {"c8", "complex64"},
    {"c16", "complex128"},
    {"c24", "complex"},
    {"c32", "complex"},
    {"S", "bytes"},
    {"a", "bytes"},
    {"U", "text"},
    {"O", "Python objects"},
    {"M", "dates"},
    {"m", "time spans"},
    {"V2", "raw bytes, as bfloat16 is saved"},
    {"V", "raw bytes"},
};

static const char *foreign_name(const char *code) {
  for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++)
    if (strcmp(code, foreign[i].code) == 0 ||
        (foreign[i].code[1] == '\0' && code[0] == foreign[i].code[0]))
      return foreign[i].name;
  return "unknown";
}

/* "<f4", ">f4", "=f4" or "f4"; a byte alone may have any mark, "|" too. */
static tl_status dtype_read(const char *descr, tl_npy_header *header,
                            tl_error *error) {
  char order = '=';
  const char *code = descr;
  if (descr[0] != '\0' && strchr("<>=|", descr[0]) != NULL)
    order = *code++;
  for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
    if (strcmp(code, dtypes[i].code) != 0)
      continue;
    bool single = tl_dtype_size(dtypes[i].dtype) == 1;
    if (order == '|' && !single)
      return tl_fail(error, TL_IO, "dtype '%s' has no byte order", descr);
    header->layout.dtype = dtypes[i].dtype;
    header->swapped =
        !single && order != '=' && (order == '>') != tl_npy_machine_swaps();
    return TL_OK;
  }
  return tl_fail(error, TL_UNSUPPORTED, "dtype '%s' (%s) is not supported",
                 descr, foreign_name(code));
}

/* ---- the dict -------------------------------------------------------------
 */

/* A place in the header's text. Everything from `next` to `end` is there. */
typedef struct text {
  const char *start, *next, *end;
  int version;
} text;

static tl_status text_fail(const text *t, tl_error *error, const char *wanted) {
  size_t at = (size_t)(t->next - t->start) + 1;
  if (t->next == t->end)
    return tl_fail(error, TL_IO, "the header ends where %s is wanted", wanted);
  unsigned char c = (unsigned char)*t->next;
  if (c >= ' ' && c <= '~')
    return tl_fail(error, TL_IO,
                   "the header has '%c' at %zu where %s is wanted", c, at,
                   wanted);
  return tl_fail(error, TL_IO,
                 "the header has byte 0x%02x at %zu where %s is wanted", c, at,
                 wanted);
}

static void skip_space(text *t) {
  while (t->next < t->end &&
         (*t->next == ' ' || *t->next == '\t' || *t->next == '\n'))
    t->next++;
}

/* Takes the character, behind spaces, if it comes next. */
static bool take(text *t, char c) {
  skip_space(t);
  if (t->next == t->end || *t->next != c)
    return false;
  t->next++;
  return true;
}

static bool take_word(text *t, const char *word) {
  size_t length = strlen(word);
  skip_space(t);
  if ((size_t)(t->end - t->next) < length || memcmp(t->next, word, length) != 0)
    return false;
  t->next += length;
  return true;
}

enum { STRING_ROOM = 32 };

/* A string in either quotes and without escapes. A longer one is cut; what
 * cannot be printed becomes '?': such a string is no key and no dtype. */
static tl_status read_string(text *t, char string[STRING_ROOM],
                             const char *wanted, tl_error *error) {
  char quote = take(t, '\'') ? '\'' : '"';
  if (quote == '"' && !take(t, '"'))
    return text_fail(t, error, wanted);
  size_t length = 0;
  for (; t->next < t->end && *t->next != quote; t->next++) {
    unsigned char c = (unsigned char)*t->next;
    if (c == '\\' || c == '\n')
      return text_fail(t, error, "a string without escapes");
    if (length < STRING_ROOM - 1)
      string[length++] = c >= ' ' && c <= '~' ? (char)c : '?';
  }
  string[length] = '\0';
  return take(t, quote) ? TL_OK : text_fail(t, error, "the end of a string");
}

/* A Python integer, as it stands in a shape. */
static tl_status read_size(text *t, int64_t *size, tl_error *error) {
  skip_space(t);
  if (t->next < t->end && *t->next == '-')
    return tl_fail(error, TL_IO, "the shape has a negative size");
  const char *first = t->next;
  *size = 0;
  for (; t->next < t->end && *t->next >= '0' && *t->next <= '9'; t->next++)
    if (__builtin_mul_overflow(*size, 10, size) ||
        __builtin_add_overflow(*size, *t->next - '0', size))
      return tl_fail(error, TL_IO, "the shape overflows");
  if (t->next == first)
    return text_fail(t, error, "a size");
  if (*first == '0' && t->next - first > 1)
    return tl_fail(error, TL_IO, "the shape has a size with a leading zero");
  /* NumPy under Python 2 wrote long integers so. */
  if (t->version < 3 && t->next < t->end && *t->next == 'L')
    t->next++;
  return TL_OK;
}

/* (), (3,), (3, 4), with or without a comma at the end where it is no single
 * one. */
static tl_status read_shape(text *t, tl_npy_header *header, tl_error *error) {
  int64_t shape[TL_MAX_DIMENSIONS] = {1};
  int32_t count = 0;
  bool comma = true;
  if (!take(t, '('))
    return text_fail(t, error, "a shape in parentheses");
  while (!take(t, ')')) {
    int64_t size = 0;
    if (!comma)
      return text_fail(t, error, "',' or ')'");
    if (read_size(t, &size, error) != TL_OK)
      return TL_IO;
    if (count < TL_MAX_DIMENSIONS)
      shape[count] = size;
    count++;
    comma = take(t, ',');
  }
  if (count == 1 && !comma)
    return tl_fail(error, TL_IO, "the shape is a number, not a tuple");
  if (count > TL_MAX_DIMENSIONS)
    return tl_fail(error, TL_UNSUPPORTED,
                   "%d dimensions are not supported, at most %d are",
                   (int)count, TL_MAX_DIMENSIONS);
  header->layout.dimensions = count > 0 ? count : 1;
  memcpy(header->layout.shape, shape, sizeof shape);
  return TL_OK;
}

static tl_status read_descr(text *t, tl_npy_header *header, tl_error *error) {
  char descr[STRING_ROOM];
  if (take(t, '[') || take(t, '('))
    return tl_fail(error, TL_UNSUPPORTED,
                   "a structured dtype is not supported");
  tl_status status = read_string(t, descr, "a dtype", error);
  return status == TL_OK ? dtype_read(descr, header, error) : status;
}

static tl_status read_order(text *t, tl_npy_header *header, tl_error *error) {
  header->column_order = take_word(t, "True");
  if (!header->column_order && !take_word(t, "False"))
    return text_fail(t, error, "True or False");
  return TL_OK;
}

static const struct {
  const char *key;
  tl_status (*read)(text *t, tl_npy_header *header, tl_error *error);
} entries[] = {
    {"descr", read_descr},
    {"fortran_order", read_order},
    {"shape", read_shape},
};

enum { ENTRY_COUNT = sizeof entries / sizeof entries[0] };

static tl_status read_entry(text *t, bool seen[ENTRY_COUNT],
                            tl_npy_header *header, tl_error *error) {
  char key[STRING_ROOM];
  if (read_string(t, key, "a key", error) != TL_OK)
    return TL_IO;
  if (!take(t, ':'))
    return text_fail(t, error, "':'");
  for (size_t i = 0; i < ENTRY_COUNT; i++) {
    if (strcmp(key, entries[i].key) != 0)
      continue;
    if (seen[i])
      return tl_fail(error, TL_IO, "the header has '%s' twice", key);
    seen[i] = true;
    return entries[i].read(t, header, error);
  }
  return tl_fail(error, TL_IO, "the header has an unknown key '%s'", key);
}

static tl_status read_dict(text *t, tl_npy_header *header, tl_error *error) {
  bool seen[ENTRY_COUNT] = {false};
  bool comma = true;
  if (!take(t, '{'))
    return text_fail(t, error, "'{'");
  while (!take(t, '}')) {
    if (!comma)
      return text_fail(t, error, "',' or '}'");
    tl_status status = read_entry(t, seen, header, error);
    if (status != TL_OK)
      return status;
    comma = take(t, ',');
  }
  for (size_t i = 0; i < ENTRY_COUNT; i++)
    if (!seen[i])
      return tl_fail(error, TL_IO, "the header has no '%s'", entries[i].key);
  skip_space(t);
  if (t->next < t->end)
    return text_fail(t, error, "its end");
  if (t->end[-1] != '\n')
    return tl_fail(error, TL_IO, "the header does not end its line");
  return TL_OK;
}

/* ---- the header -----------------------------------------------------------
 */

tl_status tl_npy_measure(const void *bytes, size_t n, size_t *data,
                         tl_error *error) {
  const unsigned char *b = bytes;
  size_t marked = sizeof magic - 1;
  *data = 0;
  if (n == 0 || memcmp(b, magic, n < marked ? n : marked) != 0)
    return tl_fail(error, TL_IO, "not a .npy file");
  size_t field = n > marked && b[marked] == 1 ? 2 : 4;
  size_t preamble = marked + 2 + field;
  if (n >= marked + 2 && (b[marked] < 1 || b[marked] > 3 || b[marked + 1] != 0))
    return tl_fail(error, TL_UNSUPPORTED,
                   ".npy version %d.%d is not supported, 1.0 to 3.0 are",
                   b[marked], b[marked + 1]);
  if (n < preamble)
    return tl_fail(error, TL_IO,
                   "truncated: the header's start has %zu bytes, the file %zu",
                   preamble, n);
  uint64_t length = 0;
  for (size_t i = 0; i < field; i++)
    length |= (uint64_t)b[marked + 2 + i] << (8 * i);
  if (length > TL_NPY_HEADER)
    return tl_fail(error, TL_UNSUPPORTED,
                   "a header of %" PRIu64
                   " bytes is not supported, at most %d are",
                   length, TL_NPY_HEADER);
  *data = preamble + (size_t)length;
  return TL_OK;
}

tl_status tl_npy_parse(const void *bytes, size_t n, tl_npy_header *header,
                       tl_error *error) {
  *header = (tl_npy_header){.layout.dtype = TL_FLOAT32};
  size_t data;
  tl_status status = tl_npy_measure(bytes, n, &data, error);
  if (status != TL_OK)
    return status;
  if (n < data)
    return tl_fail(error, TL_IO,
                   "truncated: %zu bytes of header wanted, the file has %zu",
                   data, n);
  const char *b = bytes;
  text t = {.version = b[sizeof magic - 1]};
  t.start = t.next = b + sizeof magic - 1 + 2 + (t.version == 1 ? 2 : 4);
  t.end = b + data;
  for (const char *c = t.start; c < t.end && t.version < 3; c++)
    if ((unsigned char)*c >= 0x80)
      return tl_fail(error, TL_IO, "the header has byte 0x%02x, not ASCII",
                     (unsigned char)*c);
  tl_npy_header found = {.data = data};
  status = read_dict(&t, &found, error);
  if (status != TL_OK)
    return status;
  found.column_order = found.column_order && found.layout.dimensions > 1;
  int64_t shape[TL_MAX_DIMENSIONS];
  memcpy(shape, found.layout.shape, sizeof shape);
  if (tl_layout_pack(found.layout.dtype, found.layout.dimensions, shape,
                     &found.layout, NULL) != TL_OK)
    return tl_fail(error, TL_IO, "the shape overflows");
  *header = found;
  return TL_OK;
}

tl_status tl_npy_format(const tl_layout *layout, char *header,
                        tl_error *error) {
  const char *code = NULL;
  for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++)
    if (dtypes[i].dtype == layout->dtype)
      code = dtypes[i].code;
  if (code == NULL)
    return tl_fail(error, TL_UNSUPPORTED, "%s has no .npy type",
                   tl_dtype_name(layout->dtype));
  char shape[3 * 22];
  size_t used = 0;
  for (int32_t i = 0; i < layout->dimensions; i++)
    used +=
        (size_t)snprintf(shape + used, sizeof shape - used,
                         i > 0 ? ", %" PRId64 : "%" PRId64, layout->shape[i]);
  size_t preamble = sizeof magic - 1 + 4;
  size_t length = TL_NPY_HEADER_ROOM - preamble;
  memset(header, ' ', TL_NPY_HEADER_ROOM);
  memcpy(header, magic, sizeof magic - 1);
  memcpy(header + sizeof magic - 1,
         (char[]){1, 0, (char)(length & 0xff), (char)(length >> 8)}, 4);
  int written =
      snprintf(header + preamble, length,
               "{'descr': '%c%s', 'fortran_order': False, 'shape': (%s%s), }",
               tl_dtype_size(layout->dtype) == 1 ? '|' : '<', code, shape,
               layout->dimensions == 1 ? "," : "");
  header[preamble + (size_t)written] = ' '; /* where the string ended */
  header[TL_NPY_HEADER_ROOM - 1] = '\n';
  return TL_OK;
}

/* ---- elements -------------------------------------------------------------
 */

void tl_npy_swap(void *elements, size_t count, size_t element) {
  unsigned char *next = elements;
  uint16_t two;
  uint32_t four;
  uint64_t eight;
  for (; count > 0 && element > 1; count--, next += element) {
    switch (element) {
    case 2:
      memcpy(&two, next, 2);
      two = __builtin_bswap16(two);
      memcpy(next, &two, 2);
      break;
    case 4:
      memcpy(&four, next, 4);
      four = __builtin_bswap32(four);
      memcpy(next, &four, 4);
      break;
    default:
      memcpy(&eight, next, 8);
      eight = __builtin_bswap64(eight);
      memcpy(next, &eight, 8);
    }
  }
}

/* Called with a constant, so that each copy is one load and one store. */
static inline void reorder(unsigned char *to, const unsigned char *from,
                           size_t i, size_t j, size_t k, size_t element) {
  for (size_t x = 0; x < i; x++)
    for (size_t y = 0; y < j; y++)
      for (size_t z = 0; z < k; z++, to += element)
        memcpy(to, from + ((z * j + y) * i + x) * element, element);
}

void tl_npy_reorder(void *to, const void *from, size_t i, size_t j, size_t k,
                    size_t element) {
  switch (element) {
  case 1:
    reorder(to, from, i, j, k, 1);
    break;
  case 2:
    reorder(to, from, i, j, k, 2);
    break;
  case 4:
    reorder(to, from, i, j, k, 4);
    break;
  default:
    reorder(to, from, i, j, k, 8);
  }
}
