// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// The account under every interleaving of two or three threads, and the designs that look as good and are not.
#include "earmark/memory/account.hpp"

#include <gtest/gtest.h>

#include <optional>

#include "memory/exploring.hpp"

namespace earmark::detail::explored {
namespace {

// Takes and gives back, as an allocation and its free do.
void allocate_and_free(Account& account, std::int64_t bytes) {
  if (account.try_take(bytes).result == Take::Ok) { account.credit(bytes); }
}

// -- what holds
// --------------------------------------------------------------------------------------------------------

struct CloseRacesAllocations : Scenario {
  Account budget{4, nullptr};
  Account reservation{4, &budget};
  Threads threads() override {
    return {[this] { allocate_and_free(reservation, 2); }, [this] { allocate_and_free(reservation, 3); },
            [this] {
              reservation.close();
              reservation.close();
            }};
  }
  void after_step() override {
    require(budget.available() >= 4 && budget.available() <= 8, "a byte was credited twice");
  }
  void at_end() override {
    require(budget.available() == 8, "bytes were lost or doubled");
    require(reservation.closed() && reservation.available() == 0 && reservation.granted() == 0, "not settled");
  }
};
TEST(Account, GivesBackEveryByteOnceWhenItIsClosedAmongAllocationsAndFrees) { expect_holds<CloseRacesAllocations>(); }

struct NestedCloses : Scenario {
  Account budget{0, nullptr};
  Account query{5, &budget};
  Account task{4, &query};
  NestedCloses() {
    (void)query.try_take(3);  // 3 of the query's 5 were lent to the task, which was opened with 4: one of its own
    (void)task.try_take(3);
  }
  Threads threads() override {
    return {[this] {
              task.credit(1);
              task.credit(2);
            },
            [this] { task.close(); }, [this] { query.close(); }};
  }
  void at_end() override {
    require(budget.available() == 6, "bytes were lost or doubled");
    require(query.available() == 0 && task.available() == 0, "a closed account kept bytes");
  }
};
TEST(Account, PassesFreedBytesToTheFirstOpenAncestorWhileAncestorsClose) { expect_holds<NestedCloses>(); }

struct ThreeLevels : Scenario {
  Account budget{0, nullptr};
  Account query{1, &budget};
  Account operation{1, &query};
  Account task{3, &operation};
  ThreeLevels() { (void)task.try_take(2); }
  Threads threads() override {
    return {[this] { task.credit(2); },
            [this] {
              task.close();
              operation.close();
            },
            [this] { query.close(); }};
  }
  void at_end() override { require(budget.available() == 5, "bytes were lost or doubled"); }
};
TEST(Account, FindsAnHeirThroughThreeLevelsThatCloseInAnyOrder) { expect_holds<ThreeLevels>(); }

struct MergeRacesFrees : Scenario {
  Account budget{0, nullptr};
  Account target{2, &budget};
  Account merged{5, &budget};
  MergeRacesFrees() {
    (void)merged.try_take(4);
    (void)target.try_take(1);
  }
  Threads threads() override {
    return {[this] { merged.credit(3); },
            [this] {
              merged.merge_into(target);
              target.close();
            },
            [this] {
              merged.credit(1);
              target.credit(1);
            }};
  }
  void at_end() override {
    require(budget.available() == 7, "bytes were lost or doubled");
    require(target.granted() == 0 && merged.granted() == 0, "not settled");
  }
};
TEST(Account, TakesInWhatAMergedOneStillHasLive) { expect_holds<MergeRacesFrees>(); }

struct MergedAccountKeepsItsBooks : Scenario {
  Account budget{0, nullptr};
  Account target{2, &budget};
  Account merged{3, &budget};
  MergedAccountKeepsItsBooks() { (void)merged.try_take(2); }
  Threads threads() override {
    return {[this] { merged.credit(2); }, [this] { merged.merge_into(target); },
            [this] { allocate_and_free(target, 2); }};
  }
  void at_end() override {
    Account::Reading const now = target.read();
    require(now.granted == 5 && now.available == 5, "the target does not own everything");
  }
};
TEST(Account, OwnsAllOfAMergedOneAfterwards) { expect_holds<MergedAccountKeepsItsBooks>(); }

struct SplitAndGrow : Scenario {
  Account budget{2, nullptr};
  Account reservation{4, &budget};
  std::optional<Account> piece;
  Threads threads() override {
    return {[this] { allocate_and_free(reservation, 3); },
            [this] {
              if (reservation.detach(2).result == Take::Ok) { piece.emplace(2, &budget); }
              if (budget.try_take(1).result == Take::Ok) { reservation.grow(1); }
              reservation.close();
              if (piece) { piece->close(); }
            }};
  }
  void after_step() override { require(reservation.available() >= 0 && budget.available() >= 0, "taken twice"); }
  void at_end() override { require(budget.available() == 6, "bytes were lost or doubled"); }
};
TEST(Account, SplitsAndGrowsAmongAllocations) { expect_holds<SplitAndGrow>(); }

struct GrowRacesClose : Scenario {
  Account budget{3, nullptr};
  Account reservation{1, &budget};
  Threads threads() override {
    return {[this] {
              if (budget.try_take(2).result == Take::Ok) { reservation.grow(2); }
              allocate_and_free(reservation, 3);
            },
            [this] { reservation.close(); }, [this] { allocate_and_free(reservation, 1); }};
  }
  void at_end() override {
    require(budget.available() == 4, "bytes were lost or doubled");
    require(reservation.granted() == 0 && reservation.available() == 0, "not settled");
  }
};
TEST(Account, SendsBackWhatItGrewByAfterItWasClosed) { expect_holds<GrowRacesClose>(); }

struct GrowRacesMerge : Scenario {
  Account budget{2, nullptr};
  Account target{1, &budget};
  Account merged{1, &budget};
  Threads threads() override {
    return {[this] {
              if (budget.try_take(2).result == Take::Ok) { merged.grow(2); }
            },
            [this] { merged.merge_into(target); }};
  }
  void at_end() override {
    Account::Reading const now = target.read();
    require(budget.available() == 0 && now.granted == 4 && now.available == 4, "the growth went astray");
    require(merged.granted() == 0, "the merged account kept a grant");
  }
};
TEST(Account, SendsWhatItGrewByOnToWhatItWasMergedInto) { expect_holds<GrowRacesMerge>(); }

struct FreesAlongAChain : Scenario {
  Account budget{0, nullptr};
  Account last{1, &budget}, third{1, &budget}, second{1, &budget}, first{2, &budget};
  FreesAlongAChain() {
    (void)first.try_take(2);
    (void)second.try_take(1);
    first.merge_into(second);
    second.merge_into(third);
  }
  Threads threads() override {
    return {[this] {
              first.credit(1);
              first.credit(1);
            },
            [this] { second.credit(1); },
            [this] {
              third.merge_into(last);
              last.close();
            }};
  }
  void at_end() override {
    require(budget.available() == 5, "bytes were lost or doubled");
    require(last.granted() == 0, "not settled");
  }
};
TEST(Account, ShortensAChainOfMergesWhileBytesComeBackAlongIt) { expect_holds<FreesAlongAChain>(); }

struct GrowsAlongAChain : Scenario {
  Account budget{2, nullptr};
  Account last{1, &budget}, second{1, &budget}, first{1, &budget};
  GrowsAlongAChain() {
    (void)first.try_take(1);
    first.merge_into(second);
    second.merge_into(last);
  }
  Threads threads() override {
    return {[this] {
              if (budget.try_take(2).result == Take::Ok) { first.grow(2); }
            },
            [this] { first.credit(1); }};
  }
  void at_end() override {
    Account::Reading const now = last.read();
    require(now.granted == 5 && now.available == 5, "the growth went astray");
  }
};
TEST(Account, SendsGrowthAlongAChainThatIsShortened) { expect_holds<GrowsAlongAChain>(); }

struct ShrinkRacesAllocations : Scenario {
  Account budget{0, nullptr};
  Account reservation{4, &budget};
  Threads threads() override {
    return {[this] { allocate_and_free(reservation, 2); }, [this] { budget.credit(reservation.detach_unspent()); },
            [this] { allocate_and_free(reservation, 1); }};
  }
  void at_end() override {
    Account::Reading const now = reservation.read();
    require(now.live() == 0 && now.granted + budget.available() == 4, "bytes were lost or doubled");
  }
};
TEST(Account, GivesBackOnlyWhatIsUnspentWhenItShrinks) { expect_holds<ShrinkRacesAllocations>(); }

struct ReaderSeesOneMoment : Scenario {
  Account budget{0, nullptr};
  Account reservation{4, &budget};
  Threads threads() override {
    return {[this] {
              reservation.grow(2);
              (void)reservation.detach(2);
            },
            [this] {
              Account::Reading const now = reservation.read();
              require(now.live() == 0, "nothing is live, but the reader saw otherwise");
            }};
  }
};
TEST(Account, ShowsWhatIsLiveOfOneMomentWhileItsOwnerGrowsAndShrinks) { expect_holds<ReaderSeesOneMoment>(); }

struct LimitLowered : Scenario {
  Account budget{4, nullptr};
  bool seen_below_limit{false};
  Threads threads() override {
    return {[this] { (void)budget.try_take(3); },
            [this] {
              budget.adjust(-3);
              if (budget.available() >= 0) { seen_below_limit = true; }
            }};
  }
  void after_step() override {
    require(!(seen_below_limit && budget.available() < 0), "passed a limit that was in force");
  }
  std::uint64_t plain_state() const override { return seen_below_limit ? 1 : 0; }
};
TEST(Account, NeverPassesALimitThatWasSeenToBeInForce) { expect_holds<LimitLowered>(); }

struct QuotaPassesOn : Scenario {
  Account budget{0, nullptr};
  Account lender{4, &budget};
  Account quota{4, &lender, Credits::PassOn};
  Account reservation{3, &quota};
  QuotaPassesOn() {
    (void)lender.try_take(3);
    (void)quota.try_take(3);
    (void)reservation.try_take(2);
  }
  Threads threads() override {
    return {[this] { reservation.credit(2); }, [this] { reservation.close(); }, [this] { lender.close(); }};
  }
  void at_end() override {
    require(quota.available() == 4, "the quota is not whole");
    require(budget.available() == 4 && lender.granted() == 0, "the lender did not get its bytes back");
  }
};
TEST(Account, GivesLentBytesBackToTheQuotaAndTheLenderEvenWhileTheLenderCloses) { expect_holds<QuotaPassesOn>(); }

// A limit within a reservation that grows when it is short: it is charged first, and what it allows is then drawn.
template <Credits credits>
struct LimitWithinAGrowingLender : Scenario {
  Account budget{4, nullptr};
  Account lender{0, &budget};
  Account limit{2, &lender, credits};
  LimitWithinAGrowingLender() { draw(); }
  void draw() {
    if (limit.try_take(2).result == Take::Ok && lender.try_take(2).result != Take::Ok) {
      (void)budget.try_take(2);
      (void)lender.grow_and_take(2, 2);
    }
  }
  Threads threads() override {
    return {[this] { limit.credit(2); }, [this] { draw(); }};
  }
  void after_step() override { require(lender.granted() <= 2, "the lender grew beyond the limit on it"); }
};
TEST(Account, PassesBytesOnBeforeALimitLetsThemBeDrawnAgain) {
  expect_holds<LimitWithinAGrowingLender<Credits::PassOnFirst>>();
}

// -- what does not hold: these must be found
// ---------------------------------------------------------------------------

// Closing by an unconditional exchange: a second close finds the transient bytes of a free that is on its way.
struct CloseByExchange : Scenario {
  Atomic<std::int64_t> budget{0};
  Atomic<std::int64_t> word{2 * 4};
  void close() {
    std::int64_t const before = word.exchange(1);
    if (before >> 2 != 0) { budget.fetch_add(before >> 2); }
  }
  void credit(std::int64_t bytes) {
    if ((word.fetch_add(bytes * 4) & 1) != 0) {
      word.fetch_sub(bytes * 4);
      budget.fetch_add(bytes);
    }
  }
  Threads threads() override {
    return {[this] { credit(2); },
            [this] {
              close();
              close();
            }};
  }
  void at_end() override { require(budget.load() == 4 && word.load() == 1, "bytes were lost or doubled"); }
};
TEST(AccountDesign, ClosingByExchangeCountsBytesTwice) { expect_fails<CloseByExchange>(); }

struct AddThenUndo : Scenario {
  Atomic<std::int64_t> committed{0};
  bool refused{false};
  bool take(std::int64_t bytes) {
    if (committed.fetch_add(bytes) + bytes <= 4) { return true; }
    committed.fetch_sub(bytes);
    return false;
  }
  Threads threads() override {
    return {[this] { take(5); }, [this] { refused = !take(1); }};
  }
  void at_end() override { require(!refused, "refused although the bytes were there all the time"); }
};
TEST(AccountDesign, AddingFirstAndUndoingRefusesInnocents) { expect_fails<AddThenUndo>(); }

struct LimitInAnotherWord : Scenario {
  Atomic<std::int64_t> committed{0};
  Atomic<std::int64_t> limit{4};
  bool seen_below_limit{false};
  Threads threads() override {
    return {[this] {
              std::int64_t now = committed.load();
              while (now + 3 <= limit.load() && !committed.compare_exchange_weak(now, now + 3)) {}
            },
            [this] {
              limit.store(1);
              if (committed.load() <= 1) { seen_below_limit = true; }
            }};
  }
  void after_step() override {
    require(!(seen_below_limit && committed.load() > 1), "passed a limit that was in force");
  }
  std::uint64_t plain_state() const override { return seen_below_limit ? 1 : 0; }
};
TEST(AccountDesign, ALimitBesideWhatIsCommittedCanBePassed) { expect_fails<LimitInAnotherWord>(); }

struct ReaderWithoutSequence : Scenario {
  Atomic<std::int64_t> granted{4};
  Atomic<std::int64_t> balance{4};
  Threads threads() override {
    return {[this] {
              balance.fetch_add(2);
              granted.fetch_add(2);
            },
            [this] {
              std::int64_t const all = granted.load();
              require(all - balance.load() == 0, "nothing is live, but the reader saw otherwise");
            }};
  }
};
TEST(AccountDesign, ReadingGrantAndBalanceOneByOneShowsWhatNeverWas) { expect_fails<ReaderWithoutSequence>(); }

// A quota and the lender behind it, taken one after the other without a lock: the undo of a doomed take is visible.
struct QuotaWithoutLock : Scenario {
  Account lender{2, nullptr};
  Account quota{3, nullptr};
  bool refused{false};
  Threads threads() override {
    return {[this] {
              if (quota.try_take(3).result == Take::Ok && lender.try_take(3).result != Take::Ok) { quota.adjust(3); }
            },
            [this] { refused = quota.try_take(1).result != Take::Ok; }};
  }
  void at_end() override { require(!refused, "refused by a quota that nobody used"); }
};
TEST(AccountDesign, ChargingQuotaAndLenderWithoutALockRefusesInnocents) { expect_fails<QuotaWithoutLock>(); }

TEST(AccountDesign, ALimitThatCountsBytesBeforeItPassesThemOnLetsALenderGrowByThem) {
  expect_fails<LimitWithinAGrowingLender<Credits::PassOn>>();
}

}  // namespace
}  // namespace earmark::detail::explored
