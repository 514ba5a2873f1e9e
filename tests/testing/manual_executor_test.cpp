// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/testing/manual_executor.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "earmark/testing/manual_clock.hpp"

namespace earmark::testing {
namespace {

using namespace std::chrono_literals;

TEST(ManualClock, StandsStillUntilMoved) {
  ManualClock clock;
  auto const start = clock.now();
  EXPECT_EQ(clock.now(), start);
  clock.advance(5s);
  EXPECT_EQ(clock.now() - start, 5s);
}

class ManualExecution : public ::testing::Test {
 protected:
  void post(int name) {
    executor_.post([this, name] { ran_.push_back(name); });
  }
  void post_after(Clock::duration delay, int name) {
    executor_.post_at(clock_.now() + delay, [this, name] { ran_.push_back(name); });
  }

  ManualClock clock_;
  ManualExecutor executor_{clock_};
  std::vector<int> ran_;
};

TEST_F(ManualExecution, RunsTasksOnlyWhenToldInOrderOfPosting) {
  post(1);
  post(2);
  EXPECT_TRUE(ran_.empty());
  EXPECT_EQ(executor_.run_one(), 1U);
  EXPECT_EQ(ran_, (std::vector<int>{1}));
  EXPECT_EQ(executor_.run_ready(), 1U);
  EXPECT_EQ(executor_.run_one(), 0U);
  EXPECT_EQ(ran_, (std::vector<int>{1, 2}));
}

TEST_F(ManualExecution, RunsTimedTasksOnceTheClockHasReachedThem) {
  post_after(3s, 3);
  post_after(1s, 1);
  post_after(1s, 2);
  EXPECT_EQ(executor_.pending(), 3U);
  EXPECT_EQ(executor_.next_due(), clock_.now() + 1s);
  EXPECT_EQ(executor_.run_ready(), 0U);
  clock_.advance(1s);
  EXPECT_EQ(executor_.run_ready(), 2U);
  clock_.advance(10s);
  EXPECT_EQ(executor_.run_ready(), 1U);
  EXPECT_EQ(ran_, (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(executor_.next_due(), std::nullopt);
}

TEST_F(ManualExecution, RunsTasksThatTasksPost) {
  executor_.post([&] { post(7); });
  EXPECT_EQ(executor_.run_ready(), 2U);
  EXPECT_EQ(ran_, (std::vector<int>{7}));
}

TEST_F(ManualExecution, DropsWhatIsLeft) {
  auto const token = std::make_shared<int>(0);
  {
    ManualExecutor executor(clock_, 4);
    EXPECT_EQ(executor.concurrency(), 4U);
    executor.post([token] {});
    executor.post_at(clock_.now(), [token] {});
  }
  EXPECT_EQ(token.use_count(), 1);
}

}  // namespace
}  // namespace earmark::testing
