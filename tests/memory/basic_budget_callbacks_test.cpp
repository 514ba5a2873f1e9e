// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Requests whose completion gives back what they got, under every interleaving of two or three threads: none lies on
// another's stack, and none is forgotten by leaving it to a thread that was about to stop.
#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <vector>

#include "earmark/memory/basic_budget.hpp"
#include "memory/exploring.hpp"

namespace earmark::detail::explored {
namespace {

// How many call-backs each thread is inside of.
using Depths = std::array<int, 3>;

// Once told, gives back what it was granted.
class Caller final : public BasicWaitRequest<Atomics> {
 public:
  Caller(std::int64_t bytes, Budget& purse, Depths& depths)
      : BasicWaitRequest(bytes, purse, 0, 0, Completion::CallsBack), depths_(depths) {}
  ~Caller() = default;

  // Returns: Queue if it waits now.
  Take start() {
    Take const taken = purse().queue_keeper().take_or_enqueue(*this).result;
    if (taken == Take::Ok) { called_back(Take::Ok); }
    return taken;
  }
  // Blocks: until it was told.
  void wait() {
    World::current()->wait_until([this] { return told_.load() != 0; });
  }
  bool cancel() { return purse().queue_keeper().cancel(*this, Take::Short); }
  [[nodiscard]] int told() const { return told_.load(); }

 private:
  void complete() noexcept override {
    int& depth = depths_[World::current()->running_thread()];
    if (depth != 0) { World::current()->fail("called back inside another call"); }
    ++depth;
    called_back(outcome().result);
    --depth;
  }
  void called_back(Take result) {
    if (result == Take::Ok) { purse().credit(bytes()); }
    told_.fetch_add(1);
  }

  Depths& depths_;
  Atomic<int> told_{0};
};

struct AllHeld : Scenario {
  explicit AllHeld(std::int64_t limit) : budget(limit, 0, 16) {
    (void)budget.take(limit, Pass::Yes);
    World::current()->let_mutexes_remember();  // who was left to whom is no atomic
  }
  mutable Budget budget;
  Depths depths{};
  std::uint64_t plain_state() const override { return state_of(budget); }
  void require_settled(std::int64_t available) {
    require(!budget.account().awaited(), "the word says that somebody waits");
    require(budget.available() == available, "bytes were lost or doubled");
  }
};

struct EachServesTheNext : AllHeld {
  Caller first{2, budget, depths}, second{2, budget, depths}, third{1, budget, depths};
  EachServesTheNext() : AllHeld(2) {
    (void)first.start();
    (void)second.start();
  }
  Threads threads() override {
    return {[this] { budget.credit(2); }, [this] { (void)third.start(); }};
  }
  void at_end() override {
    require(first.told() == 1 && second.told() == 1 && third.told() == 1, "not told, or told twice");
    require_settled(2);
  }
};
TEST(BudgetCallbacks, AreCalledOneAfterAnotherWhenEachServesTheNext) { expect_holds<EachServesTheNext>(); }

// Two threads call back at once: each leaves to itself alone what it finishes meanwhile.
struct TwoCallBack : AllHeld {
  Caller first{1, budget, depths}, second{1, budget, depths}, third{2, budget, depths};
  TwoCallBack() : AllHeld(2) {
    (void)first.start();
    (void)second.start();
    (void)third.start();
  }
  Threads threads() override {
    return {[this] { budget.credit(1); }, [this] { budget.credit(1); }};
  }
  void at_end() override {
    require(first.told() == 1 && second.told() == 1 && third.told() == 1, "not told, or told twice");
    require_settled(2);
  }
};
TEST(BudgetCallbacks, AreNotForgottenWhenTwoThreadsCallBackAtOnce) { expect_holds<TwoCallBack>(); }

struct CancelMeetsCallBack : AllHeld {
  Caller first{2, budget, depths}, second{2, budget, depths}, third{1, budget, depths};
  CancelMeetsCallBack() : AllHeld(2) {
    (void)first.start();
    (void)second.start();
    (void)third.start();
  }
  Threads threads() override {
    return {[this] { budget.credit(2); }, [this] { (void)second.cancel(); }};
  }
  void at_end() override {
    require(first.told() == 1 && second.told() == 1 && third.told() == 1, "not told, or told twice");
    require_settled(2);
  }
};
TEST(BudgetCallbacks, AreCalledOnceWhenOneIsWithdrawnMeanwhile) { expect_holds<CancelMeetsCallBack>(); }

// A thread that waits is told at once, and not after the call-backs.
struct ThreadAmongCallers : AllHeld {
  Caller first{2, budget, depths};
  Place place;
  ThreadAmongCallers() : AllHeld(2) { (void)first.start(); }
  Threads threads() override {
    return {[this] { budget.credit(2); },
            [this] {
              require(place.take(1, budget) == Take::Ok, "not served");
              budget.credit(1);
            }};
  }
  void at_end() override {
    require(first.told() == 1, "not told, or told twice");
    require_settled(2);
  }
};
TEST(BudgetCallbacks, HoldUpNoThreadThatWaits) { expect_holds<ThreadAmongCallers>(); }

struct ShutDownMeetsCallBack : AllHeld {
  Caller first{2, budget, depths}, second{2, budget, depths};
  ShutDownMeetsCallBack() : AllHeld(2) {
    (void)first.start();
    (void)second.start();
  }
  Threads threads() override {
    return {[this] { budget.credit(2); }, [this] { budget.shut_down(); }};
  }
  void at_end() override {
    require(first.told() == 1 && second.told() == 1, "not told, or told twice");
    require_settled(2);
  }
};
TEST(BudgetCallbacks, AreCalledOnceWhenTheBudgetShutsDown) { expect_holds<ShutDownMeetsCallBack>(); }

// -- what does not hold: these must be found --------------------------------------------------------------------------

// Whoever finds another at work leaves what he has finished to him.
struct LeavesItToAnyone : Scenario {
  Mutex mutex;
  Atomic<int> available{0};
  Atomic<int> told{0};
  int waiting{2};
  int left{0};  // finished, and left to who is at work
  bool at_work{false};
  std::uint64_t plain_state() const override {
    return static_cast<std::uint64_t>(waiting * 100 + left * 10 + (at_work ? 1 : 0));
  }
  // Stops when there is nothing left to do, and says so a moment later.
  void bring_back() {
    {
      BasicMutexLock<Mutex> lock{mutex};
      left += std::exchange(waiting, waiting - 1) - waiting;
      if (at_work) { return; }
      at_work = true;
    }
    for (bool more = true; more;) {
      BasicMutexLock<Mutex> lock{mutex};
      more = left != 0;
      if (more) {
        --left;
        told.fetch_add(1);
      }
    }
    BasicMutexLock<Mutex> lock{mutex};
    at_work = false;
  }
  Threads threads() override {
    return {[this] { bring_back(); }, [this] { bring_back(); }};
  }
  void at_end() override { require(told.load() == 2, "somebody was left to one who had stopped"); }
};
TEST(BudgetCallbacksDesign, LeavingThemToAnotherThreadForgetsSome) { expect_fails<LeavesItToAnyone>(); }

}  // namespace
}  // namespace earmark::detail::explored
