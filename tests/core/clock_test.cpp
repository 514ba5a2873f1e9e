// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/core/clock.hpp"

#include <gtest/gtest.h>

namespace earmark {
namespace {

TEST(SteadyClock, NeverGoesBack) {
  SteadyClock const clock;
  auto last = clock.now();
  for (int i = 0; i < 1000; ++i) {
    auto const now = clock.now();
    EXPECT_GE(now, last);
    last = now;
  }
}

}  // namespace
}  // namespace earmark
