#!/usr/bin/env bash
# Copyright (c) 2026 The Earmark authors
# SPDX-License-Identifier: Apache-2.0
#
# Runs what `./dev gpu-pack` put beside it, on a machine that needs nothing but a driver; there it is `.gpu/run`:
#
#   .gpu/run test [FOLDER]          all tests, then the same under compute-sanitizer, and a summary; logs go to FOLDER
#   .gpu/run bench NAME [ARGS...]   the programs of a benchmark, beside peers where `.gpu-peers` is there, too
#
# Ends with status 0 if nothing failed. Without a GPU every test skips itself, and says so.
#   EARMARK_GPU_SECONDS  time limit of all tests together (default: 540)
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
deadline=$((SECONDS + ${EARMARK_GPU_SECONDS:-540}))
per_program=120

# Loading a kernel at its first launch may wait for others that run.
export CUDA_MODULE_LOADING=EAGER

say() { printf '== %s\n' "$*"; }

# The sum of a count in googletest's closing lines: "[  PASSED  ] 7 tests."
count_in() {  # WORD LOG
  sed -n "s/^\[ *$1 *\] \([0-9]*\) tests\?[.,].*/\1/p" "$2" | awk '{ n += $1 } END { print n + 0 }'
}

seconds_left() { echo $((deadline - SECONDS)); }

# Runs one program. Adds to the totals and appends a line to the summary.
run_program() {  # HOW NAME COMMAND...
  local how=$1 name=$2 log status limit start=$SECONDS
  shift 2
  log=$logs/$name.$how.log
  limit=$(seconds_left)
  if ((limit <= 0)); then
    summary+=("$(printf '%-10s %-52s not run: out of time' "$how" "$name")")
    failures=$((failures + 1))
    return
  fi
  timeout --kill-after=10 "$((limit < per_program ? limit : per_program))" "$@" >"$log" 2>&1
  status=$?
  local passed skipped failed
  passed=$(count_in PASSED "$log") skipped=$(count_in SKIPPED "$log") failed=$(count_in FAILED "$log")
  total_passed=$((total_passed + passed)) total_skipped=$((total_skipped + skipped))
  summary+=("$(printf '%-10s %-52s %3d passed %3d skipped %3d failed  status %d  %d s' \
    "$how" "$name" "$passed" "$skipped" "$failed" "$status" "$((SECONDS - start))")")
  if ((status != 0)); then
    failures=$((failures + 1))
    say "$name ($how) failed with status $status; its output ends in"
    tail -n 60 "$log"
  fi
}

# compute-sanitizer beside the toolkit, if it can watch this device. Prints why not otherwise, and fails.
find_sanitizer() {
  local places=(/usr/local/cuda*/bin/compute-sanitizer)
  sanitizer=$(command -v compute-sanitizer || echo "${places[0]}")
  if [[ ! -x $sanitizer ]]; then
    say 'compute-sanitizer: skipped, it is not installed'
    return 1
  fi
  local first log=$logs/sanitizer-probe.log
  first=$here/tests/memory_cuda_cuda_stream_events_on_device_test
  if ! timeout 60 "$sanitizer" --error-exitcode 1 "$first" --gtest_filter='*MarksTheDefaultStream' >"$log" 2>&1; then
    if grep -qiE 'not supported|unable to|internal error|LibraryNotLoaded' "$log"; then
      say 'compute-sanitizer: skipped, it cannot watch this device:'
      tail -n 5 "$log"
      return 1
    fi
  fi
}

list_devices() {
  command -v nvidia-smi >/dev/null && nvidia-smi --query-gpu=name,memory.total,driver_version --format=csv,noheader
}

run_tests() {
  logs=${1:-$(mktemp -d)}
  mkdir -p "$logs"
  failures=0 total_passed=0 total_skipped=0 summary=()
  local devices program name
  devices=$(list_devices 2>/dev/null) || devices=
  say "devices: ${devices:-none}"
  for program in "$here"/tests/*; do
    name=$(basename "$program")
    run_program plain "$name" "$program" --gtest_color=no
  done
  if [[ -n $devices ]] && find_sanitizer; then
    for program in "$here"/tests/*_on_device_test; do
      name=$(basename "$program")
      [[ $name != *process_exit* ]] || continue  # starts processes of its own
      run_program memcheck "$name" "$sanitizer" --tool memcheck --error-exitcode 66 --report-api-errors no \
        "$program" --gtest_color=no
    done
  fi
  say summary
  printf '%s\n' "${summary[@]}"
  grep -hE '^(no GPU|one GPU|kernels are run one at a time|there is a device)' "$logs"/*.log 2>/dev/null | sort | uniq -c | sort -rn | head -n 10
  say "$total_passed passed, $total_skipped skipped, $failures programs failed, $SECONDS s"
  ((failures == 0))
}

run_benchmark() {  # NAME [ARGS...]
  local name=$1 program beside status=0
  shift
  for program in "$here"/bench/"$name"_*_bench; do
    [[ -x $program ]] || { say "no benchmark '$name'" >&2; return 2; }
    beside=${here%/}-peers/bench/$(basename "$program")
    [[ -x $beside ]] && program=$beside
    "$program" "$@" || status=1
  done
  return "$status"
}

case ${1:-} in
  test) shift; run_tests "$@" ;;
  bench) shift; run_benchmark "${@:?usage: run bench NAME [ARGS...]}" ;;
  *) sed -n '5,11s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac
