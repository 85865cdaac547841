-- From a checkout: luarocks --lua-version 5.4 make
-- Needs a C compiler and Lua 5.4's headers (liblua5.4-dev, lua-devel); no make,
-- no CMake, no network. Where nvcc is, the CUDA kernels are compiled too; else
-- NVRTC compiles them on the GPU's machine.
rockspec_format = "3.0"
package = "tidelock"
version = "scm-1"

-- LuaRocks wants a place; `make` takes the files from the folder it runs in.
source = { url = "git+file://." }

description = {
  summary = "GPU experiments in Lua: every time says which clock it is",
  detailed = [[
An embeddable runtime for GPU experiments: buffers, streams, events and matrix
products run asynchronously on a device, and a clock that is stopped before the
work was done says so. Devices: CUDA GPUs, and the host, with real asynchrony on
the CPU. Neither a GPU nor the CUDA toolkit is needed to install it.]],
  license = "MIT",
  labels = { "gpu", "benchmark", "matrix" },
}

supported_platforms = { "linux" }
dependencies = { "lua >= 5.4, < 5.5" }

-- Not "builtin": it can't pass the linker anything, and the module must stay
-- loaded (its threads outlive a state) and export its entry alone. The flags
-- are those of CMakeLists.txt. LuaRocks' own CFLAGS say -O2: hence -O3 behind.
build = {
  type = "command",
  build_command = [[
mkdir -p build-rock && fatbins= &&
if nvcc --version >/dev/null 2>&1; then
  fatbins="-DTL_CUDA_FATBINS -Wa,-Ibuild-rock"
  for kernel in fill matmul random time; do
    sh kernels/fatbin.sh nvcc kernels/$kernel.cu build-rock/$kernel.fatbin || fatbins=
  done
fi &&
$(CC) $(CFLAGS) -O3 -DNDEBUG -std=gnu11 -pthread -fPIC -fvisibility=hidden -ffp-contract=off \
  -I"$(LUA_INCDIR)" -Isrc -I. -Wa,-I. $fatbins \
  src/core/*.c src/host/*.c src/sim/*.c src/cuda/*.c src/binding/*.c \
  $(LIBFLAG) -Wl,-z,nodelete -Wl,--version-script=src/binding/exports.map \
  -o build-rock/core.so -ldl -lm]],
  install_command = [[
mkdir -p "$(LUADIR)/tidelock/report" "$(LIBDIR)/tidelock" "$(PREFIX)/examples" &&
cp lua/tidelock/*.lua "$(LUADIR)/tidelock/" &&
cp lua/tidelock/report/*.lua "$(LUADIR)/tidelock/report/" &&
cp build-rock/core.so "$(LIBDIR)/tidelock/" &&
cp examples/*.lua "$(PREFIX)/examples/"]],
}
