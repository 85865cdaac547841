/* A host program with Lua and the module inside:
 *   lua_host [--leave-open] script [arguments]
 * Scripts get fork() --> 0 | pid, wait(pid, seconds) --> status | nil,
 * getpid() and _exit(status). Reports an error and ends with 1, as the
 * standalone interpreter does; with --leave-open the state is never closed. */
#define _GNU_SOURCE
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int luaopen_tidelock_core(lua_State *L);

static int host_fork(lua_State *L) {
  fflush(stdout);
  pid_t child = fork();
  if (child < 0)
    return luaL_error(L, "no fork");
  lua_pushinteger(L, child);
  return 1;
}

/* The child's exit status, or minus the signal that ended it; nil: it was still
 * running, and has been killed. */
static int host_wait(lua_State *L) {
  pid_t child = (pid_t)luaL_checkinteger(L, 1);
  double left = luaL_checknumber(L, 2);
  const struct timespec pause = {.tv_nsec = 5000000};
  for (; left > 0; left -= 0.005, nanosleep(&pause, NULL)) {
    int status;
    if (waitpid(child, &status, WNOHANG) != child)
      continue;
    lua_pushinteger(L, WIFEXITED(status) ? WEXITSTATUS(status)
                                         : -WTERMSIG(status));
    return 1;
  }
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  lua_pushnil(L);
  return 1;
}

static int host_getpid(lua_State *L) {
  lua_pushinteger(L, getpid());
  return 1;
}

static int host_exit(lua_State *L) {
  int status = (int)luaL_checkinteger(L, 1);
  fflush(stdout);
  _exit(status);
}

static int traceback(lua_State *L) {
  luaL_traceback(L, L, luaL_tolstring(L, 1, NULL), 1);
  return 1;
}

int main(int argc, char **argv) {
  bool leave_open = argc > 1 && strcmp(argv[1], "--leave-open") == 0;
  int script = leave_open ? 2 : 1;
  if (argc <= script) {
    fprintf(stderr, "usage: %s [--leave-open] script [arguments]\n", argv[0]);
    return 2;
  }
  lua_State *L = luaL_newstate();
  if (L == NULL)
    return 2;
  luaL_openlibs(L);
  luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
  lua_pushcfunction(L, luaopen_tidelock_core);
  lua_setfield(L, -2, "tidelock.core");
  lua_settop(L, 0);
  lua_register(L, "fork", host_fork);
  lua_register(L, "wait", host_wait);
  lua_register(L, "getpid", host_getpid);
  lua_register(L, "_exit", host_exit);
  lua_pushcfunction(L, traceback);
  int status = luaL_loadfile(L, argv[script]);
  for (int i = script + 1; i < argc; i++)
    lua_pushstring(L, argv[i]);
  if (status == LUA_OK)
    status = lua_pcall(L, argc - script - 1, 0, 1);
  if (status != LUA_OK)
    fprintf(stderr, "%s\n", lua_tostring(L, -1));
  if (!leave_open)
    lua_close(L);
  return status == LUA_OK ? 0 : 1;
}
