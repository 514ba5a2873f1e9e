// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/testing/manual_clock.hpp"

#include <algorithm>
#include <cassert>
#include <thread>

namespace earmark::testing {

Clock::time_point ManualClock::now() const noexcept { return time_point(duration(since_epoch_.load())); }

void ManualClock::wait_until(ConditionVariable& condition, Mutex& mutex, time_point when) const {
  {
    MutexLock lock{mutex_};
    if (now() >= when) { return; }  // `advance` sees the sleeper, or the sleeper sees the new time
    sleepers_.push_back({&condition, &mutex, when});
  }
  condition.wait(mutex);
  MutexLock lock{mutex_};
  auto const mine = std::find_if(sleepers_.begin(), sleepers_.end(),
                                 [&](Sleeper const& s) { return s.condition == &condition && s.when == when; });
  sleepers_.erase(mine);
}

void ManualClock::advance(duration step) {
  assert(step >= duration::zero());
  // A sleeper may be between its entry here and its wait, so it is woken until it has seen the time. It stays listed
  // until it left its wait, so what is notified exists.
  for (bool first = true;; first = false) {
    bool all_awake = true;
    {
      MutexLock lock{mutex_};
      if (first) { since_epoch_.fetch_add(step.count()); }
      for (Sleeper const& sleeper : sleepers_) {
        if (sleeper.when > now()) { continue; }
        sleeper.condition->notify_all();
        all_awake = false;
      }
    }
    if (all_awake) { return; }
    std::this_thread::yield();
  }
}

std::size_t ManualClock::waiting() const {
  MutexLock lock{mutex_};
  return static_cast<std::size_t>(
      std::count_if(sleepers_.begin(), sleepers_.end(), [this](Sleeper const& s) { return s.when > now(); }));
}

}  // namespace earmark::testing
