/* What an enqueue costs the thread that makes it, from Lua and from C, against
 * libuv's uv_queue_work. All figures are taken in one run, in turns; the order
 * is rotated every round.
 *
 * "held": the worker stands at a closed gate (libuv's in a blocked work item),
 * so nothing runs and the queue does not fill. "running": the worker takes the
 * work while it is enqueued, so the two sides share the queue's memory.
 * "through": the same until all is done, libuv's callbacks in its loop
 * included. libuv's requests are the caller's and made beforehand, its best
 * case. */
#define _POSIX_C_SOURCE 200809L
#include "tidelock.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <uv.h>

#include "measure.h"

enum { CALLS = 500, WARM_UP = 6, N = 64 }; /* CALLS: below the queue's 1024 */

int luaopen_tidelock_core(lua_State *L);

typedef struct bench {
  bench_report report;
  lua_State *L; /* the table of enqueue.lua is at index 1 */
  tl_device *device;
  tl_stream *stream;
  tl_gate *gate;
  tl_buffer *a, *b, *c;
  uv_loop_t loop;
  uv_work_t requests[CALLS], blocker;
  uv_sem_t entered, leave;
  int finished; /* of requests and blocker */
  bool blocked; /* the blocker is in the pool */
} bench;

static void check(bench *run, tl_status status, const tl_error *error) {
  if (status != TL_OK)
    bench_fail(&run->report, "%s", error->text);
}

/* ---- Lua ----------------------------------------------------------------- */

static int empty(lua_State *L) {
  (void)L;
  return 0;
}

/* Calls a function of enqueue.lua with the number of calls to make. */
static void lua_run(bench *run, const char *function) {
  lua_State *L = run->L;
  lua_getfield(L, 1, function);
  lua_pushinteger(L, CALLS);
  if (lua_pcall(L, 1, 0, 0) != LUA_OK)
    bench_fail(&run->report, "%s", lua_tostring(L, -1));
}

static void lua_hold(bench *run) {
  lua_run(run, "hold");
}

static void lua_finish(bench *run) {
  lua_run(run, "finish");
}

static void lua_begin(bench *run) {
  lua_State *L = run->L = luaL_newstate();
  if (L == NULL)
    bench_fail(&run->report, "no memory for a Lua state");
  luaL_openlibs(L);
  luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
  lua_pushcfunction(L, luaopen_tidelock_core);
  lua_setfield(L, -2, "tidelock.core");
  lua_getglobal(L, "package");
  lua_pushliteral(L, BENCH_LUA_FOLDER "/?.lua;" BENCH_LUA_FOLDER "/?/init.lua");
  lua_setfield(L, -2, "path");
  lua_settop(L, 0);
  bool loaded = luaL_loadfile(L, BENCH_SCRIPT) == LUA_OK;
  lua_pushcfunction(L, empty);
  if (!loaded || lua_pcall(L, 1, 1, 0) != LUA_OK)
    bench_fail(&run->report, "%s", lua_tostring(L, loaded ? -1 : 1));
}

/* ---- C ------------------------------------------------------------------- */

static void c_hold(bench *run) {
  tl_error error;
  int64_t least, most = 1;
  check(run, tl_stream_spin(run->stream, 0, &error), &error);
  check(run, tl_gate_create(run->stream, 60, &run->gate, &error), &error);
  while (most > 0) /* as in enqueue.lua */
    check(run, tl_stream_inflight(run->stream, &least, &most, &error), &error);
}

static void c_finish(bench *run) {
  tl_error error;
  bool done = true;
  if (run->gate != NULL)
    check(run, tl_gate_open(run->gate, &done, &error), &error);
  if (!done)
    bench_fail(&run->report, "the gate has timed out");
  tl_gate_release(run->gate);
  run->gate = NULL;
  check(run, tl_stream_synchronize(run->stream, -1, &done, &error), &error);
}

static void c_matmul_by(bench *run, const char *kernel) {
  tl_error error;
  tl_matmul_options options = {
      .size = sizeof options, .stream = run->stream, .kernel = kernel};
  for (int i = 0; i < CALLS; i++)
    check(run, tl_matmul(run->a, run->b, run->c, &options, &error), &error);
}

static void c_matmul(bench *run, const char *unused) {
  (void)unused;
  c_matmul_by(run, NULL);
}

static void c_matmul_tiled(bench *run, const char *unused) {
  (void)unused;
  c_matmul_by(run, "tiled");
}

static void c_spin(bench *run, const char *unused) {
  tl_error error;
  (void)unused;
  for (int i = 0; i < CALLS; i++)
    check(run, tl_stream_spin(run->stream, 0, &error), &error);
}

static tl_buffer *buffer_of(bench *run, float value) {
  static const int64_t shape[] = {N, N};
  tl_buffer *buffer;
  tl_error error;
  check(run,
        tl_buffer_create(run->device, TL_FLOAT32, 2, shape, &buffer, &error),
        &error);
  check(run, tl_buffer_fill(buffer, &value, run->stream, &error), &error);
  return buffer;
}

static void c_begin(bench *run) {
  tl_error error;
  check(run, tl_device_open("host", NULL, &run->device, &error), &error);
  check(run, tl_stream_create(run->device, &run->stream, &error), &error);
  run->a = buffer_of(run, 1);
  run->b = buffer_of(run, 1);
  run->c = buffer_of(run, 0);
}

static void c_end(bench *run) {
  float last;
  tl_error error;
  check(run, tl_buffer_get(run->c, (int64_t[]){N - 1, N - 1}, &last, &error),
        &error);
  if (last != (float)N)
    bench_fail(&run->report, "the product is wrong: %g", (double)last);
  tl_buffer_release(run->a);
  tl_buffer_release(run->b);
  tl_buffer_release(run->c);
  tl_stream_release(run->stream);
  tl_device_release(run->device);
}

/* ---- libuv --------------------------------------------------------------- */

static void uv_check(bench *run, int code) {
  if (code != 0)
    bench_fail(&run->report, "libuv: %s", uv_strerror(code));
}

static void work_empty(uv_work_t *request) {
  (void)request;
}

static void work_block(uv_work_t *request) {
  bench *run = request->data;
  uv_sem_post(&run->entered);
  uv_sem_wait(&run->leave);
}

static void work_finished(uv_work_t *request, int status) {
  bench *run = request->data;
  uv_check(run, status);
  run->finished++;
}

static void uv_hold(bench *run) {
  run->blocked = true;
  uv_check(run,
           uv_queue_work(&run->loop, &run->blocker, work_block, work_finished));
  uv_sem_wait(&run->entered);
}

static void uv_calls(bench *run, const char *unused) {
  (void)unused;
  for (int i = 0; i < CALLS; i++)
    uv_check(run, uv_queue_work(&run->loop, &run->requests[i], work_empty,
                                work_finished));
}

static void uv_finish(bench *run) {
  if (run->blocked)
    uv_sem_post(&run->leave);
  uv_check(run, uv_run(&run->loop, UV_RUN_DEFAULT));
  if (run->finished != CALLS + run->blocked)
    bench_fail(&run->report, "libuv: %d requests of %d have run", run->finished,
               CALLS + run->blocked);
  run->finished = 0;
  run->blocked = false;
}

static void uv_begin(bench *run) {
  if (setenv("UV_THREADPOOL_SIZE", "1", 1) != 0)
    bench_fail(&run->report, "cannot set UV_THREADPOOL_SIZE");
  uv_check(run, uv_loop_init(&run->loop));
  uv_check(run, uv_sem_init(&run->entered, 0));
  uv_check(run, uv_sem_init(&run->leave, 0));
  run->blocker.data = run;
  for (int i = 0; i < CALLS; i++)
    run->requests[i].data = run;
}

/* ---- the figures --------------------------------------------------------- */

typedef struct figure {
  const char *name;
  void (*hold)(bench *); /* NULL: the worker runs */
  void (*calls)(bench *, const char *);
  const char *function;    /* for calls: of enqueue.lua */
  void (*finish)(bench *); /* NULL: nothing was enqueued */
  bool through;            /* the time until all is done counts too */
} figure;

enum {
  LUA_MATMUL,
  LUA_OPTIONS,
  C_MATMUL,
  C_TILED,
  LUA_SPIN,
  C_SPIN,
  LIBUV,
  LUA_SPIN_RUNNING,
  C_SPIN_RUNNING,
  LIBUV_RUNNING,
  LUA_SPIN_THROUGH,
  C_SPIN_THROUGH,
  LIBUV_THROUGH,
  LUA_EMPTY,
  FIGURES
};

static const figure figures[FIGURES] = {
    [LUA_MATMUL] = {"held, Lua: matmul(a, b, c, s)", lua_hold, lua_run,
                    "matmul", lua_finish, false},
    [LUA_OPTIONS] = {"held, Lua: matmul(a, b, c, options)", lua_hold, lua_run,
                     "matmul_options", lua_finish, false},
    [C_MATMUL] = {"held, C: tl_matmul", c_hold, c_matmul, NULL, c_finish,
                  false},
    [C_TILED] = {"held, C: tl_matmul, kernel tiled", c_hold, c_matmul_tiled,
                 NULL, c_finish, false},
    [LUA_SPIN] = {"held, Lua: s:spin(0)", lua_hold, lua_run, "spin", lua_finish,
                  false},
    [C_SPIN] = {"held, C: tl_stream_spin", c_hold, c_spin, NULL, c_finish,
                false},
    [LIBUV] = {"held, C: uv_queue_work", uv_hold, uv_calls, NULL, uv_finish,
               false},
    [LUA_SPIN_RUNNING] = {"running, Lua: s:spin(0)", NULL, lua_run, "spin",
                          lua_finish, false},
    [C_SPIN_RUNNING] = {"running, C: tl_stream_spin", NULL, c_spin, NULL,
                        c_finish, false},
    [LIBUV_RUNNING] = {"running, C: uv_queue_work", NULL, uv_calls, NULL,
                       uv_finish, false},
    [LUA_SPIN_THROUGH] = {"through, Lua: s:spin(0), synchronize", NULL, lua_run,
                          "spin", lua_finish, true},
    [C_SPIN_THROUGH] = {"through, C: tl_stream_spin, synchronize", NULL, c_spin,
                        NULL, c_finish, true},
    [LIBUV_THROUGH] = {"through, C: uv_queue_work, uv_run", NULL, uv_calls,
                       NULL, uv_finish, true},
    [LUA_EMPTY] = {"Lua: an empty C function", NULL, lua_run, "empty", NULL,
                   false},
};

/* A worker that was woken to be held goes back to sleep meanwhile. */
static void settle(void) {
  nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
}

static double figure_measure(bench *run, const figure *f) {
  if (f->hold != NULL)
    f->hold(run);
  settle();
  int64_t start = bench_now();
  f->calls(run, f->function);
  int64_t end = bench_now();
  if (f->finish != NULL)
    f->finish(run);
  if (f->through)
    end = bench_now();
  return (double)(end - start) / CALLS;
}

static void targets_add(bench_report *report) {
  const bench_series *s = report->series;
  bench_want(report, "Lua matmul, ns", bench_median(&s[LUA_MATMUL]), true,
             1000);
  bench_want(report, "Lua matmul / uv_queue_work, held",
             bench_ratio(&s[LUA_MATMUL], &s[LIBUV]), true, 1);
  bench_want(report, "Lua spin / uv_queue_work, held",
             bench_ratio(&s[LUA_SPIN], &s[LIBUV]), true, 1);
  bench_want(report, "Lua spin / uv_queue_work, running",
             bench_ratio(&s[LUA_SPIN_RUNNING], &s[LIBUV_RUNNING]), true, 1);
  bench_want(report, "Lua spin / uv_queue_work, through",
             bench_ratio(&s[LUA_SPIN_THROUGH], &s[LIBUV_THROUGH]), true, 1);
}

int main(int count, char **arguments) {
  static bench run = {
      .report = {.program = "enqueue", .unit = "ns a call", .rounds = 101}};
  bench_arguments(&run.report, count, arguments);
  uv_begin(&run);
  c_begin(&run);
  lua_begin(&run);
  for (int i = 0; i < FIGURES; i++)
    bench_add(&run.report, figures[i].name);
  for (int round = -WARM_UP; round < run.report.rounds; round++)
    for (int i = 0; i < FIGURES; i++) {
      int turn = (i + round + WARM_UP) % FIGURES;
      double cost = figure_measure(&run, &figures[turn]);
      if (round >= 0)
        bench_sample(&run.report.series[turn], cost);
    }
  lua_run(&run, "check");
  c_end(&run);
  lua_close(run.L);
  uv_check(&run, uv_loop_close(&run.loop));
  targets_add(&run.report);
  bench_finish(&run.report);
  return EXIT_SUCCESS;
}
