// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/memory/reservation_aware_resource_adaptor.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <rmm/device_buffer.hpp>
#include <stdexcept>
#include <utility>
#include <vector>

#include "memory/watched_adaptor.hpp"

namespace earmark {
namespace {

TEST(ReservationAwareResourceAdaptor, R1_WrapsAnyResourceAndTracksItsAllocations) {
  WatchedDevice device{1_MiB};
  MemoryReservation reservation = device.adaptor.reserve(4_KiB);
  {
    rmm::device_buffer const a{1024, default_stream(), reservation};
    rmm::device_buffer const b{100, default_stream(), reservation};
    EXPECT_EQ(device.adaptor.current_allocated(), 1024 + 256);
    EXPECT_EQ(device.adaptor.allocation_count(), 2);
  }
  rmm::device_buffer const c{512, default_stream(), reservation};
  EXPECT_EQ(device.adaptor.limit(), 1 << 20);
  EXPECT_EQ(device.adaptor.current_allocated(), 512);
  EXPECT_EQ(device.adaptor.peak_allocated(), 1280);
  EXPECT_EQ(device.adaptor.total_allocated(), 1280 + 512);
  EXPECT_EQ(device.adaptor.allocation_count(), 3);
  EXPECT_EQ(device.adaptor.total_reserved(), 4096);
  EXPECT_EQ(device.adaptor.memory_type(), MemoryType::Device);
}

TEST(ReservationAwareResourceAdaptor, R1_KeepsItsTotalsWhenReservationsAreGone) {
  WatchedDevice device{1_MiB};
  for (int i = 0; i < 3; ++i) {
    MemoryReservation const reservation = device.adaptor.reserve(1_KiB);
    rmm::device_buffer const buffer{1024, default_stream(), reservation};
  }
  EXPECT_EQ(device.adaptor.total_allocated(), 3072);
  EXPECT_EQ(device.adaptor.allocation_count(), 3);
  EXPECT_EQ(device.adaptor.peak_allocated(), 1024);
  EXPECT_EQ(device.adaptor.peak_committed(), 1024);
  EXPECT_EQ(device.adaptor.current_allocated(), 0);
}

TEST(ReservationAwareResourceAdaptor, R1_KnowsThePeakOverAllReservationsExactlyIfAskedTo) {
  WatchedDevice device{1_MiB, {.tracking = Tracking::Exact}};
  MemoryReservation first = device.adaptor.reserve(4_KiB);
  MemoryReservation second = device.adaptor.reserve(4_KiB);
  {
    rmm::device_buffer const a{1024, default_stream(), first};
    rmm::device_buffer const b{2048, default_stream(), second};
  }
  rmm::device_buffer const c{512, default_stream(), first};
  EXPECT_EQ(device.adaptor.peak_allocated(), 3072);
  EXPECT_EQ(device.adaptor.current_allocated(), 512);
}

TEST(ReservationAwareResourceAdaptor, CountsAllocationsThatAreTooLargeForItsCompactCounters) {
  // A resource that only pretends: nothing touches the bytes.
  struct Pretender : HostMemoryResource {
    void* allocate_sync(std::size_t, std::size_t) { return this; }
    void deallocate_sync(void*, std::size_t, std::size_t) noexcept {}
    void* allocate(cuda::stream_ref, std::size_t, std::size_t) { return this; }
    void deallocate(cuda::stream_ref, void*, std::size_t, std::size_t) noexcept {}
    bool operator==(Pretender const&) const { return true; }
  };
  HostReservationAwareResourceAdaptor adaptor{Pretender{}, SIZE_MAX};
  HostMemoryReservation reservation = adaptor.reserve(std::size_t{1} << 59);
  auto resource = reservation.resource();
  std::size_t const huge = std::size_t{1} << 50;
  std::size_t const large = std::size_t{1} << 37;  // just below what the compact counter takes
  for (int i = 0; i < 1000; ++i) { resource.deallocate_sync(resource.allocate_sync(large, 64), large, 64); }
  resource.deallocate_sync(resource.allocate_sync(huge, 64), huge, 64);
  EXPECT_EQ(adaptor.allocation_count(), 1001);
  EXPECT_EQ(adaptor.total_allocated(), static_cast<std::int64_t>(1000 * large + huge));
  EXPECT_EQ(reservation.peak_spent(), static_cast<std::int64_t>(huge));
}

TEST(ReservationAwareResourceAdaptor, R5_ClaimsReservedBytesUpFrontAndKeepsNothingOfARefusedRequest) {
  WatchedDevice device{4_KiB};
  MemoryReservation const held = device.adaptor.reserve(3_KiB);
  EXPECT_EQ(device.adaptor.total_reserved(), 3072);
  EXPECT_EQ(device.adaptor.committed(), 3072);
  EXPECT_THROW((void)device.adaptor.reserve(2_KiB), ReservationRefused);
  EXPECT_EQ(device.adaptor.try_reserve(2_KiB), std::nullopt);
  EXPECT_EQ(device.adaptor.committed(), 3072);
  EXPECT_EQ(device.adaptor.peak_committed(), 3072);
  EXPECT_EQ(device.faults.allocations(), 0);
}

TEST(ReservationAwareResourceAdaptor, R5_ChangesItsLimitAtRunTime) {
  WatchedDevice device{4_KiB};
  MemoryReservation held = device.adaptor.reserve(3_KiB);
  device.adaptor.set_limit(1_KiB);
  EXPECT_EQ(device.adaptor.limit(), 1024);
  EXPECT_EQ(device.adaptor.available(), -2048);
  EXPECT_EQ(held.balance(), 3072) << "nothing is taken back";
  EXPECT_EQ(device.adaptor.try_reserve(1), std::nullopt);
  held.close();
  EXPECT_EQ(device.adaptor.available(), 1024);
  EXPECT_THROW((void)device.adaptor.reserve(2_KiB), ImpossibleRequest);
  device.adaptor.set_limit(2_KiB);
  EXPECT_TRUE(device.adaptor.try_reserve(2_KiB).has_value());
}

TEST(ReservationAwareResourceAdaptor, R6_IsReachableFromAReservationAndFromItsResource) {
  WatchedDevice device{1_MiB};
  MemoryReservation const first = device.adaptor.reserve(1_KiB);
  MemoryReservation const second = first.adaptor().reserve(1_KiB);
  MemoryReservation const third = second.resource().adaptor().reserve(1_KiB);
  EXPECT_TRUE(third.adaptor() == device.adaptor);
  EXPECT_EQ(device.adaptor.committed(), 3072);
}

TEST(ReservationAwareResourceAdaptor, R6_NestsOnAReservationAndNeverExceedsIt) {
  WatchedDevice device{1_MiB};
  MemoryReservation query = device.adaptor.reserve(4_KiB);
  {
    ReservationAwareResourceAdaptor operation{query, 1_MiB};
    MemoryReservation task = operation.reserve(3_KiB);
    EXPECT_EQ(query.balance(), 1024);
    EXPECT_EQ(operation.committed(), 3072);
    EXPECT_EQ(operation.try_reserve(2_KiB), std::nullopt) << "the query has not got it, whatever the quota says";
    EXPECT_EQ(operation.committed(), 3072);
    EXPECT_EQ(operation.peak_committed(), 3072) << "what was undone was never committed";
    rmm::device_buffer const buffer{1024, default_stream(), task};
    task.close();
    EXPECT_EQ(query.balance(), 3072);
    EXPECT_EQ(operation.committed(), 1024);
    EXPECT_EQ(device.adaptor.committed(), 4096);
  }
  EXPECT_EQ(query.balance(), 4096);
}

TEST(ReservationAwareResourceAdaptor, R6_NestsOnTheResourceOfAReservationToo) {
  WatchedDevice device{1_MiB};
  MemoryReservation query = device.adaptor.reserve(4_KiB);
  ReservationAwareResourceAdaptor operation{query.resource(), 2_KiB};
  EXPECT_EQ(operation.try_reserve(3_KiB), std::nullopt) << "a quota bounds it as well";
  MemoryReservation task = operation.reserve_up_to(3_KiB, 1);
  EXPECT_EQ(task.granted(), 2048);
  ReservationAwareResourceAdaptor inner{task, 1_KiB};
  rmm::device_buffer const buffer{512, default_stream(), inner.reserve(512)};
  EXPECT_EQ(task.balance(), 2048 - 512);
}

TEST(ReservationAwareResourceAdaptor, SettlesNestedReservationsWhenTheLenderClosesFirst) {
  WatchedDevice device{1_MiB};
  rmm::device_buffer buffer;
  {
    MemoryReservation query = device.adaptor.reserve(4_KiB);
    ReservationAwareResourceAdaptor operation{query, 4_KiB};
    MemoryReservation const task = operation.reserve(2_KiB);
    query.close();
    EXPECT_EQ(device.adaptor.committed(), 2048);
    EXPECT_THROW((void)operation.reserve(256), ReservationRefused) << "the lender is closed";
    buffer = rmm::device_buffer{1024, default_stream(), task};
  }
  EXPECT_EQ(device.adaptor.committed(), 1024);
  buffer = rmm::device_buffer{};
  EXPECT_EQ(device.adaptor.committed(), 0);
  EXPECT_TRUE(device.adaptor.outstanding().empty());
}

TEST(ReservationAwareResourceAdaptor, LetsANestedOneOverbookAllTheWayUp) {
  WatchedDevice device{2_KiB};
  MemoryReservation query = device.adaptor.reserve(2_KiB);
  ReservationAwareResourceAdaptor operation{query, 1_KiB};
  {
    MemoryReservation const task = operation.reserve(4_KiB, AllowOverbooking::YES);
    EXPECT_EQ(task.overbooking().tier_deficit, 3072);
    EXPECT_EQ(device.adaptor.available(), -2048);
    EXPECT_EQ(query.balance(), 0);
  }
  EXPECT_EQ(query.balance(), 4096);
  EXPECT_EQ(query.shrink_to_fit(), 4096);
  EXPECT_EQ(device.adaptor.committed(), 0);
}

TEST(ReservationAwareResourceAdaptor, StacksOnAnotherAdaptorAsOnAnyResource) {
  WatchedDevice device{4_KiB};
  ReservationAwareResourceAdaptor upper{device.adaptor, 1_MiB};
  MemoryReservation reservation = upper.reserve(8_KiB);
  rmm::device_buffer const a{4096, default_stream(), reservation};
  EXPECT_EQ(device.adaptor.committed(), 4096);
  EXPECT_THROW((rmm::device_buffer{256, default_stream(), reservation}), UpstreamOutOfMemory);
  EXPECT_EQ(reservation.balance(), 4096);
}

TEST(ReservationAwareResourceAdaptor, ReservesWhatThereIsButNotLessThanAsked) {
  WatchedDevice device{4_KiB + 100};
  MemoryReservation const most = device.adaptor.reserve_up_to(1_MiB, 1_KiB);
  EXPECT_EQ(most.granted(), 4096) << "whole granules only";
  EXPECT_THROW((void)device.adaptor.reserve_up_to(1_MiB, 1), ReservationRefused);
  EXPECT_THROW((void)device.adaptor.reserve_up_to(1_MiB, 1_MiB), ImpossibleRequest);
  EXPECT_EQ(device.adaptor.reserve_up_to(SIZE_MAX, 0).granted(), 0);
  EXPECT_EQ(device.adaptor.committed(), 4096);
}

TEST(ReservationAwareResourceAdaptor, RefusesSizesThatOverflowWithCountersUnchanged) {
  WatchedDevice device{SIZE_MAX};
  EXPECT_EQ(device.adaptor.limit(), Budget::max_bytes);
  for (std::size_t bytes : {SIZE_MAX, SIZE_MAX - 255, SIZE_MAX - 512, std::size_t{1} << 63, std::size_t{1} << 60}) {
    EXPECT_THROW((void)device.adaptor.reserve(bytes), ImpossibleRequest) << bytes;
    EXPECT_THROW((void)device.adaptor.reserve(bytes, AllowOverbooking::YES), ImpossibleRequest) << bytes;
    EXPECT_EQ(device.adaptor.try_reserve(bytes), std::nullopt) << bytes;
    EXPECT_THROW((void)device.adaptor.reserve_up_to(bytes, bytes), ImpossibleRequest) << bytes;
    EXPECT_THROW((void)device.adaptor.allocate_sync(bytes), ReservationExhausted) << bytes;
    EXPECT_EQ(device.adaptor.charge(bytes), -1);
  }
  EXPECT_EQ(device.adaptor.committed(), 0);
  EXPECT_EQ(device.adaptor.peak_committed(), 0);
}

TEST(ReservationAwareResourceAdaptor, BoundsAllocationsWithoutAReservation) {
  WatchedDevice device{1_KiB};
  {
    rmm::device_buffer const a{512, default_stream(), device.adaptor};
    EXPECT_EQ(device.adaptor.committed(), 512);
    EXPECT_EQ(device.adaptor.current_allocated(), 512);
    EXPECT_THROW((rmm::device_buffer{1024, default_stream(), device.adaptor}), ReservationExhausted);
    EXPECT_EQ(device.adaptor.try_reserve(1_KiB), std::nullopt);
  }
  device.faults.fail_allocation(0, testing::Fails::Once);
  EXPECT_THROW((rmm::device_buffer{512, default_stream(), device.adaptor}), UpstreamOutOfMemory);
  EXPECT_EQ(device.adaptor.committed(), 0);
  EXPECT_EQ(device.adaptor.allocation_count(), 1);
}

TEST(ReservationAwareResourceAdaptor, CanForbidAllocationsWithoutAReservation) {
  WatchedDevice device{1_KiB, {.unreserved = UnreservedPolicy::Forbid}};
  EXPECT_THROW((rmm::device_buffer{256, default_stream(), device.adaptor}), ReservationExhausted);
  EXPECT_EQ(device.faults.allocations(), 0);
}

TEST(ReservationAwareResourceAdaptor, CanCountAllocationsWithoutAReservationOnly) {
  WatchedDevice device{1_KiB, {.unreserved = UnreservedPolicy::Unbounded}};
  rmm::device_buffer const a{4096, default_stream(), device.adaptor};
  EXPECT_EQ(device.adaptor.committed(), 4096);
  EXPECT_EQ(device.adaptor.available(), 1024 - 4096);
}

TEST(ReservationAwareResourceAdaptor, ChargesByTheKindOfMemoryOrAsAsked) {
  EXPECT_EQ(WatchedDevice{1_MiB}.adaptor.charge(1), 256);
  EXPECT_EQ(WatchedHost{1_MiB}.adaptor.charge(1), 64);
  PinnedReservationAwareResourceAdaptor const pinned{testing::HostBackedDeviceResource{}, 1_MiB};
  EXPECT_EQ(pinned.charge(1), 64);
  EXPECT_EQ(pinned.memory_type(), MemoryType::Pinned);
  ReservationAwareResourceAdaptor const coarse{testing::HostBackedDeviceResource{}, 1_MiB, 4096};
  EXPECT_EQ(coarse.charge(1), 4096);
  EXPECT_EQ(coarse.charge(0), 0);
  EXPECT_THROW((HostReservationAwareResourceAdaptor{HostMemoryResource{}, 1_MiB, 100}), std::invalid_argument);
}

TEST(ReservationAwareResourceAdaptor, ServesPinnedMemoryToHostAndDeviceAlike) {
  PinnedReservationAwareResourceAdaptor adaptor{testing::HostBackedDeviceResource{}, 1_MiB};
  PinnedMemoryReservation reservation = adaptor.reserve(1_KiB);
  rmm::device_buffer const buffer{256, default_stream(), reservation};
  cuda::mr::resource_ref<host_accessible> host = reservation;
  cuda::mr::resource_ref<device_accessible> device = reservation;
  void* const pointer = host.allocate(default_stream(), 256, 256);
  device.deallocate(default_stream(), pointer, 256, 256);
  EXPECT_EQ(reservation.balance(), 768);
}

TEST(ReservationAwareResourceAdaptor, ReusesControlBlocksSoThatReservingInALoopDoesNotGrow) {
  WatchedDevice device{1_MiB};
  std::vector<MemoryReservation> many;
  for (int i = 0; i < 1000; ++i) { many.push_back(device.adaptor.reserve(256)); }
  EXPECT_EQ(device.adaptor.snapshot().open_reservations, 1000);
  EXPECT_EQ(device.adaptor.outstanding().size(), 1000U);
  many.clear();
  EXPECT_EQ(device.adaptor.snapshot().open_reservations, 0);
  EXPECT_EQ(device.adaptor.committed(), 0);
}

TEST(ReservationAwareResourceAdaptor, OutlivesItsCopiesAndStaysEqualToThem) {
  std::optional<ReservationAwareResourceAdaptor> first;
  first.emplace(testing::HostBackedDeviceResource{}, 1_MiB);
  ReservationAwareResourceAdaptor const copy = *first;
  EXPECT_TRUE(copy == *first);
  ReservationAwareResourceAdaptor moved = std::move(*first);
  first.reset();
  MemoryReservation const reservation = moved.reserve(1_KiB);
  EXPECT_EQ(copy.committed(), 1024);
}

}  // namespace
}  // namespace earmark
