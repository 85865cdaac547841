/* Ctrl-C while the standalone interpreter waits for a stream: the wait ends
 * with Lua's own "interrupted!", and meanwhile it has cost no core.
 *   interrupt_test [BUILD]      (or environment variable BUILD)
 * LUA: the interpreter's command (lua5.4). */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tap.h"

static const char *build;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void nap(double seconds) {
  struct timespec t = {.tv_sec = (time_t)seconds};
  t.tv_nsec = (long)((seconds - (double)t.tv_sec) * 1e9);
  nanosleep(&t, NULL);
}

/* What came of a script that was interrupted. */
typedef struct outcome {
  int status;     /* exit code, or minus the signal */
  double waited;  /* seconds from "ready" to the signal */
  double took;    /* seconds from the signal to the end */
  double cpu;     /* seconds of processor time from start to end */
  char text[512]; /* what it wrote after "ready" */
} outcome;

/* Runs the script, sends SIGINT a second after it has written "ready", and
 * waits for the end; a script that goes on is killed after 8 s. */
static outcome interrupt(const char *script) {
  outcome result = {.status = -SIGKILL};
  int out[2];
  if (pipe(out) != 0)
    tap_bail("no pipe");
  fflush(stdout);
  pid_t child = fork();
  if (child < 0)
    tap_bail("no fork");
  if (child == 0) {
    char path[4096];
    snprintf(path, sizeof path, "%s/?.so", build);
    setenv("LUA_CPATH", path, 1);
    setenv("SCRIPT", script, 1);
    if (getenv("LUA") == NULL)
      setenv("LUA", "lua5.4", 1);
    signal(SIGINT, SIG_DFL); /* a shell may have set it to ignored */
    dup2(out[1], STDOUT_FILENO);
    dup2(out[1], STDERR_FILENO);
    close(out[0]);
    close(out[1]);
    execl("/bin/sh", "sh", "-c", "exec $LUA -e \"$SCRIPT\"", (char *)NULL);
    _exit(127);
  }
  close(out[1]);
  char ready[6];
  if (read(out[0], ready, sizeof ready) != (ssize_t)sizeof ready ||
      memcmp(ready, "ready\n", sizeof ready) != 0) {
    tap_note("the script did not start");
    kill(child, SIGKILL);
  }
  double began = now();
  nap(1);
  double sent = now();
  kill(child, SIGINT);
  struct rusage usage;
  int status = 0;
  pid_t ended = 0;
  while (ended == 0 && now() - sent < 8) {
    nap(0.005);
    ended = wait4(child, &status, WNOHANG, &usage);
  }
  if (ended == 0) {
    kill(child, SIGKILL);
    wait4(child, &status, 0, &usage);
  }
  result.waited = sent - began;
  result.took = now() - sent;
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  result.cpu = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
               (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
  size_t used = 0;
  ssize_t got;
  while (used < sizeof result.text - 1 &&
         (got = read(out[0], result.text + used,
                     sizeof result.text - 1 - used)) > 0)
    used += (size_t)got;
  close(out[0]);
  return result;
}

static void outcome_check(const outcome *o, int status, const char *words) {
  bool met = expect(o->status == status);
  met = expect(strstr(o->text, words) != NULL) && met;
  met = expect(o->waited + o->took < 2.5) && met; /* the spin is 10 s */
  met = expect(o->cpu < 0.2 * o->waited) && met;
  if (!met)
    tap_note("  status %d after %.2f s + %.2f s, %.2f s of processor: %s",
             o->status, o->waited, o->took, o->cpu, o->text);
}

#define OPEN                                                                   \
  "local gpu = require 'tidelock.core'\n"                                      \
  "local dev = gpu.device('host', {wait = 'block', queue_depth = 4})\n"        \
  "local s = dev:stream()\n"                                                   \
  "local function ready() io.write('ready\\n') io.stdout:flush() end\n"

static void test_synchronize(void) {
  outcome o = interrupt(OPEN "s:spin(10) ready() s:synchronize()\n");
  outcome_check(&o, 1, "interrupted!");
}

static void test_full_queue(void) {
  outcome o = interrupt(OPEN "s:spin(10) ready()\n"
                             "for _ = 1, 9 do s:spin(0) end\n");
  outcome_check(&o, 1, "interrupted!");
}

/* Caught, the error leaves everything usable. */
static void test_goes_on(void) {
  outcome o = interrupt(OPEN "local x = dev:zeros(4)\n"
                             "s:spin(10) x:fill(1, s) ready()\n"
                             "local ok, why = pcall(x.totable, x)\n"
                             "local m = dev:full({2, 2}, 3)\n"
                             "local c = gpu.matmul(m, m, {kernel = 'tiled'})\n"
                             "io.write(tostring(ok), ' ', tostring(why), ' ',\n"
                             "         tostring(c:get(1, 1) == 18), ' ',\n"
                             "         tostring(s:done()))\n");
  outcome_check(&o, 0, "interrupted! true false");
}

int main(int argc, char **argv) {
  build = argc > 1 ? argv[1] : getenv("BUILD");
  if (build == NULL)
    tap_bail("wanted: the build folder, as argument or in BUILD");
  test("an interrupt ends a synchronize, which has cost no core",
       test_synchronize);
  test("an interrupt ends a launch that waits in a full queue",
       test_full_queue);
  test("a script that catches the interrupt goes on", test_goes_on);
  return tap_end();
}
