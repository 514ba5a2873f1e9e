// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/core/executor.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <latch>
#include <memory>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "earmark/core/thread_pool.hpp"
#include "earmark/testing/manual_clock.hpp"
#include "earmark/testing/manual_executor.hpp"

namespace earmark {
namespace {

// An executor whose n-th post fails.
class RefusingExecutor final : public Executor {
 public:
  RefusingExecutor(Executor& base, int posts) : base_(base), posts_left_(posts) {}
  void post(Task task) override {
    if (posts_left_-- == 0) { throw std::bad_alloc(); }
    base_.post(std::move(task));
  }
  void post_at(Clock::time_point when, Task task) override { base_.post_at(when, std::move(task)); }
  [[nodiscard]] std::size_t concurrency() const noexcept override { return base_.concurrency(); }

 private:
  Executor& base_;
  int posts_left_;
};

TEST(ParallelFor, CallsTheBodyOnceForEveryIndex) {
  ThreadPool pool(3);
  for (std::size_t const workers : {0U, 1U, 2U, 4U, 50U}) {
    std::vector<std::atomic<int>> calls(1000);
    parallel_for(pool, workers, calls.size(), [&](std::size_t, std::size_t index) { ++calls[index]; });
    EXPECT_TRUE(std::all_of(calls.begin(), calls.end(), [](auto const& n) { return n == 1; })) << workers;
  }
}

TEST(ParallelFor, DoesNothingForNoIndices) {
  ThreadPool pool(1);
  parallel_for(pool, 4, 0, [](std::size_t, std::size_t) { FAIL(); });
}

TEST(ParallelFor, RunsTheCallerAsWorkerZeroAndHandsOutIndicesInOrder) {
  testing::ManualClock const clock;
  testing::ManualExecutor executor(clock);
  auto const caller = std::this_thread::get_id();
  std::vector<std::size_t> order;
  parallel_for(executor, 4, 10, [&](std::size_t worker, std::size_t index) {
    EXPECT_EQ(worker, 0U);
    EXPECT_EQ(std::this_thread::get_id(), caller);
    order.push_back(index);
  });
  std::vector<std::size_t> expected(10);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(order, expected);
}

TEST(ParallelFor, PostsNoMoreTasksThanItHasIndices) {
  testing::ManualClock const clock;
  testing::ManualExecutor executor(clock);
  parallel_for(executor, 100, 3, [](std::size_t, std::size_t) {});
  EXPECT_EQ(executor.pending(), 2U);
}

TEST(ParallelFor, LetsTasksThatStartAfterItsEndReturnAtOnce) {
  testing::ManualClock const clock;
  testing::ManualExecutor executor(clock);
  auto calls = std::make_unique<int>(0);
  parallel_for(executor, 3, 5, [&](std::size_t, std::size_t) { ++*calls; });
  EXPECT_EQ(*calls, 5);
  calls.reset();  // a late call would touch freed memory
  EXPECT_EQ(executor.run_ready(), 2U);
}

TEST(ParallelFor, UsesAsManyWorkersAsItMay) {
  ThreadPool pool(3);
  std::latch all_four(4);  // opens only when four calls run at once
  std::array<std::atomic<bool>, 4> used{};
  parallel_for(pool, 4, 4, [&](std::size_t worker, std::size_t) {
    used.at(worker) = true;
    all_four.arrive_and_wait();
  });
  EXPECT_TRUE(std::all_of(used.begin(), used.end(), [](auto const& flag) { return flag.load(); }));
}

TEST(ParallelFor, NeverUsesAWorkerNumberTwiceAtOnce) {
  ThreadPool pool(4);
  std::array<std::atomic<int>, 4> inside{};
  parallel_for(pool, 4, 5000, [&](std::size_t worker, std::size_t) {
    EXPECT_EQ(inside.at(worker).fetch_add(1), 0);
    inside.at(worker).fetch_sub(1);
  });
}

TEST(ParallelFor, EndsOnAnExecutorThatIsBusyUntilAfterwards) {
  ThreadPool pool(1);
  std::latch release(1);
  pool.post([&] { release.wait(); });
  std::atomic<int> calls{0};
  parallel_for(pool, 2, 100, [&](std::size_t, std::size_t) { ++calls; });
  EXPECT_EQ(calls, 100);
  release.count_down();
}

TEST(ParallelFor, NestsOnASingleThread) {
  ThreadPool pool(1);
  std::atomic<int> calls{0};
  parallel_for(pool, 2, 8, [&](std::size_t, std::size_t) {
    parallel_for(pool, 2, 8, [&](std::size_t, std::size_t) {
      parallel_for(pool, 2, 8, [&](std::size_t, std::size_t) { ++calls; });
    });
  });
  EXPECT_EQ(calls, 512);
}

TEST(ParallelFor, NestsInTasksOfItsExecutor) {
  ThreadPool pool(2);
  std::atomic<int> calls{0};
  std::latch done(4);
  for (int i = 0; i < 4; ++i) {
    pool.post([&] {
      parallel_for(pool, 3, 50, [&](std::size_t, std::size_t) { ++calls; });
      done.count_down();
    });
  }
  done.wait();
  EXPECT_EQ(calls, 200);
}

TEST(ParallelFor, ThrowsWhatACallThrewAndHandsOutNothingAfterIt) {
  testing::ManualClock const clock;
  testing::ManualExecutor executor(clock);
  std::vector<std::size_t> called;
  auto const body = [&](std::size_t, std::size_t index) {
    called.push_back(index);
    if (index == 2) { throw std::runtime_error("broken"); }
  };
  EXPECT_THROW(parallel_for(executor, 3, 10, body), std::runtime_error);
  EXPECT_EQ(called, (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_EQ(executor.run_ready(), 2U);
  EXPECT_EQ(called.size(), 3U);
}

TEST(ParallelFor, ThrowsTheFirstOfSeveralExceptions) {
  ThreadPool pool(1);
  std::latch both_in(2);
  std::latch first_thrown(1);
  std::string caught;
  try {
    parallel_for(pool, 2, 2, [&](std::size_t worker, std::size_t) {
      both_in.arrive_and_wait();
      if (worker == 1) {
        // Counts down while the exception leaves the call, so that the other one is thrown later.
        struct CountDown {
          std::latch& latch;
          ~CountDown() { latch.count_down(); }
        } const guard{first_thrown};
        throw std::runtime_error("from the task");
      }
      first_thrown.wait();
      // Gives the task the time to be caught: the loop has noted it when the task's thread runs something else.
      std::latch noted(1);
      pool.post([&] { noted.count_down(); });
      noted.wait();
      throw std::runtime_error("from the caller");
    });
  }
  catch (std::runtime_error const& error) {
    caught = error.what();
  }
  EXPECT_EQ(caught, "from the task");
}

TEST(ParallelFor, WaitsForCallsThatStartedBeforeItThrows) {
  ThreadPool pool(1);
  std::latch task_inside(1);
  std::latch caller_threw(1);
  std::atomic<bool> task_finished{false};
  auto const body = [&](std::size_t worker, std::size_t) {
    if (worker == 0) {
      task_inside.wait();
      struct CountDown {
        std::latch& latch;
        ~CountDown() { latch.count_down(); }
      } const guard{caller_threw};
      throw std::logic_error("stop");
    }
    task_inside.count_down();
    caller_threw.wait();
    task_finished = true;
  };
  EXPECT_THROW(parallel_for(pool, 2, 2, body), std::logic_error);
  EXPECT_TRUE(task_finished);
}

TEST(ParallelFor, PassesOnAFailureToPostAfterWaitingForThoseWhoStarted) {
  ThreadPool pool(2);
  for (int posts = 0; posts < 3; ++posts) {
    RefusingExecutor executor(pool, posts);
    auto guarded = std::make_unique<std::atomic<int>>(0);
    EXPECT_THROW(parallel_for(executor, 4, 1000, [&](std::size_t, std::size_t) { ++*guarded; }), std::bad_alloc);
    guarded.reset();
  }
}

}  // namespace
}  // namespace earmark
