// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/memory/pressure.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <latch>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "memory/asked.hpp"
#include "memory/watched_adaptor.hpp"

namespace earmark {
namespace {

constexpr std::size_t limit = 1024;
using Told = std::vector<std::int64_t>;

class Pressure : public ::testing::Test {
 protected:
  PressureSubscription listen() {
    return adaptor.on_pressure([this](std::int64_t missing) { told.push_back(missing); });
  }
  void release(std::size_t bytes) { (void)all.split(bytes); }

  Told told;
  WatchedHost host{limit};
  HostReservationAwareResourceAdaptor& adaptor{host.adaptor};
  HostMemoryReservation all = adaptor.reserve(limit);
};

TEST_F(Pressure, IsToldOfADeficitThatOverbookingMakes) {
  PressureSubscription const listening = listen();
  HostMemoryReservation const more = adaptor.reserve(512, AllowOverbooking::YES);
  EXPECT_EQ(adaptor.pressure(), 512);
  EXPECT_EQ(told, (Told{512}));
}

TEST_F(Pressure, RisesWhenOthersOverbookWhileSomebodyWaits) {
  Asked const asked{adaptor, 512};
  HostMemoryReservation const more = adaptor.reserve(256, AllowOverbooking::YES);
  EXPECT_EQ(adaptor.pressure(), 768);
}

TEST_F(Pressure, IsWhatTheFirstInTheQueueMisses) {
  EXPECT_EQ(adaptor.pressure(), 0);
  release(192);
  Asked first{adaptor, 512};
  Asked second{adaptor, 1024};
  EXPECT_EQ(adaptor.pressure(), 512 - 192);
  release(64);
  EXPECT_EQ(adaptor.pressure(), 512 - 256);
  release(256);
  EXPECT_EQ(first.outcome(), Outcome::Granted);
  EXPECT_EQ(adaptor.pressure(), 1024);
  all.close();
  EXPECT_EQ(adaptor.pressure(), 512);
  first.drop();
  EXPECT_EQ(second.outcome(), Outcome::Granted);
  EXPECT_EQ(adaptor.pressure(), 0);
}

TEST_F(Pressure, IsToldWheneverItChangesAndEndsAtZero) {
  PressureSubscription const listening = listen();
  release(192);
  EXPECT_EQ(told, Told{}) << "nobody waits";
  Asked first{adaptor, 512};
  Asked second{adaptor, 256};
  EXPECT_EQ(told, (Told{320})) << "the second changes nothing";
  release(64);
  EXPECT_EQ(told, (Told{320, 256}));
  all.close();
  EXPECT_EQ(told, (Told{320, 256, 0}));
}

TEST_F(Pressure, CountsADeficit) {
  HostMemoryReservation over = adaptor.reserve(256, AllowOverbooking::YES);
  EXPECT_EQ(adaptor.pressure(), 256);
  over.close();
  EXPECT_EQ(adaptor.pressure(), 0);
  adaptor.set_limit(512);
  EXPECT_EQ(adaptor.pressure(), 512);
}

TEST_F(Pressure, IsToldOfALimitBelowWhatIsCommitted) {
  PressureSubscription const listening = listen();
  adaptor.set_limit(512);
  adaptor.set_limit(2048);
  EXPECT_EQ(told, (Told{512, 0}));
}

TEST_F(Pressure, EndsWhenTheWaitIsGivenUp) {
  PressureSubscription const listening = listen();
  std::stop_source stop;
  WaitOptions wait;
  wait.stop = stop.get_token();
  Asked const asked{adaptor, 512, {}, wait};
  stop.request_stop();
  EXPECT_EQ(told, (Told{512, 0}));
  Asked const other{adaptor, 256};
  adaptor.shutdown();
  EXPECT_EQ(told, (Told{512, 0, 256, 0}));
}

TEST_F(Pressure, IsNoneWhereOnlyAQuotaIsShort) {
  Consumer consumer = adaptor.make_consumer("query", 0);
  Asked asked{adaptor, 0, {.consumer = &consumer}};
  consumer.set_quota(64);
  HostMemoryReservation part = all.split(512);
  part.close();
  HostMemoryReservation const held = adaptor.reserve(64, {.consumer = &consumer});
  PressureSubscription const listening = listen();
  Asked const waits{adaptor, 64, {.consumer = &consumer}};
  EXPECT_EQ(waits.outcome(), Outcome::Waits);
  EXPECT_EQ(adaptor.pressure(), 0);
  EXPECT_EQ(told, Told{});
}

TEST_F(Pressure, IsToldToAllWhoListenUntilTheyStop) {
  Told others;
  std::optional<PressureSubscription> listening{listen()};
  PressureSubscription other = adaptor.on_pressure([&](std::int64_t missing) { others.push_back(missing); });
  Asked const asked{adaptor, 512};
  listening.reset();
  all.close();
  EXPECT_EQ(told, (Told{512}));
  EXPECT_EQ(others, (Told{512, 0}));
  other.end();
  other.end();
}

// A spill engine that frees what is missing on the spot: the wait is over before it has begun.
TEST_F(Pressure, MayBeRelievedByTheListenerItself) {
  PressureSubscription const listening = adaptor.on_pressure([&](std::int64_t missing) {
    told.push_back(missing);
    if (missing > 0) { release(static_cast<std::size_t>(missing)); }
  });
  Asked const asked{adaptor, 512};
  EXPECT_EQ(asked.outcome(), Outcome::Granted);
  EXPECT_EQ(told, (Told{512, 0}));
  EXPECT_EQ(adaptor.reserve_blocking(256).granted(), 256);
}

// A callback may do anything with the adaptor.
TEST_F(Pressure, LetsItsListenersAllocateFreeReserveAndListen) {
  std::vector<PressureSubscription> more;
  PressureSubscription const listening = adaptor.on_pressure([&](std::int64_t missing) {
    told.push_back(missing);
    if (missing != 128) { return; }
    auto resource = all.resource();
    HostMemoryReservation part = all.split(64);
    part.close();
    EXPECT_FALSE(adaptor.try_reserve(64)) << "somebody waits";
    resource.deallocate_sync(resource.allocate_sync(64, 64), 64, 64);
    adaptor.deallocate_sync(adaptor.allocate_sync(64, 64), 64, 64);
    (void)adaptor.report();
    more.push_back(adaptor.on_pressure([](std::int64_t) {}));
  });
  Asked const asked{adaptor, 128};
  EXPECT_EQ(told, (Told{128, 64}));
  all.close();
  EXPECT_EQ(told, (Told{128, 64, 0}));
  EXPECT_EQ(asked.outcome(), Outcome::Granted);
}

TEST_F(Pressure, LetsAListenerEndItsOwnSubscriptionInsideTheCall) {
  auto const captured = std::make_shared<int>(0);
  PressureSubscription listening;
  listening = adaptor.on_pressure([&, captured](std::int64_t missing) {
    told.push_back(missing);
    listening.end();
    EXPECT_EQ(captured.use_count(), 2) << "what runs is kept until it is over";
  });
  EXPECT_EQ(captured.use_count(), 2);
  Asked const asked{adaptor, 512};
  EXPECT_EQ(captured.use_count(), 1) << "and not longer";
  all.close();
  EXPECT_EQ(told, (Told{512}));
}

// What a listener captured goes with its subscription, even the adaptor itself.
TEST(PressureSubscriptions, LetGoOfWhatTheyCaptured) {
  testing::FaultControl faults;
  auto const captured = std::make_shared<int>(0);
  {
    HostReservationAwareResourceAdaptor adaptor{testing::FaultyResource{HostMemoryResource{}, faults}, limit};
    PressureSubscription const listening = adaptor.on_pressure([adaptor, captured](std::int64_t) {});
    EXPECT_EQ(captured.use_count(), 2);
  }
  EXPECT_EQ(captured.use_count(), 1);
}

TEST(PressureSubscriptions, MayOutliveTheAdaptor) {
  PressureSubscription listening;
  {
    HostReservationAwareResourceAdaptor adaptor{HostMemoryResource{}, limit};
    listening = adaptor.on_pressure([](std::int64_t) {});
  }
  listening.end();
}

// Removal waits for a call in flight, and for nothing else.
TEST_F(Pressure, WaitsForACallUnderWayWhenASubscriptionEnds) {
  std::latch called{1};
  std::latch go_on{1};
  std::atomic<bool> over{false};
  std::optional<PressureSubscription> listening{adaptor.on_pressure([&](std::int64_t missing) {
    if (missing == 0) { return; }
    called.count_down();
    go_on.wait();
    over = true;
  })};
  std::thread waiting{[&] { (void)adaptor.reserve_blocking(512); }};
  called.wait();
  std::thread ending{[&] {
    listening.reset();
    EXPECT_TRUE(over);
  }};
  go_on.count_down();
  ending.join();
  all.close();
  waiting.join();
}

TEST_F(Pressure, IsNeverToldTwiceAtOnceAndEndsWithTheLatest) {
  std::atomic<int> inside{0};
  std::atomic<std::int64_t> latest{-1};
  PressureSubscription const listening = adaptor.on_pressure([&](std::int64_t missing) {
    EXPECT_EQ(inside.fetch_add(1), 0);
    latest = missing;
    EXPECT_EQ(inside.fetch_sub(1), 1);
  });
  all.close();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 300; ++i) {
        (void)adaptor.reserve_blocking(256U + 64U * static_cast<unsigned>((t + i) % 12));
      }
    });
  }
  for (std::thread& thread : threads) { thread.join(); }
  EXPECT_EQ(adaptor.pressure(), 0);
  EXPECT_LE(latest, 0);
}

TEST_F(Pressure, MayBeListenedToAndLeftWhileItIsTold) {
  all.close();
  std::atomic<bool> over{false};
  std::thread listening{[&] {
    while (!over) {
      int seen = 0;
      PressureSubscription const one = adaptor.on_pressure([&seen](std::int64_t) { ++seen; });
    }
  }};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 300; ++i) { (void)adaptor.reserve_blocking(640); }
    });
  }
  for (std::thread& thread : threads) { thread.join(); }
  over = true;
  listening.join();
}

}  // namespace
}  // namespace earmark
