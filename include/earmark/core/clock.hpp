// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Where time comes from. Everything below the roof asks a `Clock`, never the system, so that a test or the simulator
// can move time by hand. Use `SteadyClock` in programs and `testing::ManualClock` in tests.
// Thread safety: all implementations may be called from any thread.
#pragma once

#include <chrono>

#include "earmark/core/thread_annotations.hpp"

namespace earmark {

class Clock {
 public:
  using duration = std::chrono::nanoseconds;
  using time_point = std::chrono::time_point<std::chrono::steady_clock, duration>;

  virtual ~Clock() = default;
  // Returns: the present; never goes back.
  [[nodiscard]] virtual time_point now() const noexcept = 0;
  // Blocks: until `condition` is notified or `when` has come by this clock; may also return for no reason, as condition
  // variables do.
  virtual void wait_until(ConditionVariable& condition, Mutex& mutex, time_point when) const
      EARMARK_REQUIRES(mutex) = 0;
};

// The machine's monotonic clock.
class SteadyClock final : public Clock {
 public:
  [[nodiscard]] time_point now() const noexcept override;
  void wait_until(ConditionVariable& condition, Mutex& mutex, time_point when) const override EARMARK_REQUIRES(mutex);
};

}  // namespace earmark
