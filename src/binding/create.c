/* What is made on a device: streams, events, buffers. */
#include "binding/binding.h"

/* The handle comes first, and the device is looked at after it: making a
 * userdata may run a finalizer, and that may close the device. */
static int create_stream(lua_State *L) {
  tl_stream *stream;
  tl_error error;
  tl_checkobject(L, 1, TL_DEVICE);
  tl_checkcount(L, 1);
  tl_handle *handle = tl_newhandle(L, TL_STREAM);
  tl_device *device = tl_checkobject(L, 1, TL_DEVICE);
  tl_check(L, tl_stream_create(device, &stream, &error), &error);
  tl_setobject(L, handle, stream, device);
  return 1;
}

static int create_default_stream(lua_State *L) {
  tl_stream *stream;
  tl_error error;
  tl_checkobject(L, 1, TL_DEVICE);
  tl_checkcount(L, 1);
  tl_handle *handle = tl_newhandle(L, TL_STREAM);
  tl_device *device = tl_checkobject(L, 1, TL_DEVICE);
  tl_check(L, tl_device_default_stream(device, &stream, &error), &error);
  tl_setobject(L, handle, stream, device);
  return 1;
}

static int create_event(lua_State *L) {
  static const char *const fields[] = {"timing", NULL};
  tl_event *event;
  tl_error error;
  bool timing = true;
  tl_checkobject(L, 1, TL_DEVICE);
  tl_checkcount(L, 2);
  if (!lua_isnoneornil(L, 2)) {
    tl_checkfields(L, 2, fields);
    timing = tl_fieldboolean(L, 2, "timing", true);
  }
  tl_handle *handle = tl_newhandle(L, TL_EVENT);
  tl_device *device = tl_checkobject(L, 1, TL_DEVICE);
  tl_check(L, tl_event_create(device, timing, &event, &error), &error);
  tl_setobject(L, handle, event, device);
  return 1;
}

/* What zeros, full, rand and randn may be told: a dtype and a stream, or a
 * table of both and, for the random ones, a seed. */
typedef struct fill_options {
  int32_t dtype;
  tl_stream *stream;
  int64_t seed;
} fill_options;

/* They begin at `arg`; nothing but nil may follow, up to `last`. */
static fill_options check_fill_options(lua_State *L, int arg, int last,
                                       bool random) {
  static const char *const fields[] = {"dtype", "stream", NULL};
  static const char *const random_fields[] = {"dtype", "seed", "stream", NULL};
  fill_options options = {.dtype = TL_FLOAT32};
  if (lua_istable(L, arg)) {
    tl_checkfields(L, arg, random ? random_fields : fields);
    if (tl_getfield(L, arg, "dtype")) {
      options.dtype = tl_readdtype(L, -1);
      lua_pop(L, 1);
    }
    if (random)
      options.seed = tl_fieldinteger(L, arg, "seed", 0);
    options.stream = tl_fieldstream(L, arg);
  } else {
    if (tl_testhandle(L, arg, TL_STREAM) == NULL)
      options.dtype = tl_optdtype(L, arg++);
    options.stream = tl_optstream(L, arg);
  }
  if (arg < last && !lua_isnil(L, arg + 1))
    luaL_argerror(L, arg + 1,
                  "nothing is expected after the stream or options");
  return options;
}

/* `value` is the index of the number. */
static int push_filled(lua_State *L, int value, int arg, int last) {
  int64_t shape[TL_MAX_DIMENSIONS];
  tl_error error;
  tl_stream *stream;
  tl_checkobject(L, 1, TL_DEVICE);
  int32_t dimensions = tl_checkshape(L, 2, shape);
  fill_options options = check_fill_options(L, arg, last, false);
  unsigned char element[TL_ELEMENT_ROOM];
  tl_checknumber(L, value, options.dtype, element);
  tl_buffer *buffer = tl_pushbuffer(L, 0, options.dtype, dimensions, shape);
  do {
    options = check_fill_options(L, arg, last, false);
    stream = tl_readystream(L, tl_checkobject(L, 1, TL_DEVICE), options.stream,
                            true);
  } while (stream == NULL);
  tl_check(L, tl_buffer_fill(buffer, element, stream, &error), &error);
  return 1;
}

static int create_zeros(lua_State *L) {
  tl_checkcount(L, 4);
  lua_settop(L, 4);
  lua_pushinteger(L, 0);
  return push_filled(L, 5, 3, 4);
}

static int create_full(lua_State *L) {
  tl_checkcount(L, 5);
  lua_settop(L, 5);
  return push_filled(L, 3, 4, 5);
}

static int push_random(lua_State *L, int32_t distribution) {
  int64_t shape[TL_MAX_DIMENSIONS];
  tl_error error;
  tl_stream *stream;
  tl_checkobject(L, 1, TL_DEVICE);
  tl_checkcount(L, 4);
  lua_settop(L, 4);
  int32_t dimensions = tl_checkshape(L, 2, shape);
  fill_options options = check_fill_options(L, 3, 4, true);
  tl_check(L, tl_random_check(options.dtype, distribution, &error), &error);
  tl_buffer *buffer = tl_pushbuffer(L, 0, options.dtype, dimensions, shape);
  do {
    options = check_fill_options(L, 3, 4, true);
    stream = tl_readystream(L, tl_checkobject(L, 1, TL_DEVICE), options.stream,
                            true);
  } while (stream == NULL);
  tl_check(L,
           tl_buffer_random(buffer, distribution, (uint64_t)options.seed,
                            stream, &error),
           &error);
  return 1;
}

static int create_rand(lua_State *L) {
  return push_random(L, TL_UNIFORM);
}

static int create_randn(lua_State *L) {
  return push_random(L, TL_NORMAL);
}

static int create_empty(lua_State *L) {
  int64_t shape[TL_MAX_DIMENSIONS];
  tl_checkobject(L, 1, TL_DEVICE);
  tl_checkcount(L, 3);
  int32_t dimensions = tl_checkshape(L, 2, shape);
  tl_pushbuffer(L, 0, tl_optdtype(L, 3), dimensions, shape);
  return 1;
}

/* pinned(shape [, dtype]): a buffer in memory of the host */
static int create_pinned(lua_State *L) {
  int64_t shape[TL_MAX_DIMENSIONS];
  tl_checkobject(L, 1, TL_DEVICE);
  tl_checkcount(L, 3);
  int32_t dimensions = tl_checkshape(L, 2, shape);
  tl_pushpinned(L, tl_optdtype(L, 3), dimensions, shape);
  return 1;
}

/* The packed elements of a table, in a userdata that is pushed; or those of a
 * string of whole elements. Fills the shape in. */
static const void *read_data(lua_State *L, int arg, int32_t dtype,
                             tl_layout *layout, size_t *nbytes) {
  size_t element = (size_t)tl_dtype_size(dtype);
  *layout = (tl_layout){.dtype = dtype, .dimensions = 1, .shape = {0, 1, 1}};
  if (lua_type(L, arg) == LUA_TSTRING) {
    const char *string = lua_tolstring(L, arg, nbytes);
    if (*nbytes % element != 0)
      luaL_argerror(L, arg,
                    lua_pushfstring(L, "length %I is not a multiple of %d",
                                    (LUAI_UACINT)*nbytes, (int)element));
    layout->shape[0] = (int64_t)(*nbytes / element);
    lua_pushnil(L);
    return string;
  }
  if (!lua_istable(L, arg))
    luaL_typeerror(L, arg, "table or string");
  layout->dimensions = tl_tableshape(L, arg, layout->shape);
  if (__builtin_mul_overflow(layout->shape[0], layout->shape[1],
                             &layout->size) ||
      __builtin_mul_overflow(layout->size, layout->shape[2], &layout->size) ||
      layout->size > INT64_MAX / (int64_t)element)
    luaL_argerror(L, arg, "size overflows");
  *nbytes = (size_t)layout->size * element;
  unsigned char *elements = lua_newuserdatauv(L, *nbytes, 0);
  tl_readtable(L, arg, layout, elements);
  return elements;
}

/* array(table | string [, dtype]): the contents are there at once. */
static int create_array(lua_State *L) {
  tl_layout layout;
  size_t nbytes;
  tl_error error;
  tl_checkobject(L, 1, TL_DEVICE);
  tl_checkcount(L, 3);
  const void *data = read_data(L, 2, tl_optdtype(L, 3), &layout, &nbytes);
  tl_buffer *buffer =
      tl_pushbuffer(L, 0, layout.dtype, layout.dimensions, layout.shape);
  tl_check(L, tl_buffer_upload(buffer, data, nbytes, &error), &error);
  return 1;
}

/* load_npy(path): the contents are there at once. What cannot be read is
 * refused before memory is asked for; no file is open while Lua may raise. */
static int create_load_npy(lua_State *L) {
  tl_layout layout;
  tl_error error;
  tl_checkobject(L, 1, TL_DEVICE);
  tl_checkcount(L, 2);
  luaL_checkstring(L, 2);
  const char *path = tl_readstring(L, 2, "path");
  tl_check(L, tl_npy_layout(path, &layout, &error), &error);
  tl_buffer *buffer =
      tl_pushbuffer(L, 0, layout.dtype, layout.dimensions, layout.shape);
  tl_check(L, tl_buffer_read_npy(buffer, path, &error), &error);
  return 1;
}

const luaL_Reg tl_create_methods[] = {
    {"stream", create_stream},     {"default_stream", create_default_stream},
    {"event", create_event},       {"zeros", create_zeros},
    {"full", create_full},         {"empty", create_empty},
    {"pinned", create_pinned},     {"array", create_array},
    {"rand", create_rand},         {"randn", create_randn},
    {"load_npy", create_load_npy}, {NULL, NULL},
};
