// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// M6: a thousand threads wait for memory. How long after a piece of it came back does the one whose turn it is run,
// beside as many threads that wait for a condition variable each; and what do they cost while nothing comes back.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <ctime>
#include <deque>
#include <latch>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "earmark/memory/reservation_aware_resource_adaptor.hpp"
#include "measuring/report.hpp"
#include "memory/upstreams.hpp"

namespace earmark::bench {
namespace {

using Time = std::chrono::steady_clock::time_point;
constexpr int waiters = 1000;
constexpr std::size_t piece = 256;

// Two moments: when the memory came back, and when the thread that waited for it ran. One thread is woken at a time.
class Stopwatch {
 public:
  void start() { began_ = std::chrono::steady_clock::now(); }
  void stop() {
    nanoseconds_.push_back(static_cast<double>((std::chrono::steady_clock::now() - began_).count()));
    runs_.fetch_add(1);
    runs_.notify_one();
  }
  // Blocks: until `stop` was called `count` times in all.
  void await(int count) {
    for (int now = runs_; now < count; now = runs_) { runs_.wait(now); }
  }
  [[nodiscard]] std::vector<double>& nanoseconds() { return nanoseconds_; }

 private:
  Time began_{};
  std::vector<double> nanoseconds_;
  std::atomic<int> runs_{0};
};

double cpu_seconds() {
  timespec now{};
  (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Returns: processor time that `waiters` threads use a second while nothing comes back to them, in milliseconds.
double cpu_while_waiting() {
  double const before = cpu_seconds();
  std::this_thread::sleep_for(std::chrono::seconds{1});
  return (cpu_seconds() - before) * 1e3;
}

// Adds the times of one round to `watch`. Returns: what waiting alone cost.
double wait_for_memory(Stopwatch& watch) {
  ReservationAwareResourceAdaptor adaptor{NoUpstream{}, piece * waiters};
  std::vector<MemoryReservation> held;
  for (int i = 0; i < waiters; ++i) { held.push_back(adaptor.reserve(piece)); }
  std::vector<MemoryReservation> granted(waiters);
  std::vector<std::thread> threads;
  for (int i = 0; i < waiters; ++i) {
    threads.emplace_back([&, i] {
      granted[static_cast<std::size_t>(i)] = adaptor.reserve_blocking(piece);
      watch.stop();
    });
  }
  while (adaptor.report().waiting.size() != waiters) { std::this_thread::sleep_for(std::chrono::milliseconds{5}); }
  double const idle = cpu_while_waiting();
  int const before = static_cast<int>(watch.nanoseconds().size());
  for (int i = 1; i <= waiters; ++i) {
    watch.start();
    held.pop_back();
    watch.await(before + i);
  }
  for (std::thread& thread : threads) { thread.join(); }
  return idle;
}

struct OneWaiter {
  std::mutex mutex;
  std::condition_variable condition;
  bool served{false};
};

void wait_for_condition(Stopwatch& watch) {
  std::deque<OneWaiter> all(waiters);
  std::latch parked{waiters};
  std::vector<std::thread> threads;
  for (OneWaiter& mine : all) {
    threads.emplace_back([&] {
      std::unique_lock lock{mine.mutex};
      parked.count_down();
      mine.condition.wait(lock, [&] { return mine.served; });
      lock.unlock();
      watch.stop();
    });
  }
  parked.wait();
  std::this_thread::sleep_for(std::chrono::seconds{1});  // as the others
  int const before = static_cast<int>(watch.nanoseconds().size());
  for (int i = 1; i <= waiters; ++i) {
    OneWaiter& next = all[static_cast<std::size_t>(i) - 1];
    watch.start();
    {
      std::lock_guard const lock{next.mutex};
      next.served = true;
    }
    next.condition.notify_one();
    watch.await(before + i);
  }
  for (std::thread& thread : threads) { thread.join(); }
}

double quantile(std::vector<double>& values, double part) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(part * static_cast<double>(values.size() - 1))];
}

void wake_ups(measuring::Report& report) {
  Stopwatch ours;
  Stopwatch theirs;
  double idle = 0;
  int const rounds = std::min(report.race().rounds, 5);
  for (int round = 0; round < rounds; ++round) {
    if (round % 2 == 0) { wait_for_condition(theirs); }
    idle = std::max(idle, wait_for_memory(ours));
    if (round % 2 != 0) { wait_for_condition(theirs); }
  }
  for (auto const& [name, part] : {std::pair{"p50", 0.5}, std::pair{"p99", 0.99}}) {
    report.print({.row = "M6",
                  .what = "wake-up of a blocked thread after the bytes come back, 1,000 waiters",
                  .unit = "us",
                  .value = quantile(ours.nanoseconds(), part) / 1e3,
                  .figure_case = name,
                  .peer = {{"a condition variable each", quantile(theirs.nanoseconds(), part) / 1e3}}});
  }
  report.print({.row = "M6",
                .what = "processor time a second that 1,000 waiters use",
                .unit = "ms",
                .value = idle,
                .figure_case = "processor time while only waiting"});
}

}  // namespace
}  // namespace earmark::bench

int main(int argc, char** argv) {
  earmark::measuring::Report report{argc, argv};
  if (report.wants("M6")) { earmark::bench::wake_ups(report); }
}
