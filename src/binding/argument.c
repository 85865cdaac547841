/* Reading arguments: shapes, dtypes, time limits, options tables. */
#include "binding/binding.h"

#include <string.h>

void tl_checkcount(lua_State *L, int most) {
  int count = lua_gettop(L);
  while (count > most && lua_isnil(L, count))
    count--;
  if (count > most)
    luaL_argerror(
        L, most + 1,
        lua_pushfstring(L, "at most %d arguments here, got %d", most, count));
}

/* ---- shapes and dtypes --------------------------------------------------- */

static int64_t read_size(lua_State *L, int index, const char *name) {
  int integral;
  lua_Integer size = lua_tointegerx(L, index, &integral);
  if (integral)
    return (int64_t)size;
  if (lua_isnumber(L, index))
    luaL_error(L, "%s: number has no integer representation (got %s)", name,
               luaL_tolstring(L, index, NULL));
  luaL_error(L, "%s: number expected, got %s", name, luaL_typename(L, index));
  return 0;
}

int32_t tl_readshape(lua_State *L, int index, const char *name,
                     int64_t *shape) {
  index = lua_absindex(L, index);
  if (!lua_istable(L, index)) {
    shape[0] = read_size(L, index, name);
    return 1;
  }
  lua_Unsigned count = lua_rawlen(L, index);
  if (count < 1 || count > TL_MAX_DIMENSIONS)
    luaL_error(L, "%s: 1 to %d dimensions wanted, got %d", name,
               TL_MAX_DIMENSIONS, (int)(count > 999 ? 999 : count));
  for (int i = 0; i < (int)count; i++) {
    lua_rawgeti(L, index, i + 1);
    shape[i] = read_size(L, -1, name);
    lua_pop(L, 1);
  }
  return (int32_t)count;
}

int32_t tl_checkshape(lua_State *L, int arg, int64_t *shape) {
  if (lua_istable(L, arg))
    return tl_readshape(L, arg, "shape", shape);
  if (!lua_isnumber(L, arg))
    luaL_typeerror(L, arg, "number or table");
  shape[0] = luaL_checkinteger(L, arg);
  return 1;
}

/* The string at the index; raises if a zero byte would cut it short. */
const char *tl_readstring(lua_State *L, int index, const char *what) {
  size_t length;
  const char *string = lua_tolstring(L, index, &length);
  if (string != NULL && strlen(string) != length)
    luaL_error(L, "%s contains a zero byte", what);
  return string;
}

int32_t tl_readdtype(lua_State *L, int index) {
  const char *name = tl_readstring(L, index, "dtype");
  int32_t dtype = name != NULL ? tl_dtype_find(name) : -1;
  if (dtype >= 0)
    return dtype;
  luaL_Buffer names;
  luaL_buffinit(L, &names);
  for (int32_t i = 0; tl_dtype_name(i) != NULL; i++) {
    luaL_addstring(&names, i > 0 ? ", " : "");
    luaL_addstring(&names, tl_dtype_name(i));
  }
  luaL_pushresult(&names);
  luaL_error(L, "unknown dtype '%s' (there are: %s)",
             name != NULL ? name : luaL_typename(L, index),
             lua_tostring(L, -1));
  return -1;
}

int32_t tl_optdtype(lua_State *L, int arg) {
  if (lua_isnoneornil(L, arg))
    return TL_FLOAT32;
  if (lua_type(L, arg) == LUA_TNUMBER)
    luaL_argerror(L, arg,
                  "dtype expected, got number (a shape of several dimensions "
                  "is a table)");
  luaL_checkstring(L, arg);
  return tl_readdtype(L, arg);
}

bool tl_packnumber(lua_State *L, int index, int32_t dtype, void *element) {
  return lua_isinteger(L, index)
             ? tl_dtype_pack_integer(dtype, lua_tointeger(L, index), element)
             : tl_dtype_pack(dtype, lua_tonumber(L, index), element);
}

void tl_checknumber(lua_State *L, int arg, int32_t dtype, void *element) {
  luaL_checktype(L, arg, LUA_TNUMBER);
  if (!tl_packnumber(L, arg, dtype, element))
    luaL_argerror(L, arg,
                  lua_pushfstring(L, "%s is no %s",
                                  luaL_tolstring(L, arg, NULL),
                                  tl_dtype_name(dtype)));
}

void tl_pushelement(lua_State *L, int32_t dtype, const void *element) {
  double value = tl_dtype_unpack(dtype, element);
  if (tl_dtype_is_integer(dtype))
    lua_pushinteger(L, (lua_Integer)value);
  else
    lua_pushnumber(L, value);
}

double tl_optseconds(lua_State *L, int arg) {
  if (lua_isnoneornil(L, arg))
    return -1;
  double seconds = luaL_checknumber(L, arg);
  if (!(seconds >= 0))
    luaL_argerror(
        L, arg,
        lua_pushfstring(L, "a time limit >= 0 s wanted, got %f", seconds));
  return seconds;
}

/* ---- options ------------------------------------------------------------- */

int tl_checkfield(lua_State *L, int arg, int key, const char *const names[]) {
  const char *given =
      lua_type(L, key) == LUA_TSTRING ? lua_tostring(L, key) : "";
  for (int i = 0; names[i] != NULL; i++)
    if (names[i][0] == given[0] && strcmp(names[i], given) == 0)
      return i;
  return luaL_argerror(
      L, arg,
      lua_pushfstring(L, "unknown option '%s'", luaL_tolstring(L, key, NULL)));
}

void tl_checkfields(lua_State *L, int arg, const char *const names[]) {
  luaL_checktype(L, arg, LUA_TTABLE);
  lua_pushnil(L);
  while (lua_next(L, arg) != 0) {
    lua_pop(L, 1); /* the value */
    tl_checkfield(L, arg, -1, names);
  }
}

/* Raw, as tl_checkfields is: no script runs while options are read. */
bool tl_getfield(lua_State *L, int index, const char *name) {
  index = lua_absindex(L, index);
  lua_pushstring(L, name);
  if (lua_rawget(L, index) != LUA_TNIL)
    return true;
  lua_pop(L, 1);
  return false;
}

void tl_wrongfield(lua_State *L, const char *name, const char *wanted) {
  const char *got = luaL_typename(L, -1);
  if (luaL_getmetafield(L, -1, "__name") == LUA_TSTRING)
    got = lua_tostring(L, -1);
  luaL_error(L, "option '%s': %s expected, got %s", name, wanted, got);
}

double tl_valuenumber(lua_State *L, const char *name) {
  int number;
  double value = lua_tonumberx(L, -1, &number);
  if (!number)
    tl_wrongfield(L, name, "number");
  return value;
}

bool tl_valueboolean(lua_State *L, const char *name) {
  if (!lua_isboolean(L, -1))
    tl_wrongfield(L, name, "boolean");
  return lua_toboolean(L, -1) != 0;
}

const char *tl_valuestring(lua_State *L, const char *name) {
  if (lua_type(L, -1) != LUA_TSTRING)
    tl_wrongfield(L, name, "string");
  return tl_readstring(L, -1, name);
}

tl_stream *tl_valuestream(lua_State *L, const char *name) {
  tl_handle *handle = tl_testhandle(L, -1, TL_STREAM);
  if (handle == NULL)
    tl_wrongfield(L, name, "stream");
  if (handle->object == NULL)
    luaL_error(L, "option '%s': stream is closed", name);
  return handle->object;
}

double tl_fieldnumber(lua_State *L, int index, const char *name,
                      double absent) {
  if (!tl_getfield(L, index, name))
    return absent;
  double value = tl_valuenumber(L, name);
  lua_pop(L, 1);
  return value;
}

int64_t tl_fieldinteger(lua_State *L, int index, const char *name,
                        int64_t absent) {
  if (!tl_getfield(L, index, name))
    return absent;
  int integral;
  int64_t value = lua_tointegerx(L, -1, &integral);
  if (!integral && lua_isnumber(L, -1))
    luaL_error(L, "option '%s': number has no integer representation (got %s)",
               name, luaL_tolstring(L, -1, NULL));
  if (!integral)
    tl_wrongfield(L, name, "integer");
  lua_pop(L, 1);
  return value;
}

bool tl_fieldboolean(lua_State *L, int index, const char *name, bool absent) {
  if (!tl_getfield(L, index, name))
    return absent;
  bool value = tl_valueboolean(L, name);
  lua_pop(L, 1);
  return value;
}

const char *tl_fieldstring(lua_State *L, int index, const char *name) {
  if (!tl_getfield(L, index, name))
    return NULL;
  const char *value = tl_valuestring(L, name);
  lua_pop(L, 1);
  return value;
}

tl_stream *tl_fieldstream(lua_State *L, int index) {
  if (!tl_getfield(L, index, "stream"))
    return NULL;
  tl_stream *stream = tl_valuestream(L, "stream");
  lua_pop(L, 1);
  return stream;
}

tl_stream *tl_optstream(lua_State *L, int arg) {
  static const char *const fields[] = {"stream", NULL};
  if (lua_isnoneornil(L, arg))
    return NULL;
  if (lua_isuserdata(L, arg))
    return tl_checkobject(L, arg, TL_STREAM);
  if (!lua_istable(L, arg))
    luaL_typeerror(L, arg, "stream or options table");
  tl_checkfields(L, arg, fields);
  return tl_fieldstream(L, arg);
}
