/* Buffers: allocation that respects the collector, data in and out, views. */
#include "binding/binding.h"

#include <string.h>

/* ---- allocation ---------------------------------------------------------- */

/* Collects when this state's buffers would pass the soft limit. A collection
 * that frees less than a fifth doubles the limit; it is halved again, down to
 * what it was at first, when three quarters of it are not in use. */
static void collect_before(lua_State *L, int64_t nbytes) {
  tl_state *state = tl_getstate(L);
  while (state->soft_limit > TL_SOFT_LIMIT &&
         state->bytes < state->soft_limit / 4)
    state->soft_limit /= 2;
  if (state->bytes == 0 || nbytes < state->soft_limit - state->bytes)
    return;
  int64_t before = state->bytes;
  lua_gc(L, LUA_GCCOLLECT);
  if ((before - state->bytes) * 5 < before)
    state->soft_limit *= 2;
}

static tl_status create(lua_State *L, tl_device *device,
                        const tl_layout *layout, tl_buffer **buffer,
                        tl_error *error) {
  int64_t nbytes = tl_dtype_size(layout->dtype);
  for (int32_t i = 0; i < layout->dimensions; i++)
    if (layout->shape[i] > 0 && nbytes < INT64_MAX / layout->shape[i])
      nbytes *= layout->shape[i];
  collect_before(L, nbytes);
  tl_status status = tl_buffer_create(device, layout->dtype, layout->dimensions,
                                      layout->shape, buffer, error);
  if (status != TL_OUT_OF_MEMORY)
    return status;
  lua_gc(L, LUA_GCCOLLECT);
  return tl_buffer_create(device, layout->dtype, layout->dimensions,
                          layout->shape, buffer, error);
}

/* The references held meanwhile are dropped before anything can raise. */
tl_buffer *tl_pushbuffer(lua_State *L, tl_device *device, int32_t dtype,
                         int32_t dimensions, const int64_t *shape,
                         tl_buffer *keep_a, tl_buffer *keep_b) {
  tl_handle *handle = tl_newhandle(L, TL_BUFFER);
  tl_layout layout = {.dtype = dtype, .dimensions = dimensions};
  memcpy(layout.shape, shape, (size_t)dimensions * sizeof *shape);
  tl_buffer *buffer;
  tl_error error;
  tl_device_retain(device);
  if (keep_a != NULL)
    tl_buffer_retain(keep_a);
  if (keep_b != NULL)
    tl_buffer_retain(keep_b);
  tl_status status = create(L, device, &layout, &buffer, &error);
  tl_buffer_release(keep_a);
  tl_buffer_release(keep_b);
  tl_device_release(device);
  tl_check(L, status, &error);
  handle->bytes = tl_buffer_owned(buffer);
  tl_getstate(L)->bytes += handle->bytes;
  tl_setobject(L, handle, buffer, tl_buffer_device(buffer));
  return buffer;
}

static int buffer_close(lua_State *L) {
  tl_handle *handle = tl_checkhandle(L, 1, TL_BUFFER);
  tl_buffer *buffer = tl_takehandle(L, handle);
  if (buffer != NULL)
    tl_getstate(L)->bytes -= handle->bytes;
  tl_buffer_release(buffer);
  return 0;
}

/* ---- questions ----------------------------------------------------------- */

static tl_buffer *check_buffer(lua_State *L, tl_layout *layout) {
  tl_buffer *buffer = tl_checkobject(L, 1, TL_BUFFER);
  tl_buffer_layout(buffer, layout);
  return buffer;
}

static int buffer_shape(lua_State *L) {
  tl_layout layout;
  check_buffer(L, &layout);
  lua_createtable(L, layout.dimensions, 0);
  for (int32_t i = 0; i < layout.dimensions; i++) {
    lua_pushinteger(L, layout.shape[i]);
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}

static int buffer_len(lua_State *L) {
  tl_layout layout;
  check_buffer(L, &layout);
  lua_pushinteger(L, layout.shape[0]);
  return 1;
}

static int buffer_size(lua_State *L) {
  tl_layout layout;
  check_buffer(L, &layout);
  lua_pushinteger(L, layout.size);
  return 1;
}

static size_t layout_nbytes(const tl_layout *layout) {
  return (size_t)layout->size * (size_t)tl_dtype_size(layout->dtype);
}

static int buffer_nbytes(lua_State *L) {
  tl_layout layout;
  check_buffer(L, &layout);
  lua_pushinteger(L, (lua_Integer)layout_nbytes(&layout));
  return 1;
}

static int buffer_dtype(lua_State *L) {
  tl_layout layout;
  check_buffer(L, &layout);
  lua_pushstring(L, tl_dtype_name(layout.dtype));
  return 1;
}

static int buffer_device(lua_State *L) {
  tl_layout layout;
  tl_pushdevice(L, tl_buffer_device(check_buffer(L, &layout)));
  return 1;
}

static int buffer_tostring(lua_State *L) {
  tl_handle *handle = tl_checkhandle(L, 1, TL_BUFFER);
  if (handle->object == NULL) {
    lua_pushliteral(L, "buffer (closed)");
    return 1;
  }
  tl_layout layout;
  luaL_Buffer text;
  check_buffer(L, &layout);
  luaL_buffinit(L, &text);
  luaL_addstring(&text, "buffer ");
  for (int32_t i = 0; i < layout.dimensions; i++) {
    lua_pushfstring(L, i > 0 ? "x%I" : "%I", (LUAI_UACINT)layout.shape[i]);
    luaL_addvalue(&text);
  }
  lua_pushfstring(L, " %s on %s", tl_dtype_name(layout.dtype),
                  tl_device_id(tl_buffer_device(handle->object)));
  luaL_addvalue(&text);
  luaL_pushresult(&text);
  return 1;
}

/* ---- data in and out ----------------------------------------------------- */

static int buffer_upload(lua_State *L) {
  tl_layout layout;
  tl_error error;
  check_buffer(L, &layout);
  size_t nbytes = layout_nbytes(&layout);
  const void *data;
  if (lua_type(L, 2) == LUA_TSTRING) {
    size_t length;
    data = lua_tolstring(L, 2, &length);
    if (length % (size_t)tl_dtype_size(layout.dtype) != 0)
      return luaL_argerror(L, 2,
                           lua_pushfstring(L,
                                           "length %I is not a multiple of %d",
                                           (LUAI_UACINT)length,
                                           (int)tl_dtype_size(layout.dtype)));
    if (length != nbytes)
      return luaL_argerror(L, 2,
                           lua_pushfstring(L, "%I bytes wanted, got %I",
                                           (LUAI_UACINT)nbytes,
                                           (LUAI_UACINT)length));
  } else if (lua_istable(L, 2)) {
    unsigned char *elements = lua_newuserdatauv(L, nbytes, 0);
    tl_readtable(L, 2, &layout, elements);
    data = elements;
  } else {
    return luaL_typeerror(L, 2, "table or string");
  }
  tl_waitfor(L, 1, TL_BUFFER, -1);
  tl_check(L, tl_buffer_upload(check_buffer(L, &layout), data, nbytes, &error),
           &error);
  return 0;
}

static int buffer_tobytes(lua_State *L) {
  tl_layout layout;
  tl_error error;
  luaL_Buffer bytes;
  check_buffer(L, &layout);
  tl_waitfor(L, 1, TL_BUFFER, -1);
  size_t nbytes = layout_nbytes(&layout);
  char *room = luaL_buffinitsize(L, &bytes, nbytes);
  tl_check(L,
           tl_buffer_download(check_buffer(L, &layout), room, nbytes, &error),
           &error);
  luaL_pushresultsize(&bytes, nbytes);
  return 1;
}

static int buffer_totable(lua_State *L) {
  tl_layout layout;
  tl_error error;
  check_buffer(L, &layout);
  tl_waitfor(L, 1, TL_BUFFER, -1);
  size_t nbytes = layout_nbytes(&layout);
  unsigned char *elements = lua_newuserdatauv(L, nbytes, 0);
  tl_check(
      L, tl_buffer_download(check_buffer(L, &layout), elements, nbytes, &error),
      &error);
  tl_pushtable(L, &layout, elements);
  return 1;
}

/* Reads one index for each dimension, from 1, beginning at argument 2. */
static void check_index(lua_State *L, const tl_layout *layout, int64_t *index) {
  for (int32_t i = 0; i < layout->dimensions; i++) {
    lua_Integer given = luaL_checkinteger(L, 2 + i);
    if (given < 1 || given > layout->shape[i])
      luaL_argerror(L, 2 + i,
                    lua_pushfstring(L, "index must be 1 to %I, got %I",
                                    (LUAI_UACINT)layout->shape[i],
                                    (LUAI_UACINT)given));
    index[i] = given - 1;
  }
}

static int buffer_get(lua_State *L) {
  tl_layout layout;
  int64_t index[TL_MAX_DIMENSIONS];
  unsigned char element[TL_ELEMENT_ROOM];
  tl_error error;
  check_buffer(L, &layout);
  check_index(L, &layout, index);
  tl_waitfor(L, 1, TL_BUFFER, -1);
  tl_check(L, tl_buffer_get(check_buffer(L, &layout), index, element, &error),
           &error);
  lua_pushnumber(L, tl_dtype_unpack(layout.dtype, element));
  return 1;
}

static int buffer_set(lua_State *L) {
  tl_layout layout;
  int64_t index[TL_MAX_DIMENSIONS];
  unsigned char element[TL_ELEMENT_ROOM];
  tl_error error;
  check_buffer(L, &layout);
  check_index(L, &layout, index);
  luaL_checknumber(L, 2 + layout.dimensions);
  tl_packnumber(L, 2 + layout.dimensions, layout.dtype, element);
  tl_waitfor(L, 1, TL_BUFFER, -1);
  tl_check(L, tl_buffer_set(check_buffer(L, &layout), index, element, &error),
           &error);
  return 0;
}

/* ---- on the device ------------------------------------------------------- */

/* fill(value [, stream]) --> the buffer */
static int buffer_fill(lua_State *L) {
  tl_layout layout;
  tl_error error;
  tl_buffer *buffer;
  tl_stream *stream;
  unsigned char element[TL_ELEMENT_ROOM];
  luaL_checknumber(L, 2);
  do {
    buffer = check_buffer(L, &layout);
    tl_packnumber(L, 2, layout.dtype, element);
    stream =
        tl_readystream(L, tl_buffer_device(buffer), tl_optstream(L, 3), true);
  } while (stream == NULL);
  tl_check(L, tl_buffer_fill(buffer, element, stream, &error), &error);
  lua_settop(L, 1);
  return 1;
}

/* copy_from(source [, stream]) --> the buffer */
static int buffer_copy_from(lua_State *L) {
  tl_layout layout;
  tl_error error;
  tl_buffer *buffer, *source;
  tl_stream *stream;
  do {
    buffer = check_buffer(L, &layout);
    source = tl_checkobject(L, 2, TL_BUFFER);
    stream =
        tl_readystream(L, tl_buffer_device(buffer), tl_optstream(L, 3), true);
  } while (stream == NULL);
  tl_check(L, tl_buffer_copy(buffer, source, stream, &error), &error);
  lua_settop(L, 1);
  return 1;
}

/* clone([stream]) --> a new buffer, packed */
static int buffer_clone(lua_State *L) {
  tl_layout layout;
  tl_error error;
  tl_buffer *source = check_buffer(L, &layout);
  tl_stream *stream;
  tl_optstream(L, 2);
  lua_settop(L, 2);
  tl_buffer *copy =
      tl_pushbuffer(L, tl_buffer_device(source), layout.dtype,
                    layout.dimensions, layout.shape, source, NULL);
  do { /* a finalizer may have closed the source or the stream */
    source = check_buffer(L, &layout);
    stream =
        tl_readystream(L, tl_buffer_device(copy), tl_optstream(L, 2), true);
  } while (stream == NULL);
  tl_check(L, tl_buffer_copy(copy, source, stream, &error), &error);
  return 1;
}

/* ---- views --------------------------------------------------------------- */

static int push_view(lua_State *L, tl_buffer *buffer, int64_t offset,
                     int32_t dimensions, const int64_t *shape,
                     const int64_t *strides) {
  tl_error error;
  tl_buffer *view;
  tl_handle *handle = tl_newhandle(L, TL_BUFFER);
  tl_check(
      L,
      tl_buffer_view(buffer, offset, dimensions, shape, strides, &view, &error),
      &error);
  tl_setobject(L, handle, view, tl_buffer_device(view));
  return 1;
}

/* view{shape= [, offset=] [, stride=]} */
static int buffer_view(lua_State *L) {
  static const char *const fields[] = {"shape", "offset", "stride", NULL};
  tl_layout layout;
  tl_buffer *buffer = check_buffer(L, &layout);
  int64_t shape[TL_MAX_DIMENSIONS];
  int64_t strides[TL_MAX_DIMENSIONS] = {0};
  tl_checkfields(L, 2, fields);
  int64_t offset = tl_fieldinteger(L, 2, "offset", 0);
  if (!tl_getfield(L, 2, "shape"))
    return luaL_error(L, "option 'shape' is missing");
  int32_t dimensions = tl_readshape(L, -1, "shape", shape);
  if (!tl_getfield(L, 2, "stride"))
    return push_view(L, buffer, offset, dimensions, shape, NULL);
  int32_t given = tl_readshape(L, -1, "stride", strides);
  if (given == 1 && dimensions == 3) { /* planes follow each other */
    strides[1] = strides[0];
    if (shape[1] > 0 && strides[1] > INT64_MAX / shape[1])
      return luaL_error(L, "stride overflows");
    strides[0] = strides[1] * shape[1];
  } else if (given != dimensions - 1) {
    return luaL_error(L, "option 'stride': %d numbers wanted for %d dimensions",
                      (int)dimensions - 1, (int)dimensions);
  }
  return push_view(L, buffer, offset, dimensions, shape, strides);
}

/* reshape(shape) --> a view of the same elements */
static int buffer_reshape(lua_State *L) {
  tl_layout layout;
  tl_buffer *buffer = check_buffer(L, &layout);
  int64_t shape[TL_MAX_DIMENSIONS];
  int32_t dimensions = tl_checkshape(L, 2, shape);
  int64_t size = 1, packed = 1;
  for (int32_t i = 0; i < dimensions; i++) {
    if (shape[i] > 0 && size > INT64_MAX / shape[i])
      return luaL_argerror(L, 2, "size overflows");
    size *= shape[i];
  }
  if (size != layout.size)
    return luaL_argerror(L, 2,
                         lua_pushfstring(L, "%I elements do not go into %I",
                                         (LUAI_UACINT)layout.size,
                                         (LUAI_UACINT)size));
  for (int32_t i = layout.dimensions - 1; i >= 0; i--) {
    if (layout.size > 0 && layout.shape[i] > 1 && layout.stride[i] != packed)
      return luaL_error(L,
                        "reshape: the buffer's rows do not follow each other; "
                        "clone it first");
    packed *= layout.shape[i];
  }
  return push_view(L, buffer, 0, dimensions, shape, NULL);
}

static int buffer_eq(lua_State *L) {
  tl_handle *a = tl_testhandle(L, 1, TL_BUFFER);
  tl_handle *b = tl_testhandle(L, 2, TL_BUFFER);
  lua_pushboolean(L, a != NULL && b != NULL && a->object != NULL &&
                         a->object == b->object);
  return 1;
}

const luaL_Reg tl_buffer_methods[] = {
    {"shape", buffer_shape},
    {"size", buffer_size},
    {"nbytes", buffer_nbytes},
    {"dtype", buffer_dtype},
    {"device", buffer_device},
    {"upload", buffer_upload},
    {"totable", buffer_totable},
    {"tobytes", buffer_tobytes},
    {"get", buffer_get},
    {"set", buffer_set},
    {"fill", buffer_fill},
    {"copy_from", buffer_copy_from},
    {"clone", buffer_clone},
    {"view", buffer_view},
    {"reshape", buffer_reshape},
    {"close", buffer_close},
    {NULL, NULL},
};

const luaL_Reg tl_buffer_meta[] = {
    {"__gc", buffer_close},
    {"__close", buffer_close},
    {"__tostring", buffer_tostring},
    {"__len", buffer_len},
    {"__eq", buffer_eq},
    {NULL, NULL},
};
