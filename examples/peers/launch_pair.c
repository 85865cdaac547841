/* A Lua module that times a launch from Lua against the same launch from C, in
 * one process, in turns: batches of calls, the order reversed every round, the
 * wait outside the timed part.
 *
 * The Lua batch is timed around lua_call of a function that loops. Meanwhile no
 * context is current to the thread, as in a script on its own, or, if so
 * opened, C's is, as in a program that embeds Lua. */
#include <lauxlib.h>
#include <lua.h>
#include <stdbool.h>
#include <stdlib.h>

#include "plain.h"

enum { CALLS = 200, WARM_UP = 5 };

typedef struct bench {
  plain plain;
  CUfunction spin, naive;
  bool keep_current;
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

/* An empty function, by a pointer that the compiler must follow. */
static void nothing(void) {}
static void (*volatile c_nothing)(void) = nothing;

static void c_empty(bench *run) {
  (void)run;
  for (int i = 0; i < CALLS; i++)
    c_nothing();
}

static int lua_nothing(lua_State *L) {
  (void)L;
  return 0;
}

static void context_enter(bench *run) {
  PLAIN_CHECK(run->plain.cu.cuCtxSetCurrent(run->plain.context));
}

static void context_leave(bench *run) {
  if (!run->keep_current)
    PLAIN_CHECK(run->plain.cu.cuCtxSetCurrent(NULL));
}

static double c_measure(bench *run, void (*calls)(bench *)) {
  plain *p = &run->plain;
  context_enter(run);
  int64_t start = plain_now();
  calls(run);
  int64_t end = plain_now();
  plain_synchronize(p);
  context_leave(run);
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
  context_enter(run);
  run->n = n;
  run->a = plain_uniform(p, &plain_float32, n, 1);
  run->b = plain_uniform(p, &plain_float32, n, 2);
  run->c = plain_uniform(p, &plain_float32, n, 3);
  plain_synchronize(p);
}

static void matrices_free(bench *run) {
  plain *p = &run->plain;
  context_enter(run);
  PLAIN_CHECK(p->cu.cuMemFree(run->a));
  PLAIN_CHECK(p->cu.cuMemFree(run->b));
  PLAIN_CHECK(p->cu.cuMemFree(run->c));
  context_leave(run);
}

/* measure(what, n, rounds, loop, wait): prints one line for each side. */
static int measure(lua_State *L) {
  static const char *const names[] = {"empty", "spin", "naive", "blas", NULL};
  static void (*const calls[])(bench *) = {c_empty, c_spin, c_naive, c_blas};
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

/* open(fatbin, keep the context current): returns measure, and a function that
 * does nothing. */
static int open(lua_State *L) {
  const char *fatbin = luaL_checkstring(L, 1);
  bench *run = lua_newuserdatauv(L, sizeof *run, 0);
  plain *p = &run->plain;
  run->keep_current = lua_toboolean(L, 2);
  plain_open_driver(p);
  plain_open_context(p);
  plain_open_blas(p);
  plain_create_handle(p);
  plain_load_kernels(p, fatbin);
  run->spin = plain_kernel(p, "spin");
  run->naive = plain_kernel(p, "naive");
  context_leave(run);
  lua_pushcclosure(L, measure, 1);
  lua_pushcfunction(L, lua_nothing);
  return 2;
}

int luaopen_launch_pair(lua_State *L);

int luaopen_launch_pair(lua_State *L) {
  lua_pushcfunction(L, open);
  return 1;
}
