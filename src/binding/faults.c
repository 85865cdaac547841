/* Fault injection from Lua, for specs: gpu.faults(). */
#include "binding/binding.h"

#include <string.h>

static tl_faults *check_faults(lua_State *L) {
  return tl_checkobject(L, 1, TL_FAULTS);
}

static int faults_new(lua_State *L) {
  tl_handle *handle = tl_newhandle(L, TL_FAULTS);
  tl_faults *faults;
  tl_error error;
  tl_check(L, tl_faults_create(&faults, &error), &error);
  handle->object = faults;
  return 1;
}

/* arm(site, nth, code): the nth use of the site from now on fails so. */
static int faults_arm(lua_State *L) {
  tl_faults *faults = check_faults(L);
  const char *site = luaL_checkstring(L, 2);
  lua_Integer nth = luaL_checkinteger(L, 3);
  const char *code = luaL_checkstring(L, 4);
  luaL_argcheck(L, nth >= 1, 3, "uses count from 1");
  for (int32_t status = TL_OK + 1; status <= TL_WOULD_BLOCK; status++)
    if (strcmp(tl_status_name(status), code) == 0) {
      tl_faults_arm(faults, site, nth, status);
      return 0;
    }
  return luaL_argerror(L, 4, lua_pushfstring(L, "unknown code '%s'", code));
}

static int faults_reset(lua_State *L) {
  tl_faults_reset(check_faults(L));
  return 0;
}

/* sites() --> { [site] = uses, ... } */
static int faults_sites(lua_State *L) {
  int64_t uses;
  check_faults(L);
  lua_settop(L, 1);
  lua_newtable(L);
  for (int32_t i = 0;; i++) { /* a finalizer may close it at any turn */
    const char *site = tl_faults_site(check_faults(L), i, &uses);
    if (site == NULL)
      return 1;
    lua_pushstring(L, site);
    lua_pushinteger(L, uses);
    lua_rawset(L, -3);
  }
}

static int faults_close(lua_State *L) {
  tl_faults_release(tl_takehandle(L, tl_checkhandle(L, 1, TL_FAULTS)));
  return 0;
}

static int faults_tostring(lua_State *L) {
  tl_handle *handle = tl_checkhandle(L, 1, TL_FAULTS);
  lua_pushstring(L, handle->object == NULL ? "faults (closed)" : "faults");
  return 1;
}

const luaL_Reg tl_faults_functions[] = {{"faults", faults_new}, {NULL, NULL}};

const luaL_Reg tl_faults_methods[] = {
    {"arm", faults_arm},
    {"reset", faults_reset},
    {"sites", faults_sites},
    {"close", faults_close},
    {NULL, NULL},
};

const luaL_Reg tl_faults_meta[] = {
    {"__gc", faults_close},
    {"__close", faults_close},
    {"__tostring", faults_tostring},
    {NULL, NULL},
};
