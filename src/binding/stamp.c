/* Time stamps that remember what was in flight: dev:now(), and subtraction
 * that says what the difference is a time of. */
#include "binding/binding.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct stamp {
  tl_handle handle; /* the device */
  int64_t nanoseconds;
  int64_t read_wait; /* what reads had waited by then */
  int32_t count;
  tl_mark marks[]; /* where each stream stood */
} stamp;

/* Where the streams stand now; room for a few is on the C stack. */
typedef struct reading {
  int64_t nanoseconds;
  int32_t count;
  tl_mark *marks;
  tl_mark few[8];
} reading;

/* May push a userdata with the marks. Streams may be made by other threads
 * meanwhile: looks again until they fit. The object of argument 1, a device or
 * a stamp, is fetched each time: a finalizer may have closed it. */
static void read_now(lua_State *L, tl_class class, reading *r) {
  tl_error error;
  int32_t room = sizeof r->few / sizeof r->few[0];
  r->marks = r->few;
  for (;;) {
    tl_device *device = tl_checkobject(L, 1, class);
    tl_check(L,
             tl_device_stamp(device, &r->nanoseconds, r->marks, room, &r->count,
                             &error),
             &error);
    if (r->count <= room)
      return;
    room = r->count + 8;
    r->marks = lua_newuserdatauv(L, (size_t)room * sizeof *r->marks, 0);
  }
}

int tl_stamp_now(lua_State *L) {
  reading r;
  tl_checkcount(L, 1);
  read_now(L, TL_DEVICE, &r);
  size_t nbytes = (size_t)r.count * sizeof *r.marks;
  stamp *s = tl_newobject(L, TL_STAMP, sizeof *s + nbytes);
  s->nanoseconds = r.nanoseconds;
  s->read_wait = tl_device_read_wait(tl_checkobject(L, 1, TL_DEVICE));
  s->count = r.count;
  if (nbytes > 0)
    memcpy(s->marks, r.marks, nbytes);
  tl_device *device = tl_checkobject(L, 1, TL_DEVICE);
  tl_device_retain(device);
  tl_setobject(L, &s->handle, device, device);
  return 1;
}

static stamp *check_stamp(lua_State *L, int arg) {
  tl_checkobject(L, arg, TL_STAMP);
  return lua_touserdata(L, arg);
}

/* Launches in flight: between least and most, of `made`. */
typedef struct flight {
  uint64_t least, most, made;
} flight;

static uint64_t above(uint64_t a, uint64_t b) {
  return a > b ? a - b : 0;
}

static uint64_t larger(uint64_t a, uint64_t b) {
  return a > b ? a : b;
}

static uint64_t smaller(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

/* Where the stream stood at the stamp; all 0 if it was not there. */
static tl_mark mark_at(const stamp *s, uint64_t stream) {
  for (int32_t i = 0; i < s->count; i++)
    if (s->marks[i].stream == stream)
      return s->marks[i];
  return (tl_mark){.stream = stream};
}

/* What was in flight at the marks, of the launches made since the stamp `from`
 * (NULL: ever). */
static flight in_flight(const tl_mark *marks, int32_t count,
                        const stamp *from) {
  flight f = {0, 0, 0};
  for (int32_t i = 0; from != NULL && i < from->count; i++)
    f.made -= from->marks[i].launched;
  for (int32_t i = 0; i < count; i++) {
    const tl_mark *m = &marks[i];
    uint64_t before = from != NULL ? mark_at(from, m->stream).launched : 0;
    f.made += m->launched;
    f.least += above(m->launched, larger(before, m->completed_most));
    f.most += above(m->launched, larger(before, m->completed_least));
  }
  return f;
}

/* Launches that ended between the stamps, at least: those in flight at the
 * earlier one, and those made since. */
static void count_ended(const stamp *earlier, const stamp *later,
                        uint64_t *before, uint64_t *since) {
  *before = *since = 0;
  for (int32_t i = 0; i < later->count; i++) {
    const tl_mark *m = &later->marks[i];
    tl_mark from = mark_at(earlier, m->stream);
    *before +=
        above(smaller(m->completed_least, from.launched), from.completed_most);
    *since += above(m->completed_least, from.launched);
  }
}

/* Pushes the details that a warning carries, its place included. */
static void push_details(lua_State *L, double seconds, const flight *f) {
  lua_createtable(L, 0, 5);
  lua_pushnumber(L, seconds);
  lua_setfield(L, -2, "seconds");
  lua_pushinteger(L, (lua_Integer)f->least);
  lua_setfield(L, -2, "least");
  lua_pushinteger(L, (lua_Integer)f->most);
  lua_setfield(L, -2, "most");
  lua_pushinteger(L, (lua_Integer)f->made);
  lua_setfield(L, -2, "made");
  luaL_where(L, 1);
  lua_setfield(L, -2, "where");
}

/* Whether the count is exact. */
static const char *about(const flight *f) {
  return f->least == f->most ? "" : "about ";
}

/* Stack from here on: later, earlier, seconds. */
enum { SECONDS = 3 };

static int sub_finish(lua_State *L, int status, lua_KContext context) {
  (void)status;
  (void)context;
  lua_settop(L, SECONDS);
  return 1;
}

static int sub_warn_inflight(lua_State *L, int status, lua_KContext context) {
  (void)status;
  (void)context;
  const stamp *later = lua_touserdata(L, 1), *earlier = lua_touserdata(L, 2);
  lua_settop(L, SECONDS);
  flight f = in_flight(later->marks, later->count, earlier);
  if (f.least == 0)
    return sub_finish(L, LUA_OK, 0);
  push_details(L, lua_tonumber(L, SECONDS), &f);
  lua_pushfstring(
      L,
      "clock stopped with %s%I of %I launches in flight: this is enqueue time, "
      "not execution time; synchronize before you stop the clock",
      about(&f), (LUAI_UACINT)f.most, (LUAI_UACINT)f.made);
  return tl_warn(L, "W-INFLIGHT", lua_tostring(L, -1), -2, 0, sub_finish);
}

/* A read that waited for earlier launches, for more than a tenth of the
 * interval, is what it is a time of. Pushes the message, or nothing. */
static bool push_charged(lua_State *L, const stamp *earlier,
                         const stamp *later) {
  uint64_t before, since;
  char waited[32], more[64] = "";
  int64_t wait = later->read_wait - earlier->read_wait;
  count_ended(earlier, later, &before, &since);
  if (before == 0 || wait <= (later->nanoseconds - earlier->nanoseconds) / 10)
    return false;
  lua_pushnumber(L, (double)wait * 1e-9);
  lua_setfield(L, -2, "waited");
  snprintf(waited, sizeof waited, "%.3g ms", (double)wait * 1e-6);
  if (since > 0)
    snprintf(more, sizeof more, " and for %" PRIu64 " made since", since);
  lua_pushfstring(L,
                  "a read or write waited %s for %I launches made before the "
                  "clock started%s: their time is charged here; synchronize "
                  "first",
                  waited, (LUAI_UACINT)before, more);
  return true;
}

/* later - earlier --> seconds; warns when that is not the time of the work */
static int stamp_sub(lua_State *L) {
  const stamp *later = check_stamp(L, 1), *earlier = check_stamp(L, 2);
  if (later->handle.object != earlier->handle.object)
    return luaL_error(L, "the later stamp is of %s, the earlier one of %s",
                      tl_device_id(later->handle.object),
                      tl_device_id(earlier->handle.object));
  double seconds = (double)(later->nanoseconds - earlier->nanoseconds) * 1e-9;
  lua_settop(L, 2);
  if (seconds < 0) { /* taken the other way round: the same work is meant */
    const stamp *first = later;
    later = earlier;
    earlier = first;
    lua_insert(L, 1);
  }
  lua_pushnumber(L, seconds);
  flight f = in_flight(earlier->marks, earlier->count, NULL);
  if (f.least == 0)
    return sub_warn_inflight(L, LUA_OK, 0);
  push_details(L, seconds, &f);
  if (push_charged(L, earlier, later))
    return tl_warn(L, "W-CHARGED", lua_tostring(L, -1), -2, 0,
                   sub_warn_inflight);
  lua_pushfstring(L,
                  "%s%I earlier launches were still running when the clock "
                  "started: their time is in this number; synchronize first",
                  about(&f), (LUAI_UACINT)f.most);
  return tl_warn(L, "W-BACKLOG", lua_tostring(L, -1), -2, 0, sub_warn_inflight);
}

/* elapsed() --> seconds since the stamp, launches made since and in flight */
static int stamp_elapsed(lua_State *L) {
  tl_checkcount(L, 1);
  const stamp *from = check_stamp(L, 1);
  reading r;
  read_now(L, TL_STAMP, &r);
  flight f = in_flight(r.marks, r.count, from);
  lua_pushnumber(L, (double)(r.nanoseconds - from->nanoseconds) * 1e-9);
  lua_pushinteger(L, (lua_Integer)f.most);
  return 2;
}

static int stamp_gc(lua_State *L) {
  tl_device_release(tl_takehandle(L, tl_checkhandle(L, 1, TL_STAMP)));
  return 0;
}

static int stamp_tostring(lua_State *L) {
  tl_handle *handle = tl_checkhandle(L, 1, TL_STAMP);
  const stamp *s = lua_touserdata(L, 1);
  char seconds[32];
  if (handle->object == NULL) {
    lua_pushliteral(L, "stamp (closed)");
    return 1;
  }
  snprintf(seconds, sizeof seconds, "%.9f", (double)s->nanoseconds * 1e-9);
  lua_pushfstring(L, "stamp %s s on %s", seconds, tl_device_id(handle->object));
  return 1;
}

const luaL_Reg tl_stamp_methods[] = {
    {"elapsed", stamp_elapsed}, {"close", stamp_gc}, {NULL, NULL}};

const luaL_Reg tl_stamp_meta[] = {
    {"__gc", stamp_gc},   {"__close", stamp_gc},
    {"__sub", stamp_sub}, {"__tostring", stamp_tostring},
    {NULL, NULL},
};
