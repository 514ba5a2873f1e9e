// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/memory/waiter_list.hpp"

#include <gtest/gtest.h>

#include "memory/exploring.hpp"

namespace earmark::detail::explored {
namespace {

class Listener final : public Waiters {
 public:
  void bytes_came_back() noexcept override {
    EXPECT_EQ(held, 1) << "told without being held";
    ++told;
  }
  void hold() noexcept override { ++held; }
  void let_go() noexcept override { --held; }
  int told{0};
  int held{0};
};

TEST(WaiterList, TellsEachOnceAndHoldsItMeanwhile) {
  BasicWaiterList<StdAtomics> list;
  Listener first, second;
  int announced = 0;
  list.add(first, [&] { ++announced; });
  list.add(second, [&] { ++announced; });
  EXPECT_EQ(announced, 2);
  list.bytes_came_back();
  list.bytes_came_back();
  EXPECT_EQ(first.told, 2);
  EXPECT_EQ(second.told, 2);
  EXPECT_EQ(first.held, 0);
}

TEST(WaiterList, AnnouncesNoMoreWhenTheLastLeaves) {
  BasicWaiterList<StdAtomics> list;
  Listener first, second;
  int ended = 0;
  list.add(first, [] {});
  list.add(second, [] {});
  list.remove(first, [&] { ++ended; });
  EXPECT_EQ(ended, 0);
  list.remove(second, [&] { ++ended; });
  EXPECT_EQ(ended, 1);
  list.bytes_came_back();
  EXPECT_EQ(first.told + second.told, 0);
}

// Bytes that come back on two threads at once: whoever waits has looked after the later of them.
struct TwoRounds : Scenario {
  class Looker final : public Waiters {
   public:
    explicit Looker(Atomic<int>& bytes) : bytes_(bytes) {}
    void bytes_came_back() noexcept override {
      int const now = bytes_.load();
      seen = now > seen ? now : seen;
    }
    int seen{0};

   private:
    Atomic<int>& bytes_;
  };
  Atomic<int> bytes{0};
  Looker first{bytes}, second{bytes};
  BasicWaiterList<Atomics> list;
  TwoRounds() {
    World::current()->let_mutexes_remember();
    list.add(first, [] {});
    list.add(second, [] {});
  }
  void bring() {
    bytes.fetch_add(1);
    list.bytes_came_back();
  }
  Threads threads() override {
    return {[this] { bring(); }, [this] { bring(); }};
  }
  std::uint64_t plain_state() const override { return static_cast<std::uint64_t>(first.seen * 4 + second.seen); }
  void at_end() override { require(first.seen == 2 && second.seen == 2, "somebody was not told of all"); }
};
TEST(WaiterList, TellsAllOfTheLatestWhenRoundsMeet) { expect_holds<TwoRounds>(); }

}  // namespace
}  // namespace earmark::detail::explored
