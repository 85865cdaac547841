/* Devices: opening, questions, waiting, closing. */
#include "binding/binding.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- open devices of this state ------------------------------------------ */

/* Pushes the open handle of that id and returns it; pushes nothing: NULL. */
static tl_handle *pushopen(lua_State *L, const char *id) {
  lua_getiuservalue(L, lua_upvalueindex(TL_STATE), TL_OPEN_DEVICES);
  lua_getfield(L, -1, id);
  lua_remove(L, -2);
  tl_handle *handle = tl_testhandle(L, -1, TL_DEVICE);
  if (handle != NULL && handle->object != NULL &&
      !tl_device_forked(handle->object))
    return handle;
  lua_pop(L, 1);
  return NULL;
}

/* Makes the handle at the top the open one of that id. */
static void setopen(lua_State *L, const char *id) {
  lua_getiuservalue(L, lua_upvalueindex(TL_STATE), TL_OPEN_DEVICES);
  lua_pushvalue(L, -2);
  lua_setfield(L, -2, id);
  lua_pop(L, 1);
}

void tl_setobject(lua_State *L, tl_handle *handle, void *object,
                  tl_device *device) {
  handle->object = object;
  tl_handle *open = pushopen(L, tl_device_id(device));
  if (open == NULL)
    return;
  if (open->object == device)
    lua_setiuservalue(L, -2, TL_KEEPS_DEVICE);
  else
    lua_pop(L, 1);
}

int tl_devicemethod(lua_State *L) {
  lua_getiuservalue(L, 1, TL_KEEPS_DEVICE);
  return 1;
}

static double *sim_field(tl_sim_options *sim, size_t offset) {
  return (double *)(void *)((char *)sim + offset);
}

/* The setting whose name is at index -2, from the value at the top. In C 0 is
 * the preset and a negative number 0. */
static void read_setting(lua_State *L, tl_sim_options *sim) {
  const char *given = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "";
  const char *name;
  size_t offset;
  bool flag;
  for (int32_t i = 0; (name = tl_sim_setting(i, &offset, &flag)) != NULL; i++)
    if (strcmp(name, given) == 0)
      break;
  if (name == NULL)
    luaL_error(L, "unknown option 'sim.%s'", luaL_tolstring(L, -2, NULL));
  name = lua_pushfstring(L, "sim.%s", name);
  lua_insert(L, -2);
  double value = flag ? tl_valueboolean(L, name) : tl_valuenumber(L, name);
  if (!(value >= 0))
    luaL_error(L, "option '%s': a number >= 0 wanted, got %f", name, value);
  *sim_field(sim, offset) = value == 0 ? -1 : value;
  lua_remove(L, -2);
}

static void read_sim(lua_State *L, int arg, tl_sim_options *sim) {
  *sim = (tl_sim_options){.size = sizeof *sim};
  if (!tl_getfield(L, arg, "sim"))
    return;
  if (!lua_istable(L, -1))
    tl_wrongfield(L, "sim", "table");
  lua_pushnil(L);
  while (lua_next(L, -2) != 0) {
    read_setting(L, sim);
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
}

/* The simulation's settings go where they are given room; options->sim points
 * there if there are any. */
static void read_options(lua_State *L, int arg, tl_device_options *options,
                         tl_sim_options *sim) {
  static const char *const fields[] = {
      "memory_limit",      "queue_depth", "wait", "faults",
      "blocking_launches", "sim",         NULL};
  tl_checkfields(L, arg, fields);
  *options = (tl_device_options){.size = sizeof *options};
  read_sim(L, arg, sim);
  if (tl_getfield(L, arg, "sim")) {
    options->sim = sim;
    lua_pop(L, 1);
  }
  if (tl_getfield(L, arg, "memory_limit")) {
    lua_pop(L, 1);
    options->memory_limit = tl_fieldinteger(L, arg, "memory_limit", 0);
    if (options->memory_limit < 1)
      luaL_error(L, "option 'memory_limit': at least 1 byte wanted, got %I",
                 (LUAI_UACINT)options->memory_limit);
  }
  if (tl_getfield(L, arg, "queue_depth")) {
    lua_pop(L, 1);
    int64_t depth = tl_fieldinteger(L, arg, "queue_depth", 0);
    if (depth < 1 || depth > 1 << 20)
      luaL_error(L,
                 "option 'queue_depth': 1 to 1048576 launches wanted, got %I",
                 (LUAI_UACINT)depth);
    options->queue_depth = (int32_t)depth;
  }
  const char *wait = tl_fieldstring(L, arg, "wait");
  if (wait != NULL && strcmp(wait, "spin") == 0)
    options->wait = TL_WAIT_SPIN;
  else if (wait != NULL && strcmp(wait, "block") != 0)
    luaL_error(L, "option 'wait': \"spin\" or \"block\" wanted, got \"%s\"",
               wait);
  options->blocking_launches =
      tl_fieldboolean(L, arg, "blocking_launches", false);
  if (tl_getfield(L, arg, "faults")) {
    tl_handle *faults = tl_testhandle(L, -1, TL_FAULTS);
    if (faults == NULL || faults->object == NULL)
      tl_wrongfield(L, "faults", "open faults");
    options->faults = faults->object;
    lua_pop(L, 1);
  }
}

static bool same_sim(const tl_sim_options *a, const tl_sim_options *b) {
  static const tl_sim_options none = {.size = sizeof none};
  return memcmp(a != NULL ? a : &none, b != NULL ? b : &none, sizeof none) == 0;
}

/* Whether a device was opened with the options that are asked for now. */
static bool same_options(tl_device *device, const tl_device_options *asked) {
  tl_device_options has;
  tl_device_opened_with(device, &has);
  return asked->memory_limit == has.memory_limit &&
         asked->queue_depth == has.queue_depth && asked->wait == has.wait &&
         asked->blocking_launches == has.blocking_launches &&
         asked->faults == has.faults && same_sim(asked->sim, has.sim);
}

static const char *check_id(lua_State *L) {
  luaL_checkstring(L, 1);
  return tl_readstring(L, 1, "device id");
}

/* Appends where a bad id came from. */
static void explain_default(tl_error *error) {
  size_t used = strlen(error->text);
  snprintf(error->text + used, sizeof error->text - used,
           " (from the environment variable TIDELOCK_DEVICE)");
}

/* What gpu.device() is where nobody says: the first GPU, else the host. Fills
 * the reason, once, where a driver is there and no GPU to be had. */
static const char *default_device(lua_State *L, tl_error *reason) {
  tl_state *state = tl_getstate(L);
  reason->code = TL_OK;
  if (state->default_device == NULL)
    state->default_device =
        tl_device_available("cuda", reason) ? "cuda" : "host";
  return state->default_device;
}

/* Where device_open keeps the handle that it returns. */
enum { OPENED = 3 };

static int open_finish(lua_State *L, int status, lua_KContext context) {
  (void)status;
  (void)context;
  lua_settop(L, OPENED);
  return 1;
}

static int open_warn(lua_State *L, const char *code, const char *message,
                     const char *field, const char *value) {
  lua_createtable(L, 0, 2);
  lua_pushstring(L, value);
  lua_setfield(L, -2, field);
  luaL_where(L, 1);
  lua_setfield(L, -2, "where");
  lua_pushfstring(L, message, value);
  return tl_warn(L, code, lua_tostring(L, -1), -2, 0, open_finish);
}

/* Opens the device of that id, which is not open, and puts it at OPENED. */
static tl_device *open_new(lua_State *L, const char *id) {
  tl_device_options options = {.size = sizeof options};
  tl_sim_options sim;
  tl_error error;
  tl_device *device;
  tl_handle *handle = tl_newhandle(L, TL_DEVICE);
  if (!lua_isnil(L, 2)) /* a finalizer may have closed the faults */
    read_options(L, 2, &options, &sim);
  tl_check(L, tl_device_open(id, &options, &device, &error), &error);
  handle->object = device;
  setopen(L, id);
  return device;
}

/* device([id] [, options]): id nil is TIDELOCK_DEVICE, else the first GPU, else
 * "host" */
static int device_open(lua_State *L) {
  tl_checkcount(L, 2);
  lua_settop(L, 2);
  const char *wanted = getenv("TIDELOCK_DEVICE");
  bool from_environment =
      lua_isnil(L, 1) && wanted != NULL && wanted[0] != '\0';
  tl_device_options options = {.size = sizeof options};
  tl_sim_options sim;
  char id[32], overrides[256];
  tl_error error, reason = {.code = TL_OK};
  if (!lua_isnil(L, 1))
    wanted = check_id(L);
  if (!lua_isnil(L, 2))
    read_options(L, 2, &options, &sim);
  if (lua_isnil(L, 1) && !from_environment)
    wanted = default_device(L, &reason);
  tl_status status = tl_device_canonical(wanted, id, sizeof id, &error);
  if (status != TL_OK && from_environment)
    explain_default(&error);
  tl_check(L, status, &error);
  tl_handle *handle = pushopen(L, id);
  if (handle != NULL) {
    if (!lua_isnil(L, 2) && !same_options(handle->object, &options))
      return luaL_error(L,
                        "device '%s' is open with other options; close it "
                        "first, or leave the options out",
                        id);
    return 1;
  }
  tl_device *device = open_new(L, id);
  if (reason.code == TL_DRIVER) /* TL_UNSUPPORTED: there is no driver */
    return open_warn(L, "W-NOCUDA", "no GPU is used, but the host: %s",
                     "reason", reason.text);
  if (tl_device_precision_override(device, overrides, sizeof overrides))
    return open_warn(L, "W-PRECISION",
                     "the environment changes the precision of products: %s",
                     "override", overrides);
  return 1;
}

/* devices() --> { {id=, name=, backend=}, ... } */
static int device_list(lua_State *L) {
  tl_device_info list[64];
  int32_t count;
  tl_error error;
  tl_check(L, tl_device_list(list, 64, &count, &error), &error);
  if (count > 64)
    count = 64;
  lua_createtable(L, count, 0);
  for (int32_t i = 0; i < count; i++) {
    lua_createtable(L, 0, 3);
    lua_pushstring(L, list[i].id);
    lua_setfield(L, -2, "id");
    lua_pushstring(L, list[i].name);
    lua_setfield(L, -2, "name");
    lua_pushstring(L, list[i].backend);
    lua_setfield(L, -2, "backend");
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}

/* available(id) --> true | false, reason */
static int device_available(lua_State *L) {
  tl_error reason;
  bool available = tl_device_available(check_id(L), &reason);
  lua_pushboolean(L, available);
  if (available)
    return 1;
  lua_pushstring(L, reason.text);
  return 2;
}

/* ---- questions ----------------------------------------------------------- */

static tl_device *check_device(lua_State *L) {
  return tl_checkobject(L, 1, TL_DEVICE);
}

static int device_id(lua_State *L) {
  lua_pushstring(L, tl_device_id(check_device(L)));
  return 1;
}

/* Sets an integer field unless the device does not have it (-1). */
static void set_integer(lua_State *L, const char *name, int64_t value) {
  if (value < 0)
    return;
  lua_pushinteger(L, value);
  lua_setfield(L, -2, name);
}

static void set_flag(lua_State *L, const char *name, int64_t value) {
  lua_pushboolean(L, value > 0);
  lua_setfield(L, -2, name);
}

static void set_three(lua_State *L, const char *name, const int64_t *values) {
  lua_createtable(L, 3, 0);
  for (int i = 0; i < 3; i++) {
    lua_pushinteger(L, values[i]);
    lua_rawseti(L, -2, i + 1);
  }
  lua_setfield(L, -2, name);
}

/* Sets `throttle_reasons`: the names that NVML has for the bits. */
static void set_reasons(lua_State *L, uint64_t bits) {
  static const char *const names[] = {"GpuIdle",
                                      "ApplicationsClocksSetting",
                                      "SwPowerCap",
                                      "HwSlowdown",
                                      "SyncBoost",
                                      "SwThermalSlowdown",
                                      "HwThermalSlowdown",
                                      "HwPowerBrakeSlowdown",
                                      "DisplayClockSetting"};
  enum { NAMES = sizeof names / sizeof names[0] };
  lua_newtable(L);
  for (int i = 0, count = 0; i < 64; i++) {
    if ((bits >> i & 1) == 0)
      continue;
    if (i < NAMES)
      lua_pushstring(L, names[i]);
    else
      lua_pushfstring(L, "bit %d", i);
    lua_rawseti(L, -2, ++count);
  }
  lua_setfield(L, -2, "throttle_reasons");
}

/* Sets `sim`: the settings in use, where the device is simulated. */
static void set_simulation(lua_State *L, tl_device *device) {
  tl_sim_options sim;
  const char *name;
  size_t offset;
  bool flag;
  if (!tl_device_simulation(device, &sim))
    return;
  lua_newtable(L);
  for (int32_t i = 0; (name = tl_sim_setting(i, &offset, &flag)) != NULL; i++) {
    double value = *sim_field(&sim, offset);
    if (flag)
      lua_pushboolean(L, value != 0);
    else
      lua_pushnumber(L, value);
    lua_setfield(L, -2, name);
  }
  lua_setfield(L, -2, "sim");
}

static int device_properties(lua_State *L) {
  tl_properties p;
  tl_error error;
  tl_device *device = check_device(L);
  tl_check(L, tl_device_properties(device, &p, &error), &error);
  lua_createtable(L, 0, 24);
  lua_pushstring(L, p.name);
  lua_setfield(L, -2, "name");
  lua_pushstring(L, tl_device_id(device));
  lua_setfield(L, -2, "id");
  lua_pushstring(L, tl_device_backend(device));
  lua_setfield(L, -2, "backend");
  if (p.compute_capability_major >= 0) {
    lua_pushfstring(L, "%d.%d", (int)p.compute_capability_major,
                    (int)p.compute_capability_minor);
    lua_setfield(L, -2, "compute_capability");
  }
  set_integer(L, "max_threads_per_block", p.max_threads_per_block);
  set_three(L, "max_block_dim", p.max_block_dim);
  set_three(L, "max_grid_dim", p.max_grid_dim);
  set_integer(L, "max_shared_memory_per_block", p.max_shared_memory_per_block);
  set_integer(L, "async_engine_count", p.async_engine_count);
  set_flag(L, "can_map_host_memory", p.can_map_host_memory);
  set_integer(L, "multiprocessor_count", p.multiprocessor_count);
  set_integer(L, "warp_size", p.warp_size);
  set_flag(L, "unified_addressing", p.unified_addressing);
  set_integer(L, "pci_bus_id", p.pci_bus_id);
  set_integer(L, "pci_device_id", p.pci_device_id);
  set_integer(L, "l2_cache_size", p.l2_cache_size);
  set_integer(L, "clock_rate", p.clock_rate);
  set_integer(L, "driver_version", p.driver_version);
  set_integer(L, "total_memory", p.total_memory);
  set_integer(L, "queue_depth", p.queue_depth);
  set_integer(L, "memory_clock_rate", p.memory_clock_rate);
  set_integer(L, "memory_bus_width", p.memory_bus_width);
  set_integer(L, "power_limit", p.power_limit);
  set_integer(L, "sm_clock", p.sm_clock);
  set_integer(L, "memory_clock", p.memory_clock);
  if (p.throttle_reasons >= 0)
    set_reasons(L, (uint64_t)p.throttle_reasons);
  set_integer(L, "other_processes", p.other_processes);
  if (p.mig >= 0)
    set_flag(L, "mig", p.mig);
  if (p.mps >= 0)
    set_flag(L, "mps", p.mps);
  char overrides[256];
  if (tl_device_precision_override(device, overrides, sizeof overrides)) {
    lua_pushstring(L, overrides);
    lua_setfield(L, -2, "precision_override");
  }
  set_simulation(L, device);
  return 1;
}

static int device_memory(lua_State *L) {
  tl_memory_info info;
  tl_error error;
  tl_check(L, tl_device_memory(check_device(L), &info, &error), &error);
  tl_report_cleanup(L, lua_touserdata(L, 1));
  lua_createtable(L, 0, 10);
  set_integer(L, "live", info.live);
  set_integer(L, "peak", info.peak);
  set_integer(L, "cached", info.cached);
  set_integer(L, "pending", info.pending);
  set_integer(L, "free", info.free);
  set_integer(L, "total", info.total);
  set_integer(L, "limit", info.limit);
  set_integer(L, "buffers", info.buffers);
  set_integer(L, "objects", info.objects);
  set_integer(L, "allocations", info.allocations);
  return 1;
}

/* clock() --> seconds on the clock of stamps: cheaper than a stamp */
static int device_clock(lua_State *L) {
  lua_pushnumber(L, (double)tl_device_time(check_device(L)) * 1e-9);
  return 1;
}

static int device_launches(lua_State *L) {
  lua_pushinteger(L, (lua_Integer)tl_device_launches(check_device(L)));
  return 1;
}

static int device_trim(lua_State *L) {
  tl_error error;
  tl_check(L, tl_device_trim(check_device(L), &error), &error);
  tl_report_cleanup(L, lua_touserdata(L, 1));
  return 0;
}

static int device_is_lost(lua_State *L) {
  tl_error cause;
  bool lost = tl_device_is_lost(check_device(L), &cause);
  lua_pushboolean(L, lost);
  if (!lost)
    return 1;
  lua_pushstring(L, cause.text);
  return 2;
}

static int device_last_cleanup_error(lua_State *L) {
  tl_error failure;
  if (tl_device_last_cleanup_error(check_device(L), &failure))
    lua_pushstring(L, failure.text);
  else
    lua_pushnil(L);
  return 1;
}

static int device_synchronize(lua_State *L) {
  tl_checkcount(L, 2);
  lua_pushboolean(L, tl_waitfor(L, 1, TL_DEVICE, tl_optseconds(L, 2)));
  tl_report_cleanup(L, tl_checkhandle(L, 1, TL_DEVICE));
  return 1;
}

/* sleep(seconds): in parts, so that an interrupt is seen */
static int device_sleep(lua_State *L) {
  static const double part = 0.05;
  tl_error error;
  tl_checkcount(L, 2);
  check_device(L);
  double left = luaL_checknumber(L, 2);
  for (;; left -= part) {
    bool last = !(left > part && left <= 1e6);
    tl_check(L, tl_device_sleep(check_device(L), last ? left : part, &error),
             &error);
    if (last)
      return 0;
    tl_poll(L);
  }
}

/* Pushes the words of a text as an array. */
static void push_words(lua_State *L, const char *text) {
  lua_newtable(L);
  for (int i = 1; *text != '\0'; i++) {
    size_t length = strcspn(text, " ");
    lua_pushlstring(L, text, length);
    lua_rawseti(L, -2, i);
    text += length + (text[length] == ' ');
  }
}

static int device_matmul_kernels(lua_State *L) {
  tl_device *device = check_device(L);
  tl_kernel_info info;
  lua_newtable(L);
  for (int32_t i = 0; tl_device_matmul_kernel(device, i, &info); i++) {
    lua_createtable(L, 0, 5);
    lua_pushstring(L, info.name);
    lua_setfield(L, -2, "name");
    push_words(L, info.dtypes);
    lua_setfield(L, -2, "dtypes");
    lua_pushstring(L, info.shapes);
    lua_setfield(L, -2, "shapes");
    lua_pushstring(L, info.note);
    lua_setfield(L, -2, "note");
    set_flag(L, "available", info.available);
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}

/* ---- life ---------------------------------------------------------------- */

static int device_gc(lua_State *L) {
  tl_device_release(tl_takehandle(L, tl_checkhandle(L, 1, TL_DEVICE)));
  return 0;
}

/* Unlike a collected handle, a closed device accepts no further calls, not
 * through its buffers and streams either. */
static int device_close(lua_State *L) {
  tl_device *device = tl_takehandle(L, tl_checkhandle(L, 1, TL_DEVICE));
  if (device != NULL)
    tl_device_close(device);
  tl_device_release(device);
  return 0;
}

static int device_tostring(lua_State *L) {
  tl_handle *handle = tl_checkhandle(L, 1, TL_DEVICE);
  if (handle->object == NULL)
    lua_pushliteral(L, "device (closed)");
  else
    lua_pushfstring(L, "device %s", tl_device_id(handle->object));
  return 1;
}

static int device_eq(lua_State *L) {
  tl_handle *a = tl_testhandle(L, 1, TL_DEVICE);
  tl_handle *b = tl_testhandle(L, 2, TL_DEVICE);
  lua_pushboolean(L, a != NULL && b != NULL && a->object != NULL &&
                         a->object == b->object);
  return 1;
}

const luaL_Reg tl_device_methods[] = {
    {"id", device_id},
    {"properties", device_properties},
    {"memory", device_memory},
    {"trim", device_trim},
    {"is_lost", device_is_lost},
    {"last_cleanup_error", device_last_cleanup_error},
    {"now", tl_stamp_now},
    {"clock", device_clock},
    {"launches", device_launches},
    {"synchronize", device_synchronize},
    {"sleep", device_sleep},
    {"matmul_kernels", device_matmul_kernels},
    {"close", device_close},
    {NULL, NULL},
};

const luaL_Reg tl_device_meta[] = {
    {"__gc", device_gc},
    {"__close", device_close},
    {"__tostring", device_tostring},
    {"__eq", device_eq},
    {NULL, NULL},
};

const luaL_Reg tl_device_functions[] = {
    {"device", device_open},
    {"devices", device_list},
    {"available", device_available},
    {NULL, NULL},
};
