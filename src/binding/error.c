/* Failures and waits on Lua's side. */
#include "binding/binding.h"

#include <string.h>

/* ---- errors -------------------------------------------------------------- */

static int error_tostring(lua_State *L) {
  lua_getfield(L, 1, "where");
  lua_getfield(L, 1, "message");
  lua_concat(L, 2);
  return 1;
}

/* Pushes the error as a table with __tostring. */
static void push_error(lua_State *L, const tl_error *error) {
  lua_createtable(L, 0, 8);
  lua_pushstring(L, tl_status_name(error->code));
  lua_setfield(L, -2, "code");
  lua_pushstring(L, error->text);
  lua_setfield(L, -2, "message");
  luaL_where(L, 1);
  lua_setfield(L, -2, "where");
  if (error->code == TL_OUT_OF_MEMORY) {
    const struct {
      const char *name;
      int64_t value;
    } details[] = {{"asked", error->asked},
                   {"live", error->live},
                   {"free", error->free},
                   {"limit", error->limit},
                   {"buffers", error->buffers}};
    for (size_t i = 0; i < sizeof details / sizeof details[0]; i++) {
      lua_pushinteger(L, details[i].value);
      lua_setfield(L, -2, details[i].name);
    }
  }
  if (luaL_newmetatable(L, "tidelock.error")) {
    lua_pushcfunction(L, error_tostring);
    lua_setfield(L, -2, "__tostring");
  }
  lua_setmetatable(L, -2);
}

int tl_raise(lua_State *L, const tl_error *error) {
  if (error->code == TL_INVALID_ARGUMENT)
    return luaL_error(L, "%s", error->text);
  push_error(L, error);
  return lua_error(L);
}

void tl_check(lua_State *L, tl_status status, const tl_error *error) {
  if (status != TL_OK)
    tl_raise(L, error);
}

/* ---- waiting ------------------------------------------------------------- */

/* The standalone interpreter answers a signal by setting a hook; a call of any
 * function is what makes Lua look at it. */
static int nothing(lua_State *L) {
  (void)L;
  return 0;
}

void tl_poll(lua_State *L) {
  lua_pushcfunction(L, nothing);
  lua_call(L, 0, 0);
}

/* The longest that a wait stays away from Lua, in seconds. */
static const double slice = 0.05;

static tl_status wait_slice(tl_class class, void *object, double seconds,
                            bool *reached, tl_error *error) {
  switch (class) {
  case TL_DEVICE:
    return tl_device_synchronize(object, seconds, reached, error);
  case TL_STREAM:
    return tl_stream_synchronize(object, seconds, reached, error);
  case TL_EVENT:
  case TL_PENDING:
    return tl_event_synchronize(object, seconds, reached, error);
  default:
    return tl_buffer_wait(object, seconds, reached, error);
  }
}

/* A hook may have closed the object, so each slice checks it anew. */
bool tl_waitfor(lua_State *L, int arg, tl_class class, double seconds) {
  for (double left = seconds;; left -= slice) {
    bool reached;
    bool last = seconds >= 0 && left <= slice;
    tl_error error;
    void *object = tl_checkobject(L, arg, class);
    tl_check(L,
             wait_slice(class, object, last ? (left > 0 ? left : 0) : slice,
                        &reached, &error),
             &error);
    if (reached || last)
      return reached;
    tl_poll(L);
  }
}

void tl_report_cleanup(lua_State *L, tl_handle *device) {
  tl_error failure;
  if (device->object == NULL)
    return;
  int64_t failures = tl_device_cleanup_failures(device->object);
  if (failures == device->reported ||
      !tl_device_last_cleanup_error(device->object, &failure))
    return;
  device->reported = failures;
  lua_warning(L, "tidelock: ", 1);
  lua_warning(L, failure.text, 0);
}

/* The function that calls stands for its source: in a loop, only the line has
 * to be asked for. */
void tl_locate(lua_State *L, tl_stream *stream) {
  lua_Debug caller;
  if (!lua_getstack(L, 1, &caller) || !lua_getinfo(L, "fl", &caller))
    return;
  const void *function = lua_topointer(L, -1);
  lua_pop(L, 1);
  if (tl_stream_relocate(stream, function, caller.currentline))
    return;
  lua_getinfo(L, "S", &caller);
  tl_stream_locate(stream, caller.short_src, caller.currentline, function);
}
