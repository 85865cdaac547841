#!/bin/sh
# What a driver that is missing, too old, damaged or failing leads to, with the
# stub in its place: a sentence each time, and the host that serves.
#   sh spec/embed/cuda_stub_test.sh [BUILD]
# LUA: the interpreter's command (lua5.4).
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${1:-${BUILD:-$here/../../build}}" && pwd) || exit 2
lua=${LUA:-lua5.4}
export LUA_CPATH="$build/?.so" LUA_PATH="$here/../../lua/?.lua;$here/../../lua/?/init.lua"
unset CUDA_VISIBLE_DEVICES TIDELOCK_DEVICE TIDELOCK_SPEC_DEVICES
stub=$build/spec/stub
scratch=$(mktemp -d) || exit 2
trap 'rm -rf "$scratch"' EXIT
count=0 failed=0

# says SENTENCE PATTERN SETTINGS... -- LUA: the script prints what the pattern
# matches, with the stub as the driver and these settings in its environment.
says() {
  sentence=$1 pattern=$2
  shift 2
  settings=
  while [ "$1" != -- ]; do
    settings="$settings $1"
    shift
  done
  count=$((count + 1))
  # shellcheck disable=SC2086 # $settings and $lua are words
  env LD_LIBRARY_PATH="${libraries:-$stub}" $settings $lua -e "gpu = require 'tidelock' $2" \
    >"$scratch/said" 2>&1
  code=$?
  tr '\t' ' ' <"$scratch/said" >"$scratch/out"
  if [ $code -eq 0 ] && grep -q -e "$pattern" "$scratch/out"; then
    echo "ok $count - $sentence"
  else
    failed=1
    echo "# wanted: $pattern; exit code $code, and it said:"
    sed 's/^/#   /' "$scratch/out" | head -8
    echo "not ok $count - $sentence"
  fi
}

reason='print(select(2, gpu.available "cuda"))'
host='local d = gpu.device() assert(d:id() == "host") print(d:array{1,2}:get(2))'

says "a driver that is too old is told from one that is missing" \
  "too old: it is for CUDA 11.2, tidelock needs one for CUDA 11.3 or later" \
  CUDA_STUB_VERSION=11020 -- "$reason"
says "a missing function is named" "has no cuMemcpyAsync: it is damaged" \
  CUDA_STUB_WITHOUT=cuMemcpyAsync -- "$reason"
says "no GPU is no device" "the driver sees no GPU$" CUDA_STUB_DEVICES=0 -- "$reason"
says "the mask of devices is named" "sees no GPU (CUDA_VISIBLE_DEVICES is '')" \
  CUDA_STUB_DEVICES=0 CUDA_VISIBLE_DEVICES= -- "$reason"
says "a driver that does not start says why" "cuInit: CUDA_ERROR_OF_THE_STUB" \
  CUDA_STUB_FAIL=cuInit:999 -- "$reason"
says "an ordinal that is not there is refused with those that are (E09)" \
  "'cuda:99' does not exist (devices cuda:0 to cuda:1)" \
  CUDA_STUB_DEVICES=2 -- 'print(select(2, pcall(gpu.device, "cuda:99")))'
says "the default device is the first GPU" "^device cuda:0$" X=1 -- 'print(gpu.device())'
says "a driver that can't be used leaves the host, with a warning" \
  "W-NOCUDA .*no GPU is used, but the host: cuda: the driver is too old" \
  CUDA_STUB_VERSION=11020 -- "$host"
says "the host serves then" "^2.0$" CUDA_STUB_WITHOUT=cuMemcpyAsync -- "$host"
says "a precision that the environment changes is told" \
  "W-PRECISION .*NVIDIA_TF32_OVERRIDE=1" NVIDIA_TF32_OVERRIDE=1 -- 'gpu.device "cuda"'

says "contents go in and out, in rows and planes too" "^4 5 8 9 7 7$" X=1 -- '
  local d = gpu.device "cuda"
  local a = d:array { { 1, 2, 3, 4 }, { 5, 6, 7, 8 }, { 9, 10, 11, 12 } }
  local v = a:view { offset = 3, shape = { 2, 2 }, stride = 4 }
  local x = v:totable()
  local c = d:empty { 2, 2 }
  c:copy_from(v)
  assert(c:get(2, 2) == 9)
  v:fill(7)
  print(("%d %d %d %d %d %d"):format(x[1][1], x[1][2], x[2][1], x[2][2], a:get(1, 4), a:get(3, 1)))'
says "rows that lie further apart than the driver copies go one by one" "^1.0 3.0$" X=1 -- '
  local d = gpu.device "cuda"
  local v = d:zeros(1 << 20):view { shape = { 3, 1 }, stride = 1 << 19 >> 1 }
  v:upload { { 1 }, { 2 }, { 3 } }
  print(v:get(1, 1), v:totable()[3][1])'
says "a device without pools allocates all the same" "^true 5.0$" \
  CUDA_STUB_WITHOUT=cuMemAllocFromPoolAsync -- '
  local d = gpu.device "cuda"
  local b = d:full(3, 5)
  local x = b:get(3)
  b:close() d:memory()
  print(d:memory().live == 0 and d:memory().pending == 0, x)'
says "nor does one without a part of them" "^device cuda:0$" \
  CUDA_STUB_WITHOUT=cuMemPoolCreate -- 'print(gpu.device "cuda")'
says "an allocation that fails names the call and the numbers" \
  "out of memory: asked 4096 bytes.*cuMemAllocFromPoolAsync" \
  CUDA_STUB_FAIL=cuMemAllocFromPoolAsync:2 -- 'print(select(2, pcall(gpu.device "cuda".empty, gpu.device "cuda", 1024)))'
says "a launch that needs too much fails at the call and loses nothing (E04)" \
  "cuLaunchKernel of spin, grid 1x1x1, block 1x1: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES.* false 0 0" \
  CUDA_STUB_FAIL=cuLaunchKernel:701 -- '
  local d = gpu.device "cuda"
  local s = d:stream()
  local _, e = pcall(s.spin, s, 0)
  print(e, (d:is_lost()), s:inflight())'
says "a fault of the device is repeated by every call after it" "ILLEGAL_ADDRESS.* true true true" \
  CUDA_STUB_FAIL=cuStreamQuery:700 -- '
  local d = gpu.device "cuda"
  local s = d:stream()
  local b = d:empty(4)
  local _, first = pcall(s.synchronize, s)
  local _, again = pcall(b.fill, b, 1)
  print(first, d:is_lost() and tostring(first):match ": (cuda.*)" == tostring(again):match ": (cuda.*)",
    first.code == "device_lost", pcall(gpu.device, "host"))'
says "code that does not load is explained, both ways" "kernels/fill.cu can't be used: .*then: " \
  CUDA_STUB_FAIL=cuModuleLoadData:209 -- '
  local d = gpu.device "cuda"
  local b = d:empty(4)
  print(select(2, pcall(b.fill, b, 1)))'
libraries=$build/spec/broken:$stub
says "cuBLAS that lacks a function is named, and auto steps down" \
  "has no cublasCreate_v2.* register" X=1 -- '
  local d = gpu.device "cuda"
  local a = d:empty { 2, 2 }
  local _, e = pcall(gpu.matmul, a, a, { kernel = "blas" })
  gpu.matmul(a, a)
  local k = d:matmul_kernels()
  print(e, not k[5].available and k[4].available and k[4].name)'

libraries=$stub
shared='local d = gpu.device "cuda"
  local p = d:properties()
  gpu.on_warning(nil)
  local r = d:bench(function(s) s:spin(0) end, { policy = { "synchronized",
    warmup = { calls = 1, seconds = 0, settle = false }, stop = { min_samples = 2, max_samples = 2 } } })
  local told = "not shared"
  for _, w in ipairs(r.warnings) do told = w.code == "W-SHARED" and w.message or told end
  print(p.other_processes, p.mig, p.mps, told)'
says "a GPU of this process alone is not shared" "^0 false false not shared$" X=1 -- "$shared"
says "nor is it in a container, where the driver lists its process by the host's id" \
  "^0 false false not shared$" NVML_STUB_COMPUTE=4242 -- "$shared"
says "a list without any process tells nothing" "^nil false false not shared$" \
  NVML_STUB_COMPUTE= -- "$shared"
says "another process on the GPU is told" \
  "^1 false false the device is shared: 1 other process has it open$" \
  NVML_STUB_GRAPHICS=4243 -- "$shared"
for entry in 16 24 32; do
  says "processes of both lists are counted once, by entries of $entry bytes" \
    "^2 false false the device is shared: 2 other processes have it open$" \
    NVML_STUB_ENTRY=$entry NVML_STUB_COMPUTE=17,4242 NVML_STUB_GRAPHICS=17,4243 -- "$shared"
done
says "more processes than there is room for are no number" "^nil false false not shared$" \
  "NVML_STUB_COMPUTE=$(seq -s, 200)" -- "$shared"
says "a slice of a GPU is told" "^0 true false the device is shared: it is a slice of a GPU (MIG)$" \
  NVML_STUB_MIG=1 -- "$shared"
says "MPS is told, and its server is no other process" \
  "^0 false true the device is shared: it runs kernels of several processes at a time (MPS)$" \
  NVML_STUB_MPS=17 NVML_STUB_COMPUTE=16 -- "$shared"
libraries=$build/spec/old:$stub
mkdir "$scratch/mps"
says "an older NVML lacks some of it, and gives the rest" "^1 nil nil .*1 other process has it open" \
  NVML_STUB_COMPUTE=17,18 -- "$shared"
says "and its clocks" "^700 1980000000 GpuIdle$" X=1 -- '
  local p = gpu.device "cuda":properties()
  print(p.power_limit, p.sm_clock, p.throttle_reasons[1])'
says "a folder for MPS without a pipe is no MPS" "^0 nil nil not shared$" \
  "CUDA_MPS_PIPE_DIRECTORY=$scratch/mps" -- "$shared"
: >"$scratch/mps/control"
says "one with a pipe is" "^0 nil true the device is shared: .*(MPS)$" \
  "CUDA_MPS_PIPE_DIRECTORY=$scratch/mps" -- "$shared"

count=$((count + 1))
if LD_LIBRARY_PATH="$stub" "$build/spec/cuda_test" >"$scratch/out" 2>&1 && ! grep -q SKIP "$scratch/out"; then
  echo "ok $count - cuda_test passes on the stub"
else
  failed=1
  sed 's/^/# /' "$scratch/out"
  echo "not ok $count - cuda_test passes on the stub"
fi
echo "1..$count"
exit $failed
