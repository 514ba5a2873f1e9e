// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Measures what operations cost, side by side, so that whatever disturbs the machine disturbs all of them alike: each
// round gives every contestant one slice of time, starting with another one each round; the threads are pinned, one to
// a core, and the same for all.
//
//   Race race{threads};
//   race.enter("ours", [&](int thread, std::int64_t times) { for (...) { ... } });
//   race.enter("theirs", ...);
//   std::map<std::string, Cost> const costs = race.run();
//
// An operation is what `body` does once; it is called from all threads at once, each with its own number.
// Thread safety: one thread. Ownership: bodies are kept while the race lives.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace earmark::measuring {

// Nanoseconds an operation took, as the mean of the threads; over the rounds.
struct Cost {
  double median{0};
  double low{0};   // a quarter of the rounds were below
  double high{0};  // a quarter of the rounds were above
};

struct RaceOptions {
  int rounds{15};
  std::chrono::milliseconds slice{10};  // what a contestant gets in a round
};

class Race {
 public:
  using Body = std::function<void(int thread, std::int64_t times)>;

  explicit Race(int threads, RaceOptions options = {}) : threads_(threads), options_(options) {}
  void enter(std::string name, Body body) { contestants_.push_back({std::move(name), std::move(body)}); }
  // Returns: what each contestant's operation cost, by name.
  [[nodiscard]] std::map<std::string, Cost> run() const;

 private:
  struct Contestant {
    std::string name;
    Body body;
  };
  int threads_;
  RaceOptions options_;
  std::vector<Contestant> contestants_;
};

// The cores this process may run on.
[[nodiscard]] std::vector<int> usable_cores();
// 1, 2, 4, 8 and 16, as far as there are cores.
[[nodiscard]] std::vector<int> thread_counts();
// The counts that `thread_counts` leaves out.
[[nodiscard]] std::vector<int> thread_counts_without_cores();
// Binds the calling thread to the core of this number.
void pin_to_core(int number);

}  // namespace earmark::measuring
