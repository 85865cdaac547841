/* Lua tables to packed elements and back. Tables are read as they are: an
 * element that is not a number raises and is named, strings included. */
#include "binding/binding.h"

#include <string.h>

/* Pushes t[i]; metamethods are honoured where there are any. */
static int get_element(lua_State *L, int table, int64_t i) {
  if (!lua_getmetatable(L, table))
    return lua_rawgeti(L, table, i);
  lua_pop(L, 1);
  return lua_geti(L, table, i);
}

static int64_t length_of(lua_State *L, int table) {
  if (!lua_getmetatable(L, table))
    return (int64_t)lua_rawlen(L, table);
  lua_pop(L, 1);
  return luaL_len(L, table);
}

int32_t tl_tableshape(lua_State *L, int index, int64_t *shape) {
  int top = lua_gettop(L);
  int32_t dimensions = 0;
  index = lua_absindex(L, index);
  luaL_checkstack(L, 2 * TL_MAX_DIMENSIONS + 4, NULL);
  for (;;) {
    int64_t length = length_of(L, index);
    if (length < 0)
      luaL_error(L, "size must be >= 0, got %I", (LUAI_UACINT)length);
    shape[dimensions++] = length;
    if (shape[dimensions - 1] < 1 || get_element(L, index, 1) != LUA_TTABLE)
      break;
    if (dimensions == TL_MAX_DIMENSIONS)
      luaL_error(L, "tables are nested more than %d deep", TL_MAX_DIMENSIONS);
    index = lua_gettop(L);
  }
  lua_settop(L, top);
  return dimensions;
}

/* Where in the nested tables the reader is, for its errors. */
typedef struct reader {
  const tl_layout *layout;
  size_t element_size;
  unsigned char *next;
  bool nested;                      /* several numbers say where it is */
  int64_t place[TL_MAX_DIMENSIONS]; /* from 1 */
} reader;

/* Pushes the place, "4" or "[2][3]". */
static const char *push_place(lua_State *L, const reader *r, int32_t depth) {
  luaL_Buffer text;
  luaL_buffinit(L, &text);
  for (int32_t i = 0; i <= depth; i++) {
    lua_pushfstring(L, r->nested ? "[%I]" : "%I", (LUAI_UACINT)r->place[i]);
    luaL_addvalue(&text);
  }
  luaL_pushresult(&text);
  return lua_tostring(L, -1);
}

static void wrong_element(lua_State *L, const reader *r, int32_t depth,
                          const char *wanted) {
  const char *got = luaL_typename(L, -1);
  luaL_error(L, "element %s is %s, %s wanted", push_place(L, r, depth), got,
             wanted);
}

static void wrong_number(lua_State *L, const reader *r, int32_t depth) {
  const char *got = luaL_tolstring(L, -1, NULL);
  luaL_error(L, "element %s is %s, which is no %s", push_place(L, r, depth),
             got, tl_dtype_name(r->layout->dtype));
}

/* Reads `count` numbers of the table at the index. */
static void read_row(lua_State *L, int index, reader *r, int32_t depth,
                     int64_t count) {
  for (int64_t i = 1; i <= count; i++) {
    r->place[depth] = i;
    if (get_element(L, index, i) != LUA_TNUMBER)
      wrong_element(L, r, depth, "a number");
    if (!tl_packnumber(L, -1, r->layout->dtype, r->next))
      wrong_number(L, r, depth);
    r->next += r->element_size;
    lua_pop(L, 1);
  }
}

static void check_length(lua_State *L, int index, const reader *r,
                         int32_t depth, int64_t wanted) {
  int64_t length = length_of(L, index);
  if (length == wanted)
    return;
  if (depth == 0)
    luaL_error(L, "%I elements wanted, the table has %I", (LUAI_UACINT)wanted,
               (LUAI_UACINT)length);
  else
    luaL_error(L, "row %I has %I elements, %I wanted",
               (LUAI_UACINT)r->place[depth - 1], (LUAI_UACINT)length,
               (LUAI_UACINT)wanted);
}

/* Reads nested tables from dimension `depth` on. */
static void read_nested(lua_State *L, int index, reader *r, int32_t depth) {
  int64_t count = r->layout->shape[depth];
  check_length(L, index, r, depth, count);
  if (depth == TL_MAX_DIMENSIONS - 1 || depth == r->layout->dimensions - 1) {
    read_row(L, index, r, depth, count);
    return;
  }
  for (int64_t i = 1; i <= count; i++) {
    r->place[depth] = i;
    if (get_element(L, index, i) != LUA_TTABLE)
      wrong_element(L, r, depth, "a table");
    read_nested(L, lua_gettop(L), r, depth + 1);
    lua_pop(L, 1);
  }
}

void tl_readtable(lua_State *L, int index, const tl_layout *layout,
                  unsigned char *elements) {
  reader r = {.layout = layout,
              .element_size = (size_t)tl_dtype_size(layout->dtype),
              .next = elements};
  index = lua_absindex(L, index);
  luaL_checkstack(L, 2 * TL_MAX_DIMENSIONS + 4, NULL);
  if (layout->dimensions > 1) {
    r.nested = get_element(L, index, 1) == LUA_TTABLE;
    lua_pop(L, 1);
  }
  if (r.nested || layout->dimensions == 1) {
    read_nested(L, index, &r, 0);
    return;
  }
  check_length(L, index, &r, 0, layout->size);
  read_row(L, index, &r, 0, layout->size);
}

/* Pushes the elements from dimension `depth` on. */
static void push_nested(lua_State *L, reader *r, int32_t depth) {
  int64_t count = r->layout->shape[depth];
  lua_createtable(L, count < INT32_MAX ? (int)count : 0, 0);
  for (int64_t i = 1; i <= count; i++) {
    if (depth == TL_MAX_DIMENSIONS - 1 || depth == r->layout->dimensions - 1) {
      tl_pushelement(L, r->layout->dtype, r->next);
      r->next += r->element_size;
    } else {
      push_nested(L, r, depth + 1);
    }
    lua_rawseti(L, -2, i);
  }
}

void tl_pushtable(lua_State *L, const tl_layout *layout,
                  const unsigned char *elements) {
  reader r = {.layout = layout,
              .element_size = (size_t)tl_dtype_size(layout->dtype),
              .next = (unsigned char *)(uintptr_t)elements};
  luaL_checkstack(L, 2 * TL_MAX_DIMENSIONS + 4, NULL);
  push_nested(L, &r, 0);
}
