// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/memory/budget.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace earmark {
namespace {

TEST(Budget, RefusesWhatWouldPassTheLimit) {
  Budget budget{100};
  EXPECT_TRUE(budget.try_take(60));
  EXPECT_FALSE(budget.try_take(41));
  EXPECT_TRUE(budget.try_take(40));
  EXPECT_EQ(budget.committed(), 100);
  budget.credit(100);
  EXPECT_EQ(budget.committed(), 0);
  EXPECT_EQ(budget.peak_committed(), 100);
}

TEST(Budget, RefusesSizesThatNoLimitCanHold) {
  Budget budget{SIZE_MAX};
  EXPECT_EQ(budget.limit(), Budget::max_bytes);
  for (std::size_t bytes : {SIZE_MAX, std::size_t{1} << 63, (std::size_t{1} << 63) - 1, std::size_t{1} << 60}) {
    EXPECT_FALSE(budget.try_take(bytes)) << bytes;
  }
  EXPECT_EQ(budget.committed(), 0);
  EXPECT_TRUE(budget.try_take(static_cast<std::size_t>(Budget::max_bytes)));
  EXPECT_EQ(budget.available(), 0);
}

TEST(Budget, GoesIntoADeficitOnlyWhenTold) {
  Budget budget{100};
  EXPECT_TRUE(budget.take_anyway(150));
  EXPECT_EQ(budget.available(), -50);
  EXPECT_FALSE(budget.try_take(1));
  EXPECT_TRUE(budget.try_take(0)) << "nothing is always there";
  budget.credit(150);
  EXPECT_EQ(budget.available(), 100);
}

TEST(Budget, KeepsADeficitWithinWhatItCanCount) {
  Budget budget{0};
  EXPECT_TRUE(budget.take_anyway(static_cast<std::size_t>(Budget::max_bytes)));
  EXPECT_FALSE(budget.take_anyway(1));
  EXPECT_EQ(budget.committed(), Budget::max_bytes);
}

TEST(Budget, TakesNothingBackWhenItsLimitIsLowered) {
  Budget budget{100};
  EXPECT_TRUE(budget.try_take(80));
  budget.set_limit(50);
  EXPECT_EQ(budget.committed(), 80);
  EXPECT_EQ(budget.available(), -30);
  EXPECT_FALSE(budget.try_take(1));
  budget.credit(40);
  EXPECT_TRUE(budget.try_take(10));
  budget.set_limit(SIZE_MAX);
  EXPECT_EQ(budget.committed(), 50);
  budget.set_limit(0);
  EXPECT_EQ(budget.available(), -50);
}

TEST(Budget, NeverExceedsItsLimitUnderManyThreads) {
  Budget budget{1000};
  std::atomic<std::int64_t> held{0};
  std::atomic<bool> passed{false};
  std::vector<std::thread> threads;
  for (std::int64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::int64_t i = 0; i < 20'000; ++i) {
        std::int64_t const bytes = 1 + (i * 7 + t * 13) % 400;
        if (!budget.try_take(static_cast<std::size_t>(bytes))) { continue; }
        if (held.fetch_add(bytes) + bytes > 1000) { passed = true; }
        held.fetch_sub(bytes);
        budget.credit(bytes);
      }
    });
  }
  for (std::thread& thread : threads) { thread.join(); }
  EXPECT_FALSE(passed);
  EXPECT_LE(budget.peak_committed(), 1000);
  EXPECT_EQ(budget.committed(), 0);
}

TEST(Budget, ShowsLimitAndCommittedOfOneMomentWhileTheLimitMoves) {
  Budget budget{1000};
  EXPECT_TRUE(budget.try_take(300));
  std::atomic<bool> stop{false};
  std::thread mover{[&] {
    for (std::size_t i = 0; i < 20'000; ++i) { budget.set_limit(500 + i % 1000); }
    stop = true;
  }};
  bool torn = false;
  while (!stop) { torn = torn || budget.read().committed != 300; }
  mover.join();
  EXPECT_FALSE(torn);
}

}  // namespace
}  // namespace earmark
