// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Who is served when, and how a wait ends.
#include "earmark/memory/waiting.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "memory/waiting_requests.hpp"

namespace earmark {
namespace {

using namespace std::chrono_literals;

// -- order -----------------------------------------------------------------------------------------------------------

TEST_F(WaitingRequests, AreServedAtOnceWhenThereIsEnough) {
  release(512);
  Asked asked{adaptor, 512};
  EXPECT_EQ(asked.outcome(), Outcome::Granted);
  release(256);
  EXPECT_EQ(adaptor.reserve_blocking(256).granted(), 256);
}

TEST_F(WaitingRequests, AreServedInTheOrderInWhichTheyCame) {
  for (char const* name : {"a", "b", "c", "d"}) { ask(name); }
  all.close();
  EXPECT_EQ(served, "abcd");
}

TEST_F(WaitingRequests, OfHigherPriorityGoFirst) {
  ask("a", with_priority(0));
  ask("b", with_priority(2));
  ask("c", with_priority(1));
  ask("d", with_priority(2));
  ask("e", with_priority(-1));
  all.close();
  EXPECT_EQ(served, "bdcae");
}

TEST_F(WaitingRequests, OfOnePriorityGoByWhatTheyLeaveInUse) {
  ask("a", with_delta(512));
  ask("b", with_delta(0));
  ask("c", with_delta(-64));
  ask("d", with_delta(0));
  all.close();
  EXPECT_EQ(served, "cbda");
}

TEST_F(WaitingRequests, OfLowerPriorityGoLaterEvenIfTheyFreeMemory) {
  ask("a", with_delta(-4096));
  ask("b", with_priority(1));
  all.close();
  EXPECT_EQ(served, "ba");
}

TEST_F(WaitingRequests, ThatWereOvertakenOftenEnoughAreOvertakenNoMore) {
  ask("o", with_priority(0));
  for (char const* name : {"1", "2", "3", "4", "5"}) { ask(name, with_priority(1)); }
  all.close();
  EXPECT_EQ(served, "123o45");
}

TEST_F(WaitingRequests, ThatFreeMoreThanTheyAskForPassAllWhoWaitAsOftenAsAgeingAllows) {
  release(64);
  ask("o");
  for (char const* name : {"1", "2", "3", "4", "5"}) { ask(name, with_delta(-1), 64); }
  EXPECT_EQ(served, "123") << "the old one is owed its turn now";
  all.close();
  EXPECT_EQ(served, "123o45");
}

TEST_F(WaitingRequests, AreNotPassedBySmallerOnesForEver) {
  ask("L", {}, limit);
  for (int i = 0; i < 15; ++i) {
    release(64);
    ask("s", {}, 64);
  }
  EXPECT_EQ(served, "");
  all.close();
  EXPECT_EQ(served.substr(0, 1), "L");
}

TEST_F(WaitingRequests, AreNotPassedByOnesThatDoNotWait) {
  release(512);
  Asked asked{adaptor, 1024};
  EXPECT_EQ(adaptor.available(), 512);
  EXPECT_FALSE(adaptor.try_reserve(64));
  EXPECT_THROW((void)adaptor.reserve(64), ReservationRefused);
  EXPECT_THROW((void)adaptor.reserve_up_to(512, 64), ReservationRefused);
  EXPECT_FALSE(all.try_grow(64));
  all.close();
  EXPECT_EQ(asked.outcome(), Outcome::Granted);
}

TEST_F(WaitingRequests, AreNotPassedByANestedAdaptorsOwnReservations) {
  HostReservationAwareResourceAdaptor nested{all, limit};
  HostMemoryReservation held = nested.reserve(512);
  Asked asked{nested, 1024};
  EXPECT_FALSE(nested.try_reserve(64));
  EXPECT_THROW((void)nested.reserve_up_to(512, 64), ReservationRefused);
  held.close();
  EXPECT_EQ(asked.outcome(), Outcome::Granted);
}

TEST_F(WaitingRequests, ArePassedByUnreservedAllocations) {
  release(512);
  Asked asked{adaptor, 1024};
  void* const pointer = adaptor.allocate_sync(64, 64);
  EXPECT_EQ(adaptor.available(), 448);
  all.close();
  EXPECT_EQ(asked.outcome(), Outcome::Waits);
  adaptor.deallocate_sync(pointer, 64, 64);
  EXPECT_EQ(asked.outcome(), Outcome::Granted);
}

TEST_F(WaitingRequests, ArePassedByAllocationsOfAReservationThatGrows) {
  release(512);
  HostMemoryReservation growing = adaptor.reserve(64, {.exhausted = ExhaustedPolicy::GrowOrRefuse});
  Asked asked{adaptor, 1024};
  auto resource = growing.resource();
  void* const pointer = resource.allocate_sync(256, 64);
  EXPECT_EQ(growing.granted(), 256);
  resource.deallocate_sync(pointer, 256, 64);
  growing.close();
  all.close();
  EXPECT_EQ(asked.outcome(), Outcome::Granted);
}

TEST_F(WaitingRequests, AreNotPassedByThoseWhoTakeNothing) {
  release(64);
  Asked asked{adaptor, 512};
  HostMemoryReservation const nothing = adaptor.reserve_up_to(256, 0);
  EXPECT_EQ(nothing.granted(), 0);
  EXPECT_EQ(nothing.overbooking().tier_deficit, 0);
  EXPECT_THROW((void)adaptor.reserve_up_to(256, 64), ReservationRefused);
  EXPECT_EQ(adaptor.available(), 64);
}

TEST_F(WaitingRequests, ArePassedByThoseWhoMayOverbook) {
  Asked asked{adaptor, 512};
  EXPECT_EQ(adaptor.reserve(64, AllowOverbooking::YES).overbooking().tier_deficit, 64);
  EXPECT_TRUE(adaptor.try_reserve(64, {.overbooking = AllowOverbooking::YES}));
  EXPECT_EQ(asked.outcome(), Outcome::Waits);
}

TEST_F(WaitingRequests, ShortOfTheirQuotaHoldUpNobody) {
  Consumer consumer = adaptor.make_consumer("query", 256);
  release(256);
  HostMemoryReservation held = adaptor.reserve(256, {.consumer = &consumer});
  Asked limited{adaptor, 128, {.consumer = &consumer}};
  Asked free{adaptor, 512};
  release(512);
  EXPECT_EQ(limited.outcome(), Outcome::Waits);
  EXPECT_EQ(free.outcome(), Outcome::Granted);
  held.close();
  EXPECT_EQ(limited.outcome(), Outcome::Granted);
}

TEST_F(WaitingRequests, OfNoBytesWaitForNothing) {
  Asked asked{adaptor, 0};
  EXPECT_EQ(asked.outcome(), Outcome::Granted);
  EXPECT_EQ(asked.reservation().granted(), 0);
}

TEST_F(WaitingRequests, AreShownWithWhatTheyWaitFor) {
  Asked first{adaptor, 100, {.label = "scan"}, with_priority(-1)};
  Asked second{adaptor, 512, {.label = "join"}, with_delta(-64)};
  clock.advance(3ns);
  MemoryReport const report = adaptor.report();
  ASSERT_EQ(report.waiting.size(), 2U);
  EXPECT_EQ(report.waiting[0].label, "join");
  EXPECT_EQ(report.waiting[0].bytes, 512);
  EXPECT_EQ(report.waiting[0].net_memory_delta, -64);
  EXPECT_EQ(report.waiting[1].label, "scan");
  EXPECT_EQ(report.waiting[1].bytes, 128);
  EXPECT_EQ(report.waiting[1].priority, -1);
  EXPECT_EQ(report.waiting[1].overtaken, 1);
  EXPECT_EQ(report.waiting[1].waited, 3ns);
  EXPECT_EQ(report.pressure, 512);
}

// -- requests that can never be served -------------------------------------------------------------------------------

// A request beyond the limit is refused at once, in every mode.
TEST_F(WaitingRequests, ThatCanNeverBeServedEndAtOnce) {
  Consumer consumer = adaptor.make_consumer("query", 256);
  for (std::size_t const bytes : {limit + 1, std::size_t{1} << 62, SIZE_MAX - 512, SIZE_MAX}) {
    EXPECT_EQ((Asked{adaptor, bytes}.outcome()), Outcome::Impossible);
    EXPECT_THROW((void)adaptor.reserve_blocking(bytes), ImpossibleRequest);
    EXPECT_THROW((void)adaptor.reserve(bytes), ImpossibleRequest);
    EXPECT_FALSE(adaptor.try_reserve(bytes));
  }
  Asked const asked{adaptor, 320, {.consumer = &consumer}};
  EXPECT_EQ(asked.outcome(), Outcome::Impossible);
  EXPECT_EQ(asked.fields().setting.view(), "the consumer's quota");
  EXPECT_THROW((void)adaptor.reserve_blocking(320, {.consumer = &consumer}), ImpossibleRequest);
}

TEST_F(WaitingRequests, ThatBecomeImpossibleEndAtOnce) {
  Consumer consumer = adaptor.make_consumer("query", 512);
  Asked limited{adaptor, 512, {.consumer = &consumer}};
  Asked large{adaptor, 768};
  Blocked blocked{adaptor, 768};
  Asked small{adaptor, 256};
  await_waiting(adaptor, 4);
  adaptor.set_limit(767);
  EXPECT_EQ(large.outcome(), Outcome::Impossible);
  EXPECT_EQ(blocked.outcome(), Outcome::Impossible);
  EXPECT_EQ(large.fields().limit, 767);
  EXPECT_EQ(limited.outcome(), Outcome::Waits);
  consumer.set_quota(448);
  EXPECT_EQ(limited.outcome(), Outcome::Impossible);
  all.close();
  EXPECT_EQ(small.outcome(), Outcome::Granted);
}

// -- abort, stop, shutdown -------------------------------------------------------------------------------------------

// Abort is sticky and comes back as an exception from any reserve.
TEST_F(WaitingRequests, OfAnAbortedConsumerEndAndSoDoAllLaterOnes) {
  Consumer consumer = adaptor.make_consumer("query");
  Consumer other = adaptor.make_consumer("other");
  release(256);
  HostMemoryReservation held = adaptor.reserve(128, {.consumer = &consumer});
  Asked asked{adaptor, 512, {.consumer = &consumer}};
  Blocked blocked{adaptor, 512, {.consumer = &consumer}};
  Asked bystander{adaptor, 512, {.consumer = &other}};
  await_waiting(adaptor, 3);
  consumer.abort();
  EXPECT_TRUE(consumer.aborted());
  EXPECT_EQ(asked.outcome(), Outcome::Aborted);
  EXPECT_EQ(blocked.outcome(), Outcome::Aborted);
  EXPECT_EQ(bystander.outcome(), Outcome::Waits);
  all.close();
  EXPECT_EQ(bystander.outcome(), Outcome::Granted);

  ReservationOptions const its{.consumer = &consumer};
  EXPECT_THROW((void)adaptor.reserve(64, its), ReservationAborted);
  EXPECT_THROW((void)adaptor.reserve(64, {.overbooking = AllowOverbooking::YES, .consumer = &consumer}),
               ReservationAborted);
  EXPECT_THROW((void)adaptor.reserve_up_to(64, 0, its), ReservationAborted);
  EXPECT_THROW((void)adaptor.reserve_blocking(64, its), ReservationAborted);
  EXPECT_EQ((Asked{adaptor, 64, its}.outcome()), Outcome::Aborted);
  EXPECT_FALSE(adaptor.try_reserve(64, its));
  EXPECT_THROW(held.grow(64), ReservationAborted);
  EXPECT_FALSE(held.try_grow(64));
  EXPECT_EQ(held.granted(), 128) << "what it holds stays";
  auto resource = held.resource();
  resource.deallocate_sync(resource.allocate_sync(128, 64), 128, 64);
}

TEST_F(WaitingRequests, EndWhenTheyAreStopped) {
  std::stop_source stop;
  Asked asked{adaptor, 512, {}, stopped_by(stop)};
  Blocked blocked{adaptor, 512, {}, stopped_by(stop)};
  await_waiting(adaptor, 2);
  stop.request_stop();
  EXPECT_EQ(asked.outcome(), Outcome::Aborted);
  EXPECT_EQ(blocked.outcome(), Outcome::Aborted);
  EXPECT_EQ(asked.calls(), 1);
}

TEST_F(WaitingRequests, ThatWereStoppedBeforeDoNotWait) {
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ((Asked{adaptor, 512, {}, stopped_by(stop)}.outcome()), Outcome::Aborted);
  EXPECT_THROW((void)adaptor.reserve_blocking(512, {}, stopped_by(stop)), ReservationAborted);
}

TEST_F(WaitingRequests, ThatWereServedDoNotMindAStop) {
  std::stop_source stop;
  Asked asked{adaptor, 512, {}, stopped_by(stop)};
  all.close();
  stop.request_stop();
  EXPECT_EQ(asked.outcome(), Outcome::Granted);
  EXPECT_EQ(asked.calls(), 1);
  EXPECT_EQ(asked.reservation().granted(), 512);
}

TEST_F(WaitingRequests, MayBeStoppedWhileTheyAreServed) {
  for (int round = 0; round < 200; ++round) {
    HostMemoryReservation held = adaptor.reserve(limit, AllowOverbooking::YES);
    all.close();
    std::stop_source stop;
    std::optional<Asked> asked{std::in_place, adaptor, 512, ReservationOptions{}, stopped_by(stop)};
    Blocked blocked{adaptor, 512, {}, stopped_by(stop)};
    std::thread stopping{[&] { stop.request_stop(); }};
    held.close();
    stopping.join();
    Outcome const outcome = blocked.outcome();
    EXPECT_TRUE(outcome == Outcome::Granted || outcome == Outcome::Aborted);
    EXPECT_EQ(asked->calls(), 1);
    asked.reset();
    blocked.reservation() = {};
    ASSERT_EQ(adaptor.committed(), 0);
  }
}

TEST_F(WaitingRequests, EndWithTheShutdownAndNoneCanWaitAfterIt) {
  Asked asked{adaptor, 512};
  Blocked blocked{adaptor, 512};
  await_waiting(adaptor, 2);
  adaptor.shutdown();
  EXPECT_EQ(asked.outcome(), Outcome::Aborted);
  EXPECT_EQ(blocked.outcome(), Outcome::Aborted);
  EXPECT_EQ((Asked{adaptor, 512}.outcome()), Outcome::Aborted);
  EXPECT_THROW((void)adaptor.reserve_blocking(512), ReservationAborted);
  adaptor.shutdown();
  release(512);
  EXPECT_EQ(adaptor.reserve(256).granted(), 256) << "what need not wait goes on";
  EXPECT_EQ(adaptor.reserve_blocking(256).granted(), 256);
}

// -- deadlines -------------------------------------------------------------------------------------------------------

TEST_F(WaitingRequests, BlockUntilTheirDeadlineAndNotLonger) {
  Blocked blocked{adaptor, 512, {}, until(clock.now() + 10s)};
  await_waiting(adaptor, 1);
  clock.advance(9s);
  EXPECT_EQ(waiting(adaptor), 1U);
  clock.advance(1s);
  EXPECT_EQ(blocked.outcome(), Outcome::Refused);
  EXPECT_EQ(blocked.fields().requested, 512);
  EXPECT_EQ(blocked.fields().shortfall, 512);
}

TEST_F(WaitingRequests, AreServedBeforeTheirDeadline) {
  Blocked blocked{adaptor, 512, {}, until(clock.now() + 10s)};
  await_waiting(adaptor, 1);
  clock.advance(9s);
  all.close();
  EXPECT_EQ(blocked.outcome(), Outcome::Granted);
}

TEST_F(WaitingRequests, OverbookAtTheirDeadlineIfTheyMay) {
  Blocked blocked{adaptor, 512, {}, until(clock.now() + 10s, AfterDeadline::Overbook)};
  await_waiting(adaptor, 1);
  clock.advance(10s);
  EXPECT_EQ(blocked.outcome(), Outcome::Granted);
  EXPECT_EQ(blocked.reservation().overbooking().short_for_this_request, 512);
  EXPECT_EQ(adaptor.available(), -512);
}

TEST_F(WaitingRequests, WhoseDeadlineIsOverDoNotWait) {
  EXPECT_THROW((void)adaptor.reserve_blocking_or_fail(512, clock.now()), ReservationRefused);
  HostMemoryReservation const over = adaptor.reserve_blocking_or_overbook(512, clock.now());
  EXPECT_EQ(over.overbooking().tier_deficit, 512);
}

TEST_F(WaitingRequests, OfAConsumerOverbookItsQuotaToo) {
  Consumer consumer = adaptor.make_consumer("query", 256);
  release(512);
  HostMemoryReservation const held = adaptor.reserve(256, {.consumer = &consumer});
  Blocked blocked{adaptor, 128, {.consumer = &consumer}, until(clock.now() + 1s, AfterDeadline::Overbook)};
  await_waiting(adaptor, 1);
  clock.advance(1s);
  EXPECT_EQ(blocked.outcome(), Outcome::Granted);
  EXPECT_EQ(consumer.used(), 384);
  EXPECT_EQ(adaptor.available(), 128);
}

TEST_F(WaitingRequests, WithoutAThreadKeepTheirDeadlineThroughTheirExecutor) {
  Asked refused{adaptor, 512, {}, on(executor, until(clock.now() + 10s))};
  Asked overbooked{adaptor, 512, {}, on(executor, until(clock.now() + 20s, AfterDeadline::Overbook))};
  clock.advance(10s);
  EXPECT_GT(executor.run_ready(), 0U);
  EXPECT_EQ(refused.outcome(), Outcome::Refused);
  EXPECT_EQ(overbooked.outcome(), Outcome::Waits);
  clock.advance(10s);
  executor.run_ready();
  EXPECT_EQ(overbooked.outcome(), Outcome::Granted);
  EXPECT_EQ(overbooked.reservation().overbooking().tier_deficit, 512);
}

TEST_F(WaitingRequests, ThatWereServedLeaveNothingToTheirDeadline) {
  Asked asked{adaptor, 512, {}, on(executor, until(clock.now() + 10s))};
  all.close();
  executor.run_ready();
  EXPECT_EQ(asked.outcome(), Outcome::Granted);
  clock.advance(10s);
  executor.run_ready();
  EXPECT_EQ(asked.calls(), 1);
}

TEST_F(WaitingRequests, PassOnTheTurnWhenTheirDeadlineComes) {
  release(256);
  Asked large{adaptor, 1024, {}, on(executor, until(clock.now() + 10s))};
  Asked small{adaptor, 256};
  EXPECT_EQ(small.outcome(), Outcome::Waits);
  clock.advance(10s);
  executor.run_ready();
  EXPECT_EQ(large.outcome(), Outcome::Refused);
  EXPECT_EQ(small.outcome(), Outcome::Granted);
}

}  // namespace
}  // namespace earmark
