/* A Lua module that times a launch from Lua against the same launch from C, in
 * one process, in turns: batches of calls, the order reversed every round, the
 * wait outside the timed part.
 *
 * The Lua batch is timed around lua_call of a function that loops. No context
 * is current to the thread meanwhile, as in a script on its own. */
#include <lauxlib.h>
#include <lua.h>
#include <stdlib.h>

#include "plain.h"

enum { CALLS = 200, WARM_UP = 5 };

typedef struct bench {
  plain plain;
  CUfunction spin, naive;
  int n;
  CUdeviceptr a, b, c;
} bench;

static void c_spin(bench *run) {
  for (int i = 0; i < CALLS; i++)
    plain_spin(&run->plain, run->spin, 0);
}

static void c_naive(bench *run) {
  for (int i = 0; i < CALLS; i++)
    plain_naive(&run->plain, run->naive, run->n, run->a, run->b, run->c);
}

static void c_blas(bench *run) {
  for (int i = 0; i < CALLS; i++)
    plain_gemm(&run->plain, &plain_float32, run->n, run->a, run->b, run->c);
}

static double c_measure(bench *run, void (*calls)(bench *)) {
  plain *p = &run->plain;
  PLAIN_CHECK(p->cu.cuCtxSetCurrent(p->context));
  int64_t start = plain_now();
  calls(run);
  int64_t end = plain_now();
  plain_synchronize(p);
  PLAIN_CHECK(p->cu.cuCtxSetCurrent(NULL));
  return (double)(end - start) / CALLS;
}

/* The loop and the wait are at these places of the stack. */
static double lua_measure(lua_State *L, int loop, int wait) {
  lua_pushvalue(L, loop);
  lua_pushinteger(L, CALLS);
  int64_t start = plain_now();
  lua_call(L, 1, 0);
  int64_t end = plain_now();
  lua_pushvalue(L, wait);
  lua_call(L, 0, 0);
  return (double)(end - start) / CALLS;
}

static void matrices_make(bench *run, int n) {
  plain *p = &run->plain;
  PLAIN_CHECK(p->cu.cuCtxSetCurrent(p->context));
  run->n = n;
  run->a = plain_uniform(p, &plain_float32, n, 1);
  run->b = plain_uniform(p, &plain_float32, n, 2);
  run->c = plain_uniform(p, &plain_float32, n, 3);
  plain_synchronize(p);
}

static void matrices_free(bench *run) {
  plain *p = &run->plain;
  PLAIN_CHECK(p->cu.cuCtxSetCurrent(p->context));
  PLAIN_CHECK(p->cu.cuMemFree(run->a));
  PLAIN_CHECK(p->cu.cuMemFree(run->b));
  PLAIN_CHECK(p->cu.cuMemFree(run->c));
  PLAIN_CHECK(p->cu.cuCtxSetCurrent(NULL));
}

/* measure(what, n, rounds, loop, wait): prints one line for each side. */
static int measure(lua_State *L) {
  static const char *const names[] = {"spin", "naive", "blas", NULL};
  static void (*const calls[])(bench *) = {c_spin, c_naive, c_blas};
  enum { LOOP = 4, WAIT = 5 };
  bench *run = lua_touserdata(L, lua_upvalueindex(1));
  int what = luaL_checkoption(L, 1, NULL, names);
  int n = (int)luaL_checkinteger(L, 2), rounds = (int)luaL_checkinteger(L, 3);
  luaL_argcheck(L, rounds > 0, 3, "above 0 wanted");
  luaL_checktype(L, LOOP, LUA_TFUNCTION);
  luaL_checktype(L, WAIT, LUA_TFUNCTION);
  double *samples =
      lua_newuserdatauv(L, 2 * (size_t)rounds * sizeof *samples, 0);
  matrices_make(run, n);
  for (int round = -WARM_UP; round < rounds; round++)
    for (int turn = 0; turn < 2; turn++) {
      int side = (round + WARM_UP + turn) % 2;
      double cost =
          side == 0 ? c_measure(run, calls[what]) : lua_measure(L, LOOP, WAIT);
      if (round >= 0)
        samples[side * rounds + round] = cost;
    }
  matrices_free(run);
  plain_say("c", names[what], n, "float32", "ns", samples, rounds);
  plain_say("tidelock", names[what], n, "float32", "ns", samples + rounds,
            rounds);
  return 0;
}

/* open(fatbin): returns measure. */
static int open(lua_State *L) {
  const char *fatbin = luaL_checkstring(L, 1);
  bench *run = lua_newuserdatauv(L, sizeof *run, 0);
  plain *p = &run->plain;
  plain_open_driver(p);
  plain_open_context(p);
  plain_open_blas(p);
  plain_create_handle(p);
  plain_load_kernels(p, fatbin);
  run->spin = plain_kernel(p, "spin");
  run->naive = plain_kernel(p, "naive");
  PLAIN_CHECK(p->cu.cuCtxSetCurrent(NULL));
  lua_pushcclosure(L, measure, 1);
  return 1;
}

int luaopen_launch_pair(lua_State *L);

int luaopen_launch_pair(lua_State *L) {
  lua_pushcfunction(L, open);
  return 1;
}
