/* Streams: what is enqueued on them, and waiting for them. */
#include "binding/binding.h"

static tl_stream *check_stream(lua_State *L) {
  return tl_checkobject(L, 1, TL_STREAM);
}

/* The device keeps its default stream, so the reference can go at once. */
static tl_stream *default_stream(lua_State *L, tl_device *device) {
  tl_stream *stream;
  tl_error error;
  tl_check(L, tl_device_default_stream(device, &stream, &error), &error);
  tl_stream_release(stream);
  return stream;
}

tl_stream *tl_readystream(lua_State *L, tl_device *device, tl_stream *stream,
                          bool slot) {
  tl_error error;
  bool reached;
  if (stream == NULL)
    stream = default_stream(L, device);
  tl_check(L, tl_stream_reserve(stream, slot, 0.05, &reached, &error), &error);
  if (!reached) {
    tl_poll(L);
    return NULL;
  }
  tl_locate(L, stream);
  return stream;
}

/* ---- methods ------------------------------------------------------------- */

static int stream_spin(lua_State *L) {
  tl_checkcount(L, 2);
  tl_error error;
  tl_stream *stream;
  double seconds = luaL_checknumber(L, 2);
  do {
    stream = check_stream(L);
    stream = tl_readystream(L, tl_stream_device(stream), stream, true);
  } while (stream == NULL);
  tl_check(L, tl_stream_spin(stream, seconds, &error), &error);
  return 0;
}

static int stream_synchronize(lua_State *L) {
  tl_checkcount(L, 2);
  lua_pushboolean(L, tl_waitfor(L, 1, TL_STREAM, tl_optseconds(L, 2)));
  return 1;
}

static int stream_done(lua_State *L) {
  bool done;
  tl_error error;
  tl_check(L, tl_stream_done(check_stream(L), &done, &error), &error);
  lua_pushboolean(L, done);
  return 1;
}

/* inflight() --> least, most */
static int stream_inflight(lua_State *L) {
  int64_t least, most;
  tl_error error;
  tl_check(L, tl_stream_inflight(check_stream(L), &least, &most, &error),
           &error);
  lua_pushinteger(L, least);
  lua_pushinteger(L, most);
  return 2;
}

static int stream_launches(lua_State *L) {
  lua_pushinteger(L, (lua_Integer)tl_stream_launches(check_stream(L)));
  return 1;
}

/* Puts a new event with timing at index 2. */
static void make_event(lua_State *L) {
  tl_event *event;
  tl_error error;
  tl_handle *handle = tl_newhandle(L, TL_EVENT);
  tl_device *device = tl_stream_device(check_stream(L));
  tl_check(L, tl_event_create(device, true, &event, &error), &error);
  tl_setobject(L, handle, event, device);
  lua_replace(L, 2);
}

/* record([event]) --> the event, or a new one with timing */
static int stream_record(lua_State *L) {
  tl_error error;
  tl_stream *stream = check_stream(L);
  tl_event *event;
  tl_checkcount(L, 2);
  lua_settop(L, 2);
  if (lua_isnil(L, 2))
    make_event(L);
  do {
    stream = check_stream(L);
    event = tl_checkobject(L, 2, TL_EVENT);
    if (tl_event_timing(event)) /* others have no place in the queue */
      stream = tl_readystream(L, tl_stream_device(stream), stream, true);
  } while (stream == NULL);
  tl_check(L, tl_stream_record(stream, event, &error), &error);
  return 1;
}

static int stream_wait_event(lua_State *L) {
  tl_checkcount(L, 2);
  tl_error error;
  tl_stream *stream;
  tl_event *event;
  do {
    stream = check_stream(L);
    event = tl_checkobject(L, 2, TL_EVENT);
    stream = tl_readystream(L, tl_stream_device(stream), stream, false);
  } while (stream == NULL);
  tl_check(L, tl_stream_wait_event(stream, event, &error), &error);
  return 0;
}

/* gate{timeout=} --> a closed gate */
static int stream_gate(lua_State *L) {
  tl_checkcount(L, 2);
  static const char *const fields[] = {"timeout", NULL};
  tl_error error;
  tl_stream *stream = check_stream(L);
  double timeout = 1;
  if (!lua_isnoneornil(L, 2)) {
    tl_checkfields(L, 2, fields);
    timeout = tl_fieldnumber(L, 2, "timeout", timeout);
  }
  tl_handle *handle = tl_newhandle(L, TL_GATE);
  tl_gate *gate;
  do {
    stream = check_stream(L);
    stream = tl_readystream(L, tl_stream_device(stream), stream, false);
  } while (stream == NULL);
  tl_check(L, tl_gate_create(stream, timeout, &gate, &error), &error);
  tl_setobject(L, handle, gate, tl_stream_device(stream));
  return 1;
}

static int stream_device(lua_State *L) {
  check_stream(L);
  return tl_devicemethod(L);
}

static int stream_close(lua_State *L) {
  tl_stream_release(tl_takehandle(L, tl_checkhandle(L, 1, TL_STREAM)));
  return 0;
}

static int stream_tostring(lua_State *L) {
  tl_handle *handle = tl_checkhandle(L, 1, TL_STREAM);
  if (handle->object == NULL)
    lua_pushliteral(L, "stream (closed)");
  else
    lua_pushfstring(L, "stream %I on %s",
                    (LUAI_UACINT)tl_stream_number(handle->object),
                    tl_device_id(tl_stream_device(handle->object)));
  return 1;
}

static int stream_eq(lua_State *L) {
  tl_handle *a = tl_testhandle(L, 1, TL_STREAM);
  tl_handle *b = tl_testhandle(L, 2, TL_STREAM);
  lua_pushboolean(L, a != NULL && b != NULL && a->object != NULL &&
                         a->object == b->object);
  return 1;
}

const luaL_Reg tl_stream_methods[] = {
    {"spin", stream_spin},
    {"synchronize", stream_synchronize},
    {"done", stream_done},
    {"inflight", stream_inflight},
    {"record", stream_record},
    {"wait_event", stream_wait_event},
    {"gate", stream_gate},
    {"device", stream_device},
    {"close", stream_close},
    {"launches", stream_launches},
    {NULL, NULL},
};

const luaL_Reg tl_stream_meta[] = {
    {"__gc", stream_close},
    {"__close", stream_close},
    {"__tostring", stream_tostring},
    {"__eq", stream_eq},
    {NULL, NULL},
};
