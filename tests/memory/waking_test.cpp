// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Every way in which memory can come back wakes those who wait for it.
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "memory/asked.hpp"
#include "memory/watched_adaptor.hpp"

namespace earmark {
namespace {

constexpr std::size_t limit = 1024;

// A block of memory with the resource that it came from.
struct Buffer {
  HostMemoryReservation::Resource resource;
  std::size_t bytes;
  void* pointer;
  Buffer(HostMemoryReservation const& from, std::size_t size)
      : resource(from.resource()), bytes(size), pointer(resource.allocate_sync(size, 64)) {}
  void free() { resource.deallocate_sync(std::exchange(pointer, nullptr), bytes, 64); }
};

class Waking : public ::testing::Test {
 protected:
  ~Waking() override { EXPECT_EQ(host.faults.live_bytes(), 0); }

  WatchedHost host{limit};
  HostReservationAwareResourceAdaptor& adaptor{host.adaptor};
};

TEST_F(Waking, ComesWithAClose) {
  HostMemoryReservation all = adaptor.reserve(limit);
  Asked asked{adaptor, 512};
  EXPECT_EQ(asked.outcome(), Outcome::Waits);
  all.close();
  EXPECT_EQ(asked.outcome(), Outcome::Granted);
  EXPECT_EQ(asked.reservation().granted(), 512);
}

TEST_F(Waking, ComesWithADrop) {
  std::optional<HostMemoryReservation> all{adaptor.reserve(limit)};
  Asked asked{adaptor, limit};
  all.reset();
  EXPECT_EQ(asked.outcome(), Outcome::Granted);
}

TEST_F(Waking, ComesWithADropAtTheLastReference) {
  std::optional<HostMemoryReservation> all{adaptor.reserve(limit, {.refund = RefundPolicy::AtLastReference})};
  std::optional<HostMemoryReservation::Resource> resource{all->resource()};
  Asked asked{adaptor, limit};
  all.reset();
  EXPECT_EQ(asked.outcome(), Outcome::Waits);
  resource.reset();
  EXPECT_EQ(asked.outcome(), Outcome::Granted);
}

TEST_F(Waking, ComesWithAFreeAfterTheClose) {
  HostMemoryReservation all = adaptor.reserve(limit);
  Buffer buffer{all, limit};
  all.close();
  Asked asked{adaptor, 512};
  EXPECT_EQ(asked.outcome(), Outcome::Waits);
  buffer.free();
  EXPECT_EQ(asked.outcome(), Outcome::Granted);
}

TEST_F(Waking, ComesWithTheFreeOfALeftBehindBuffer) {
  std::optional<HostMemoryReservation> all{adaptor.reserve(limit)};
  Buffer buffer{*all, 640};
  Asked asked{adaptor, 512};
  all.reset();
  EXPECT_EQ(asked.outcome(), Outcome::Waits);
  buffer.free();
  EXPECT_EQ(asked.outcome(), Outcome::Granted);
}

TEST_F(Waking, DoesNotComeWithAFreeInAnOpenReservation) {
  HostMemoryReservation all = adaptor.reserve(limit);
  Buffer buffer{all, 512};
  Asked asked{adaptor, 512};
  buffer.free();
  EXPECT_EQ(asked.outcome(), Outcome::Waits);
  EXPECT_EQ(all.balance(), 1024);
  all.close();
  EXPECT_EQ(asked.outcome(), Outcome::Granted);
}

TEST_F(Waking, ComesWithAShrink) {
  HostMemoryReservation all = adaptor.reserve(limit);
  Asked asked{adaptor, 512};
  EXPECT_EQ(all.shrink_to_fit(), 1024);
  EXPECT_EQ(asked.outcome(), Outcome::Granted);
}

TEST_F(Waking, ComesWithTheCloseOfWhatAnotherWasMergedInto) {
  HostMemoryReservation first = adaptor.reserve(512);
  HostMemoryReservation second = adaptor.reserve(512);
  Asked asked{adaptor, limit};
  first.merge(std::move(second));
  EXPECT_EQ(asked.outcome(), Outcome::Waits);
  first.close();
  EXPECT_EQ(asked.outcome(), Outcome::Granted);
}

TEST_F(Waking, ComesWithAFreeThroughAMergedReservationThatIsClosed) {
  HostMemoryReservation first = adaptor.reserve(512);
  HostMemoryReservation second = adaptor.reserve(512);
  Buffer buffer{second, 512};
  first.merge(std::move(second));
  Asked asked{adaptor, limit};
  first.close();
  EXPECT_EQ(asked.outcome(), Outcome::Waits);
  buffer.free();
  EXPECT_EQ(asked.outcome(), Outcome::Granted);
}

TEST_F(Waking, ComesWithTheCloseOfASplitPart) {
  HostMemoryReservation all = adaptor.reserve(limit);
  HostMemoryReservation part = all.split(512);
  Asked asked{adaptor, 512};
  part.close();
  EXPECT_EQ(asked.outcome(), Outcome::Granted);
}

TEST_F(Waking, ComesWithARaisedLimit) {
  HostMemoryReservation const all = adaptor.reserve(limit);
  Asked asked{adaptor, 512};
  adaptor.set_limit(limit + 448);
  EXPECT_EQ(asked.outcome(), Outcome::Waits);
  adaptor.set_limit(limit + 512);
  EXPECT_EQ(asked.outcome(), Outcome::Granted);
}

TEST_F(Waking, ComesWithTheEndOfALargerRequestThatWasFirst) {
  HostMemoryReservation const most = adaptor.reserve(512);
  std::stop_source stop;
  WaitOptions stoppable;
  stoppable.stop = stop.get_token();
  Asked large{adaptor, 1024, {}, stoppable};
  Asked small{adaptor, 512};
  EXPECT_EQ(small.outcome(), Outcome::Waits) << "nobody passes the first";
  stop.request_stop();
  EXPECT_EQ(large.outcome(), Outcome::Aborted);
  EXPECT_EQ(small.outcome(), Outcome::Granted);
}

TEST_F(Waking, ComesWithARaisedQuota) {
  Consumer consumer = adaptor.make_consumer("query", 512);
  HostMemoryReservation const held = adaptor.reserve(512, {.consumer = &consumer});
  Asked asked{adaptor, 256, {.consumer = &consumer}};
  EXPECT_EQ(asked.outcome(), Outcome::Waits);
  consumer.set_quota(768);
  EXPECT_EQ(asked.outcome(), Outcome::Granted);
  EXPECT_EQ(consumer.used(), 768);
}

TEST_F(Waking, ComesWithWhatAnotherReservationOfTheConsumerGivesBack) {
  Consumer consumer = adaptor.make_consumer("query", 512);
  HostMemoryReservation held = adaptor.reserve(512, {.consumer = &consumer});
  Buffer buffer{held, 512};
  Asked asked{adaptor, 256, {.consumer = &consumer}};
  held.close();
  EXPECT_EQ(asked.outcome(), Outcome::Waits);
  buffer.free();
  EXPECT_EQ(asked.outcome(), Outcome::Granted);
  asked.drop();
  EXPECT_EQ(consumer.used(), 0);
}

TEST_F(Waking, ComesWithTheFreeOfAnUnreservedAllocation) {
  void* const pointer = adaptor.allocate_sync(limit, 64);
  Asked asked{adaptor, 512};
  EXPECT_EQ(asked.outcome(), Outcome::Waits);
  adaptor.deallocate_sync(pointer, limit, 64);
  EXPECT_EQ(asked.outcome(), Outcome::Granted);
}

TEST_F(Waking, ComesWithAnUnreservedAllocationThatFails) {
  host.faults.fail_allocation(0, testing::Fails::Once);
  HostMemoryReservation const some = adaptor.reserve(512);
  std::optional<Asked> asked;
  EXPECT_THROW((void)adaptor.allocate_sync(512, 64), UpstreamOutOfMemory);
  asked.emplace(adaptor, 512);
  EXPECT_EQ(asked->outcome(), Outcome::Granted);
}

TEST_F(Waking, ComesWithTheEndOfADeficit) {
  HostMemoryReservation over = adaptor.reserve(2 * limit, AllowOverbooking::YES);
  HostMemoryReservation part = over.split(limit);
  Asked asked{adaptor, 512};
  part.close();
  EXPECT_EQ(adaptor.available(), 0);
  EXPECT_EQ(asked.outcome(), Outcome::Waits);
  over.close();
  EXPECT_EQ(asked.outcome(), Outcome::Granted);
}

TEST_F(Waking, ComesWithAPreallocatedReservationThatCannotBeMade) {
  HostMemoryReservation all = adaptor.reserve(limit);
  Asked unlucky{adaptor, limit, {.backing = Backing::Preallocated}};
  Asked next{adaptor, limit};
  host.faults.fail_allocation(0, testing::Fails::Once);
  all.close();
  EXPECT_EQ(unlucky.outcome(), Outcome::OutOfMemory);
  EXPECT_EQ(next.outcome(), Outcome::Granted);
}

TEST_F(Waking, ComesWithTheLastPieceOfAClosedPreallocatedReservation) {
  HostMemoryReservation all = adaptor.reserve(limit, {.backing = Backing::Preallocated});
  Buffer buffer{all, 64};
  Asked asked{adaptor, 512};
  all.close();
  EXPECT_EQ(asked.outcome(), Outcome::Waits);
  buffer.free();
  EXPECT_EQ(asked.outcome(), Outcome::Granted);
}

TEST_F(Waking, ServesAsManyAsThereIsMemoryForInTheirOrder) {
  HostMemoryReservation all = adaptor.reserve(limit);
  Asked first{adaptor, 512};
  Asked second{adaptor, 256};
  Asked third{adaptor, 512};
  Asked fourth{adaptor, 64};
  all.close();
  EXPECT_EQ(first.outcome(), Outcome::Granted);
  EXPECT_EQ(second.outcome(), Outcome::Granted);
  EXPECT_EQ(third.outcome(), Outcome::Waits);
  EXPECT_EQ(fourth.outcome(), Outcome::Waits) << "there is enough for it, but it is not its turn";
  second.drop();
  EXPECT_EQ(third.outcome(), Outcome::Granted);
  EXPECT_EQ(fourth.outcome(), Outcome::Waits);
  first.drop();
  EXPECT_EQ(fourth.outcome(), Outcome::Granted);
}

// -- nested adaptors -------------------------------------------------------------------------------------------------

TEST_F(Waking, ReachesANestedAdaptorWithAFreeInTheReservationItStandsOn) {
  HostMemoryReservation lender = adaptor.reserve(512);
  Buffer buffer{lender, 512};
  HostReservationAwareResourceAdaptor nested{lender, 512};
  Asked asked{nested, 256};
  EXPECT_EQ(asked.outcome(), Outcome::Waits);
  buffer.free();
  EXPECT_EQ(asked.outcome(), Outcome::Granted);
  EXPECT_EQ(lender.balance(), 256);
}

TEST_F(Waking, ReachesANestedAdaptorWithTheGrowthOfTheReservationItStandsOn) {
  HostMemoryReservation lender = adaptor.reserve(64);
  HostReservationAwareResourceAdaptor nested{lender, 512};
  Asked asked{nested, 256};
  lender.grow(128);
  EXPECT_EQ(asked.outcome(), Outcome::Waits);
  lender.grow(64);
  EXPECT_EQ(asked.outcome(), Outcome::Granted);
}

TEST_F(Waking, ReachesANestedAdaptorWithAMergeIntoTheReservationItStandsOn) {
  HostMemoryReservation lender = adaptor.reserve(64);
  HostReservationAwareResourceAdaptor nested{lender, 512};
  Asked asked{nested, 256};
  lender.merge(adaptor.reserve(192));
  EXPECT_EQ(asked.outcome(), Outcome::Granted);
}

TEST_F(Waking, ReachesANestedAdaptorWithTheCloseOfItsOwnReservation) {
  HostMemoryReservation const lender = adaptor.reserve(512);
  HostReservationAwareResourceAdaptor nested{lender, 512};
  HostMemoryReservation held = nested.reserve(512);
  Asked asked{nested, 512};
  EXPECT_EQ(asked.outcome(), Outcome::Waits);
  held.close();
  EXPECT_EQ(asked.outcome(), Outcome::Granted);
}

TEST_F(Waking, ReachesANestedAdaptorWithItsRaisedLimit) {
  HostMemoryReservation const lender = adaptor.reserve(512);
  HostReservationAwareResourceAdaptor nested{lender, 256};
  HostMemoryReservation const held = nested.reserve(256);
  Asked asked{nested, 256};
  EXPECT_EQ(asked.outcome(), Outcome::Waits);
  nested.set_limit(512);
  EXPECT_EQ(asked.outcome(), Outcome::Granted);
}

TEST_F(Waking, ReachesANestedAdaptorWithTheCloseOfAnotherOneOnTheSameReservation) {
  HostMemoryReservation const lender = adaptor.reserve(512);
  HostReservationAwareResourceAdaptor left{lender, 512};
  HostReservationAwareResourceAdaptor right{lender, 512};
  HostMemoryReservation held = left.reserve(512);
  Asked asked{right, 512};
  EXPECT_EQ(asked.outcome(), Outcome::Waits);
  held.close();
  EXPECT_EQ(asked.outcome(), Outcome::Granted);
}

TEST_F(Waking, ReachesANestedAdaptorWithWhatComesBackToTheBudgetItsReservationGrowsFrom) {
  HostMemoryReservation other = adaptor.reserve(960);
  HostMemoryReservation const lender = adaptor.reserve(64, {.exhausted = ExhaustedPolicy::GrowOrRefuse});
  HostReservationAwareResourceAdaptor nested{lender, 512};
  Asked asked{nested, 256};
  EXPECT_EQ(asked.outcome(), Outcome::Waits);
  other.close();
  EXPECT_EQ(asked.outcome(), Outcome::Granted);
}

TEST_F(Waking, ReachesANestedAdaptorWithTheRaisedLimitOfTheBudgetItsReservationGrowsFrom) {
  HostMemoryReservation const other = adaptor.reserve(960);
  HostMemoryReservation const lender = adaptor.reserve(64, {.exhausted = ExhaustedPolicy::GrowOrRefuse});
  HostReservationAwareResourceAdaptor nested{lender, 512};
  Asked asked{nested, 256};
  EXPECT_EQ(asked.outcome(), Outcome::Waits);
  adaptor.set_limit(2 * limit);
  EXPECT_EQ(asked.outcome(), Outcome::Granted);
}

TEST_F(Waking, ReachesANestedAdaptorWithTheRaisedQuotaThatItsReservationGrowsIn) {
  Consumer consumer = adaptor.make_consumer("query", 64);
  HostMemoryReservation const lender =
      adaptor.reserve(64, {.exhausted = ExhaustedPolicy::GrowOrRefuse, .consumer = &consumer});
  HostReservationAwareResourceAdaptor nested{lender, 512};
  Asked asked{nested, 256};
  EXPECT_EQ(asked.outcome(), Outcome::Waits);
  consumer.set_quota(512);
  EXPECT_EQ(asked.outcome(), Outcome::Granted);
}

TEST_F(Waking, ReachesThroughTwoNestedAdaptors) {
  HostMemoryReservation other = adaptor.reserve(896);
  HostMemoryReservation const outer = adaptor.reserve(64, {.exhausted = ExhaustedPolicy::GrowOrRefuse});
  HostReservationAwareResourceAdaptor middle{outer, 512};
  HostMemoryReservation const inner = middle.reserve(64, {.exhausted = ExhaustedPolicy::GrowOrRefuse});
  HostReservationAwareResourceAdaptor nested{inner, 512};
  Asked asked{nested, 256};
  EXPECT_EQ(asked.outcome(), Outcome::Waits);
  other.close();
  EXPECT_EQ(asked.outcome(), Outcome::Granted);
}

TEST_F(Waking, TellsANestedAdaptorThatTheReservationItStandsOnIsClosed) {
  HostMemoryReservation lender = adaptor.reserve(512);
  HostReservationAwareResourceAdaptor nested{lender, 512};
  HostMemoryReservation const held = nested.reserve(512);
  Asked asked{nested, 256};
  Blocked blocked{nested, 256};
  await_waiting(nested, 2);
  lender.close();
  EXPECT_EQ(blocked.outcome(), Outcome::Refused);  // first: its thread may be the one that tells the other
  EXPECT_EQ(asked.outcome(), Outcome::Refused);
  EXPECT_EQ(asked.fields().setting.view(), "the reservation it stands on, which is closed");
}

// -- threads ---------------------------------------------------------------------------------------------------------

TEST_F(Waking, ReachesABlockedThreadFromAnotherOne) {
  HostMemoryReservation all = adaptor.reserve(limit);
  Blocked blocked{adaptor, 512};
  await_waiting(adaptor, 1);
  all.close();
  EXPECT_EQ(blocked.outcome(), Outcome::Granted);
  EXPECT_EQ(blocked.reservation().granted(), 512);
}

TEST_F(Waking, RunsCallbacksWithoutAnExecutorOnTheThreadThatBroughtTheMemory) {
  HostMemoryReservation all = adaptor.reserve(limit);
  Buffer buffer{all, limit};
  all.close();
  Asked asked{adaptor, 512};
  std::thread::id freeing;
  std::thread other{[&] {
    freeing = std::this_thread::get_id();
    buffer.free();
  }};
  other.join();
  EXPECT_EQ(asked.outcome(), Outcome::Granted);
  EXPECT_EQ(asked.thread(), freeing);
}

// Everybody who waits is served in the end, whoever frees how: no wake-up is lost.
TEST_F(Waking, IsNeverLostAmongManyThreads) {
  constexpr int threads = 6;
  constexpr int rounds = 300;
  HostMemoryReservation const lender = adaptor.reserve(256, {.exhausted = ExhaustedPolicy::GrowOrRefuse});
  HostReservationAwareResourceAdaptor nested{lender, 512};
  Consumer consumer = adaptor.make_consumer("query", 640);
  std::vector<std::thread> workers;
  for (int t = 0; t < threads; ++t) {
    workers.emplace_back([&, t] {
      for (int i = 0; i < rounds; ++i) {
        auto& from = (t + i) % 3 == 0 ? nested : adaptor;
        std::size_t const bytes = 64U << static_cast<unsigned>((t + i) % 4);
        HostMemoryReservation held =
            from.reserve_blocking(bytes, {.consumer = (t + i) % 3 == 1 ? &consumer : nullptr},
                                  {.priority = i % 2, .net_memory_delta = i % 5 == 0 ? -1024 : 0});
        Buffer buffer{held, 64};
        switch (i % 4) {
          case 0: held.close(); break;
          case 1: (void)held.shrink_to_fit(); break;
          case 2: held = {}; break;
          default: {
            HostMemoryReservation part = held.split(static_cast<std::size_t>(held.balance()));
            break;
          }
        }
        buffer.free();
      }
    });
  }
  for (std::thread& worker : workers) { worker.join(); }
  EXPECT_EQ(waiting(adaptor) + waiting(nested), 0U);
  EXPECT_EQ(nested.committed(), 0);
  EXPECT_EQ(consumer.used(), 0);
  EXPECT_EQ(adaptor.committed(), lender.granted());
}

// Two threads build on one reservation at once, and both wait.
TEST_F(Waking, ReachesNestedAdaptorsThatWereBuiltOnOneReservationAtOnce) {
  HostMemoryReservation lender = adaptor.reserve(512);
  Buffer buffer{lender, 512};
  auto const resource = lender.resource();
  std::latch both{2};
  std::atomic<int> granted{0};
  auto const work = [&] {
    both.arrive_and_wait();
    HostReservationAwareResourceAdaptor nested{resource, 512};
    HostMemoryReservation const held = nested.reserve_blocking(512);
    ++granted;
  };
  std::thread first{work};
  std::thread second{work};
  both.wait();
  buffer.free();
  first.join();
  second.join();
  EXPECT_EQ(granted, 2);
}

}  // namespace
}  // namespace earmark
