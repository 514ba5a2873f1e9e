// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/memory/core_slack.hpp"

#include <gtest/gtest.h>

#include "memory/exploring.hpp"

namespace earmark::detail::explored {
namespace {

using Slack = BasicCoreSlack<Atomics>;

TEST(CoreSlack, KeepsAndGivesNothingWhileFrozen) {
  BasicCoreSlack<StdAtomics> slack{2};
  EXPECT_TRUE(slack.exists());
  EXPECT_TRUE(slack.frozen(slack.epoch()));
  EXPECT_FALSE(slack.give(1, 8));
  EXPECT_FALSE(slack.take(0));
  EXPECT_EQ(slack.sum(), 0);
}

TEST(CoreSlack, KeepsNoMoreThanItsCapAndGivesWhatItKept) {
  BasicCoreSlack<StdAtomics> slack{1};
  slack.thaw();
  EXPECT_TRUE(slack.give(5, 8));
  EXPECT_FALSE(slack.give(4, 8));
  EXPECT_TRUE(slack.give(3, 8));
  EXPECT_FALSE(slack.take(9));
  EXPECT_TRUE(slack.take(6));
  EXPECT_EQ(slack.sum(), 2);
  EXPECT_EQ(slack.freeze(), 2);
  slack.frozen_and_settled();
  EXPECT_EQ(slack.sum(), 0);
}

TEST(CoreSlack, SaysByItsEpochWhetherItIsFrozenThawedOrChanging) {
  BasicCoreSlack<StdAtomics> slack{1};
  std::uint32_t const first = slack.epoch();
  slack.thaw();
  EXPECT_TRUE(slack.thawed(slack.epoch()));
  EXPECT_EQ(slack.freeze(), 0);
  EXPECT_TRUE(slack.thawed(slack.epoch())) << "not before what was drained is in the word";
  slack.frozen_and_settled();
  EXPECT_TRUE(slack.frozen(slack.epoch()));
  EXPECT_NE(slack.epoch(), first);
  slack.begin_change();
  EXPECT_TRUE(slack.changing(slack.epoch()));
  slack.end_change();
  EXPECT_TRUE(slack.frozen(slack.epoch()));
}

TEST(CoreSlack, ExistsOnlyForSomeCores) { EXPECT_FALSE(BasicCoreSlack<StdAtomics>{0}.exists()); }

struct FreezeAmongCores : Scenario {
  Slack slack{2};
  std::int64_t outside{2};
  FreezeAmongCores() {
    slack.thaw();
    (void)slack.give(2, 4);
  }
  void move(std::int64_t bytes) {
    if (slack.take(bytes)) { outside += bytes; }
    if (outside >= bytes) {
      outside -= bytes;
      if (!slack.give(bytes, 4)) { outside += bytes; }
    }
  }
  Threads threads() override {
    return {[this] { move(1); }, [this] { move(2); },
            [this] {
              outside += slack.freeze();
              slack.frozen_and_settled();
            }};
  }
  std::uint64_t plain_state() const override { return static_cast<std::uint64_t>(outside); }
  void at_end() override { require(outside == 4 && slack.sum() == 0, "bytes were lost or doubled"); }
};
TEST(CoreSlack, DrainsEveryByteWhileCoresTakeAndGive) { expect_holds<FreezeAmongCores>(); }

}  // namespace
}  // namespace earmark::detail::explored
