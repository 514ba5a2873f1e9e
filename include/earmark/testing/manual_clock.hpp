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

#include "earmark/core/clock.hpp"

namespace earmark::testing {

class ManualClock final : public Clock {
 public:
  // Starts at the epoch of the clock.
  ManualClock() = default;

  [[nodiscard]] time_point now() const noexcept override;
  // Moves time on. Requires: `step` is not negative.
  void advance(duration step) noexcept;

 private:
  std::atomic<duration::rep> since_epoch_{0};
};

}  // namespace earmark::testing
