/* Data in and out of buffers, and fill and copy on the device. */
#include "binding/binding.h"

/* ---- data in and out ----------------------------------------------------- */

static int transfer_upload(lua_State *L) {
  tl_checkcount(L, 2);
  tl_layout layout;
  tl_error error;
  tl_checkbuffer(L, &layout);
  size_t nbytes = tl_layoutbytes(&layout);
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
  tl_check(L,
           tl_buffer_upload(tl_checkbuffer(L, &layout), data, nbytes, &error),
           &error);
  return 0;
}

static int transfer_tobytes(lua_State *L) {
  tl_checkcount(L, 1);
  tl_layout layout;
  tl_error error;
  luaL_Buffer bytes;
  tl_checkbuffer(L, &layout);
  tl_waitfor(L, 1, TL_BUFFER, -1);
  size_t nbytes = tl_layoutbytes(&layout);
  char *room = luaL_buffinitsize(L, &bytes, nbytes);
  tl_check(L,
           tl_buffer_download(tl_checkbuffer(L, &layout), room, nbytes, &error),
           &error);
  luaL_pushresultsize(&bytes, nbytes);
  return 1;
}

static int transfer_totable(lua_State *L) {
  tl_checkcount(L, 1);
  tl_layout layout;
  tl_error error;
  tl_checkbuffer(L, &layout);
  tl_waitfor(L, 1, TL_BUFFER, -1);
  size_t nbytes = tl_layoutbytes(&layout);
  unsigned char *elements = lua_newuserdatauv(L, nbytes, 0);
  tl_check(
      L,
      tl_buffer_download(tl_checkbuffer(L, &layout), elements, nbytes, &error),
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

static int transfer_get(lua_State *L) {
  tl_layout layout;
  int64_t index[TL_MAX_DIMENSIONS];
  unsigned char element[TL_ELEMENT_ROOM];
  tl_error error;
  tl_checkbuffer(L, &layout);
  tl_checkcount(L, 1 + layout.dimensions);
  check_index(L, &layout, index);
  tl_waitfor(L, 1, TL_BUFFER, -1);
  tl_check(L, tl_buffer_get(tl_checkbuffer(L, &layout), index, element, &error),
           &error);
  tl_pushelement(L, layout.dtype, element);
  return 1;
}

static int transfer_set(lua_State *L) {
  tl_layout layout;
  int64_t index[TL_MAX_DIMENSIONS];
  unsigned char element[TL_ELEMENT_ROOM];
  tl_error error;
  tl_checkbuffer(L, &layout);
  tl_checkcount(L, 2 + layout.dimensions);
  check_index(L, &layout, index);
  tl_checknumber(L, 2 + layout.dimensions, layout.dtype, element);
  tl_waitfor(L, 1, TL_BUFFER, -1);
  tl_check(L, tl_buffer_set(tl_checkbuffer(L, &layout), index, element, &error),
           &error);
  return 0;
}

/* save(path): a .npy file, old or new but never half. */
static int transfer_save(lua_State *L) {
  tl_layout layout;
  tl_error error;
  tl_checkbuffer(L, &layout);
  tl_checkcount(L, 2);
  luaL_checkstring(L, 2);
  const char *path = tl_readstring(L, 2, "path");
  tl_waitfor(L, 1, TL_BUFFER, -1);
  tl_check(L, tl_buffer_save_npy(tl_checkbuffer(L, &layout), path, &error),
           &error);
  return 0;
}

/* ---- on the device ------------------------------------------------------- */

/* fill(value [, stream]) --> the buffer */
static int transfer_fill(lua_State *L) {
  tl_layout layout;
  tl_error error;
  tl_buffer *buffer;
  tl_stream *stream;
  unsigned char element[TL_ELEMENT_ROOM];
  tl_checkbuffer(L, &layout);
  tl_checknumber(L, 2, layout.dtype, element);
  tl_checkcount(L, 3);
  do { /* reading options may run a finalizer, so the buffer comes last */
    stream = tl_optstream(L, 3);
    buffer = tl_checkbuffer(L, &layout);
    stream = tl_readystream(L, tl_buffer_device(buffer), stream, true);
  } while (stream == NULL);
  tl_check(L, tl_buffer_fill(buffer, element, stream, &error), &error);
  lua_settop(L, 1);
  return 1;
}

/* copy_from(source [, stream]) --> the buffer. From another device it waits, in
 * slices, for what still writes the source. */
static int transfer_copy_from(lua_State *L) {
  tl_layout layout;
  tl_error error;
  tl_buffer *buffer, *source;
  tl_stream *stream;
  buffer = tl_checkbuffer(L, &layout);
  source = tl_checkobject(L, 2, TL_BUFFER);
  tl_checkcount(L, 3);
  if (tl_buffer_device(buffer) != tl_buffer_device(source))
    tl_waitfor(L, 2, TL_BUFFER, -1);
  do {
    stream = tl_optstream(L, 3);
    buffer = tl_checkbuffer(L, &layout);
    source = tl_checkobject(L, 2, TL_BUFFER);
    stream = tl_readystream(L, tl_buffer_device(buffer), stream, true);
  } while (stream == NULL);
  tl_check(L, tl_buffer_copy(buffer, source, stream, &error), &error);
  lua_settop(L, 1);
  return 1;
}

/* upload_async(pinned | string [, stream]) --> the buffer */
static int transfer_upload_async(lua_State *L) {
  tl_layout layout;
  tl_error error;
  tl_buffer *buffer;
  tl_stream *stream;
  size_t nbytes = 0;
  tl_checkbuffer(L, &layout);
  tl_checkcount(L, 3);
  const char *bytes =
      lua_type(L, 2) == LUA_TSTRING ? lua_tolstring(L, 2, &nbytes) : NULL;
  if (bytes == NULL) {
    if (tl_testhandle(L, 2, TL_BUFFER) == NULL)
      return luaL_typeerror(L, 2, "pinned buffer or string");
    if (!tl_buffer_pinned(tl_checkobject(L, 2, TL_BUFFER)))
      return luaL_argerror(L, 2, "the buffer is not pinned: use copy_from");
  } else if (nbytes != tl_layoutbytes(&layout)) {
    return luaL_argerror(L, 2,
                         lua_pushfstring(L, "%I bytes wanted, got %I",
                                         (LUAI_UACINT)tl_layoutbytes(&layout),
                                         (LUAI_UACINT)nbytes));
  }
  do {
    stream = tl_optstream(L, 3);
    buffer = tl_checkbuffer(L, &layout);
    stream = tl_readystream(L, tl_buffer_device(buffer), stream, true);
  } while (stream == NULL);
  tl_check(L,
           bytes != NULL
               ? tl_buffer_upload_async(buffer, bytes, nbytes, stream, &error)
               : tl_buffer_copy(buffer, tl_checkobject(L, 2, TL_BUFFER), stream,
                                &error),
           &error);
  lua_settop(L, 1);
  return 1;
}

/* clone([stream]) --> a new buffer, packed */
static int transfer_clone(lua_State *L) {
  tl_layout layout;
  tl_error error;
  tl_buffer *source;
  tl_stream *stream;
  tl_checkbuffer(L, &layout);
  tl_checkcount(L, 2);
  lua_settop(L, 2);
  tl_optstream(L, 2);
  tl_buffer *copy =
      tl_pushbuffer(L, 1, layout.dtype, layout.dimensions, layout.shape);
  do {
    stream = tl_optstream(L, 2);
    source = tl_checkbuffer(L, &layout);
    stream = tl_readystream(L, tl_buffer_device(source), stream, true);
  } while (stream == NULL);
  tl_check(L, tl_buffer_copy(copy, source, stream, &error), &error);
  return 1;
}

const luaL_Reg tl_transfer_methods[] = {
    {"upload", transfer_upload},
    {"tobytes", transfer_tobytes},
    {"totable", transfer_totable},
    {"get", transfer_get},
    {"set", transfer_set},
    {"save", transfer_save},
    {"fill", transfer_fill},
    {"copy_from", transfer_copy_from},
    {"upload_async", transfer_upload_async},
    {"download_async", tl_download_async},
    {"clone", transfer_clone},
    {NULL, NULL},
};
