// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Preallocated reservations of device memory: in which order streams come to their pieces.
#include <gtest/gtest.h>

#include <stdexcept>

#include "earmark/testing/manual_stream_events.hpp"
#include "memory/preallocated.hpp"

namespace earmark {
namespace {

using testing::ManualStreamEvents;

TEST(PreallocatedDeviceMemory, NeedsToKnowOfStreams) {
  WatchedDevice device{8192};
  EXPECT_THROW((void)device.adaptor.reserve(1024, preallocated), std::invalid_argument);
  EXPECT_THROW((void)device.adaptor.try_reserve(1024, preallocated), std::invalid_argument);
  EXPECT_THROW(device.adaptor.async_reserve(1024, [](auto) {}, preallocated), std::invalid_argument);
  EXPECT_EQ(device.adaptor.committed(), 0);
}

class PreallocatedOnStreams : public ::testing::Test {
 protected:
  ~PreallocatedOnStreams() override {
    EXPECT_EQ(device.adaptor.committed(), 0);
    EXPECT_EQ(device.faults.live_bytes(), 0);
    EXPECT_EQ(events.misuses(), 0);
    EXPECT_EQ(events.marks(), 0) << "marks are given back";
  }

  ManualStreamEvents events;
  WatchedDevice device{8192, {.events = &events}};
  cuda::stream_ref a{ManualStreamEvents::stream(1)};
  cuda::stream_ref b{ManualStreamEvents::stream(2)};
};

TEST_F(PreallocatedOnStreams, HandsMemoryFromStreamToStreamOnlyBehindAMark) {
  MemoryReservation const arena = device.adaptor.reserve(512, preallocated);
  auto resource = arena.resource();
  void* const first = resource.allocate(a, 512, 256);
  auto const use = events.enqueue(a);
  resource.deallocate(a, first, 512, 256);
  EXPECT_FALSE(events.is_behind(b, use));
  void* const second = resource.allocate(b, 512, 256);
  EXPECT_EQ(first, second);
  EXPECT_TRUE(events.is_behind(b, use));
  resource.deallocate(b, second, 512, 256);
}

TEST_F(PreallocatedOnStreams, ReusesMemoryOfOneStreamWithoutMarks) {
  MemoryReservation const arena = device.adaptor.reserve(512, preallocated);
  auto resource = arena.resource();
  std::int64_t const before = events.waits();
  for (int i = 0; i < 10; ++i) { resource.deallocate(a, resource.allocate(a, 512, 256), 512, 256); }
  EXPECT_LE(events.waits(), before + 1) << "once at most, behind the stream that the block came from";
}

TEST_F(PreallocatedOnStreams, GivesTheBlockBackBehindAllThatUsedIt) {
  MemoryReservation arena = device.adaptor.reserve(1024, preallocated);
  auto resource = arena.resource();
  void* const first = resource.allocate(a, 256, 256);
  void* const second = resource.allocate(b, 256, 256);
  auto const by_a = events.enqueue(a);
  auto const by_b = events.enqueue(b);
  resource.deallocate(a, first, 256, 256);
  arena.close();
  resource.deallocate(b, second, 256, 256);
  // It went back on the default stream.
  EXPECT_TRUE(events.is_behind(default_stream(), by_a) || events.is_done(by_a));
  EXPECT_TRUE(events.is_behind(default_stream(), by_b) || events.is_done(by_b));
}

TEST_F(PreallocatedOnStreams, ForgetsAStreamBeforeItIsDestroyed) {
  MemoryReservation const arena = device.adaptor.reserve(512, preallocated);
  auto resource = arena.resource();
  void* const first = resource.allocate(a, 512, 256);
  auto const use = events.enqueue(a);
  resource.deallocate(a, first, 512, 256);
  resource.forget_stream(a);
  events.destroy(a);
  void* const second = resource.allocate(b, 512, 256);
  EXPECT_TRUE(events.is_behind(b, use));
  resource.deallocate(b, second, 512, 256);
  MemoryReservation const plain = device.adaptor.reserve(256);
  plain.resource().forget_stream(b);
}

TEST_F(PreallocatedOnStreams, LosesNoBytesWhenAMarkCannotBeMadeOrWaitedFor) {
  MemoryReservation const arena = device.adaptor.reserve(512, preallocated);
  auto resource = arena.resource();
  void* const first = resource.allocate(a, 512, 256);
  resource.deallocate(a, first, 512, 256);
  events.fail_records(1);
  events.fail_waits(1);
  for (int i = 0; i < 3; ++i) {
    try {
      resource.deallocate(b, resource.allocate(b, 512, 256), 512, 256);
    }
    catch (std::runtime_error const&) {
      EXPECT_EQ(arena.balance(), 512);
    }
  }
  events.fail_records(0);
  events.fail_waits(0);
  resource.deallocate(b, resource.allocate(b, 512, 256), 512, 256);
  EXPECT_EQ(arena.balance(), 512);
}

// An upstream that is out of memory is asked once more when frees are pending, and only then.
TEST_F(PreallocatedOnStreams, WaitForPendingFreesBeforeTheUpstreamsRefusalIsBelieved) {
  MemoryReservation const plain = device.adaptor.reserve(1024);
  auto resource = plain.resource();
  device.faults.fail_allocation(0, testing::Fails::Once);
  EXPECT_THROW((void)resource.allocate(a, 256, 256), UpstreamOutOfMemory) << "nothing is pending";
  EXPECT_EQ(events.synchronizations(), 0);
  resource.deallocate(a, resource.allocate(a, 256, 256), 256, 256);
  device.faults.fail_allocation(0, testing::Fails::Once);
  MemoryReservation const arena = device.adaptor.reserve(512, preallocated);
  EXPECT_EQ(events.synchronizations(), 1);
  EXPECT_EQ(arena.balance(), 512);
}

}  // namespace
}  // namespace earmark
