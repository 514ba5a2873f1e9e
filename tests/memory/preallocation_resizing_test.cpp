// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Preallocated reservations that grow, shrink, are split and merged: their block goes back and others are taken, or
// everything stays what it was.
#include <gtest/gtest.h>

#include <cstring>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "memory/preallocated.hpp"

namespace earmark {
namespace {

TEST_F(Preallocated, KeepsItsBlockWhileSomethingIsLive) {
  HostMemoryReservation arena = adaptor.reserve(1024, preallocated);
  HostMemoryReservation plain = adaptor.reserve(256);
  void* const piece = take(arena, 64);
  EXPECT_THROW((void)arena.split(64), ReservationMismatch);
  EXPECT_THROW(arena.grow(64), ReservationMismatch);
  EXPECT_FALSE(arena.try_grow(64));
  EXPECT_EQ(arena.shrink_to_fit(), 0);
  EXPECT_THROW(arena.merge(std::move(plain)), ReservationMismatch);
  ASSERT_TRUE(plain) << "both are unharmed";
  EXPECT_THROW(plain.merge(std::move(arena)), ReservationMismatch);
  ASSERT_TRUE(arena);
  EXPECT_EQ(arena.granted(), 1024);
  EXPECT_EQ(plain.granted(), 256);
  EXPECT_EQ(host.faults.allocations(), 1);
  free(arena, piece, 64);
}

TEST_F(Preallocated, SplitsGrowsMergesAndShrinksWhenNothingIsLive) {
  HostMemoryReservation arena = adaptor.reserve(1024, preallocated);
  HostMemoryReservation part = arena.split(256);
  EXPECT_EQ(arena.balance(), 768);
  EXPECT_EQ(part.balance(), 256);
  EXPECT_EQ(host.faults.live_bytes(), 1024);
  free(part, take(part, 256), 256);
  free(arena, take(arena, 768), 768);

  arena.grow(256);
  EXPECT_EQ(arena.granted(), 1024);
  free(arena, take(arena, 1024), 1024);
  arena.merge(std::move(part));
  EXPECT_EQ(arena.granted(), 1280);
  free(arena, take(arena, 1280), 1280);
  HostMemoryReservation plain = adaptor.reserve(64);
  arena.merge(std::move(plain));
  free(arena, take(arena, 1344), 1344);
  EXPECT_EQ(host.faults.live_bytes(), 1344);

  HostMemoryReservation target = adaptor.reserve(64);
  target.merge(std::move(arena));
  EXPECT_EQ(target.granted(), 1408);
  EXPECT_EQ(host.faults.live_bytes(), 0);
  free(target, take(target, 1408), 1408);

  HostMemoryReservation again = adaptor.reserve(1024, preallocated);
  EXPECT_EQ(again.shrink_to_fit(), 1024);
  EXPECT_EQ(host.faults.live_bytes(), 0);
  EXPECT_EQ(adaptor.committed(), 1408);
  EXPECT_THROW((void)take(again, 64), ReservationExhausted);
}

// Whatever change of the block fails: the bytes are where they were, or back.
TEST_F(Preallocated, SurvivesTheNthFailureOfTheUpstream) {
  for (int n = 0; n < 6; ++n) {
    HostMemoryReservation arena = adaptor.reserve(1024, preallocated);
    HostMemoryReservation other = adaptor.reserve(256, preallocated);
    host.faults.fail_allocation(n, testing::Fails::Once);
    try {
      HostMemoryReservation part = arena.split(256);
      arena.grow(128);
      arena.merge(std::move(part));
      other.merge(std::move(arena));
    }
    catch (std::bad_alloc const&) {
      EXPECT_LT(n, 5);
    }
    host.faults.fail_none();
    for (HostMemoryReservation* one : {&arena, &other}) {
      if (!*one || one->closed() || one->balance() < 64) { continue; }
      free(*one, take(*one, 64), 64);
    }
    arena = {};
    other = {};
    EXPECT_EQ(adaptor.committed(), 0) << n;
    EXPECT_EQ(host.faults.live_bytes(), 0) << n;
  }
}

// Who allocates meanwhile gets a piece of the old block or of the new one, or is refused.
TEST_F(Preallocated, IsGrownSplitAndMergedWhileOthersAllocate) {
  HostMemoryReservation arena = adaptor.reserve(1024, preallocated);
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([resource = arena.resource()]() mutable {
      for (int i = 0; i < 3000; ++i) {
        try {
          void* const piece = resource.allocate_sync(512, 64);
          std::memset(piece, 1, 512);
          resource.deallocate_sync(piece, 512, 64);
        }
        catch (ReservationExhausted const&) {
          // the other one has it, or it is split off
        }
        std::this_thread::yield();
      }
    });
  }
  for (int i = 0; i < 3000; ++i) {
    try {
      HostMemoryReservation part = arena.split(256);
      while (part) {
        try {
          arena.merge(std::move(part));
        }
        catch (ReservationMismatch const&) {
          std::this_thread::yield();
        }
      }
    }
    catch (ReservationMismatch const&) {
      std::this_thread::yield();
    }
    EXPECT_EQ(arena.granted(), 1024);
    EXPECT_LE(arena.spent(), 1024);
  }
  for (std::thread& thread : threads) { thread.join(); }
  EXPECT_EQ(arena.balance(), 1024);
  EXPECT_EQ(adaptor.committed(), 1024);
  EXPECT_EQ(host.faults.live_bytes(), 1024);
}

TEST_F(Preallocated, TakesInNoReservationWithLiveAllocations) {
  HostMemoryReservation block = adaptor.reserve(1024, preallocated);
  HostMemoryReservation busy = adaptor.reserve(1024);
  void* const live = take(busy, 256);
  EXPECT_THROW(block.merge(std::move(busy)), ReservationMismatch);
  ASSERT_TRUE(busy);
  EXPECT_EQ(busy.balance(), 768);
  EXPECT_EQ(block.balance(), 1024);
  free(busy, live, 256);
  block.merge(std::move(busy));
  EXPECT_EQ(block.balance(), 2048);
  void* const whole = take(block, 2048);
  free(block, whole, 2048);
}

// -- what cannot be changed stays ------------------------------------------------------------------------------------

// The upstream fails once: then it has the old block again.
TEST_F(Preallocated, KeepsWhatItHadWhenItCannotGrow) {
  HostMemoryReservation arena = adaptor.reserve(256, preallocated);
  host.faults.fail_allocation(0, testing::Fails::Once);
  EXPECT_THROW(arena.grow(64), UpstreamOutOfMemory);
  EXPECT_FALSE(arena.closed());
  EXPECT_EQ(arena.granted(), 256);
  EXPECT_EQ(adaptor.committed(), 256) << "what it grew by went back";
  free(arena, take(arena, 256), 256);
  arena.grow(64);
  free(arena, take(arena, 320), 320);
}

TEST_F(Preallocated, KeepsWhatItHadWhenItCannotBeSplit) {
  for (int const failing : {0, 1}) {
    HostMemoryReservation arena = adaptor.reserve(1024, preallocated);
    host.faults.fail_allocation(failing, testing::Fails::Once);
    EXPECT_THROW((void)arena.split(256), UpstreamOutOfMemory);
    EXPECT_FALSE(arena.closed());
    EXPECT_EQ(arena.balance(), 1024);
    EXPECT_EQ(adaptor.committed(), 1024);
    EXPECT_EQ(host.faults.live_bytes(), 1024);
    free(arena, take(arena, 1024), 1024);
  }
}

TEST_F(Preallocated, KeepsWhatBothHadWhenTheyCannotBeMerged) {
  HostMemoryReservation arena = adaptor.reserve(1024, preallocated);
  HostMemoryReservation other = adaptor.reserve(256, preallocated);
  HostMemoryReservation plain = adaptor.reserve(128);
  for (HostMemoryReservation* one : {&other, &plain}) {
    std::int64_t const had = one->granted();
    host.faults.fail_allocation(0, testing::Fails::Once);
    EXPECT_THROW(arena.merge(std::move(*one)), UpstreamOutOfMemory);
    ASSERT_TRUE(*one);
    EXPECT_FALSE(arena.closed());
    EXPECT_FALSE(one->closed());
    EXPECT_EQ(arena.balance(), 1024);
    EXPECT_EQ(one->balance(), had);
    free(arena, take(arena, 1024), 1024);
    free(*one, take(*one, static_cast<std::size_t>(had)), static_cast<std::size_t>(had));
    EXPECT_EQ(adaptor.committed(), 1024 + 256 + 128);
  }
}

TEST_F(Preallocated, ClosesWhenNotEvenItsOldBlockIsToBeHad) {
  HostMemoryReservation arena = adaptor.reserve(256, preallocated);
  HostMemoryReservation other = adaptor.reserve(128, preallocated);
  host.faults.fail_allocation(0, testing::Fails::Always);
  EXPECT_THROW(arena.merge(std::move(other)), UpstreamOutOfMemory);
  EXPECT_TRUE(arena.closed());
  EXPECT_TRUE(other.closed());
  EXPECT_EQ(adaptor.committed(), 0);
  EXPECT_EQ(host.faults.live_bytes(), 0);
  EXPECT_THROW((void)take(arena, 64), ReservationClosed);
}

TEST_F(Preallocated, KeepsItsBlockUntouchedWhenTheBudgetHasNoMore) {
  HostMemoryReservation arena = adaptor.reserve(4096, preallocated);
  HostMemoryReservation const other = adaptor.reserve(4096);
  EXPECT_THROW(arena.grow(64), ReservationRefused);
  EXPECT_THROW((void)arena.split(8192), ReservationExhausted);
  EXPECT_EQ(host.faults.allocations(), 1);
  free(arena, take(arena, 4096), 4096);
}

TEST_F(Preallocated, TakesInNothingOnceItIsClosed) {
  HostMemoryReservation arena = adaptor.reserve(256, preallocated);
  HostMemoryReservation other = adaptor.reserve(256, preallocated);
  HostMemoryReservation plain = adaptor.reserve(128);
  arena.close();
  EXPECT_THROW(arena.merge(std::move(plain)), ReservationClosed);
  EXPECT_THROW(arena.merge(std::move(other)), ReservationClosed);
  EXPECT_EQ(plain.balance(), 128);
  EXPECT_EQ(other.balance(), 256);
}

// Memory that comes back below, while a block is given back, may call somebody on this very thread.
TEST_F(Preallocated, RefusesWhoIsCalledBackWhileItIsRebuilt) {
  HostReservationAwareResourceAdaptor above{adaptor, 8192};
  HostMemoryReservation arena = above.reserve(8192, preallocated);
  bool refused = false;
  adaptor.async_reserve(64, [&](ReservationResult<HostMemoryReservation> result) {
    EXPECT_TRUE(result);
    EXPECT_THROW((void)take(arena, 64), ReservationExhausted);
    refused = true;
  });
  EXPECT_EQ(arena.shrink_to_fit(), 8192);
  EXPECT_TRUE(refused);
}

}  // namespace
}  // namespace earmark
