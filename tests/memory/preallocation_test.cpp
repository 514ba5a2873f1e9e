// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Preallocated reservations as their users see them. How the memory is carved is tested in carved_block_test.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "memory/preallocated.hpp"

namespace earmark {
namespace {

TEST_F(Preallocated, TakesItsMemoryOnceAndNeverAsksTheUpstreamAgain) {
  HostMemoryReservation const arena = adaptor.reserve(4096, preallocated);
  EXPECT_EQ(host.faults.allocations(), 1);
  EXPECT_EQ(host.faults.live_bytes(), 4096);
  void* const first = take(arena, 1000);
  void* const second = take(arena, 3072);
  std::memset(first, 1, 1000);
  std::memset(second, 2, 3072);
  EXPECT_EQ(arena.balance(), 0);
  EXPECT_EQ(arena.spent(), 4096);
  EXPECT_EQ(adaptor.current_allocated(), 4096);
  EXPECT_THROW((void)take(arena, 1), ReservationExhausted);
  free(arena, first, 1000);
  free(arena, second, 3072);
  EXPECT_EQ(arena.balance(), 4096);
  EXPECT_EQ(host.faults.allocations(), 1);
  EXPECT_EQ(adaptor.allocation_count(), 2);
  EXPECT_EQ(arena.peak_spent(), 4096);
}

TEST_F(Preallocated, OfNoBytesAndZeroByteAllocationsNeedNoMemory) {
  HostMemoryReservation const nothing = adaptor.reserve(0, preallocated);
  EXPECT_EQ(take(nothing, 0), nullptr);
  EXPECT_THROW((void)take(nothing, 1), ReservationExhausted);
  EXPECT_EQ(host.faults.allocations(), 0);
}

TEST_F(Preallocated, NamesTheLargestHoleWhenItIsFragmented) {
  HostMemoryReservation const arena = adaptor.reserve(1024, preallocated);
  std::vector<void*> pieces;
  for (int i = 0; i < 16; ++i) { pieces.push_back(take(arena, 64)); }
  for (std::size_t i = 0; i < pieces.size(); i += 2) { free(arena, pieces[i], 64); }
  free(arena, pieces[1], 64);  // 0, 1 and 2 are one hole now
  EXPECT_EQ(arena.balance(), 9 * 64);
  try {
    (void)take(arena, 256);
    FAIL();
  }
  catch (ReservationExhausted const& error) {
    EXPECT_EQ(error.fields().requested, 256);
    EXPECT_EQ(error.fields().largest_hole, 192);
    EXPECT_EQ(error.fields().shortfall, 0);
    EXPECT_EQ(failed_request(error).cause, FailureCause::Fragmented);
  }
  EXPECT_EQ(arena.balance(), 9 * 64) << "what was not given is not charged";
  EXPECT_EQ(adaptor.report().largest_hole, 192);
  void* const fits = take(arena, 192);
  free(arena, fits, 192);
  for (std::size_t i = 3; i < pieces.size(); i += 2) { free(arena, pieces[i], 64); }
  free(arena, take(arena, 1024), 1024);
}

TEST_F(Preallocated, FallsBackToTheUpstreamIfItMayAndChargesThatBesideIt) {
  HostMemoryReservation arena = adaptor.reserve(256, with_fallback);
  std::vector<void*> pieces;
  for (int i = 0; i < 4; ++i) { pieces.push_back(take(arena, 64)); }
  free(arena, pieces[0], 64);
  free(arena, pieces[2], 64);
  void* const beside = take(arena, 128);
  EXPECT_EQ(host.faults.live_bytes(), 256 + 128);
  EXPECT_EQ(adaptor.committed(), 256 + 128);
  EXPECT_EQ(arena.balance(), 128);
  EXPECT_EQ(arena.spent(), 128);
  free(arena, beside, 128);
  EXPECT_EQ(adaptor.committed(), 256);
  EXPECT_EQ(host.faults.live_bytes(), 256);
  void* const late = take(arena, 128);
  arena.close();
  EXPECT_EQ(adaptor.committed(), 256 + 128) << "pieces are out";
  free(arena, pieces[1], 64);
  free(arena, pieces[3], 64);
  EXPECT_EQ(adaptor.committed(), 128);
  free(arena, late, 128);
}

TEST_F(Preallocated, DoesNotFallBackPastTheLimitOrPastItsBalance) {
  HostMemoryReservation const arena = adaptor.reserve(256, with_fallback);
  std::vector<void*> pieces;
  for (int i = 0; i < 4; ++i) { pieces.push_back(take(arena, 64)); }
  free(arena, pieces[0], 64);
  free(arena, pieces[2], 64);
  EXPECT_THROW((void)take(arena, 192), ReservationExhausted) << "more than it has left";
  HostMemoryReservation other = adaptor.reserve(8192 - 256);
  EXPECT_THROW((void)take(arena, 128), MemoryError) << "the limit is reached";
  other.close();
  host.faults.fail_allocation(0, testing::Fails::Once);
  EXPECT_THROW((void)take(arena, 128), std::bad_alloc);
  EXPECT_EQ(adaptor.committed(), 256);
  EXPECT_EQ(arena.balance(), 128);
  free(arena, pieces[1], 64);
  free(arena, pieces[3], 64);
}

TEST_F(Preallocated, GivesItsBytesBackWhenTheLastPieceOfAClosedOneGoes) {
  HostMemoryReservation arena = adaptor.reserve(1024, preallocated);
  void* const first = take(arena, 64);
  void* const second = take(arena, 64);
  arena.close();
  EXPECT_TRUE(arena.closed());
  EXPECT_EQ(adaptor.committed(), 1024);
  EXPECT_THROW((void)take(arena, 64), ReservationClosed);
  EXPECT_THROW(arena.grow(64), ReservationClosed);
  free(arena, first, 64);
  EXPECT_EQ(adaptor.committed(), 1024);
  EXPECT_EQ(host.faults.live_bytes(), 1024);
  free(arena, second, 64);
  EXPECT_EQ(adaptor.committed(), 0);
  EXPECT_EQ(host.faults.live_bytes(), 0);
  arena.close();
}

TEST_F(Preallocated, MayLoseItsHandleItsAdaptorAndItsPiecesInAnyOrder) {
  for (int order = 0; order < 6; ++order) {
    testing::FaultControl faults;
    auto other = std::make_unique<HostReservationAwareResourceAdaptor>(
        testing::FaultyResource{HostMemoryResource{}, faults}, std::size_t{4096});
    auto arena = std::make_optional(other->reserve(1024, preallocated));
    auto resource = std::make_optional(arena->resource());
    void* const piece = resource->allocate_sync(64, 64);
    auto const handle = [&] { arena.reset(); };
    auto const adaptor_too = [&] { other.reset(); };
    auto const buffer = [&] {
      resource->deallocate_sync(piece, 64, 64);
      resource.reset();
    };
    switch (order) {
      case 0:
        handle();
        adaptor_too();
        buffer();
        break;
      case 1:
        handle();
        buffer();
        adaptor_too();
        break;
      case 2:
        adaptor_too();
        handle();
        buffer();
        break;
      case 3:
        adaptor_too();
        buffer();
        handle();
        break;
      case 4:
        buffer();
        handle();
        adaptor_too();
        break;
      default:
        buffer();
        adaptor_too();
        handle();
        break;
    }
    EXPECT_EQ(faults.live_bytes(), 0) << order;
    EXPECT_EQ(faults.allocations(), faults.deallocations());
  }
}

TEST_F(Preallocated, IsNotMadeWhenTheUpstreamHasNotEnough) {
  host.faults.fail_allocation(0, testing::Fails::Always);
  EXPECT_THROW((void)adaptor.reserve(1024, preallocated), UpstreamOutOfMemory);
  EXPECT_THROW((void)adaptor.try_reserve(1024, preallocated), UpstreamOutOfMemory);
  EXPECT_THROW((void)adaptor.reserve_up_to(1024, 64, preallocated), UpstreamOutOfMemory);
  EXPECT_THROW((void)adaptor.reserve_blocking(1024, preallocated), UpstreamOutOfMemory);
  EXPECT_EQ(adaptor.committed(), 0);
  EXPECT_TRUE(adaptor.outstanding().empty());
}

TEST_F(Preallocated, IsSharedByThreadsExactly) {
  HostMemoryReservation arena = adaptor.reserve(8192, preallocated);
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random{t};
      auto resource = arena.resource();
      std::vector<std::pair<void*, std::size_t>> mine;
      for (int i = 0; i < 2000; ++i) {
        std::size_t const bytes = 1 + random() % 900;
        try {
          void* const piece = resource.allocate_sync(bytes, 64);
          std::memset(piece, static_cast<int>(t), bytes);
          mine.emplace_back(piece, bytes);
        }
        catch (ReservationExhausted const&) {
          // full, or fragmented
        }
        catch (ReservationClosed const&) {
          break;
        }
        if (mine.size() > 4 || i % 3 == 0) {
          while (!mine.empty()) {
            EXPECT_EQ(*static_cast<unsigned char*>(mine.back().first), t) << "nobody else has it";
            resource.deallocate_sync(mine.back().first, mine.back().second, 64);
            mine.pop_back();
          }
        }
        if (t == 0 && i == 1500) { arena.close(); }
      }
      for (auto const& [piece, bytes] : mine) { resource.deallocate_sync(piece, bytes, 64); }
    });
  }
  for (std::thread& thread : threads) { thread.join(); }
}

// Allocates and frees until the reservation is closed, then frees what is left.
void use_until_closed(HostMemoryReservation::Resource resource) {
  std::vector<std::pair<void*, std::size_t>> mine;
  auto const free_one = [&] {
    resource.deallocate_sync(mine.back().first, mine.back().second, 64);
    mine.pop_back();
  };
  for (std::size_t i = 0;; ++i) {
    std::size_t const bytes = 64 * (1 + i % 3);
    try {
      mine.emplace_back(resource.allocate_sync(bytes, 64), bytes);
    }
    catch (ReservationExhausted const&) {
      std::this_thread::yield();
    }
    catch (ReservationClosed const&) {
      break;
    }
    if (mine.size() == 3) {
      free_one();
      free_one();
    }
  }
  while (!mine.empty()) { free_one(); }
}

// However the close, the last free and the last reference meet: memory and bytes go back, once.
TEST_F(Preallocated, EndsOnceHoweverItsCloseMeetsAllocationsAndFrees) {
  for (int round = 0; round < 200; ++round) {
    HostMemoryReservation arena = adaptor.reserve(4096, preallocated);
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) { threads.emplace_back(use_until_closed, arena.resource()); }
    std::thread looks_on{[&] {
      for (int i = 0; i < 5; ++i) {
        EXPECT_LE(adaptor.snapshot().allocated, 4096);
        EXPECT_LE(adaptor.outstanding().size(), 1U);
        (void)adaptor.label_counters();
        (void)adaptor.report();
      }
    }};
    EXPECT_LE(arena.spent(), arena.granted());
    if (round % 2 == 0) {
      arena.close();
      EXPECT_EQ(arena.balance(), 0);
    }
    arena = {};
    for (std::thread& thread : threads) { thread.join(); }
    looks_on.join();
    ASSERT_EQ(adaptor.committed(), 0);
    ASSERT_EQ(host.faults.live_bytes(), 0);
    ASSERT_EQ(host.faults.allocations(), host.faults.deallocations());
  }
  EXPECT_TRUE(adaptor.outstanding().empty());
}

TEST_F(Preallocated, ShowsWhatIsLiveOfAClosedOne) {
  HostMemoryReservation arena = adaptor.reserve(1024, preallocated);
  void* const piece = take(arena, 192);
  EXPECT_EQ(adaptor.current_allocated(), 192);
  arena.close();
  EXPECT_EQ(arena.balance(), 0);
  EXPECT_EQ(arena.spent(), 192);
  EXPECT_EQ(adaptor.current_allocated(), 192);
  EXPECT_EQ(adaptor.total_reserved(), 0);
  auto const left = adaptor.outstanding();
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left[0].live, 192);
  EXPECT_EQ(left[0].granted, 1024) << "all of it goes back with the last piece";
  EXPECT_EQ(left[0].state, OutstandingReservation::State::Closed);
  free(arena, piece, 192);
  EXPECT_TRUE(adaptor.outstanding().empty());
}

TEST_F(Preallocated, CannotCarryANestedAdaptorButBeItsUpstream) {
  HostMemoryReservation const arena = adaptor.reserve(1024, preallocated);
  EXPECT_THROW((HostReservationAwareResourceAdaptor{arena, 512}), std::invalid_argument);
  HostReservationAwareResourceAdaptor::Upstream const upstream{arena.resource()};
  HostReservationAwareResourceAdaptor within{upstream, 512};
  HostMemoryReservation const part = within.reserve(512);
  free(part, take(part, 512), 512);
  EXPECT_EQ(host.faults.allocations(), 1);
}

// What fell back is counted by exact tracking until it is freed, not for ever.
TEST(PreallocatedTracking, TakesBackWhatFellBackToTheUpstream) {
  WatchedHost host{4096, {.tracking = Tracking::Exact}};
  HostMemoryReservation const arena = host.adaptor.reserve(256, with_fallback);
  auto resource = arena.resource();
  std::vector<void*> pieces;
  for (int i = 0; i < 4; ++i) { pieces.push_back(resource.allocate_sync(64, 64)); }
  resource.deallocate_sync(pieces[0], 64, 64);
  resource.deallocate_sync(pieces[2], 64, 64);
  void* const beside = resource.allocate_sync(128, 64);
  EXPECT_EQ(host.adaptor.current_allocated(), 256);
  resource.deallocate_sync(beside, 128, 64);
  EXPECT_EQ(host.adaptor.current_allocated(), 128);
  resource.deallocate_sync(pieces[1], 64, 64);
  resource.deallocate_sync(pieces[3], 64, 64);
  EXPECT_EQ(host.adaptor.current_allocated(), 0);
  EXPECT_EQ(host.adaptor.peak_allocated(), 256);
}

TEST_F(Preallocated, NamesAFailureOfTheUpstreamAsSuchWheneverItIsAsked) {
  host.faults.fail_allocation(0, testing::Fails::Once);
  EXPECT_THROW((void)adaptor.reserve(256, preallocated), UpstreamOutOfMemory);
  HostMemoryReservation arena = adaptor.reserve(256, with_fallback);
  std::vector<void*> pieces;
  for (int i = 0; i < 4; ++i) { pieces.push_back(take(arena, 64)); }
  free(arena, pieces[0], 64);
  free(arena, pieces[2], 64);
  host.faults.fail_allocation(0, testing::Fails::Once);
  EXPECT_THROW((void)take(arena, 128), UpstreamOutOfMemory);
  EXPECT_EQ(arena.balance(), 128);
  free(arena, pieces[1], 64);
  free(arena, pieces[3], 64);
}

TEST_F(Preallocated, DoesNotGrowByItself) {
  for (ExhaustedPolicy const policy : {ExhaustedPolicy::GrowOrRefuse, ExhaustedPolicy::GrowOrOverbook}) {
    ReservationOptions options = preallocated;
    options.exhausted = policy;
    EXPECT_THROW((void)adaptor.reserve(64, options), std::invalid_argument);
    EXPECT_THROW((void)adaptor.try_reserve(64, options), std::invalid_argument);
    EXPECT_THROW(adaptor.async_reserve(64, [](auto) {}, options), std::invalid_argument);
  }
}

TEST_F(Preallocated, NamesAnAlignmentThatIsNoPowerOfTwo) {
  HostMemoryReservation const arena = adaptor.reserve(256, preallocated);
  for (std::size_t const alignment : {std::size_t{0}, std::size_t{48}}) {
    try {
      (void)arena.resource().allocate_sync(64, alignment);
      FAIL();
    }
    catch (ReservationExhausted const& error) {
      EXPECT_EQ(error.fields().setting.view(), "the alignment: a power of two");
      EXPECT_EQ(error.fields().requested, 64);
      EXPECT_EQ(error.fields().shortfall, 0);
    }
  }
  EXPECT_EQ(arena.balance(), 256);
}

}  // namespace
}  // namespace earmark
