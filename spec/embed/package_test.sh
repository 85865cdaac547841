#!/bin/sh
# tidelock as it is installed: by LuaRocks, packed, and by CMake for programs
# that embed it; and what a build says where Lua's headers are missing, or
# another Lua's. Nothing is fetched: LuaRocks runs without a network where the
# system lets it.
#   sh spec/embed/package_test.sh [BUILD]
# LUA, LUAROCKS, CC: commands (lua5.4, luarocks, cc).
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=$(cd "${1:-${BUILD:-$root/build}}" && pwd) || exit 2
lua=${LUA:-lua5.4}
luarocks=${LUAROCKS:-luarocks}
cc=${CC:-cc}
if grep -q '^TIDELOCK_SANITIZE:[A-Z]*=.' "$build/CMakeCache.txt"; then
  echo "1..0 # SKIP a library with sanitizers is not one to install"
  exit 0
fi
scratch=$(mktemp -d) || exit 2
trap 'rm -rf "$scratch"' EXIT
failed=0
count=0
unset LUA_PATH LUA_CPATH LUA_PATH_5_4 LUA_CPATH_5_4 LUA_INIT LUA_INIT_5_4
unset TIDELOCK_DEVICE CMAKE_PREFIX_PATH LUA_INCLUDE_DIR DESTDIR

wrong=$scratch/wrong # what is wrong goes there: nothing is fine
report() { # sentence
  count=$((count + 1))
  if [ -s "$wrong" ]; then
    failed=1
    head -20 "$wrong" | sed 's/^/# /'
    echo "not ok $count - $1"
  else
    echo "ok $count - $1"
  fi
}

skip() { # reason, sentences...
  reason=$1
  shift
  for sentence; do
    count=$((count + 1))
    echo "ok $count - $sentence # SKIP $reason"
  done
}

# wants FILE PATTERN...: complains of each pattern that no line of it has.
wants() {
  file=$1
  shift
  for pattern; do
    grep -q -- "$pattern" "$file" && continue
    echo "no line with: $pattern"
    tail -5 "$file"
  done
}

# ---- what is listed is what is there ----------------------------------------

rockspec=$root/rockspec/tidelock-scm-1.rockspec
{
  cd "$root" || exit 2
  find src -name '*.c' | sort >"$scratch/there"
  # shellcheck disable=SC2046 # the patterns are to become names
  ls -d $(grep -o 'src/[a-z/]*\*\.c' "$rockspec") | sort >"$scratch/listed"
  diff "$scratch/there" "$scratch/listed"
  find lua -name '*.lua' | sort >"$scratch/there"
  # shellcheck disable=SC2046
  ls -d $(grep -o 'lua/[a-z/]*\*\.lua' "$rockspec" | grep '^lua/') | sort >"$scratch/listed"
  diff "$scratch/there" "$scratch/listed"
} >"$wrong" 2>&1
report "the rockspec names every C and every Lua file"

echo '#include "binding/binding.h"' |
  $cc -std=c11 -nostdinc -fsyntax-only -I"$root/src" -x c - >"$scratch/log" 2>&1
grep error "$scratch/log" | head -1 >"$scratch/first"
wants "$scratch/first" 'liblua5\.4-dev' 'lua-devel' 'LUA_INCDIR' 'LUA_INCLUDE_DIR' >"$wrong"
report "without Lua's headers the compiler's first error says what to install"

# ---- CMake among several Luas -----------------------------------------------

# A prefix with the headers of other Luas, as little of them as it takes.
others=$scratch/others
mkdir -p "$others/include/lua5.3" "$others/include/lua"
for header in lua.h lua/lua.h lua5.3/lua.h; do
  echo '#include "lua.h"' >"$others/include/$(dirname $header)/lauxlib.h"
done
echo '#define LUA_VERSION_NUM (5 * 100 + 5)' >"$others/include/lua.h"
echo '#define LUA_VERSION_NUM 501' >"$others/include/lua/lua.h"
echo '#define LUA_VERSION_NUM 503' >"$others/include/lua5.3/lua.h"
# An nvcc that doesn't work, and a toolkit that is not there.
mkdir "$scratch/broken"
printf '#!/bin/sh\nexit 1\n' >"$scratch/broken/nvcc"
cp "$scratch/broken/nvcc" "$scratch/broken/luac"
chmod +x "$scratch/broken/nvcc" "$scratch/broken/luac"

configure() { # folder, arguments for cmake...
  folder=$scratch/$1
  shift
  PATH=$scratch/broken:$PATH CUDA_HOME=$scratch/nowhere CMAKE_PREFIX_PATH=$others \
    cmake -S "$root" -B "$folder" "$@" >"$scratch/log" 2>&1
}

# The system's, from a tree that was configured already.
headers=$(sed -n 's/^LUA_INCLUDE_DIR:[A-Z]*=//p' "$build/CMakeCache.txt")
if [ -f "$headers/lua.h" ]; then
  configure plain || cat "$scratch/log" >"$scratch/null"
  wants "$scratch/log" "Lua module: headers of Lua 5.4 in $headers" >"$wrong"
  report "CMake passes over the headers of 5.1, 5.3 and 5.5"

  wants "$scratch/log" "CUDA kernels: $scratch/broken/nvcc does not compile" \
    'CUDA kernels: as text, for NVRTC' 'Generating done' >"$wrong"
  report "an nvcc that does not work stops nothing"

  {
    configure named "-DLUA_INCLUDE_DIR=$others/include" && echo "it is taken"
    tr -s '\n ' ' ' <"$scratch/log" >"$scratch/line"
    wants "$scratch/line" "LUA_INCLUDE_DIR=$others/include has no headers of Lua 5.4" 'liblua5\.4-dev'
  } >"$wrong"
  report "a folder of another Lua that is named by hand is refused"

  {
    configure none "-DCMAKE_IGNORE_PATH=/usr/include;/usr/local/include;$(dirname "$headers")" &&
      cat "$scratch/log"
    tr -s '\n ' ' ' <"$scratch/log" >"$scratch/line"
    wants "$scratch/line" "Lua 5.4's headers not found (other Luas' are in $others/include/lua, $others/include)" \
      'liblua5\.4-dev' 'lua-devel' 'LUA_INCLUDE_DIR'
  } >"$wrong"
  report "with none of 5.4 it stops, and says what to install and which it passed over"

  {
    cp -R "$headers" "$others/include/lua5.4"
    configure plain "-ULUA_INCLUDE_DIR" || cat "$scratch/log"
    wants "$scratch/log" "headers of Lua 5.4 in $others/include/lua5.4"
    echo '#define LUA_VERSION_NUM 505' >"$others/include/lua5.4/lua.h"
    configure plain || cat "$scratch/log"
    wants "$scratch/log" "headers of Lua 5.4 in $headers"
    rm -r "$others/include/lua5.4"
  } >"$wrong"
  report "headers that were found and have changed since are looked for again"
else
  skip "the build has no module" \
    "CMake passes over the headers of 5.1, 5.3 and 5.5" \
    "an nvcc that does not work stops nothing" \
    "a folder of another Lua that is named by hand is refused" \
    "with none of 5.4 it stops, and says what to install and which it passed over" \
    "headers that were found and have changed since are looked for again"
fi

# ---- LuaRocks ---------------------------------------------------------------

# Neither a build tool, a toolkit nor a network: a C compiler and the headers.
mkdir "$scratch/bin" "$scratch/home" "$scratch/run"
for name in cmake make git curl wget; do
  printf '#!/bin/sh\necho %s >>%s\nexit 1\n' $name "$scratch/used" >"$scratch/bin/$name"
  chmod +x "$scratch/bin/$name"
done
printf '#!/bin/sh\nexit 1\n' >"$scratch/bin/nvcc" # asked whether it is there
chmod +x "$scratch/bin/nvcc"
offline=
for command in "unshare -n" "unshare -rn"; do
  if [ -z "$offline" ] && $command true 2>"$scratch/null"; then
    offline=$command
  fi
done
rocks() { # tree, arguments...
  tree=$1
  shift
  HOME=$scratch/home PATH=$scratch/bin:$PATH $offline \
    "$luarocks" --lua-version 5.4 --tree "$tree" "$@" >"$scratch/log" 2>&1
}

# Both examples from an installed rock, with nothing else in Lua's paths.
run_examples() { # tree
  examples=$1/lib/luarocks/rocks-5.4/tidelock/scm-1/examples
  (
    cd "$scratch/run" || exit 2
    export LUA_PATH="$1/share/lua/5.4/?.lua;$1/share/lua/5.4/?/init.lua"
    export LUA_CPATH="$1/lib/lua/5.4/?.so"
    # shellcheck disable=SC2086 # $lua may be a command with arguments
    {
      $lua "$examples/device_info.lua" >"$scratch/info" 2>&1 || echo "device_info fails"
      $lua "$examples/launch_queue.lua" launches=200 spin=0.0002 depth=64 \
        >"$scratch/queue" 2>&1 || echo "launch_queue fails"
    }
    wants "$scratch/info" '^backend *host$' '^queue_depth *1024$' '^matmul kernel tiled'
    wants "$scratch/queue" '^200 launches of spins .* holds 64$' 'predicts 1 - 64/200 = 68\.0 %'
  )
}

made="luarocks make installs without a network, a build tool or a toolkit"
installed="the rock holds the Lua files, the module and the examples"
runs="device_info and launch_queue run from it, the source tree being gone"
shaped="its module exports its entry alone, needs no Lua and stays loaded"
packed="luarocks pack and install of what was packed do the same"
missing="LuaRocks stops where Lua's headers are missing, and names LUA_INCDIR"
if ! command -v "$luarocks" >"$scratch/null"; then
  skip "luarocks is not installed" "$made" "$installed" "$runs" "$shaped" "$packed" "$missing"
else
  copy=$scratch/copy
  mkdir "$copy"
  (cd "$root" && cp -R ./*.md LICENSE CMakeLists.txt src lua examples rockspec "$copy/")
  [ ! -d "$root/kernels" ] || cp -R "$root/kernels" "$copy/"
  [ -n "$offline" ] || echo "# no namespace to be had: the network was left on"

  mkdir "$scratch/empty"
  {
    (cd "$copy" && rocks "$scratch/none" make "LUA_INCDIR=$scratch/empty") && echo "it does not"
    wants "$scratch/log" 'Lua header.*LUA_INCDIR'
  } >"$scratch/missing"

  tree=$scratch/tree
  {
    (cd "$copy" && rocks "$tree" make) || tail -30 "$scratch/log"
    [ ! -e "$scratch/used" ] || sed 's/$/ was run/' "$scratch/used"
  } >"$wrong"
  report "$made"

  {
    (cd "$root" && find lua -name '*.lua' | sed 's|^lua/|share/lua/5.4/|'
      echo lib/lua/5.4/tidelock/core.so
      ls examples/*.lua | sed 's|^|lib/luarocks/rocks-5.4/tidelock/scm-1/|') | sort >"$scratch/wanted"
    (cd "$tree" && find share lib/lua lib/luarocks/rocks-5.4/tidelock/scm-1/examples -type f) |
      sort >"$scratch/there"
    diff "$scratch/wanted" "$scratch/there"
    grep -l "$copy" -r "$tree"
  } >"$wrong" 2>&1
  report "$installed"

  rm -rf "$copy"
  run_examples "$tree" >"$wrong"
  report "$runs"

  module=$tree/lib/lua/5.4/tidelock/core.so
  {
    nm -D --defined-only "$module" | awk '{ print $NF }' >"$scratch/exported"
    echo luaopen_tidelock_core | diff - "$scratch/exported"
    ldd "$module" | grep -i 'liblua\|libcuda\|libcublas\|nvrtc\|blas\|not found'
    readelf -W -d "$module" | grep -q NODELETE || echo "not marked nodelete"
    readelf -W -d "$module" | grep 'TEXTREL\|RPATH\|RUNPATH'
  } >"$wrong" 2>&1
  report "$shaped"

  if command -v zip >"$scratch/null" && command -v unzip >"$scratch/null"; then
    mkdir "$scratch/packed"
    {
      (cd "$scratch/packed" && rocks "$tree" pack tidelock) || tail -30 "$scratch/log"
      mv "$tree" "$scratch/away"
      rocks "$scratch/second" install "$scratch"/packed/tidelock-scm-1.*.rock || tail -30 "$scratch/log"
      rm -rf "$scratch/away"
      run_examples "$scratch/second"
    } >"$wrong" 2>&1
    report "$packed"
  else
    skip "LuaRocks needs zip and unzip for it" "$packed"
  fi

  cp "$scratch/missing" "$wrong"
  report "$missing"
fi

# ---- CMake's install, for embedders -----------------------------------------

first=$scratch/first-place
prefix=$scratch/prefix
{
  cmake --install "$build" --prefix "$first" >"$scratch/log" 2>&1 || tail "$scratch/log"
  grep -rIl "$first\|$root/\|$build" "$first"
  mv "$first" "$prefix"
} >"$wrong" 2>&1
report "what CMake installs holds no absolute path"

pc=$(find "$prefix" -name tidelock.pc)
libraries=$(dirname "$(dirname "$pc")")
answer='^[0-9.]* host: 19 22 43 50$'
if [ -n "$headers" ]; then
  {
    cd "$scratch/run" || exit 2
    # shellcheck disable=SC2086
    LUA_PATH="$prefix/share/lua/5.4/?.lua;$prefix/share/lua/5.4/?/init.lua" \
      LUA_CPATH="$libraries/lua/5.4/?.so" $lua "$root/examples/device_info.lua" >"$scratch/info" 2>&1
    wants "$scratch/info" '^backend *host$'
  } >"$wrong"
  report "its module runs from where the tree was moved to"
else
  skip "the build has no module" "its module runs from where the tree was moved to"
fi

if command -v pkg-config >"$scratch/null"; then
  {
    PKG_CONFIG_PATH=$(dirname "$pc")
    export PKG_CONFIG_PATH
    # shellcheck disable=SC2046
    $cc -std=c99 "$here/package_test.c" -o "$scratch/by_pkg_config" \
      $(pkg-config --cflags --libs tidelock)
    LD_LIBRARY_PATH=$libraries "$scratch/by_pkg_config" >"$scratch/log"
    wants "$scratch/log" "$answer"
    # shellcheck disable=SC2046
    $cc -std=c99 $(pkg-config --cflags tidelock) "$here/package_test.c" -o "$scratch/by_archive" \
      $(pkg-config --libs --static tidelock | sed 's/-ltidelock/-l:libtidelock.a/')
    "$scratch/by_archive" >"$scratch/log"
    wants "$scratch/log" "$answer"
  } >"$wrong" 2>&1
  report "pkg-config's flags build a program, shared and static"
else
  skip "pkg-config is not installed" "pkg-config's flags build a program, shared and static"
fi

mkdir "$scratch/program"
cp "$here/package_test.c" "$scratch/program/"
cat >"$scratch/program/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.18)
project(program LANGUAGES C)
find_package(tidelock 0.1 CONFIG REQUIRED)
foreach(name tidelock tidelock_static)
  add_executable(by_${name} package_test.c)
  target_link_libraries(by_${name} PRIVATE tidelock::${name})
endforeach()
END
{
  if CC=$cc cmake -S "$scratch/program" -B "$scratch/program/build" \
    "-DCMAKE_PREFIX_PATH=$prefix" >"$scratch/log" 2>&1 &&
    cmake --build "$scratch/program/build" >"$scratch/log" 2>&1; then
    for name in tidelock tidelock_static; do
      "$scratch/program/build/by_$name" >"$scratch/log"
      wants "$scratch/log" "$answer"
    done
    ldd "$scratch/program/build/by_tidelock" | grep -q 'libtidelock\.so\.0' || echo "not by its soname"
    ldd "$scratch/program/build/by_tidelock_static" | grep libtidelock
  else
    cat "$scratch/log"
  fi
} >"$wrong" 2>&1
report "find_package(tidelock) builds a program, shared and static"

echo "1..$count"
exit $failed
