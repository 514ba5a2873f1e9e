// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// A clock that stands still until a test moves it, so that tests about time neither sleep nor depend on the machine:
//
//   testing::ManualClock clock;
//   clock.advance(std::chrono::seconds(3));
//
// Thread safety: all functions may be called from any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <vector>

#include "earmark/core/clock.hpp"
#include "earmark/core/thread_annotations.hpp"

namespace earmark::testing {

class ManualClock final : public Clock {
 public:
  // Starts at the epoch of the clock.
  ManualClock() = default;

  [[nodiscard]] time_point now() const noexcept override;
  void wait_until(ConditionVariable& condition, Mutex& mutex, time_point when) const override EARMARK_REQUIRES(mutex);
  // Moves time on, and wakes those whose time has come. Requires: `step` is not negative; the caller holds no mutex
  // that anyone waits with.
  void advance(duration step);
  // How many threads wait for a time that has not come.
  [[nodiscard]] std::size_t waiting() const;

 private:
  struct Sleeper {
    ConditionVariable* condition;
    Mutex* mutex;
    time_point when;
  };

  std::atomic<duration::rep> since_epoch_{0};
  mutable Mutex mutex_;
  mutable std::vector<Sleeper> sleepers_ EARMARK_GUARDED_BY(mutex_);
};

}  // namespace earmark::testing
