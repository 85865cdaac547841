/* Classes: handles, their checks, and objects born while the state closes.
 *
 * An object made inside a finalizer while lua_close runs never sees its own
 * finalizer. So whatever is born inside a finalizer is also noted in the state
 * record, whose own finalizer, one of the last, releases what is left. */
#include "binding/binding.h"

#include <stddef.h>
#include <string.h>

static const char *const class_names[] = {
    [TL_DEVICE] = "device", [TL_BUFFER] = "buffer",   [TL_STREAM] = "stream",
    [TL_EVENT] = "event",   [TL_GATE] = "gate",       [TL_STAMP] = "stamp",
    [TL_FAULTS] = "faults", [TL_PENDING] = "pending",
};

static void object_release(ptrdiff_t class, void *object) {
  switch (class) {
  case TL_DEVICE:
  case TL_STAMP:
    tl_device_release(object);
    break;
  case TL_BUFFER:
    tl_buffer_release(object);
    break;
  case TL_STREAM:
    tl_stream_release(object);
    break;
  case TL_EVENT:
  case TL_PENDING:
    tl_event_release(object);
    break;
  case TL_GATE:
    tl_gate_release(object);
    break;
  case TL_FAULTS:
    tl_faults_release(object);
    break;
  default:
    break;
  }
}

tl_state *tl_getstate(lua_State *L) {
  return lua_touserdata(L, lua_upvalueindex(TL_STATE));
}

/* Inside a finalizer, and in lua_close, every option of lua_gc is refused. */
static bool in_finalizer(lua_State *L) {
  return lua_gc(L, LUA_GCCOUNT, 0) < 0;
}

void *tl_newobject(lua_State *L, tl_class class, size_t nbytes) {
  tl_state *state = tl_getstate(L);
  if (state->closing)
    luaL_error(L, "no new %s: the Lua state is closing", class_names[class]);
  tl_handle *handle = lua_newuserdatauv(L, nbytes, TL_KEEPS_PARENT);
  *handle = (tl_handle){.class = &class_names[class]};
  lua_pushvalue(L, lua_upvalueindex((int)class));
  lua_setmetatable(L, -2);
  handle->orphan = in_finalizer(L);
  if (handle->orphan) {
    handle->next = state->orphans;
    state->orphans = handle;
  }
  return handle;
}

tl_handle *tl_newhandle(lua_State *L, tl_class class) {
  return tl_newobject(L, class, sizeof(tl_handle));
}

void *tl_takehandle(lua_State *L, tl_handle *handle) {
  void *object = handle->object;
  handle->object = NULL;
  if (!handle->orphan)
    return object;
  tl_handle **link = &tl_getstate(L)->orphans;
  while (*link != NULL && *link != handle)
    link = &(*link)->next;
  if (*link != NULL)
    *link = handle->next;
  handle->orphan = false;
  return object;
}

tl_handle *tl_testhandle(lua_State *L, int arg, tl_class class) {
  tl_handle *handle = lua_touserdata(L, arg);
  bool same = handle != NULL && lua_rawlen(L, arg) >= sizeof *handle &&
              handle->class == &class_names[class];
  return same ? handle : NULL;
}

tl_handle *tl_checkhandle(lua_State *L, int arg, tl_class class) {
  tl_handle *handle = tl_testhandle(L, arg, class);
  if (handle == NULL)
    luaL_typeerror(L, arg, class_names[class]);
  return handle;
}

void *tl_checkobject(lua_State *L, int arg, tl_class class) {
  tl_handle *handle = tl_checkhandle(L, arg, class);
  if (handle->object == NULL)
    luaL_argerror(L, arg,
                  lua_pushfstring(L, "%s is closed", class_names[class]));
  return handle->object;
}

/* ---- methods written in Lua ----------------------------------------------
 */

/* Puts the table of the named class's methods on the stack. */
static void push_methods(lua_State *L, const char *name) {
  for (int class = TL_DEVICE; class < TL_STATE; class ++) {
    if (strcmp(name, class_names[class]) != 0)
      continue;
    lua_pushvalue(L, lua_upvalueindex(class));
    lua_getfield(L, -1, "__index");
    lua_remove(L, -2);
    return;
  }
  luaL_argerror(L, 1, lua_pushfstring(L, "no class is called '%s'", name));
}

/* extend(class, methods): what C has defined stays; a method that Lua has
 * defined is replaced, so that a module can be loaded twice. */
static int class_extend(lua_State *L) {
  tl_checkcount(L, 2);
  push_methods(L, luaL_checkstring(L, 1));
  luaL_checktype(L, 2, LUA_TTABLE);
  for (lua_pushnil(L); lua_next(L, 2) != 0; lua_pop(L, 1)) {
    if (lua_type(L, -2) != LUA_TSTRING || !lua_isfunction(L, -1))
      return luaL_argerror(L, 2, "functions by name wanted");
    lua_pushvalue(L, -2);
    lua_rawget(L, 3);
    if (lua_iscfunction(L, -1))
      return luaL_argerror(L, 2,
                           lua_pushfstring(L, "%s has a method '%s'",
                                           lua_tostring(L, 1),
                                           lua_tostring(L, -3)));
    lua_pop(L, 1);
    lua_pushvalue(L, -2);
    lua_pushvalue(L, -2);
    lua_rawset(L, 3);
  }
  return 0;
}

static const luaL_Reg class_functions[] = {{"extend", class_extend},
                                           {NULL, NULL}};

/* ---- the module ---------------------------------------------------------- */

static int state_gc(lua_State *L) {
  tl_state *state = lua_touserdata(L, 1);
  state->closing = true;
  for (tl_handle *h = state->orphans; h != NULL; h = h->next) {
    void *object = h->object;
    h->object = NULL;
    if (object != NULL)
      object_release(h->class - class_names, object);
  }
  state->orphans = NULL;
  return 0;
}

/* Pushes the state record. */
static void state_new(lua_State *L) {
  tl_state *state = lua_newuserdatauv(L, sizeof *state, 2);
  *state = (tl_state){.soft_limit = TL_SOFT_LIMIT};
  lua_getglobal(L, "error");
  state->error = lua_tocfunction(L, -1);
  lua_pop(L, 1);
  lua_createtable(L, 0, 1);
  lua_pushcfunction(L, state_gc);
  lua_setfield(L, -2, "__gc");
  lua_setmetatable(L, -2);
  lua_newtable(L);
  lua_createtable(L, 0, 1);
  lua_pushliteral(L, "v");
  lua_setfield(L, -2, "__mode");
  lua_setmetatable(L, -2);
  lua_setiuservalue(L, -2, TL_OPEN_DEVICES);
}

/* Adds the functions to the table at the top; the shared upvalues stand at
 * `first` and above. */
static void add_functions(lua_State *L, int first, const luaL_Reg *functions) {
  for (int i = 0; i < TL_STATE; i++)
    lua_pushvalue(L, first + i);
  luaL_setfuncs(L, functions, TL_STATE);
}

static void fill_class(lua_State *L, int first, tl_class class,
                       const luaL_Reg *meta, const luaL_Reg *methods,
                       const luaL_Reg *more) {
  lua_pushvalue(L, first + (int)class - 1);
  add_functions(L, first, meta);
  lua_newtable(L);
  add_functions(L, first, methods);
  if (more != NULL)
    add_functions(L, first, more);
  lua_setfield(L, -2, "__index");
  lua_pushfstring(L, "tidelock.%s", class_names[class]);
  lua_pushvalue(L, -1);
  lua_setfield(L, -3, "__metatable");
  lua_pop(L, 1);
  lua_pushstring(L, class_names[class]);
  lua_setfield(L, -2, "__name");
  lua_pop(L, 1);
}

/* Gives the methods of a class something behind them. */
static void add_missing(lua_State *L, int first, tl_class class,
                        const luaL_Reg *missing) {
  lua_getfield(L, first + (int)class - 1, "__index");
  lua_newtable(L);
  add_functions(L, first, missing);
  lua_setmetatable(L, -2);
  lua_pop(L, 1);
}

/* The module's table is kept in the registry: a second copy of the library, or
 * a second require under another name, gets the first one's. */
__attribute__((visibility("default"))) int luaopen_tidelock_core(lua_State *L);
int luaopen_tidelock_core(lua_State *L) {
  luaL_checkversion(L);
  if (lua_getfield(L, LUA_REGISTRYINDEX, "tidelock.core") == LUA_TTABLE)
    return 1;
  lua_settop(L, 0);
  luaL_checkstack(L, 3 * TL_STATE + 8, NULL);
  for (int class = TL_DEVICE; class < TL_STATE; class ++)
    lua_newtable(L);
  state_new(L);
  fill_class(L, 1, TL_DEVICE, tl_device_meta, tl_device_methods,
             tl_create_methods);
  fill_class(L, 1, TL_BUFFER, tl_buffer_meta, tl_buffer_methods,
             tl_transfer_methods);
  fill_class(L, 1, TL_STREAM, tl_stream_meta, tl_stream_methods, NULL);
  fill_class(L, 1, TL_EVENT, tl_event_meta, tl_event_methods, NULL);
  fill_class(L, 1, TL_GATE, tl_gate_meta, tl_gate_methods, NULL);
  fill_class(L, 1, TL_STAMP, tl_stamp_meta, tl_stamp_methods, NULL);
  fill_class(L, 1, TL_FAULTS, tl_faults_meta, tl_faults_methods, NULL);
  fill_class(L, 1, TL_PENDING, tl_pending_meta, tl_pending_methods, NULL);
  add_missing(L, 1, TL_BUFFER, tl_buffer_missing);
  lua_newtable(L);
  add_functions(L, 1, tl_device_functions);
  add_functions(L, 1, tl_matmul_functions);
  add_functions(L, 1, tl_warning_functions);
  add_functions(L, 1, tl_faults_functions);
  add_functions(L, 1, class_functions);
  lua_pushstring(L, tl_version());
  lua_setfield(L, -2, "version");
  lua_pushvalue(L, -1);
  lua_setfield(L, LUA_REGISTRYINDEX, "tidelock.core");
  return 1;
}
