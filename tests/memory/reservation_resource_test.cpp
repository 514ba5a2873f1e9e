// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/memory/reservation_resource.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cuda/memory_resource>
#include <limits>
#include <optional>
#include <utility>

#include "memory/watched_adaptor.hpp"

namespace earmark {
namespace {

using Resource = MemoryReservation::Resource;
using Any = cuda::mr::any_resource<device_accessible>;

static_assert(std::is_copy_constructible_v<Resource> && std::is_copy_assignable_v<Resource>);
static_assert(!std::is_default_constructible_v<Resource>);

TEST(ReservationResource, IsEqualToCopiesAndToNoOther) {
  WatchedDevice device{1_MiB};
  MemoryReservation const first = device.adaptor.reserve(1_KiB);
  MemoryReservation const second = device.adaptor.reserve(1_KiB);
  Resource const resource = first.resource();
  Resource const copy = resource;
  EXPECT_TRUE(copy == first.resource());
  EXPECT_FALSE(copy == second.resource());
  EXPECT_TRUE(Any{copy} == Any{resource});
  EXPECT_FALSE(Any{copy} == Any{second.resource()});
}

TEST(ReservationResource, AllocatesAndFreesInStreamOrderAndSynchronously) {
  WatchedDevice device{1_MiB};
  MemoryReservation const reservation = device.adaptor.reserve(1_KiB);
  Resource resource = reservation.resource();
  void* const ordered = resource.allocate(default_stream(), 256, 256);
  void* const synchronous = resource.allocate_sync(256, 256);
  EXPECT_EQ(resource.balance(), 512);
  resource.deallocate(default_stream(), ordered, 256, 256);
  resource.deallocate_sync(synchronous, 256, 256);
  EXPECT_EQ(resource.balance(), 1024);
  EXPECT_EQ(device.faults.wrong_deallocations(), 0);
}

TEST(ReservationResource, OutlivesItsReservationThroughAnOwningCopy) {
  WatchedDevice device{1_MiB};
  std::optional<Any> kept;
  void* pointer = nullptr;
  {
    MemoryReservation const reservation = device.adaptor.reserve(1_KiB);
    kept.emplace(reservation);
    pointer = kept->allocate_sync(256, 256);
  }
  EXPECT_EQ(device.adaptor.committed(), 256);
  EXPECT_THROW((void)kept->allocate_sync(256, 256), ReservationClosed);
  kept->deallocate_sync(pointer, 256, 256);
  EXPECT_EQ(device.adaptor.committed(), 0);
}

TEST(ReservationResource, KeepsWorkingAfterItsOwnerInAnAnyResourceWasMovedFrom) {
  WatchedDevice device{1_MiB};
  MemoryReservation const reservation = device.adaptor.reserve(1_KiB);
  Any first{reservation};
  Any second{std::move(first)};
  Any third{second};
  third = std::move(second);
  third.deallocate_sync(third.allocate_sync(256, 256), 256, 256);
  EXPECT_EQ(reservation.balance(), 1024);
}

TEST(ReservationResource, CountsOnlyAllocationsThatWereMade) {
  WatchedDevice device{1_MiB};
  MemoryReservation const reservation = device.adaptor.reserve(1_KiB, {.label = "made"});
  Resource resource = reservation.resource();
  void* const pointer = resource.allocate_sync(500, 256);
  EXPECT_THROW((void)resource.allocate_sync(1_KiB, 256), ReservationExhausted);
  EXPECT_THROW((void)resource.allocate_sync(std::numeric_limits<std::size_t>::max(), 256), ReservationExhausted);
  device.faults.fail_allocation(0, testing::Fails::Always);
  EXPECT_THROW((void)resource.allocate_sync(256, 256), UpstreamOutOfMemory) << "below the peak";
  EXPECT_THROW((void)resource.allocate(default_stream(), 512, 256), UpstreamOutOfMemory) << "above it";
  device.faults.fail_none();
  EXPECT_EQ(reservation.peak_spent(), 512);
  for (LabelCounters const& label : device.adaptor.label_counters()) {
    EXPECT_EQ(label.label, "made");
    EXPECT_EQ(label.allocation_count, 1);
    EXPECT_EQ(label.total_allocated, 512);
    EXPECT_EQ(label.live, 512);
  }
  resource.deallocate_sync(pointer, 500, 256);
}

}  // namespace
}  // namespace earmark
