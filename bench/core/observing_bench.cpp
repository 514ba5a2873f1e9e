// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// What it costs to be watched: a trace event (beside the one locked instruction that is the least it could take, and
// the clock that its time comes from), and a call stack.
#include <benchmark/benchmark.h>

#include <atomic>
#include <cstdint>

#include "earmark/core/call_stack.hpp"
#include "earmark/core/clock.hpp"
#include "earmark/core/log_sink.hpp"
#include "earmark/core/trace_ring.hpp"

namespace earmark {
namespace {

void one_locked_instruction(benchmark::State& state) {
  static std::atomic<std::uint64_t> word{0};
  for (auto _ : state) { benchmark::DoNotOptimize(word.fetch_add(1, std::memory_order_relaxed)); }
}
BENCHMARK(one_locked_instruction)->Threads(1)->Threads(2);

void read_clock(benchmark::State& state) {
  SteadyClock const clock;
  for (auto _ : state) { benchmark::DoNotOptimize(clock.now()); }
}
BENCHMARK(read_clock);

// Argument: lanes.
void write_event(benchmark::State& state) {
  static TraceRing one_lane{{.events = 4096}};
  static TraceRing many_lanes{{.events = 4096, .lanes = 16}};
  TraceRing& ring = state.range(0) == 1 ? one_lane : many_lanes;
  std::uint64_t id = 0;
  for (auto _ : state) { ring.write({.kind = TraceKind::Allocate, .id = ++id, .bytes = 4096, .after = 8192}); }
}
BENCHMARK(write_event)->Arg(1)->Arg(16)->Threads(1)->Threads(2);

void write_event_with_time(benchmark::State& state) {
  static TraceRing ring{{.events = 4096}};
  SteadyClock const clock;
  for (auto _ : state) { ring.write({.time = clock.now(), .kind = TraceKind::Allocate, .bytes = 4096}); }
}
BENCHMARK(write_event_with_time);

void read_ring(benchmark::State& state) {
  TraceRing ring{{.events = 1 << 16}};
  for (int i = 0; i < (1 << 16); ++i) { ring.write({.kind = TraceKind::Allocate}); }
  for (auto _ : state) { benchmark::DoNotOptimize(ring.read().events.size()); }
}
BENCHMARK(read_ring)->Unit(benchmark::kMillisecond);

[[gnu::noinline]] void capture_at_depth(benchmark::State& state, std::int64_t depth) {
  if (depth > 0) {
    capture_at_depth(state, depth - 1);
  } else {
    for (auto _ : state) { benchmark::DoNotOptimize(CallStack::capture()); }
  }
  asm volatile("" ::: "memory");
}
void capture_call_stack(benchmark::State& state) { capture_at_depth(state, state.range(0)); }
BENCHMARK(capture_call_stack)->Arg(0)->Arg(10)->Arg(30);

void call_stack_to_text(benchmark::State& state) {
  CallStack const stack = CallStack::capture();
  for (auto _ : state) { benchmark::DoNotOptimize(stack.to_text()); }
}
BENCHMARK(call_stack_to_text)->Unit(benchmark::kMillisecond);

void log_line_that_is_not_taken(benchmark::State& state) {
  StandardErrorLog log{LogLevel::Error};
  LogSink* sink = &log;
  for (auto _ : state) {
    benchmark::DoNotOptimize(sink);
    sink->write(LogLevel::Debug, "nothing");
  }
}
BENCHMARK(log_line_that_is_not_taken);

}  // namespace
}  // namespace earmark
