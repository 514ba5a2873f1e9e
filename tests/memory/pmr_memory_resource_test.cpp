// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/memory/pmr_memory_resource.hpp"

#include <gtest/gtest.h>

#include <list>
#include <map>
#include <memory_resource>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "earmark/testing/host_backed_device_resource.hpp"
#include "memory/watched_adaptor.hpp"

namespace earmark {
namespace {

static_assert(std::is_constructible_v<PmrMemoryResource, HostMemoryReservation const&>);
static_assert(!std::is_constructible_v<PmrMemoryResource, HostMemoryReservation>, "it would close at once");
static_assert(!std::is_copy_constructible_v<PmrMemoryResource> && !std::is_move_constructible_v<PmrMemoryResource>);

struct Fixture {
  WatchedHost host{1_MiB};
  HostMemoryReservation reservation;
  PmrMemoryResource memory;
  explicit Fixture(std::size_t bytes) : reservation(host.adaptor.reserve(bytes)), memory(reservation) {}
};

TEST(PmrMemoryResource, FeedsTheContainersOfTheStandard) {
  Fixture fixture{256_KiB};
  {
    std::pmr::vector<int> numbers{&fixture.memory};
    numbers.resize(1000);
    EXPECT_EQ(fixture.reservation.spent(), 4032);
    std::pmr::string const text(500, 'x', &fixture.memory);
    std::pmr::map<int, std::pmr::string> names{&fixture.memory};
    std::pmr::unordered_map<int, std::pmr::vector<int>> groups{&fixture.memory};
    std::pmr::list<int> const chain(100, 7, &fixture.memory);
    for (int i = 0; i < 100; ++i) {
      names[i] = text;
      groups[i % 7].push_back(i);
    }
    EXPECT_EQ(names.at(50), text);
    EXPECT_EQ(groups.at(3).size(), 14U);
    EXPECT_EQ(names.at(1).get_allocator().resource(), &fixture.memory);
  }
  EXPECT_EQ(fixture.reservation.spent(), 0);
  EXPECT_EQ(fixture.host.faults.live_bytes(), 0);
  EXPECT_EQ(fixture.host.faults.wrong_deallocations(), 0);
}

TEST(PmrMemoryResource, ThrowsEarmarksErrorsWhenTheReservationIsExhausted) {
  Fixture fixture{4_KiB};
  std::pmr::vector<int> numbers(512, &fixture.memory);
  std::int64_t const allocations = fixture.host.faults.allocations();
  try {
    numbers.resize(2048);
    FAIL() << "it grew past the reservation";
  }
  catch (std::bad_alloc const& error) {
    auto const* const ours = dynamic_cast<ReservationExhausted const*>(&error);
    ASSERT_NE(ours, nullptr);
    EXPECT_EQ(ours->fields().requested, 8192);
    EXPECT_EQ(ours->fields().shortfall, 6144);
  }
  EXPECT_EQ(fixture.host.faults.allocations(), allocations) << "the upstream was not asked";
  EXPECT_EQ(numbers.size(), 512U) << "the vector is as it was";
  fixture.reservation.close();
  EXPECT_THROW(numbers.resize(513), ReservationClosed);
}

TEST(PmrMemoryResource, PassesAnUpstreamFailureOnAndTakesTheChargeBack) {
  Fixture fixture{64_KiB};
  fixture.host.faults.fail_allocation(0, testing::Fails::Once);
  EXPECT_THROW((std::pmr::vector<int>(100, &fixture.memory)), UpstreamOutOfMemory);
  EXPECT_EQ(fixture.reservation.spent(), 0);
}

TEST(PmrMemoryResource, HonoursAlignment) {
  Fixture fixture{512_KiB};
  for (std::size_t alignment = 1; alignment <= 65536; alignment *= 2) {
    void* const pointer = fixture.memory.allocate(100, alignment);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pointer) % alignment, 0U) << alignment;
    fixture.memory.deallocate(pointer, 100, alignment);
  }
  struct alignas(128) Wide {
    char bytes[128];
  };
  std::pmr::vector<Wide> const wide(3, &fixture.memory);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(wide.data()) % 128, 0U);
}

TEST(PmrMemoryResource, ServesZeroBytesWithAnAddressAndWithoutCharge) {
  Fixture fixture{0};
  for (std::size_t const alignment : {1U, 64U, 4096U}) {
    void* const nothing = fixture.memory.allocate(0, alignment);
    EXPECT_NE(nothing, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(nothing) % alignment, 0U);
    fixture.memory.deallocate(nothing, 0, alignment);
  }
  EXPECT_EQ(fixture.host.faults.allocations(), 0);
  EXPECT_EQ(fixture.host.faults.deallocations(), 0);
}

TEST(PmrMemoryResource, IsEqualToDoorsOfTheSameReservationOnly) {
  Fixture fixture{4_KiB};
  PmrMemoryResource const same{fixture.reservation.resource()};
  HostMemoryReservation const sibling = fixture.host.adaptor.reserve(4_KiB);
  PmrMemoryResource const other{sibling};
  EXPECT_TRUE(fixture.memory == same);
  EXPECT_FALSE(fixture.memory == other);
  EXPECT_FALSE(fixture.memory.is_equal(*std::pmr::new_delete_resource()));
}

TEST(PmrMemoryResource, LetsContainersOfTheSameReservationTakeOverMemoryAndOthersCopy) {
  Fixture fixture{64_KiB};
  PmrMemoryResource same{fixture.reservation};
  HostMemoryReservation const sibling = fixture.host.adaptor.reserve(64_KiB);
  PmrMemoryResource other{sibling};
  std::pmr::vector<int> first(1000, &fixture.memory);
  int const* const data = first.data();
  std::pmr::vector<int> second{std::move(first), &same};
  EXPECT_EQ(second.data(), data);
  std::pmr::vector<int> const third{std::move(second), &other};
  EXPECT_NE(third.data(), data);
  EXPECT_EQ(sibling.spent(), 4032);
}

TEST(PmrMemoryResource, OutlivesItsReservationAndAdaptorUntilItsContainersAreGone) {
  testing::FaultControl faults;
  std::optional<PmrMemoryResource> memory;
  std::optional<std::pmr::vector<int>> numbers;
  {
    HostReservationAwareResourceAdaptor adaptor{testing::FaultyResource{HostMemoryResource{}, faults}, 1_MiB};
    HostMemoryReservation const reservation = adaptor.reserve(64_KiB);
    memory.emplace(reservation);
    numbers.emplace(1000, &*memory);
  }
  EXPECT_GT(faults.live_bytes(), 0);
  EXPECT_THROW(numbers->resize(5000), ReservationClosed);
  std::thread{[&numbers] { numbers.reset(); }}.join();
  EXPECT_EQ(faults.live_bytes(), 0);
  EXPECT_EQ(faults.wrong_deallocations(), 0);
}

TEST(PmrMemoryResource, StandsBelowThePoolsOfTheStandard) {
  Fixture fixture{256_KiB};
  {
    std::pmr::synchronized_pool_resource pool{&fixture.memory};
    std::pmr::monotonic_buffer_resource arena{&pool};
    std::pmr::vector<std::pmr::string> words{&arena};
    for (int i = 0; i < 200; ++i) { words.emplace_back("a word that is too long to stay in place"); }
    EXPECT_GT(fixture.reservation.spent(), 0);
  }
  EXPECT_EQ(fixture.reservation.spent(), 0);
  EXPECT_EQ(fixture.host.faults.wrong_deallocations(), 0);
}

TEST(PmrMemoryResource, ServesPinnedMemoryToo) {
  PinnedReservationAwareResourceAdaptor adaptor{testing::HostBackedDeviceResource{}, 1_MiB};
  PinnedMemoryReservation const reservation = adaptor.reserve(4_KiB);
  PinnedPmrMemoryResource memory{reservation};
  std::pmr::vector<char> const bytes(1000, &memory);
  EXPECT_EQ(reservation.spent(), 1024);
}

TEST(PmrMemoryResource, LosesNothingWhicheverAllocationFails) {
  for (std::int64_t n = 0;; ++n) {
    Fixture fixture{256_KiB};
    fixture.host.faults.fail_allocation(n, testing::Fails::Once);
    bool failed = false;
    try {
      std::pmr::map<int, std::pmr::vector<int>> groups{&fixture.memory};
      for (int i = 0; i < 20; ++i) { groups[i % 5].push_back(i); }
    }
    catch (UpstreamOutOfMemory const&) {
      failed = true;
    }
    EXPECT_EQ(fixture.reservation.spent(), 0) << "with allocation " << n << " failing";
    EXPECT_EQ(fixture.host.faults.live_bytes(), 0);
    if (!failed) { break; }
  }
}

}  // namespace
}  // namespace earmark
