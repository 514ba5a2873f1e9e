// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// A reservation wherever RMM and CCCL take a resource: what compiles, what must not, RMM's resources above and below,
// lives that end in every order, the laws of the owning types, and the end of the process.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <concepts>
#include <cuda/buffer>
#include <optional>
#include <rmm/device_buffer.hpp>
#include <rmm/device_scalar.hpp>
#include <rmm/device_uvector.hpp>
#include <rmm/mr/aligned_resource_adaptor.hpp>
#include <rmm/mr/arena_memory_resource.hpp>
#include <rmm/mr/binning_memory_resource.hpp>
#include <rmm/mr/failure_callback_resource_adaptor.hpp>
#include <rmm/mr/fixed_size_memory_resource.hpp>
#include <rmm/mr/limiting_resource_adaptor.hpp>
#include <rmm/mr/logging_resource_adaptor.hpp>
#include <rmm/mr/polymorphic_allocator.hpp>
#include <rmm/mr/pool_memory_resource.hpp>
#include <rmm/mr/prefetch_resource_adaptor.hpp>
#include <rmm/mr/statistics_resource_adaptor.hpp>
#include <rmm/mr/thread_safe_resource_adaptor.hpp>
#include <rmm/mr/tracking_resource_adaptor.hpp>
#include <rmm/resource_ref.hpp>
#include <sstream>
#include <string>
#include <utility>

#include "memory/watched_adaptor.hpp"

namespace earmark {
namespace {

using Any = cuda::mr::any_resource<device_accessible>;
using Ref = rmm::device_async_resource_ref;

// -- what compiles
// -----------------------------------------------------------------------------------------------------

template <class RmmResource, class... More>
concept stands_on_a_reservation = std::constructible_from<RmmResource, MemoryReservation&, More...> &&
                                  std::constructible_from<RmmResource, MemoryReservation const&, More...> &&
                                  std::constructible_from<RmmResource, MemoryReservation::Resource, More...> &&
                                  std::constructible_from<RmmResource, ReservationAwareResourceAdaptor&, More...>;

static_assert(stands_on_a_reservation<rmm::mr::pool_memory_resource, std::size_t>);
static_assert(stands_on_a_reservation<rmm::mr::pool_memory_resource, std::size_t, std::size_t>);
static_assert(stands_on_a_reservation<rmm::mr::arena_memory_resource>);
static_assert(stands_on_a_reservation<rmm::mr::arena_memory_resource, std::optional<std::size_t>, bool>);
static_assert(stands_on_a_reservation<rmm::mr::binning_memory_resource>);
static_assert(stands_on_a_reservation<rmm::mr::fixed_size_memory_resource, std::size_t, std::size_t>);
static_assert(stands_on_a_reservation<rmm::mr::limiting_resource_adaptor, std::size_t>);
static_assert(stands_on_a_reservation<rmm::mr::statistics_resource_adaptor>);
static_assert(stands_on_a_reservation<rmm::mr::tracking_resource_adaptor, bool>);
static_assert(stands_on_a_reservation<rmm::mr::logging_resource_adaptor, std::ostream&>);
static_assert(stands_on_a_reservation<rmm::mr::aligned_resource_adaptor>);
static_assert(stands_on_a_reservation<rmm::mr::thread_safe_resource_adaptor>);
static_assert(stands_on_a_reservation<rmm::mr::prefetch_resource_adaptor>);
static_assert(stands_on_a_reservation<rmm::mr::polymorphic_allocator<int>>);

template <class Container, class... Arguments>
concept made_from_a_reservation = std::constructible_from<Container, Arguments..., MemoryReservation&> &&
                                  std::constructible_from<Container, Arguments..., MemoryReservation const&> &&
                                  std::constructible_from<Container, Arguments..., MemoryReservation::Resource>;

static_assert(made_from_a_reservation<rmm::device_buffer, std::size_t, cuda::stream_ref>);
static_assert(made_from_a_reservation<rmm::device_buffer, std::size_t, std::size_t, cuda::stream_ref>, "aligned");
static_assert(made_from_a_reservation<rmm::device_buffer, void const*, std::size_t, cuda::stream_ref>);
static_assert(made_from_a_reservation<rmm::device_buffer, rmm::device_buffer const&, cuda::stream_ref>);
static_assert(made_from_a_reservation<rmm::device_uvector<int>, std::size_t, cuda::stream_ref>);
static_assert(made_from_a_reservation<rmm::device_uvector<int>, rmm::device_uvector<int> const&, cuda::stream_ref>);
static_assert(made_from_a_reservation<rmm::device_scalar<int>, cuda::stream_ref>);

struct Options {
  std::optional<Ref> reference;
  std::optional<Any> owner;
};
static_assert(std::assignable_from<std::optional<Ref>&, MemoryReservation&>);
static_assert(std::assignable_from<std::optional<Any>&, MemoryReservation&>);
static_assert(std::is_constructible_v<Options, MemoryReservation&, MemoryReservation&> ||
              requires(MemoryReservation& r) { Options{r, r}; });

template <class Resource>
concept makes_a_cuda_buffer = requires(cuda::stream_ref stream, Resource resource) {
  cuda::make_buffer<int>(stream, resource, std::size_t{10}, cuda::no_init);
};
static_assert(makes_a_cuda_buffer<MemoryReservation::Resource>);
static_assert(makes_a_cuda_buffer<PinnedMemoryReservation::Resource>);
static_assert(makes_a_cuda_buffer<ReservationAwareResourceAdaptor>);
static_assert(!makes_a_cuda_buffer<MemoryReservation&>, "it insists on a resource: pass `reservation.resource()`");

// -- what must not compile
// ---------------------------------------------------------------------------------------------

template <class From, class To>
concept passes_as = requires(From&& from, void take(To)) { take(static_cast<From&&>(from)); };

static_assert(passes_as<MemoryReservation&, Ref> && passes_as<MemoryReservation const&, Ref>);
static_assert(!passes_as<MemoryReservation, Ref> && !passes_as<MemoryReservation const, Ref>, "it would dangle");
static_assert(!passes_as<MemoryReservation, rmm::device_resource_ref>);
static_assert(!std::constructible_from<Ref, MemoryReservation>, "nor spelled out");
static_assert(passes_as<MemoryReservation, Any>, "an owner may come from a temporary");
static_assert(!passes_as<MemoryReservation&, rmm::host_async_resource_ref>, "no property that it has not got");
static_assert(!passes_as<MemoryReservation&, rmm::host_device_async_resource_ref>);
static_assert(!passes_as<HostMemoryReservation&, Ref>);
static_assert(!passes_as<MemoryReservation::Resource&, rmm::host_async_resource_ref>);
static_assert(passes_as<PinnedMemoryReservation&, Ref> && passes_as<PinnedMemoryReservation&, Any>);
static_assert(!std::copy_constructible<MemoryReservation> && !std::is_copy_assignable_v<MemoryReservation>);
static_assert(!cuda::mr::synchronous_resource<MemoryReservation>, "a copyable handle would make every container own");

// -- RMM's resources
// ---------------------------------------------------------------------------------------------------

// Draws through `resource` and says what the reservation was charged for 1000 bytes.
template <class RmmResource>
std::int64_t charge_through(RmmResource resource, MemoryReservation const& reservation) {
  std::int64_t const before = reservation.spent();
  rmm::device_buffer const buffer{1000, default_stream(), resource};
  return reservation.spent() - before;
}

TEST(RmmCompatibility, StacksEveryAdaptorOfRmmOnAReservation) {
  WatchedDevice device{1_MiB};
  MemoryReservation const reservation = device.adaptor.reserve(64_KiB);
  std::ostringstream log;
  EXPECT_EQ(charge_through(rmm::mr::limiting_resource_adaptor{reservation, 4096}, reservation), 1024);
  EXPECT_EQ(charge_through(rmm::mr::statistics_resource_adaptor{reservation}, reservation), 1024);
  EXPECT_EQ(charge_through(rmm::mr::tracking_resource_adaptor{reservation, true}, reservation), 1024);
  EXPECT_EQ(charge_through(rmm::mr::logging_resource_adaptor{reservation, log}, reservation), 1024);
  EXPECT_EQ(charge_through(rmm::mr::aligned_resource_adaptor{reservation}, reservation), 1024);
  EXPECT_EQ(charge_through(rmm::mr::thread_safe_resource_adaptor{reservation}, reservation), 1024);
  EXPECT_EQ(charge_through(rmm::mr::binning_memory_resource{reservation}, reservation), 1024);
  EXPECT_EQ(reservation.spent(), 0);
  EXPECT_NE(log.str().find("allocate"), std::string::npos);
  EXPECT_EQ(device.faults.wrong_deallocations(), 0);
}

TEST(RmmCompatibility, BoundsAPoolThatGrowsOnAReservation) {
  WatchedDevice device{1_MiB};
  MemoryReservation const reservation = device.adaptor.reserve(64_KiB);
  {
    rmm::mr::pool_memory_resource pool{reservation, 16_KiB};
    EXPECT_EQ(reservation.spent(), 16384);
    rmm::device_buffer const first{16_KiB, default_stream(), pool};
    rmm::device_buffer const second{16_KiB, default_stream(), pool};
    EXPECT_GT(reservation.spent(), 16384);
    EXPECT_THROW((rmm::device_buffer{64_KiB, default_stream(), pool}), rmm::out_of_memory);
  }
  EXPECT_EQ(reservation.spent(), 0);
}

TEST(RmmCompatibility, LetsOurExhaustionThroughRmmsAdaptorsAsItIs) {
  WatchedDevice device{1_MiB};
  MemoryReservation const reservation = device.adaptor.reserve(1_KiB);
  auto const too_much = [&](auto resource) { rmm::device_buffer const buffer{2_KiB, default_stream(), resource}; };
  EXPECT_THROW(too_much(rmm::mr::limiting_resource_adaptor{reservation, 1_MiB}), ReservationExhausted);
  EXPECT_THROW(too_much(rmm::mr::statistics_resource_adaptor{reservation}), ReservationExhausted);
  EXPECT_THROW(too_much(rmm::mr::tracking_resource_adaptor{reservation}), ReservationExhausted);
  EXPECT_THROW(too_much(rmm::mr::aligned_resource_adaptor{reservation}), ReservationExhausted);
  EXPECT_EQ(reservation.balance(), 1024);
  EXPECT_EQ(device.faults.allocations(), 0);
}

TEST(RmmCompatibility, LetsAFailureCallbackMakeRoomInAReservation) {
  WatchedDevice device{1_MiB};
  MemoryReservation reservation = device.adaptor.reserve(1_KiB);
  auto const grow = [](std::size_t bytes, void* argument) {
    return static_cast<MemoryReservation*>(argument)->try_grow(bytes);
  };
  rmm::mr::failure_callback_resource_adaptor<> retrying{reservation, grow, &reservation};
  rmm::device_buffer const buffer{4_KiB, default_stream(), retrying};
  EXPECT_EQ(reservation.granted(), 5120);
}

TEST(RmmCompatibility, ReportsWhatRmmBelowCannotGiveAsAnUpstreamFailure) {
  rmm::mr::limiting_resource_adaptor limited{testing::HostBackedDeviceResource{}, 4_KiB};
  ReservationAwareResourceAdaptor adaptor{limited, 1_MiB};
  MemoryReservation const reservation = adaptor.reserve(64_KiB);
  EXPECT_THROW((rmm::device_buffer{8_KiB, default_stream(), reservation}), UpstreamOutOfMemory);
  EXPECT_EQ(reservation.balance(), 65536);
  rmm::device_buffer const fits{4_KiB, default_stream(), reservation};
  EXPECT_EQ(limited.get_allocated_bytes(), 4096);
}

TEST(RmmCompatibility, FeedsPolymorphicAllocators) {
  WatchedDevice device{1_MiB};
  MemoryReservation const reservation = device.adaptor.reserve(4_KiB);
  rmm::mr::polymorphic_allocator<int> allocator{reservation};
  int* const numbers = allocator.allocate(100, default_stream());
  EXPECT_EQ(reservation.spent(), 512);
  allocator.deallocate(numbers, 100, default_stream());
  EXPECT_EQ(reservation.spent(), 0);
}

TEST(RmmCompatibility, FeedsContainersThatMoveShrinkAndSwap) {
  WatchedDevice device{1_MiB};
  MemoryReservation const first = device.adaptor.reserve(8_KiB);
  MemoryReservation const second = device.adaptor.reserve(8_KiB);
  rmm::device_uvector<int> a(256, default_stream(), first);
  rmm::device_uvector<int> b(512, default_stream(), second);
  std::swap(a, b);
  EXPECT_EQ(first.spent(), 1024);
  EXPECT_EQ(second.spent(), 2048);
  a = rmm::device_uvector<int>(16, default_stream(), first);
  EXPECT_EQ(second.spent(), 0) << "freed to the one that it came from";
  EXPECT_EQ(first.spent(), 1024 + 256);
}

// -- lives that end in every order
// -------------------------------------------------------------------------------------

TEST(RmmCompatibility, SettlesWhateverTheOrderInWhichBufferResourceReservationAndAdaptorEnd) {
  std::array<int, 5> order{0, 1, 2, 3, 4};
  do {
    testing::FaultControl faults;
    std::optional<ReservationAwareResourceAdaptor> adaptor;
    adaptor.emplace(testing::FaultyResource{testing::HostBackedDeviceResource{}, faults}, 1_MiB);
    std::optional<MemoryReservation> reservation{adaptor->reserve(4_KiB)};
    std::optional<MemoryReservation::Resource> resource{reservation->resource()};
    std::optional<rmm::mr::statistics_resource_adaptor> above{std::in_place, *reservation};
    std::optional<rmm::device_buffer> buffer{std::in_place, std::size_t{1000}, default_stream(), *above};
    for (int const next : order) {
      switch (next) {
        case 0: adaptor.reset(); break;
        case 1: reservation.reset(); break;
        case 2: resource.reset(); break;
        case 3: above.reset(); break;
        default: buffer.reset(); break;
      }
    }
    EXPECT_EQ(faults.live_bytes(), 0);
    EXPECT_EQ(faults.wrong_deallocations(), 0);
  } while (std::next_permutation(order.begin(), order.end()));
}

// -- the laws of owning types
// ------------------------------------------------------------------------------------------

// What any owning type must keep: `make` gives values that differ, `same` says whether two hold the same.
template <class T, class Make, class Same>
void keeps_the_laws_of_moving(Make const& make, Same const& same) {
  T a = make();
  auto const identity = same(a);
  T b{std::move(a)};
  EXPECT_TRUE(same(b) == identity) << "move construction";
  T full = make();
  full = std::move(b);
  EXPECT_TRUE(same(full) == identity) << "move assignment to a full one";
  T moved_to_empty = make();
  T sink{std::move(moved_to_empty)};
  moved_to_empty = std::move(full);
  EXPECT_TRUE(same(moved_to_empty) == identity) << "move assignment to a moved-from one";
  T& alias = moved_to_empty;
  moved_to_empty = std::move(alias);
  EXPECT_TRUE(same(moved_to_empty) == identity) << "moved to itself";
  auto const other = same(sink);
  using std::swap;
  swap(moved_to_empty, sink);
  EXPECT_TRUE(same(sink) == identity && same(moved_to_empty) == other) << "swap";
  swap(sink, sink);
  EXPECT_TRUE(same(sink) == identity) << "swapped with itself";
}

TEST(OwningTypes, KeepTheLawsOfMovingAndGiveEverythingBack) {
  WatchedDevice device{1_MiB};
  int made = 0;
  auto const reserve = [&] { return device.adaptor.reserve(static_cast<std::size_t>(++made) * 256); };
  keeps_the_laws_of_moving<MemoryReservation>(reserve, [](MemoryReservation const& r) { return r.granted(); });
  EXPECT_EQ(device.adaptor.committed(), 0) << "no handle lost what it held";

  keeps_the_laws_of_moving<MemoryReservation::Resource>([&] { return reserve().resource(); },
                                                        [](MemoryReservation::Resource const& r) { return r; });
  EXPECT_EQ(device.adaptor.committed(), 0);

  auto const build = [] { return ReservationAwareResourceAdaptor{testing::HostBackedDeviceResource{}, 1_KiB}; };
  keeps_the_laws_of_moving<ReservationAwareResourceAdaptor>(build,
                                                            [](ReservationAwareResourceAdaptor const& a) { return a; });
  EXPECT_TRUE(device.adaptor.outstanding().empty());
}

TEST(OwningTypes, HoldNothingWhenTheirMakingFails) {
  WatchedDevice device{1_KiB};
  MemoryReservation const reservation = device.adaptor.reserve(1_KiB);
  device.faults.fail_allocation(0, testing::Fails::Always);
  EXPECT_THROW((rmm::device_uvector<int>(10, default_stream(), reservation)), UpstreamOutOfMemory);
  EXPECT_THROW((void)device.adaptor.reserve(1_KiB), ReservationRefused);
  EXPECT_EQ(reservation.balance(), 1024);
  EXPECT_EQ(device.adaptor.committed(), 1024);
  EXPECT_EQ(device.faults.live_bytes(), 0);
}

// -- the end of the process
// --------------------------------------------------------------------------------------------

// Everything still alive at exit: in objects of static storage, which end after main, and in one that nobody ends.
void exit_with_live_buffers() {
  static std::optional<rmm::device_buffer> ended_late;
  static std::optional<MemoryReservation> reservation;
  static std::optional<ReservationAwareResourceAdaptor> adaptor;
  adaptor.emplace(testing::HostBackedDeviceResource{}, 1_MiB);
  reservation.emplace(adaptor->reserve(4_KiB));
  ended_late.emplace(1000, default_stream(), *reservation);
  static auto const* const never_ended = new rmm::device_buffer{1000, default_stream(), *reservation};
  std::exit(never_ended->size() == 1000 ? 0 : 1);
}

TEST(ProcessExitDeathTest, IsCleanWithBuffersReservationsAndAdaptorsAlive) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(exit_with_live_buffers(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace earmark
