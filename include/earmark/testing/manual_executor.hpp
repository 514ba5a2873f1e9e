// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// An executor that runs tasks only when a test says so, on the thread that says so: what would be a race becomes an
// order that the test chooses.
//
//   testing::ManualClock clock;
//   testing::ManualExecutor executor(clock);
//   executor.post_at(clock.now() + 1s, task);
//   executor.run_ready();               // 0: not due
//   clock.advance(1s);
//   executor.run_ready();               // 1
//
// Tasks left over are dropped with the executor. Holds a reference to the clock, which must outlive it.
// Thread safety: any thread may post and run.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <optional>

#include "earmark/core/executor.hpp"
#include "earmark/core/thread_annotations.hpp"

namespace earmark::testing {

class ManualExecutor final : public Executor {
 public:
  // `concurrency` is what the executor claims; tasks run one after another all the same.
  explicit ManualExecutor(Clock const& clock, std::size_t concurrency = 1) noexcept;

  void post(Task task) override EARMARK_EXCLUDES(mutex_);
  void post_at(Clock::time_point when, Task task) override EARMARK_EXCLUDES(mutex_);
  [[nodiscard]] std::size_t concurrency() const noexcept override { return concurrency_; }

  // Runs the task that is due first: in order of posting, timed ones in order of their times.
  // Returns: how many ran, 0 or 1.
  std::size_t run_one() EARMARK_EXCLUDES(mutex_);
  // Runs tasks, also those that they post, until none is due. Returns: how many ran.
  std::size_t run_ready() EARMARK_EXCLUDES(mutex_);
  // Returns: tasks that have not run, due or not.
  [[nodiscard]] std::size_t pending() const EARMARK_EXCLUDES(mutex_);
  // Returns: when the first of the timed tasks is due; nothing when there is none.
  [[nodiscard]] std::optional<Clock::time_point> next_due() const EARMARK_EXCLUDES(mutex_);

 private:
  std::optional<Task> take() EARMARK_EXCLUDES(mutex_);

  Clock const& clock_;
  std::size_t const concurrency_;
  mutable Mutex mutex_;
  std::deque<Task> ready_ EARMARK_GUARDED_BY(mutex_);
  std::multimap<Clock::time_point, Task> timed_ EARMARK_GUARDED_BY(mutex_);
};

}  // namespace earmark::testing
