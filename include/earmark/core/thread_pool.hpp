// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// The plain executor: a fixed number of threads and one queue. Owns its threads and joins them when destroyed; tasks
// already posted still run, timed tasks that are not yet due are dropped. Thread safety: any thread may post.
#pragma once

#include <cstddef>
#include <memory>

#include "earmark/core/executor.hpp"

namespace earmark {

class ThreadPool final : public Executor {
 public:
  // Starts `threads` threads (at least 1).
  explicit ThreadPool(std::size_t threads);
  ThreadPool(ThreadPool const&) = delete;
  ThreadPool& operator=(ThreadPool const&) = delete;
  ~ThreadPool() override;

  void post(Task task) override;
  void post_at(Clock::time_point when, Task task) override;
  [[nodiscard]] std::size_t concurrency() const noexcept override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace earmark
