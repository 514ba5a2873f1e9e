// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Faults that users of other systems met, with the smallest input that shows them, and what is right instead. Each test
// names the project and the thread that it is taken from. What other tests of this folder show already is not here.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "earmark/testing/manual_clock.hpp"
#include "earmark/testing/manual_stream_events.hpp"
#include "memory/asked.hpp"
#include "memory/watched_adaptor.hpp"

namespace earmark {
namespace {

using Resource = HostMemoryReservation::Resource;

struct Block {
  Resource resource;
  void* pointer;
  std::size_t bytes;
};
Block take(Resource resource, std::size_t bytes) {
  void* const pointer = resource.allocate_sync(bytes, 64);
  return {std::move(resource), pointer, bytes};
}
void free(Block& block) { block.resource.deallocate_sync(block.pointer, block.bytes, 64); }

void run_on_threads(unsigned threads, std::function<void(unsigned)> const& body) {
  std::vector<std::thread> running;
  for (unsigned i = 0; i < threads; ++i) {
    running.emplace_back([&body, i] { body(i); });
  }
  for (std::thread& thread : running) { thread.join(); }
}

void expect_nothing_is_left(WatchedHost const& host) {
  EXPECT_EQ(host.adaptor.committed(), 0);
  EXPECT_EQ(host.adaptor.total_reserved(), 0);
  EXPECT_TRUE(host.adaptor.outstanding().empty());
  EXPECT_EQ(host.faults.live_bytes(), 0);
  EXPECT_EQ(host.faults.wrong_deallocations(), 0);
}

// -- admission and accounting ----------------------------------------------------------------------------------------

// rapidsmpf#1162: room was computed from allocated bytes alone, so what was freed for a request did not serve it.
TEST(FieldReports, RoomIsMadeForARequestOnlyWhenReservedBytesCountToo) {
  WatchedHost host{1024};
  HostMemoryReservation held = host.adaptor.reserve(512);
  HostMemoryReservation other = host.adaptor.reserve(512);
  Block block = take(other.resource(), 512);
  other.close();
  Asked asked{host.adaptor, 768};
  EXPECT_EQ(host.adaptor.available(), 0);
  EXPECT_EQ(host.adaptor.pressure(), 768);
  free(block);
  EXPECT_EQ(asked.outcome(), Outcome::Waits);
  EXPECT_EQ(host.adaptor.pressure(), 256) << "512 are set aside, though nothing of them is allocated";
  held.close();
  EXPECT_EQ(asked.outcome(), Outcome::Granted);
  EXPECT_EQ(host.adaptor.pressure(), 0);
}

// rapidsmpf#1164: nothing freed memory for a request that waited, until it had overbooked.
TEST(FieldReports, ARequestThatWaitsMakesOthersFreeMemoryAndPassesNoLimit) {
  WatchedHost host{1024};
  HostMemoryReservation cache = host.adaptor.reserve(1024);
  std::vector<Block> spillable;
  for (int i = 0; i < 16; ++i) { spillable.push_back(take(cache.resource(), 64)); }
  cache.close();
  PressureSubscription const listening = host.adaptor.on_pressure([&](std::int64_t missing) {
    for (; missing > 0 && !spillable.empty(); missing -= 64) {
      free(spillable.back());
      spillable.pop_back();
    }
  });
  EXPECT_EQ(host.adaptor.reserve_blocking(320).granted(), 320);
  EXPECT_EQ(spillable.size(), 11U) << "as much was freed as was missing";
  EXPECT_EQ(host.adaptor.peak_committed(), 1024);
  for (Block& block : spillable) { free(block); }
}

// spark-rapids#7706 and #11742: what was freed fell short, and nobody was asked again.
TEST(FieldReports, WhoFreesTooLittleIsToldOfTheRest) {
  WatchedHost host{1024};
  HostMemoryReservation all = host.adaptor.reserve(1024);
  std::vector<std::int64_t> told;
  PressureSubscription const listening = host.adaptor.on_pressure([&](std::int64_t missing) {
    told.push_back(missing);
    if (missing > 0) { (void)all.split(128); }
  });
  Asked const asked{host.adaptor, 320};
  EXPECT_EQ(asked.outcome(), Outcome::Granted);
  EXPECT_EQ(told, (std::vector<std::int64_t>{320, 192, 64, 0}));
}

// rapidsmpf#1113, arrow#43885, arrow#35960: sizes near the top wrapped, also in counters of parents.
TEST(FieldReports, SizesNearTheTopOfTheirTypeChangeNoCounterOfAnyParent) {
  WatchedHost host{SIZE_MAX};
  HostMemoryReservation lender = host.adaptor.reserve(1_GiB, {.exhausted = ExhaustedPolicy::GrowOrOverbook});
  HostReservationAwareResourceAdaptor nested{lender, SIZE_MAX};
  Consumer const consumer = nested.make_consumer("query");
  for (std::size_t const bytes :
       {SIZE_MAX, SIZE_MAX - 63, SIZE_MAX - 512, std::size_t{1} << 63, std::size_t{1} << 60}) {
    for (Consumer const* whose : {static_cast<Consumer const*>(nullptr), &consumer}) {
      for (Backing const backing : {Backing::OnDemand, Backing::Preallocated}) {
        ReservationOptions const options{.overbooking = AllowOverbooking::YES, .backing = backing, .consumer = whose};
        EXPECT_THROW((void)nested.reserve(bytes, options), ImpossibleRequest) << bytes;
        EXPECT_THROW((void)nested.reserve_blocking(bytes, options), ImpossibleRequest) << bytes;
        EXPECT_FALSE(nested.try_reserve(bytes, options)) << bytes;
      }
    }
    for (std::size_t alignment = 1; alignment <= 4096; alignment *= 2) {
      EXPECT_THROW((void)lender.resource().allocate_sync(bytes, alignment), ReservationExhausted) << bytes;
    }
  }
  EXPECT_EQ(nested.committed(), 0);
  EXPECT_EQ(consumer.used(), 0);
  EXPECT_EQ(lender.spent(), 0);
  EXPECT_EQ(host.adaptor.committed(), std::int64_t{1} << 30);
  EXPECT_EQ(host.faults.allocations() + host.faults.failures(), 0) << "the upstream is not asked";
}

// rapidsmpf#672, cudf#23088: what was there and what was needed were printed as the same number of MiB.
TEST(FieldReports, TextOfAnErrorTellsSizesApartThatDifferByABlock) {
  WatchedHost host{2_MiB};
  HostMemoryReservation const reservation = host.adaptor.reserve(1_MiB);
  try {
    (void)reservation.resource().allocate_sync(1_MiB + 1, 64);
    FAIL() << "it had no more than 1 MiB";
  }
  catch (ReservationExhausted const& error) {
    EXPECT_EQ(error.fields().requested, 1'048'640);
    EXPECT_EQ(error.fields().shortfall, 64);
    EXPECT_NE(std::string{error.what()}.find("1048640"), std::string::npos) << error.what();
  }
}

// cuCascade#59: a free that lay half inside its reservation was credited wrongly, and woke nobody.
TEST(FieldReports, FreesOfWhatStraddledItsReservationAreCreditedInAnyOrder) {
  for (bool const second_first : {true, false}) {
    WatchedHost host{1536, {.granularity = 256}};
    HostMemoryReservation reservation = host.adaptor.reserve(1_KiB, {.exhausted = ExhaustedPolicy::GrowOrRefuse});
    std::array blocks{take(reservation.resource(), 768), take(reservation.resource(), 768)};
    EXPECT_EQ(host.adaptor.committed(), 1536) << "it grew by what was missing";
    EXPECT_EQ(reservation.spent(), 1536);
    std::array waiters{Asked{host.adaptor, 1536}, Asked{host.adaptor, 1536}};
    free(blocks[second_first ? 1 : 0]);
    EXPECT_EQ(reservation.balance(), 768);
    EXPECT_EQ(host.adaptor.committed(), 1536);
    free(blocks[second_first ? 0 : 1]);
    EXPECT_EQ(reservation.balance(), 1536);
    EXPECT_EQ(waiters[0].outcome(), Outcome::Waits) << "it is all set aside still";
    reservation.close();
    EXPECT_EQ(waiters[0].outcome(), Outcome::Granted);
    EXPECT_EQ(waiters[1].outcome(), Outcome::Waits);
    waiters[0].drop();
    EXPECT_EQ(waiters[1].outcome(), Outcome::Granted);
    waiters[1].drop();
    expect_nothing_is_left(host);
  }
}

// cuCascade#59 and #36: the same where the surplus passes the limit.
TEST(FieldReports, WhatAnAllocationOverbookedIsGoneWithItsReservation) {
  WatchedHost host{1_KiB, {.granularity = 256}};
  HostMemoryReservation reservation = host.adaptor.reserve(1_KiB, {.exhausted = ExhaustedPolicy::GrowOrOverbook});
  std::array blocks{take(reservation.resource(), 768), take(reservation.resource(), 768)};
  EXPECT_EQ(host.adaptor.available(), -512);
  reservation.close();
  free(blocks[1]);
  EXPECT_EQ(host.adaptor.available(), 256);
  free(blocks[0]);
  expect_nothing_is_left(host);
}

// cuCascade#100: differences of unsigned numbers wrapped when more was in use than the limit allowed.
TEST(FieldReports, QuestionsAboutLevelsAreAnsweredAboveTheLimitToo) {
  WatchedHost host{1024};
  HostMemoryReservation held = host.adaptor.reserve(1024);
  host.adaptor.set_limit(256);
  EXPECT_EQ(host.adaptor.available(), -768);
  EXPECT_EQ(host.adaptor.pressure(), 768);
  EXPECT_EQ(host.adaptor.report().available, -768);
  EXPECT_FALSE(host.adaptor.try_reserve(64));
  EXPECT_EQ(host.adaptor.reserve_up_to(64, 0).granted(), 0);
  held.close();
  EXPECT_EQ(host.adaptor.available(), 256);
  EXPECT_EQ(host.adaptor.pressure(), 0);
}

// cuCascade#46: blocks were lost to the pool with every query.
TEST(FieldReports, TenThousandRoundsEndAsTheyBegan) {
  for (Backing const backing : {Backing::OnDemand, Backing::Preallocated}) {
    WatchedHost host{64_KiB};
    HostMemoryReservation lasting = host.adaptor.reserve(16_KiB, {.backing = backing});
    for (std::size_t round = 0; round < 10'000; ++round) {
      HostMemoryReservation brief = host.adaptor.reserve(2_KiB, {.backing = backing});
      Block first = take(lasting.resource(), 1 + round % 5000);
      Block second = take(brief.resource(), 1 + round % 2000);
      Block third = take(lasting.resource(), 1 + round % 3000);
      if (round % 2 == 0) { brief.close(); }
      free(first);
      free(second);
      free(third);
    }
    EXPECT_EQ(lasting.balance(), 16'384);
    EXPECT_EQ(host.adaptor.committed(), 16'384);
    EXPECT_EQ(host.adaptor.report().largest_hole.value_or(16'384), 16'384) << "all is one piece again";
    lasting.close();
    expect_nothing_is_left(host);
  }
}

// cuCascade#36: a request beyond the limit waited for ever.
TEST(FieldReports, ARequestUpToMoreThanTheLimitGetsTheLimitAndSaysSo) {
  WatchedHost host{1024};
  EXPECT_EQ(host.adaptor.reserve_up_to(1025, 1).granted(), 1024);
  EXPECT_THROW((void)host.adaptor.reserve_up_to(2048, 1025), ImpossibleRequest);
}

// cuCascade#12 and #114: a free was credited to whatever was attached to the freeing stream.
TEST(FieldReports, AFreeOnAnothersStreamCreditsTheReservationItWasDrawnFrom) {
  testing::ManualStreamEvents events;
  WatchedDevice device{8_KiB, {.events = &events}};
  auto const stream = testing::ManualStreamEvents::stream;
  for (Backing const backing : {Backing::OnDemand, Backing::Preallocated}) {
    MemoryReservation const a = device.adaptor.reserve(2_KiB, {.backing = backing});
    MemoryReservation const b = device.adaptor.reserve(2_KiB, {.backing = backing});
    auto of_a = a.resource();
    auto of_b = b.resource();
    void* const first = of_a.allocate(stream(1), 1024, 256);
    void* const second = of_b.allocate(stream(2), 512, 256);
    of_a.deallocate(stream(2), first, 1024, 256);
    EXPECT_EQ(a.balance(), 2048);
    EXPECT_EQ(b.balance(), 1536);
    of_b.deallocate(stream(1), second, 512, 256);
    EXPECT_EQ(b.balance(), 2048);
  }
  EXPECT_EQ(device.adaptor.committed(), 0);
}

// rmm#2303, #2312, #2404: records of live blocks went wrong with many small and empty ones on many threads.
TEST(FieldReports, CountersAreExactUnderManyThreadsWithSmallAndEmptyBlocks) {
  constexpr unsigned threads = 16;
  constexpr unsigned rounds = 650;  // ten times each of 0 to 64 bytes
  WatchedHost host{1_MiB, {.tracking = Tracking::Exact}};
  HostMemoryReservation reservation = host.adaptor.reserve(64_KiB);
  run_on_threads(threads, [&](unsigned thread) {
    Resource resource = reservation.resource();
    HostReservationAwareResourceAdaptor direct = host.adaptor;
    for (unsigned round = 0; round < rounds; ++round) {
      std::size_t const bytes = (round + thread) % 65;
      void* const mine = resource.allocate_sync(bytes, 64);
      void* const straight = direct.allocate_sync(bytes, 64);
      EXPECT_EQ(mine == nullptr, bytes == 0);
      resource.deallocate_sync(mine, bytes, 64);
      direct.deallocate_sync(straight, bytes, 64);
    }
  });
  EXPECT_EQ(host.adaptor.allocation_count(), threads * rounds * 2 * 64 / 65);
  EXPECT_EQ(host.adaptor.total_allocated(), host.adaptor.allocation_count() * 64);
  EXPECT_EQ(host.adaptor.current_allocated(), 0);
  EXPECT_EQ(reservation.balance(), 65'536);
  reservation.close();
  expect_nothing_is_left(host);
}

// datafusion#24739: a workspace that had been set aside was lost to another consumer when it was needed.
TEST(FieldReports, AWorkspaceThatWasSetAsideIsThereWhenItIsNeededWhateverOthersTake) {
  WatchedHost host{4_KiB};
  HostMemoryReservation sorter = host.adaptor.reserve(2_KiB);
  std::atomic<bool> done{false};
  std::thread hostile{[&] {
    while (!done) { HostMemoryReservation const taken = host.adaptor.reserve_up_to(4_KiB, 0); }
  }};
  for (int round = 0; round < 2000; ++round) {
    HostMemoryReservation workspace = sorter.split(1_KiB);
    Block block = take(workspace.resource(), 1_KiB);
    if (round % 2 == 0) { host.adaptor.set_limit(round % 4 == 0 ? 2_KiB : 4_KiB); }
    free(block);
    sorter.merge(std::move(workspace));
    ASSERT_EQ(sorter.balance(), 2048);
  }
  done = true;
  hostile.join();
}

// datafusion#15017, #16979: a query that passed with 30 MB failed with 100 MB.
TEST(FieldReports, WhatPassesAtALimitPassesAtEveryLargerOne) {
  auto const passes = [](std::size_t limit) {
    WatchedHost host{limit};
    try {
      HostMemoryReservation merging = host.adaptor.reserve(512);
      HostMemoryReservation runs =
          host.adaptor.reserve_up_to(8_KiB, 1_KiB, {.exhausted = ExhaustedPolicy::GrowOrRefuse});
      std::vector<Block> blocks;
      while (runs.balance() > 0) { blocks.push_back(take(runs.resource(), 64)); }
      Block merged = take(merging.resource(), 512);
      free(merged);
      for (Block& block : blocks) { free(block); }
      return true;
    }
    catch (ReservationRefused const&) {
      return false;
    }
  };
  bool passed = false;
  for (std::size_t limit = 0; limit <= 16_KiB; limit += 64) {
    bool const now = passes(limit);
    EXPECT_TRUE(now || !passed) << limit;
    passed = now;
  }
  EXPECT_TRUE(passed);
}

// datafusion-comet#6127, #1731: recording memory that is there already and asking for memory were one call, which
// failed where it must not, and gave back more than it had got.
TEST(FieldReports, MemoryThatIsThereAlreadyIsRecordedAndOnlyWhatWasGotIsGivenBack) {
  WatchedHost host{1_KiB, {.unreserved = UnreservedPolicy::Unbounded}};
  HostReservationAwareResourceAdaptor direct = host.adaptor;
  void* const there = direct.allocate_sync(1536, 64);
  EXPECT_EQ(host.adaptor.available(), -512);
  EXPECT_FALSE(host.adaptor.try_reserve(64));
  direct.deallocate_sync(there, 1536, 64);
  EXPECT_EQ(host.adaptor.available(), 1024);
  HostMemoryReservation first = host.adaptor.reserve(768);
  HostMemoryReservation part = host.adaptor.reserve_up_to(512, 64);
  EXPECT_EQ(part.granted(), 256);
  part.close();
  EXPECT_EQ(host.adaptor.committed(), 768);
  first.close();
  expect_nothing_is_left(host);
}

// duckdb#25959, duckdb#22203: lowering the limit failed while nothing could be freed, went on failing when something
// could, and resetting it did not help.
TEST(FieldReports, ALimitIsLoweredRaisedAndResetWhileNothingCanBeFreed) {
  WatchedHost host{1024};
  HostMemoryReservation all = host.adaptor.reserve(1024);
  Asked small{host.adaptor, 256};
  Asked large{host.adaptor, 1024};
  host.adaptor.set_limit(512);
  EXPECT_EQ(host.adaptor.limit(), 512);
  EXPECT_EQ(host.adaptor.pressure(), 768) << "the deficit, and what the first in the queue wants";
  EXPECT_EQ(large.outcome(), Outcome::Impossible);
  EXPECT_EQ(small.outcome(), Outcome::Waits);

  // Only now comes somebody who can free memory.
  PressureSubscription const spiller = host.adaptor.on_pressure([&](std::int64_t missing) {
    if (missing > 0 && missing <= all.balance()) { (void)all.split(static_cast<std::size_t>(missing)); }
  });
  host.adaptor.set_limit(384);
  EXPECT_EQ(small.outcome(), Outcome::Granted);
  EXPECT_EQ(host.adaptor.committed(), 384) << "what was missing came back, and no byte more";

  Asked again{host.adaptor, 320};
  EXPECT_EQ(again.outcome(), Outcome::Waits) << "there are 128 to free, not more";
  host.adaptor.set_limit(1024);
  EXPECT_EQ(again.outcome(), Outcome::Granted);
  EXPECT_EQ(host.adaptor.committed(), 704);
  EXPECT_EQ(host.adaptor.reserve_up_to(1024, 0).granted(), 320);
}

// cupy#7678: 800 MB were refused under a limit of 1 GB with nothing in use.
TEST(FieldReports, WhatWasFreedCanBeTakenAgainInAnotherSize) {
  for (Backing const backing : {Backing::OnDemand, Backing::Preallocated}) {
    WatchedHost host{1000 * 64};
    HostMemoryReservation const reservation = host.adaptor.reserve(1000 * 64, {.backing = backing});
    Block first = take(reservation.resource(), 500 * 64);
    free(first);
    Block second = take(reservation.resource(), 800 * 64);
    free(second);
  }
}

// cuCascade's and rapidsmpf's sources: a host limit that live bytes do not count against, and a request that is cut
// down without a word when no other reservation is alive.
TEST(FieldReports, NoReservationIsSmallerThanAskedForBecauseOnlyAllocationsAreAlive) {
  WatchedHost host{1024};
  HostReservationAwareResourceAdaptor direct = host.adaptor;
  void* const live = direct.allocate_sync(512, 64);
  EXPECT_THROW((void)host.adaptor.reserve(1024), ReservationRefused);
  EXPECT_FALSE(host.adaptor.try_reserve(576));
  Asked asked{host.adaptor, 1024};
  EXPECT_EQ(asked.outcome(), Outcome::Waits);
  direct.deallocate_sync(live, 512, 64);
  EXPECT_EQ(asked.outcome(), Outcome::Granted);
  EXPECT_EQ(asked.reservation().granted(), 1024);
}

// cuCascade's source: a counter of reserved bytes that shrinking leaves as it was.
TEST(FieldReports, ShrinkingLowersWhatIsReservedAsWellAsWhatIsCommitted) {
  WatchedHost host{1024};
  HostMemoryReservation reservation = host.adaptor.reserve(1024);
  Block block = take(reservation.resource(), 256);
  EXPECT_EQ(reservation.shrink_to_fit(), 768);
  EXPECT_EQ(host.adaptor.total_reserved(), 256);
  EXPECT_EQ(host.adaptor.committed(), 256);
  free(block);
  EXPECT_EQ(reservation.shrink_to_fit(), 256);
  EXPECT_EQ(host.adaptor.total_reserved(), 0);
}

// rmm's source: adding first and taking back refuses innocents while somebody asks for too much.
TEST(FieldReports, WhoAsksForTooMuchGetsNobodyElseRefused) {
  WatchedHost host{64_KiB};
  HostMemoryReservation const held = host.adaptor.reserve(32_KiB);
  std::atomic<int> refused{0};
  run_on_threads(4, [&](unsigned thread) {
    for (int round = 0; round < 3000; ++round) {
      if (thread < 2) {
        if (!host.adaptor.try_reserve(16_KiB)) { refused.fetch_add(1); }
      } else {
        EXPECT_FALSE(host.adaptor.try_reserve(48_KiB));
      }
    }
  });
  EXPECT_EQ(refused, 0);
}

// -- waiting, deadlock, locks ----------------------------------------------------------------------------------------

// velox#9734, rmm#1504: freeing memory needed memory, or the resource, and all stood still.
TEST(FieldReports, WhoFreesMemoryMayUseTheSameResourceAndItsOwnWorkspaceMeanwhile) {
  WatchedHost host{1024};
  HostMemoryReservation cache = host.adaptor.reserve(768);
  HostMemoryReservation const workspace = host.adaptor.reserve(256, {.label = "bounce buffer"});
  Block cached = take(cache.resource(), 768);
  cache.close();
  int spilled = 0;
  PressureSubscription const spiller = host.adaptor.on_pressure([&](std::int64_t missing) {
    if (missing == 0 || spilled != 0) { return; }
    EXPECT_EQ(host.adaptor.current_allocated(), 768);
    Block bounce = take(workspace.resource(), 256);  // everything that there is, is in use now
    PressureSubscription brief = host.adaptor.on_pressure([](std::int64_t) {});
    EXPECT_FALSE(host.adaptor.try_reserve(64));
    Asked const nested{host.adaptor, 64, {.label = "asked while told"}};
    EXPECT_EQ(host.adaptor.report().waiting.size(), 2U);
    free(cached);
    free(bounce);
    ++spilled;
  });
  Asked const asked{host.adaptor, 512};
  EXPECT_EQ(asked.outcome(), Outcome::Granted);
  EXPECT_EQ(spilled, 1);
}

// cuCascade's source: a shutdown woke one of three who waited, and later requests waited for ever.
TEST(FieldReports, AShutdownWakesEveryThreadThatWaits) {
  WatchedHost host{1024};
  HostMemoryReservation const all = host.adaptor.reserve(1024);
  std::array<std::optional<Blocked>, 3> threads;
  for (auto& thread : threads) { thread.emplace(host.adaptor, 512); }
  await_waiting(host.adaptor, 3);
  host.adaptor.shutdown();
  for (auto& thread : threads) { EXPECT_EQ(thread->outcome(), Outcome::Aborted); }
  EXPECT_THROW((void)host.adaptor.reserve_blocking(512), ReservationAborted);
}

// cuCascade's source: one wake-up went to a waiter that it did not serve, and one that it would have served slept on.
TEST(FieldReports, AWakeUpReachesWhoItServesWhoeverElseWaits) {
  WatchedHost host{100 * 64};
  HostMemoryReservation all = host.adaptor.reserve(100 * 64);
  WaitOptions urgent;
  urgent.priority = 1;
  Blocked large{host.adaptor, 100 * 64};
  await_waiting(host.adaptor, 1);
  Blocked small{host.adaptor, 10 * 64, {}, urgent};
  await_waiting(host.adaptor, 2);
  (void)all.split(20 * 64);
  EXPECT_EQ(small.outcome(), Outcome::Granted);
  EXPECT_EQ(waiting(host.adaptor), 1U);
  small.reservation().close();
  all.close();
  EXPECT_EQ(large.outcome(), Outcome::Granted);
}

// spark-rapids#12211: taking from a pool of one buffer blocked under the lock that giving it back needs.
TEST(FieldReports, EightThreadsTakeTurnsWithOneBuffer) {
  WatchedHost host{4_KiB};
  std::atomic<int> turns{0};
  run_on_threads(8, [&](unsigned) {
    HostReservationAwareResourceAdaptor adaptor = host.adaptor;
    for (int round = 0; round < 50; ++round) {
      HostMemoryReservation const turn = adaptor.reserve_blocking(4_KiB);
      Block buffer = take(turn.resource(), 4_KiB);
      turns.fetch_add(1);
      free(buffer);
    }
  });
  EXPECT_EQ(turns, 400);
  EXPECT_EQ(host.faults.peak_live_bytes(), 4096);
  expect_nothing_is_left(host);
}

// As allocators written for C do.
struct ReturnsNull {
  void* allocate(cuda::stream_ref, std::size_t, std::size_t) { return nullptr; }
  void deallocate(cuda::stream_ref, void*, std::size_t, std::size_t) noexcept {}
  void* allocate_sync(std::size_t, std::size_t) { return nullptr; }
  void deallocate_sync(void*, std::size_t, std::size_t) noexcept {}
  bool operator==(ReturnsNull const&) const { return true; }
  friend constexpr void get_property(ReturnsNull const&, host_accessible) noexcept {}
};

TEST(FieldReports, AnUpstreamThatReturnsNullIsOutOfMemory) {
  HostReservationAwareResourceAdaptor adaptor{ReturnsNull{}, 4096};
  HostMemoryReservation reservation = adaptor.reserve(1024);
  EXPECT_THROW((void)reservation.resource().allocate_sync(64, 64), UpstreamOutOfMemory);
  EXPECT_THROW((void)adaptor.allocate_sync(64, 64), UpstreamOutOfMemory);
  EXPECT_THROW((void)adaptor.reserve(64, {.backing = Backing::Preallocated}), UpstreamOutOfMemory);
  EXPECT_EQ(reservation.balance(), 1024);
  EXPECT_EQ(adaptor.committed(), 1024);
}

}  // namespace
}  // namespace earmark
