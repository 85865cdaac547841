/* Lua states in threads, each with the module linked into the program and
 * registered with package.preload. Without the BLAS, for race detectors. */
#define _POSIX_C_SOURCE 200809L
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <pthread.h>

#include "tap.h"

enum { THREADS = 8, ROUNDS = 100 };

int luaopen_tidelock_core(lua_State *L);

/* A state that finds the module in the program itself. */
static lua_State *state_open(void) {
  lua_State *L = luaL_newstate();
  if (L == NULL)
    return NULL;
  luaL_openlibs(L);
  luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
  lua_pushcfunction(L, luaopen_tidelock_core);
  lua_setfield(L, -2, "tidelock.core");
  lua_pop(L, 1);
  return L;
}

/* The product of spec/embed/product.h, opened and closed `rounds` times; gives
 * how often the sum was right. */
static const char multiply[] =
    "local rounds = ...\n"
    "local gpu = require 'tidelock.core'\n"
    "local M, N, K = 17, 19, 23\n"
    "local right = 0\n"
    "for _ = 1, rounds do\n"
    "  local dev <close> = gpu.device('host')\n"
    "  local a, b = {}, {}\n"
    "  for i = 1, M do\n"
    "    a[i] = {}\n"
    "    for k = 1, K do a[i][k] = ((i - 1) * K + k - 1) % 7 end\n"
    "  end\n"
    "  for k = 1, K do\n"
    "    b[k] = {}\n"
    "    for j = 1, N do b[k][j] = ((k - 1) * N + j - 1) % 5 end\n"
    "  end\n"
    "  local c = gpu.matmul(dev:array(a), dev:array(b), {kernel = 'tiled'})\n"
    "  local sum = 0\n"
    "  for _, row in ipairs(c:totable()) do\n"
    "    for _, x in ipairs(row) do sum = sum + x end\n"
    "  end\n"
    "  right = right + (sum == 44316 and 1 or 0)\n"
    "end\n"
    "return right\n";

/* Leaves work in flight, and everything open. */
static const char leave[] = "local gpu = require 'tidelock.core'\n"
                            "local dev = gpu.device('host')\n"
                            "local s = dev:stream()\n"
                            "local x = dev:full(1000, 1, {stream = s})\n"
                            "local gate = s:gate{timeout = 30}\n"
                            "s:spin(0.01)\n"
                            "x:fill(2, s)\n"
                            "kept = {dev, s, x, gate, s:record()}\n"
                            "return 1\n";

/* Runs the chunk and gives the number that it returns; -1: it failed. */
static long state_run(lua_State *L, const char *chunk, int rounds,
                      char *failure, size_t room) {
  long result = -1;
  if (luaL_loadstring(L, chunk) == LUA_OK) {
    lua_pushinteger(L, rounds);
    if (lua_pcall(L, 1, 1, 0) == LUA_OK)
      result = (long)lua_tointeger(L, -1);
  }
  if (result < 0)
    snprintf(failure, room, "%s", luaL_tolstring(L, -1, NULL));
  lua_settop(L, 0);
  return result;
}

typedef struct worker {
  long right;
  char failure[256];
} worker;

static void *worker_main(void *argument) {
  worker *w = argument;
  lua_State *L = state_open();
  if (L == NULL)
    return NULL;
  w->right = state_run(L, multiply, ROUNDS, w->failure, sizeof w->failure);
  lua_close(L);
  return NULL;
}

/* Main has a state of its own with work in flight, which it closes while the
 * others run, and opens another one. */
static void test_states(void) {
  pthread_t threads[THREADS];
  worker workers[THREADS] = {{0}};
  char failure[256] = "";
  lua_State *L = state_open();
  if (L == NULL)
    tap_bail("no Lua state");
  for (int i = 0; i < THREADS; i++)
    if (pthread_create(&threads[i], NULL, worker_main, &workers[i]) != 0)
      tap_bail("no thread");
  if (!expect(state_run(L, leave, 0, failure, sizeof failure) == 1))
    tap_note("  %s", failure);
  lua_close(L);
  L = state_open();
  if (!expect(L != NULL &&
              state_run(L, multiply, 3, failure, sizeof failure) == 3))
    tap_note("  %s", failure);
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
    if (!expect(workers[i].right == ROUNDS))
      tap_note("  thread %d: %ld right; %s", i, workers[i].right,
               workers[i].failure);
  }
  lua_close(L);
}

/* The module may be opened again in a state; both are the same. */
static void test_twice(void) {
  static const char chunk[] = "local first = require 'tidelock.core'\n"
                              "local dev = first.device('host')\n"
                              "package.loaded['tidelock.core'] = nil\n"
                              "local second = require 'tidelock.core'\n"
                              "assert(second.device('host') == dev)\n"
                              "return first == second and 1 or 0\n";
  char failure[256] = "";
  lua_State *L = state_open();
  if (!expect(L != NULL &&
              state_run(L, chunk, 0, failure, sizeof failure) == 1))
    tap_note("  %s", failure);
  lua_close(L);
}

/* States come and go; what they leave in flight outlives them. */
static void test_many(void) {
  char failure[256] = "";
  for (int i = 0; i < 50; i++) {
    lua_State *L = state_open();
    if (!expect(L != NULL &&
                state_run(L, leave, 0, failure, sizeof failure) == 1))
      tap_note("  %s", failure);
    lua_close(L);
  }
}

/* Resident bytes, -1 where they are not to be had. */
static long resident(void) {
  long size, pages = -1;
  FILE *file = fopen("/proc/self/statm", "r");
  if (file != NULL && fscanf(file, "%ld %ld", &size, &pages) != 2)
    pages = -1;
  if (file != NULL)
    fclose(file);
  return pages < 0 ? -1 : pages * 4096;
}

/* A checker keeps freed memory back on purpose. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { CHECKED = 1 };
#else
enum { CHECKED = 0 };
#endif

static void states_cycle(int count) {
  char failure[256] = "";
  for (int i = 0; i < count; i++) {
    lua_State *L = state_open();
    if (!expect(L != NULL &&
                state_run(L, multiply, 1, failure, sizeof failure) == 1))
      tap_note("  %s", failure);
    lua_close(L);
  }
}

static void test_leak(void) {
  states_cycle(20);
  long before = resident();
  states_cycle(200);
  long after = resident();
  if (!expect(CHECKED || before < 0 || after - before < 5 << 20))
    tap_note("  grew by %ld bytes", after - before);
}

int main(void) {
  test("8 states in 8 threads multiply 100 times each and are right",
       test_states);
  test("opening the module again gives the same", test_twice);
  test("states close with work in flight", test_many);
  test("200 states that load, multiply and close leave nothing (C15)",
       test_leak);
  return tap_end();
}
