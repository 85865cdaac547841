/* gpu.matmul(a, b [, c] [, stream | options]) --> c */
#include "binding/binding.h"

typedef struct matmul_options {
  tl_matmul_options core;
  double alpha, beta;
} matmul_options;

enum { STREAM, KERNEL, COMPUTE, TRANSPOSE_A, TRANSPOSE_B, ALPHA, BETA };

static const char *const fields[] = {[STREAM] = "stream",
                                     [KERNEL] = "kernel",
                                     [COMPUTE] = "compute",
                                     [TRANSPOSE_A] = "transpose_a",
                                     [TRANSPOSE_B] = "transpose_b",
                                     [ALPHA] = "alpha",
                                     [BETA] = "beta",
                                     NULL};

/* Takes in the field whose value is at the top. */
static void read_field(lua_State *L, int field, matmul_options *options) {
  const char *name = fields[field];
  switch (field) {
  case STREAM:
    options->core.stream = tl_valuestream(L, name);
    break;
  case KERNEL:
    options->core.kernel = tl_valuestring(L, name);
    break;
  case COMPUTE:
    options->core.compute = tl_valuestring(L, name);
    break;
  case TRANSPOSE_A:
    options->core.transpose_a = tl_valueboolean(L, name);
    break;
  case TRANSPOSE_B:
    options->core.transpose_b = tl_valueboolean(L, name);
    break;
  case ALPHA:
    options->alpha = tl_valuenumber(L, name);
    break;
  default:
    options->beta = tl_valuenumber(L, name);
  }
}

/* Reads a stream, an options table or nothing at the index. */
static void read_options(lua_State *L, int arg, matmul_options *options) {
  *options =
      (matmul_options){.core = {.size = sizeof options->core}, .alpha = 1};
  if (lua_isnoneornil(L, arg))
    return;
  if (!lua_istable(L, arg)) {
    options->core.stream = tl_checkobject(L, arg, TL_STREAM);
    return;
  }
  lua_pushnil(L);
  while (lua_next(L, arg) != 0) {
    read_field(L, tl_checkfield(L, arg, -2, fields), options);
    lua_pop(L, 1);
  }
}

/* Pushes a new buffer for the product, once all else has been checked. */
static void push_result(lua_State *L, const matmul_options *options) {
  tl_buffer *a = tl_checkobject(L, 1, TL_BUFFER);
  tl_buffer *b = tl_checkobject(L, 2, TL_BUFFER);
  tl_layout result;
  tl_error error;
  if (options->beta != 0)
    luaL_error(L, "matmul: beta is %f, but there is no c to read",
               (lua_Number)options->beta);
  tl_check(L, tl_matmul_result(a, b, &options->core, &result, &error), &error);
  tl_pushbuffer(L, 2, result.dtype, result.dimensions, result.shape);
}

static int matmul(lua_State *L) {
  matmul_options options;
  tl_error error;
  tl_buffer *a, *b, *c;
  bool has_c = tl_testhandle(L, 3, TL_BUFFER) != NULL;
  if (!has_c) {
    tl_checkobject(L, 1, TL_BUFFER);
    tl_checkobject(L, 2, TL_BUFFER);
  }
  int options_at = has_c || lua_isnoneornil(L, 3) ? 4 : 3;
  int c_at = has_c ? 3 : 5;
  if (!lua_isnoneornil(L, options_at + 1))
    return luaL_error(L, "matmul: at most %d arguments, got %d", options_at,
                      lua_gettop(L));
  lua_settop(L, 4);
  if (!has_c) {
    read_options(L, options_at, &options);
    push_result(L, &options);
  }
  do { /* a finalizer or a hook may have closed any of them */
    a = tl_checkobject(L, 1, TL_BUFFER);
    b = tl_checkobject(L, 2, TL_BUFFER);
    c = tl_checkobject(L, c_at, TL_BUFFER);
    read_options(L, options_at, &options);
    options.core.alpha = &options.alpha;
    options.core.beta = &options.beta;
    options.core.stream =
        tl_readystream(L, tl_buffer_device(c), options.core.stream, true);
  } while (options.core.stream == NULL);
  tl_check(L, tl_matmul(a, b, c, &options.core, &error), &error);
  lua_settop(L, c_at);
  return 1;
}

const luaL_Reg tl_matmul_functions[] = {{"matmul", matmul}, {NULL, NULL}};
