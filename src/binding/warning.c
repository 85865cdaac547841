/* Warnings: handed to the state's handler, from ordinary Lua calls only. */
#include "binding/binding.h"

/* Stack: `details` is the index of a table. Pushes nothing; the handler's
 * results are dropped. The continuation runs in any case. */
int tl_warn(lua_State *L, const char *code, const char *message, int details,
            lua_KContext context, lua_KFunction k) {
  details = lua_absindex(L, details);
  lua_getiuservalue(L, lua_upvalueindex(TL_STATE), TL_WARNING_HANDLER);
  if (lua_isnil(L, -1)) {
    lua_pop(L, 1);
    return k(L, LUA_OK, context);
  }
  if (tl_getstate(L)->error != NULL &&
      lua_tocfunction(L, -1) == tl_getstate(L)->error) {
    return luaL_error(L, "%s: %s", code, message);
  }
  lua_pushstring(L, code);
  lua_pushstring(L, message);
  lua_pushvalue(L, details);
  lua_callk(L, 3, 0, context, k);
  return k(L, LUA_OK, context);
}

/* Lua's own `error` as the handler makes every warning an error.
 * on_warning(f | nil) sets the handler, on_warning() does not; both return the
 * handler that was set before. */
static int warning_on(lua_State *L) {
  int given = lua_gettop(L);
  if (given > 0 && !lua_isnil(L, 1))
    luaL_checktype(L, 1, LUA_TFUNCTION);
  lua_getiuservalue(L, lua_upvalueindex(TL_STATE), TL_WARNING_HANDLER);
  if (given > 0) {
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, lua_upvalueindex(TL_STATE), TL_WARNING_HANDLER);
  }
  return 1;
}

const luaL_Reg tl_warning_functions[] = {{"on_warning", warning_on},
                                         {NULL, NULL}};
