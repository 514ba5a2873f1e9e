// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Budgets that stand on a reservation, under every interleaving of two or three threads: who waits for them is woken by
// whatever could help, on whichever level it happens. The lender here does what `BlockLender` and `ReservationBlock`
// do, with the same operations.
#include <gtest/gtest.h>

#include "earmark/memory/basic_budget.hpp"
#include "earmark/memory/waiter_list.hpp"
#include "memory/exploring.hpp"

namespace earmark::detail::explored {
namespace {

enum class Grows : std::uint8_t { No, Yes };

class Lender final : public BasicLender<Atomics> {
 public:
  Lender(std::int64_t granted, Budget& purse, Grows grows)
      : account_(granted, &purse.account()), purse_(purse), grows_(grows) {
    account_.wait_with(&waiters_);
  }
  Account& account() noexcept override { return account_; }
  Taken take(std::int64_t bytes) noexcept override {
    for (;;) {
      Taken taken = account_.try_take(bytes);
      if (taken.result != Take::Short || grows_ == Grows::No) { return taken; }
      std::int64_t const missing = bytes - taken.available;
      if (purse_.take_quietly(missing, Pass::Yes).result != Take::Ok) { return taken; }
      taken = account_.grow_and_take(missing, bytes);
      if (taken.result == Take::Ok) { return taken; }
      purse_.credit_quietly(missing);
    }
  }
  // What an allocation does.
  Taken draw(std::int64_t bytes) noexcept {
    Taken const taken = take(bytes);
    purse_.settle();
    return taken;
  }
  void settle() noexcept override { purse_.settle(); }
  Taken take_anyway(std::int64_t bytes) noexcept override { return take(bytes); }
  Taken take_up_to(std::int64_t bytes, std::int64_t at_least, std::int64_t granule,
                   std::int64_t& taken) noexcept override {
    return account_.take_up_to(bytes, at_least, granule, taken);
  }
  void subscribe(Waiters& waiters) override {
    waiters_.add(waiters, [this] { account_.announce(); });
    if (grows_ == Grows::Yes) { purse_.queue_keeper().subscribe(waiters); }
  }
  void unsubscribe(Waiters& waiters) noexcept override {
    if (grows_ == Grows::Yes) { purse_.queue_keeper().unsubscribe(waiters); }
    waiters_.remove(waiters, [this] { account_.announce_no_more(); });
  }
  void close() noexcept {
    if (std::int64_t const unspent = account_.close_and_take_unspent(); unspent != 0) { purse_.credit(unspent); }
  }

 private:
  Account account_;
  Budget& purse_;
  Grows grows_;
  BasicWaiterList<Atomics> waiters_;
};

// A root of which `lent` bytes are lent to a reservation, all spent but those given back in a scenario's constructor;
// on it stands a nested budget.
template <Grows grows>
struct Nested : Scenario {
  explicit Nested(std::int64_t lent, std::int64_t limit = 8) : nested_limit(limit) {
    World::current()->let_mutexes_remember();
    (void)root.take(8, Pass::Yes);
    lender.account().grow(lent);
    (void)nested.take(lent, Pass::Yes);
  }
  std::int64_t nested_limit;
  Budget root{8, 0, 16};
  Lender lender{0, root, grows};
  Budget nested{nested_limit, lender, 16};
  std::uint64_t plain_state() const override {
    return interleaving::mix(state_of(const_cast<Budget&>(root)), state_of(const_cast<Budget&>(nested)));
  }
  void require_nobody_waits() {
    require(!root.account().awaited() && !lender.account().awaited() && !nested.account().awaited(),
            "a word says that somebody waits");
  }
};

struct LenderGetsBytes : Nested<Grows::No> {
  Place place;
  LenderGetsBytes() : Nested(2) {}
  Threads threads() override {
    return {[this] {
              require(place.take(2, nested) == Take::Ok, "not served");
              nested.credit(2);
            },
            [this] {
              nested.credit(1);
              nested.credit(1);
            }};
  }
  void at_end() override {
    require(lender.account().available() == 2 && nested.available() == 8, "bytes were lost or doubled");
    require_nobody_waits();
  }
};
TEST(NestedBudget, WakesWhoWaitsWhenBytesComeBackToIt) { expect_holds<LenderGetsBytes>(); }

struct LenderItselfGetsBytes : Nested<Grows::No> {
  Place place;
  LenderItselfGetsBytes() : Nested(0) {}
  Threads threads() override {
    return {[this] {
              require(place.take(2, nested) == Take::Ok, "not served");
              nested.credit(2);
            },
            [this] {
              lender.account().grow(1);
              lender.account().grow(1);
            }};
  }
  void at_end() override {
    require(lender.account().available() == 2 && nested.available() == 8, "bytes were lost or doubled");
    require_nobody_waits();
  }
};
TEST(NestedBudget, WakesWhoWaitsWhenItsReservationGrows) { expect_holds<LenderItselfGetsBytes>(); }

struct LenderCloses : Nested<Grows::No> {
  Place place;
  LenderCloses() : Nested(2) {}
  Threads threads() override {
    return {[this] {
              Take const result = place.take(2, nested);
              require(result == Take::Ok || result == Take::Closed, "neither served nor told");
              if (result == Take::Ok) { nested.credit(2); }
            },
            [this] {
              nested.credit(2);
              lender.close();
            }};
  }
  void at_end() override {
    require(root.available() == 2 && nested.available() == 8, "bytes were lost or doubled");
    require_nobody_waits();
  }
};
TEST(NestedBudget, TellsWhoWaitsWhenItsReservationCloses) { expect_holds<LenderCloses>(); }

struct LenderClosesFirst : LenderCloses {
  Threads threads() override {
    return {[this] { require(place.take(2, nested) == Take::Closed, "neither served nor told"); },
            [this] {
              lender.close();
              nested.credit(2);
            }};
  }
};
TEST(NestedBudget, TellsWhoWaitsWhenItsReservationClosesBeforeBytesComeBack) { expect_holds<LenderClosesFirst>(); }

struct LenderMerges : Nested<Grows::No> {
  Lender other{1, root, Grows::No};
  Place place;
  LenderMerges() : Nested(2) {}
  Threads threads() override {
    return {[this] {
              Take const result = place.take(2, nested);
              require(result == Take::Ok || result == Take::Closed, "neither served nor told");
              if (result == Take::Ok) { nested.credit(2); }
            },
            [this] {
              nested.credit(2);
              lender.account().merge_into(other.account());
            }};
  }
  void at_end() override {
    require(other.account().available() == 3 && nested.available() == 8, "bytes were lost or doubled");
    require_nobody_waits();
  }
};
TEST(NestedBudget, TellsWhoWaitsWhenItsReservationIsMerged) { expect_holds<LenderMerges>(); }

// Bytes come back through a reservation that was made on the nested budget, and closes.
struct LeafCloses : Nested<Grows::No> {
  Account leaf{3, &nested.account()};
  Place place;
  LeafCloses() : Nested(3) { (void)leaf.try_take(2); }
  Threads threads() override {
    return {[this] { (void)place.start(3, nested); },
            [this] {
              leaf.credit(2);
              leaf.close();
            }};
  }
  void at_end() override {
    require(place.served(), "waits although the bytes are there");
    require(lender.account().available() == 0 && nested.available() == 5, "bytes were lost or doubled");
    require_nobody_waits();
  }
};
TEST(NestedBudget, WakesWhoWaitsWhenALeafGivesBackAndCloses) { expect_holds<LeafCloses>(); }

struct LeafClosesFirst : LeafCloses {
  Threads threads() override {
    return {[this] { (void)place.start(3, nested); },
            [this] {
              leaf.close();
              leaf.credit(2);
            }};
  }
};
TEST(NestedBudget, WakesWhoWaitsWhenALeafClosesAndItsBytesComeLater) { expect_holds<LeafClosesFirst>(); }

struct LenderCanGrow : Nested<Grows::Yes> {
  Place place;
  LenderCanGrow() : Nested(0) {}
  Threads threads() override {
    return {[this] {
              require(place.take(2, nested) == Take::Ok, "not served");
              nested.credit(2);
            },
            [this] {
              root.credit(1);
              root.credit(1);
            }};
  }
  void at_end() override {
    require(root.available() + lender.account().available() == 2 && nested.available() == 8, "lost or doubled");
    require_nobody_waits();
  }
};
TEST(NestedBudget, WakesWhoWaitsWhenItsReservationCouldGrow) { expect_holds<LenderCanGrow>(); }

struct RootIsRaised : LenderCanGrow {
  Threads threads() override {
    return {LenderCanGrow::threads()[0], [this] { root.set_limit(10); }};
  }
};
TEST(NestedBudget, WakesWhoWaitsWhenTheRootIsRaised) { expect_holds<RootIsRaised>(); }

struct RootHasSlack : Scenario, Spread {
  Lender lender{0, budget, Grows::Yes};
  Budget nested{8, lender, 16};
  Place place;
  RootHasSlack() : Spread(0, 0, 1) { World::current()->let_mutexes_remember(); }
  Threads threads() override {
    return {[this] {
              require(place.take(2, nested) == Take::Ok, "not served");
              nested.credit(2);
            },
            [this] {
              budget.thaw();
              budget.credit(1);
            }};
  }
  std::uint64_t plain_state() const override { return state_of(const_cast<Budget&>(nested)); }
  void at_end() override { require(budget.available() + lender.account().available() == 2, "lost or doubled"); }
};
TEST(NestedBudget, WakesWhoWaitsWhenBytesComeBackToARootWithSlack) { expect_holds<RootHasSlack>(); }

// Nobody is refused at the root because somebody else waits on a budget that stands on it.
struct InnocentAtTheRoot : RootHasSlack {
  Threads threads() override {
    return {[this] {
              if (place.start(8, nested) == Take::Queue) { (void)place.cancel(); }
            },
            [this] {
              require(budget.take(1, Pass::No).result == Take::Ok, "refused for those who wait elsewhere");
              budget.credit(1);
            }};
  }
  void at_end() override { require(budget.available() == 1, "lost or doubled"); }
};
TEST(NestedBudget, HoldsUpNobodyAtTheRoot) { expect_holds<InnocentAtTheRoot>(); }

// Two who grow the reservation at once, and one who waits: what one of them leaves behind is told.
struct GrowthLeftBehind : Nested<Grows::Yes> {
  Place place;
  GrowthLeftBehind() : Nested(0) { root.credit(4); }
  Threads threads() override {
    return {[this] {
              require(place.take(2, nested) == Take::Ok, "not served");
              nested.credit(2);
            },
            [this] {
              if (lender.draw(3).result == Take::Ok) { lender.account().credit(3); }
            }};
  }
  void at_end() override {
    require(root.available() + lender.account().available() == 4 && nested.available() == 8, "lost or doubled");
    require_nobody_waits();
  }
};
TEST(NestedBudget, WakesWhoWaitsAmongAllocationsThatGrow) { expect_holds<GrowthLeftBehind>(); }

// One who grows is overtaken by another and gives up: who waits is told of what it gives back.
struct GrowthSnatched : Nested<Grows::Yes> {
  Place place;
  GrowthSnatched() : Nested(0) { root.credit(4); }
  Threads threads() override {
    return {[this] { (void)place.start(2, nested); }, [this] { (void)lender.draw(3); },
            [this] { (void)lender.draw(2); }};
  }
  void at_end() override {
    require(place.served() || root.available() + lender.account().available() < 2,
            "waits although the bytes are there");
  }
};
TEST(NestedBudget, WakesWhoWaitsWhenGrowthWasSnatched) { expect_holds<GrowthSnatched>(); }

}  // namespace
}  // namespace earmark::detail::explored
