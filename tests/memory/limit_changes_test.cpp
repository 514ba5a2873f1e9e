// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Limits that change while requests are parked: lowered, raised and reset, in every order.
#include <gtest/gtest.h>

#include <cstddef>
#include <deque>
#include <vector>

#include "memory/asked.hpp"
#include "memory/watched_adaptor.hpp"

namespace earmark {
namespace {

constexpr std::size_t reset = 1024;  // what it was in the beginning
constexpr std::size_t limits[] = {0, 256, 512, 768, reset, 1280, 1536, 2048, 4096};

// A few requests on a full adaptor, and what should become of them.
class Parked {
 public:
  Parked() {
    for (std::size_t const bytes : {512U, 1024U, 256U, 64U}) {
      asked_.emplace_back(host_.adaptor, bytes);
      expected_.push_back({bytes, Outcome::Waits});
    }
  }
  void set_limit(std::size_t limit) {
    host_.adaptor.set_limit(limit);
    for (Expected& one : expected_) {
      if (one.outcome == Outcome::Waits && one.bytes > limit) { one.outcome = Outcome::Impossible; }
    }
    for (Expected& one : expected_) {
      if (one.outcome != Outcome::Waits) { continue; }
      if (committed_ + one.bytes > limit) { break; }
      committed_ += one.bytes;
      one.outcome = Outcome::Granted;
    }
  }
  // Returns: whether all is as it should be.
  [[nodiscard]] bool agrees(std::size_t limit) {
    bool good = host_.adaptor.committed() == static_cast<std::int64_t>(committed_) &&
                host_.adaptor.available() == static_cast<std::int64_t>(limit) - static_cast<std::int64_t>(committed_);
    for (std::size_t i = 0; i < asked_.size(); ++i) { good = good && asked_[i].outcome() == expected_[i].outcome; }
    return good;
  }
  // Returns: whether everything could be let go of.
  [[nodiscard]] bool ends_at_zero() {
    all_.close();
    host_.adaptor.set_limit(reset);
    // Each that is let go of serves the next.
    for (Asked& one : asked_) {
      if (one.outcome() == Outcome::Waits) { return false; }
      one.drop();
    }
    return host_.adaptor.committed() == 0 && waiting(host_.adaptor) == 0;
  }

 private:
  struct Expected {
    std::size_t bytes;
    Outcome outcome;
  };
  WatchedHost host_{reset};
  HostMemoryReservation all_ = host_.adaptor.reserve(reset);
  std::size_t committed_{reset};
  std::deque<Asked> asked_;
  std::vector<Expected> expected_;
};

TEST(LimitChanges, ServeRefuseOrKeepWaitingWhoeverIsParkedInEveryOrder) {
  for (std::size_t const first : limits) {
    for (std::size_t const second : limits) {
      for (std::size_t const third : limits) {
        Parked parked;
        for (std::size_t const limit : {first, second, third}) {
          parked.set_limit(limit);
          ASSERT_TRUE(parked.agrees(limit)) << first << ' ' << second << ' ' << third << " at " << limit;
        }
        ASSERT_TRUE(parked.ends_at_zero()) << first << ' ' << second << ' ' << third;
      }
    }
  }
}

// What was refused below a limit is served when it is back where it was.
TEST(LimitChanges, LeaveNoTraceWhenTheyAreReset) {
  WatchedHost host{reset};
  HostMemoryReservation held = host.adaptor.reserve(512);
  host.adaptor.set_limit(256);
  EXPECT_FALSE(host.adaptor.try_reserve(64));
  EXPECT_EQ(host.adaptor.pressure(), 256);
  host.adaptor.set_limit(reset);
  EXPECT_EQ(host.adaptor.pressure(), 0);
  EXPECT_TRUE(host.adaptor.try_reserve(512));
  EXPECT_EQ(held.granted(), 512);
}

TEST(LimitChanges, ReachThoseWhoAreBlocked) {
  WatchedHost host{reset};
  HostMemoryReservation const held = host.adaptor.reserve(reset);
  Blocked small{host.adaptor, 256};
  Blocked large{host.adaptor, 1024};
  await_waiting(host.adaptor, 2);
  host.adaptor.set_limit(512);
  EXPECT_EQ(large.outcome(), Outcome::Impossible);
  EXPECT_EQ(waiting(host.adaptor), 1U);
  host.adaptor.set_limit(1280);
  EXPECT_EQ(small.outcome(), Outcome::Granted);
}

}  // namespace
}  // namespace earmark
