// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/memory/reservation_scope.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <coroutine>
#include <cstdlib>
#include <latch>
#include <new>
#include <optional>
#include <rmm/device_buffer.hpp>
#include <rmm/device_uvector.hpp>
#include <rmm/mr/per_device_resource.hpp>
#include <rmm/mr/statistics_resource_adaptor.hpp>
#include <thread>
#include <utility>
#include <vector>

#include "memory/watched_adaptor.hpp"

namespace earmark {
namespace {

using Any = cuda::mr::any_resource<device_accessible>;

rmm::cuda_device_id current_device() { return rmm::get_current_cuda_device(); }

// RMM's resource of the current device replaced by watched host memory, and put back at the end.
class WatchedCurrentResource {
 public:
  WatchedCurrentResource()
      : former_(rmm::mr::set_per_device_resource(
            current_device(), testing::FaultyResource{testing::HostBackedDeviceResource{}, faults})) {}
  ~WatchedCurrentResource() { rmm::mr::set_per_device_resource(current_device(), former_); }
  testing::FaultControl faults;

 private:
  Any former_;
};

class ReservationScopes : public ::testing::Test {
 protected:
  WatchedCurrentResource outside;
  std::optional<ScopeDispatcher> dispatcher{install_scope_dispatcher(current_device())};
  WatchedDevice device{1_MiB};
  MemoryReservation reservation = device.adaptor.reserve(8_KiB, {.label = "sort"});

  ~ReservationScopes() override {
    dispatcher.reset();
    EXPECT_EQ(device.faults.wrong_deallocations(), 0);
    EXPECT_EQ(outside.faults.wrong_deallocations(), 0);
  }
};

// Code that was never told of a resource.
rmm::device_buffer third_party(std::size_t bytes) {
  rmm::device_buffer const temporary{4096, default_stream()};
  rmm::device_uvector<int> const more(128, default_stream());
  auto current = rmm::mr::get_current_device_resource_ref();
  current.deallocate(default_stream(), current.allocate(default_stream(), 512, 256), 512, 256);
  return rmm::device_buffer{bytes, default_stream()};
}

// -- what a scope does
// -------------------------------------------------------------------------------------------------

TEST_F(ReservationScopes, MakeThirdPartyCodeDrawOnTheReservation) {
  rmm::device_buffer result;
  {
    ReservationScope const scope{reservation};
    result = third_party(1000);
    EXPECT_EQ(reservation.balance(), 8192 - 1024);
    EXPECT_EQ(reservation.peak_spent(), 4096 + 512 + 1024);
  }
  EXPECT_EQ(outside.faults.allocations(), 0);
  EXPECT_EQ(dispatcher->live_blocks(), 1);
  result = rmm::device_buffer{};
  EXPECT_EQ(reservation.balance(), 8192);
  EXPECT_EQ(dispatcher->live_blocks(), 0);
}

TEST_F(ReservationScopes, LeaveAllocationsOutsideThemToTheFormerResource) {
  { rmm::device_buffer const before{1000, default_stream()}; }
  { ReservationScope const scope{reservation}; }
  rmm::device_buffer const after{1000, default_stream()};
  EXPECT_EQ(outside.faults.allocations(), 2);
  EXPECT_EQ(outside.faults.live_bytes(), 1000);
  EXPECT_EQ(device.faults.allocations(), 0);
  EXPECT_EQ(dispatcher->live_blocks(), 0);
}

TEST_F(ReservationScopes, ThrowEarmarksErrorWhenTheReservationIsExhausted) {
  ReservationScope const scope{reservation};
  rmm::device_buffer const kept = third_party(1000);
  std::int64_t const allocations = device.faults.allocations();
  EXPECT_THROW((void)third_party(16_KiB), ReservationExhausted);
  EXPECT_THROW((void)third_party(16_KiB), rmm::out_of_memory);
  EXPECT_EQ(reservation.balance(), 8192 - 1024) << "its temporaries came back";
  EXPECT_EQ(device.faults.allocations(), allocations + 2 * 3) << "only the temporaries";
  EXPECT_EQ(dispatcher->live_blocks(), 1);
  reservation.close();
  EXPECT_THROW((void)third_party(1), ReservationClosed);
  EXPECT_EQ(outside.faults.allocations(), 0) << "nothing falls back to the former resource";
}

TEST_F(ReservationScopes, Nest) {
  MemoryReservation inner = device.adaptor.reserve(4_KiB);
  ReservationScope const outer_scope{reservation};
  rmm::device_buffer const first{256, default_stream()};
  {
    ReservationScope const inner_scope{inner};
    rmm::device_buffer const second{512, default_stream()};
    EXPECT_EQ(inner.spent(), 512);
    EXPECT_EQ(reservation.spent(), 256);
  }
  rmm::device_buffer const third{256, default_stream()};
  EXPECT_EQ(inner.spent(), 0);
  EXPECT_EQ(reservation.spent(), 512);
}

TEST_F(ReservationScopes, EndWhenAnExceptionLeavesThem) {
  try {
    ReservationScope const scope{reservation};
    (void)third_party(1_MiB);
    FAIL();
  }
  catch (ReservationExhausted const&) {
    EXPECT_FALSE(in_reservation_scope());
  }
  rmm::device_buffer const buffer{256, default_stream()};
  EXPECT_EQ(reservation.spent(), 0);
}

TEST_F(ReservationScopes, DrawOnAReservationThatIsHandedOverAsAResource) {
  ReservationScope const scope{reservation.resource()};
  reservation.close();
  EXPECT_THROW((rmm::device_buffer{1, default_stream()}), ReservationClosed);
  EXPECT_TRUE(scope.resource() == reservation.resource());
}

TEST_F(ReservationScopes, LeaveZeroBytesToTheFormerResource) {
  ReservationScope const scope{reservation};
  auto current = rmm::mr::get_current_device_resource_ref();
  void* const nothing = current.allocate(default_stream(), 0, 256);
  current.deallocate(default_stream(), nothing, 0, 256);
  rmm::device_buffer const empty{0, default_stream()};
  EXPECT_EQ(outside.faults.allocations(), outside.faults.deallocations());
  EXPECT_EQ(device.faults.allocations(), 0);
  EXPECT_EQ(dispatcher->live_blocks(), 0);
}

TEST_F(ReservationScopes, ServeSynchronousCallsToo) {
  ReservationScope const scope{reservation};
  auto current = rmm::mr::get_current_device_resource_ref();
  void* const pointer = current.allocate_sync(512, 256);
  EXPECT_EQ(reservation.spent(), 512);
  current.deallocate_sync(pointer, 512, 256);
  EXPECT_EQ(reservation.spent(), 0);
}

// -- frees
// -------------------------------------------------------------------------------------------------------------

TEST_F(ReservationScopes, AreFoundByFreesOnOtherThreadsOutsideThem) {
  std::optional<rmm::device_buffer> kept;
  {
    ReservationScope const scope{reservation};
    kept.emplace(1000, default_stream());
  }
  std::thread{[moved = std::move(kept)]() mutable { moved.reset(); }}.join();
  EXPECT_EQ(reservation.balance(), 8192);
}

TEST_F(ReservationScopes, AreNotChargedForFreesOfOthersBlocksInsideThem) {
  rmm::device_buffer foreign{1000, default_stream()};
  MemoryReservation other = device.adaptor.reserve(4_KiB);
  std::optional<rmm::device_buffer> of_other;
  {
    ReservationScope const scope{other};
    of_other.emplace(512, default_stream());
  }
  ReservationScope const scope{reservation};
  foreign = rmm::device_buffer{};
  of_other.reset();
  EXPECT_EQ(outside.faults.live_bytes(), 0);
  EXPECT_EQ(other.balance(), 4096);
  EXPECT_EQ(reservation.balance(), 8192);
}

TEST_F(ReservationScopes, SettleBlocksThatOutliveDispatcherReservationAndAdaptor) {
  testing::FaultControl faults;
  rmm::device_buffer kept;
  {
    ReservationAwareResourceAdaptor adaptor{testing::FaultyResource{testing::HostBackedDeviceResource{}, faults},
                                            1_MiB};
    MemoryReservation const brief = adaptor.reserve(4_KiB);
    ReservationScope const scope{brief};
    kept = rmm::device_buffer{1000, default_stream()};
  }
  dispatcher.reset();
  EXPECT_EQ(faults.live_bytes(), 1000);
  kept = rmm::device_buffer{};
  EXPECT_EQ(faults.live_bytes(), 0);
  EXPECT_EQ(faults.wrong_deallocations(), 0);
}

TEST_F(ReservationScopes, FindThousandsOfBlocksInAnyOrder) {
  MemoryReservation large = device.adaptor.reserve(768_KiB);
  std::vector<rmm::device_buffer> buffers;
  {
    ReservationScope const scope{large};
    for (int i = 0; i < 3000; ++i) { buffers.emplace_back(256, default_stream()); }
  }
  EXPECT_EQ(dispatcher->live_blocks(), 3000);
  for (std::size_t i = 0; i < buffers.size(); i += 2) { buffers[i] = rmm::device_buffer{}; }
  EXPECT_EQ(large.spent(), 1500 * 256);
  buffers.clear();
  EXPECT_EQ(large.spent(), 0);
  EXPECT_EQ(dispatcher->live_blocks(), 0);
}

TEST_F(ReservationScopes, LoseNothingWhicheverUpstreamAllocationFails) {
  for (std::int64_t n = 0;; ++n) {
    device.faults.fail_allocation(n, testing::Fails::Once);
    bool failed = false;
    try {
      ReservationScope const scope{reservation};
      rmm::device_buffer const result = third_party(1000);
    }
    catch (UpstreamOutOfMemory const&) {
      failed = true;
    }
    EXPECT_EQ(reservation.balance(), 8192) << "with allocation " << n << " failing";
    EXPECT_EQ(dispatcher->live_blocks(), 0);
    if (!failed) { break; }
  }
}

// -- threads
// -----------------------------------------------------------------------------------------------------------

TEST_F(ReservationScopes, AreOfTheThreadThatOpenedThem) {
  ReservationScope const scope{reservation};
  std::thread{[] {
    EXPECT_FALSE(in_reservation_scope());
    rmm::device_buffer const buffer{1000, default_stream()};
  }}.join();
  EXPECT_TRUE(in_reservation_scope());
  EXPECT_EQ(outside.faults.allocations(), 1);
  EXPECT_EQ(reservation.peak_spent(), 0);
}

TEST_F(ReservationScopes, KeepThreadsApartAndLetThemFreeEachOthersBlocks) {
  constexpr int threads = 8;
  std::vector<MemoryReservation> reservations;
  for (int i = 0; i < threads; ++i) { reservations.push_back(device.adaptor.reserve(64_KiB)); }
  std::array<std::vector<rmm::device_buffer>, threads> left;
  std::latch allocated{threads};
  std::vector<std::thread> running;
  for (int i = 0; i < threads; ++i) {
    running.emplace_back([&, i] {
      auto const mine = static_cast<std::size_t>(i);
      for (int round = 0; round < 200; ++round) {
        ReservationScope const scope{reservations[mine]};
        rmm::device_buffer const temporary{1000, default_stream()};
        if (round % 4 == 0) { left[mine].emplace_back(256, default_stream()); }
      }
      allocated.arrive_and_wait();
      EXPECT_EQ(reservations[mine].spent(), 50 * 256);
      allocated.wait();
    });
  }
  for (std::thread& thread : running) { thread.join(); }
  running.clear();
  for (std::size_t i = 0; i < threads; ++i) {
    running.emplace_back([&, i] { left[(i + 1) % threads].clear(); });
  }
  for (std::thread& thread : running) { thread.join(); }
  for (MemoryReservation const& each : reservations) { EXPECT_EQ(each.spent(), 0); }
  EXPECT_EQ(dispatcher->live_blocks(), 0);
  EXPECT_EQ(outside.faults.allocations(), 0);
}

TEST_F(ReservationScopes, ReuseAddressesWithoutMistakingTheOwner) {
  // Frees and allocations of the same few addresses by threads in and out of scopes, as fast as they can.
  std::atomic<int> wrong{0};
  std::vector<std::thread> running;
  for (int i = 0; i < 4; ++i) {
    running.emplace_back([&, scoped = i % 2 == 0] {
      for (int round = 0; round < 5000; ++round) {
        try {
          std::optional<ReservationScope> scope;
          if (scoped) { scope.emplace(reservation); }
          rmm::device_buffer const buffer{64, default_stream()};
        }
        catch (std::bad_alloc const&) {
          ++wrong;
        }
      }
    });
  }
  for (std::thread& thread : running) { thread.join(); }
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(reservation.balance(), 8192);
  EXPECT_EQ(outside.faults.live_bytes(), 0);
  EXPECT_EQ(outside.faults.allocations(), 10'000);
}

// -- the dispatcher
// ----------------------------------------------------------------------------------------------------

TEST_F(ReservationScopes, StopCountingWhenTheDispatcherIsRemoved) {
  Any const copy{rmm::mr::get_current_device_resource_ref()};
  ReservationScope const scope{reservation};
  dispatcher->remove();
  dispatcher->remove();
  { rmm::device_buffer const through_rmm{1000, default_stream()}; }
  { rmm::device_buffer const through_a_copy{1000, default_stream(), copy}; }
  EXPECT_EQ(outside.faults.allocations(), 2);
  EXPECT_EQ(device.faults.allocations(), 0);
  EXPECT_EQ(dispatcher->live_blocks(), 0);
}

TEST_F(ReservationScopes, AreRefusedWithoutADispatcher) {
  dispatcher.reset();
  EXPECT_THROW((void)ReservationScope{reservation}, NoScopeDispatcher);
  EXPECT_THROW((void)ReservationScope{reservation}, std::logic_error);
  EXPECT_FALSE(in_reservation_scope());
}

TEST_F(ReservationScopes, WorkBelowAdaptorsThatWereInstalledOnTop) {
  Any const ours{rmm::mr::get_current_device_resource_ref()};
  rmm::mr::statistics_resource_adaptor statistics{ours};
  rmm::mr::set_per_device_resource(current_device(), statistics);
  {
    ReservationScope const scope{reservation};
    rmm::device_buffer const buffer{1000, default_stream()};
    EXPECT_EQ(reservation.spent(), 1024);
    EXPECT_EQ(statistics.get_bytes_counter().value, 1000);
  }
  dispatcher->remove();
  rmm::device_buffer const after{1000, default_stream()};
  EXPECT_EQ(statistics.get_bytes_counter().value, 1000) << "what was installed on top stays";
  EXPECT_EQ(outside.faults.live_bytes(), 1000);
}

TEST_F(ReservationScopes, SurviveTwoDispatchersRemovedInAnyOrder) {
  for (bool const inner_first : {true, false}) {
    ScopeDispatcher first = install_scope_dispatcher(current_device());
    ScopeDispatcher second = install_scope_dispatcher(current_device());
    {
      ReservationScope const scope{reservation};
      rmm::device_buffer const buffer{1000, default_stream()};
      EXPECT_EQ(reservation.spent(), 1024) << "charged once";
    }
    (inner_first ? second : first).remove();
    (inner_first ? first : second).remove();
    ReservationScope const scope{reservation};
    EXPECT_NO_THROW((rmm::device_buffer{1000, default_stream()}));
    EXPECT_EQ(reservation.spent(), 0);
  }
}

TEST_F(ReservationScopes, MayStandOnTheCurrentDeviceResourceThemselves) {
  ReservationAwareResourceAdaptor above{Any{rmm::mr::get_current_device_resource_ref()}, 1_MiB};
  MemoryReservation const own = above.reserve(4_KiB);
  {
    ReservationScope const scope{own};
    rmm::device_buffer const buffer{1000, default_stream()};
    EXPECT_EQ(own.spent(), 1024) << "charged once";
    EXPECT_EQ(outside.faults.live_bytes(), 1000) << "the upstream's own request is not dispatched again";
  }
  EXPECT_EQ(own.spent(), 0);
  EXPECT_EQ(outside.faults.live_bytes(), 0);
}

TEST_F(ReservationScopes, FollowADispatcherThatMoves) {
  ScopeDispatcher moved = std::move(*dispatcher);
  dispatcher.reset();
  ReservationScope const scope{reservation};
  rmm::device_buffer const buffer{1000, default_stream()};
  EXPECT_EQ(reservation.spent(), 1024);
  ScopeDispatcher& same = moved;
  moved = std::move(same);
  EXPECT_EQ(moved.live_blocks(), 1);
  EXPECT_EQ(moved.device(), current_device());
}

// -- misuse
// ------------------------------------------------------------------------------------------------------------

using ReservationScopesDeathTest = ReservationScopes;

TEST_F(ReservationScopesDeathTest, EndTheProgramWhenTheyEndOutOfOrder) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        std::optional<ReservationScope> outer;
        outer.emplace(reservation);
        ReservationScope const inner{reservation};
        outer.reset();
      },
      "ended before a scope inside it");
}

TEST_F(ReservationScopesDeathTest, EndTheProgramWhenTheyEndOnAnotherThread) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        std::optional<ReservationScope> scope;
        scope.emplace(reservation);
        std::thread{[&] { scope.reset(); }}.join();
      },
      "ended on another thread");
}

// A task that starts at once and is resumed by whoever holds its handle.
struct Task {
  struct promise_type {
    Task get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
  std::coroutine_handle<promise_type> handle;
};

TEST_F(ReservationScopesDeathTest, EndTheProgramWhenTheySpanACoAwaitThatMovesToAnotherThread) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        auto const run = [](MemoryReservation const& from) -> Task {
          ReservationScope const scope{from};
          co_await std::suspend_always{};
        };
        Task const task = run(reservation);
        std::thread{[&] { task.handle.resume(); }}.join();
      },
      "must not span a co_await");
}

// A dispatcher that outlives RMM's table, as one in static storage may, and a buffer and a reservation beside it.
void exit_with_a_dispatcher() {
  static std::optional<ScopeDispatcher> installed;
  static std::optional<MemoryReservation> reservation;
  static std::optional<rmm::device_buffer> buffer;
  installed.emplace(install_scope_dispatcher(rmm::cuda_device_id{7}));
  reservation.emplace(ReservationAwareResourceAdaptor{testing::HostBackedDeviceResource{}, 1_MiB}.reserve(4_KiB));
  ReservationScope const scope{*reservation};
  cuda::mr::any_resource<device_accessible> const current{rmm::mr::get_per_device_resource_ref(rmm::cuda_device_id{7})};
  buffer.emplace(1000, default_stream(), current);
  std::exit(reservation->spent() == 1024 ? 0 : 1);
}

TEST(ProcessExitDeathTest, IsCleanWithADispatcherInstalledAndAScopeOpen) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(exit_with_a_dispatcher(), ::testing::ExitedWithCode(0), "");
}

TEST_F(ReservationScopes, CanBeSeenByASchedulerBeforeATaskSuspends) {
  bool seen = false;
  auto const run = [](MemoryReservation const& from, bool& in_scope) -> Task {
    {
      ReservationScope const scope{from};
      in_scope = in_reservation_scope();
    }
    co_await std::suspend_always{};
  };
  Task const task = run(reservation, seen);
  EXPECT_TRUE(seen);
  EXPECT_FALSE(in_reservation_scope());
  task.handle.resume();
}

}  // namespace
}  // namespace earmark
