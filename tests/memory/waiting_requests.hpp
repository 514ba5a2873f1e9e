// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// What the tests of waiting stand on: an adaptor whose memory is all held, with a clock and an executor moved by hand.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <stop_token>
#include <string>

#include "earmark/testing/manual_clock.hpp"
#include "earmark/testing/manual_executor.hpp"
#include "memory/asked.hpp"
#include "memory/watched_adaptor.hpp"

namespace earmark {

inline constexpr std::size_t limit = 1024;

inline WaitOptions with_priority(int priority) {
  WaitOptions wait;
  wait.priority = priority;
  return wait;
}
inline WaitOptions with_delta(std::int64_t delta) {
  WaitOptions wait;
  wait.net_memory_delta = delta;
  return wait;
}
inline WaitOptions until(Clock::time_point deadline, AfterDeadline after = AfterDeadline::Refuse) {
  WaitOptions wait;
  wait.deadline = deadline;
  wait.after_deadline = after;
  return wait;
}
inline WaitOptions stopped_by(std::stop_source const& stop) {
  WaitOptions wait;
  wait.stop = stop.get_token();
  return wait;
}
inline WaitOptions on(Executor& executor, WaitOptions wait = {}) {
  wait.executor = &executor;
  return wait;
}

class WaitingRequests : public ::testing::Test {
 protected:
  ~WaitingRequests() override {
    all = {};
    EXPECT_EQ(waiting(adaptor), 0U);
    EXPECT_EQ(adaptor.pressure(), 0);
  }
  // Lets go of `bytes` of what is held.
  void release(std::size_t bytes) { (void)all.split(bytes); }
  // Asks for everything, and notes who was served when.
  void ask(char const* name, WaitOptions const& wait = {}, std::size_t bytes = limit) {
    adaptor.async_reserve(
        bytes, [this, name](ReservationResult<HostMemoryReservation> const&) { served += name; }, {}, wait);
  }

  testing::ManualClock clock;
  testing::ManualExecutor executor{clock};
  WatchedHost host{limit, {.overtakes_allowed = 3, .clock = &clock}};
  HostReservationAwareResourceAdaptor& adaptor{host.adaptor};
  HostMemoryReservation all = adaptor.reserve(limit);
  std::string served;
};

}  // namespace earmark
