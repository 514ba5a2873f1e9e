// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/memory/carved_block.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <memory_resource>
#include <new>
#include <random>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "earmark/core/bytes.hpp"
#include "memory/watched_carved_block.hpp"

namespace earmark::detail {
namespace {

// Memory for records that fails where a test wants it to.
class FailingMetadata final : public std::pmr::memory_resource {
 public:
  void fail_after(int successes) { successes_ = successes; }
  void fail_never() { successes_ = -1; }
  [[nodiscard]] std::int64_t live() const { return live_; }

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    if (successes_ == 0) { throw std::bad_alloc{}; }
    if (successes_ > 0) { --successes_; }
    ++live_;
    return std::pmr::new_delete_resource()->allocate(bytes, alignment);
  }
  void do_deallocate(void* pointer, std::size_t bytes, std::size_t alignment) override {
    --live_;
    std::pmr::new_delete_resource()->deallocate(pointer, bytes, alignment);
  }
  [[nodiscard]] bool do_is_equal(memory_resource const& other) const noexcept override { return this == &other; }

  int successes_{-1};
  std::int64_t live_{0};
};

TEST(CarvedBlock, RefusesShapesThatCannotBeCarved) {
  HostStreamEvents events;
  EXPECT_THROW(CarvedBlock(untouchable(1_MiB), 32, events), std::invalid_argument);
  EXPECT_THROW(CarvedBlock(untouchable(1_MiB), 96, events), std::invalid_argument);
  EXPECT_THROW(CarvedBlock(untouchable(255), 256, events), std::invalid_argument);
  EXPECT_THROW(CarvedBlock(untouchable(1_MiB).subspan(64), 256, events), std::invalid_argument);
}

TEST(CarvedBlock, GivesOutItsWholeBlockAndNotAByteMore) {
  Watched watched{1000 * granule};
  EXPECT_EQ(watched.carved().largest_hole(), 1000 * granule);
  EXPECT_EQ(watched.allocate(1000 * granule + 1, stream(1)), -1);
  EXPECT_EQ(watched.allocate(1000 * granule, stream(1)), 0);
  EXPECT_EQ(watched.allocate(1, stream(1)), -1);
  EXPECT_EQ(watched.carved().largest_hole(), 0U);
  EXPECT_EQ(watched.carved().counters().refusals, 2);
  watched.free(0, stream(1));
  EXPECT_EQ(watched.carved().largest_hole(), 1000 * granule);
}

TEST(CarvedBlock, RefusesSizesThatOverflow) {
  Watched watched{1_MiB};
  EXPECT_EQ(watched.carved().try_allocate(SIZE_MAX, granule, stream(1)), nullptr);
  EXPECT_EQ(watched.carved().try_allocate(SIZE_MAX - 255, granule, stream(1)), nullptr);
  EXPECT_EQ(watched.carved().try_allocate(std::size_t{1} << 63, std::size_t{1} << 63, stream(1)), nullptr);
  EXPECT_EQ(watched.carved().try_allocate(1, std::size_t{1} << 63, stream(1)), nullptr);
}

TEST(CarvedBlock, KnowsWhatItOwns) {
  HostStreamEvents events;
  auto const block = untouchable(1_MiB);
  CarvedBlock const carved{block, granule, events};
  EXPECT_TRUE(carved.owns(block.data()));
  EXPECT_TRUE(carved.owns(block.data() + 1_MiB - 1));
  EXPECT_FALSE(carved.owns(block.data() + 1_MiB));
  EXPECT_FALSE(carved.owns(block.data() - 1));
  EXPECT_FALSE(carved.owns(nullptr));
}

TEST(CarvedBlock, IgnoresAFreeOfWhatIsNotLive) {
  Watched watched{1_MiB};
  auto const offset = watched.allocate(1000, stream(1));
  auto* const piece = static_cast<std::byte*>(watched.address(offset));
  EXPECT_EQ(watched.carved().deallocate(piece + 1, stream(1)), 0U);
  EXPECT_EQ(watched.carved().deallocate(piece + granule, stream(1)), 0U);
  EXPECT_EQ(watched.carved().deallocate(piece - granule, stream(1)), 0U);
  EXPECT_EQ(watched.carved().deallocate(nullptr, stream(1)), 0U);
  watched.free(offset, stream(1));
  EXPECT_EQ(watched.carved().deallocate(piece, stream(1)), 0U) << "the second free";
  EXPECT_EQ(watched.carved().counters().hole_bytes, static_cast<std::int64_t>(1_MiB));
}

TEST(CarvedBlock, ServesAlignmentsAboveItsGranularity) {
  Watched watched{64 * granule};
  (void)watched.allocate(1, stream(1));
  EXPECT_EQ(watched.allocate(1, stream(1), 16 * granule), 16);
  EXPECT_EQ(watched.allocate(32 * granule, stream(1), 32 * granule), 32) << "fits exactly, with no room to spare";
  EXPECT_EQ(watched.allocate(16 * granule, stream(1), 16 * granule), -1);
  EXPECT_NE(watched.allocate(15 * granule, stream(1)), -1) << "what lies before and behind aligned pieces are holes";
  EXPECT_NE(watched.allocate(15 * granule, stream(1)), -1);
  EXPECT_EQ(watched.carved().largest_hole(), 0U);
  watched.free_all(stream(1));
}

TEST(CarvedBlock, FindsAnAlignedPieceAcrossHolesOfSeveralStreams) {
  Watched watched{8 * granule};
  for (int i = 0; i < 8; ++i) { EXPECT_EQ(watched.allocate(granule, stream(9)), i); }
  for (std::int64_t i = 1; i < 8; ++i) { watched.free(i, stream(static_cast<std::uintptr_t>(i % 3) + 1)); }
  EXPECT_EQ(watched.allocate(4 * granule, stream(9), 4 * granule), 4);
}

TEST(CarvedBlock, PrefersAHoleOfTheSameStream) {
  Watched watched{64 * granule};
  std::vector<std::int64_t> pieces;
  for (int i = 0; i < 64; ++i) { pieces.push_back(watched.allocate(granule, stream(1))); }
  watched.free(pieces[10], stream(2));
  watched.free(pieces[20], stream(1));
  watched.free(pieces[30], stream(3));
  EXPECT_EQ(watched.allocate(granule, stream(1)), 20);
  EXPECT_EQ(watched.events().records(), 0);
  EXPECT_EQ(watched.allocate(granule, stream(2)), 10);
  EXPECT_EQ(watched.events().records(), 0);
  EXPECT_EQ(watched.allocate(granule, stream(2)), 30) << "rather another stream's than none";
  EXPECT_EQ(watched.events().waits(), 1);
  EXPECT_EQ(watched.events().marks(), 0);
}

TEST(CarvedBlock, KnowsAStreamFromItsFirstFreeOn) {
  Watched watched{4 * granule};
  for (int i = 0; i < 4; ++i) { ASSERT_EQ(watched.allocate(granule, stream(1)), i) << "of a stream not known yet"; }
  watched.free(1, stream(1));
  watched.free(2, stream(1));
  EXPECT_EQ(watched.allocate(2 * granule, stream(1)), 1);
  EXPECT_EQ(watched.events().records(), 0) << "all holes were its own";
  watched.free(1, stream(1));
  EXPECT_EQ(watched.allocate(2 * granule, stream(2)), 1);
  EXPECT_EQ(watched.events().waits(), 1);
}

TEST(CarvedBlock, PutsNoStreamBehindAnotherWhileThereIsUntouchedMemory) {
  Watched watched{1_MiB};
  for (int i = 0; i < 100; ++i) {
    auto const of = stream(1 + static_cast<std::uintptr_t>(i % 4));
    watched.free(watched.allocate(1000, of), of);
  }
  EXPECT_EQ(watched.events().records(), 0);
}

TEST(CarvedBlock, JoinsHolesOfSeveralStreamsBehindOneMarkEachBeforeItRefuses) {
  Watched watched{60 * granule};
  for (int i = 0; i < 60; ++i) { (void)watched.allocate(granule, stream(1)); }
  for (std::int64_t i = 0; i < 60; ++i) { watched.free(i, stream(1 + static_cast<std::uintptr_t>(i % 3))); }
  EXPECT_EQ(watched.carved().largest_hole(), 60 * granule);
  EXPECT_EQ(watched.allocate(60 * granule, stream(1)), 0);
  EXPECT_EQ(watched.events().records(), 2) << "its own stream needs none";
  EXPECT_EQ(watched.carved().counters().joins, 1);
  EXPECT_EQ(watched.events().marks(), 0);
}

TEST(CarvedBlock, FindsTheOneHoleThatFitsAmongManyOfLikeSize) {
  Watched watched{(33 + 10 * 33 + 10) * granule};
  std::vector<std::int64_t> holes{watched.allocate(33 * granule, stream(1))};
  for (int i = 0; i < 10; ++i) {
    (void)watched.allocate(granule, stream(1));
    holes.push_back(watched.allocate(32 * granule, stream(1)));
  }
  while (watched.allocate(granule, stream(1)) >= 0) {}
  for (std::int64_t const hole : holes) { watched.free(hole, stream(1)); }
  EXPECT_EQ(watched.allocate(33 * granule, stream(1)), 0);
}

TEST(CarvedBlock, WaitsBeforeMemoryIsUsedWithoutAStream) {
  Watched watched{4 * granule};
  watched.free(watched.allocate(4 * granule, stream(1)), stream(1));
  auto const offset = watched.allocate_sync(granule);
  EXPECT_EQ(offset, 0);
  EXPECT_EQ(watched.events().synchronizations(), 1);
  watched.free_sync(offset);
  EXPECT_EQ(watched.allocate_sync(granule), 0);
  EXPECT_EQ(watched.events().synchronizations(), 1) << "what is done needs no wait";
}

TEST(CarvedBlock, OrdersItsFirstUseBehindTheStreamThatTheBlockCameFrom) {
  ManualStreamEvents events;
  auto const made = events.enqueue(stream(1));
  CarvedBlock carved{untouchable(1_MiB), granule, events, stream(1)};
  EXPECT_NE(carved.try_allocate(1, 1, stream(2)), nullptr);
  EXPECT_TRUE(events.is_behind(stream(2), made));
}

TEST(CarvedBlock, KeepsPerThreadStreamsApart) {
  Watched watched{4 * granule};
  cuda::stream_ref const per_thread{cudaStreamPerThread};
  std::int64_t const offset = watched.allocate(4 * granule, stream(1));
  std::thread([&] {
    watched.free(offset, per_thread);
    watched.free(watched.allocate(granule, per_thread), per_thread);
    EXPECT_EQ(watched.events().waits(), 0) << "its own";
  }).join();
  EXPECT_EQ(watched.allocate(4 * granule, per_thread), 0);
  EXPECT_EQ(watched.events().waits(), 1) << "the same handle, but another thread's stream";
}

TEST(CarvedBlock, BlocksInsteadWhenAPerThreadStreamCannotBeMarked) {
  Watched watched{4 * granule};
  cuda::stream_ref const per_thread{cudaStreamPerThread};
  std::int64_t const offset = watched.allocate(granule, per_thread);
  watched.events().fail_records(1);
  watched.free(offset, per_thread);
  EXPECT_EQ(watched.events().synchronizations(), 1);
  EXPECT_EQ(watched.allocate(4 * granule, stream(1)), 0);
}

TEST(CarvedBlock, KeepsHolesOfAForgottenStreamBehindItsWork) {
  Watched watched{4 * granule};
  for (int i = 0; i < 4; ++i) { (void)watched.allocate(granule, stream(1)); }
  watched.free(0, stream(1));
  watched.free(2, stream(1));
  watched.carved().forget_stream(stream(1));
  watched.events().destroy(stream(1));
  EXPECT_EQ(watched.events().marks(), 1) << "one for all its holes";
  EXPECT_EQ(watched.allocate(granule, stream(2)), 2);
  EXPECT_EQ(watched.allocate_sync(granule), 0);
  EXPECT_EQ(watched.events().marks(), 0);
  EXPECT_EQ(watched.events().misuses(), 0);
}

TEST(CarvedBlock, NeedsNoWaitForAForgottenStreamWhoseWorkIsDone) {
  Watched watched{4 * granule};
  for (int i = 0; i < 4; ++i) { (void)watched.allocate(granule, stream(1)); }
  watched.free(0, stream(1));
  watched.free(2, stream(1));
  watched.carved().forget_stream(stream(1));
  watched.events().complete(stream(1));
  (void)watched.allocate(granule, stream(2));
  EXPECT_EQ(watched.events().marks(), 0) << "was seen to have passed";
  (void)watched.allocate(granule, stream(3));
  EXPECT_EQ(watched.events().waits(), 0);
}

TEST(CarvedBlock, TellsANewStreamFromAForgottenOneOfTheSameHandle) {
  Watched watched{4 * granule};
  watched.free(watched.allocate(4 * granule, stream(1)), stream(1));
  watched.carved().forget_stream(stream(1));
  EXPECT_EQ(watched.carved().counters().stream_waits, 0);
  EXPECT_EQ(watched.allocate(granule, stream(1)), 0);
  EXPECT_EQ(watched.carved().counters().stream_waits, 1);
}

TEST(CarvedBlock, SynchronizesAForgottenStreamThatCannotBeMarked) {
  Watched watched{4 * granule};
  watched.free(watched.allocate(4 * granule, stream(1)), stream(1));
  watched.events().fail_records(1);
  watched.carved().forget_stream(stream(1));
  EXPECT_EQ(watched.events().synchronizations(), 1);
  EXPECT_EQ(watched.allocate(granule, stream(2)), 0);
  EXPECT_EQ(watched.events().waits(), 0);
}

TEST(CarvedBlock, ForgetsStreamsThatItNeverSawOrThatLeftNothing) {
  Watched watched{4 * granule};
  watched.carved().forget_stream(stream(7));
  watched.free(watched.allocate(granule, stream(1)), stream(1));
  (void)watched.allocate(granule, stream(1));
  watched.carved().forget_stream(stream(1));
  EXPECT_EQ(watched.events().records(), 0);
}

TEST(CarvedBlock, ServesMoreStreamsThanItHasSlotsFor) {
  Watched watched{256 * granule};
  for (int i = 0; i < 256; ++i) { (void)watched.allocate(granule, stream(1)); }
  for (std::int64_t i = 0; i < 256; ++i) { watched.free(i, stream(static_cast<std::uintptr_t>(i))); }
  EXPECT_GT(watched.events().synchronizations(), 0) << "frees that found no slot";
  EXPECT_EQ(watched.allocate(256 * granule, stream(1)), 0);
  for (std::uintptr_t i = 0; i < 256; ++i) {
    watched.free_all(stream(i));
    (void)watched.allocate(256 * granule, stream(i + 1));
  }
  EXPECT_LT(watched.carved().counters().metadata_bytes, 50'000) << "slots of streams without holes are used again";
}

TEST(CarvedBlock, LosesNothingWhenAMarkFails) {
  Watched watched{60 * granule};
  for (int i = 0; i < 60; ++i) { (void)watched.allocate(granule, stream(1)); }
  for (std::int64_t i = 0; i < 60; ++i) { watched.free(i, stream(1 + static_cast<std::uintptr_t>(i % 3))); }
  watched.events().fail_records(1);
  EXPECT_THROW((void)watched.carved().try_allocate(60 * granule, granule, stream(4)), std::runtime_error);
  watched.events().fail_waits(2);
  EXPECT_THROW((void)watched.carved().try_allocate(30 * granule, granule, stream(4)), std::runtime_error);
  EXPECT_THROW((void)watched.carved().try_allocate(granule, granule, stream(4)), std::runtime_error);
  EXPECT_EQ(watched.carved().counters().hole_bytes, static_cast<std::int64_t>(60 * granule));
  EXPECT_EQ(watched.carved().largest_hole(), 60 * granule);
  EXPECT_EQ(watched.events().marks(), 0);
  EXPECT_EQ(watched.allocate(60 * granule, stream(4)), 0) << "and the holes still know their streams";
}

// Marks that call back in the middle of a wait, when the carved block's lock is not held.
class InterruptedEvents final : public StreamEvents {
 public:
  [[nodiscard]] EventHandle record(cuda::stream_ref stream) override { return events.record(stream); }
  void record_again(EventHandle mark, cuda::stream_ref stream) noexcept override { events.record_again(mark, stream); }
  void wait(cuda::stream_ref stream, EventHandle mark) override {
    std::exchange(meanwhile, [] {})();
    events.wait(stream, mark);
  }
  [[nodiscard]] bool passed(EventHandle mark) override { return events.passed(mark); }
  void release(EventHandle mark) noexcept override { events.release(mark); }
  void synchronize(cuda::stream_ref stream) override { events.synchronize(stream); }
  void synchronize(EventHandle mark) override { events.synchronize(mark); }
  void synchronize_all() override { events.synchronize_all(); }

  ManualStreamEvents events;
  std::function<void()> meanwhile{[] {}};
};

TEST(CarvedBlock, KnowsTheStreamOfAHoleThatComesBackAfterAFailedWait) {
  InterruptedEvents interrupted;
  ManualStreamEvents& events = interrupted.events;
  CarvedBlock carved{untouchable(4 * granule), granule, interrupted};
  std::vector<void*> pieces;
  for (int i = 0; i < 4; ++i) { pieces.push_back(carved.try_allocate(granule, granule, stream(1))); }
  auto const work = events.enqueue(stream(1));
  carved.deallocate(pieces[0], stream(1));
  interrupted.meanwhile = [&] {
    EXPECT_EQ(carved.try_allocate(granule, granule, stream(3)), nullptr) << "the only hole is on its way to stream 2";
    carved.deallocate(pieces[1], stream(3));
    events.fail_waits(1);
  };
  EXPECT_THROW((void)carved.try_allocate(granule, granule, stream(2)), std::runtime_error);
  EXPECT_FALSE(events.is_behind(stream(3), work));
  EXPECT_EQ(carved.try_allocate(2 * granule, granule, stream(3)), pieces[0]);
  EXPECT_TRUE(events.is_behind(stream(3), work));
}

TEST(CarvedBlock, LendsAHoleToOneStreamAtATimeButItsRestToOthersMeanwhile) {
  InterruptedEvents interrupted;
  CarvedBlock carved{untouchable(4 * granule), granule, interrupted};
  carved.deallocate(carved.try_allocate(4 * granule, granule, stream(1)), stream(1));
  void* other = nullptr;
  interrupted.meanwhile = [&] { other = carved.try_allocate(3 * granule, granule, stream(3)); };
  void* const one = carved.try_allocate(granule, granule, stream(2));
  EXPECT_NE(one, nullptr);
  EXPECT_EQ(other, static_cast<std::byte*>(one) + granule);
}

TEST(CarvedBlock, DrainsIntoAStreamOrTheCaller) {
  ManualStreamEvents events;
  CarvedBlock carved{untouchable(4 * granule), granule, events};
  std::vector<void*> pieces;
  for (int i = 0; i < 4; ++i) { pieces.push_back(carved.try_allocate(granule, granule, stream(1))); }
  std::vector<ManualStreamEvents::Work> frees;
  for (std::uintptr_t i = 0; i < 4; ++i) {
    frees.push_back(events.enqueue(stream(i)));
    carved.deallocate(pieces[i], stream(i));
  }
  carved.forget_stream(stream(3));
  events.fail_records(1);
  carved.drain_into(stream(0));
  for (auto const& work : frees) { EXPECT_TRUE(events.is_behind(stream(0), work)); }
  EXPECT_EQ(events.synchronizations(), 1) << "where no mark could be recorded";
  carved.drain_sync();
  for (auto const& work : frees) { EXPECT_TRUE(events.is_done(work)); }
  EXPECT_EQ(events.misuses(), 0);
}

TEST(CarvedBlock, ReleasesItsMarksWhenItGoes) {
  ManualStreamEvents events;
  {
    CarvedBlock carved{untouchable(4 * granule), granule, events};
    carved.deallocate(carved.try_allocate(granule, granule, stream(1)), stream(1));
    carved.forget_stream(stream(1));
    cuda::stream_ref const per_thread{cudaStreamPerThread};
    carved.deallocate(carved.try_allocate(granule, granule, per_thread), per_thread);
    EXPECT_EQ(events.marks(), 2);
  }
  EXPECT_EQ(events.marks(), 0);
}

TEST(CarvedBlock, NeedsRecordsForPiecesOnlyHoweverLargeTheBlock) {
  HostStreamEvents events;
  CarvedBlock carved{untouchable(std::size_t{1} << 40), granule, events};
  EXPECT_LT(carved.counters().metadata_bytes, 24'000);
  std::vector<void*> pieces;
  for (int i = 0; i < 10'000; ++i) { pieces.push_back(carved.try_allocate_sync(1_MiB, granule)); }
  EXPECT_LE(carved.counters().metadata_bytes, 10'000 * (64 + 16) * 3 / 2);
  for (void* piece : pieces) { carved.deallocate_sync(piece); }
  EXPECT_EQ(carved.largest_hole(), std::size_t{1} << 40);
  EXPECT_NE(carved.try_allocate_sync(std::size_t{1} << 40, granule), nullptr);
}

TEST(CarvedBlock, FailsCleanlyWhereverMemoryForRecordsRunsOut) {
  for (int successes = 0;; ++successes) {
    FailingMetadata metadata;
    bool failed = false;
    {
      Watched watched{4096 * granule, &metadata};
      std::mt19937 random{1};
      metadata.fail_after(successes);
      for (int i = 0; i < 600; ++i) {
        auto const on = stream(random() % 20);
        if (random() % 4 == 0 && !watched.live().empty()) { watched.free(watched.live().begin()->first, on); }
        try {
          (void)watched.allocate(1 + random() % 2000, on);
        }
        catch (std::bad_alloc const&) {
          failed = true;
          metadata.fail_after(0);
          watched.free_all(stream(1));  // frees need no memory
          metadata.fail_never();
          ASSERT_EQ(watched.allocate(4096 * granule, stream(2)), 0) << "nothing was lost";
          break;
        }
      }
    }
    ASSERT_EQ(metadata.live(), 0);
    if (!failed) { break; }
  }
}

TEST(CarvedBlock, FailsCleanlyWhenItCannotBeMade) {
  HostStreamEvents events;
  for (int successes = 0;; ++successes) {
    FailingMetadata metadata;
    metadata.fail_after(successes);
    try {
      CarvedBlock const carved{untouchable(1_MiB), granule, events, std::nullopt, &metadata};
      break;
    }
    catch (std::bad_alloc const&) {
      ASSERT_EQ(metadata.live(), 0);
    }
  }
}

}  // namespace
}  // namespace earmark::detail
