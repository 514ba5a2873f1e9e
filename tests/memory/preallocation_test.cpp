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

#include "earmark/testing/manual_stream_events.hpp"
#include "memory/watched_adaptor.hpp"

namespace earmark {
namespace {

using testing::ManualStreamEvents;

ReservationOptions const preallocated{.label = "arena", .backing = Backing::Preallocated};
ReservationOptions const with_fallback{
    .label = "arena", .backing = Backing::Preallocated, .fallback = FallbackPolicy::Upstream};

class Preallocated : public ::testing::Test {
 protected:
  ~Preallocated() override {
    EXPECT_EQ(host.adaptor.committed(), 0);
    EXPECT_EQ(host.faults.live_bytes(), 0);
    EXPECT_EQ(host.faults.wrong_deallocations(), 0);
  }
  static void* take(HostMemoryReservation const& from, std::size_t bytes) {
    return from.resource().allocate_sync(bytes, 64);
  }
  static void free(HostMemoryReservation const& to, void* pointer, std::size_t bytes) {
    to.resource().deallocate_sync(pointer, bytes, 64);
  }

  WatchedHost host{8192};
  HostReservationAwareResourceAdaptor& adaptor{host.adaptor};
};

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

// -- device memory and streams ---------------------------------------------------------------------------------------

TEST(PreallocatedDeviceMemory, NeedsToKnowOfStreams) {
  WatchedDevice device{8192};
  EXPECT_THROW((void)device.adaptor.reserve(1024, preallocated), std::invalid_argument);
  EXPECT_THROW((void)device.adaptor.try_reserve(1024, preallocated), std::invalid_argument);
  EXPECT_THROW(device.adaptor.async_reserve(1024, [](auto) {}, preallocated), std::invalid_argument);
  EXPECT_EQ(device.adaptor.committed(), 0);
}

class PreallocatedOnStreams : public ::testing::Test {
 protected:
  ~PreallocatedOnStreams() override {
    EXPECT_EQ(device.adaptor.committed(), 0);
    EXPECT_EQ(device.faults.live_bytes(), 0);
    EXPECT_EQ(events.misuses(), 0);
    EXPECT_EQ(events.marks(), 0) << "marks are given back";
  }

  ManualStreamEvents events;
  WatchedDevice device{8192, {.events = &events}};
  cuda::stream_ref a{ManualStreamEvents::stream(1)};
  cuda::stream_ref b{ManualStreamEvents::stream(2)};
};

TEST_F(PreallocatedOnStreams, HandsMemoryFromStreamToStreamOnlyBehindAMark) {
  MemoryReservation const arena = device.adaptor.reserve(512, preallocated);
  auto resource = arena.resource();
  void* const first = resource.allocate(a, 512, 256);
  auto const use = events.enqueue(a);
  resource.deallocate(a, first, 512, 256);
  EXPECT_FALSE(events.is_behind(b, use));
  void* const second = resource.allocate(b, 512, 256);
  EXPECT_EQ(first, second);
  EXPECT_TRUE(events.is_behind(b, use));
  resource.deallocate(b, second, 512, 256);
}

TEST_F(PreallocatedOnStreams, ReusesMemoryOfOneStreamWithoutMarks) {
  MemoryReservation const arena = device.adaptor.reserve(512, preallocated);
  auto resource = arena.resource();
  std::int64_t const before = events.waits();
  for (int i = 0; i < 10; ++i) { resource.deallocate(a, resource.allocate(a, 512, 256), 512, 256); }
  EXPECT_LE(events.waits(), before + 1) << "once at most, behind the stream that the block came from";
}

TEST_F(PreallocatedOnStreams, GivesTheBlockBackBehindAllThatUsedIt) {
  MemoryReservation arena = device.adaptor.reserve(1024, preallocated);
  auto resource = arena.resource();
  void* const first = resource.allocate(a, 256, 256);
  void* const second = resource.allocate(b, 256, 256);
  auto const by_a = events.enqueue(a);
  auto const by_b = events.enqueue(b);
  resource.deallocate(a, first, 256, 256);
  arena.close();
  resource.deallocate(b, second, 256, 256);
  // It went back on the default stream.
  EXPECT_TRUE(events.is_behind(default_stream(), by_a) || events.is_done(by_a));
  EXPECT_TRUE(events.is_behind(default_stream(), by_b) || events.is_done(by_b));
}

TEST_F(PreallocatedOnStreams, ForgetsAStreamBeforeItIsDestroyed) {
  MemoryReservation const arena = device.adaptor.reserve(512, preallocated);
  auto resource = arena.resource();
  void* const first = resource.allocate(a, 512, 256);
  auto const use = events.enqueue(a);
  resource.deallocate(a, first, 512, 256);
  resource.forget_stream(a);
  events.destroy(a);
  void* const second = resource.allocate(b, 512, 256);
  EXPECT_TRUE(events.is_behind(b, use));
  resource.deallocate(b, second, 512, 256);
  MemoryReservation const plain = device.adaptor.reserve(256);
  plain.resource().forget_stream(b);
}

TEST_F(PreallocatedOnStreams, LosesNoBytesWhenAMarkCannotBeMadeOrWaitedFor) {
  MemoryReservation const arena = device.adaptor.reserve(512, preallocated);
  auto resource = arena.resource();
  void* const first = resource.allocate(a, 512, 256);
  resource.deallocate(a, first, 512, 256);
  events.fail_records(1);
  events.fail_waits(1);
  for (int i = 0; i < 3; ++i) {
    try {
      resource.deallocate(b, resource.allocate(b, 512, 256), 512, 256);
    }
    catch (std::runtime_error const&) {
      EXPECT_EQ(arena.balance(), 512);
    }
  }
  events.fail_records(0);
  events.fail_waits(0);
  resource.deallocate(b, resource.allocate(b, 512, 256), 512, 256);
  EXPECT_EQ(arena.balance(), 512);
}

// An upstream that is out of memory is asked once more when frees are pending, and only then.
TEST_F(PreallocatedOnStreams, WaitForPendingFreesBeforeTheUpstreamsRefusalIsBelieved) {
  MemoryReservation const plain = device.adaptor.reserve(1024);
  auto resource = plain.resource();
  device.faults.fail_allocation(0, testing::Fails::Once);
  EXPECT_THROW((void)resource.allocate(a, 256, 256), UpstreamOutOfMemory) << "nothing is pending";
  EXPECT_EQ(events.synchronizations(), 0);
  resource.deallocate(a, resource.allocate(a, 256, 256), 256, 256);
  device.faults.fail_allocation(0, testing::Fails::Once);
  MemoryReservation const arena = device.adaptor.reserve(512, preallocated);
  EXPECT_EQ(events.synchronizations(), 1);
  EXPECT_EQ(arena.balance(), 512);
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
  host.faults.fail_allocation(0, testing::Fails::Once);
  EXPECT_THROW(arena.grow(64), UpstreamOutOfMemory);
  EXPECT_TRUE(arena.closed());
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

}  // namespace
}  // namespace earmark
