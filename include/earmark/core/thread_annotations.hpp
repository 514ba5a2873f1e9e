// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Lock annotations that clang checks (-Wthread-safety) and a mutex that carries them. Every mutex in the project is an
// `earmark::Mutex`; every member that it guards says so:
//
//   mutable Mutex mutex_;
//   std::deque<Task> queue_ EARMARK_GUARDED_BY(mutex_);
//
// Thread safety: that is what this is for. See clang's "Thread Safety Analysis" manual for the attributes.
#pragma once

#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define EARMARK_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define EARMARK_THREAD_ATTRIBUTE(x)
#endif

#define EARMARK_CAPABILITY(name) EARMARK_THREAD_ATTRIBUTE(capability(name))
#define EARMARK_SCOPED_CAPABILITY EARMARK_THREAD_ATTRIBUTE(scoped_lockable)
#define EARMARK_GUARDED_BY(mutex) EARMARK_THREAD_ATTRIBUTE(guarded_by(mutex))
#define EARMARK_PT_GUARDED_BY(mutex) EARMARK_THREAD_ATTRIBUTE(pt_guarded_by(mutex))
#define EARMARK_REQUIRES(...) EARMARK_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define EARMARK_EXCLUDES(...) EARMARK_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))
#define EARMARK_ACQUIRE(...) EARMARK_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define EARMARK_RELEASE(...) EARMARK_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
// For a function whose lock is held by whoever calls it through a template, where the analysis cannot see it.
#define EARMARK_NO_THREAD_SAFETY_ANALYSIS EARMARK_THREAD_ATTRIBUTE(no_thread_safety_analysis)
#define EARMARK_TRY_ACQUIRE(...) EARMARK_THREAD_ATTRIBUTE(try_acquire_capability(__VA_ARGS__))

namespace earmark {

class EARMARK_CAPABILITY("mutex") Mutex {
 public:
  void lock() EARMARK_ACQUIRE() { mutex_.lock(); }
  void unlock() EARMARK_RELEASE() { mutex_.unlock(); }
  bool try_lock() EARMARK_TRY_ACQUIRE(true) { return mutex_.try_lock(); }

 private:
  std::mutex mutex_;
};

// Holds a mutex for a scope. Of any type with lock and unlock, so that templates can be given an instrumented one.
template <class M>
class EARMARK_SCOPED_CAPABILITY BasicMutexLock {
 public:
  explicit BasicMutexLock(M& mutex) EARMARK_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~BasicMutexLock() EARMARK_RELEASE() { mutex_.unlock(); }
  BasicMutexLock(BasicMutexLock const&) = delete;
  BasicMutexLock& operator=(BasicMutexLock const&) = delete;

 private:
  M& mutex_;
};
using MutexLock = BasicMutexLock<Mutex>;

// A condition variable that waits on an `earmark::Mutex`.
class ConditionVariable {
 public:
  void wait(Mutex& mutex) EARMARK_REQUIRES(mutex) { condition_.wait(mutex); }
  template <class TimePoint>
  std::cv_status wait_until(Mutex& mutex, TimePoint when) EARMARK_REQUIRES(mutex) {
    return condition_.wait_until(mutex, when);
  }
  void notify_one() noexcept { condition_.notify_one(); }
  void notify_all() noexcept { condition_.notify_all(); }

 private:
  std::condition_variable_any condition_;
};

}  // namespace earmark
