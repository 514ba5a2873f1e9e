// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/core/thread_pool.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "earmark/core/thread_annotations.hpp"

namespace earmark {

struct ThreadPool::State {
  State() = default;
  State(State const&) = delete;
  State& operator=(State const&) = delete;
  // Joins before members go, also when starting a later thread failed.
  ~State() {
    {
      MutexLock const lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    for (auto& thread : threads_) { thread.join(); }
  }

  void start(std::size_t threads) {
    threads_.reserve(threads);
    for (std::size_t i = 0; i < threads; ++i) { threads_.emplace_back(&State::run, this); }
  }

  void post(Task task) EARMARK_EXCLUDES(mutex_) {
    {
      MutexLock const lock(mutex_);
      ready_.push_back(std::move(task));
    }
    changed_.notify_one();
  }

  void post_at(Clock::time_point when, Task task) EARMARK_EXCLUDES(mutex_) {
    {
      MutexLock const lock(mutex_);
      timed_.emplace(when, std::move(task));
    }
    // All, because whichever thread is idle when the time comes must know of it.
    changed_.notify_all();
  }

  [[nodiscard]] std::size_t size() const noexcept { return threads_.size(); }

 private:
  // A task that throws ends the process, as its contract says.
  void run() noexcept {
    while (auto task = take()) { (*task)(); }
  }

  // Returns: the next task, or nothing when the pool stops and none is left to run.
  std::optional<Task> take() EARMARK_EXCLUDES(mutex_) {
    MutexLock const lock(mutex_);
    for (;;) {
      make_due_tasks_ready();
      if (!ready_.empty()) {
        std::optional<Task> task(std::move(ready_.front()));
        ready_.pop_front();
        return task;
      }
      if (stopping_) { return std::nullopt; }
      if (timed_.empty()) {
        changed_.wait(mutex_);
      } else {
        changed_.wait_until(mutex_, timed_.begin()->first);
      }
    }
  }

  void make_due_tasks_ready() EARMARK_REQUIRES(mutex_) {
    if (timed_.empty()) { return; }
    auto const now = clock_.now();
    while (!timed_.empty() && timed_.begin()->first <= now) {
      ready_.push_back(std::move(timed_.begin()->second));
      timed_.erase(timed_.begin());
      if (ready_.size() > 1) { changed_.notify_one(); }  // this thread takes one, the others are for its fellows
    }
  }

  SteadyClock clock_;
  Mutex mutex_;
  ConditionVariable changed_;
  std::deque<Task> ready_ EARMARK_GUARDED_BY(mutex_);
  std::multimap<Clock::time_point, Task> timed_ EARMARK_GUARDED_BY(mutex_);  // equal times stay in order of posting
  bool stopping_ EARMARK_GUARDED_BY(mutex_){false};
  std::vector<std::thread> threads_;
};

ThreadPool::ThreadPool(std::size_t threads) : state_(std::make_unique<State>()) {
  state_->start(std::max<std::size_t>(threads, 1));
}

ThreadPool::~ThreadPool() = default;

void ThreadPool::post(Task task) { state_->post(std::move(task)); }

void ThreadPool::post_at(Clock::time_point when, Task task) { state_->post_at(when, std::move(task)); }

std::size_t ThreadPool::concurrency() const noexcept { return state_->size(); }

}  // namespace earmark
