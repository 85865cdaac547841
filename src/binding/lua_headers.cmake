# Finds Lua 5.4's headers among those of several Luas, or stops and says what to do.

# Whether `folder` has Lua 5.4's headers: the compiler reads them.
function(lua_headers_fit folder result)
  set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
  set(source ${PROJECT_BINARY_DIR}/lua_version.c)
  file(WRITE ${source} "#include <lauxlib.h>\n#include <lua.h>\n"
    "#if LUA_VERSION_NUM != 504\n#error another Lua\n#endif\nint it_is;\n")
  try_compile(lua_headers_are_5_4 ${PROJECT_BINARY_DIR}/lua_version ${source}
    CMAKE_FLAGS -DINCLUDE_DIRECTORIES=${folder})
  set(${result} ${lua_headers_are_5_4} PARENT_SCOPE)
  unset(lua_headers_are_5_4 CACHE)
endfunction()

# Sets LUA_INCLUDE_DIR, in the cache. What was named by hand is taken or
# refused; what an earlier run found is looked for again once it fits no more.
# Folders that carry the version in their name come first, others' are passed
# over.
function(lua_headers_find)
  set(help "install liblua5.4-dev (Debian) or lua-devel (Fedora), set -DLUA_INCLUDE_DIR= to their folder, "
    "or leave the module out with -DTIDELOCK_LUA=OFF")
  if(LUA_INCLUDE_DIR)
    lua_headers_fit("${LUA_INCLUDE_DIR}" fits)
    if(fits)
      return()
    elseif(NOT LUA_INCLUDE_DIR STREQUAL "${TIDELOCK_LUA_FOUND}")
      message(FATAL_ERROR "LUA_INCLUDE_DIR=${LUA_INCLUDE_DIR} has no headers of Lua 5.4: " ${help})
    endif()
  endif()
  set(ignored ${CMAKE_IGNORE_PATH})
  foreach(name lua5.4/lua.h lua-5.4/lua.h lua54/lua.h lua/5.4/lua.h lua/lua.h lua.h)
    set(CMAKE_IGNORE_PATH ${ignored})
    while(TRUE)
      unset(lua_prefix CACHE)
      find_path(lua_prefix ${name})
      set(prefix "${lua_prefix}")
      unset(lua_prefix CACHE)
      if(NOT prefix)
        break()
      endif()
      get_filename_component(folder "${prefix}/${name}" DIRECTORY)
      lua_headers_fit("${folder}" fits)
      if(fits)
        set(LUA_INCLUDE_DIR "${folder}" CACHE PATH "folder with Lua 5.4's lua.h" FORCE)
        set(TIDELOCK_LUA_FOUND "${folder}" CACHE INTERNAL "the LUA_INCLUDE_DIR that was found, not given")
        return()
      endif()
      list(APPEND passed_over "${folder}")
      list(APPEND CMAKE_IGNORE_PATH "${prefix}")
    endwhile()
  endforeach()
  if(passed_over)
    list(JOIN passed_over ", " passed_over)
    set(passed_over " (other Luas' are in ${passed_over})")
  endif()
  message(FATAL_ERROR "Lua 5.4's headers not found${passed_over}: " ${help})
endfunction()
