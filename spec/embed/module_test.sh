#!/bin/sh
# The built module and library as files: what they export, what they need, that
# they refuse other Luas' headers, and two copies of the module in one state.
#   sh spec/embed/module_test.sh [BUILD]
# LUA, CC: commands (lua5.4, cc).
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=$(cd "${1:-${BUILD:-$root/build}}" && pwd) || exit 2
lua=${LUA:-lua5.4}
cc=${CC:-cc}
module=$build/tidelock/core.so
scratch=$(mktemp -d) || exit 2
trap 'rm -rf "$scratch"' EXIT
failed=0
count=0

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

# A sanitizer's own symbols are not ours.
exported() { # file
  nm -D --defined-only "$1" | awk '{ print $NF }' | grep -v '^_*\(asan\|tsan\|ubsan\|lsan\|sanitizer\)_'
}

exported "$module" | grep -v '^luaopen_tidelock_core$' >"$wrong"
report "the module exports luaopen_tidelock_core and no Lua of its own"

: >"$wrong"
exported "$module" | grep -q '^luaopen_tidelock_core$' ||
  echo "luaopen_tidelock_core is missing" >"$wrong"
report "Lua finds its entry"

ldd "$module" | grep -i 'liblua\|libcuda\|libcublas\|nvrtc\|blas\|not found' >"$wrong"
report "the module links to no Lua, no driver and no BLAS"

library=$(ls "$build"/libtidelock.so 2>/dev/null)
{
  if [ -n "$library" ]; then
    exported "$library" | grep -v '^tl_' | sed 's/$/ is exported/'
    # Every function of the header.
    sed -n '/ffi: begin/,/ffi: end/p' "$root/src/tidelock.h" |
      grep -o '\btl_[a-z_]*(' | tr -d '(' | sort -u >"$scratch/declared"
    exported "$library" | sort -u >"$scratch/exported"
    comm -23 "$scratch/declared" "$scratch/exported" | sed 's/$/ is missing/'
    ldd "$library" | grep -i 'liblua\|libcuda\|blas'
  fi
} >"$wrong"
report "the library exports what its header declares, and no more"

sed -n '/ffi: begin/,/ffi: end/p' "$root/src/tidelock.h" | grep -n '^ *#' >"$wrong"
report "what LuaJIT is to read has no preprocessor lines"

{
  for standard in c99 c11; do
    echo '#include "tidelock.h"' |
      $cc -std=$standard -pedantic -Wall -Wextra -fsyntax-only -I"$root/src" -x c - 2>&1
  done
  if command -v c++ >"$scratch/null" 2>&1; then
    echo '#include "tidelock.h"' |
      c++ -std=c++11 -Wall -Wextra -fsyntax-only -I"$root/src" -x c++ - 2>&1
  fi
} >"$wrong"
report "the header compiles alone, as C99, C11 and C++"

# Headers of another Lua: as little as it takes to come to the check.
mkdir "$scratch/stub"
for version in 503 505; do
  cat >"$scratch/stub/lua.h" <<END
#define LUA_VERSION_NUM $version
typedef struct lua_State lua_State;
END
  echo '#include "lua.h"' >"$scratch/stub/lauxlib.h"
  $cc -std=c11 -fsyntax-only -I"$root/src" -I"$scratch/stub" \
    "$root/src/binding/class.c" >"$scratch/log" 2>&1 && echo "$version compiles"
  grep -q 'tidelock needs the headers of Lua 5.4' "$scratch/log" ||
    echo "$version: no such error"
done >"$wrong"
report "headers that are not Lua 5.4's are refused by name"

for folder in /usr/include/lua5.1 /usr/include/lua5.2 /usr/include/lua5.3; do
  [ -f "$folder/lua.h" ] || continue
  $cc -std=c11 -fsyntax-only -I"$root/src" -I"$folder" \
    "$root/src/binding/class.c" >"$scratch/log" 2>&1 && echo "$folder compiles"
  grep -q 'tidelock needs the headers of Lua 5.4' "$scratch/log" ||
    echo "$folder: no such error"
done >"$wrong"
report "so are the headers of the other Luas that are installed"

# Two copies of the file in one state.
mkdir -p "$scratch/p1/tidelock" "$scratch/p2/tidelock"
cp "$module" "$scratch/p1/tidelock/"
cp "$module" "$scratch/p2/tidelock/"
cat >"$scratch/two.lua" <<'END'
local folder = ...
local function load(name)
  package.loaded["tidelock.core"] = nil
  package.cpath = folder .. "/" .. name .. "/?.so"
  return require "tidelock.core"
end
local one, two = load("p1"), load("p2")
local dev = one.device("host")
assert(two.device("host") == dev, "two devices")
local a, b = one.device("host"):full({ 2, 2 }, 3), two.device("host"):full({ 2, 2 }, 2)
local s, e = two.device("host"):stream(), one.device("host"):event()
local c, d = two.matmul(a, b, { kernel = "tiled" }), one.matmul(b, a, { kernel = "tiled" })
dev:synchronize()
s:spin(0)
assert(s:record(e) == e and e:synchronize(), "event")
assert(c:get(1, 1) == 12 and d:get(2, 2) == 12, "product")
local before = dev:memory()
assert(before.live == 64 and before.buffers == 4, "live " .. before.live)
a, b, c, d, s, e = nil, nil, nil, nil, nil, nil
collectgarbage()
collectgarbage()
local after = dev:memory()
assert(after.live == 0 and after.buffers == 0, "live " .. after.live)
local open = assert(package.loadlib(folder .. "/p2/tidelock/core.so", "luaopen_tidelock_core"))
assert(open() == one, "opened by hand")
END
# shellcheck disable=SC2086 # $lua may be a command with arguments
$lua "$scratch/two.lua" "$scratch" >"$wrong" 2>&1
report "two copies of the module in one state are one"

{
  readelf -W -l "$module" | grep 'GNU_STACK.*E '
  readelf -W -d "$module" | grep TEXTREL
  readelf -W -d "$module" | grep -q NODELETE || echo "not marked nodelete"
} >"$wrong"
report "the module stays loaded, and asks for no executable stack"

echo "1..$count"
exit $failed
