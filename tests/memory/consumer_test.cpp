// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/memory/consumer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "memory/asked.hpp"
#include "memory/watched_adaptor.hpp"

namespace earmark {
namespace {

class Consumers : public ::testing::Test {
 protected:
  WatchedHost host{4096};
  HostReservationAwareResourceAdaptor& adaptor{host.adaptor};
  Consumer query = adaptor.make_consumer("query", 1024);
  ReservationOptions const its{.consumer = &query};
};

TEST_F(Consumers, HoldNoMoreThanTheirQuota) {
  EXPECT_EQ(query.name(), "query");
  EXPECT_EQ(query.quota(), 1024);
  HostMemoryReservation const first = adaptor.reserve(768, its);
  EXPECT_FALSE(adaptor.try_reserve(320, its));
  try {
    (void)adaptor.reserve(320, its);
    FAIL();
  }
  catch (ReservationRefused const& refused) {
    EXPECT_EQ(refused.fields().setting.view(), "the consumer's quota");
    EXPECT_EQ(refused.fields().shortfall, 64);
  }
  EXPECT_EQ(adaptor.reserve_up_to(4096, 64, its).granted(), 256);
  EXPECT_EQ(query.used(), 768);
  EXPECT_EQ(query.peak_used(), 1024);
  EXPECT_EQ(adaptor.reserve(3072).granted(), 3072) << "nobody else is refused because of it";
}

TEST_F(Consumers, AreRefusedWhatTheAdaptorDoesNotHaveToo) {
  HostMemoryReservation const other = adaptor.reserve(3584);
  EXPECT_FALSE(adaptor.try_reserve(768, its));
  EXPECT_EQ(query.used(), 0);
  EXPECT_EQ(adaptor.reserve_up_to(1024, 64, its).granted(), 512);
  EXPECT_THROW((void)adaptor.reserve_up_to(1024, 768, its), ReservationRefused);
  EXPECT_EQ(query.used(), 0);
  EXPECT_EQ(adaptor.committed(), 3584);
}

// Splitting a reservation does not enlarge the quota.
TEST_F(Consumers, GetNoMoreBySplitting) {
  HostMemoryReservation whole = adaptor.reserve(1024, its);
  HostMemoryReservation part = whole.split(512);
  EXPECT_FALSE(part.try_grow(64));
  EXPECT_FALSE(whole.try_grow(64));
  EXPECT_THROW(part.grow(64), ReservationRefused);
  EXPECT_EQ(query.used(), 1024);
  part.close();
  EXPECT_EQ(query.used(), 512);
  EXPECT_TRUE(whole.try_grow(512));
  whole.merge(adaptor.reserve(0, its));
  whole.close();
  EXPECT_EQ(query.used(), 0);
}

TEST_F(Consumers, GetNoMoreByGrowingInAllocations) {
  HostMemoryReservation const growing =
      adaptor.reserve(64, {.exhausted = ExhaustedPolicy::GrowOrRefuse, .consumer = &query});
  auto resource = growing.resource();
  void* const most = resource.allocate_sync(1024, 64);
  EXPECT_THROW((void)resource.allocate_sync(64, 64), ReservationExhausted);
  resource.deallocate_sync(most, 1024, 64);
  EXPECT_EQ(growing.granted(), 1024);
}

TEST_F(Consumers, PassTheirQuotaOnlyWhereOverbookingIsAllowed) {
  HostMemoryReservation over = adaptor.reserve(2048, {.overbooking = AllowOverbooking::YES, .consumer = &query});
  EXPECT_EQ(query.used(), 2048);
  EXPECT_EQ(over.overbooking().tier_deficit, 0) << "the adaptor has enough";
  EXPECT_FALSE(adaptor.try_reserve(64, its));
  over.close();
  EXPECT_TRUE(adaptor.try_reserve(64, its));
}

TEST_F(Consumers, AreChargedForWhatIsLiveAfterAClose) {
  HostMemoryReservation reservation = adaptor.reserve(1024, its);
  auto resource = reservation.resource();
  void* const pointer = resource.allocate_sync(256, 64);
  reservation.close();
  EXPECT_EQ(query.used(), 256);
  resource.deallocate_sync(pointer, 256, 64);
  EXPECT_EQ(query.used(), 0);
}

TEST_F(Consumers, KeepWhatTheyHoldWhenTheirQuotaIsLowered) {
  HostMemoryReservation held = adaptor.reserve(1024, its);
  query.set_quota(512);
  EXPECT_EQ(query.quota(), 512);
  EXPECT_EQ(query.used(), 1024);
  EXPECT_FALSE(adaptor.try_reserve(0 + 64, its));
  (void)held.split(512);
  EXPECT_FALSE(adaptor.try_reserve(64, its));
  held.close();
  EXPECT_TRUE(adaptor.try_reserve(512, its));
}

TEST_F(Consumers, WithoutAQuotaHaveWhatTheAdaptorHas) {
  Consumer const unlimited = adaptor.make_consumer("unlimited");
  EXPECT_EQ(adaptor.reserve(4096, {.consumer = &unlimited}).granted(), 4096);
  EXPECT_EQ(unlimited.peak_used(), 4096);
}

TEST_F(Consumers, MayBeOfANestedAdaptor) {
  HostMemoryReservation const lender = adaptor.reserve(2048);
  HostReservationAwareResourceAdaptor nested{lender, 2048};
  Consumer inner = nested.make_consumer("inner", 512);
  HostMemoryReservation held = nested.reserve(512, {.consumer = &inner});
  EXPECT_FALSE(nested.try_reserve(64, {.consumer = &inner}));
  EXPECT_EQ(lender.spent(), 512);
  Asked asked{nested, 256, {.consumer = &inner}};
  held.close();
  EXPECT_EQ(asked.outcome(), Outcome::Granted);
  asked.drop();
  EXPECT_EQ(inner.used(), 0);
  EXPECT_EQ(lender.spent(), 0);
}

TEST_F(Consumers, AreOfOneAdaptor) {
  WatchedHost other{4096};
  EXPECT_THROW((void)other.adaptor.reserve(64, its), ReservationMismatch);
  EXPECT_THROW((void)other.adaptor.try_reserve(64, its), ReservationMismatch);
  EXPECT_THROW(other.adaptor.async_reserve(64, [](auto) {}, its), ReservationMismatch);
  HostMemoryReservation mine = adaptor.reserve(64, its);
  HostMemoryReservation nobodys = adaptor.reserve(64);
  EXPECT_THROW(nobodys.merge(std::move(mine)), ReservationMismatch);
  EXPECT_EQ(mine.granted(), 64) << "unharmed";
}

TEST_F(Consumers, AreEqualToTheirCopies) {
  Consumer const copy = query;
  EXPECT_EQ(copy, query);
  EXPECT_NE(adaptor.make_consumer("query", 1024), query);
  Consumer assigned = adaptor.make_consumer("other");
  assigned = copy;
  HostMemoryReservation const held = adaptor.reserve(64, its);
  EXPECT_EQ(assigned.used(), 64);
}

TEST_F(Consumers, AreReportedWhileTheyLive) {
  Consumer const other = adaptor.make_consumer("other");
  HostMemoryReservation held = adaptor.reserve(128, its);
  auto consumers = adaptor.report().consumers;
  ASSERT_EQ(consumers.size(), 2U);
  EXPECT_EQ(consumers[0].name, "query");
  EXPECT_EQ(consumers[0].quota, 1024);
  EXPECT_EQ(consumers[0].used, 128);
}

// Whichever of handle, reservation, buffer and adaptor goes first.
TEST(ConsumersAndTheRest, MayEndInAnyOrder) {
  std::vector<int> order{0, 1, 2, 3};
  do {
    testing::FaultControl faults;
    auto adaptor = std::make_unique<HostReservationAwareResourceAdaptor>(
        testing::FaultyResource{HostMemoryResource{}, faults}, std::size_t{4096});
    auto consumer = std::make_unique<Consumer>(adaptor->make_consumer("query", 1024));
    std::optional<HostMemoryReservation> reservation{adaptor->reserve(512, {.consumer = &*consumer})};
    auto resource = std::make_optional(reservation->resource());
    void* const pointer = resource->allocate_sync(64, 64);
    for (int const what : order) {
      if (what == 0) { adaptor.reset(); }
      if (what == 1) { consumer.reset(); }
      if (what == 2) { reservation.reset(); }
      if (what == 3) {
        resource->deallocate_sync(pointer, 64, 64);
        resource.reset();
      }
      if (consumer && !reservation && !resource) { EXPECT_EQ(consumer->used(), 0); }
    }
    EXPECT_EQ(faults.live_bytes(), 0);
  } while (std::next_permutation(order.begin(), order.end()));
}

// Both charges are one step: nobody is refused by a charge that is taken back a moment later.
TEST_F(Consumers, AreNeverRefusedInnocentlyAmongManyThreads) {
  constexpr int rounds = 2000;
  HostMemoryReservation const most = adaptor.reserve(4096 - 1024);
  std::atomic<int> refused{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < rounds; ++i) {
        // Four of these fit; what is larger never does.
        if (!adaptor.try_reserve(256, its)) { ++refused; }
        (void)adaptor.try_reserve(1088, its);
      }
    });
  }
  for (std::thread& thread : threads) { thread.join(); }
  EXPECT_EQ(refused, 0);
  EXPECT_EQ(query.used(), 0);
  EXPECT_LE(query.peak_used(), 1024);
}

TEST_F(Consumers, MayBeAbortedWhileManyThreadsReserveForThem) {
  std::vector<std::thread> threads;
  std::atomic<int> aborted{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      try {
        for (;;) { (void)adaptor.reserve_blocking(512, its); }
      }
      catch (ReservationAborted const&) {
        ++aborted;
      }
    });
  }
  while (query.peak_used() == 0) { std::this_thread::yield(); }
  query.abort();
  for (std::thread& thread : threads) { thread.join(); }
  EXPECT_EQ(aborted, 4);
  EXPECT_EQ(query.used(), 0);
  EXPECT_EQ(adaptor.committed(), 0);
}

TEST_F(Consumers, WhoWaitForTheirOwnQuotaGetNobodyElseRefused) {
  HostMemoryReservation const all = adaptor.reserve(1024, {.consumer = &query});
  Asked const asked{adaptor, 512, {.consumer = &query}};
  EXPECT_TRUE(adaptor.try_reserve(64).has_value());
  EXPECT_EQ(adaptor.reserve_up_to(4096, 64).granted(), 3072);
  HostMemoryReservation other = adaptor.reserve(64);
  EXPECT_TRUE(other.try_grow(64));
  EXPECT_EQ(adaptor.pressure(), 0);
}

// What an allocation would let a reservation grow by is a reservation, too.
TEST_F(Consumers, DoNotGrowOnceTheyAreAborted) {
  for (ExhaustedPolicy const policy : {ExhaustedPolicy::GrowOrRefuse, ExhaustedPolicy::GrowOrOverbook}) {
    Consumer aborted = adaptor.make_consumer("aborted");
    HostMemoryReservation const growing = adaptor.reserve(64, {.exhausted = policy, .consumer = &aborted});
    auto resource = growing.resource();
    resource.deallocate_sync(resource.allocate_sync(128, 64), 128, 64);
    aborted.abort();
    void* const within = resource.allocate_sync(128, 64);  // what it holds stays
    EXPECT_THROW((void)resource.allocate_sync(64, 64), ReservationAborted);
    HostReservationAwareResourceAdaptor nested{growing, 1024};
    EXPECT_THROW((void)nested.reserve(64), ReservationAborted);
    EXPECT_EQ(growing.granted(), 128);
    resource.deallocate_sync(within, 128, 64);
  }
}

TEST_F(Consumers, EndTheWaitingForTheirGrowthWhenTheyAreAborted) {
  HostMemoryReservation const growing =
      adaptor.reserve(64, {.exhausted = ExhaustedPolicy::GrowOrRefuse, .consumer = &query});
  HostMemoryReservation const others = adaptor.reserve(4096 - 64);
  HostReservationAwareResourceAdaptor nested{growing, 1024};
  Asked asked{nested, 128};
  EXPECT_EQ(asked.outcome(), Outcome::Waits);
  query.abort();
  EXPECT_EQ(asked.outcome(), Outcome::Aborted);
}

}  // namespace
}  // namespace earmark
