// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Reservations that were merged into others, which were merged into others, and so on: as work that hands its memory
// from step to step makes them. Neither a call for each link nor a walk along all of them for each free.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "memory/watched_adaptor.hpp"

namespace earmark {
namespace {

constexpr int links = 100'000;

struct Buffer {
  HostMemoryReservation::Resource resource;
  void* pointer;
};

class MergeChains : public ::testing::Test {
 protected:
  Buffer allocate() { return {last.resource(), last.resource().allocate_sync(64, 64)}; }
  // Hands all that the last one has to a new one.
  void hand_on() {
    HostMemoryReservation next = host.adaptor.reserve(64);
    next.merge(std::move(last));
    last = std::move(next);
  }
  static void free(Buffer& buffer) { buffer.resource.deallocate_sync(buffer.pointer, 64, 64); }

  WatchedHost host{std::size_t{64} * (links + 1)};
  HostMemoryReservation last = host.adaptor.reserve(64);
};

// Each buffer was made before another link.
TEST_F(MergeChains, TakeFreesWithoutAWalkAlongAllOfThem) {
  for (bool const oldest_first : {true, false}) {
    std::vector<Buffer> buffers;
    for (int i = 0; i < links; ++i) {
      buffers.push_back(allocate());
      hand_on();
    }
    if (!oldest_first) { std::reverse(buffers.begin(), buffers.end()); }
    for (Buffer& buffer : buffers) { free(buffer); }
    EXPECT_EQ(last.granted(), std::int64_t{64} * (links + 1));
    EXPECT_EQ(last.balance(), last.granted());
    buffers.clear();
    last = {};
    EXPECT_EQ(host.adaptor.committed(), 0);
    last = host.adaptor.reserve(64);
  }
}

TEST_F(MergeChains, GoWithoutACallForEachLink) {
  std::optional<Buffer> first = allocate();
  for (int i = 0; i < links; ++i) { hand_on(); }
  last = {};
  EXPECT_EQ(host.adaptor.committed(), 64) << "what is live";
  free(*first);
  EXPECT_EQ(host.adaptor.committed(), 0);
  first.reset();
  EXPECT_TRUE(host.adaptor.outstanding().empty());
}

}  // namespace
}  // namespace earmark
