// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Waiting in a budget's queue, under every interleaving of two or three threads: no wake-up is lost, whatever else
// happens meanwhile; and the designs that look as good and are not.
#include <gtest/gtest.h>

#include <deque>
#include <vector>

#include "earmark/memory/basic_budget.hpp"
#include "memory/exploring.hpp"

namespace earmark::detail::explored {
namespace {

// A budget of `limit` bytes, all of them in somebody's hands.
struct Full : Scenario {
  explicit Full(std::int64_t limit) : budget(limit, 0, 16) { (void)budget.take(limit, Pass::Yes); }
  mutable Budget budget;
  std::uint64_t plain_state() const override { return state_of(budget); }
  void after_step() override { require(budget.account().available() >= 0, "over-drawn"); }
  void require_settled(std::int64_t available) {
    require(!budget.account().awaited(), "the word says that somebody waits");
    require(budget.available() == available, "bytes were lost or doubled");
  }
};

struct TwoWaiters : Full {
  Place first, second;
  TwoWaiters() : Full(3) {}
  Threads threads() override {
    return {[this] { (void)first.start(2, budget); }, [this] { (void)second.start(1, budget); },
            [this] {
              budget.credit(1);
              budget.credit(2);
            }};
  }
  void at_end() override {
    require(first.served() && second.served(), "somebody waits although the bytes are there");
    require_settled(0);
  }
};
TEST(BudgetQueue, ServesAllWhoWaitWhenBytesComeBack) { expect_holds<TwoWaiters>(); }

// Somebody who may not pass, and is refused instead of waiting.
struct WaiterAndTaker : Full {
  Place place;
  WaiterAndTaker() : Full(2) {}
  Threads threads() override {
    return {[this] {
              require(place.take(2, budget) == Take::Ok, "not served");
              budget.credit(2);
            },
            [this] {
              if (budget.take(1, Pass::No).result == Take::Ok) { budget.credit(1); }
            },
            [this] { budget.credit(2); }};
  }
  void at_end() override { require_settled(2); }
};
TEST(BudgetQueue, LosesNoWakeUpToThoseWhoDoNotWait) { expect_holds<WaiterAndTaker>(); }

struct FirstWithdraws : Full {
  Place first, second;
  FirstWithdraws() : Full(8) { budget.credit(1); }
  Threads threads() override {
    return {[this] {
              if (first.start(5, budget) == Take::Queue) {
                require(first.cancel(), "it was not in the queue");
                require(first.wait() == Take::Short, "withdrawn, but told otherwise");
              }
            },
            [this] {
              require(second.take(1, budget) == Take::Ok, "not served");
              budget.credit(1);
            }};
  }
  void at_end() override { require_settled(1); }
};
TEST(BudgetQueue, ServesTheNextWhenTheFirstWithdraws) { expect_holds<FirstWithdraws>(); }

struct WithdrawalRacesGrant : Full {
  Place place;
  bool withdrawn{false};
  WithdrawalRacesGrant() : Full(2) {}
  Threads threads() override {
    return {[this] {
              if (place.start(2, budget) != Take::Queue) { return budget.credit(2); }
              withdrawn = place.cancel();
              Take const result = place.wait();
              require(result == (withdrawn ? Take::Short : Take::Ok), "told otherwise than it was");
              if (result == Take::Ok) { budget.credit(2); }
            },
            [this] {
              budget.credit(1);
              budget.credit(1);
            }};
  }
  void at_end() override { require_settled(2); }
};
TEST(BudgetQueue, EitherGrantsOrWithdrawsNeverBoth) { expect_holds<WithdrawalRacesGrant>(); }

struct LimitRaised : Full {
  Place place;
  LimitRaised() : Full(3) {}
  Threads threads() override {
    return {[this] { (void)place.start(2, budget); }, [this] { budget.set_limit(4); }, [this] { budget.credit(1); }};
  }
  void at_end() override {
    require(place.served(), "waits although the bytes are there");
    require_settled(0);
  }
};
TEST(BudgetQueue, ServesWhoFitsWhenTheLimitIsRaised) { expect_holds<LimitRaised>(); }

struct LimitLowered : Full {
  Place place;
  LimitLowered() : Full(4) {}
  Threads threads() override {
    return {[this] {
              Take const result = place.take(3, budget);
              require(result == Take::Impossible || result == Take::Ok, "neither served nor told");
              if (result == Take::Ok) { budget.credit(3); }
            },
            [this] { budget.set_limit(2); }, [this] { budget.credit(4); }};
  }
  void after_step() override {}
  void at_end() override { require_settled(2); }
};
TEST(BudgetQueue, TellsWhoCanNeverBeServedWhenTheLimitIsLowered) { expect_holds<LimitLowered>(); }

struct AbortRacesWait : Full {
  Budget consumer{4, budget};
  Place first, later;
  AbortRacesWait() : Full(4) {}
  Threads threads() override {
    return {[this] { require(first.take(2, consumer) == Take::Aborted, "waits on although aborted"); },
            [this] {
              consumer.abort();
              require(later.take(1, consumer) == Take::Aborted, "an abort is for good");
            }};
  }
  void at_end() override { require_settled(0); }
};
TEST(BudgetQueue, AbortsWhoWaitsAndWhoIsAboutTo) { expect_holds<AbortRacesWait>(); }

struct AbortRacesGrant : Full {
  Budget consumer{4, budget};
  Place first, later;
  AbortRacesGrant() : Full(4) {}
  Threads threads() override {
    return {[this] {
              Take const result = first.take(2, consumer);
              require(result == Take::Aborted || result == Take::Ok, "neither");
              if (result == Take::Ok) { consumer.credit(2); }
            },
            [this] {
              consumer.abort();
              require(later.take(1, consumer) == Take::Aborted, "an abort is for good, also with bytes at hand");
            },
            [this] { budget.credit(4); }};
  }
  void at_end() override { require_settled(4); }
};
TEST(BudgetQueue, AbortsForGoodEvenWhenBytesAreThere) { expect_holds<AbortRacesGrant>(); }

struct ShutDownRacesWait : Full {
  Place first, second;
  ShutDownRacesWait() : Full(2) {}
  Threads threads() override {
    return {[this] { require(first.take(2, budget) == Take::Aborted, "waits on"); },
            [this] { require(second.take(1, budget) == Take::Aborted, "waits on"); }, [this] { budget.shut_down(); }};
  }
  void at_end() override { require_settled(0); }
};
TEST(BudgetQueue, WakesAllWhenItShutsDown) { expect_holds<ShutDownRacesWait>(); }

// -- consumers --------------------------------------------------------------------------------------------------------

struct BlockedByQuota : Full {
  Budget consumer{1, budget};
  Place blocked, other;
  BlockedByQuota() : Full(3) {
    budget.credit(1);
    (void)consumer.take(1, Pass::Yes);
  }
  Threads threads() override {
    return {[this] { require(blocked.start(1, consumer) == Take::Queue, "passed its quota"); },
            [this] { (void)other.start(1, budget); }, [this] { budget.credit(1); }};
  }
  void at_end() override {
    require(other.served(), "held up by another's quota");
    consumer.credit(1);
    require(blocked.served(), "not served");
    require_settled(0);
  }
};
TEST(BudgetQueue, LetsNobodyWaitForAnothersQuota) { expect_holds<BlockedByQuota>(); }

struct InnocentBesideAQuota : Full {
  Budget consumer{1, budget};
  Place blocked;
  InnocentBesideAQuota() : Full(2) {
    budget.credit(2);
    (void)consumer.take(1, Pass::Yes);
  }
  Threads threads() override {
    return {[this] { require(blocked.start(1, consumer) == Take::Queue, "passed its quota"); },
            [this] { require(budget.take(1, Pass::No).result == Take::Ok, "refused for another's quota"); }};
  }
  void at_end() override {
    budget.credit(1);
    consumer.credit(1);
    require(blocked.served(), "not served");
  }
};
TEST(BudgetQueue, RefusesNobodyForAnothersQuota) { expect_holds<InnocentBesideAQuota>(); }

struct QuotaRaised : Full {
  Budget consumer{2, budget};
  Place place;
  QuotaRaised() : Full(4) {
    budget.credit(4);
    (void)consumer.take(1, Pass::Yes);
  }
  Threads threads() override {
    return {[this] {
              require(place.take(2, consumer) == Take::Ok, "not served");
              consumer.credit(2);
            },
            [this] { consumer.set_limit(3); }};
  }
  void at_end() override { require_settled(3); }
};
TEST(BudgetQueue, ServesWhoFitsWhenItsQuotaIsRaised) { expect_holds<QuotaRaised>(); }

// Others of the same consumer come and go while one waits: they meet at the quota's lock and at the queue's.
struct ConsumerAtBothLocks : Full {
  Budget consumer{2, budget};
  Place place;
  ConsumerAtBothLocks() : Full(2) {}
  virtual void pass_by() {
    if (consumer.take(1, Pass::No).result == Take::Ok) { consumer.credit(1); }
  }
  Threads threads() override {
    return {[this] {
              require(place.take(1, consumer) == Take::Ok, "not served");
              consumer.credit(1);
            },
            [this] { pass_by(); }, [this] { budget.credit(2); }};
  }
  void at_end() override { require_settled(2); }
};
TEST(BudgetQueue, GrantsAConsumerWhoseOthersTakeMeanwhile) { expect_holds<ConsumerAtBothLocks>(); }

struct ConsumerAtBothLocksUpTo : ConsumerAtBothLocks {
  void pass_by() override {
    std::int64_t taken = 0;
    if (consumer.take_up_to(2, 1, 1, taken).result == Take::Ok) { consumer.credit(taken); }
  }
};
TEST(BudgetQueue, GrantsAConsumerWhoseOthersTakeWhatThereIs) { expect_holds<ConsumerAtBothLocksUpTo>(); }

// -- slack ------------------------------------------------------------------------------------------------------------

struct WaiterAndCores : Scenario, Spread {
  Place place;
  WaiterAndCores() : Spread(0, 1, 0) {}  // and one more is held
  Threads threads() override {
    return {[this] {
              require(place.take(2, budget) == Take::Ok, "not served");
              budget.credit(2);
            },
            [this] { budget.credit(1); }, [this] { budget.thaw(); }};
  }
  std::uint64_t plain_state() const override { return state_of(const_cast<Budget&>(budget)); }
  void at_end() override {
    require(!budget.account().awaited() && budget.available() == 2, "not settled");
    budget.thaw();
    std::int64_t const before = budget.account().available();
    budget.credit(1);
    require(budget.account().available() == before, "cores get no slack any more");
  }
};
TEST(BudgetQueue, LosesNoByteToTheCoresWhileSomebodyWaits) { expect_holds<WaiterAndCores>(); }

// -- what does not hold: these must be found --------------------------------------------------------------------------

// A queue of the same parts, put together as one might.
struct RashQueue : Scenario {
  static constexpr std::int64_t waiters_bit = Account::waiters_bit;
  Atomic<std::int64_t> word{0};
  Mutex mutex;
  std::deque<std::int64_t> queue;
  Atomic<int> served{0};
  bool try_take(std::int64_t bytes) {
    std::int64_t now = word.load();
    while ((now >> 2) >= bytes) {
      if (word.compare_exchange_weak(now, now - bytes * 4)) { return true; }
    }
    return false;
  }
  void grant() {
    BasicMutexLock<Mutex> lock{mutex};
    while (!queue.empty() && try_take(queue.front())) {
      queue.pop_front();
      served.fetch_add(1);
    }
  }
  void credit(std::int64_t bytes) {
    if ((word.fetch_add(bytes * 4) & waiters_bit) != 0) { grant(); }
  }
  void wait_for(int count) {
    World::current()->wait_until([this, count] { return served.load() >= count; });
  }
  std::uint64_t plain_state() const override {
    std::uint64_t state = queue.size();
    for (std::int64_t bytes : queue) { state = interleaving::mix(state, static_cast<std::uint64_t>(bytes)); }
    return state;
  }
};

struct NoSecondLook : RashQueue {
  Threads threads() override {
    return {[this] {
              if (try_take(1)) { return; }
              {
                BasicMutexLock<Mutex> lock{mutex};
                queue.push_back(1);
                word.fetch_or(waiters_bit);
              }
              wait_for(1);
            },
            [this] { credit(1); }};
  }
};
TEST(BudgetQueueDesign, EnqueueingWithoutASecondLookLosesAWakeUp) { expect_fails<NoSecondLook>(); }

struct WaitersInAnotherWord : RashQueue {
  Atomic<int> waiters{0};
  Threads threads() override {
    return {[this] {
              {
                BasicMutexLock<Mutex> lock{mutex};
                if (try_take(1)) { return; }
                queue.push_back(1);
                waiters.fetch_add(1);
              }
              wait_for(1);
            },
            [this] {
              word.fetch_add(4);
              if (waiters.load() != 0) { grant(); }
            }};
  }
};
TEST(BudgetQueueDesign, CountingWaitersInAnotherWordLosesAWakeUp) { expect_fails<WaitersInAnotherWord>(); }

// Whoever brings bytes back skips the lock when they are not enough for the first; the first changes meanwhile.
struct NeedOfTheFirst : RashQueue {
  Atomic<std::int64_t> need{0};
  bool second_served{false};
  void credit_if_needed(std::int64_t bytes) {
    std::int64_t const before = word.fetch_add(bytes * 4);
    if ((before & waiters_bit) != 0 && (before >> 2) + bytes >= need.load()) { grant(); }
  }
  void wait(std::int64_t bytes, bool in_front) {
    {
      BasicMutexLock<Mutex> lock{mutex};
      word.fetch_or(waiters_bit);
      if (try_take(bytes)) { return; }
      in_front ? queue.push_front(bytes) : queue.push_back(bytes);
      need.store(queue.front());
    }
    World::current()->wait_until([this, bytes] { return !waits(bytes); });
  }
  bool waits(std::int64_t bytes) const {
    for (std::int64_t other : queue) {
      if (other == bytes) { return true; }
    }
    return false;
  }
  Threads threads() override {
    return {[this] { wait(3, false); },
            [this] {
              wait(1, true);
              second_served = true;
            },
            [this] {
              credit_if_needed(1);
              World::current()->wait_until([this] { return second_served; });
              credit_if_needed(3);
            }};
  }
};
TEST(BudgetQueueDesign, SkippingTheQueueWhenTheFirstNeedsMoreLosesAWakeUp) { expect_fails<NeedOfTheFirst>(); }

struct AbortTestedBeforeTheLock : RashQueue {
  Atomic<int> aborted{0};
  Threads threads() override {
    return {[this] {
              if (aborted.load() != 0) { return; }
              {
                BasicMutexLock<Mutex> lock{mutex};
                queue.push_back(1);
              }
              wait_for(1);
            },
            [this] {
              aborted.store(1);
              BasicMutexLock<Mutex> lock{mutex};
              if (!queue.empty()) { served.fetch_add(1); }
              queue.clear();
            }};
  }
};
TEST(BudgetQueueDesign, TestingForAnAbortBeforeTheLockLeavesOneWaiting) { expect_fails<AbortTestedBeforeTheLock>(); }

// With slack: what lies with cores must be drained after those who wait have announced themselves, and must not come to
// lie there again while they do.
struct RashSlack : RashQueue {
  BasicCoreSlack<Atomics> slack{2};
  Mutex slack_mutex;
  RashSlack() {
    slack.thaw();
    (void)slack.give(1, 4);
  }
  void freeze() {
    BasicMutexLock<Mutex> lock{slack_mutex};
    if (BasicCoreSlack<Atomics>::frozen(slack.epoch())) { return; }
    credit(slack.freeze());
    slack.frozen_and_settled();
  }
  void thaw_whoever_waits() {
    BasicMutexLock<Mutex> lock{slack_mutex};
    if (BasicCoreSlack<Atomics>::frozen(slack.epoch())) { slack.thaw(); }
  }
  void give(std::int64_t bytes) {
    if (!slack.give(bytes, 4)) { credit(bytes); }
  }
  void announce_and_enqueue(std::int64_t bytes) {
    BasicMutexLock<Mutex> lock{mutex};
    word.fetch_or(waiters_bit);
    if (try_take(bytes)) {
      served.fetch_add(1);
    } else {
      queue.push_back(bytes);
    }
  }
};

struct FreezesOnlyBeforeEnqueueing : RashSlack {
  void thaw() {
    BasicMutexLock<Mutex> lock{slack_mutex};
    if ((word.load() & waiters_bit) == 0 && BasicCoreSlack<Atomics>::frozen(slack.epoch())) { slack.thaw(); }
  }
  Threads threads() override {
    return {[this] {
              freeze();
              announce_and_enqueue(2);
              wait_for(1);
            },
            [this] { give(1); }, [this] { thaw(); }};
  }
};
TEST(BudgetQueueDesign, DrainingTheCoresOnlyBeforeEnqueueingLosesAWakeUp) {
  expect_fails<FreezesOnlyBeforeEnqueueing>();
}

struct ThawsWhoeverWaits : RashSlack {
  Threads threads() override {
    return {[this] {
              announce_and_enqueue(2);
              freeze();
              grant();
              wait_for(1);
            },
            [this] { give(1); }, [this] { thaw_whoever_waits(); }};
  }
};
TEST(BudgetQueueDesign, ThawingTheCoresWhileSomebodyWaitsLosesAWakeUp) { expect_fails<ThawsWhoeverWaits>(); }

}  // namespace
}  // namespace earmark::detail::explored
