/* Gates: opening, once. */
#include "binding/binding.h"

/* open() --> true | false, "timed out" */
static int gate_open(lua_State *L) {
  bool opened;
  tl_error error;
  tl_check(L, tl_gate_open(tl_checkobject(L, 1, TL_GATE), &opened, &error),
           &error);
  lua_pushboolean(L, opened);
  if (opened)
    return 1;
  lua_pushliteral(L, "timed out");
  return 2;
}

static int gate_close(lua_State *L) {
  tl_gate_release(tl_takehandle(L, tl_checkhandle(L, 1, TL_GATE)));
  return 0;
}

static int gate_tostring(lua_State *L) {
  tl_handle *handle = tl_checkhandle(L, 1, TL_GATE);
  lua_pushstring(L, handle->object == NULL ? "gate (closed)" : "gate");
  return 1;
}

const luaL_Reg tl_gate_methods[] = {
    {"open", gate_open}, {"close", gate_close}, {NULL, NULL}};

const luaL_Reg tl_gate_meta[] = {
    {"__gc", gate_close},
    {"__close", gate_close},
    {"__tostring", gate_tostring},
    {NULL, NULL},
};
