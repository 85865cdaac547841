/* What the files of the binding share: classes, arguments, errors, waiting.
 *
 * Every C function of the module carries the same upvalues: the metatable of
 * class i at index i, and the state record behind them. A handle starts with
 * the address of its class's name, so that a check is one comparison: nothing
 * is looked up on the way of a launch. */
#ifndef TIDELOCK_BINDING_H
#define TIDELOCK_BINDING_H

#if defined(__has_include)
#if !__has_include(<lauxlib.h>)
#error                                                                         \
    "tidelock needs the headers of Lua 5.4: install liblua5.4-dev (Debian) or lua-devel (Fedora), or name their folder (CMake: -DLUA_INCLUDE_DIR=, LuaRocks: LUA_INCDIR=)"
#endif
#endif
#include <lauxlib.h>
#include <lua.h>

#include "tidelock.h"

#if LUA_VERSION_NUM != 504
#error                                                                         \
    "tidelock needs the headers of Lua 5.4, and these are of another Lua: install liblua5.4-dev (Debian) or lua-devel (Fedora), or name their folder (CMake: -DLUA_INCLUDE_DIR=, LuaRocks: LUA_INCDIR=)"
#endif

/* ---- classes (class.c) --------------------------------------------------- */

typedef enum tl_class {
  TL_DEVICE = 1,
  TL_BUFFER,
  TL_STREAM,
  TL_EVENT,
  TL_GATE,
  TL_STAMP,
  TL_FAULTS,
  TL_PENDING,
  TL_STATE /* the state record: behind the classes, not one of them */
} tl_class;

/* A userdata of any class: one counted reference to a core object. What is made
 * on a device has the state's handle on the device as its user value: so while
 * any of it is alive, the same id is the same device. */
typedef struct tl_handle tl_handle;

struct tl_handle {
  const char *const *class; /* where its class's name is: the class's mark */
  void *object;             /* NULL: closed */
  int64_t bytes;            /* buffer: device bytes counted for it */
  int64_t reported;         /* device: clean-up failures reported so far */
  bool orphan;              /* born inside a finalizer: in the state's list */
  tl_handle *next;          /* in that list */
};

enum { TL_KEEPS_DEVICE = 1, TL_KEEPS_PARENT }; /* user values of a handle */

/* One for each Lua state, in its registry. User value 1: the warning handler;
 * 2: the open devices by id, weak. */
typedef struct tl_state {
  const char *default_device; /* "cuda" or "host", once it has been asked for */
  int64_t bytes;              /* device bytes that this state's buffers hold */
  int64_t soft_limit;  /* past it, a collection comes before an allocation */
  bool closing;        /* lua_close has come to the record itself */
  tl_handle *orphans;  /* objects that may never see their finalizer */
  lua_CFunction error; /* Lua's `error`: as a warning handler it raises */
} tl_state;

#define TL_SOFT_LIMIT ((int64_t)256 << 20) /* bytes, at first */

enum { TL_WARNING_HANDLER = 1, TL_OPEN_DEVICES = 2 };

/* Pushes an empty handle with its metatable. */
tl_handle *tl_newhandle(lua_State *L, tl_class class);
/* The same with room behind it for more. */
void *tl_newobject(lua_State *L, tl_class class, size_t nbytes);
/* Takes the object out, so that a second close finds nothing; NULL: closed. */
void *tl_takehandle(lua_State *L, tl_handle *handle);
/* The handle if the value is of that class, open or closed; else NULL. */
tl_handle *tl_testhandle(lua_State *L, int arg, tl_class class);
/* The same, but another value is an argument error. */
tl_handle *tl_checkhandle(lua_State *L, int arg, tl_class class);
/* The object of an open handle; anything else is an argument error. */
void *tl_checkobject(lua_State *L, int arg, tl_class class);
tl_state *tl_getstate(lua_State *L);

/* ---- arguments (argument.c) ---------------------------------------------- */

/* Raises where there are more arguments than that, self included: nothing that
 * is given is ignored. */
void tl_checkcount(lua_State *L, int most);
/* A shape: an integer or a table of 1 to 3. Returns the dimensions. */
int32_t tl_checkshape(lua_State *L, int arg, int64_t *shape);
/* The same of the value at a (non-argument) index, named in the error. */
int32_t tl_readshape(lua_State *L, int index, const char *name, int64_t *shape);
/* A dtype's name, float32 if absent. */
int32_t tl_optdtype(lua_State *L, int arg);
int32_t tl_readdtype(lua_State *L, int index);
/* The string at the index; raises if a zero byte would cut it short. */
const char *tl_readstring(lua_State *L, int index, const char *what);
enum { TL_ELEMENT_ROOM = 16 }; /* bytes that hold an element of any dtype */

/* The number at the index as one packed element; false: the type, an integer
 * one, does not hold it. */
bool tl_packnumber(lua_State *L, int index, int32_t dtype, void *element);
/* The same for an argument: an error where it is no number or does not fit. */
void tl_checknumber(lua_State *L, int arg, int32_t dtype, void *element);
/* Pushes an element: an integer for an integer type, else a float. */
void tl_pushelement(lua_State *L, int32_t dtype, const void *element);
/* A time limit in seconds; absent: negative, none. */
double tl_optseconds(lua_State *L, int arg);
/* A stream, a table {stream=}, or nothing: NULL. */
tl_stream *tl_optstream(lua_State *L, int arg);
/* Raises if the table has a field that is not among the names. */
void tl_checkfields(lua_State *L, int arg, const char *const names[]);
/* The place of one key among the names, for whoever walks the table itself. */
int tl_checkfield(lua_State *L, int arg, int key, const char *const names[]);
/* The value at the top, which belongs to the option of that name. A string or a
 * stream stays alive with the table that it is in. */
double tl_valuenumber(lua_State *L, const char *name);
bool tl_valueboolean(lua_State *L, const char *name);
const char *tl_valuestring(lua_State *L, const char *name);
tl_stream *tl_valuestream(lua_State *L, const char *name);
/* Pushes the field and returns true; false, pushing nothing, if it is nil. */
bool tl_getfield(lua_State *L, int index, const char *name);
/* Raises: the value at the top is not what the option wants. */
void tl_wrongfield(lua_State *L, const char *name, const char *wanted);
/* Options fields by type; a wrong type raises and names the field. */
double tl_fieldnumber(lua_State *L, int index, const char *name, double absent);
int64_t tl_fieldinteger(lua_State *L, int index, const char *name,
                        int64_t absent);
bool tl_fieldboolean(lua_State *L, int index, const char *name, bool absent);
const char *tl_fieldstring(lua_State *L, int index, const char *name);
tl_stream *tl_fieldstream(lua_State *L, int index);

/* ---- errors and waiting (error.c) ---------------------------------------- */

/* Raises: a string with its position for a wrong argument, a table
 * {code=, message=, ...} for an operation that failed. */
int tl_raise(lua_State *L, const tl_error *error);
/* Raises unless the status is TL_OK. */
void tl_check(lua_State *L, tl_status status, const tl_error *error);
/* Gives a pending signal its chance: runs whatever hook is set. May raise. */
void tl_poll(lua_State *L);
/* Waits for the object of the given class at `arg`, in slices, so that an
 * interrupt is seen; the wait is looked up by class. */
bool tl_waitfor(lua_State *L, int arg, tl_class class, double seconds);
/* Tells Lua's warning system of clean-up failures not yet reported. */
void tl_report_cleanup(lua_State *L, tl_handle *device);
/* Notes the caller's source line on the stream. */
void tl_locate(lua_State *L, tl_stream *stream);
/* Calls the warning handler, then continues with k (lua_KFunction). */
int tl_warn(lua_State *L, const char *code, const char *message, int details,
            lua_KContext context, lua_KFunction k);

/* ---- what the classes offer each other ----------------------------------- */

/* Gives the userdata at the top its object, and the state's handle on the
 * device to keep (device.c). */
void tl_setobject(lua_State *L, tl_handle *handle, void *object,
                  tl_device *device);
/* Pushes the handle on the device that argument 1 keeps: x:device(). */
int tl_devicemethod(lua_State *L);
/* Pushes a new buffer of undefined contents; collects first where the soft
 * limit says so, and again when memory is short. Arguments 1 to `buffers` are
 * buffers, which a finalizer can't free meanwhile, and the new one is on their
 * device; 0: argument 1 is the device. What the caller has fetched from the
 * stack before, a finalizer may have closed (buffer.c). */
tl_buffer *tl_pushbuffer(lua_State *L, int buffers, int32_t dtype,
                         int32_t dimensions, const int64_t *shape);
/* The same in pinned memory, on the device that is argument 1. */
tl_buffer *tl_pushpinned(lua_State *L, int32_t dtype, int32_t dimensions,
                         const int64_t *shape);
/* download_async, in pending.c */
int tl_download_async(lua_State *L);
/* The open buffer that is argument 1, and its layout (buffer.c). */
tl_buffer *tl_checkbuffer(lua_State *L, tl_layout *layout);
/* Bytes of its elements, packed. */
size_t tl_layoutbytes(const tl_layout *layout);
/* The stream, or the device's default one for NULL, once it takes one more
 * launch or timed record (slot), or else one more gate or wait; notes the
 * caller's line on it. No new reference. NULL: it had to wait for room, and a
 * hook may have run and closed anything meanwhile: check the arguments anew and
 * ask again. May raise (stream.c). */
tl_stream *tl_readystream(lua_State *L, tl_device *device, tl_stream *stream,
                          bool slot);
/* Reads a table (nested, or flat) of that many numbers into packed elements;
 * raises at the first that does not fit, naming it (table.c). */
void tl_readtable(lua_State *L, int index, const tl_layout *layout,
                  unsigned char *elements);
/* Finds the shape of a nested table; raises where a length is no size. */
int32_t tl_tableshape(lua_State *L, int index, int64_t *shape);
/* Pushes packed elements as a table of that shape. */
void tl_pushtable(lua_State *L, const tl_layout *layout,
                  const unsigned char *elements);

/* The functions of each class, by file. */
extern const luaL_Reg tl_device_methods[], tl_device_meta[];
extern const luaL_Reg tl_create_methods[];   /* of devices */
extern const luaL_Reg tl_transfer_methods[]; /* of buffers */
extern const luaL_Reg tl_buffer_methods[], tl_buffer_meta[];
extern const luaL_Reg tl_buffer_missing[]; /* behind the methods */
extern const luaL_Reg tl_stream_methods[], tl_stream_meta[];
extern const luaL_Reg tl_event_methods[], tl_event_meta[];
extern const luaL_Reg tl_gate_methods[], tl_gate_meta[];
extern const luaL_Reg tl_stamp_methods[], tl_stamp_meta[];
extern const luaL_Reg tl_faults_methods[], tl_faults_meta[];
extern const luaL_Reg tl_pending_methods[], tl_pending_meta[];
extern const luaL_Reg tl_device_functions[], tl_matmul_functions[];
extern const luaL_Reg tl_warning_functions[], tl_faults_functions[];
int tl_stamp_now(lua_State *L); /* dev:now(), in stamp.c */

#endif
