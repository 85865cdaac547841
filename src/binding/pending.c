/* Pending results: a download into pinned memory that is under way. */
#include "binding/binding.h"

static tl_event *check_pending(lua_State *L) {
  return tl_checkobject(L, 1, TL_PENDING);
}

/* download_async(pinned [, stream]) --> pending. The userdata keeps the pinned
 * buffer, and an event behind the copy. */
int tl_download_async(lua_State *L) {
  tl_layout layout;
  tl_error error;
  tl_event *event;
  tl_stream *stream;
  tl_buffer *buffer;
  tl_checkbuffer(L, &layout);
  tl_checkcount(L, 3);
  lua_settop(L, 3);
  if (!tl_buffer_pinned(tl_checkobject(L, 2, TL_BUFFER)))
    return luaL_argerror(L, 2, "the buffer is not pinned: use copy_from");
  tl_handle *handle = tl_newhandle(L, TL_PENDING);
  tl_device *device = tl_buffer_device(tl_checkbuffer(L, &layout));
  tl_check(L, tl_event_create(device, false, &event, &error), &error);
  tl_setobject(L, handle, event, device);
  lua_pushvalue(L, 2);
  lua_setiuservalue(L, 4, TL_KEEPS_PARENT);
  do {
    stream = tl_optstream(L, 3);
    buffer = tl_checkbuffer(L, &layout);
    stream = tl_readystream(L, tl_buffer_device(buffer), stream, true);
  } while (stream == NULL);
  tl_check(
      L,
      tl_buffer_copy(tl_checkobject(L, 2, TL_BUFFER), buffer, stream, &error),
      &error);
  tl_check(L, tl_stream_record(stream, event, &error), &error);
  return 1;
}

static int pending_done(lua_State *L) {
  bool done;
  tl_error error;
  tl_check(L, tl_event_done(check_pending(L), &done, &error), &error);
  lua_pushboolean(L, done);
  return 1;
}

/* synchronize([seconds]) --> true | false */
static int pending_synchronize(lua_State *L) {
  tl_checkcount(L, 2);
  lua_pushboolean(L, tl_waitfor(L, 1, TL_PENDING, tl_optseconds(L, 2)));
  return 1;
}

/* result() waits, and returns the pinned buffer with the data in it. */
static int pending_result(lua_State *L) {
  tl_checkcount(L, 1);
  tl_waitfor(L, 1, TL_PENDING, -1);
  lua_getiuservalue(L, 1, TL_KEEPS_PARENT);
  return 1;
}

static int pending_close(lua_State *L) {
  tl_event_release(tl_takehandle(L, tl_checkhandle(L, 1, TL_PENDING)));
  return 0;
}

static int pending_tostring(lua_State *L) {
  tl_handle *handle = tl_checkhandle(L, 1, TL_PENDING);
  if (handle->object == NULL)
    lua_pushliteral(L, "pending (closed)");
  else
    lua_pushfstring(L, "pending on %s",
                    tl_device_id(tl_event_device(handle->object)));
  return 1;
}

const luaL_Reg tl_pending_methods[] = {
    {"done", pending_done},
    {"synchronize", pending_synchronize},
    {"result", pending_result},
    {"close", pending_close},
    {NULL, NULL},
};

const luaL_Reg tl_pending_meta[] = {
    {"__gc", pending_close},
    {"__close", pending_close},
    {"__tostring", pending_tostring},
    {NULL, NULL},
};
