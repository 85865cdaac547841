/* What `require "tidelock"` takes in a fresh process, and what it leaves alone:
 * no thread is started and no BLAS or driver opened, by it or by opening the
 * host device; the BLAS is opened at its first use.
 *
 * The program starts itself once for each sample. The clock is read inside the
 * new process, around the require alone. */
#define _POSIX_C_SOURCE 200809L
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measure.h"

static const char child_argument[] = "--in-a-fresh-process";

/* The steps of one process, in order, each timed and looked at afterwards. */
enum { START, REQUIRE, DEVICE, BLAS, STEPS };
static const struct {
  const char *name; /* of its series */
  const char *chunk;
} steps[STEPS] = {
    [START] = {"luaL_newstate, luaL_openlibs", NULL},
    [REQUIRE] = {"require 'tidelock'", "gpu = require 'tidelock'"},
    [DEVICE] = {"gpu.device('host')", "dev = gpu.device('host')"},
    [BLAS] = {"first matmul, BLAS opened, and the wait",
              "local a = dev:full({8, 8}, 1) "
              "local c = gpu.matmul(a, a, {kernel = 'blas'}) "
              "assert(c:get(1, 1) == 8)"},
};

/* What a process looks like after a step. */
typedef struct sight {
  double milliseconds;
  int threads;
  int blas, driver; /* mapped files of that kind */
} sight;

static bench_report report = {.program = "require", .unit = "ms", .rounds = 21};

/* ---- in the fresh process ------------------------------------------------ */

static int threads_count(void) {
  char line[256];
  int threads = -1;
  FILE *file = fopen("/proc/self/status", "r");
  while (file != NULL && fgets(line, sizeof line, file) != NULL)
    if (sscanf(line, "Threads: %d", &threads) == 1)
      break;
  if (file != NULL)
    fclose(file);
  if (threads < 0)
    bench_fail(&report, "no thread count in /proc/self/status");
  return threads;
}

static void maps_look(sight *now) {
  char line[1024];
  FILE *file = fopen("/proc/self/maps", "r");
  if (file == NULL)
    bench_fail(&report, "cannot read /proc/self/maps");
  while (fgets(line, sizeof line, file) != NULL) {
    const char *path = strchr(line, '/');
    const char *name = path != NULL ? strrchr(path, '/') : NULL;
    if (name == NULL)
      continue;
    now->blas += strstr(name, "blas") != NULL || strstr(name, "mkl") != NULL;
    now->driver +=
        strstr(name, "libcuda") != NULL || strstr(name, "libnv") != NULL;
  }
  fclose(file);
}

static void path_set(lua_State *L, const char *field, const char *value) {
  lua_getglobal(L, "package");
  lua_pushstring(L, value);
  lua_setfield(L, -2, field);
  lua_pop(L, 1);
}

static int child_main(void) {
  lua_State *L = NULL;
  for (int i = 0; i < STEPS; i++) {
    sight now = {0};
    int64_t start = bench_now();
    if (i == START) {
      L = luaL_newstate();
      if (L == NULL)
        bench_fail(&report, "no memory for a Lua state");
      luaL_openlibs(L);
    } else if (luaL_dostring(L, steps[i].chunk)) {
      bench_fail(&report, "%s", lua_tostring(L, -1));
    }
    now.milliseconds = (double)(bench_now() - start) * 1e-6;
    now.threads = threads_count();
    maps_look(&now);
    printf("%.6f %d %d %d\n", now.milliseconds, now.threads, now.blas,
           now.driver);
    path_set(L, "path",
             BENCH_LUA_FOLDER "/?.lua;" BENCH_LUA_FOLDER "/?/init.lua");
    path_set(L, "cpath", BENCH_LUA_CPATH);
  }
  lua_close(L);
  return EXIT_SUCCESS;
}

/* ---- in the measuring process -------------------------------------------- */

static void child_run(const char *command, sight *sights) {
  FILE *output = popen(command, "r");
  if (output == NULL)
    bench_fail(&report, "cannot run %s", command);
  for (int i = 0; i < STEPS; i++)
    if (fscanf(output, "%lf %d %d %d", &sights[i].milliseconds,
               &sights[i].threads, &sights[i].blas, &sights[i].driver) != 4)
      bench_fail(&report, "%s said too little", command);
  if (pclose(output) != 0)
    bench_fail(&report, "%s failed", command);
}

/* These are facts, not times: one that is not so is an error. */
static void sights_check(const sight *sights) {
  static const int quiet[] = {REQUIRE, DEVICE};
  for (size_t i = 0; i < sizeof quiet / sizeof quiet[0]; i++) {
    const sight *s = &sights[quiet[i]];
    const char *name = steps[quiet[i]].name;
    if (s->threads != sights[START].threads)
      bench_fail(&report, "%s: %d threads, before %d", name, s->threads,
                 sights[START].threads);
    if (s->blas != 0 || s->driver != 0)
      bench_fail(&report, "%s: %s is loaded", name,
                 s->blas != 0 ? "a BLAS" : "a driver");
  }
  if (sights[BLAS].blas == 0)
    bench_fail(&report, "%s: no BLAS is loaded", steps[BLAS].name);
}

static void sights_print(const sight *sights) {
  printf("%-46s %10s  %10s    %s\n", "after", "threads", "BLAS", "driver");
  for (int i = 0; i < STEPS; i++)
    printf("%-46s %10d  %10s    %s\n", steps[i].name, sights[i].threads,
           sights[i].blas > 0 ? "loaded" : "no",
           sights[i].driver > 0 ? "loaded" : "no");
}

int main(int count, char **arguments) {
  if (count == 2 && strcmp(arguments[1], child_argument) == 0)
    return child_main();
  bench_arguments(&report, count, arguments);
  char command[4096];
  int length = snprintf(command, sizeof command, "exec '%s' %s", arguments[0],
                        child_argument);
  if (length < 0 || (size_t)length >= sizeof command)
    bench_fail(&report, "the program's own path is too long");
  sight sights[STEPS];
  for (int i = 0; i < STEPS; i++)
    bench_add(&report, steps[i].name);
  for (int round = -1; round < report.rounds; round++) { /* one to warm up */
    child_run(command, sights);
    sights_check(sights);
    for (int i = 0; i < STEPS && round >= 0; i++)
      bench_sample(&report.series[i], sights[i].milliseconds);
  }
  bench_want(&report, "require 'tidelock', ms",
             bench_median(&report.series[REQUIRE]), true, 5);
  sights_print(sights);
  bench_finish(&report);
  return EXIT_SUCCESS;
}
