// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Taking from a budget and giving back, under every interleaving of two or three threads: slack per core, changes of
// the limit, readers, quotas; and the designs that look as good and are not. Waiting is in basic_budget_waiting_test.
#include "earmark/memory/basic_budget.hpp"

#include <gtest/gtest.h>

#include "memory/exploring.hpp"

namespace earmark::detail::explored {
namespace {

bool take(Budget& budget, std::int64_t bytes) { return budget.take(bytes, Pass::No).result == Take::Ok; }

void allocate_and_free(Budget& budget, std::int64_t bytes) {
  if (take(budget, bytes)) { budget.credit(bytes); }
}

// -- slack per core ---------------------------------------------------------------------------------------------------

// Two threads that together never want more than there is.
struct Innocents : Scenario, Spread {
  Innocents() : Spread(0, 3, 1) {}
  void use(std::int64_t bytes) {
    bool const served = take(budget, bytes);
    require(served, "refused an innocent");
    if (served) { budget.credit(bytes); }
  }
  Threads threads() override {
    return {[this] { use(2); }, [this] { use(2); }};
  }
  void after_step() override { require(budget.account().available() >= 0, "over-drawn"); }
  void at_end() override { require(budget.available() == 4, "bytes were lost or doubled"); }
};
TEST(BudgetSlack, RefusesNobodyWhoseBytesLieWithAnotherCore) { expect_holds<Innocents>(); }

struct InnocentsAndReader : Innocents {
  Threads threads() override {
    return {[this] { use(2); }, [this] { use(2); }, [this] { (void)budget.read(); }};
  }
};
TEST(BudgetSlack, RefusesNobodyWhileAReaderDrainsTheCores) { expect_holds<InnocentsAndReader>(); }

struct InnocentsAndDoomed : Innocents {
  Threads threads() override {
    return {[this] { use(1); }, [this] { use(1); }, [this] { require(!take(budget, 5), "passed the limit"); }};
  }
};
TEST(BudgetSlack, RefusesNobodyWhileADoomedRequestDrainsTheCores) { expect_holds<InnocentsAndDoomed>(); }

struct InnocentsAndThaw : Innocents {
  Threads threads() override {
    return {[this] { use(2); }, [this] { use(2); }, [this] { budget.thaw(); }};
  }
};
TEST(BudgetSlack, RefusesNobodyWhileTheCoresAreThawed) { expect_holds<InnocentsAndThaw>(); }

// One byte moves from one core to the other while somebody wants all.
struct AllAndAMigrant : Scenario, Spread {
  AllAndAMigrant() : Spread(1, 2, 0) {}  // and one is held, to be given back on core 1
  Threads threads() override {
    return {[this] { allocate_and_free(budget, 4); }, [this] { budget.credit(1); }, [this] { budget.thaw(); }};
  }
  void at_end() override { require(budget.available() == 4, "bytes were lost or doubled"); }
};
TEST(BudgetSlack, KeepsEveryByteWhileCoresFreezeAndThaw) { expect_holds<AllAndAMigrant>(); }

// There are never less than 5: first 5, then 8, then 7.
struct NeverLessThanFive : Scenario, Spread {
  bool credited{false};
  NeverLessThanFive() : Spread(4, 1, 0) {}
  virtual void want() { require(take(budget, 5), "refused although the bytes were there all the time"); }
  Threads threads() override {
    return {[this] { want(); },
            [this] {
              budget.thaw();
              budget.credit(3);
              credited = true;
            },
            [this] {
              World::current()->wait_until([this] { return credited; });
              (void)take(budget, 1);
            }};
  }
};
TEST(BudgetSlack, RefusesOnlyWhatWasNotThereAtOneInstant) { expect_holds<NeverLessThanFive>(); }

struct UpToFive : NeverLessThanFive {
  void want() override {
    std::int64_t taken = 0;
    (void)budget.take_up_to(5, 1, 1, taken);
    require(taken == 5, "got less than was there all the time");
  }
};
TEST(BudgetSlack, GivesAllThatWasThereAtOneInstantToATakeUpTo) { expect_holds<UpToFive>(); }

struct FiveAnyway : NeverLessThanFive {
  void want() override {
    require(budget.take_anyway(5).available >= 0, "reports a deficit although the bytes were there all the time");
  }
};
TEST(BudgetSlack, SeesNoDeficitInWhatLiesWithCores) { expect_holds<FiveAnyway>(); }

// -- readers and limits -----------------------------------------------------------------------------------------------

// Bytes go from the cores to the word, from the word to the cores, and from thread to thread.
struct ReaderAmongCores : Scenario, Spread {
  ReaderAmongCores() : Spread(1, 3, 0) {}
  Threads threads() override {
    return {[this] { allocate_and_free(budget, 2); },
            [this] {
              budget.thaw();
              budget.credit(1);  // held until now
            },
            [this] {
              std::int64_t const committed = budget.read().committed - (limit - 4);
              require(committed == 0 || committed == -1 || committed == 2 || committed == 1, "never was so");
            }};
  }
};
TEST(BudgetReading, ShowsWhatIsCommittedAtOneInstantWhileCoresThaw) { expect_holds<ReaderAmongCores>(); }

struct ReaderAndLimit : Scenario, Spread {
  ReaderAndLimit() : Spread(4, 0, 0) {}
  Threads threads() override {
    return {[this] { budget.set_limit(limit + 512); }, [this] { budget.credit(1); },
            [this] {
              Budget::Reading const now = budget.read();
              require(now.committed == limit - 4 || now.committed == limit - 5, "never was so");
              require(now.limit == limit || now.limit == limit + 512, "no such limit");
            }};
  }
};
TEST(BudgetReading, ShowsLimitAndCommittedOfOneInstantWhileTheLimitChanges) { expect_holds<ReaderAndLimit>(); }

struct LimitOfABudgetWithoutSlack : Scenario {
  Budget budget{8, 0, 16};
  LimitOfABudgetWithoutSlack() { (void)budget.take(4, Pass::Yes); }
  Threads threads() override {
    return {[this] { budget.set_limit(6); }, [this] { budget.credit(2); }, [this] { (void)take(budget, 3); }};
  }
  void at_end() override { require(budget.available() == 4 || budget.available() == 1, "bytes were lost or doubled"); }
};
TEST(BudgetLimit, ChangesWhileBytesComeAndGoWithoutSlack) { expect_holds<LimitOfABudgetWithoutSlack>(); }

struct LimitLoweredAndSeen : Scenario {
  Budget budget{8, 0, 16};
  bool in_force{false};
  Threads threads() override {
    return {[this] { (void)take(budget, 6); },
            [this] {
              budget.set_limit(4);
              if (budget.available() >= 0) { in_force = true; }
            }};
  }
  void after_step() override {
    require(!(in_force && budget.account().available() < 0), "passed a limit that was in force");
  }
  std::uint64_t plain_state() const override { return in_force ? 1 : 0; }
};
TEST(BudgetLimit, IsNeverPassedOnceItWasSeenToBeInForce) { expect_holds<LimitLoweredAndSeen>(); }

struct PeakAndLimit : Scenario {
  Budget budget{8, 0, 16};
  Threads threads() override {
    return {[this] {
              allocate_and_free(budget, 3);
              allocate_and_free(budget, 2);
            },
            [this] {
              budget.set_limit(100);
              budget.set_limit(50);
            }};
  }
  void after_step() override { require(budget.peak() <= 3, "a peak that never was"); }
  std::uint64_t plain_state() const override { return static_cast<std::uint64_t>(budget.peak()); }
};
TEST(BudgetReading, ShowsNoPeakThatNeverWasWhileTheLimitIsRaised) { expect_holds<PeakAndLimit>(); }

// -- quotas -----------------------------------------------------------------------------------------------------------

struct QuotaOfInnocents : Scenario {
  Budget budget{2, 0, 16};
  Budget consumer{3, budget};
  Threads threads() override {
    return {[this] { require(!take(consumer, 3), "passed the budget's limit"); },
            [this] { require(take(consumer, 1), "refused by a quota that nobody used"); },
            [this] { require(take(consumer, 1), "refused by a quota that nobody used"); }};
  }
  void at_end() override { require(consumer.available() == 1 && budget.available() == 0, "not charged as one"); }
};
TEST(BudgetQuota, RefusesNobodyForADoomedTakeOfTheSameConsumer) { expect_holds<QuotaOfInnocents>(); }

struct QuotaOfAReservation : Scenario {
  Budget budget{4, 0, 16};
  Budget consumer{3, budget};
  Account reservation{3, &consumer.account()};
  QuotaOfAReservation() {
    (void)consumer.take(3, Pass::Yes);
    (void)reservation.try_take(2);
  }
  Threads threads() override {
    return {[this] { reservation.credit(2); }, [this] { reservation.close(); },
            [this] { allocate_and_free(consumer, 2); }};
  }
  void at_end() override {
    require(consumer.available() == 3 && budget.available() == 4, "bytes were lost or doubled");
  }
};
TEST(BudgetQuota, GetsBackWhatItsReservationsGiveBack) { expect_holds<QuotaOfAReservation>(); }

struct QuotaUpTo : Scenario {
  Budget budget{3, 0, 16};
  Budget consumer{4, budget};
  Threads threads() override {
    return {[this] {
              std::int64_t taken = 0;
              (void)consumer.take_up_to(4, 1, 1, taken);
              consumer.credit(taken);
            },
            [this] { allocate_and_free(budget, 1); }, [this] { (void)consumer.take_anyway(4); }};
  }
  void at_end() override { require(consumer.available() == 0 && budget.available() == -1, "not charged as one"); }
};
TEST(BudgetQuota, TakesUpToWhatBothHaveAsOneStep) { expect_holds<QuotaUpTo>(); }

// -- what does not hold: these must be found --------------------------------------------------------------------------

// A budget of the same parts, put together as one might.
struct Rash : Scenario {
  Account word{4, nullptr};
  BasicCoreSlack<Atomics> slack{2};
  Mutex mutex;
  bool credited{false};
  Rash() {
    slack.thaw();
    (void)slack.give(1, 4);
  }
  void freeze() {
    if (BasicCoreSlack<Atomics>::frozen(slack.epoch())) { return; }
    word.adjust(slack.freeze());
    slack.frozen_and_settled();
  }
  void thaw() {
    BasicMutexLock<Mutex> lock{mutex};
    if (BasicCoreSlack<Atomics>::frozen(slack.epoch())) { slack.thaw(); }
  }
  void credit(std::int64_t bytes) {
    if (!slack.give(bytes, 4)) { word.credit(bytes); }
  }
};

struct RefusalOutsideTheLock : Rash {
  bool take(std::int64_t bytes) {
    if (slack.take(bytes) || word.try_take(bytes).result == Take::Ok) { return true; }
    {
      BasicMutexLock<Mutex> lock{mutex};
      freeze();
    }
    return word.try_take(bytes).result == Take::Ok;
  }
  Threads threads() override {
    return {[this] { require(take(5), "refused although the bytes were there all the time"); },
            [this] {
              thaw();
              credit(3);
              credited = true;
            },
            [this] {
              World::current()->wait_until([this] { return credited; });
              (void)take(1);
            }};
  }
};
TEST(BudgetDesign, RefusingOutsideTheLockThatFrozeRefusesInnocents) { expect_fails<RefusalOutsideTheLock>(); }

struct RefusalWithoutFreezing : RefusalOutsideTheLock {
  Threads threads() override {
    return {[this] { require(slack.take(3) || word.try_take(5).result == Take::Ok, "refused an innocent"); }};
  }
};
TEST(BudgetDesign, RefusingByTheWordAloneForgetsWhatLiesWithCores) { expect_fails<RefusalWithoutFreezing>(); }

struct ReadingOneByOne : Rash {
  Threads threads() override {
    return {[this] { require(word.available() + slack.sum() == 5, "never was so"); },
            [this] {
              BasicMutexLock<Mutex> lock{mutex};
              freeze();
            }};
  }
};
TEST(BudgetDesign, AddingUpWordAndCoresShowsWhatNeverWas) { expect_fails<ReadingOneByOne>(); }

}  // namespace
}  // namespace earmark::detail::explored
