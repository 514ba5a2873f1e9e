// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/memory/memory_reservation.hpp"

#include <gtest/gtest.h>

#include <concepts>
#include <optional>
#include <rmm/device_buffer.hpp>
#include <rmm/device_uvector.hpp>
#include <rmm/mr/limiting_resource_adaptor.hpp>
#include <rmm/mr/statistics_resource_adaptor.hpp>
#include <rmm/resource_ref.hpp>
#include <thread>
#include <type_traits>
#include <utility>

#include "memory/watched_adaptor.hpp"

namespace earmark {
namespace {

using Any = cuda::mr::any_resource<device_accessible>;

// -- conversions
// -------------------------------------------------------------------------------------------------------

static_assert(std::convertible_to<MemoryReservation&, rmm::device_async_resource_ref>);
static_assert(std::convertible_to<MemoryReservation const&, rmm::device_async_resource_ref>);
static_assert(std::convertible_to<MemoryReservation&, rmm::device_resource_ref>);
static_assert(std::constructible_from<rmm::device_async_resource_ref, MemoryReservation&>);
static_assert(std::convertible_to<MemoryReservation&, Any>);
static_assert(std::convertible_to<MemoryReservation, Any>, "an owning resource may be made from a temporary");
static_assert(!std::convertible_to<MemoryReservation, rmm::device_async_resource_ref>, "it would dangle");
static_assert(!std::convertible_to<MemoryReservation const, rmm::device_async_resource_ref>);
static_assert(!std::convertible_to<MemoryReservation, rmm::device_resource_ref>);
template <class Reservation>
concept passes_as_a_temporary =
    requires(Reservation reservation, void take(rmm::device_async_resource_ref)) { take(std::move(reservation)); };
template <class Reservation>
concept passes = requires(Reservation reservation, void take(rmm::device_async_resource_ref)) { take(reservation); };
static_assert(passes<MemoryReservation> && !passes_as_a_temporary<MemoryReservation>);
static_assert(!std::convertible_to<MemoryReservation&, rmm::host_async_resource_ref>);
static_assert(!std::convertible_to<HostMemoryReservation&, rmm::device_async_resource_ref>);
static_assert(std::convertible_to<HostMemoryReservation&, rmm::host_async_resource_ref>);
static_assert(std::convertible_to<PinnedMemoryReservation&, rmm::host_async_resource_ref>);
static_assert(std::convertible_to<PinnedMemoryReservation&, rmm::device_async_resource_ref>);
static_assert(std::convertible_to<PinnedMemoryReservation&, rmm::host_device_async_resource_ref>);
static_assert(!cuda::mr::resource<MemoryReservation>, "the handle is not a resource: copies would all own");

rmm::device_buffer by_reference(std::size_t bytes, rmm::device_async_resource_ref resource) {
  return rmm::device_buffer{bytes, default_stream(), resource};
}
rmm::device_buffer by_owner(std::size_t bytes, Any resource) {
  return rmm::device_buffer{bytes, default_stream(), std::move(resource)};
}
template <class Resource>
  requires cuda::mr::resource_with<Resource, device_accessible>
void* by_concept(std::size_t bytes, Resource& resource) {
  return resource.allocate_sync(bytes, 256);
}

TEST(MemoryReservation, R2_IsAcceptedWhereverAResourceReferenceOrAnOwningResourceIs) {
  WatchedDevice device{1_MiB};
  MemoryReservation reservation = device.adaptor.reserve(4_KiB, AllowOverbooking::NO);
  rmm::device_buffer const a = by_reference(256, reservation);
  rmm::device_buffer const b = by_owner(256, reservation);
  rmm::device_buffer const c = by_owner(256, reservation.resource());
  rmm::device_uvector<int> const d{64, default_stream(), reservation};
  auto resource = reservation.resource();
  void* const e = by_concept(256, resource);
  EXPECT_EQ(reservation.balance(), 4096 - 5 * 256);
  resource.deallocate_sync(e, 256, 256);

  rmm::device_async_resource_ref const first = reservation;
  rmm::device_async_resource_ref const second{reservation};
  EXPECT_TRUE(first == second);
  EXPECT_TRUE(Any{reservation} == Any{reservation.resource()});
}

TEST(MemoryReservation, R2_ServesRmmAdaptorsStackedOnIt) {
  WatchedDevice device{1_MiB};
  MemoryReservation reservation = device.adaptor.reserve(4_KiB);
  rmm::mr::limiting_resource_adaptor limiting{reservation, 1024};
  rmm::mr::statistics_resource_adaptor statistics{reservation};
  rmm::device_buffer const a{512, default_stream(), limiting};
  rmm::device_buffer const b{512, default_stream(), statistics};
  EXPECT_EQ(reservation.balance(), 3072);
  EXPECT_EQ(statistics.get_bytes_counter().value, 512);
}

// -- drawing down
// ------------------------------------------------------------------------------------------------------

TEST(MemoryReservation, R3_RefusesAnAllocationBeyondItsBalanceBeforeTheUpstreamIsAsked) {
  WatchedDevice device{1_MiB};
  MemoryReservation reservation = device.adaptor.reserve(1_KiB);
  rmm::device_buffer const whole{1024, default_stream(), reservation};
  EXPECT_THROW((rmm::device_buffer{1, default_stream(), reservation}), rmm::out_of_memory);
  EXPECT_THROW((rmm::device_buffer{1, default_stream(), reservation}), ReservationExhausted);
  EXPECT_THROW((rmm::device_buffer{1, default_stream(), reservation}), std::bad_alloc);
  EXPECT_EQ(device.faults.allocations(), 1);
}

TEST(MemoryReservation, R4_FreedBytesReturnToItsBalance) {
  WatchedDevice device{1'000'000};
  MemoryReservation reservation = device.adaptor.reserve(2_KiB, AllowOverbooking::NO);
  {
    rmm::device_buffer const first{1024, default_stream(), reservation};
    rmm::device_buffer const second{1024, default_stream(), reservation};
    EXPECT_EQ(reservation.balance(), 0);
    EXPECT_THROW((rmm::device_buffer{1024, default_stream(), reservation}), rmm::out_of_memory);
  }
  EXPECT_EQ(reservation.balance(), 2048);
  rmm::device_buffer const both{2048, default_stream(), reservation};
  EXPECT_EQ(reservation.balance(), 0);
  EXPECT_EQ(device.adaptor.committed(), 2048);
}

TEST(MemoryReservation, ChargesByTheGranule) {
  WatchedDevice device{1_MiB};
  MemoryReservation reservation = device.adaptor.reserve(1_KiB);
  rmm::device_buffer const one{1, default_stream(), reservation};
  rmm::device_buffer const another{257, default_stream(), reservation};
  EXPECT_EQ(reservation.spent(), 256 + 512);
  EXPECT_EQ(reservation.peak_spent(), 768);
}

TEST(MemoryReservation, PassesTheAlignmentOn) {
  WatchedHost host{1_MiB};
  HostMemoryReservation reservation = host.adaptor.reserve(512_KiB);
  auto resource = reservation.resource();
  for (std::size_t alignment : {std::size_t{16}, std::size_t{64}, std::size_t{4096}, std::size_t{65536}}) {
    for (std::size_t bytes : {std::size_t{100}, std::size_t{300'000}}) {
      void* const pointer = resource.allocate_sync(bytes, alignment);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pointer) % alignment, 0U);
      resource.deallocate_sync(pointer, bytes, alignment);
    }
  }
  EXPECT_EQ(host.faults.wrong_deallocations(), 0);
}

TEST(MemoryReservation, ServesZeroBytesWithoutChargeOrUpstream) {
  WatchedDevice device{1_MiB};
  MemoryReservation reservation = device.adaptor.reserve(0);
  auto resource = reservation.resource();
  void* const nothing = resource.allocate_sync(0, 256);
  resource.deallocate_sync(nothing, 0, 256);
  rmm::device_buffer const empty{0, default_stream(), reservation};
  EXPECT_EQ(reservation.granted(), 0);
  EXPECT_EQ(device.faults.allocations(), 0);
  EXPECT_EQ(device.faults.deallocations(), 0);
  EXPECT_EQ(device.adaptor.allocation_count(), 0);
}

TEST(MemoryReservation, RefusesSizesThatOverflowAndStaysAsItWas) {
  WatchedDevice device{1_MiB};
  MemoryReservation reservation = device.adaptor.reserve(4_KiB);
  auto resource = reservation.resource();
  for (std::size_t bytes : {SIZE_MAX, SIZE_MAX - 1, SIZE_MAX - 255, SIZE_MAX - 512, std::size_t{1} << 63,
                            (std::size_t{1} << 63) - 1, std::size_t{1} << 60, (std::size_t{1} << 60) - 1}) {
    EXPECT_THROW((void)resource.allocate_sync(bytes, 256), ReservationExhausted) << bytes;
    EXPECT_THROW(reservation.grow(bytes), ImpossibleRequest) << bytes;
    EXPECT_FALSE(reservation.try_grow(bytes)) << bytes;
    EXPECT_THROW((void)reservation.split(bytes), ReservationExhausted) << bytes;
  }
  EXPECT_EQ(reservation.granted(), 4096);
  EXPECT_EQ(reservation.balance(), 4096);
  EXPECT_EQ(device.adaptor.committed(), 4096);
}

// -- closing and lifetimes
// ---------------------------------------------------------------------------------------------

TEST(MemoryReservation, R7_UnspentBytesGoBackWhenItClosesNotWhenTheLastBufferDies) {
  WatchedDevice device{1_MiB};
  MemoryReservation reservation = device.adaptor.reserve(4_KiB);
  rmm::device_buffer live{1024, default_stream(), reservation};
  reservation.close();
  EXPECT_EQ(device.adaptor.committed(), 1024);
  EXPECT_EQ(reservation.granted(), 1024);
  EXPECT_EQ(reservation.balance(), 0);
  EXPECT_EQ(reservation.spent(), 1024);
  live = rmm::device_buffer{};
  EXPECT_EQ(device.adaptor.committed(), 0);
}

TEST(MemoryReservation, R7_UnspentBytesGoBackWhenItIsDropped) {
  WatchedDevice device{1_MiB};
  rmm::device_buffer live;
  {
    MemoryReservation const reservation = device.adaptor.reserve(4_KiB);
    live = rmm::device_buffer{1024, default_stream(), reservation};
  }
  EXPECT_EQ(device.adaptor.committed(), 1024);
}

TEST(MemoryReservation, CanKeepItsBytesUntilTheLastReference) {
  WatchedDevice device{1_MiB};
  std::optional<MemoryReservation::Resource> resource;
  {
    MemoryReservation const reservation = device.adaptor.reserve(4_KiB, {.refund = RefundPolicy::AtLastReference});
    resource.emplace(reservation.resource());
  }
  EXPECT_EQ(device.adaptor.committed(), 4096);
  void* const pointer = resource->allocate_sync(1024, 256);
  resource->deallocate_sync(pointer, 1024, 256);
  resource.reset();
  EXPECT_EQ(device.adaptor.committed(), 0);
}

TEST(MemoryReservation, RefusesAllocationsOnceItIsClosed) {
  WatchedDevice device{1_MiB};
  MemoryReservation reservation = device.adaptor.reserve(4_KiB);
  auto resource = reservation.resource();
  reservation.close();
  reservation.close();
  EXPECT_THROW((void)resource.allocate_sync(256, 256), ReservationClosed);
  EXPECT_THROW(reservation.grow(256), ReservationClosed);
  EXPECT_FALSE(reservation.try_grow(256));
  EXPECT_THROW((void)reservation.split(256), ReservationClosed);
  EXPECT_EQ(reservation.shrink_to_fit(), 0);
  EXPECT_EQ(device.adaptor.committed(), 0);
}

TEST(MemoryReservation, IsOutlivedByItsBuffersAndSoIsTheAdaptor) {
  rmm::device_buffer survivor;
  testing::FaultControl faults;
  {
    ReservationAwareResourceAdaptor adaptor{testing::FaultyResource{testing::HostBackedDeviceResource{}, faults},
                                            1_MiB};
    MemoryReservation const reservation = adaptor.reserve(1_KiB);
    survivor = rmm::device_buffer{1024, default_stream(), reservation};
  }
  EXPECT_EQ(faults.live_bytes(), 1024);
  survivor = rmm::device_buffer{};
  EXPECT_EQ(faults.live_bytes(), 0);
  EXPECT_EQ(faults.wrong_deallocations(), 0);
}

TEST(MemoryReservation, CreditsAFreeOnAnotherThreadToTheRightOwner) {
  WatchedDevice device{1_MiB};
  MemoryReservation mine = device.adaptor.reserve(1_KiB);
  MemoryReservation yours = device.adaptor.reserve(1_KiB);
  rmm::device_buffer buffer{1024, default_stream(), mine};
  std::thread{[moved = std::move(buffer)]() mutable { moved = rmm::device_buffer{}; }}.join();
  EXPECT_EQ(mine.balance(), 1024);
  EXPECT_EQ(yours.balance(), 1024);
}

TEST(MemoryReservation, StaysWhereItsReferencesPointWhenTheHandleMoves) {
  WatchedDevice device{1_MiB};
  MemoryReservation first = device.adaptor.reserve(1_KiB);
  rmm::device_async_resource_ref const reference = first;
  MemoryReservation const second = std::move(first);
  EXPECT_FALSE(static_cast<bool>(first));
  rmm::device_buffer const buffer{512, default_stream(), reference};
  EXPECT_EQ(second.balance(), 512);
}

TEST(MemoryReservation, LeavesAMovedFromResourceWorking) {
  WatchedDevice device{1_MiB};
  MemoryReservation const reservation = device.adaptor.reserve(1_KiB);
  auto resource = reservation.resource();
  auto const other = std::move(resource);
  void* const pointer = resource.allocate_sync(256, 256);
  resource.deallocate_sync(pointer, 256, 256);
  EXPECT_TRUE(resource == other);
}

TEST(MemoryReservation, IsNamedAmongTheOutstandingUntilTheLastByteIsFreed) {
  WatchedDevice device{1_MiB};
  rmm::device_buffer buffer;
  {
    MemoryReservation const reservation = device.adaptor.reserve(1_KiB, {.label = "scan"});
    buffer = rmm::device_buffer{256, default_stream(), reservation};
    auto const open = device.adaptor.outstanding();
    ASSERT_EQ(open.size(), 1U);
    EXPECT_EQ(open[0].granted, 1024);
    EXPECT_EQ(open[0].live, 256);
    EXPECT_EQ(open[0].state, OutstandingReservation::State::Open);
  }
  auto const closed = device.adaptor.outstanding();
  ASSERT_EQ(closed.size(), 1U);
  EXPECT_EQ(closed[0].label, "scan");
  EXPECT_EQ(closed[0].live, 256);
  EXPECT_EQ(closed[0].state, OutstandingReservation::State::Closed);
  buffer = rmm::device_buffer{};
  EXPECT_TRUE(device.adaptor.outstanding().empty());
}

TEST(MemoryReservation, NamesALeakThatNoReferenceHoldsAnyMoreAndSettlesALateFree) {
  WatchedHost host{1_MiB};
  HostMemoryReservation reservation = host.adaptor.reserve(1_KiB, {.label = "leaky"});
  cuda::mr::resource_ref<host_accessible> const unowned = reservation;
  void* const leaked = reservation.resource().allocate_sync(256, 64);
  reservation = HostMemoryReservation{};
  auto const outstanding = host.adaptor.outstanding();
  ASSERT_EQ(outstanding.size(), 1U);
  EXPECT_EQ(outstanding[0].label, "leaky");
  EXPECT_EQ(outstanding[0].live, 256);
  EXPECT_EQ(host.adaptor.committed(), 256);
  cuda::mr::resource_ref<host_accessible>{unowned}.deallocate_sync(leaked, 256, 64);
  EXPECT_EQ(host.adaptor.committed(), 0);
  EXPECT_TRUE(host.adaptor.outstanding().empty());
}

// -- growing, shrinking, splitting, merging
// ----------------------------------------------------------------------------

TEST(MemoryReservation, GrowsAndShrinksByWholeGranules) {
  WatchedDevice device{4_KiB};
  MemoryReservation reservation = device.adaptor.reserve(1_KiB);
  reservation.grow(1000);
  EXPECT_EQ(reservation.granted(), 2048);
  EXPECT_TRUE(reservation.try_grow(2_KiB));
  EXPECT_FALSE(reservation.try_grow(1));
  EXPECT_THROW(reservation.grow(1), ReservationRefused);
  rmm::device_buffer const live{256, default_stream(), reservation};
  EXPECT_EQ(reservation.shrink_to_fit(), 4096 - 256);
  EXPECT_EQ(reservation.granted(), 256);
  EXPECT_EQ(device.adaptor.committed(), 256);
}

TEST(MemoryReservation, SplitsWithoutPassingThroughTheBudget) {
  WatchedDevice device{2_KiB};
  MemoryReservation whole = device.adaptor.reserve(2_KiB, {.label = "sort"});
  MemoryReservation part = whole.split(512);
  EXPECT_EQ(part.label(), "sort");
  EXPECT_EQ(part.balance(), 512);
  EXPECT_EQ(whole.granted(), 1536);
  EXPECT_EQ(device.adaptor.committed(), 2048);
  EXPECT_EQ(device.adaptor.peak_committed(), 2048);
  EXPECT_THROW((void)whole.split(2_KiB), ReservationExhausted);
  EXPECT_EQ(whole.balance(), 1536);
}

TEST(MemoryReservation, TakesInAnotherWithItsLiveBuffers) {
  WatchedDevice device{1_MiB};
  MemoryReservation target = device.adaptor.reserve(1_KiB);
  MemoryReservation other = device.adaptor.reserve(1_KiB);
  rmm::device_buffer buffer{512, default_stream(), other};
  target.merge(std::move(other));
  EXPECT_FALSE(static_cast<bool>(other));
  EXPECT_EQ(target.granted(), 2048);
  EXPECT_EQ(target.balance(), 1536);
  EXPECT_EQ(target.spent(), 512);
  buffer = rmm::device_buffer{};
  EXPECT_EQ(target.balance(), 2048);
}

TEST(MemoryReservation, SendsBuffersOfAMergedOneToTheBudgetOnceTheTargetIsClosed) {
  WatchedDevice device{1_MiB};
  MemoryReservation target = device.adaptor.reserve(1_KiB);
  MemoryReservation other = device.adaptor.reserve(1_KiB);
  rmm::device_buffer buffer{512, default_stream(), other};
  target.merge(std::move(other));
  target.close();
  EXPECT_EQ(device.adaptor.committed(), 512);
  buffer = rmm::device_buffer{};
  EXPECT_EQ(device.adaptor.committed(), 0);
  EXPECT_EQ(target.granted(), 0);
}

TEST(MemoryReservation, RefusesToMergeWithOneOfAnotherAdaptor) {
  WatchedDevice device{1_MiB};
  WatchedDevice elsewhere{1_MiB};
  MemoryReservation target = device.adaptor.reserve(1_KiB);
  MemoryReservation other = elsewhere.adaptor.reserve(1_KiB);
  EXPECT_THROW(target.merge(std::move(other)), ReservationMismatch);
  EXPECT_EQ(other.balance(), 1024);  // NOLINT: unharmed by contract
  EXPECT_EQ(target.balance(), 1024);
}

// -- policies
// ----------------------------------------------------------------------------------------------------------

TEST(MemoryReservation, GrowsWhenItIsExhaustedIfAskedTo) {
  WatchedDevice device{2_KiB};
  MemoryReservation reservation = device.adaptor.reserve(256, {.exhausted = ExhaustedPolicy::GrowOrRefuse});
  rmm::device_buffer const a{1024, default_stream(), reservation};
  EXPECT_EQ(reservation.granted(), 1024);
  EXPECT_EQ(reservation.balance(), 0);
  rmm::device_buffer const b{1024, default_stream(), reservation};
  EXPECT_THROW((rmm::device_buffer{1, default_stream(), reservation}), ReservationExhausted);
  EXPECT_EQ(device.adaptor.committed(), 2048);
}

TEST(MemoryReservation, OverbooksWhenItIsExhaustedIfAskedTo) {
  WatchedDevice device{1_KiB};
  MemoryReservation reservation = device.adaptor.reserve(1_KiB, {.exhausted = ExhaustedPolicy::GrowOrOverbook});
  {
    rmm::device_buffer const a{4096, default_stream(), reservation};
    EXPECT_EQ(device.adaptor.available(), 1024 - 4096);
  }
  EXPECT_EQ(reservation.balance(), 4096);
  reservation.shrink_to_fit();
  EXPECT_EQ(device.adaptor.committed(), 0);
}

TEST(MemoryReservation, SaysWhatOverbookingTook) {
  WatchedDevice device{1_KiB};
  MemoryReservation const first = device.adaptor.reserve(512);
  EXPECT_EQ(first.overbooking().granted, 512);
  EXPECT_EQ(first.overbooking().short_for_this_request, 0);
  EXPECT_EQ(first.overbooking().tier_deficit, 0);
  MemoryReservation const second = device.adaptor.reserve(1_KiB, AllowOverbooking::YES);
  EXPECT_EQ(second.overbooking().granted, 1024);
  EXPECT_EQ(second.overbooking().short_for_this_request, 512);
  EXPECT_EQ(second.overbooking().tier_deficit, 512);
  MemoryReservation const third = device.adaptor.reserve(256, AllowOverbooking::YES);
  EXPECT_EQ(third.overbooking().short_for_this_request, 256);
  EXPECT_EQ(third.overbooking().tier_deficit, 768);
  EXPECT_EQ(third.balance(), 256);
}

// -- failing upstreams
// -------------------------------------------------------------------------------------------------

TEST(MemoryReservation, TakesTheChargeBackWhenTheUpstreamFails) {
  WatchedDevice device{1_MiB};
  MemoryReservation reservation = device.adaptor.reserve(1_KiB);
  device.faults.fail_allocation(0, testing::Fails::Once);
  EXPECT_THROW((rmm::device_buffer{512, default_stream(), reservation}), UpstreamOutOfMemory);
  EXPECT_EQ(reservation.balance(), 1024);
  EXPECT_EQ(device.adaptor.allocation_count(), 0);
  rmm::device_buffer const again{1024, default_stream(), reservation};
  EXPECT_EQ(reservation.balance(), 0);
}

TEST(MemoryReservation, LosesNoByteWhicheverAllocationFails) {
  for (std::int64_t n = 0;; ++n) {
    WatchedDevice device{1_MiB};
    device.faults.fail_allocation(n, testing::Fails::Once);
    bool failed = false;
    {
      MemoryReservation first = device.adaptor.reserve(2_KiB, {.exhausted = ExhaustedPolicy::GrowOrRefuse});
      try {
        rmm::device_buffer a{1024, default_stream(), first};
        MemoryReservation second = first.split(256);
        rmm::device_buffer b{256, default_stream(), second};
        rmm::device_buffer c{4096, default_stream(), first};
        first.merge(std::move(second));
        rmm::device_buffer d{512, default_stream(), first};
      }
      catch (UpstreamOutOfMemory const&) {
        failed = true;
      }
      EXPECT_EQ(first.spent(), 0) << "with allocation " << n << " failing";
    }
    EXPECT_EQ(device.adaptor.committed(), 0) << "with allocation " << n << " failing";
    EXPECT_TRUE(device.adaptor.outstanding().empty());
    EXPECT_EQ(device.faults.live_bytes(), 0);
    EXPECT_EQ(device.faults.wrong_deallocations(), 0);
    if (!failed) { break; }
  }
}

TEST(MemoryReservation, PassesOtherExceptionsOfTheUpstreamOnUnchanged) {
  struct Broken : HostMemoryResource {
    void* allocate_sync(std::size_t, std::size_t) { throw std::runtime_error{"device lost"}; }
    void* allocate(cuda::stream_ref, std::size_t, std::size_t) { throw std::runtime_error{"device lost"}; }
    bool operator==(Broken const&) const { return true; }
  };
  HostReservationAwareResourceAdaptor adaptor{Broken{}, 1_MiB};
  HostMemoryReservation reservation = adaptor.reserve(1_KiB);
  EXPECT_THROW((void)reservation.resource().allocate_sync(64, 64), std::runtime_error);
  EXPECT_EQ(reservation.balance(), 1024);
}

}  // namespace
}  // namespace earmark
