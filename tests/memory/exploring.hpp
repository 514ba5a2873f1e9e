// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// What the tests that explore interleavings share: the memory floor's templates over the explorer's atomics, what a
// test expects of a scenario, a thread that waits in a budget's queue, and the names of all that.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <new>
#include <string>
#include <vector>

#include "earmark/memory/basic_budget.hpp"
#include "memory/interleaving.hpp"

namespace earmark::interleaving {

using Account = detail::BasicAccount<Atomics>;
using Budget = detail::BasicBudget<Atomics>;
using detail::Pass;
using detail::Take;
using detail::Taken;
using Threads = std::vector<std::function<void()>>;

template <class S>
void expect_holds() {
  Exploration const result = explore<S>();
  std::string schedule;
  for (std::size_t thread : result.schedule) { schedule += static_cast<char>('0' + thread); }
  EXPECT_EQ(result.failure, "") << "after " << schedule;
  EXPECT_TRUE(result.complete) << result.states << " states were not enough";
  EXPECT_GT(result.endings, 0U);
  ::testing::Test::RecordProperty("states", static_cast<int>(result.states));
}

template <class S>
void expect_fails() {
  EXPECT_NE(explore<S>().failure, "") << "the search should have found the hole in this design";
}

// The place of one request: it is made here, waited for, and wiped as soon as it was completed, so that whoever touches
// it later stumbles.
class Place {
 public:
  // Takes `bytes` from `purse`, waiting for them if need be.
  Take take(std::int64_t bytes, Budget& purse, int priority = 0, std::int64_t net_memory_delta = 0) {
    Take const result = start(bytes, purse, priority, net_memory_delta);
    return result == Take::Queue ? wait() : result;
  }
  // Returns: Queue if it waits now; then call `wait`.
  Take start(std::int64_t bytes, Budget& purse, int priority = 0, std::int64_t net_memory_delta = 0) {
    request_ = ::new (static_cast<void*>(storage_)) Request(*this, bytes, purse, priority, net_memory_delta);
    Taken const taken = purse.queue_keeper().take_or_enqueue(*request_);
    if (taken.result != Take::Queue) {
      wipe();
      decided_ = taken.result;
    }
    return taken.result;
  }
  Take wait() {
    World::current()->wait_until([this] { return completed_.load() != 0; });
    int const completed = completed_.load();
    wipe();
    return static_cast<Take>(completed - 1);
  }
  // Withdraws it, if it still waits. Requires: `start` returned Queue, and nobody waits meanwhile.
  bool cancel() { return request_->purse().queue_keeper().cancel(*request_, Take::Short); }
  // How it ended; Queue: not yet. For the end of a scenario.
  [[nodiscard]] Take outcome() const {
    return decided_ != Take::Queue || completed_.load() == 0 ? decided_ : static_cast<Take>(completed_.load() - 1);
  }
  [[nodiscard]] bool served() const { return outcome() == Take::Ok; }

 private:
  class Request final : public detail::BasicWaitRequest<Atomics> {
   public:
    Request(Place& place, std::int64_t bytes, Budget& purse, int priority, std::int64_t net_memory_delta)
        : BasicWaitRequest(bytes, purse, priority, net_memory_delta), place_(place) {}
    ~Request() = default;

   private:
    void complete() noexcept override {
      Place& place = place_;
      int const completed = static_cast<int>(outcome().result) + 1;
      if (place.completed_.exchange(completed) != 0) { World::current()->fail("a request was completed twice"); }
    }
    Place& place_;
  };
  void wipe() {
    request_->~Request();
    request_ = nullptr;
    std::memset(storage_, 0xdd, sizeof storage_);
  }

  alignas(Request) std::byte storage_[sizeof(Request)]{};
  Request* request_{nullptr};
  Take decided_{Take::Queue};  // without having waited
  Atomic<int> completed_{0};   // 0, or 1 + the result
};

// What of a budget decides and is not an atomic: who waits, in which order.
inline std::uint64_t state_of(Budget& budget) {
  std::uint64_t state = 1;
  budget.for_each_request([&](detail::BasicWaitRequest<Atomics> const& request) {
    state =
        mix(mix(state, static_cast<std::uint64_t>(request.bytes())), static_cast<std::uint64_t>(request.overtaken()));
    state = mix(state, &request.purse() == &budget ? 1 : 2);
  });
  return state;
}

// Limit 1024, so that a core keeps at most 4; all but `word + first + second` is committed.
class Spread {
 public:
  Spread(std::int64_t word, std::int64_t first, std::int64_t second) {
    (void)budget.take(limit - word, Pass::Yes);
    budget.thaw();
    keep_on_core(0, first);
    keep_on_core(1, second);
    World::current()->stand_in_for(0);
  }
  static constexpr std::int64_t limit = 1024;
  Budget budget{limit, 2, 16};

 private:
  void keep_on_core(std::size_t core, std::int64_t bytes) {
    World::current()->stand_in_for(core);
    if (bytes != 0) { budget.credit(bytes); }
  }
};

}  // namespace earmark::interleaving

// Where explored tests live: the floor's templates by their short names mean those over the explorer's atomics.
namespace earmark::detail::explored {

using interleaving::Account;
using interleaving::Atomic;
using interleaving::Atomics;
using interleaving::Budget;
using interleaving::expect_fails;
using interleaving::expect_holds;
using interleaving::Mutex;
using interleaving::Place;
using interleaving::Scenario;
using interleaving::Spread;
using interleaving::state_of;
using interleaving::Threads;
using interleaving::World;

}  // namespace earmark::detail::explored
