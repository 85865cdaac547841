/* Buffers: allocation that respects the collector, questions, views. */
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
                        const tl_layout *layout, bool pinned,
                        tl_buffer **buffer, tl_error *error) {
  tl_status (*make)(tl_device *, int32_t, int32_t, const int64_t *,
                    tl_buffer **, tl_error *) =
      pinned ? tl_pinned_create : tl_buffer_create;
  int64_t nbytes = tl_dtype_size(layout->dtype);
  for (int32_t i = 0; i < layout->dimensions; i++)
    if (layout->shape[i] > 0 && nbytes < INT64_MAX / layout->shape[i])
      nbytes *= layout->shape[i];
  collect_before(L, nbytes);
  tl_memory_info memory; /* garbage goes before the core waits for work */
  if (!pinned && tl_device_memory(device, &memory, error) == TL_OK &&
      nbytes > memory.free)
    lua_gc(L, LUA_GCCOLLECT);
  tl_status status = make(device, layout->dtype, layout->dimensions,
                          layout->shape, buffer, error);
  if (status != TL_OUT_OF_MEMORY)
    return status;
  lua_gc(L, LUA_GCCOLLECT);
  return make(device, layout->dtype, layout->dimensions, layout->shape, buffer,
              error);
}

/* The references held meanwhile are dropped before anything can raise. */
static tl_buffer *push_new(lua_State *L, int buffers, int32_t dtype,
                           int32_t dimensions, const int64_t *shape,
                           bool pinned) {
  tl_buffer *keep[2] = {NULL, NULL};
  tl_layout layout = {.dtype = dtype, .dimensions = dimensions};
  memcpy(layout.shape, shape, (size_t)dimensions * sizeof *shape);
  tl_buffer *buffer;
  tl_error error;
  tl_handle *handle = tl_newhandle(L, TL_BUFFER);
  for (int i = 0; i < buffers; i++)
    keep[i] = tl_checkobject(L, i + 1, TL_BUFFER);
  tl_device *device =
      buffers > 0 ? tl_buffer_device(keep[0]) : tl_checkobject(L, 1, TL_DEVICE);
  tl_device_retain(device);
  for (int i = 0; i < buffers; i++)
    tl_buffer_retain(keep[i]);
  tl_status status = create(L, device, &layout, pinned, &buffer, &error);
  for (int i = 0; i < buffers; i++)
    tl_buffer_release(keep[i]);
  tl_device_release(device);
  tl_check(L, status, &error);
  handle->bytes = tl_buffer_owned(buffer);
  tl_getstate(L)->bytes += handle->bytes;
  tl_setobject(L, handle, buffer, tl_buffer_device(buffer));
  return buffer;
}

tl_buffer *tl_pushbuffer(lua_State *L, int buffers, int32_t dtype,
                         int32_t dimensions, const int64_t *shape) {
  return push_new(L, buffers, dtype, dimensions, shape, false);
}

tl_buffer *tl_pushpinned(lua_State *L, int32_t dtype, int32_t dimensions,
                         const int64_t *shape) {
  return push_new(L, 0, dtype, dimensions, shape, true);
}

static int buffer_close(lua_State *L) {
  tl_handle *handle = tl_checkhandle(L, 1, TL_BUFFER);
  tl_buffer *buffer = tl_takehandle(L, handle);
  if (buffer != NULL)
    tl_getstate(L)->bytes -= handle->bytes;
  tl_buffer_release(buffer);
  return 0;
}

tl_buffer *tl_checkbuffer(lua_State *L, tl_layout *layout) {
  tl_buffer *buffer = tl_checkobject(L, 1, TL_BUFFER);
  tl_buffer_layout(buffer, layout);
  return buffer;
}

size_t tl_layoutbytes(const tl_layout *layout) {
  return (size_t)layout->size * (size_t)tl_dtype_size(layout->dtype);
}

/* ---- questions ----------------------------------------------------------- */

static int buffer_shape(lua_State *L) {
  tl_layout layout;
  tl_checkbuffer(L, &layout);
  lua_createtable(L, layout.dimensions, 0);
  for (int32_t i = 0; i < layout.dimensions; i++) {
    lua_pushinteger(L, layout.shape[i]);
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}

static int buffer_len(lua_State *L) {
  tl_layout layout;
  tl_checkbuffer(L, &layout);
  lua_pushinteger(L, layout.shape[0]);
  return 1;
}

static int buffer_size(lua_State *L) {
  tl_layout layout;
  tl_checkbuffer(L, &layout);
  lua_pushinteger(L, layout.size);
  return 1;
}

static int buffer_nbytes(lua_State *L) {
  tl_layout layout;
  tl_checkbuffer(L, &layout);
  lua_pushinteger(L, (lua_Integer)tl_layoutbytes(&layout));
  return 1;
}

static int buffer_dtype(lua_State *L) {
  tl_layout layout;
  tl_checkbuffer(L, &layout);
  lua_pushstring(L, tl_dtype_name(layout.dtype));
  return 1;
}

static int buffer_device(lua_State *L) {
  tl_layout layout;
  tl_checkbuffer(L, &layout);
  return tl_devicemethod(L);
}

static int buffer_tostring(lua_State *L) {
  tl_handle *handle = tl_checkhandle(L, 1, TL_BUFFER);
  if (handle->object == NULL) {
    lua_pushliteral(L, "buffer (closed)");
    return 1;
  }
  tl_layout layout;
  luaL_Buffer text;
  tl_checkbuffer(L, &layout);
  luaL_buffinit(L, &text);
  luaL_addstring(&text, "buffer ");
  for (int32_t i = 0; i < layout.dimensions; i++) {
    lua_pushfstring(L, i > 0 ? "x%I" : "%I", (LUAI_UACINT)layout.shape[i]);
    luaL_addvalue(&text);
  }
  lua_pushfstring(L, " %s %s %s", tl_dtype_name(layout.dtype),
                  tl_buffer_pinned(handle->object) ? "pinned for" : "on",
                  tl_device_id(tl_buffer_device(handle->object)));
  luaL_addvalue(&text);
  luaL_pushresult(&text);
  return 1;
}

/* ---- views --------------------------------------------------------------- */

/* A view keeps the parent's userdata too: so its bytes stay counted. */
static int push_view(lua_State *L, int64_t offset, int32_t dimensions,
                     const int64_t *shape, const int64_t *strides) {
  tl_error error;
  tl_buffer *view;
  tl_layout layout;
  tl_handle *handle = tl_newhandle(L, TL_BUFFER);
  tl_buffer *buffer = tl_checkbuffer(L, &layout);
  tl_check(
      L,
      tl_buffer_view(buffer, offset, dimensions, shape, strides, &view, &error),
      &error);
  tl_setobject(L, handle, view, tl_buffer_device(view));
  lua_pushvalue(L, 1);
  lua_setiuservalue(L, -2, TL_KEEPS_PARENT);
  return 1;
}

/* view{shape= [, offset=] [, stride=]} */
static int buffer_view(lua_State *L) {
  tl_checkcount(L, 2);
  static const char *const fields[] = {"shape", "offset", "stride", NULL};
  tl_layout layout;
  tl_checkbuffer(L, &layout);
  int64_t shape[TL_MAX_DIMENSIONS];
  int64_t strides[TL_MAX_DIMENSIONS] = {0};
  tl_checkfields(L, 2, fields);
  int64_t offset = tl_fieldinteger(L, 2, "offset", 0);
  if (!tl_getfield(L, 2, "shape"))
    return luaL_error(L, "option 'shape' is missing");
  int32_t dimensions = tl_readshape(L, -1, "shape", shape);
  if (!tl_getfield(L, 2, "stride"))
    return push_view(L, offset, dimensions, shape, NULL);
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
  return push_view(L, offset, dimensions, shape, strides);
}

/* reshape(shape) --> a view of the same elements */
static int buffer_reshape(lua_State *L) {
  tl_checkcount(L, 2);
  tl_layout layout;
  tl_checkbuffer(L, &layout);
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
  return push_view(L, 0, dimensions, shape, NULL);
}

static int buffer_eq(lua_State *L) {
  tl_handle *a = tl_testhandle(L, 1, TL_BUFFER);
  tl_handle *b = tl_testhandle(L, 2, TL_BUFFER);
  lua_pushboolean(L, a != NULL && b != NULL && a->object != NULL &&
                         a->object == b->object);
  return 1;
}

/* A name that is no method; numbers mean that elements are wanted. */
static int buffer_missing(lua_State *L) {
  if (lua_type(L, 2) == LUA_TNUMBER)
    return luaL_error(L, "a buffer is not indexed: use get(i, j) or totable()");
  lua_pushnil(L);
  return 1;
}

const luaL_Reg tl_buffer_missing[] = {{"__index", buffer_missing},
                                      {NULL, NULL}};

const luaL_Reg tl_buffer_methods[] = {
    {"shape", buffer_shape},
    {"size", buffer_size},
    {"nbytes", buffer_nbytes},
    {"dtype", buffer_dtype},
    {"device", buffer_device},
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
