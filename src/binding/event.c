/* Events: questions, waiting, and the time between two of them. */
#include "binding/binding.h"

static tl_event *check_event(lua_State *L, int arg) {
  return tl_checkobject(L, arg, TL_EVENT);
}

/* done() --> true | false | nil, reason */
static int event_done(lua_State *L) {
  bool done;
  tl_error error;
  tl_event *event = check_event(L, 1);
  if (!tl_event_recorded(event)) {
    lua_pushnil(L);
    lua_pushliteral(L, "the event was never recorded");
    return 2;
  }
  tl_check(L, tl_event_done(event, &done, &error), &error);
  lua_pushboolean(L, done);
  return 1;
}

static int event_synchronize(lua_State *L) {
  tl_checkcount(L, 2);
  lua_pushboolean(L, tl_waitfor(L, 1, TL_EVENT, tl_optseconds(L, 2)));
  return 1;
}

/* later - earlier --> seconds by the device's clock */
static int event_sub(lua_State *L) {
  double seconds;
  tl_error error;
  tl_event *later = check_event(L, 1), *earlier = check_event(L, 2);
  tl_check(L, tl_event_elapsed(earlier, later, &seconds, &error), &error);
  lua_pushnumber(L, seconds);
  return 1;
}

static int event_device(lua_State *L) {
  check_event(L, 1);
  return tl_devicemethod(L);
}

static int event_close(lua_State *L) {
  tl_event_release(tl_takehandle(L, tl_checkhandle(L, 1, TL_EVENT)));
  return 0;
}

static int event_tostring(lua_State *L) {
  tl_handle *handle = tl_checkhandle(L, 1, TL_EVENT);
  if (handle->object == NULL)
    lua_pushliteral(L, "event (closed)");
  else
    lua_pushfstring(L, "event on %s, %s%s",
                    tl_device_id(tl_event_device(handle->object)),
                    tl_event_recorded(handle->object) ? "recorded" : "new",
                    tl_event_timing(handle->object) ? "" : ", without timing");
  return 1;
}

const luaL_Reg tl_event_methods[] = {
    {"done", event_done},
    {"synchronize", event_synchronize},
    {"device", event_device},
    {"close", event_close},
    {NULL, NULL},
};

const luaL_Reg tl_event_meta[] = {
    {"__gc", event_close},
    {"__close", event_close},
    {"__tostring", event_tostring},
    {"__sub", event_sub},
    {NULL, NULL},
};
