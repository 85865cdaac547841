/* What it costs to bring 64 MiB into a buffer and back, from a string, a table
 * and pinned memory, against memcpy of as much in the same run, in turns. */
#define _POSIX_C_SOURCE 200809L
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdlib.h>
#include <string.h>

#include "measure.h"

enum { NBYTES = 64 << 20 };

typedef struct bench {
  bench_report report;
  lua_State *L; /* the table of transfer.lua is at index 1 */
  unsigned char *from, *to;
} bench;

/* By function of transfer.lua; NULL: memcpy. */
static const struct {
  const char *name, *function;
} figures[] = {
    {"memcpy", NULL},
    {"upload, string", "upload_string"},
    {"upload, table of numbers", "upload_table"},
    {"upload_async, pinned, and the wait", "upload_pinned"},
    {"tobytes", "tobytes"},
    {"totable", "totable"},
    {"download_async, pinned, and the wait", "download_pinned"},
};
enum { FIGURES = sizeof figures / sizeof figures[0] };

static void lua_run(bench *run, const char *function) {
  lua_State *L = run->L;
  lua_getfield(L, 1, function);
  if (lua_pcall(L, 0, 0, 0) != LUA_OK)
    bench_fail(&run->report, "%s", lua_tostring(L, -1));
}

static void lua_begin(bench *run) {
  lua_State *L = run->L = luaL_newstate();
  if (L == NULL)
    bench_fail(&run->report, "no memory for a Lua state");
  luaL_openlibs(L);
  lua_getglobal(L, "package");
  lua_pushliteral(L, BENCH_LUA_FOLDER "/?.lua;" BENCH_LUA_FOLDER "/?/init.lua");
  lua_setfield(L, -2, "path");
  lua_pushliteral(L, BENCH_LUA_CPATH);
  lua_setfield(L, -2, "cpath");
  lua_settop(L, 0);
  if (luaL_loadfile(L, BENCH_SCRIPT) != LUA_OK ||
      lua_pcall(L, 0, 1, 0) != LUA_OK)
    bench_fail(&run->report, "%s", lua_tostring(L, -1));
}

/* GB/s of one figure; garbage of the last one is collected before. */
static double figure_measure(bench *run, int figure) {
  lua_gc(run->L, LUA_GCCOLLECT);
  int64_t start = bench_now();
  if (figures[figure].function == NULL)
    memcpy(run->to, run->from, NBYTES);
  else
    lua_run(run, figures[figure].function);
  return NBYTES / (double)(bench_now() - start);
}

int main(int count, char **arguments) {
  static bench run = {
      .report = {.program = "transfer", .unit = "GB/s", .rounds = 11}};
  bench_arguments(&run.report, count, arguments);
  run.from = malloc(NBYTES);
  run.to = malloc(NBYTES);
  if (run.from == NULL || run.to == NULL)
    bench_fail(&run.report, "no memory");
  memset(run.from, 1, NBYTES);
  memset(run.to, 2, NBYTES);
  lua_begin(&run);
  for (int i = 0; i < FIGURES; i++)
    bench_add(&run.report, figures[i].name);
  for (int round = -1; round < run.report.rounds; round++)
    for (int i = 0; i < FIGURES; i++) {
      int turn = (i + round + 1) % FIGURES;
      double rate = figure_measure(&run, turn);
      if (round >= 0)
        bench_sample(&run.report.series[turn], rate);
    }
  lua_run(&run, "check");
  lua_close(run.L);
  const bench_series *s = run.report.series;
  bench_want(&run.report, "upload of a string / memcpy",
             bench_ratio(&s[1], &s[0]), false, 0.5);
  bench_want(&run.report, "upload from pinned / memcpy",
             bench_ratio(&s[3], &s[0]), false, 0.5);
  bench_finish(&run.report);
  free(run.from);
  free(run.to);
  return EXIT_SUCCESS;
}
