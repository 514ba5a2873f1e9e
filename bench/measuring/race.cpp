// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "measuring/race.hpp"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cmath>
#include <thread>

namespace earmark::measuring {
namespace {

using Nanoseconds = std::chrono::duration<double, std::nano>;

// Few enough that a thread sees the end of its slice in time, many enough that looking costs nothing.
constexpr std::int64_t operations_per_look = 64;

// Threads that run one body after another, all at the same time, each as long as its slice lasts.
class Team {
 public:
  explicit Team(int threads) : gate_(threads + 1), nanoseconds_(static_cast<std::size_t>(threads)) {
    for (int t = 0; t < threads; ++t) {
      threads_.emplace_back([this, t] { work(t); });
    }
  }
  ~Team() {
    body_ = nullptr;
    gate_.arrive_and_wait();
    for (std::thread& thread : threads_) { thread.join(); }
  }
  Team(Team const&) = delete;
  Team& operator=(Team const&) = delete;

  // Returns: nanoseconds per operation, the mean of the threads.
  double run(Race::Body const& body, std::chrono::milliseconds slice) {
    body_ = &body;
    over_.store(false, std::memory_order_relaxed);
    gate_.arrive_and_wait();
    std::this_thread::sleep_for(slice);
    over_.store(true, std::memory_order_relaxed);
    gate_.arrive_and_wait();
    double sum = 0;
    for (Padded const& taken : nanoseconds_) { sum += taken.value; }
    return sum / static_cast<double>(nanoseconds_.size());
  }

 private:
  struct alignas(128) Padded {
    double value{0};
  };

  void work(int thread) {
    pin_to_core(thread);
    for (;;) {
      gate_.arrive_and_wait();
      if (body_ == nullptr) { return; }
      nanoseconds_[static_cast<std::size_t>(thread)].value = measure(*body_, thread);
      gate_.arrive_and_wait();
    }
  }

  double measure(Race::Body const& body, int thread) const {
    std::int64_t operations = 0;
    auto const begin = std::chrono::steady_clock::now();
    do {
      body(thread, operations_per_look);
      operations += operations_per_look;
    } while (!over_.load(std::memory_order_relaxed));
    return Nanoseconds{std::chrono::steady_clock::now() - begin}.count() / static_cast<double>(operations);
  }

  std::barrier<> gate_;  // orders the main thread's writes to `body_` before the threads' reads
  Race::Body const* body_{nullptr};
  alignas(128) std::atomic<bool> over_{false};
  std::vector<Padded> nanoseconds_;
  std::vector<std::thread> threads_;
};

double quantile(std::vector<double> const& sorted, double part) {
  return sorted[static_cast<std::size_t>(std::lround(part * static_cast<double>(sorted.size() - 1)))];
}

Cost cost_of(std::vector<double> rounds) {
  std::sort(rounds.begin(), rounds.end());
  return {.median = quantile(rounds, 0.5), .low = quantile(rounds, 0.25), .high = quantile(rounds, 0.75)};
}

std::vector<int> counts_where(bool enough_cores) {
  int const cores = static_cast<int>(usable_cores().size());
  std::vector<int> counts;
  for (int const count : {1, 2, 4, 8, 16}) {
    if ((count <= cores) == enough_cores) { counts.push_back(count); }
  }
  return counts;
}

}  // namespace

std::map<std::string, Cost> Race::run() const {
  std::vector<std::vector<double>> rounds(contestants_.size());
  Team team{threads_};
  for (Contestant const& contestant : contestants_) { (void)team.run(contestant.body, options_.slice); }  // warm up
  for (int round = 0; round < options_.rounds; ++round) {
    for (std::size_t i = 0; i < contestants_.size(); ++i) {
      std::size_t const who = (i + static_cast<std::size_t>(round)) % contestants_.size();
      rounds[who].push_back(team.run(contestants_[who].body, options_.slice));
    }
  }
  std::map<std::string, Cost> costs;
  for (std::size_t i = 0; i < contestants_.size(); ++i) { costs[contestants_[i].name] = cost_of(std::move(rounds[i])); }
  return costs;
}

std::vector<int> usable_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) {
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(static_cast<std::size_t>(core), &allowed)) { cores.push_back(core); }
    }
  }
  if (cores.empty()) { cores.push_back(0); }
  return cores;
}

std::vector<int> thread_counts() { return counts_where(true); }
std::vector<int> thread_counts_without_cores() { return counts_where(false); }

void pin_to_core(int number) {
  // Read once: a thread that is pinned already would see its own core only.
  static std::vector<int> const cores = usable_cores();
  cpu_set_t mine;
  CPU_ZERO(&mine);
  CPU_SET(static_cast<std::size_t>(cores[static_cast<std::size_t>(number) % cores.size()]), &mine);
  (void)pthread_setaffinity_np(pthread_self(), sizeof(mine), &mine);  // not allowed: then the system places the thread
}

}  // namespace earmark::measuring
