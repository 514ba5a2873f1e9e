// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/core/executor.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>

#include "earmark/core/thread_annotations.hpp"

namespace earmark {
namespace {

using Body = std::function<void(std::size_t, std::size_t)>;

// One parallel loop. Shared by the caller and its posted tasks, because a task may start after the call has returned;
// it then finds the loop closed and never touches `body_`, which is the caller's.
class Loop {
 public:
  Loop(std::size_t count, Body const& body) : count_(count), body_(body) {}

  // Runs indices as `worker` unless the loop has ended.
  void join(std::size_t worker) EARMARK_EXCLUDES(mutex_) {
    if (!enter()) { return; }
    run(worker);
    leave();
  }

  // Runs indices until none is left.
  void run(std::size_t worker) EARMARK_EXCLUDES(mutex_) {
    try {
      for (auto index = next_.fetch_add(1); index < count_; index = next_.fetch_add(1)) { body_(worker, index); }
    }
    catch (...) {
      fail(std::current_exception());
    }
  }

  // Keeps the first error and hands out no further index.
  void fail(std::exception_ptr error) EARMARK_EXCLUDES(mutex_) {
    next_.store(count_);
    MutexLock const lock(mutex_);
    if (!error_) { error_ = std::move(error); }
  }

  // Lets nobody in any more. Blocks until all who are in have left. Throws: the first error.
  void close() EARMARK_EXCLUDES(mutex_) {
    std::exception_ptr error;
    {
      MutexLock const lock(mutex_);
      closed_ = true;
      while (inside_ > 0) { all_left_.wait(mutex_); }
      error = std::move(error_);
    }
    if (error) { std::rethrow_exception(error); }
  }

 private:
  bool enter() EARMARK_EXCLUDES(mutex_) {
    MutexLock const lock(mutex_);
    if (closed_) { return false; }
    ++inside_;
    return true;
  }

  void leave() EARMARK_EXCLUDES(mutex_) {
    MutexLock const lock(mutex_);
    if (--inside_ == 0) { all_left_.notify_all(); }
  }

  std::size_t const count_;
  Body const& body_;
  std::atomic<std::size_t> next_{0};
  Mutex mutex_;
  ConditionVariable all_left_;
  std::size_t inside_ EARMARK_GUARDED_BY(mutex_){0};
  bool closed_ EARMARK_GUARDED_BY(mutex_){false};
  std::exception_ptr error_ EARMARK_GUARDED_BY(mutex_);
};

}  // namespace

void parallel_for(Executor& executor, std::size_t workers, std::size_t count, Body const& body) {
  if (count == 0) { return; }
  auto const loop = std::make_shared<Loop>(count, body);
  try {
    for (std::size_t worker = 1; worker < std::min(workers, count); ++worker) {
      executor.post([loop, worker] { loop->join(worker); });
    }
  }
  catch (...) {
    loop->fail(std::current_exception());
  }  // those already posted may be at work: close below
  loop->run(0);
  loop->close();
}

}  // namespace earmark
