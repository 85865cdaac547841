#!/bin/sh
# A program ends with work pending: a spin of 0.5 s, buffers, streams, events, a
# closed gate and a running BLAS product. It ends at once, with its own exit
# code, and says nothing.
#   sh spec/embed/exit_test.sh [BUILD]
# TIDELOCK_EXIT_RUNS: how often each way of ending is tried (20); LUA: the
# interpreter's command (lua5.4).
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${1:-${BUILD:-$here/../../build}}" && pwd) || exit 2
runs=${TIDELOCK_EXIT_RUNS:-20}
lua=${LUA:-lua5.4}
export LUA_CPATH="$build/?.so"
scratch=$(mktemp -d) || exit 2
trap 'rm -rf "$scratch"' EXIT
failed=0
count=0

# A run that hangs is ended after 20 s, with 124.
ways() { # sentence, wanted code, pattern for stderr, command...
  sentence=$1 wanted=$2 pattern=$3
  shift 3
  count=$((count + 1))
  bad=0
  run=0
  while [ $run -lt "$runs" ]; do
    run=$((run + 1))
    timeout 20 "$@" $run >"$scratch/out" 2>"$scratch/err"
    code=$?
    if [ $code -ne "$wanted" ]; then
      bad=$((bad + 1))
      echo "# run $run: exit code $code, wanted $wanted"
      sed 's/^/#   /' "$scratch/err" | head -5
    elif [ -s "$scratch/out" ] ||
      ! { if [ -n "$pattern" ]; then
            head -1 "$scratch/err" | grep -q "$pattern"
          else
            [ ! -s "$scratch/err" ]
          fi; }; then
      bad=$((bad + 1))
      echo "# run $run: it says:"
      cat "$scratch/out" "$scratch/err" | sed 's/^/#   /' | head -5
    fi
  done
  if [ $bad -eq 0 ]; then
    echo "ok $count - $sentence"
  else
    failed=1
    echo "not ok $count - $sentence ($bad of $runs runs)"
  fi
}

script=$here/exit_test.lua
# shellcheck disable=SC2086 # $lua may be a command with arguments
{
  ways "the script falls off its end" 0 "" $lua "$script" end
  ways "the script ends with an error" 1 "on purpose" $lua "$script" error
  ways "os.exit(0) leaves the state open" 0 "" $lua "$script" exit
  ways "os.exit(3, true) closes the state" 3 "" $lua "$script" close
}
if [ -x "$build/spec/lua_host" ]; then
  ways "a host never closes its state" 0 "" \
    "$build/spec/lua_host" --leave-open "$script" end
else
  count=$((count + 1))
  echo "ok $count - a host never closes its state # SKIP lua_host is not built"
fi
echo "1..$count"
exit $failed
