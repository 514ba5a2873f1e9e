// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// The requirements R1 to R8 that reservations were asked for with, one by one, as their users would put them. The
// details of each have their tests, also with the number, beside the type that keeps them.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <optional>
#include <rmm/device_buffer.hpp>
#include <rmm/device_uvector.hpp>
#include <rmm/mr/statistics_resource_adaptor.hpp>
#include <rmm/resource_ref.hpp>
#include <utility>
#include <vector>

#include "memory/watched_adaptor.hpp"

namespace {

// What the program takes from the heap, for R8.
std::atomic<std::int64_t> heap_allocations{0};
std::atomic<std::int64_t> heap_bytes{0};

void* counted(std::size_t bytes, std::size_t alignment) {
  heap_allocations.fetch_add(1, std::memory_order_relaxed);
  heap_bytes.fetch_add(static_cast<std::int64_t>(bytes), std::memory_order_relaxed);
  void* pointer = nullptr;
  if (::posix_memalign(&pointer, alignment, bytes == 0 ? 1 : bytes) != 0) { throw std::bad_alloc{}; }
  return pointer;
}

}  // namespace

// Not inlined: GCC would take malloc and delete that meet for a mistake.
[[gnu::noinline]] void* operator new(std::size_t bytes) { return counted(bytes, alignof(std::max_align_t)); }
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<std::size_t>(alignment));
}
[[gnu::noinline]] void operator delete(void* pointer) noexcept { std::free(pointer); }
[[gnu::noinline]] void operator delete(void* pointer, std::size_t) noexcept { std::free(pointer); }
[[gnu::noinline]] void operator delete(void* pointer, std::align_val_t) noexcept { std::free(pointer); }
[[gnu::noinline]] void operator delete(void* pointer, std::size_t, std::align_val_t) noexcept { std::free(pointer); }

namespace earmark {
namespace {

TEST(Requirements, R1_AnAdaptorWrapsAnyResourceOfRmmOrCcclAndTracksItsAllocations) {
  rmm::mr::statistics_resource_adaptor statistics{testing::HostBackedDeviceResource{}};
  ReservationAwareResourceAdaptor adaptor{statistics, 1_MiB};
  MemoryReservation const reservation = adaptor.reserve(4_KiB);
  {
    rmm::device_buffer const first{1024, default_stream(), reservation};
    rmm::device_buffer const second{512, default_stream(), reservation};
    EXPECT_EQ(adaptor.current_allocated(), 1536);
    EXPECT_EQ(statistics.get_bytes_counter().value, 1536);
  }
  EXPECT_EQ(adaptor.current_allocated(), 0);
  EXPECT_EQ(adaptor.peak_allocated(), 1536);
  EXPECT_EQ(adaptor.total_allocated(), 1536);
  EXPECT_EQ(adaptor.allocation_count(), 2);
  EXPECT_EQ(statistics.get_bytes_counter().peak, 1536);

  cuda::mr::any_resource<host_accessible> cccl{HostMemoryResource{}};
  HostReservationAwareResourceAdaptor host{cccl, 1_MiB};
  host.deallocate_sync(host.allocate_sync(100, 64), 100, 64);
  EXPECT_EQ(host.total_allocated(), 128);
}

void* by_reference(rmm::device_async_resource_ref resource) { return resource.allocate(default_stream(), 256, 256); }
void* by_constant_reference(rmm::device_async_resource_ref const& resource) {
  return rmm::device_async_resource_ref{resource}.allocate(default_stream(), 256, 256);
}
void* by_owner(cuda::mr::any_resource<device_accessible> resource) {
  return resource.allocate(default_stream(), 256, 256);
}
void* by_default(rmm::device_async_resource_ref resource, int = 0) { return by_reference(resource); }
void* by_synchronous_reference(rmm::device_resource_ref resource) { return resource.allocate_sync(256, 256); }
struct Library {
  explicit Library(rmm::device_async_resource_ref resource) : memory(resource) {}
  rmm::device_async_resource_ref memory;
};

TEST(Requirements, R2_AReservationIsAcceptedWhereverADeviceAsyncResourceRefIs) {
  WatchedDevice device{1_MiB};
  MemoryReservation reservation = device.adaptor.reserve(4_KiB, AllowOverbooking::NO);
  MemoryReservation const& constant = reservation;
  std::vector<void*> const pointers{
      by_reference(reservation), by_reference(constant),  by_constant_reference(reservation),
      by_owner(reservation),     by_default(reservation), by_synchronous_reference(reservation)};
  EXPECT_EQ(reservation.spent(), 6 * 256);
  Library library{reservation};
  std::optional<rmm::device_async_resource_ref> kept = reservation;
  for (void* const pointer : pointers) { library.memory.deallocate(default_stream(), pointer, 256, 256); }
  EXPECT_EQ(reservation.spent(), 0);
  rmm::device_buffer const buffer{256, default_stream(), *kept};
  rmm::device_uvector<double> const vector(32, default_stream(), reservation);
  EXPECT_EQ(reservation.spent(), 512);
}

TEST(Requirements, R3_AllocatingDrawsTheBalanceDownAndAnExhaustedOneIsRefusedBeforeTheUpstreamIsAsked) {
  WatchedDevice device{1_MiB};
  MemoryReservation const reservation = device.adaptor.reserve(1_KiB);
  rmm::device_buffer const first{768, default_stream(), reservation};
  EXPECT_EQ(reservation.balance(), 256);
  std::int64_t const asked = device.faults.allocations();
  EXPECT_THROW((rmm::device_buffer{512, default_stream(), reservation}), rmm::out_of_memory);
  EXPECT_EQ(device.faults.allocations(), asked);
  EXPECT_EQ(reservation.balance(), 256);
  rmm::device_buffer const second{256, default_stream(), reservation};
  EXPECT_EQ(reservation.balance(), 0);
}

TEST(Requirements, R4_FreedBytesReturnToTheBalance) {
  WatchedDevice device{1'000'000};
  MemoryReservation const reservation = device.adaptor.reserve(2_KiB, AllowOverbooking::NO);
  {
    rmm::device_buffer const first{1_KiB, default_stream(), reservation};
    rmm::device_buffer const second{1_KiB, default_stream(), reservation};
    EXPECT_THROW((rmm::device_buffer{1_KiB, default_stream(), reservation}), rmm::out_of_memory);
  }
  EXPECT_NO_THROW((rmm::device_buffer{2_KiB, default_stream(), reservation}));
}

TEST(Requirements, R5_TheLimitChangesAtRunTimeAndReservedBytesAreClaimedUpFrontOrNotAtAll) {
  WatchedDevice device{4_KiB};
  MemoryReservation const held = device.adaptor.reserve(3_KiB);
  EXPECT_EQ(device.adaptor.total_reserved(), 3072);
  EXPECT_THROW((void)device.adaptor.reserve(2_KiB, AllowOverbooking::NO), ReservationRefused);
  EXPECT_EQ(device.adaptor.total_reserved(), 3072) << "nothing is kept of a refused one";
  device.adaptor.set_limit(8_KiB);
  {
    MemoryReservation const now = device.adaptor.reserve(2_KiB, AllowOverbooking::NO);
    EXPECT_EQ(device.adaptor.total_reserved(), 5120);
    device.adaptor.set_limit(1_KiB);
    EXPECT_EQ(now.balance(), 2048) << "nothing is taken back";
    EXPECT_THROW((void)device.adaptor.reserve(256, AllowOverbooking::NO), ReservationRefused);
    MemoryReservation const above = device.adaptor.reserve(256, AllowOverbooking::YES);
    EXPECT_EQ(device.adaptor.total_reserved(), 5376);
  }
  EXPECT_EQ(device.adaptor.total_reserved(), 3072);
}

// A library that was handed a resource and wants a reservation of its own.
MemoryReservation reserve_beside(MemoryReservation::Resource const& resource) {
  return resource.adaptor().reserve(512);
}

TEST(Requirements, R6_ANewReservationCanBeMadeFromAnExistingOneAndFromTheResourceItHandsOut) {
  WatchedDevice device{4_KiB};
  MemoryReservation const first = device.adaptor.reserve(1_KiB);
  MemoryReservation const second = first.adaptor().reserve(1_KiB);
  MemoryReservation const third = reserve_beside(second.resource());
  EXPECT_EQ(device.adaptor.committed(), 2560);
  EXPECT_TRUE(third.adaptor() == device.adaptor);
  EXPECT_THROW((void)third.adaptor().reserve(2_KiB), ReservationRefused) << "under the same limit";
}

TEST(Requirements, R7_UnspentBytesGoBackWhenTheOwnerClosesOrDropsItThoughBuffersLiveOn) {
  WatchedDevice device{4_KiB};
  std::vector<rmm::device_buffer> kept;
  {
    MemoryReservation const dropped = device.adaptor.reserve(2_KiB);
    kept.emplace_back(256, default_stream(), dropped);
  }
  EXPECT_EQ(device.adaptor.committed(), 256);
  MemoryReservation closed = device.adaptor.reserve(2_KiB);
  auto const resource = closed.resource();  // a copy that someone keeps holds nothing back
  kept.emplace_back(256, default_stream(), closed);
  closed.close();
  EXPECT_EQ(device.adaptor.committed(), 512);
  EXPECT_TRUE(device.adaptor.try_reserve(3_KiB + 512).has_value());
  kept.clear();
  EXPECT_EQ(device.adaptor.committed(), 0);
}

TEST(Requirements, R8_ManyReservationsCostNoHeavySharedObjects) {
  constexpr std::size_t many = 100'000;
  HostReservationAwareResourceAdaptor adaptor{HostMemoryResource{}, 1_GiB};
  std::vector<HostMemoryReservation> reservations;
  reservations.reserve(many);
  std::int64_t const bytes_before = heap_bytes;
  std::int64_t const allocations_before = heap_allocations;
  for (std::size_t i = 0; i < many; ++i) { reservations.push_back(adaptor.reserve(64, {.label = "many"})); }
  EXPECT_LE(heap_bytes - bytes_before, static_cast<std::int64_t>(many * 256))
      << "control blocks of 128 bytes, by slabs";
  EXPECT_LE(heap_allocations - allocations_before, static_cast<std::int64_t>(many / 10)) << "blocks come by the slab";
  reservations.clear();

  std::int64_t const warm = heap_allocations;
  for (std::size_t i = 0; i < many; ++i) { adaptor.reserve(64, {.label = "many"}).close(); }
  EXPECT_EQ(heap_allocations, warm) << "reserving in a loop takes pooled blocks";
  EXPECT_EQ(adaptor.committed(), 0);
}

}  // namespace
}  // namespace earmark
