// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// A lock for sections of some tens of nanoseconds: one read-modify-write to take, one store to give back, no system
// call. Use it where parking a thread would cost more than the section, and nothing in it blocks, allocates or calls
// out; elsewhere use a `Mutex`.
//
//   SpinLock lock_;
//   BasicMutexLock<SpinLock> guard{lock_};
//
// Thread safety: that is what it is for. Whoever finds it taken for longer lets other threads run: the holder may be
// one of them.
#pragma once

#include <atomic>
#include <thread>

#include "earmark/core/thread_annotations.hpp"

namespace earmark {

class EARMARK_CAPABILITY("mutex") SpinLock {
 public:
  void lock() noexcept EARMARK_ACQUIRE() {
    if (taken_.exchange(true, std::memory_order_acquire)) [[unlikely]] { lock_contended(); }
  }
  void unlock() noexcept EARMARK_RELEASE() { taken_.store(false, std::memory_order_release); }

 private:
  void lock_contended() noexcept {
    int looks = 0;
    do {
      // Look without writing: a write would take the line away from the holder.
      while (taken_.load(std::memory_order_relaxed)) {
        if (++looks % looks_before_yielding == 0) { std::this_thread::yield(); }
        relax();
      }
    } while (taken_.exchange(true, std::memory_order_acquire));
  }
  static void relax() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }

  static constexpr int looks_before_yielding = 64;
  std::atomic<bool> taken_{false};
};

}  // namespace earmark
