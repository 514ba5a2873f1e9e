// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// What the tests of preallocated reservations stand on: a watched adaptor that must end as empty as it began.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>

#include "memory/watched_adaptor.hpp"

namespace earmark {

inline ReservationOptions const preallocated{.label = "arena", .backing = Backing::Preallocated};
inline ReservationOptions const with_fallback{
    .label = "arena", .backing = Backing::Preallocated, .fallback = FallbackPolicy::Upstream};

class Preallocated : public ::testing::Test {
 protected:
  ~Preallocated() override {
    EXPECT_EQ(host.adaptor.committed(), 0);
    EXPECT_EQ(host.faults.live_bytes(), 0);
    EXPECT_EQ(host.faults.wrong_deallocations(), 0);
  }
  static void* take(HostMemoryReservation const& from, std::size_t bytes) {
    return from.resource().allocate_sync(bytes, 64);
  }
  static void free(HostMemoryReservation const& to, void* pointer, std::size_t bytes) {
    to.resource().deallocate_sync(pointer, bytes, 64);
  }

  WatchedHost host{8192};
  HostReservationAwareResourceAdaptor& adaptor{host.adaptor};
};

}  // namespace earmark
