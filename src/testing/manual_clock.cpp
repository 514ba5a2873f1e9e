// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/testing/manual_clock.hpp"

#include <cassert>

namespace earmark::testing {

Clock::time_point ManualClock::now() const noexcept { return time_point(duration(since_epoch_.load())); }

void ManualClock::advance(duration step) noexcept {
  assert(step >= duration::zero());
  since_epoch_.fetch_add(step.count());
}

}  // namespace earmark::testing
