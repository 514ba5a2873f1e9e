// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/core/thread_pool.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace earmark {
namespace {

using namespace std::chrono_literals;

TEST(ThreadPool, RunsEveryTaskOnceOnThreadsOfItsOwn) {
  std::atomic<int> runs{0};
  std::atomic<bool> ran_here{false};
  {
    ThreadPool pool(3);
    EXPECT_EQ(pool.concurrency(), 3U);
    auto const here = std::this_thread::get_id();
    for (int i = 0; i < 1000; ++i) {
      pool.post([&, here] {
        ++runs;
        if (std::this_thread::get_id() == here) { ran_here = true; }
      });
    }
  }
  EXPECT_EQ(runs, 1000);
  EXPECT_FALSE(ran_here);
}

TEST(ThreadPool, HasAtLeastOneThread) {
  ThreadPool pool(0);
  EXPECT_EQ(pool.concurrency(), 1U);
  std::latch done(1);
  pool.post([&] { done.count_down(); });
  done.wait();
}

TEST(ThreadPool, RunsAsManyTasksAtOnceAsItHasThreads) {
  ThreadPool pool(4);
  std::latch all_inside(4);
  std::latch done(4);
  for (int i = 0; i < 4; ++i) {
    pool.post([&] {
      all_inside.arrive_and_wait();
      done.count_down();
    });
  }
  done.wait();
}

TEST(ThreadPool, RunsTasksOfASingleThreadInOrderOfPosting) {
  std::vector<int> order;
  {
    ThreadPool pool(1);
    for (int i = 0; i < 100; ++i) {
      pool.post([&order, i] { order.push_back(i); });
    }
  }
  for (int i = 0; i < 100; ++i) { EXPECT_EQ(order.at(static_cast<std::size_t>(i)), i); }
}

TEST(ThreadPool, RunsTasksThatTasksPostEvenWhileItStops) {
  std::atomic<int> runs{0};
  {
    ThreadPool pool(2);
    pool.post([&] {
      pool.post([&] {
        ++runs;
        pool.post([&] { ++runs; });
      });
    });
  }
  EXPECT_EQ(runs, 2);
}

TEST(ThreadPool, RunsTimedTasksInOrderOfTheirTimesAndNotBefore) {
  SteadyClock const clock;
  auto const start = clock.now();
  std::latch done(4);
  std::vector<int> order;
  std::atomic<bool> early{false};
  ThreadPool pool(1);
  // The single thread is kept busy until all are posted, so that the order cannot come from the posting.
  std::latch busy(1);
  std::latch all_posted(1);
  pool.post([&] {
    busy.count_down();
    all_posted.wait();
  });
  busy.wait();
  auto const add = [&](int rank, Clock::duration delay) {
    pool.post_at(start + delay, [&, rank, when = start + delay] {
      if (clock.now() < when) { early = true; }
      order.push_back(rank);
      done.count_down();
    });
  };
  add(2, 3ms);
  add(3, 6ms);
  add(0, 1ms);
  add(1, 1ms);
  all_posted.count_down();
  done.wait();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3}));
  EXPECT_FALSE(early);
}

TEST(ThreadPool, RunsTimedTasksOnAnIdleThreadWhileOthersAreBusy) {
  ThreadPool pool(2);
  SteadyClock const clock;
  std::latch release(1);
  std::latch ran(1);
  pool.post_at(clock.now() + 2ms, [&] { ran.count_down(); });
  pool.post([&] { release.wait(); });
  ran.wait();  // hangs if only the busy thread knew of the timed task
  release.count_down();
}

TEST(ThreadPool, RunsATimedTaskWhoseTimeIsPastAtOnce) {
  ThreadPool pool(1);
  std::latch done(2);
  pool.post_at(Clock::time_point::min(), [&] { done.count_down(); });
  pool.post_at(SteadyClock().now(), [&] { done.count_down(); });
  done.wait();
}

TEST(ThreadPool, DropsTimedTasksThatAreNotDueWhenItIsDestroyed) {
  auto const token = std::make_shared<int>(0);
  std::atomic<bool> ran{false};
  {
    ThreadPool pool(2);
    pool.post_at(Clock::time_point::max(), [&ran, token] { ran = true; });
    pool.post_at(SteadyClock().now() + 24h, [&ran, token] { ran = true; });
  }
  EXPECT_FALSE(ran);
  EXPECT_EQ(token.use_count(), 1);
}

TEST(ThreadPool, DestroysATaskBeforeItTakesTheNext) {
  auto token = std::make_shared<int>(0);
  std::weak_ptr<int> const alive = token;
  ThreadPool pool(1);
  std::latch done(1);
  std::atomic<bool> gone{false};
  pool.post([token = std::move(token)] {});
  pool.post([&] {
    gone = alive.expired();
    done.count_down();
  });
  done.wait();
  EXPECT_TRUE(gone);
}

TEST(ThreadPool, TakesPostsFromManyThreads) {
  std::atomic<int> runs{0};
  {
    ThreadPool pool(2);
    std::vector<std::thread> posters;
    for (int i = 0; i < 4; ++i) {
      posters.emplace_back([&] {
        for (int k = 0; k < 250; ++k) {
          if (k % 2 == 0) {
            pool.post([&] { ++runs; });
          } else {
            pool.post_at(Clock::time_point(), [&] { ++runs; });
          }
        }
      });
    }
    for (auto& poster : posters) { poster.join(); }
  }
  EXPECT_EQ(runs, 1000);
}

}  // namespace
}  // namespace earmark
