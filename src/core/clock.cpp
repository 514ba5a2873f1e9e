// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/core/clock.hpp"

namespace earmark {

Clock::time_point SteadyClock::now() const noexcept { return std::chrono::steady_clock::now(); }

void SteadyClock::wait_until(ConditionVariable& condition, Mutex& mutex, time_point when) const {
  condition.wait_until(mutex, when);
}

}  // namespace earmark
