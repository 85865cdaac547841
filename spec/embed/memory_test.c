/* Memory that runs out, in Lua and below it. A script that uses everything is
 * run with an allocator that fails at the n-th request, for n = 1, 2, 3 ... as
 * far as the script asks. Whatever happens, the state closes, and nothing that
 * the library has allocated is left: the linker hands this program every
 * calloc, aligned_alloc, mmap and free that the library makes (-Wl,--wrap), so
 * that it can count them, and fail them too. */
#define _GNU_SOURCE
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <time.h>

#include "tap.h"

int luaopen_tidelock_core(lua_State *L);

/* ---- requests ------------------------------------------------------------ */

/* Fails requests from number `first` on, `length` of them. Of this thread:
 * workers of the device are not concerned. */
typedef struct meter {
  bool lua;      /* it counts the requests of Lua */
  bool library;  /* it counts those of the library */
  long requests; /* so far */
  long first;    /* 0: none fails */
  long length;
} meter;

static _Thread_local meter counted;
static atomic_long left_allocations; /* of the library, any thread */
static atomic_long left_pages;

static bool request_fails(bool counts) {
  if (!counts)
    return false;
  long number = ++counted.requests;
  return counted.first > 0 && number >= counted.first &&
         number - counted.first < counted.length;
}

void *__real_calloc(size_t count, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void __real_free(void *memory);
void *__real_mmap(void *address, size_t length, int protection, int flags,
                  int file, off_t offset);
int __real_munmap(void *address, size_t length);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void __wrap_free(void *memory);
void *__wrap_mmap(void *address, size_t length, int protection, int flags,
                  int file, off_t offset);
int __wrap_munmap(void *address, size_t length);

void *__wrap_calloc(size_t count, size_t size) {
  void *memory =
      request_fails(counted.library) ? NULL : __real_calloc(count, size);
  if (memory != NULL)
    atomic_fetch_add(&left_allocations, 1);
  return memory;
}

void *__wrap_aligned_alloc(size_t alignment, size_t size) {
  void *memory = request_fails(counted.library)
                     ? NULL
                     : __real_aligned_alloc(alignment, size);
  if (memory != NULL)
    atomic_fetch_add(&left_allocations, 1);
  return memory;
}

void __wrap_free(void *memory) {
  if (memory != NULL)
    atomic_fetch_sub(&left_allocations, 1);
  __real_free(memory);
}

void *__wrap_mmap(void *address, size_t length, int protection, int flags,
                  int file, off_t offset) {
  void *page =
      request_fails(counted.library)
          ? MAP_FAILED
          : __real_mmap(address, length, protection, flags, file, offset);
  if (page != MAP_FAILED)
    atomic_fetch_add(&left_pages, 1);
  return page;
}

int __wrap_munmap(void *address, size_t length) {
  atomic_fetch_sub(&left_pages, 1);
  return __real_munmap(address, length);
}

/* A lua_Alloc. Shrinking never fails, as Lua demands. */
static void *lua_allocate(void *data, void *memory, size_t old, size_t size) {
  (void)data;
  if (size == 0) {
    __real_free(memory);
    return NULL;
  }
  bool grows = memory == NULL || size > old;
  return grows && request_fails(counted.lua) ? NULL : realloc(memory, size);
}

/* Workers free what they were the last to hold: gives them time to. */
static bool nothing_left(void) {
  const struct timespec pause = {.tv_nsec = 200000};
  for (int i = 0; i < 50000; i++, nanosleep(&pause, NULL))
    if (atomic_load(&left_allocations) == 0 && atomic_load(&left_pages) == 0)
      return true;
  tap_note("left: %ld allocations, %ld pages", atomic_load(&left_allocations),
           atomic_load(&left_pages));
  return false;
}

/* ---- scripts ------------------------------------------------------------- */

/* Between them they use everything. Each part stands alone, so that the number
 * of requests in each is small: the runs grow with its square. */
static const struct {
  const char *name;
  const char *text;
} scripts[] = {
    {"devices",
     "local gpu = require 'tidelock.core'\n"
     "gpu.devices() gpu.available('host') gpu.available('nonesuch')\n"
     "local dev <close> = gpu.device('host', {queue_depth = 7, wait = "
     "'block',\n"
     "  memory_limit = 1000000})\n"
     "assert(gpu.device('host') == dev)\n"
     "dev:properties() dev:memory() dev:trim() dev:is_lost()\n"
     "dev:matmul_kernels() dev:last_cleanup_error() tostring(dev)\n"
     "assert(dev:default_stream():device() == dev)\n"
     "local other = gpu.device('host:1')\n"
     "other:stream() other:event{timing = false} other:zeros(3)\n"},
    {"buffers", "local gpu = require 'tidelock.core'\n"
                "local dev = gpu.device('host')\n"
                "local a = dev:array({{1, 2, 3}, {4, 5, 6}}, 'float64')\n"
                "local b = dev:array(string.rep('\\0', 24))\n"
                "b:upload({1, 2, 3, 4, 5, 6})\n"
                "b:upload(b:tobytes())\n"
                "local v = a:view{offset = 1, shape = {2, 2}, stride = 3}\n"
                "assert(v:get(2, 2) == 6)\n"
                "v:set(1, 1, 20)\n"
                "local c <close> = v:clone()\n"
                "assert(c:totable()[1][1] == 20)\n"
                "c:fill(3):copy_from(v)\n"
                "local r = b:reshape{3, 2}\n"
                "assert(#r == 3 and r:shape()[2] == 2 and r:size() == 6)\n"
                "assert(r:nbytes() == 24 and r:dtype() == 'float32')\n"
                "assert(a:device() == dev)\n"
                "tostring(a) tostring(c)\n"
                "local f <close> = dev:full({2, 2}, 1.5, {dtype = 'float64'})\n"
                "local z, e = dev:zeros(4, 'float64'), dev:empty{1, 2, 3}\n"
                "z:close() e:close() e:close()\n"},
    {"products",
     "local gpu = require 'tidelock.core'\n"
     "local dev = gpu.device('host')\n"
     "local s <close> = dev:stream()\n"
     "local a = dev:array{{1, 2}, {3, 4}}\n"
     "local c = gpu.matmul(a, a, s)\n"
     "gpu.matmul(a, a, c, {stream = s, kernel = 'naive', alpha = 2, beta = 1,\n"
     "  transpose_a = true, transpose_b = true, compute = 'float32'})\n"
     "local d = gpu.matmul(a, a)\n"
     "assert(c:get(1, 1) == 21)\n"
     "assert(gpu.matmul(d, d, {kernel = 'tiled'}):get(1, 1) == 199)\n"},
    {"streams, events, gates",
     "local gpu = require 'tidelock.core'\n"
     "local dev = gpu.device('host')\n"
     "local s, t = dev:stream(), dev:stream()\n"
     "local g <close> = s:gate{timeout = 5}\n"
     "local first = s:record()\n"
     "s:spin(0)\n"
     "local last = s:record(dev:event{timing = true})\n"
     "t:wait_event(last)\n"
     "local least, most = s:inflight()\n"
     "assert(not s:done() and not last:done())\n"
     "assert(not s:synchronize(0) and not last:synchronize(0))\n"
     "tostring(s) tostring(first) tostring(g)\n"
     "assert(g:open())\n"
     "assert(s:synchronize() and last:synchronize() and dev:synchronize())\n"
     "assert(last - first >= 0 and s ~= t)\n"
     "assert(s:device() == dev and last:device() == dev)\n"},
    {"a full queue", "local gpu = require 'tidelock.core'\n"
                     "local dev = gpu.device('host', {queue_depth = 1})\n"
                     "local s = dev:stream()\n"
                     "local x = dev:zeros(4)\n"
                     "local g = s:gate{timeout = 0.003}\n"
                     "s:spin(0)\n"
                     "s:spin(0)\n"
                     "x:fill(1, s)\n"
                     "s:record()\n"
                     "gpu.matmul(dev:zeros{2, 2}, dev:zeros{2, 2}, s)\n"},
    {"stamps and warnings",
     "local gpu = require 'tidelock.core'\n"
     "local told = 0\n"
     "gpu.on_warning(function(code, message, details)\n"
     "  told = told + #code + #message + #details.where\n"
     "end)\n"
     "local dev = gpu.device('host')\n"
     "local s = dev:stream()\n"
     "for _ = 1, 9 do dev:stream() end\n"
     "local g = s:gate{timeout = 5}\n"
     "s:spin(0)\n"
     "local before = dev:now()\n"
     "s:spin(0)\n"
     "local d = dev:now() - before\n"
     "before:elapsed()\n"
     "tostring(before)\n"
     "assert(told > 0)\n"
     "gpu.on_warning(error)\n"
     "local ok = pcall(function() return dev:now() - before end)\n"
     "assert(not ok)\n"
     "g:close()\n"},
    {"errors", "local gpu = require 'tidelock.core'\n"
               "local dev = gpu.device('host', {memory_limit = 1000})\n"
               "local function fails(f, ...)\n"
               "  local ok, why = pcall(f, ...)\n"
               "  assert(not ok)\n"
               "  return tostring(why)\n"
               "end\n"
               "local a = dev:zeros{2, 3}\n"
               "fails(dev.zeros, dev, 1000)\n"
               "fails(dev.zeros, dev, -1)\n"
               "fails(dev.zeros, dev, 1.5)\n"
               "fails(dev.zeros, dev, 4, 'float31')\n"
               "fails(dev.array, dev, {{1, 2}, {3}})\n"
               "fails(dev.array, dev, {1, 'x'})\n"
               "fails(gpu.matmul, a, a)\n"
               "fails(gpu.matmul, a, a, {nonesuch = 1})\n"
               "fails(gpu.device, 'nonesuch')\n"
               "fails(gpu.device, 'host', {queue_depth = 3})\n"
               "fails(a.get, a, 3, 3)\n"
               "fails(a.get, dev)\n"
               "fails(a.upload, a, 'abc')\n"
               "fails(a.view, a, {offset = 7, shape = 1})\n"
               "a:close()\n"
               "fails(a.totable, a)\n"},
    {"failures on demand", "local gpu = require 'tidelock.core'\n"
                           "local faults <close> = gpu.faults()\n"
                           "faults:arm('execute', 2, 'device_lost')\n"
                           "local dev = gpu.device('host', {faults = faults})\n"
                           "local s = dev:stream()\n"
                           "s:spin(0)\n"
                           "faults:sites()\n"
                           "s:spin(0)\n"
                           "assert(not pcall(s.synchronize, s))\n"
                           "assert(dev:is_lost())\n"
                           "tostring(faults)\n"},
    {"coroutines and finalizers",
     "local gpu = require 'tidelock.core'\n"
     "local dev = gpu.device('host')\n"
     "local co = coroutine.wrap(function()\n"
     "  local x <close> = dev:full(10, 1)\n"
     "  local s <close> = dev:stream()\n"
     "  s:spin(0.0001)\n"
     "  coroutine.yield(x)\n"
     "  return gpu.matmul(dev:zeros{2, 2}, dev:zeros{2, 2}, s)\n"
     "end)\n"
     "co() co() co = nil\n"
     "local left = coroutine.wrap(function()\n"
     "  local y <close> = dev:zeros(5)\n"
     "  coroutine.yield(y)\n"
     "end)\n"
     "left()\n"
     "born = setmetatable({}, {__gc = function()\n"
     "  kept = {dev:zeros(3), dev:stream(), dev:event(), dev:now()}\n"
     "end})\n"
     "born = nil\n"
     "collectgarbage()\n"
     "late = setmetatable({}, {__gc = function()\n"
     "  later = {dev:zeros(3), dev:stream()}\n"
     "end})\n"},
};

enum { SCRIPTS = sizeof scripts / sizeof scripts[0] };

/* ---- runs ---------------------------------------------------------------- */

typedef enum outcome { DONE, OUT_OF_MEMORY, OTHER } outcome;

/* Loads the script and runs it, all of it counted but Lua's own libraries. */
static outcome script_run(lua_State *L, const char *text, char *failure,
                          size_t room) {
  int top = lua_gettop(L);
  int status = luaL_loadstring(L, text);
  if (status == LUA_OK)
    status = lua_pcall(L, 0, 0, 0);
  counted.first = 0; /* from here on there is memory */
  outcome result = status == LUA_OK ? DONE : OUT_OF_MEMORY;
  if (status != LUA_OK) {
    snprintf(failure, room, "%s", luaL_tolstring(L, -1, NULL));
    /* lua_checkstack does not tell what it lacks. */
    if (strstr(failure, "memory") == NULL &&
        strstr(failure, "stack overflow") == NULL)
      result = OTHER;
    lua_settop(L, top);
  }
  expect(lua_gettop(L) == top);
  return result;
}

/* One run in a state of its own, with requests failing as the meter says. */
static outcome run_once(int script, meter failing, long *requests,
                        char *failure, size_t room) {
  counted = (meter){0};
  lua_State *L = lua_newstate(lua_allocate, NULL);
  if (L == NULL)
    tap_bail("no Lua state");
  luaL_openlibs(L);
  luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
  lua_pushcfunction(L, luaopen_tidelock_core);
  lua_setfield(L, -2, "tidelock.core");
  lua_settop(L, 0);
  counted = failing;
  outcome result = script_run(L, scripts[script].text, failure, room);
  *requests = counted.requests;
  counted = (meter){0};
  lua_close(L);
  return result;
}

/* Fails `length` requests from each one on. The script may get over it (where
 * it expects errors itself); it may not fail in any other way. */
static void fail_each(bool lua, bool library, long length) {
  long runs = 0, survived = 0;
  for (int i = 0; i < SCRIPTS; i++) {
    char failure[256] = "";
    long requests;
    meter failing = {.lua = lua, .library = library};
    outcome result = run_once(i, failing, &requests, failure, sizeof failure);
    if (!expect(result == DONE))
      tap_note("  %s: %s", scripts[i].name, failure);
    expect(nothing_left());
    failing.length = length;
    for (failing.first = 1;; failing.first++, runs++) {
      result = run_once(i, failing, &requests, failure, sizeof failure);
      bool left = !nothing_left();
      if (!expect(result != OTHER) || !expect(!left))
        tap_note("  %s, request %ld: %s", scripts[i].name, failing.first,
                 result == DONE ? "done" : failure);
      if (left) {
        atomic_store(&left_allocations, 0);
        atomic_store(&left_pages, 0);
      }
      survived += result == DONE;
      if (requests < failing.first)
        break; /* the script does not ask that often */
    }
  }
  tap_note("%ld runs, of which %ld came through", runs, survived);
}

/* Lua collects and asks again when it is refused, so a single failure is two
 * in a row; the script may then go on. */
static void test_lua_once(void) {
  fail_each(true, false, 2);
}

static void test_lua_from_then_on(void) {
  fail_each(true, false, 1000000);
}

static void test_library_once(void) {
  fail_each(false, true, 1);
}

static void test_library_from_then_on(void) {
  fail_each(false, true, 1000000);
}

/* ---- results and the stack ----------------------------------------------- */

/* How many values each call gives, and that it leaves nothing else behind. */
static void test_results(void) {
  static const struct {
    const char *call;
    int results;
  } calls[] = {
      {"dev:memory()", 1},
      {"dev:trim()", 0},
      {"dev:is_lost()", 1},
      {"dev:synchronize()", 1},
      {"dev:now()", 1},
      {"dev:now():elapsed()", 2},
      {"dev:now() - dev:now()", 1},
      {"dev:properties()", 1},
      {"dev:stream()", 1},
      {"s:spin(0)", 0},
      {"s:inflight()", 2},
      {"s:done()", 1},
      {"s:record()", 1},
      {"s:record(e)", 1},
      {"s:wait_event(e)", 0},
      {"e:done()", 1},
      {"dev:event():done()", 2},
      {"e:synchronize()", 1},
      {"e - e", 1},
      {"s:gate{timeout = 30}:open()", 1},
      {"a:upload{1, 2}", 0},
      {"a:fill(1)", 1},
      {"a:get(1)", 1},
      {"a:set(1, 2)", 0},
      {"a:totable()", 1},
      {"a:tobytes()", 1},
      {"a:clone()", 1},
      {"a:copy_from(a:clone())", 1},
      {"a:view{offset = 0, shape = 1}", 1},
      {"gpu.matmul(m, m)", 1},
      {"gpu.matmul(m, m, n, s)", 1},
      {"gpu.available('host')", 1},
      {"gpu.available('x')", 2},
      {"dev:zeros(1):close()", 0},
      {"gpu.on_warning()", 1},
      {"pcall(a.get, a, 3)", 2},
  };
  static const char setup[] =
      "gpu = require 'tidelock.core'\n"
      "dev = gpu.device('host') s = dev:stream() e = s:record()\n"
      "a = dev:zeros(2) m, n = dev:zeros{2, 2}, dev:zeros{2, 2}\n"
      "e:synchronize()\n";
  counted = (meter){0};
  lua_State *L = luaL_newstate();
  luaL_openlibs(L);
  luaL_requiref(L, "tidelock.core", luaopen_tidelock_core, 0);
  expect(lua_gettop(L) == 1);
  luaL_requiref(L, "tidelock.core", luaopen_tidelock_core, 0);
  expect(lua_gettop(L) == 2 && lua_rawequal(L, 1, 2));
  lua_settop(L, 0);
  if (!expect(luaL_dostring(L, setup) == LUA_OK))
    tap_note("  %s", lua_tostring(L, -1));
  lua_Unsigned registry = 0;
  for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
    char text[128];
    snprintf(text, sizeof text, "return %s", calls[i].call);
    for (int n = 0; n < 20; n++) {
      lua_settop(L, 0);
      bool ran = luaL_dostring(L, text) == LUA_OK;
      if (!expect(ran && lua_gettop(L) == calls[i].results)) {
        tap_note("  %s: %d values, %s", calls[i].call, lua_gettop(L),
                 ran ? "done" : lua_tostring(L, -1));
        break;
      }
      if (i == 0 && n == 0)
        registry = lua_rawlen(L, LUA_REGISTRYINDEX);
    }
  }
  expect(lua_rawlen(L, LUA_REGISTRYINDEX) == registry);
  lua_close(L);
  expect(nothing_left());
}

int main(void) {
  test("every call leaves its results on the stack and nothing else",
       test_results);
  test("Lua may run out of memory once at any request", test_lua_once);
  test("Lua may run out of memory for good at any request",
       test_lua_from_then_on);
  test("the library may run out of memory once at any request",
       test_library_once);
  test("the library may run out of memory for good at any request",
       test_library_from_then_on);
  return tap_end();
}
