// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/testing/manual_executor.hpp"

#include <algorithm>
#include <utility>

namespace earmark::testing {

ManualExecutor::ManualExecutor(Clock const& clock, std::size_t concurrency) noexcept
    : clock_(clock), concurrency_(std::max<std::size_t>(concurrency, 1)) {}

void ManualExecutor::post(Task task) {
  MutexLock const lock(mutex_);
  ready_.push_back(std::move(task));
}

void ManualExecutor::post_at(Clock::time_point when, Task task) {
  MutexLock const lock(mutex_);
  timed_.emplace(when, std::move(task));
}

std::size_t ManualExecutor::run_one() {
  auto const task = take();
  if (task) { (*task)(); }
  return task ? 1 : 0;
}

std::size_t ManualExecutor::run_ready() {
  std::size_t count = 0;
  while (run_one() == 1) { ++count; }
  return count;
}

std::size_t ManualExecutor::pending() const {
  MutexLock const lock(mutex_);
  return ready_.size() + timed_.size();
}

std::optional<Clock::time_point> ManualExecutor::next_due() const {
  MutexLock const lock(mutex_);
  return timed_.empty() ? std::nullopt : std::optional(timed_.begin()->first);
}

std::optional<Executor::Task> ManualExecutor::take() {
  auto const now = clock_.now();
  MutexLock const lock(mutex_);
  while (!timed_.empty() && timed_.begin()->first <= now) {
    ready_.push_back(std::move(timed_.begin()->second));
    timed_.erase(timed_.begin());
  }
  if (ready_.empty()) { return std::nullopt; }
  std::optional<Task> task(std::move(ready_.front()));
  ready_.pop_front();
  return task;
}

}  // namespace earmark::testing
