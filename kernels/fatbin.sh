#!/bin/sh
# sh kernels/fatbin.sh NVCC KERNEL.cu KERNEL.fatbin
# Machine code for every GPU that tidelock is built for, and PTX of the oldest,
# which newer GPUs' drivers compile. This is the list of GPUs.
set -eu
wanted="75 80 86 89 90 100 120"
nvcc=$1 source=$2 fatbin=$3

known=" $("$nvcc" --list-gpu-arch | sed -n 's/^compute_\([0-9]*\)$/\1/p' | tr '\n' ' ')"
options= oldest= missing=
for arch in $wanted; do
  case $known in
    *" $arch "*)
      options="$options -gencode arch=compute_$arch,code=sm_$arch"
      oldest=${oldest:-$arch} ;;
    *) missing="$missing sm_$arch" ;;
  esac
done
[ -z "$missing" ] || echo "kernels: $nvcc does not know$missing: left out of ${fatbin##*/}"
[ -n "$oldest" ] || { echo "kernels: $nvcc knows none of sm_75 and later" >&2; exit 1; }
"$nvcc" --help | grep -q -- '--compress-mode' && options="$options --compress-mode=size"

# shellcheck disable=SC2086 # options are words
"$nvcc" -fatbin -O3 -std=c++17 --threads 0 $options \
  -gencode "arch=compute_$oldest,code=compute_$oldest" -o "$fatbin" "$source"
